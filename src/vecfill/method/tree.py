"""The minimum spanning tree of rows: exact, unique, without the matrix of their distances.

Borůvka's algorithm over the lists of nearest rows. Each component takes its shortest edge to
another one. The lists nearly always hold it; when some row of the component has a list too short
to prove that (its `reach` is no longer than the edge), that row searches all other rows, in
blocks. Edges are ordered by (squared distance, smaller row, larger row), a strict order, so the
tree is unique and no rounding or number of threads can change it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from vecfill._compiled import compiled
from vecfill.method.blocks import parallel_map, row_blocks
from vecfill.method.distances import (
    DistanceBlock,
    Lifted,
    Rows,
    distances_from,
    lifted,
    pair_distances,
    product_error,
)
from vecfill.method.neighbors import CHUNK, TILE, Neighbors, careful_blocks

N_KEPT = 4
"""Candidates a searching row keeps: room for rounding to swap a few before we look closer."""

MAX_WIDTH = 4096
"""Columns of a tile in a search."""


@dataclass(frozen=True)
class Tree:
    """The ``n_rows - 1`` edges of a spanning tree."""

    left: np.ndarray
    right: np.ndarray
    squared: np.ndarray
    """Squared lengths of the edges, 64-bit."""


@compiled
def _root(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@compiled
def _precedes(squared, i, j, other_squared, other_i, other_j):
    """Tell whether edge (i, j) comes before another in the strict order of edges."""
    if squared != other_squared or other_i < 0:
        return squared < other_squared or other_i < 0
    low, other_low = min(i, j), min(other_i, other_j)
    if low != other_low:
        return low < other_low
    return max(i, j) < max(other_i, other_j)


@compiled
def _offer(best, ends, component, squared, i, j):
    if _precedes(squared, i, j, best[component], ends[component, 0], ends[component, 1]):
        best[component] = squared
        ends[component, 0] = i
        ends[component, 1] = j


@compiled
def _shortest_edges(indices, squared, component, n_components, out_index, out_squared):
    """Return the shortest seen edge that leaves each component: its length and ends."""
    n_rows, n_listed = indices.shape
    best = np.full(n_components, np.inf)
    ends = np.full((n_components, 2), -1)
    for row in range(n_rows):
        mine = component[row]
        for rank in range(n_listed):
            other = indices[row, rank]
            if component[other] != mine:
                _offer(best, ends, mine, squared[row, rank], row, other)
                _offer(best, ends, component[other], squared[row, rank], row, other)
        other = out_index[row]
        if other >= 0 and component[other] != mine:
            _offer(best, ends, mine, out_squared[row], row, other)
            _offer(best, ends, component[other], out_squared[row], row, other)
    return best, ends


@compiled
def _join(component, may_choose, best, ends, left, right, squared, n_edges):
    """Add the chosen edges, relabel the components; return the counts of edges and components."""
    n_components = best.size
    parent = np.arange(n_components)
    for chooser in range(n_components):
        if may_choose[chooser] and ends[chooser, 0] >= 0:
            a = _root(parent, component[ends[chooser, 0]])
            b = _root(parent, component[ends[chooser, 1]])
            if a != b:
                parent[max(a, b)] = min(a, b)
                left[n_edges], right[n_edges] = ends[chooser]
                squared[n_edges] = best[chooser]
                n_edges += 1
    label = np.full(n_components, -1)
    n_left = 0
    for chooser in range(n_components):
        root = _root(parent, chooser)
        if label[root] < 0:
            label[root] = n_left
            n_left += 1
        label[chooser] = label[root]
    for row in range(component.size):
        component[row] = label[component[row]]
    return n_edges, n_left


@compiled
def _scan_outside(products, mine, theirs, targets, values, indices):
    """Keep the best columns of each row of a tile that belong to another component."""
    n_rows, n_columns = products.shape
    n_kept = values.shape[1]
    for row in range(n_rows):
        worst = values[row, n_kept - 1]
        for start in range(0, n_columns, CHUNK):
            stop = min(start + CHUNK, n_columns)
            hits = 0
            for column in range(start, stop):
                hits |= products[row, column] > worst
            if hits:
                for column in range(start, stop):
                    value = products[row, column]
                    if value > worst and theirs[column] != mine[row]:
                        place = n_kept - 1
                        while place > 0 and values[row, place - 1] < value:
                            values[row, place] = values[row, place - 1]
                            indices[row, place] = indices[row, place - 1]
                            place -= 1
                        values[row, place] = value
                        indices[row, place] = targets[column]
                        worst = values[row, n_kept - 1]


def _first_edges(
    position: np.ndarray, row: np.ndarray, other: np.ndarray, squared: np.ndarray, n_queries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each query, its first edge in the strict order: other end and length."""
    low, high = np.minimum(row, other), np.maximum(row, other)
    order = np.lexsort((high, low, squared, position))
    found, first = np.unique(position[order], return_index=True)
    out_index = np.full(n_queries, -1, np.int64)
    out_squared = np.full(n_queries, np.inf)
    out_index[found] = other[order[first]]
    out_squared[found] = squared[order[first]]
    return out_index, out_squared


class _Search:
    """Looks for the nearest row of another component, exactly, for rows whose list gave out."""

    def __init__(self, rows: Rows, reach: np.ndarray, n_jobs: int | None) -> None:
        self.rows = rows
        self.n_jobs = n_jobs
        self.lift: Lifted | None = None if issparse(rows) else lifted(rows, n_jobs=n_jobs)
        self.block_of: DistanceBlock | None = None
        self.by_reach = np.argsort(reach, kind="stable")
        self.sorted_reach = reach[self.by_reach]

    def outside(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each query's first edge to another component no longer than its bound.

        A pair in neither row's list is at least as long as both reaches, so a row with a reach
        beyond the bound is no target.
        """
        order = np.argsort(bounds, kind="stable")
        parts = [order[block] for block in row_blocks(order.size, TILE)]
        index = np.full(queries.size, -1, np.int64)
        squared = np.full(queries.size, np.inf)
        doubtful = []

        def search(part: np.ndarray) -> None:
            sure = self._by_products(queries[part], bounds[part], component)
            index[part], squared[part] = sure[0], sure[1]
            doubtful.append(part[sure[2]])

        if self.lift is None:
            doubtful = [order]
        else:
            parallel_map(search, parts, n_jobs=self.n_jobs)
        unsure = np.sort(np.concatenate(doubtful))
        if unsure.size:
            found = self._by_careful_blocks(queries[unsure], bounds[unsure], component)
            index[unsure], squared[unsure] = found
        return index, squared

    def _by_products(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Search by 32-bit products: other ends, lengths, and for whom the error left doubt."""
        lift = self.lift
        assert lift is not None
        relative, absolute = product_error(lift.n_features, np.float32)
        halves = lift.half_squares[queries]
        with np.errstate(over="ignore"):
            partner = 0.5 * (lift.lengths[queries] + np.sqrt(bounds)) ** 2
        error = relative * (halves + np.minimum(partner, lift.half_squares.max())) + absolute
        floor = np.nextafter(-0.5 * (bounds + error), -np.inf).astype(np.float32)
        floor = np.nextafter(floor, np.float32(-np.inf))
        values = np.repeat(floor[:, None], N_KEPT, axis=1)
        indices = np.full(values.shape, -1, np.int64)
        points = lift.points[queries]
        n_targets = int(np.searchsorted(self.sorted_reach, bounds.max(), side="right"))
        for block in row_blocks(n_targets, MAX_WIDTH):
            targets = self.by_reach[block]
            products = points @ lift.targets(targets)
            _scan_outside(
                products, component[queries], component[targets], targets, values, indices
            )
        position, rank = np.nonzero(indices >= 0)
        row, other = queries[position], indices[position, rank]
        length = pair_distances(self.rows, self.rows, row, other)
        index, squared = _first_edges(position, row, other, length, queries.size)
        unlisted_at_least = -2.0 * values[:, -1].astype(np.float64) - error
        is_doubtful = (indices[:, -1] >= 0) & (squared >= unlisted_at_least)
        return index, squared, is_doubtful

    def _by_careful_blocks(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Search in 64 bits, looking at every candidate within the error."""
        if self.block_of is None:
            self.block_of = distances_from(self.rows)
        block_of = self.block_of

        def search(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mine = queries[part]
            squared, error = block_of(self.rows[mine])
            squared[component[mine][:, None] == component] = np.inf
            limit = np.minimum((squared + error).min(axis=1), bounds[part])
            position, other = np.nonzero(squared - error <= limit[:, None])
            row = mine[position]
            length = pair_distances(self.rows, self.rows, row, other)
            return _first_edges(position, row, other, length, part.size)

        parts = careful_blocks(np.arange(queries.size), self.rows.shape[0])
        found = parallel_map(search, parts, n_jobs=self.n_jobs)
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def minimum_spanning_tree(rows: Rows, neighbors: Neighbors, *, n_jobs: int | None = None) -> Tree:
    """Return the exact Euclidean minimum spanning tree of distinct rows.

    Examples
    --------
    >>> from vecfill.method.neighbors import exact_neighbors
    >>> rows = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> tree = minimum_spanning_tree(rows, exact_neighbors(rows, n_neighbors=1))
    >>> sorted(tree.squared.tolist())
    [1.0, 1.0, 16.0]
    """
    n_rows = rows.shape[0]
    component = np.arange(n_rows)
    n_components, n_edges = n_rows, 0
    left, right = np.empty(n_rows - 1, np.int64), np.empty(n_rows - 1, np.int64)
    squared = np.empty(n_rows - 1)
    reach = neighbors.reach.copy()
    out_index, out_squared = np.full(n_rows, -1, np.int64), np.full(n_rows, np.inf)
    search: _Search | None = None
    while n_components > 1:
        shortest = (neighbors.indices, neighbors.squared, component, n_components)
        best, ends = _shortest_edges(*shortest, out_index, out_squared)
        sizes = np.bincount(component, minlength=n_components)
        # The larger components may wait: they are joined by the smaller ones' choices.
        may_search = sizes <= np.sort(sizes)[(n_components - 1) // 2]
        may_search[np.argmax(sizes)] = False
        if not may_search.any():
            may_search[np.arange(n_components) != np.argmax(sizes)] = True
        is_unsure = reach <= best[component]
        queries = np.flatnonzero(is_unsure & may_search[component])
        if queries.size:
            search = search or _Search(rows, neighbors.reach, n_jobs)
            bounds = best[component[queries]]
            index, length = search.outside(queries, bounds, component)
            found = index >= 0
            out_index[queries[found]] = index[found]
            out_squared[queries[found]] = length[found]
            # Nothing unseen is nearer than what was found, or than the bound if nothing was.
            reach[queries] = np.where(found, length, np.nextafter(bounds, np.inf))
            best, ends = _shortest_edges(*shortest, out_index, out_squared)
            is_unsure[queries] = False
        may_choose = np.ones(n_components, np.bool_)
        may_choose[component[is_unsure]] = False
        n_edges, n_components = _join(
            component, may_choose, best, ends, left, right, squared, n_edges
        )
    assert n_edges == n_rows - 1
    return Tree(left, right, squared)


@compiled
def _prim(distances, left, right, lengths):
    n_rows = distances.shape[0]
    best = np.full(n_rows, np.inf)
    nearest = np.full(n_rows, -1)
    is_in = np.zeros(n_rows, np.bool_)
    current = 0
    is_in[0] = True
    for edge in range(n_rows - 1):
        chosen = -1
        for row in range(n_rows):
            if is_in[row]:
                continue
            length = np.float64(distances[current, row])
            if _precedes(length, current, row, best[row], nearest[row], row):
                best[row] = length
                nearest[row] = current
            if chosen < 0 or _precedes(
                best[row], nearest[row], row, best[chosen], nearest[chosen], chosen
            ):
                chosen = row
        left[edge], right[edge], lengths[edge] = nearest[chosen], chosen, best[chosen]
        is_in[chosen] = True
        current = chosen


def tree_of_distances(distances: np.ndarray) -> Tree:
    """Return the minimum spanning tree of a symmetric matrix of distances, by Prim's algorithm.

    Examples
    --------
    >>> tree_of_distances(np.array([[0.0, 1, 9], [1, 0, 2], [9, 2, 0]])).squared.tolist()
    [1.0, 4.0]
    """
    n_edges = len(distances) - 1
    left, right = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    lengths = np.empty(n_edges)
    _prim(distances, left, right, lengths)
    return Tree(left, right, lengths**2)
