from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.method.search.test_neighbors import KINDS, awkward_rows
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.propagation import (
    Outcome,
    fill_unknown,
    propagate,
    propagate_by_iteration,
    propagate_known,
)
from vecfill.method.solve import system
from vecfill.method.weights import convex_weights


def made_problem(kind: str, n_rows: int, n_known: int, seed: int):
    rng = np.random.default_rng(seed)
    rows = awkward_rows(kind, n_rows, 6, seed)
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=5))
    embedding = rng.normal(size=(n_rows, 4))
    is_known = np.zeros(n_rows, bool)
    is_known[rng.permutation(n_rows)[:n_known]] = True
    embedding[~is_known] = np.nan
    return weights, embedding, is_known


problems = {
    "kind": st.sampled_from(KINDS),
    "n_rows": st.integers(2, 80),
    "n_known": st.integers(1, 40),
    "seed": st.integers(0, 1000),
}


@given(**problems)
def test_unknown_rows_are_the_mix_of_their_neighbors(kind, n_rows, n_known, seed):
    weights, embedding, is_known = made_problem(kind, n_rows, min(n_known, n_rows - 1), seed)
    found = propagate(weights, embedding, is_known)
    imputed = embedding.copy()
    imputed[~is_known] = found.vectors
    np.testing.assert_allclose((weights @ imputed)[~is_known], found.vectors, atol=1e-7)
    assert found.relative_change < 1e-8
    # A mix of mixes stays within what is known.
    known = embedding[is_known]
    assert (found.vectors <= known.max(axis=0) + 1e-6).all()
    assert (found.vectors >= known.min(axis=0) - 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
def test_iteration_reaches_the_closed_form_from_any_start(seed):
    weights, embedding, is_known = made_problem("normal", 60, 20, 0)
    solved = propagate(weights, embedding, is_known)
    iterated = propagate_by_iteration(
        weights,
        embedding,
        is_known,
        tol=1e-10,
        max_iter=100_000,
        rng=np.random.default_rng(seed),
    )
    assert iterated.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(iterated.vectors, solved.vectors, atol=1e-7)


def test_the_lazy_walk_reaches_the_same_point_in_more_steps():
    weights, embedding, is_known = made_problem("normal", 60, 20, 0)
    options = {"tol": 1e-10, "max_iter": 100_000}
    plain, lazy = (
        propagate_by_iteration(
            weights,
            embedding,
            is_known,
            self_weight=self_weight,
            rng=np.random.default_rng(0),
            **options,
        )
        for self_weight in (0.0, 0.5)
    )
    np.testing.assert_allclose(lazy.vectors, plain.vectors, atol=1e-7)
    assert lazy.n_iter > plain.n_iter


def test_three_rows_by_hand():
    # known 0 and 8; two unknown rows each half the known row and half each other.
    weights = csr_array(
        np.array([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1.0]])
    )
    embedding = np.array([[0.0], [np.nan], [np.nan], [9.0]])
    found = propagate(weights, embedding, np.array([True, False, False, True]))
    np.testing.assert_allclose(found.vectors, [[3.0], [6.0]])


def test_one_step_of_the_iteration_is_one_mix():
    weights, embedding, is_known = made_problem("normal", 30, 10, 0)
    known = embedding[is_known]
    start = np.random.default_rng(7).normal(known.mean(axis=0), known.std(axis=0), size=(20, 4))
    filled = embedding.copy()
    filled[~is_known] = start
    once = propagate_by_iteration(
        weights, embedding, is_known, max_iter=1, tol=1e-12, rng=np.random.default_rng(7)
    )
    np.testing.assert_allclose(once.vectors, (weights @ filled)[~is_known])
    change = np.abs(once.vectors - start).sum() / np.abs(start).sum()
    assert once.relative_change == pytest.approx(change)
    assert once.outcome is Outcome.MAX_ITER_REACHED


@pytest.mark.parametrize("most_factored", [10, 3000])
def test_rows_are_filled_in_place_with_the_same_bits(monkeypatch, most_factored):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    weights, embedding, is_known = made_problem("normal", 400, 50, 0)
    known = embedding[is_known].tobytes()
    found = propagate(weights, embedding, is_known)
    convergence = fill_unknown(weights, embedding, is_known)
    assert embedding[is_known].tobytes() == known
    np.testing.assert_array_equal(embedding[~is_known], found.vectors)
    assert (convergence.n_iter, convergence.relative_change) == (
        found.n_iter,
        found.relative_change,
    )


def test_float32_stays_float32_and_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 10)
    rng = np.random.default_rng(0)
    weights, _, is_known = made_problem("normal", 400, 50, 0)
    embedding = rng.normal(size=(400, 70)).astype(np.float32)
    one, three = (propagate(weights, embedding, is_known, n_jobs=n) for n in (1, 3))
    assert one.vectors.dtype == np.float32
    np.testing.assert_array_equal(one.vectors, three.vectors)


def test_nothing_unknown_takes_no_work():
    weights, embedding, _ = made_problem("normal", 10, 10, 0)
    for found in (
        propagate(weights, embedding, np.ones(10, bool)),
        propagate_by_iteration(weights, embedding, np.ones(10, bool), rng=np.random.default_rng(0)),
    ):
        assert found.outcome is Outcome.NOTHING_UNKNOWN
        assert found.vectors.shape == (0, 4)


@pytest.mark.parametrize("most_factored", [3000, 10])
def test_known_rows_alone_give_the_same_bits_for_all_and_for_some_rows(monkeypatch, most_factored):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    weights, embedding, is_known = made_problem("normal", 300, 60, 0)
    expected = propagate(weights, embedding, is_known).vectors
    known = embedding[is_known]
    np.testing.assert_array_equal(propagate_known(weights, known, is_known).vectors, expected)
    some = np.array([200, 3, 77])
    found = propagate_known(weights, known, is_known, places=some).vectors
    np.testing.assert_array_equal(found, expected[some])
