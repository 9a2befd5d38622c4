"""What a space keeps, and what it forgets."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.model import space as spaces
from vecfill.model.known import KnownRows
from vecfill.model.prediction import PropagatedMix
from vecfill.model.predictors import KernelRidge, LatentSemantic
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import Member, SourcesSpace, stored_parts, stored_space
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


def test_a_table_is_its_own_only_source():
    space = Space(ROWS)
    (member,) = space.members
    assert member.space is space
    assert member.is_present.all()
    assert space.with_members([member]) is space
    ((named, used),) = LatentSemantic().by_source(space)
    assert (named.name, used) == ("table", LatentSemantic())


@pytest.mark.parametrize("is_joint", [False, True])
def test_a_stored_space_gives_what_was_stored_and_computes_nothing_else(is_joint):
    table = Space(ROWS)
    predictor = Stack((LatentSemantic(), KernelRidge(width=0.7, ridge=0.1)), (0.5, 0.5))
    places = np.arange(2, 32)
    space = SourcesSpace([[Member("a", table, places, 40)]]) if is_joint else table
    used = Fused(("a",), (0,), (predictor,), ()) if is_joint else predictor
    parts = stored_parts(space, used)
    # A mark on each, which nothing that is computed again would have.
    marked = {
        name: 2 * part if name.endswith(("unit as_given", "centre as_given")) else part
        for name, part in parts.items()
    }
    stored = stored_space(marked, 40)
    (member,) = stored.members
    assert stored.is_joint == is_joint
    assert member.space.n_rows == 30
    assert (member.rows == (places if is_joint else np.arange(30))).all()
    kernel, before = (KernelRidge(width=0.7).kernel_in(each) for each in (member.space, table))
    assert kernel.unit() == 2 * before.unit()
    assert (kernel.centre() == 2 * before.centre()).all()
    assert (
        member.space.weights(LatentSemantic().weights_key)
        is parts["space 0 weights as_given|8|0.0|simplex|0.1"]
    )
    with pytest.raises(KeyError, match="unit_rows"):
        member.space.prepared("unit_rows")
