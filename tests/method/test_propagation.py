from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.method.search.test_neighbors import KINDS, awkward_rows
from vecfill.method import propagation
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.propagation import (
    Outcome,
    cut_off_rows,
    fill_unknown,
    propagate,
    propagate_by_iteration,
    split_weights,
)
from vecfill.method.solve.krylov import GaussSeidel, solve_columns
from vecfill.method.solve.multilevel import Multilevel
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
def test_every_unknown_row_reaches_a_known_one_and_the_walk_ends(kind, n_rows, n_known, seed):
    weights, _, is_known = made_problem(kind, n_rows, min(n_known, n_rows - 1), seed)
    assert cut_off_rows(weights, is_known).size == 0
    _, on_unknown = split_weights(weights, is_known)
    assert np.abs(np.linalg.eigvals(on_unknown.toarray())).max() < 1


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


@pytest.mark.parametrize("n_known", [1, 30, 1500])
def test_iterative_and_factored_solutions_agree(monkeypatch, n_known):
    weights, embedding, is_known = made_problem("far clusters", 2000, n_known, 0)
    factored = propagate(weights, embedding, is_known)
    assert factored.n_iter == 0
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 10)
    iterated = propagate(weights, embedding, is_known)
    assert iterated.relative_change < 1e-8
    assert factored.relative_change < 1e-8
    np.testing.assert_allclose(iterated.vectors, factored.vectors, atol=1e-4)


def test_columns_of_any_size_are_iterated_to_the_same_digits(monkeypatch):
    weights, embedding, is_known = made_problem("normal", 2000, 900, 0)
    sizes = np.array([1e-100, 1.0, 1e100, 0.0])
    expected = propagate(weights, embedding, is_known).vectors
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(propagation, "MAX_KRYLOV", propagation.PILOT_ITER)
    found = propagate(weights, embedding * sizes, is_known)
    assert found.relative_change < 1e-8
    np.testing.assert_allclose(
        found.vectors / np.maximum(sizes, 1e-300), expected * (sizes > 0), atol=1e-6
    )


def test_known_rows_that_no_unknown_one_leans_on_do_not_spoil_a_column_of_zeros(monkeypatch):
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 0)
    weights = csr_array(np.array([[0, 0.5, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]))
    is_known = np.array([False, False, True, True])
    embedding = np.array([[np.nan], [np.nan], [0.0], [8.0]])
    np.testing.assert_allclose(propagate(weights, embedding, is_known).vectors, 0.0, atol=1e-6)


@pytest.mark.parametrize("most_factored", [10, 3000])
def test_rows_are_filled_in_place_with_the_same_bits(monkeypatch, most_factored):
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", most_factored)
    weights, embedding, is_known = made_problem("normal", 400, 50, 0)
    known = embedding[is_known].tobytes()
    found = propagate(weights, embedding, is_known)
    course = fill_unknown(weights, embedding, is_known)
    assert embedding[is_known].tobytes() == known
    np.testing.assert_array_equal(embedding[~is_known], found.vectors)
    assert (course.n_iter, course.relative_change) == (found.n_iter, found.relative_change)


def test_an_iteration_that_stalls_is_finished_by_a_factorisation(monkeypatch):
    weights, embedding, is_known = made_problem("normal", 300, 20, 0)
    expected = propagate(weights, embedding, is_known)
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(propagation, "PILOT_ITER", 1)
    monkeypatch.setattr(propagation, "MAX_KRYLOV", 1)
    found = propagate(weights, embedding, is_known)
    assert found.relative_change < 1e-8
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-9)


@pytest.mark.parametrize("most_fill", [0.0, np.inf])
@pytest.mark.parametrize("kind", ["normal", "line", "far clusters"])
def test_two_known_rows_in_a_hundred_are_enough(monkeypatch, kind, most_fill):
    weights, embedding, is_known = made_problem(kind, 2500, 25, 0)
    expected = propagate(weights, embedding, is_known)
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(propagation, "PILOT_ITER", 2)
    monkeypatch.setattr(propagation, "MOST_FILL", most_fill)
    found = propagate(weights, embedding, is_known)
    assert found.relative_change < 1e-8
    assert (found.n_iter == 0) == (most_fill > 0)
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-3)


def test_coarse_levels_save_most_iterations():
    rng = np.random.default_rng(0)
    rows = np.sort(rng.random((3000, 1)), axis=0)
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=4))
    is_known = np.arange(3000) % 100 == 0
    on_known, on_unknown = split_weights(weights, is_known)
    right = on_known @ rng.normal(size=(30, 3))
    n_iter = {}
    for name, precondition in (
        ("sweeps", GaussSeidel(on_unknown)),
        ("levels", Multilevel(on_unknown)),
    ):
        options = {"tol": 1e-9, "max_iter": 2000}
        n_iter[name], _ = solve_columns(
            on_unknown, right, np.zeros_like(right), precondition, **options
        )
    assert n_iter["levels"] < n_iter["sweeps"] / 2


def test_float32_stays_float32_and_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(propagation, "MOST_ROWS_FACTORED", 10)
    rng = np.random.default_rng(0)
    weights, _, is_known = made_problem("normal", 400, 50, 0)
    embedding = rng.normal(size=(400, 70)).astype(np.float32)
    one, three = (propagate(weights, embedding, is_known, n_jobs=n) for n in (1, 3))
    assert one.vectors.dtype == np.float32
    np.testing.assert_array_equal(one.vectors, three.vectors)


def test_rows_cut_off_from_all_known_ones_are_found():
    weights = csr_array(np.array([[0, 1.0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]))
    assert cut_off_rows(weights, np.array([True, False, False, False])).tolist() == [1, 2]


def test_nothing_unknown_takes_no_work():
    weights, embedding, _ = made_problem("normal", 10, 10, 0)
    for found in (
        propagate(weights, embedding, np.ones(10, bool)),
        propagate_by_iteration(weights, embedding, np.ones(10, bool), rng=np.random.default_rng(0)),
    ):
        assert found.outcome is Outcome.NOTHING_UNKNOWN
        assert found.vectors.shape == (0, 4)


def test_the_fill_of_a_factor_is_foretold_from_the_largest_part():
    # Row 0 alone among known rows: a piece around it would say nothing.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 30))
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=6)).tolil()
    weights[0, :] = 0.0
    weights[:, 0] = 0.0
    assert propagation._foretold_fill(csr_array(weights)) > 10


def test_no_fill_is_foretold_for_far_larger_systems(monkeypatch):
    monkeypatch.setattr(propagation, "FILL_SAMPLES", (20, 40))
    monkeypatch.setattr(propagation, "MOST_FORETOLD", 3)
    weights, _, is_known = made_problem("line", 400, 4, 0)
    _, on_unknown = split_weights(weights, is_known)
    assert propagation._foretold_fill(on_unknown) == np.inf
