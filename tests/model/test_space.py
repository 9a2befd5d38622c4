"""What a space keeps, and what it forgets."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.model import space as spaces
from vecfill.model.known import KnownRows
from vecfill.model.prediction import PropagatedMix
from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space
from vecfill.model.stack import Stack
from vecfill.run import _forget_others

ROWS = np.random.default_rng(0).normal(size=(30, 4))
GIVEN = KnownRows(ROWS, np.arange(30) < 20)


def used(space: Space) -> LatentSemantic:
    """Have everything computed for two preparations; return the predictor of one."""
    for preparation in ("as_given", "unit_rows"):
        predictor = LatentSemantic(preparation=preparation)
        space.weights(predictor.weights_key)
        PropagatedMix(space, predictor.weights_key, GIVEN).misfit()
        space.coordinates(preparation)
    return predictor


def test_a_large_space_forgets_what_the_chosen_predictor_does_not_use(monkeypatch):
    monkeypatch.setattr(spaces, "LARGE", 100)
    space = Space(ROWS)
    predictor = used(space)
    weights = space.weights(predictor.weights_key)
    _forget_others(space, predictor)
    kept = {spaces._preparation_of(key) for key in space._kept}
    assert kept == {"unit_rows", "as_given"}  # the domain itself stays
    assert LatentSemantic().weights_key not in space._kept
    assert space.weights(predictor.weights_key) is weights


def test_what_was_forgotten_is_computed_again_with_the_same_bits(monkeypatch):
    monkeypatch.setattr(spaces, "LARGE", 100)
    space = Space(ROWS)
    predictor = used(space)
    before = space.weights(LatentSemantic().weights_key)
    _forget_others(space, predictor)
    after = space.weights(LatentSemantic().weights_key)
    assert after is not before
    assert np.array_equal(after.toarray(), before.toarray())


def test_a_stack_keeps_what_its_members_use(monkeypatch):
    monkeypatch.setattr(spaces, "LARGE", 100)
    space = Space(ROWS)
    used(space)
    both = Stack((LatentSemantic(), LatentSemantic(preparation="unit_rows")), (0.5, 0.5))
    n_kept = len(space._kept)
    _forget_others(space, both)
    assert len(space._kept) == n_kept


@pytest.mark.parametrize("preparation", ["as_given", "unit_rows"])
def test_a_small_space_forgets_nothing(preparation):
    space = Space(ROWS)
    used(space)
    n_kept = len(space._kept)
    space.keep_only({preparation})
    assert len(space._kept) == n_kept


def test_rows_of_unit_length_by_rank_have_the_same_bits_whatever_was_prepared_before():
    rows = np.random.default_rng(0).lognormal(size=(50, 4))
    after = Space(rows)
    after.prepared("rank_normal")
    found, alone = (each.prepared("rank_normal_unit_rows") for each in (after, Space(rows)))
    assert found.tobytes() == alone.tobytes()
