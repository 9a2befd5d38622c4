from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree

from tests.method.search.test_neighbors import KINDS, awkward_rows, brute_force
from vecfill.method.graph import (
    _tree_and_nearest,
    spanning_neighbor_graph,
    spanning_neighbor_graph_of_distances,
)
from vecfill.method.search.distances import distinct_rows
from vecfill.method.search.neighbors import exact_neighbors
from vecfill.method.search.tree import minimum_spanning_tree, tree_of_distances


def edges_of(tree) -> set[tuple[int, int]]:
    low, high = np.minimum(tree.left, tree.right), np.maximum(tree.left, tree.right)
    return set(zip(low.tolist(), high.tolist(), strict=True))


@given(
    kind=st.sampled_from(KINDS),
    n_rows=st.integers(2, 150),
    n_features=st.integers(1, 30),
    min_degree=st.integers(1, 10),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 1000),
)
def test_the_graph_is_the_tree_and_the_nearest_rows_of_brute_force(
    kind, n_rows, n_features, min_degree, dtype, seed
):
    rows = awkward_rows(kind, n_rows, n_features, seed).astype(dtype)
    squared = brute_force(rows)
    tree, _, _ = _tree_and_nearest(rows, min(min_degree, n_rows - 1), "exact", None)
    # A distance of zero means "no edge" to SciPy, so all are raised by the same amount.
    shift = 1.0
    expected = scipy_tree(np.where(np.isinf(squared), 0.0, squared + shift)).sum()
    expected -= shift * (n_rows - 1)
    scale = squared[np.isfinite(squared)].max(initial=1.0)
    assert tree.squared.sum() == pytest.approx(expected, rel=1e-9, abs=1e-12 * n_rows * scale)

    graph = spanning_neighbor_graph(rows, min_degree=min_degree).toarray()
    assert connected_components(graph, directed=False)[0] == 1
    degrees = graph.sum(axis=1)
    assert (degrees >= min(min_degree, n_rows - 1)).all()
    is_tree = np.zeros_like(graph)
    is_tree[tree.left, tree.right] = is_tree[tree.right, tree.left] = True
    for row in range(n_rows):
        # Tree neighbours, and then the nearest others: none nearer was left out.
        added = graph[row] & ~is_tree[row]
        assert degrees[row] == max(is_tree[row].sum(), min(min_degree, n_rows - 1))
        left_out = ~graph[row] & (np.arange(n_rows) != row)
        if added.any() and left_out.any():
            assert squared[row, added].max() <= squared[row, left_out].min() * (1 + 1e-9)


@given(
    kind=st.sampled_from(["normal", "lattice", "far clusters", "line"]),
    n_rows=st.integers(2, 200),
    n_neighbors=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_short_lists_leave_the_tree_the_same(kind, n_rows, n_neighbors, seed):
    rows = awkward_rows(kind, n_rows, 2, seed)
    rows = np.unique(rows, axis=0)
    if len(rows) < 2:
        return
    lists = exact_neighbors(rows, n_neighbors=min(n_neighbors, len(rows) - 1), slack=0)
    squared = brute_force(rows)
    np.fill_diagonal(squared, 0.0)
    expected = tree_of_distances(squared)
    assert minimum_spanning_tree(rows, lists).squared.sum() == pytest.approx(
        np.sqrt(expected.squared).sum(), rel=1e-9
    )
    if kind == "lattice":
        assert edges_of(minimum_spanning_tree(rows, lists)) == edges_of(expected)


def test_duplicates_are_ordinary_neighbors():
    rows = np.array([[0.0], [0.0], [0.0], [5.0], [5.0]])
    graph = spanning_neighbor_graph(rows, min_degree=2).toarray().astype(int)
    assert graph[1].tolist() == [1, 0, 1, 0, 0]
    assert graph[4].tolist() == [1, 0, 0, 1, 0]
    assert graph[3].tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("min_degree", [1, 3, 8, 40])
def test_thousands_of_equal_rows_change_nothing_but_their_number(min_degree):
    rng = np.random.default_rng(0)
    # Some rows have hundreds of copies, others none or a few.
    copies = np.minimum(rng.integers(0, 60, 2000), rng.integers(0, 60, 2000))
    rows = rng.normal(size=(60, 3))[copies]
    graph = spanning_neighbor_graph(rows, min_degree=min_degree)
    # Distances know nothing of groups of equal rows: every pair is an edge like any other.
    distances = np.sqrt(np.where(np.eye(2000, dtype=bool), 0.0, brute_force(rows)))
    expected = spanning_neighbor_graph_of_distances(distances, min_degree=min_degree)
    np.testing.assert_array_equal(graph.indptr, expected.indptr)
    np.testing.assert_array_equal(graph.indices, expected.indices)


def test_all_rows_equal_make_a_star_and_the_first_rows():
    graph = spanning_neighbor_graph(np.ones((6, 2)), min_degree=2).toarray().astype(int)
    assert graph[0].tolist() == [0, 1, 1, 1, 1, 1]
    assert graph[5].tolist() == [1, 1, 0, 0, 0, 0]


def test_one_row_has_no_neighbor_and_few_rows_have_all_others():
    assert spanning_neighbor_graph(np.ones((1, 2)), min_degree=8).nnz == 0
    few = spanning_neighbor_graph(np.array([[0.0], [1.0], [9.0]]), min_degree=8)
    np.testing.assert_array_equal(few.toarray(), ~np.eye(3, dtype=bool))


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000), factor=st.integers(-300, 300))
def test_scale_by_a_power_of_two_changes_nothing(kind, seed, factor):
    rows = awkward_rows(kind, 40, 3, seed)
    graph = spanning_neighbor_graph(rows, min_degree=4)
    scaled = spanning_neighbor_graph(np.ldexp(rows, factor), min_degree=4)
    np.testing.assert_array_equal(graph.indices, scaled.indices)


def test_distances_give_the_graph_of_the_rows():
    rows = np.random.default_rng(0).normal(size=(80, 4))
    distances = np.sqrt(np.where(np.eye(80, dtype=bool), 0.0, brute_force(rows)))
    from_rows = spanning_neighbor_graph(rows, min_degree=5)
    from_distances = spanning_neighbor_graph_of_distances(distances, min_degree=5)
    np.testing.assert_array_equal(from_rows.toarray(), from_distances.toarray())


@pytest.mark.parametrize("kind", ["normal", "zeros", "duplicates", "lattice"])
def test_sparse_rows_have_the_graph_of_dense_ones(kind):
    rows = awkward_rows(kind, 100, 10, 3)
    rows[np.abs(rows) < 0.7] = 0.0
    dense = spanning_neighbor_graph(rows, min_degree=6)
    sparse = spanning_neighbor_graph(csr_array(rows), min_degree=6)
    np.testing.assert_array_equal(dense.toarray(), sparse.toarray())


def test_negative_zero_equals_zero():
    assert distinct_rows(np.array([[0.0], [-0.0]])).group.tolist() == [0, 0]


def test_rows_with_one_hash_are_still_told_apart(monkeypatch):
    monkeypatch.setattr("vecfill.method.search.distances._hashes", lambda rows: np.zeros(len(rows)))
    assert distinct_rows(np.array([[1.0], [2.0], [1.0]])).group.tolist() == [0, 1, 0]
