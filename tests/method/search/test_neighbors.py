from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from vecfill.method.search.among import nearest_fitted
from vecfill.method.search.neighbors import exact_neighbors


def awkward_rows(kind: str, n_rows: int, n_features: int, seed: int) -> np.ndarray:
    """Rows of the kinds that defeat a search in 32 bits."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n_rows, n_features))
    centres = rng.normal(size=(3, n_features))
    return {
        "normal": normal,
        "lattice": rng.integers(0, 3, size=(n_rows, n_features)).astype(float),
        "duplicates": normal[rng.integers(0, max(1, n_rows // 3), n_rows)],
        "zeros": np.where(rng.random((n_rows, 1)) < 0.4, 0.0, normal),
        "far clusters": 1e6 * centres[rng.integers(0, 3, n_rows)] + normal,
        "far from origin": normal + 1e5,
        "one outlier": np.where(np.arange(n_rows)[:, None] == 0, 1e9, normal),
        "tiny": normal * 1e-12,
        "huge": normal * 1e12,
        "line": np.outer(rng.random(n_rows), np.ones(n_features)),
        "near-duplicates": normal[[0]] + 1e-9 * normal,
        "constant column": np.hstack([normal[:, :-1], np.full((n_rows, 1), 7.0)]),
    }[kind]


KINDS = [
    "normal",
    "lattice",
    "duplicates",
    "zeros",
    "far clusters",
    "far from origin",
    "one outlier",
    "tiny",
    "huge",
    "line",
    "near-duplicates",
    "constant column",
]


def brute_force(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    squared = np.array([((wide - row) ** 2).sum(axis=1) for row in wide])
    np.fill_diagonal(squared, np.inf)
    return squared


@given(
    kind=st.sampled_from(KINDS),
    n_rows=st.integers(2, 150),
    n_features=st.integers(1, 30),
    n_neighbors=st.integers(1, 12),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 1000),
)
def test_neighbors_are_those_of_brute_force(kind, n_rows, n_features, n_neighbors, dtype, seed):
    rows = awkward_rows(kind, n_rows, n_features, seed).astype(dtype)
    n_neighbors = min(n_neighbors, n_rows - 1)
    found = exact_neighbors(rows, n_neighbors=n_neighbors)
    expected = np.sort(brute_force(rows), axis=1)[:, :n_neighbors]
    np.testing.assert_allclose(found.squared[:, :n_neighbors], expected, rtol=1e-9, atol=0)
    assert not (found.indices == np.arange(n_rows)[:, None]).any()


def test_ties_are_broken_by_row_number():
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
    found = exact_neighbors(grid, n_neighbors=8)
    expected = np.argsort(brute_force(grid), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(found.indices[:, :8], expected)


def test_no_unlisted_row_is_nearer_than_the_reach():
    rows = awkward_rows("far clusters", 120, 6, 0).astype(np.float32)
    found = exact_neighbors(rows, n_neighbors=3, slack=2)
    squared = brute_force(rows)
    np.put_along_axis(squared, found.indices.astype(np.int64), np.inf, axis=1)
    assert (squared >= found.reach[:, None]).all()


def test_more_rows_than_a_block_and_any_number_of_threads_give_the_same_bits():
    rows = np.random.default_rng(0).normal(size=(2500, 17)).astype(np.float32)
    one, two, three = (exact_neighbors(rows, n_neighbors=8, n_jobs=n_jobs) for n_jobs in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.indices[:, :8], other.indices[:, :8])
        np.testing.assert_array_equal(one.squared[:, :8], other.squared[:, :8])
    expected = np.argsort(brute_force(rows), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(one.indices[:, :8], expected)


@pytest.mark.parametrize("kind", ["normal", "zeros", "lattice"])
def test_sparse_rows_have_the_neighbors_of_dense_ones(kind):
    rows = awkward_rows(kind, 90, 12, 0)
    rows[np.abs(rows) < 0.8] = 0.0
    dense = exact_neighbors(rows, n_neighbors=5)
    sparse = exact_neighbors(csr_array(rows), n_neighbors=5)
    np.testing.assert_array_equal(dense.indices[:, :5], sparse.indices[:, :5])


def test_a_new_row_equal_to_a_fitted_one_is_told():
    fitted = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    found = nearest_fitted(np.array([[1.0, 1.0], [0.4, 0.4]]), fitted, n_neighbors=2)
    assert found.is_equal.tolist() == [True, False]
    assert found.equal_to.tolist() == [1]
