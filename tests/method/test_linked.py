"""The tree of a large graph, made of edges that are at hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from vecfill.inputs.graphs import edges as graphs
from vecfill.inputs.graphs.edges import domain_of_edges
from vecfill.inputs.table.frames import frame_of
from vecfill.method.graph import linked_tree, measured_neighbor_graphs
from vecfill.method.search.neighbors import exact_neighbors
from vecfill.method.search.tree import minimum_spanning_tree
from vecfill.model.space import Space


def blocks(n_blocks: int = 6, n_each: int = 40) -> np.ndarray:
    """Rows in blocks that lie far from each other."""
    rng = np.random.default_rng(0)
    centres = np.repeat(100.0 * np.eye(n_blocks), n_each, axis=0)
    return centres + rng.normal(size=centres.shape)


def edges_of(pairs, n_rows: int) -> csr_array:
    left, right = np.array(pairs).T
    half = csr_array((np.ones(len(left)), (left, right)), shape=(n_rows, n_rows))
    return csr_array(half + half.T)


def as_graph(tree, n_rows: int) -> csr_array:
    return csr_array((np.ones(tree.left.size), (tree.left, tree.right)), shape=(n_rows, n_rows))


def test_links_join_what_lists_leave_apart():
    rows = blocks()
    lists = exact_neighbors(rows, n_neighbors=5)
    chain = [(40 * block, 40 * block + 41) for block in range(5)]
    tree = linked_tree(rows, lists, edges_of(chain, len(rows)))
    assert tree is not None
    assert tree.left.size == len(rows) - 1
    assert connected_components(as_graph(tree, len(rows)), directed=False)[0] == 1
    pairs = set(zip(tree.left.tolist(), tree.right.tolist(), strict=True))
    assert pairs.issuperset(chain)
    gaps = rows[tree.left] - rows[tree.right]
    assert np.allclose(tree.squared, (gaps**2).sum(axis=1))


def test_links_that_join_too_little_leave_the_exact_tree():
    rows = blocks()
    lists = exact_neighbors(rows, n_neighbors=5)
    links = edges_of([(0, 41)], len(rows))
    assert linked_tree(rows, lists, links) is None
    (found,) = measured_neighbor_graphs(rows, min_degrees=(5,), links=links)
    (exact,) = measured_neighbor_graphs(rows, min_degrees=(5,))
    assert (found.graph != exact.graph).nnz == 0


def test_lists_that_join_everything_give_the_minimum_spanning_tree():
    rows = np.random.default_rng(1).normal(size=(60, 3))
    lists = exact_neighbors(rows, n_neighbors=59)
    tree = linked_tree(rows, lists, csr_array((60, 60)))
    assert tree is not None
    exact = minimum_spanning_tree(rows, lists)
    assert np.allclose(np.sort(tree.squared), np.sort(exact.squared))


def test_equal_rows_are_joined_too():
    rows = np.repeat(blocks(3, 20), 2, axis=0)
    links = edges_of([(0, 41), (40, 81)], len(rows))
    (found,) = measured_neighbor_graphs(rows, min_degrees=(3,), links=links)
    assert connected_components(found.graph, directed=False)[0] == 1


def test_only_a_large_graph_hands_its_edges_on(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = [[f"n{one}", f"n{other}"] for one, other in rng.integers(0, 80, (400, 2))]
    ends = dict(zip("ab", zip(*pairs, strict=True), strict=True))
    frame = frame_of(pa.table({name: list(each) for name, each in ends.items()}))
    assert frame is not None
    assert domain_of_edges(frame, n_dims=8).links is None
    monkeypatch.setattr(graphs, "LARGE", 50)
    domain = domain_of_edges(frame, n_dims=8)
    assert domain.links is not None
    assert domain.links.shape == (len(domain), len(domain))
    graph = Space.of_domain(domain).graph("as_given", 8).graph
    assert connected_components(graph, directed=False)[0] == 1
