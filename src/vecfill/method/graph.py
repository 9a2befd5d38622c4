"""Stage 1: domain vectors -> who may explain whom.

The minimum spanning tree keeps the graph in one piece, so that what is known reaches every row;
nearest neighbours are added until each row has `min_degree` of them, because one neighbour makes
a copy and not a mix.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.csgraph import minimum_spanning_tree as tree_of_graph

from vecfill._types import DomainVectors
from vecfill.machine.compiled import compiled
from vecfill.method.engine import Workers
from vecfill.method.scaling import well_scaled
from vecfill.method.search.cells import cells_of
from vecfill.method.search.distances import DistinctRows, Rows, distinct_rows
from vecfill.method.search.neighbors import (
    Neighbors,
    approximate_neighbors,
    exact_neighbors,
    prefers_approximate,
)
from vecfill.method.search.tree import Tree, minimum_spanning_tree, tree_of_distances

logger = logging.getLogger(__name__)

# A guess.
CELLS_FROM = 6000
"""Rows from which grouping them in cells pays for itself."""

_AT_ONCE = 1 << 16
"""Pairs whose differences are held at once: 50 MB at a hundred features. A guess."""


@compiled
def _nearest_of_groups(
    group, starts, members, indices, squared, row, n_wanted, out_indices, out_squared
):
    """List a row's nearest rows when each listed neighbour stands for a group of equal rows."""
    n_found = 0
    mine = group[row]
    for place in range(starts[mine], starts[mine + 1]):
        if members[place] != row and n_found < n_wanted:
            out_indices[n_found] = members[place]
            out_squared[n_found] = 0.0
            n_found += 1
    for rank in range(indices.shape[1]):
        if n_found >= n_wanted and squared[mine, rank] > out_squared[n_wanted - 1]:
            break
        neighbor_group = indices[mine, rank]
        for place in range(
            starts[neighbor_group],
            min(starts[neighbor_group + 1], starts[neighbor_group] + n_wanted),
        ):
            value, index = squared[mine, rank], members[place]
            slot = min(n_found, n_wanted)
            # By (distance, row number): members of groups at one distance interleave.
            while slot > 0 and (
                out_squared[slot - 1] > value
                or (out_squared[slot - 1] == value and out_indices[slot - 1] > index)
            ):
                if slot < n_wanted:
                    out_squared[slot] = out_squared[slot - 1]
                    out_indices[slot] = out_indices[slot - 1]
                slot -= 1
            if slot < n_wanted:
                out_squared[slot] = value
                out_indices[slot] = index
                n_found = min(n_found + 1, n_wanted)


@compiled
def _expanded_lists(group, starts, members, indices, squared, out_indices):
    n_wanted = out_indices.shape[1]
    out_squared = np.empty(n_wanted)
    for row in range(group.size):
        out_squared[:] = np.inf
        _nearest_of_groups(
            group, starts, members, indices, squared, row, n_wanted, out_indices[row], out_squared
        )


@compiled
def _lists_of_rows(tree_indptr, tree_indices, nearest, indptr, indices):
    for row in range(nearest.shape[0]):
        start, n_tree = indptr[row], tree_indptr[row + 1] - tree_indptr[row]
        for place in range(n_tree):
            indices[start + place] = tree_indices[tree_indptr[row] + place]
        place = start + n_tree
        for rank in range(nearest.shape[1]):
            if place == indptr[row + 1]:
                break
            is_there = False
            for earlier in range(start, start + n_tree):
                is_there |= indices[earlier] == nearest[row, rank]
            if not is_there:
                indices[place] = nearest[row, rank]
                place += 1
        # By hand: tree lists come in order, few rows follow, and a sort takes a second to compile.
        for place in range(start + 1, indptr[row + 1]):
            index, at = indices[place], place
            while at > start and indices[at - 1] > index:
                indices[at] = indices[at - 1]
                at -= 1
            indices[at] = index


def lists_of_rows(
    tree_indptr: np.ndarray, tree_indices: np.ndarray, nearest: np.ndarray, *, min_degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return who may explain some rows: tree neighbours, then nearest rows up to `min_degree`.

    Both are given by row, the tree's as CSR lists in ascending order, and so is the result.

    Examples
    --------
    >>> nearest = np.array([[4, 7, 2]], np.int32)
    >>> lists_of_rows(np.array([0, 1]), np.array([7], np.int32), nearest, min_degree=3)[1]
    array([2, 4, 7], dtype=int32)
    """
    degrees = np.maximum(np.diff(tree_indptr), min_degree)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = np.empty(int(indptr[-1]), np.int32)
    # One type of pointers: the function is compiled once.
    _lists_of_rows(tree_indptr.astype(np.int64), tree_indices, nearest, indptr, indices)
    return indptr, indices


def _graph(tree: Tree, nearest: np.ndarray, min_degree: int) -> csr_array:
    n_rows = len(nearest)
    ends = np.concatenate([tree.left, tree.right]), np.concatenate([tree.right, tree.left])
    edges = csr_array((np.ones(ends[0].size, np.bool_), ends), (n_rows, n_rows))
    edges.sort_indices()
    indptr, indices = lists_of_rows(edges.indptr, edges.indices, nearest, min_degree=min_degree)
    # int32 pointers where they fit: SciPy wants one type for both index arrays.
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return csr_array((np.ones(indices.size, np.bool_), indices, indptr), (n_rows, n_rows))


def _edgeless(n_rows: int) -> csr_array:
    return csr_array((n_rows, n_rows), dtype=np.bool_)


def _tree_with_stars(tree: Tree, distinct: DistinctRows) -> Tree:
    """Join equal rows to the first of them, which is how the strict order of edges joins them."""
    repeats = np.flatnonzero(distinct.first[distinct.group] != np.arange(distinct.group.size))
    return Tree(
        np.concatenate([distinct.first[tree.left], distinct.first[distinct.group[repeats]]]),
        np.concatenate([distinct.first[tree.right], repeats]),
        np.concatenate([tree.squared, np.zeros(repeats.size)]),
    )


def linked_tree(rows: np.ndarray, neighbors: Neighbors, links: csr_array) -> Tree | None:
    """Return the shortest tree of listed pairs, and of links between those that lists leave apart.

    None if even so not all rows are joined.

    Vectors of the nodes of a large graph lie about equally far from those of other blocks, so that
    the exact tree takes a comparison of all pairs. The edges of the graph join blocks as well.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> nearest = Neighbors(np.array([[1], [0], [3], [2]]), np.ones((4, 1)), np.ones(4))
    >>> links = csr_array(np.array([[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0.0]]))
    >>> tree = linked_tree(rows, nearest, links)
    >>> list(zip(tree.left.tolist(), tree.right.tolist(), tree.squared.tolist(), strict=True))
    [(0, 1, 1.0), (0, 3, 36.0), (2, 3, 1.0)]
    """
    n_rows, n_listed = neighbors.indices.shape
    ends_low = np.repeat(np.arange(n_rows, dtype=np.int64), n_listed)
    ends_high = neighbors.indices.ravel().astype(np.int64)
    lists = csr_array(
        (np.ones(ends_low.size, np.bool_), (ends_low, ends_high)), shape=(n_rows, n_rows)
    )
    _, part = connected_components(lists, directed=False)
    edges = coo_array(links)
    needed = (edges.row < edges.col) & (part[edges.row] != part[edges.col])
    ends = edges.row[needed].astype(np.int64), edges.col[needed].astype(np.int64)
    squared = np.concatenate([neighbors.squared.ravel(), _squared(rows, *ends)])
    ends_low, ends_high = np.concatenate([ends_low, ends[0]]), np.concatenate([ends_high, ends[1]])
    pairs = np.minimum(ends_low, ends_high) * n_rows + np.maximum(ends_low, ends_high)
    pairs, first = np.unique(pairs, return_index=True)
    ends_low, ends_high, squared = pairs // n_rows, pairs % n_rows, squared[first]
    # By rank, so that equal lengths have an order and no length is taken for a missing edge.
    order = np.argsort(squared, kind="stable")
    rank = np.empty(squared.size)
    rank[order] = np.arange(1, squared.size + 1)
    tree = coo_array(
        tree_of_graph(csr_array((rank, (ends_low, ends_high)), shape=(n_rows, n_rows)))
    )
    if tree.nnz < n_rows - 1:
        return None
    chosen = np.sort(order[tree.data.astype(np.int64) - 1])
    return Tree(ends_low[chosen], ends_high[chosen], squared[chosen])


def _squared(rows: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
    squared = np.empty(tails.size)
    for first in range(0, tails.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        gaps = rows[tails[part]].astype(np.float64) - rows[heads[part]]
        squared[part] = np.einsum("ij,ij->i", gaps, gaps)
    return squared


def _tree_and_lists(
    rows: Rows, n_nearest: int, neighbors: str, n_jobs: Workers, links: csr_array | None
) -> tuple[Tree, Neighbors]:
    """Return the tree of distinct rows and their lists of nearest rows."""
    n_rows = rows.shape[0]
    if n_rows == 1:
        none = Neighbors(np.empty((1, 0), np.int32), np.empty((1, 0)), np.array([np.inf]))
        return Tree(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)), none
    n_neighbors = min(n_nearest, n_rows - 1)
    # Cells are made once for both searches.
    cells = None
    if n_rows >= CELLS_FROM and not issparse(rows):
        cells = cells_of(rows, n_jobs=n_jobs)
    if cells is not None and (
        neighbors == "approximate"
        or (neighbors == "auto" and prefers_approximate(cells, n_neighbors, n_jobs=n_jobs))
    ):
        lists = approximate_neighbors(rows, n_neighbors=n_neighbors, cells=cells, n_jobs=n_jobs)
        logger.info("approximate neighbours of %d rows, recall %.3f", n_rows, lists.recall)
    else:
        lists = exact_neighbors(rows, n_neighbors=n_neighbors, cells=cells, n_jobs=n_jobs)
        logger.info("exact neighbours of %d rows", n_rows)
    tree = None if links is None or issparse(rows) else linked_tree(rows, lists, links)
    return tree or minimum_spanning_tree(rows, lists, cells=cells, n_jobs=n_jobs), lists


def _tree_and_nearest(
    rows: Rows, n_nearest: int, neighbors: str, n_jobs: Workers, links: csr_array | None = None
) -> tuple[Tree, np.ndarray, float]:
    """Return the tree, the nearest rows of each row, and the recall of these."""
    n_rows = rows.shape[0]
    distinct = distinct_rows(rows)
    if distinct is None:
        tree, lists = _tree_and_lists(rows, n_nearest, neighbors, n_jobs, links)
        return tree, lists.indices[:, :n_nearest], lists.recall
    firsts = None if links is None else csr_array(links[distinct.first][:, distinct.first])
    tree, lists = _tree_and_lists(rows[distinct.first], n_nearest, neighbors, n_jobs, firsts)
    nearest = np.empty((n_rows, n_nearest), np.int32)
    _expanded_lists(
        distinct.group,
        distinct.starts,
        distinct.members,
        lists.indices[:, :n_nearest],
        lists.squared[:, :n_nearest],
        nearest,
    )
    return _tree_with_stars(tree, distinct), nearest, lists.recall


@dataclass(frozen=True)
class SpanningGraph:
    """Who may explain whom, and how well that was found out."""

    graph: csr_array
    """``graph[row, neighbor]`` is true."""
    recall: float
    """Share of the true nearest rows among those listed: 1 if exact, else by a sample."""


def measured_neighbor_graphs(
    domain: DomainVectors | csr_array,
    *,
    min_degrees: Sequence[int],
    links: csr_array | None = None,
    neighbors: str = "auto",
    n_jobs: Workers = None,
) -> list[SpanningGraph]:
    """Return `spanning_neighbor_graph` for several least degrees, with the recall of neighbours.

    All together cost what the largest costs. If rows are nodes of a graph, `links` are its edges:
    then the tree is the shortest one of these and of the nearest rows, not of all pairs.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> found = measured_neighbor_graphs(rows, min_degrees=(1, 3))
    >>> [(graph.graph.nnz, graph.recall) for graph in found]
    [(6, 1.0), (12, 1.0)]
    """
    assert neighbors in ("auto", "exact", "approximate")
    n_rows = domain.shape[0]
    if n_rows == 1:
        return [SpanningGraph(_edgeless(1), 1.0) for _ in min_degrees]
    degrees = [min(min_degree, n_rows - 1) for min_degree in min_degrees]
    searched = _tree_and_nearest(well_scaled(domain), max(degrees), neighbors, n_jobs, links)
    tree, nearest, recall = searched
    return [SpanningGraph(_graph(tree, nearest, degree), recall) for degree in degrees]


def spanning_neighbor_graph(
    domain: DomainVectors | csr_array,
    *,
    min_degree: int,
    neighbors: str = "auto",
    n_jobs: Workers = None,
) -> csr_array:
    """Return who may explain whom: ``graph[row, neighbor]`` is true.

    Each row has its neighbours in the Euclidean minimum spanning tree, and its nearest rows in
    order of distance until there are `min_degree` (or all others, if there are fewer). Ties are
    broken by row number, so the graph is unique. Equal rows are ordinary neighbours at distance
    zero. Memory is linear in the number of rows.

    `neighbors` is ``"exact"``, ``"approximate"`` (dense rows, from some thousand on), or
    ``"auto"``: exact unless that would take minutes. An approximate graph is connected and has
    `min_degree` too; some neighbours are not the very nearest.

    Examples
    --------
    >>> graph = spanning_neighbor_graph(np.array([[0.0], [1.0], [5.0], [6.0]]), min_degree=1)
    >>> graph.toarray().astype(int)
    array([[0, 1, 0, 0],
           [1, 0, 1, 0],
           [0, 1, 0, 1],
           [0, 0, 1, 0]])
    """
    options = {"min_degrees": (min_degree,), "neighbors": neighbors, "n_jobs": n_jobs}
    return measured_neighbor_graphs(domain, **options)[0].graph


def spanning_neighbor_graph_of_distances(distances: np.ndarray, *, min_degree: int) -> csr_array:
    """Return the same graph from a symmetric matrix of distances.

    Examples
    --------
    >>> distances = np.array([[0.0, 1, 3], [1, 0, 2], [3, 2, 0]])
    >>> spanning_neighbor_graph_of_distances(distances, min_degree=1).toarray().astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    n_rows = len(distances)
    if n_rows == 1:
        return _edgeless(1)
    distances = well_scaled(distances)
    n_nearest = min(min_degree, n_rows - 1)
    nearest = np.empty((n_rows, n_nearest), np.int32)
    for row in range(n_rows):
        other_rows = np.delete(np.arange(n_rows), row)
        # A stable sort leaves equal distances in the order of their rows.
        nearest[row] = other_rows[np.argsort(distances[row, other_rows], kind="stable")[:n_nearest]]
    return _graph(tree_of_distances(distances), nearest, n_nearest)
