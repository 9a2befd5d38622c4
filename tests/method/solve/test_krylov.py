from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill.method.solve.krylov import GaussSeidel, solve_columns


@pytest.mark.parametrize("n_columns", [1, 3, 16])
def test_any_number_of_columns_up_to_sixteen_is_solved(n_columns):
    rng = np.random.default_rng(0)
    weights = csr_array(np.triu(rng.random((500, 500)) < 0.01, 1) * 0.05)
    weights = csr_array(weights + 0.5 * weights.T)
    right, found = rng.normal(size=(500, n_columns)), np.zeros((500, n_columns))
    _, residual = solve_columns(weights, right, found, GaussSeidel(weights), tol=1e-10, max_iter=99)
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
