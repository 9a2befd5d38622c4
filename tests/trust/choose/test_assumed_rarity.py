"""Whether unknown entities are rare: what a silent table leads to, and what a user may settle."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf


def silent(n_known: int = 200, n_unknown: int = 40) -> tuple[dict, vf.Embedding]:
    """A table that says nothing about rarity, and vectors that drift with it."""
    rng = np.random.default_rng(0)
    n_rows = n_known + n_unknown
    latent = rng.normal(size=(n_rows, 4))
    rarity = np.log(np.arange(n_rows) * 50 + 1.0)
    vectors = np.sin(latent @ rng.normal(size=(4, 12))) + 0.2 * rng.normal(size=(n_rows, 12))
    # The rarer an entity, the more noise: a table cannot see it.
    vectors += 0.4 * np.outer(rarity - rarity.mean(), rng.normal(size=12)) / 3
    names = [f"e{row}" for row in range(n_rows)]
    table = dict(zip(names, np.tanh(latent @ rng.normal(size=(4, 8))), strict=True))
    return table, vf.Embedding(names[:n_known], vectors[:n_known])


@pytest.fixture(scope="module")
def by_assumption() -> dict[str | None, vf.Result]:
    table, base = silent()
    return {
        assume: vf.impute(table, base, names="off", assume=assume)
        for assume in (None, "rare", "like_known")
    }


def test_a_silent_table_gives_both_readings(by_assumption):
    result = by_assumption[None]
    assert not result.decision.is_sure
    readings = result.proof.readings
    assert set(readings) == {"rare", "like_known"}
    (note,) = [note for note in result.notes if note.startswith("Nothing settles whether")]
    for reading in readings.values():
        assert f"{reading:.2f}" in note
    assert 'assume="rare"' in note
    assert result.to_dict()["proof"]["readings"] == readings


def test_a_user_settles_it_and_bounds_are_those_of_one_case(by_assumption):
    unsure = by_assumption[None]
    for assume, proof in (("rare", "rarest"), ("like_known", "random")):
        result = by_assumption[assume]
        assert result.decision.is_sure
        assert result.decision.proof == proof
        assert not result.proof.readings
        assert not any(note.startswith("Nothing settles whether") for note in result.notes)
    like_known = by_assumption["like_known"].confidence
    assert like_known.proof == "random"
    # Unsure, bounds are those of the worse case.
    assert like_known.lower_bound.mean() > unsure.confidence.lower_bound.mean()


def test_rare_is_refused_where_no_known_row_shows_what_it_means():
    table, base = silent()
    order = np.random.default_rng(1).permutation(len(base))
    mixed = vf.Embedding([base.words[row] for row in order], base.vectors[order])
    with pytest.raises(vf.OptionError, match="neither counts nor the order of the embedding"):
        vf.impute(table, mixed, names="off", assume="rare")
    assert vf.impute(table, mixed, names="off", assume="like_known").decision.proof == "random"


def test_a_decision_that_was_made_before_takes_no_assumption(by_assumption):
    table, base = silent()
    with pytest.raises(vf.OptionError, match="assume='rare' cannot be used here"):
        vf.impute(table, base, names="off", method=by_assumption[None].decision, assume="rare")


def test_what_cannot_be_learnt_from_few_known_entities_cannot_be_assumed():
    table, base = silent(n_known=50, n_unknown=10)
    counts = {name: float(1000 - row) for row, name in enumerate(table)}
    with pytest.raises(vf.OptionError, match="60 known entities are needed, and there are 50"):
        vf.impute(table, base, names="off", counts=counts, assume="rare")
