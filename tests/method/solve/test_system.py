from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_array

from tests.method.test_propagation import made_problem, problems
from vecfill.method.propagation import propagate
from vecfill.method.solve import system
from vecfill.method.solve.parts import cut_off_rows, split_weights
from vecfill.method.solve.system import UnknownSystem


@given(**problems)
def test_every_unknown_row_reaches_a_known_one_and_the_walk_ends(kind, n_rows, n_known, seed):
    weights, _, is_known = made_problem(kind, n_rows, min(n_known, n_rows - 1), seed)
    assert cut_off_rows(weights, is_known).size == 0
    _, on_unknown = split_weights(weights, is_known)
    assert np.abs(np.linalg.eigvals(on_unknown.toarray())).max() < 1


@pytest.mark.parametrize("n_known", [1, 30, 1500])
def test_iterative_and_factored_solutions_agree(monkeypatch, n_known):
    weights, embedding, is_known = made_problem("far clusters", 2000, n_known, 0)
    factored = propagate(weights, embedding, is_known)
    assert factored.n_iter == 0
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 10)
    iterated = propagate(weights, embedding, is_known)
    assert iterated.relative_change < 1e-8
    assert factored.relative_change < 1e-8
    np.testing.assert_allclose(iterated.vectors, factored.vectors, atol=1e-4)


def test_columns_of_any_size_are_iterated_to_the_same_digits(monkeypatch):
    weights, embedding, is_known = made_problem("normal", 2000, 900, 0)
    sizes = np.array([1e-100, 1.0, 1e100, 0.0])
    expected = propagate(weights, embedding, is_known).vectors
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(system, "MAX_KRYLOV", system.PILOT_ITER)
    found = propagate(weights, embedding * sizes, is_known)
    assert found.relative_change < 1e-8
    np.testing.assert_allclose(
        found.vectors / np.maximum(sizes, 1e-300), expected * (sizes > 0), atol=1e-6
    )


def test_known_rows_that_no_unknown_one_leans_on_do_not_spoil_a_column_of_zeros(monkeypatch):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 0)
    weights = csr_array(np.array([[0, 0.5, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]))
    is_known = np.array([False, False, True, True])
    embedding = np.array([[np.nan], [np.nan], [0.0], [8.0]])
    np.testing.assert_allclose(propagate(weights, embedding, is_known).vectors, 0.0, atol=1e-6)


def test_an_iteration_that_stalls_is_finished_by_a_factorisation(monkeypatch):
    weights, embedding, is_known = made_problem("normal", 300, 20, 0)
    expected = propagate(weights, embedding, is_known)
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(system, "PILOT_ITER", 1)
    monkeypatch.setattr(system, "MAX_KRYLOV", 1)
    found = propagate(weights, embedding, is_known)
    assert found.relative_change < 1e-8
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-9)


@pytest.mark.parametrize("most_fill", [0.0, np.inf])
@pytest.mark.parametrize("kind", ["normal", "line", "far clusters"])
def test_two_known_rows_in_a_hundred_are_enough(monkeypatch, kind, most_fill):
    weights, embedding, is_known = made_problem(kind, 2500, 25, 0)
    expected = propagate(weights, embedding, is_known)
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", 10)
    monkeypatch.setattr(system, "PILOT_ITER", 2)
    monkeypatch.setattr(system, "MOST_FILL", most_fill)
    found = propagate(weights, embedding, is_known)
    assert found.relative_change < 1e-8
    assert (found.n_iter == 0) == (most_fill > 0)
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-3)


def test_rows_cut_off_from_all_known_ones_are_found():
    weights = csr_array(np.array([[0, 1.0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]))
    assert cut_off_rows(weights, np.array([True, False, False, False])).tolist() == [1, 2]


@given(**problems)
def test_both_systems_are_solved_for_any_right_side(kind, n_rows, n_known, seed):
    weights, _, is_known = made_problem(kind, n_rows, min(n_known, n_rows - 1), seed)
    _, on_unknown = split_weights(weights, is_known)
    matrix = np.eye(on_unknown.shape[0]) - on_unknown.toarray()
    right = np.random.default_rng(seed).normal(size=(len(matrix), 20))
    equations = UnknownSystem(weights, is_known)
    for found, left in (
        (equations.solve(right), matrix),
        (equations.solve_transposed(right), matrix.T),
    ):
        assert found.residual < 1e-8
        np.testing.assert_allclose(left @ found.vectors, right, atol=1e-6)


ways = pytest.mark.parametrize(
    ("most_factored", "pilot_iter", "most_fill"),
    [(3000, 40, 20.0), (10, 1000, 20.0), (10, 2, np.inf), (10, 2, 0.0)],
    ids=["small, so factored", "sweeps", "factored because thin", "slow sweeps"],
)


@ways
def test_every_way_solves_the_transposed_system(monkeypatch, most_factored, pilot_iter, most_fill):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    monkeypatch.setattr(system, "PILOT_ITER", pilot_iter)
    monkeypatch.setattr(system, "MOST_FILL", most_fill)
    monkeypatch.setattr(system, "SLOW_LEAK", 0.0)
    weights, _, is_known = made_problem("normal", 1200, 60, 0)
    _, on_unknown = split_weights(weights, is_known)
    right = np.random.default_rng(0).normal(size=(1140, 18))
    found = UnknownSystem(weights, is_known).solve_transposed(right, tol=1e-10)
    assert (found.n_iter == 0) == (most_factored > 1000 or most_fill > 100)
    np.testing.assert_allclose(found.vectors - on_unknown.T @ found.vectors, right, atol=1e-6)


@ways
def test_shares_of_known_rows_make_up_the_vectors(
    monkeypatch, most_factored, pilot_iter, most_fill
):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    monkeypatch.setattr(system, "PILOT_ITER", pilot_iter)
    monkeypatch.setattr(system, "MOST_FILL", most_fill)
    weights, embedding, is_known = made_problem("normal", 400, 50, 0)
    rows = np.array([0, 7, 7, 349, *range(20, 40)])
    shares = UnknownSystem(weights, is_known).known_shares(rows)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    vectors = propagate(weights, embedding, is_known, tol=1e-10).vectors
    np.testing.assert_allclose(shares @ embedding[is_known], vectors[rows], atol=1e-7)


@ways
def test_what_was_solved_before_changes_no_bit(monkeypatch, most_factored, pilot_iter, most_fill):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    monkeypatch.setattr(system, "PILOT_ITER", pilot_iter)
    monkeypatch.setattr(system, "MOST_FILL", most_fill)
    weights, _, is_known = made_problem("normal", 400, 50, 0)
    right = np.random.default_rng(0).normal(size=(350, 20))
    fresh, used = UnknownSystem(weights, is_known), UnknownSystem(weights, is_known)
    used.solve_transposed(right, tol=1e-4)
    used.solve(1.0 + right, tol=1e-4)
    np.testing.assert_array_equal(used.solve(right).vectors, fresh.solve(right).vectors)


def test_a_system_is_factored_once(monkeypatch):
    n_factored = []
    plain = system.factor_of
    monkeypatch.setattr(system, "factor_of", lambda w: n_factored.append(1) or plain(w))
    weights, _, is_known = made_problem("normal", 80, 20, 0)
    equations = UnknownSystem(weights, is_known)
    for _ in range(3):
        equations.solve(np.ones((60, 1)))
        equations.solve_transposed(np.ones((60, 1)))
    assert len(n_factored) == 1


def test_no_right_sides_have_no_solution_to_compute():
    weights, _, is_known = made_problem("normal", 80, 20, 0)
    found = UnknownSystem(weights, is_known).solve(np.empty((60, 0)))
    assert (found.vectors.shape, found.n_iter, found.residual) == ((60, 0), 0, 0.0)
