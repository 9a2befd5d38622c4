from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.inputs.domain import as_domain
from vecfill.requests import Method, Reading, Trust

TABLE = pd.DataFrame({"name": list("abcdef"), "x": range(6), "y": [3, 1, 4, 1, 5, 9]})
BASE = vf.Embedding(list("abcd"), np.arange(8.0).reshape(4, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"standardise": True}, "standardise is not an option of impute. Did you mean standardize"),
        ({"no_such_option": 1}, "no_such_option is not an option of impute"),
        ({"match": "lose"}, "match='lose' is not known. Did you mean 'loose'"),
        ({"level": 2}, "level=2 is out of range"),
        ({"force": "yes"}, "force='yes' is neither True nor False"),
        ({"method": "paper", "ridge": 0.1}, "method='paper' and ridge=0.1 contradict"),
        ({"candidates": "old"}, "candidates='old' is not known"),
        ({"method": "paper", "candidates": "classic"}, "here nothing is chosen"),
        ({"ridge": 0.1, "candidates": "classic"}, "here nothing is chosen"),
        ({"method": "best"}, "method='best' is not known"),
        ({"method": 3}, "method is an object of type int"),
        ({"min_degree": 0}, "min_degree=0 is not a whole number of at least 1"),
        ({"encoding": "latin-1"}, "encoding='latin-1' cannot be used here: the source is not"),
        ({"format": "glove"}, "format='glove' cannot be used here: the embedding is not a file"),
        ({"n_dims": 5}, "n_dims=5 cannot be used here: it is for kind='edges'"),
        ({"names": list("abc")}, "names= is for arrays"),
    ],
)
def test_an_option_that_is_unknown_or_cannot_apply_is_refused_by_name(options, words):
    with pytest.raises(vf.InputError, match=re.escape(words)):
        vf.impute(TABLE, BASE, **options)


def test_an_unknown_option_is_also_a_type_error():
    with pytest.raises(TypeError, match="Did you mean folds"):
        vf.evaluate(TABLE, BASE, fold=3)


def test_options_beside_what_makes_them_pointless_are_refused():
    domain = as_domain(TABLE)
    with pytest.raises(vf.OptionError, match="standardize=True cannot be used here: a Domain has"):
        vf.impute(domain, BASE, standardize=True)
    matches = vf.impute(TABLE, BASE, method="paper").matches
    with pytest.raises(vf.OptionError, match=r"exclude=.* cannot be used here: matches= says"):
        vf.impute(TABLE, BASE, matches=matches, exclude=["a"])
    with pytest.raises(vf.OptionError, match=r"categorical=.* cannot be used here: it is not for"):
        square = pd.DataFrame(np.eye(3), index=list("abc"), columns=list("abc"))
        as_domain(square, kind="similarities", categorical=["a"])


@pytest.mark.parametrize(
    "embedding",
    [
        {"a": [0.0, 1.0], "b": [2.0, 3.0], "c": [4.0, 5.0], "d": [6.0, 7.0]},
        pd.DataFrame(BASE.vectors, index=list("abcd")),
        pd.DataFrame({"word": list("abcd"), "0": BASE.vectors[:, 0], "1": BASE.vectors[:, 1]}),
    ],
)
def test_a_mapping_or_a_table_is_as_good_as_an_embedding(embedding):
    found = vf.impute(TABLE, embedding, method="paper")
    assert found.embedding.equals(vf.impute(TABLE, BASE, method="paper").embedding)


def test_a_file_is_as_good_as_an_embedding(tmp_path):
    vf.write_embedding(BASE, tmp_path / "base.npz")
    found = vf.impute(TABLE, tmp_path / "base.npz", method="paper")
    assert found.embedding.equals(vf.impute(TABLE, BASE, method="paper").embedding)


def test_what_is_no_embedding_is_refused_in_words():
    with pytest.raises(vf.InputError, match="an embedding cannot be made of an object of type int"):
        vf.impute(TABLE, 7)
    with pytest.raises(vf.InputError, match="of type ndarray"):
        vf.impute(TABLE, np.eye(3))


def test_help_lists_every_option_with_its_default():
    for function, kinds in ((vf.impute, (Reading, Method, Trust)), (vf.evaluate, (Reading,))):
        shown = inspect.signature(function).parameters
        for kind in kinds:
            for name, value in vars(kind()).items():
                assert shown[name].default == value
                assert f"{name}={value!r}" in function.__doc__


def test_every_option_is_recorded():
    asked = Reading(key="name", exclude="x").to_dict()
    assert asked["key"] == "name"
    assert asked["exclude"] == ("x",)
    assert set(asked) == set(vars(Reading()))
    assert Method(min_degree=3).to_dict()["min_degree"] == 3
