from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.method.search.test_neighbors import KINDS, awkward_rows, brute_force
from tests.method.test_graph import edges_of
from vecfill.method import graph
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.search import cell_search, neighbors
from vecfill.method.search.cell_search import radius_of
from vecfill.method.search.cells import cells_of
from vecfill.method.search.neighbors import exact_neighbors
from vecfill.method.search.tree import minimum_spanning_tree, tree_of_distances


def structured_rows(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Clusters in few latent dimensions, in which cells prune."""
    rng = np.random.default_rng(seed)
    latent = 9 * rng.normal(size=(12, 3))[rng.integers(0, 12, n_rows)] + rng.normal(
        size=(n_rows, 3)
    )
    return (latent @ rng.normal(size=(3, n_features))).astype(np.float32)


awkward = {
    "kind": st.sampled_from(KINDS),
    "n_rows": st.integers(2, 400),
    "n_features": st.integers(1, 30),
    "dtype": st.sampled_from([np.float32, np.float64]),
    "seed": st.integers(0, 1000),
}


@pytest.fixture(autouse=True)
def always_cells(monkeypatch):
    """Make small rows searched by cells, however little these prune."""
    monkeypatch.setattr(graph, "CELLS_FROM", 2)
    monkeypatch.setattr(neighbors, "WORTH_PAIRS", np.inf)
    monkeypatch.setattr(cell_search, "N_FIRST", 1)
    monkeypatch.setattr(cell_search, "N_NEXT", 2)


@given(**awkward)
def test_no_row_is_nearer_than_the_bound_of_its_cell(kind, n_rows, n_features, dtype, seed):
    rows = awkward_rows(kind, n_rows, n_features, seed).astype(dtype)
    cells = cells_of(rows)
    distances = np.sqrt(brute_force(rows)[np.ix_(cells.order, cells.order)])
    np.fill_diagonal(distances, 0.0)
    radii = np.vectorize(radius_of, otypes=[np.float32])
    for cell in range(cells.n_cells):
        block = slice(cells.starts[cell], cells.starts[cell + 1])
        leans = cells.lift.swapped(block) @ cells.centres.T
        leans -= leans[:, [cell]]
        nearest = np.minimum.reduceat(distances[block], cells.starts[:-1], axis=1)
        at_most = radii(nearest**2, cells.diameter) * cells.gaps[cell]
        assert (cells.limits[cell] - leans <= at_most).all()
        assert (leans.max(axis=0) <= -cells.limits[:, cell]).all()


@given(n_neighbors=st.integers(1, 12), **awkward)
def test_cells_leave_the_neighbors_those_of_brute_force(
    n_neighbors, kind, n_rows, n_features, dtype, seed
):
    rows = awkward_rows(kind, n_rows, n_features, seed).astype(dtype)
    n_neighbors = min(n_neighbors, n_rows - 1)
    plain = exact_neighbors(rows, n_neighbors=n_neighbors)
    found = exact_neighbors(rows, n_neighbors=n_neighbors, cells=cells_of(rows))
    for one, other in ((plain.indices, found.indices), (plain.squared, found.squared)):
        np.testing.assert_array_equal(one[:, :n_neighbors], other[:, :n_neighbors])
    squared = brute_force(rows)
    np.put_along_axis(squared, found.indices.astype(np.int64), np.inf, axis=1)
    assert (squared >= found.reach[:, None] * (1 - 1e-9)).all()


@given(n_neighbors=st.integers(1, 3), **awkward)
def test_cells_leave_the_tree_that_of_brute_force(
    n_neighbors, kind, n_rows, n_features, dtype, seed
):
    rows = np.unique(awkward_rows(kind, n_rows, n_features, seed).astype(dtype), axis=0)
    if len(rows) < 2:
        return
    cells = cells_of(rows)
    lists = exact_neighbors(rows, n_neighbors=min(n_neighbors, len(rows) - 1), slack=0)
    by_tiles = minimum_spanning_tree(rows, lists)
    by_cells = minimum_spanning_tree(rows, lists, cells=cells)
    assert edges_of(by_tiles) == edges_of(by_cells)
    squared = brute_force(rows)
    np.fill_diagonal(squared, 0.0)
    expected = np.sqrt(tree_of_distances(squared).squared).sum()
    assert by_cells.squared.sum() == pytest.approx(expected, rel=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), min_degree=st.integers(1, 8))
def test_the_graph_of_structured_rows_is_the_same_with_cells(seed, min_degree):
    rows = structured_rows(1500, 8, seed)
    with_cells = spanning_neighbor_graph(rows, min_degree=min_degree)
    lists = exact_neighbors(rows, n_neighbors=min_degree)
    tree = minimum_spanning_tree(rows, lists)
    plain = graph._graph(tree, lists.indices[:, :min_degree], min_degree)
    np.testing.assert_array_equal(with_cells.indices, plain.indices)


def test_cells_that_do_not_prune_give_way_to_tiles(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(800, 20)).astype(np.float32)
    monkeypatch.setattr(neighbors, "WORTH_PAIRS", 0.5)
    assert cell_search.share_of_pairs(cells_of(rows), 8) > 0.5
    found = exact_neighbors(rows, n_neighbors=8, cells=cells_of(rows))
    expected = np.argsort(brute_force(rows), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(found.indices[:, :8], expected)


def test_any_number_of_threads_gives_the_same_graph_with_cells():
    rows = structured_rows(3000, 12)
    one, two, three = (spanning_neighbor_graph(rows, min_degree=8, n_jobs=n) for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.indptr, other.indptr)
