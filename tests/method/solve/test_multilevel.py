from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.solve.krylov import GaussSeidel, solve_columns
from vecfill.method.solve.multilevel import Multilevel
from vecfill.method.solve.parts import split_weights
from vecfill.method.weights import convex_weights


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


@pytest.mark.parametrize("n_columns", [1, 3, 16])
@pytest.mark.parametrize("kind", [GaussSeidel, Multilevel])
def test_any_number_of_columns_up_to_sixteen_is_solved(kind, n_columns):
    rng = np.random.default_rng(0)
    weights = csr_array(np.triu(rng.random((500, 500)) < 0.01, 1) * 0.05)
    weights = csr_array(weights + 0.5 * weights.T)
    right, found = rng.normal(size=(500, n_columns)), np.zeros((500, n_columns))
    _, residual = solve_columns(weights, right, found, kind(weights), tol=1e-10, max_iter=99)
    assert residual <= 1e-10
    np.testing.assert_allclose(found - weights @ found, right, atol=1e-8)


def test_sweeps_that_are_slow_are_given_up_early():
    chain = csr_array(np.diag(np.full(199, 0.5), 1) + np.diag(np.full(199, 0.5), -1))
    right = np.eye(200, 1)

    def swept(**limits) -> int:
        options = {"tol": 1e-10, "max_iter": 500, **limits}
        return solve_columns(chain, right, np.zeros((200, 1)), GaussSeidel(chain), **options)[0]

    assert swept() > 5
    assert swept(least_after=(5, 1e-6)) == 5
    assert swept(least_after=(5, 1e9)) == swept()
