"""Known rows as mixes of known rows alone: the same as solving each fold for itself."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.method.propagation import propagate
from vecfill.method.solve import system
from vecfill.method.solve.condensed import CHEAPER, condensed, condensed_from
from vecfill.model.space import Space, WeightsKey


def made(n_rows: int = 300, share: float = 0.3):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 4))
    weights = Space(rows, min_degrees=(5,)).weights(WeightsKey(min_degree=5, ridge=0.1))
    is_known = rng.random(n_rows) < share
    return weights, rng.normal(size=(n_rows, 3)), is_known


@pytest.mark.parametrize("most_factored", [0, 10_000])
def test_hidden_rows_come_out_as_if_each_fold_had_been_solved_for_itself(
    monkeypatch, most_factored
):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    weights, embedding, is_known = made()
    known = np.flatnonzero(is_known)
    shared = condensed(weights, is_known, known, tol=1e-12)
    for part in range(3):
        hidden = known[part::3]
        is_seen = is_known.copy()
        is_seen[hidden] = False
        expected = propagate(weights, embedding, is_seen, tol=1e-12).vectors
        expected = expected[np.searchsorted(np.flatnonzero(~is_seen), hidden)]
        np.testing.assert_allclose(shared.shares(hidden) @ embedding[is_seen], expected, atol=1e-9)


def test_known_rows_may_be_solved_for_instead_of_hidden_ones():
    weights, _, is_known = made()
    rows = np.flatnonzero(is_known)
    few = rows[::5]
    assert rows.size > few.size * CHEAPER
    every, some = (condensed(weights, is_known, each, tol=1e-12) for each in (rows, few))
    np.testing.assert_allclose(every.mixes[::5], some.mixes, atol=1e-10)
    shares = propagate(weights, np.eye(300)[:, rows], is_known, tol=1e-12).vectors
    found = condensed_from(weights, is_known, shares).mixes
    np.testing.assert_allclose(found, every.mixes, atol=1e-10)


def test_shares_of_condensed_rows_are_distributions():
    weights, _, is_known = made()
    rows = np.flatnonzero(is_known)[:7]
    shares = condensed(weights, is_known, rows).shares(rows)
    assert shares.shape == (7, is_known.sum() - 7)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_nothing_unknown_leaves_the_weights_themselves():
    weights, _, _ = made(60)
    rows = np.array([3, 8])
    found = condensed(weights, np.ones(60, bool), rows)
    np.testing.assert_allclose(found.mixes, weights[rows].toarray())


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_condensed_rows_have_the_same_bits_for_any_number_of_threads(monkeypatch, n_jobs):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 0)
    weights, _, is_known = made()
    rows = np.flatnonzero(is_known)
    one, other = (condensed(weights, is_known, rows, n_jobs=each).mixes for each in (1, n_jobs))
    assert one.tobytes() == other.tobytes()
