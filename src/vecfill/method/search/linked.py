"""A spanning tree of edges that are at hand, where that of all pairs would cost too much."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.csgraph import minimum_spanning_tree as tree_of_graph

from vecfill.method.search.neighbors import Neighbors
from vecfill.method.search.tree import Tree

_AT_ONCE = 1 << 16


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
    left = np.repeat(np.arange(n_rows, dtype=np.int64), n_listed)
    right = neighbors.indices.ravel().astype(np.int64)
    lists = csr_array((np.ones(left.size, np.bool_), (left, right)), shape=(n_rows, n_rows))
    _, part = connected_components(lists, directed=False)
    joined = coo_array(links)
    needed = (joined.row < joined.col) & (part[joined.row] != part[joined.col])
    ends = joined.row[needed].astype(np.int64), joined.col[needed].astype(np.int64)
    squared = np.concatenate([neighbors.squared.ravel(), _squared(rows, *ends)])
    left, right = np.concatenate([left, ends[0]]), np.concatenate([right, ends[1]])
    pairs = np.minimum(left, right) * n_rows + np.maximum(left, right)
    pairs, first = np.unique(pairs, return_index=True)
    left, right, squared = pairs // n_rows, pairs % n_rows, squared[first]
    # By rank, so that equal lengths have an order and no length is taken for a missing edge.
    order = np.argsort(squared, kind="stable")
    rank = np.empty(squared.size)
    rank[order] = np.arange(1, squared.size + 1)
    tree = coo_array(tree_of_graph(csr_array((rank, (left, right)), shape=(n_rows, n_rows))))
    if tree.nnz < n_rows - 1:
        return None
    chosen = np.sort(order[tree.data.astype(np.int64) - 1])
    return Tree(left[chosen], right[chosen], squared[chosen])


def _squared(rows: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    found = np.empty(left.size)
    for first in range(0, left.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        gaps = rows[left[part]].astype(np.float64) - rows[right[part]]
        found[part] = np.einsum("ij,ij->i", gaps, gaps)
    return found
