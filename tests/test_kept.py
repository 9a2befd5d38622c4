"""What a model file may hold, and files of the version before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vecfill as vf
from vecfill.errors import InputError
from vecfill.model.fitted import fit
from vecfill.model.known import KnownRows
from vecfill.model.offset import OffsetRule
from vecfill.model.predictors import KernelRidge, LatentSemantic, Nearest
from vecfill.trust.prove import signals as signals_module

VERSION_1 = Path(__file__).parent / "version1.vecfill"
"""A stack of two, on 50 known and 14 unknown entities, written by the first version."""

LATER = {
    "t64": [1.351, 0.682, 1.117],
    "t65": [2.632, 0.6, 0.708],
    "t66": [0.664, 0.59, 1.518],
    "t67": [1.75, 2.488, 0.382],
}


def world(n_known: int = 60, n_rows: int = 80) -> tuple[dict, dict, dict]:
    """Return facts of fitted entities, known vectors, and facts of later entities."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n_rows + 10, 3))
    rows, vectors = np.tanh(latent), latent @ rng.normal(size=(3, 5))
    names = [f"e{row}" for row in range(len(rows))]
    facts = dict(zip(names, rows.tolist(), strict=True))
    later = {name: facts.pop(name) for name in names[n_rows:]}
    return facts, dict(zip(names[:n_known], vectors, strict=False)), later


def test_a_file_of_version_1_gives_what_it_gave():
    model = vf.load(VERSION_1, check=True)
    added = model.add(LATER)
    expected = [
        [-0.65755, 0.10597, 0.82492],
        [-0.24280, 0.34136, 0.81457],
        [-0.58139, -0.17516, 0.16001],
        [0.89944, 0.41665, -0.71874],
    ]
    np.testing.assert_allclose(added.embedding.vectors, expected, atol=2e-5)
    np.testing.assert_allclose(added.confidence.values, [1.0, 0.86307, 0.86732, 0.88385], atol=0.02)
    # Nearer than version 1 had them: each row has a margin by its own spread now.
    bounds = [0.80698, 0.63967, 0.63238, 0.65655]
    np.testing.assert_allclose(added.confidence.lower_bound, bounds, atol=0.1)
    told = added.explain("t65", n=3)
    assert told.contributors == ("t19", "t7", "t27")
    np.testing.assert_allclose(told.shares, [0.64709, 0.41197, -0.02559], atol=1e-4)


def test_a_file_of_version_1_is_saved_as_one_of_this_version(tmp_path):
    vf.load(VERSION_1).save(tmp_path / "m.vecfill")
    one, other = (vf.load(path).add(LATER) for path in (VERSION_1, tmp_path / "m.vecfill"))
    assert one.embedding.equals(other.embedding)
    assert one.confidence.values.tobytes() == other.confidence.values.tobytes()


class Own(Nearest):
    """A predictor that no file knows."""


def test_a_model_with_a_predictor_of_ones_own_is_refused_when_it_is_saved(tmp_path):
    facts, known, later = world()
    result = vf.impute(facts, known, method=Own(), names="off")
    assert len(result.to_model().add(later).embedding) == len(later)
    with pytest.raises(InputError, match=r"the class 'Own', which no model file can hold"):
        result.save(tmp_path / "m.vecfill")
    assert not (tmp_path / "m.vecfill").exists()


def test_a_signal_that_was_added_leaves_saved_models_readable(tmp_path, monkeypatch):
    facts, known, later = world()
    vf.impute(facts, known, method="paper", names="off").save(tmp_path / "old.vecfill")
    before = vf.load(tmp_path / "old.vecfill").add(later)
    wider = {**signals_module.SIGNALS, "first": lambda seen: seen.vectors[:, 0]}
    monkeypatch.setattr(signals_module, "SIGNALS", wider)
    again = vf.load(tmp_path / "old.vecfill").add(later)
    assert again.confidence.values.tobytes() == before.confidence.values.tobytes()


def test_a_signal_that_is_gone_is_named(tmp_path, monkeypatch):
    facts, known, later = world()
    vf.impute(facts, known, method="paper", names="off").save(tmp_path / "m.vecfill")
    fewer = {name: one for name, one in signals_module.SIGNALS.items() if name != "misfit"}
    monkeypatch.setattr(signals_module, "SIGNALS", fewer)
    with pytest.raises(InputError, match="the signal 'misfit', which is not there"):
        vf.load(tmp_path / "m.vecfill").add(later)


@pytest.mark.parametrize(
    "method", ["paper", LatentSemantic(residual_share=0.6), KernelRidge(width=0.7, ridge=0.1)]
)
def test_an_entity_that_was_added_and_kept_is_what_it_was_as_an_added_one(method):
    facts, known, later = world(n_known=120, n_rows=160)
    model = vf.impute(facts, known, method=method, names="off").to_model()
    usual = model.add(later)
    later = {name: later[name] for name in later if name not in usual.unusual}
    added = model.add(later, keep=True)
    names = list(later)
    np.testing.assert_array_equal(model.embedding[names], added.embedding[names])
    rows = np.array([model.embedding.row(name) for name in names])
    # Signals that were kept in half precision can change places with those of hidden rows.
    np.testing.assert_allclose(model.confidence.values[rows], added.confidence.values, atol=0.03)
    for name in names[:3]:
        one, other = model.explain(name), added.explain(name)
        assert one.contributors[:3] == other.contributors[:3]
        np.testing.assert_allclose(one.shares[:3], other.shares[:3], atol=1e-6)
        assert one.trend_share == pytest.approx(other.trend_share, abs=1e-4)


def test_what_became_known_is_taken_to_be_as_rare_as_the_rarest_known_entity():
    facts, known, _ = world()
    model = vf.impute(facts, known, method="paper", names="off").to_model()
    rng, rule = np.random.default_rng(1), OffsetRule(beyond=1.0)
    has_rarity = model.is_known.copy()
    rarity = np.where(has_rarity, rng.normal(size=has_rarity.size), 0.0)
    model._set(rule=rule, rarity=rarity, has_rarity=has_rarity)
    vector = np.ones(5)
    model.update({"e70": vector})
    is_known = has_rarity.copy()
    is_known[70] = True
    told = np.where(has_rarity, rarity, np.nan)
    told[70] = rarity[has_rarity].max()
    embedding = np.array(model._kept.embedding)
    embedding[70] = vector
    offsets = rule.offsets(told, KnownRows(embedding, is_known))
    expected = fit(model.predictor, model.space, embedding, is_known, offsets=offsets)
    np.testing.assert_allclose(model._kept.embedding, expected.embedding, atol=1e-9)
    assert model._rarity[70] == told[70]
