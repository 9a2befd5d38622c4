"""Texts about entities become domains."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vecfill.embedding import Embedding
from vecfill.errors import InputError, OptionError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.texts.text import TextSource, split_texts, text
from vecfill.inputs.texts.text_rows import text_rows, word_means, words_of
from vecfill.requests import Reading

METALS = {
    "iron": "a hard grey metal",
    "lead": "a soft grey metal",
    "neon": "a noble gas that glows",
    "argon": "a noble gas without colour",
    "tin": "",
    "gold": None,
}


class Lengths:
    """An encoder that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.array([[len(each), each.count("a")] for each in texts], np.float64)


def made_texts(n_texts, seed=0):
    rng = np.random.default_rng(seed)
    vocabulary = [f"word{number}" for number in range(200)]
    return [" ".join(rng.choice(vocabulary, 12)) for _ in range(n_texts)]


def test_tables_paths_and_mappings_give_the_same_texts(tmp_path):
    frame = pd.DataFrame({"name": list(METALS), "about": list(METALS.values())})
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = text(METALS)
    for source in (frame, frame.set_index("name"), pa.table(frame), tmp_path / "t.csv"):
        found = text(source, "about")
        assert found.entities == expected.entities == ("iron", "lead", "neon", "argon")
        assert found.texts == expected.texts


def test_entities_without_text_are_absent_and_said_so():
    found = text(METALS)
    assert found.notes == ("2 entities have no text; left out of this source.",)
    (domain,) = found.variants()
    assert domain.entities == ("iron", "lead", "neon", "argon")
    assert (np.abs(domain.vectors).sum(axis=1) > 0).all()


def test_several_columns_are_joined():
    table = pa.table({"name": ["iron", "tin"], "one": ["hard", None], "two": ["metal", "soft"]})
    assert text(table, ["one", "two"]).texts == ("hard\nmetal", "soft")


def test_alike_texts_are_near():
    (domain,) = text(METALS).variants()
    rows = dict(zip(domain.entities, domain.vectors, strict=True))
    assert rows["iron"] @ rows["lead"] > rows["iron"] @ rows["neon"]
    assert rows["neon"] @ rows["argon"] > rows["lead"] @ rows["argon"]


def test_an_embedding_gives_a_second_variant():
    words = ["metal", "gas", "soft", "hard", "noble"]
    base = Embedding(words, np.random.default_rng(0).normal(size=(5, 3)))
    tfidf, means = text(METALS).variants(base)
    assert tfidf.columns[0] == "tfidf 1"
    assert means.columns == ("words 1", "words 2", "words 3")
    assert means.entities == ("iron", "lead", "neon", "argon")


def test_the_word_of_an_entity_does_not_count_in_its_own_text():
    base = Embedding(["bank", "big", "blue", "ibm"], np.random.default_rng(0).normal(size=(4, 3)))
    texts = ["a big bank", "a blue bank", "ibm is big", "big and blue", "IBM blue"]
    names = ["a", "b", "Big Blue", "d", "e"]
    own = [(name, {"Big Blue": "ibm"}.get(name, name)) for name in names]
    with_word = word_means(texts, own, base)
    without = word_means([*texts[:2], "is big", *texts[3:]], own, base)
    np.testing.assert_allclose(with_word.vectors, without.vectors)
    source = TextSource(tuple(names), tuple(texts))
    told = source.variants(base, words={"Big Blue": "ibm"})[1].vectors
    not_told = source.variants(base)[1].vectors
    assert not np.allclose(told, not_told)


def test_frequent_words_count_less():
    base = Embedding(["of", "metal", "gas"], np.eye(3, 16))
    texts = ["of of of metal"] + ["of of of of gas"] * 2
    found = word_means(texts, [("x", "x")] * 3, base).vectors
    assert abs(found[0, 1]) > abs(found[0, 0])


def test_the_first_component_of_the_means_is_taken_out():
    rng = np.random.default_rng(0)
    base = Embedding([f"w{i}" for i in range(50)], rng.normal(size=(50, 4)) + 5)
    texts = [" ".join(rng.choice(base.words, 5)) for _ in range(40)]
    found = word_means(texts, [("", "")] * 40, base).vectors
    assert np.linalg.matrix_rank(found, tol=1e-8) == 3


def test_an_encoder_is_the_only_variant_and_is_asked_once_a_text(tmp_path):
    encoder = Lengths()
    source = text(METALS, encoder=encoder, cache=tmp_path)
    base = Embedding(["metal"], [[1.0]])
    (domain,) = source.variants(base)
    assert domain.vectors[0].tolist() == [17.0, 3.0]
    n_asked = len(encoder.asked)
    (again,) = source.variants(base)
    np.testing.assert_array_equal(again.vectors, domain.vectors)
    assert not set(encoder.asked[n_asked:]) & set(source.texts)


def test_texts_without_spaces_between_words_are_compared():
    assert words_of("新しい車と家") == ["新し", "しい", "い車", "車と", "と家"]
    (domain,) = text(
        {"a": "新しい車", "b": "古い車", "c": "古い車です", "d": "新しいです"}
    ).variants()
    assert len(domain) == 4


def test_tfidf_has_the_same_bits_for_any_number_of_threads():
    code = (
        "import hashlib, sys; sys.path.insert(0, 'tests'); "
        "from inputs.texts.test_text import made_texts; "
        "from vecfill.inputs.texts.text_rows import text_rows; "
        "print(hashlib.sha256(text_rows(made_texts(800)).vectors.tobytes()).hexdigest())"
    )
    found = set()
    for n_threads in ("1", "4"):
        env = {**os.environ, "OMP_NUM_THREADS": n_threads, "OPENBLAS_NUM_THREADS": n_threads}
        run = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_components_are_not_lost_when_there_are_few_texts():
    texts = made_texts(30)
    found = text_rows(texts)
    assert found.vectors.shape == (30, 30)
    lengths = np.linalg.norm(found.vectors, axis=1)
    np.testing.assert_allclose(lengths, 1.0)  # nothing of a unit row is left out


def test_split_texts_takes_the_columns_out_of_the_table(tmp_path):
    table = pa.table(
        {"name": ["iron", "neon", "tin"], "mass": [55.8, 20.2, 118.7], "about": ["x", "y", "z"]}
    )
    texts, reading = split_texts(table, Reading(), ["about"])
    assert texts["about"].texts == ("x", "y", "z")
    assert as_domain(table, ignore=reading.ignore).columns == ("mass",)
    rest = table.drop_columns("mass")
    assert split_texts(rest, Reading(), ["about"])[1] is None
    with pytest.raises(InputError, match="also to be ignored"):
        split_texts(table, Reading(ignore=("about",)), ["about"])


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ({"iron": 3}, {}, "'iron' \\(row 1\\): 3 is of type int, not text"),
        ({"iron": " ", "tin": "NA"}, {}, "all 2 texts are empty"),
        ({"iron": "x"}, {"columns": "x"}, "are for tables"),
        ({"iron": "x"}, {"cache": "folder"}, "no effect without encoder="),
        (pa.table({"n": ["a"], "x": ["b"], "y": ["c"]}), {}, "Say which hold the text"),
        (pa.table({"n": ["a"], "x": ["b"]}), {"columns": "z"}, "no column 'z'"),
        (pa.table({"n": ["a"], "x": ["b"]}), {"columns": []}, "without any column"),
        ([1, 2], {}, "object of type list"),
    ],
)
def test_what_is_no_text_is_refused(source, options, message):
    with pytest.raises(InputError, match=message):
        text(source, **options)


def test_options_of_files_are_refused_for_tables_in_memory():
    with pytest.raises(OptionError, match="separator=';' cannot be used here"):
        text({"iron": "metal"}, separator=";")


def test_texts_without_a_common_word_are_refused():
    with pytest.raises(InputError, match="have no word in common"):
        text({"a": "one", "b": "two", "c": "three", "d": "four"}).variants()
