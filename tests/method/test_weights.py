from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.sparse import csr_array

from tests.method.search.test_neighbors import KINDS, awkward_rows
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.weights import convex_weights, convex_weights_of_distances


def row_of(matrix: csr_array, row: int) -> tuple[np.ndarray, np.ndarray]:
    places = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[places], matrix.data[places]


@given(
    kind=st.sampled_from(KINDS),
    n_rows=st.integers(2, 80),
    n_features=st.integers(1, 20),
    form=st.sampled_from(["simplex", "nnls"]),
    ridge=st.sampled_from([0.0, 0.1, 3.0]),
    weight_floor=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 1000),
)
def test_every_row_of_weights_is_a_distribution(
    kind, n_rows, n_features, form, ridge, weight_floor, seed
):
    rows = awkward_rows(kind, n_rows, n_features, seed)
    graph = spanning_neighbor_graph(rows, min_degree=5)
    weights = convex_weights(rows, graph, form=form, ridge=ridge, weight_floor=weight_floor)
    assert (weights.data >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    if weight_floor > 0:
        assert (weights.data > 0).all()


@pytest.mark.parametrize("form", ["simplex", "nnls"])
@pytest.mark.parametrize("n_features", [9, 60])
def test_weights_are_those_of_scipy(form, n_features):
    rows = np.random.default_rng(0).normal(size=(300, n_features))
    graph = spanning_neighbor_graph(rows, min_degree=8 if n_features > 9 else 5)
    weights = convex_weights(rows, graph, form=form, weight_floor=0.0)
    n_compared = 0
    for row in range(300):
        neighbors, found = row_of(weights, row)
        if form == "nnls":
            system, target = rows[neighbors].T, rows[row]
        else:
            # The sum of weights is one more equation; its scale does not matter.
            system = np.vstack([(rows[neighbors] - rows[row]).T, np.ones(neighbors.size)])
            target = np.append(np.zeros(n_features), 1.0)
        expected = nnls(system, target)[0]
        if neighbors.size > n_features or expected.sum() == 0:
            continue
        n_compared += 1
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-10)
    assert n_compared > 250


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 30))
def test_simplex_weights_are_no_worse_than_any_other_mix(seed, n_features):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(9, n_features))
    graph = csr_array(np.vstack([np.append(False, np.ones(8, bool)), np.eye(9, dtype=bool)[1:]]))
    found = convex_weights(rows, graph, weight_floor=0.0).toarray()[0, 1:]
    error = np.linalg.norm(found @ rows[1:] - rows[0])
    for other in rng.dirichlet(np.full(8, 0.3), size=200):
        assert error <= np.linalg.norm(other @ rows[1:] - rows[0]) + 1e-6


@given(
    kind=st.sampled_from(["normal", "lattice", "far clusters"]),
    seed=st.integers(0, 1000),
    shift=st.floats(-100, 100),
)
def test_shifting_the_domain_changes_no_simplex_weight(kind, seed, shift):
    rows = awkward_rows(kind, 40, 12, seed)
    graph = spanning_neighbor_graph(rows, min_degree=6)
    weights = convex_weights(rows, graph)
    moved = convex_weights(rows + shift, graph)
    np.testing.assert_allclose(weights.data, moved.data, atol=2e-5)


def test_shifting_the_domain_does_change_nnls_weights():
    rows = np.random.default_rng(0).normal(size=(40, 12))
    graph = spanning_neighbor_graph(rows, min_degree=6)
    weights = convex_weights(rows, graph, form="nnls")
    assert np.abs(weights.data - convex_weights(rows + 3.0, graph, form="nnls").data).max() > 0.01


@pytest.mark.parametrize("form", ["simplex", "nnls"])
def test_equal_neighbors_share_their_weight_evenly(form):
    rows = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    graph = csr_array(np.array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], bool))
    found = convex_weights(rows, graph, form=form, weight_floor=0.0).toarray()[0]
    np.testing.assert_allclose(found, [0, 1 / 3, 1 / 3, 1 / 3], atol=1e-6)


def test_the_order_of_neighbors_does_not_choose_among_equally_good_mixes():
    # Eight neighbours in the plane around a point: many mixes hit it exactly.
    rng = np.random.default_rng(0)
    rows = np.vstack([np.zeros(2), rng.normal(size=(8, 2))])
    graph = csr_array(np.vstack([np.append(False, np.ones(8, bool)), np.eye(9, dtype=bool)[1:]]))
    found = convex_weights(rows, graph, weight_floor=0.0).toarray()[0, 1:]
    order = rng.permutation(8)
    shuffled = np.vstack([rows[:1], rows[1:][order]])
    again = convex_weights(shuffled, graph, weight_floor=0.0).toarray()[0, 1:]
    np.testing.assert_allclose(again, found[order], atol=1e-5)


def test_a_row_nothing_explains_gets_equal_weights():
    # All neighbours point away from the row: non-negative least squares gives only zeros.
    rows = np.array([[1.0, 0.0], [-1.0, 0.5], [-1.0, -0.5]])
    graph = csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], bool))
    found = convex_weights(rows, graph, form="nnls", weight_floor=0.0).toarray()[0]
    assert found.tolist() == [0.0, 0.5, 0.5]


def test_a_large_ridge_gives_the_plain_mean():
    rows = np.random.default_rng(0).normal(size=(30, 5))
    graph = spanning_neighbor_graph(rows, min_degree=4)
    weights = convex_weights(rows, graph, ridge=1e9, weight_floor=0.0)
    even = 1.0 / np.repeat(np.diff(graph.indptr), np.diff(graph.indptr))
    np.testing.assert_allclose(weights.data, even, rtol=1e-6)


def test_the_floor_is_a_share_of_the_smallest_positive_weight():
    rows = np.array([[1.0], [0.0], [4.0], [9.0]])
    graph = csr_array(np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], bool))
    found = convex_weights(rows, graph, weight_floor=0.1).toarray()[0]
    np.testing.assert_allclose(found[[1, 2]], np.array([0.775, 0.275]) / 1.05)


def test_distances_and_sparse_rows_give_the_weights_of_the_rows():
    rows = np.random.default_rng(0).normal(size=(60, 12))
    rows[np.abs(rows) < 0.5] = 0.0
    graph = spanning_neighbor_graph(rows, min_degree=5)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    expected = convex_weights(rows, graph).data
    from_distances = convex_weights_of_distances(distances, graph).data
    np.testing.assert_allclose(from_distances, expected, atol=1e-9)
    np.testing.assert_allclose(convex_weights(csr_array(rows), graph).data, expected, atol=1e-12)
    sparse_nnls = convex_weights(csr_array(rows), graph, form="nnls").data
    np.testing.assert_allclose(
        sparse_nnls, convex_weights(rows, graph, form="nnls").data, atol=1e-12
    )


def test_any_number_of_threads_gives_the_same_bits():
    rows = np.random.default_rng(0).normal(size=(1500, 6)).astype(np.float32)
    graph = spanning_neighbor_graph(rows, min_degree=8)
    one, three = (convex_weights(rows, graph, n_jobs=n_jobs).data for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("form", ["simplex", "nnls"])
def test_sparse_rows_that_come_later_are_weighed_as_dense_ones_are(form):
    rng = np.random.default_rng(0)
    fitted, new = (np.where(rng.random((n, 6)) < 0.5, rng.normal(size=(n, 6)), 0) for n in (9, 4))
    graph = csr_array(np.tile(np.arange(9) < 5, (4, 1)))
    dense = convex_weights(new, graph, fitted=fitted, form=form)
    sparse = convex_weights(csr_array(new), graph, fitted=csr_array(fitted), form=form)
    np.testing.assert_allclose(sparse.toarray(), dense.toarray(), atol=1e-12)


@pytest.mark.parametrize("form", ["simplex", "nnls"])
def test_columns_of_one_neighbor_alone_count_in_wide_sparse_rows(form):
    # Ten columns that all rows share, and fifty that each row has to itself.
    rng = np.random.default_rng(0)
    rows = np.zeros((30, 10 + 30 * 50))
    rows[:, :10] = rng.normal(size=(30, 10))
    for row in range(30):
        rows[row, 10 + 50 * row : 60 + 50 * row] = 0.3 * rng.normal(size=50)
    graph = spanning_neighbor_graph(rows, min_degree=6)
    sparse = convex_weights(csr_array(rows), graph, form=form)
    dense = convex_weights(rows, graph, form=form)
    np.testing.assert_allclose(sparse.toarray(), dense.toarray(), atol=1e-9)
