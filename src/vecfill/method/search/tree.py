"""The minimum spanning tree of rows: exact, unique, without the matrix of their distances.

Borůvka's algorithm over the lists of nearest rows. Each component takes its shortest edge to
another one. The lists nearly always hold it; when some row of the component has a list too short
to prove that (its `reach` is no longer than the edge), that row searches all other rows, in
blocks. Edges are ordered by (squared distance, smaller row, larger row), a strict order, so the
tree is unique and no rounding or number of threads can change it.

Edges may also come in parts. By the cycle property an edge that is not in the minimum spanning
forest of its own part is not in that of the whole. So each part keeps its forest, about two edges a
row, and the forest of all these is the forest of all listed edges. The shortest listed edge out of
any set of rows is in it, which is all that growing the tree asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from vecfill.machine.compiled import compiled, compiled_part
from vecfill.method.engine import Workers
from vecfill.method.search.cells import Cells
from vecfill.method.search.distances import Rows
from vecfill.method.search.neighbors import Neighbors
from vecfill.method.search.tree_search import Found, outside_search


@dataclass(frozen=True)
class Tree:
    """The ``n_rows - 1`` edges of a spanning tree."""

    left: np.ndarray
    right: np.ndarray
    squared: np.ndarray
    """Squared lengths of the edges, 64-bit."""


@compiled_part
def root(parent, node):
    """Return the row that stands for a node's component, and shorten the way there."""
    while parent[node] != node:
        # Halves the way for whoever comes next; no second pass and no recursion.
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@compiled_part
def _precedes(squared, i, j, other_squared, other_i, other_j):
    """Tell whether edge (i, j) comes before another in the strict order of edges."""
    # No edge yet (-1) loses to any edge.
    if squared != other_squared or other_i < 0:
        return squared < other_squared or other_i < 0
    low, other_low = min(i, j), min(other_i, other_j)
    if low != other_low:
        return low < other_low
    return max(i, j) < max(other_i, other_j)


@compiled_part
def offer(best, ends, component, squared, i, j):
    """Let a component know of an edge that leaves it; it keeps the first in the strict order."""
    if _precedes(squared, i, j, best[component], ends[component, 0], ends[component, 1]):
        best[component] = squared
        ends[component, 0] = i
        ends[component, 1] = j


@compiled
def _shortest_edges(indices, squared, component, n_components, out_index, out_squared):
    """Return the shortest seen edge that leaves each component: its length and ends."""
    n_rows, n_listed = indices.shape
    best, ends = np.empty(n_components), np.empty((n_components, 2), np.int64)
    for mine in range(n_components):
        best[mine] = np.inf
        ends[mine, 0] = ends[mine, 1] = -1
    for row in range(n_rows):
        mine = component[row]
        for rank in range(n_listed):
            neighbor = np.int64(indices[row, rank])  # one type of number: `offer` is compiled once
            if component[neighbor] != mine:
                offer(best, ends, mine, squared[row, rank], row, neighbor)
                offer(best, ends, component[neighbor], squared[row, rank], row, neighbor)
        neighbor = out_index[row]
        if neighbor >= 0 and component[neighbor] != mine:
            offer(best, ends, mine, out_squared[row], row, neighbor)
            offer(best, ends, component[neighbor], out_squared[row], row, neighbor)
    return best, ends


@compiled
def join(component, may_choose, best, ends, tails, heads, squared, n_edges):
    """Add the chosen edges, relabel the components; return the counts of edges and components."""
    n_components = best.size
    parent, label = np.empty(n_components, np.int64), np.empty(n_components, np.int64)
    for chooser in range(n_components):
        parent[chooser] = chooser
        label[chooser] = -1
    for chooser in range(n_components):
        if may_choose[chooser] and ends[chooser, 0] >= 0:
            a = root(parent, component[ends[chooser, 0]])
            b = root(parent, component[ends[chooser, 1]])
            if a != b:
                # The smaller row stands for both: labels do not depend on the order of edges.
                parent[max(a, b)] = min(a, b)
                tails[n_edges], heads[n_edges] = ends[chooser, 0], ends[chooser, 1]
                squared[n_edges] = best[chooser]
                n_edges += 1
    n_left = 0
    for chooser in range(n_components):
        top = root(parent, chooser)
        if label[top] < 0:
            label[top] = n_left
            n_left += 1
        label[chooser] = label[top]
    for row in range(component.size):
        component[row] = label[component[row]]
    return n_edges, n_left


class SeenEdges:
    """The edges out of each row's component that searches have found, the first of each row."""

    def __init__(self, n_rows: int) -> None:
        self.index = np.full(n_rows, -1, np.int64)
        self.squared = np.full(n_rows, np.inf)

    def add(
        self, rows: np.ndarray, index: np.ndarray, squared: np.ndarray, component: np.ndarray
    ) -> None:
        """Remember these edges where they come before what is there, or that is inside now."""
        old, old_squared = self.index[rows], self.squared[rows]
        is_stale = (old < 0) | (component[old] == component[rows])
        is_first = (squared < old_squared) | ((squared == old_squared) & (index < old))
        better = (index >= 0) & (is_stale | is_first)
        self.index[rows[better]] = index[better]
        self.squared[rows[better]] = squared[better]


def who_searches(component: np.ndarray, n_components: int) -> np.ndarray:
    """Return which components search; larger ones may wait, smaller ones' choices join them."""
    sizes = np.bincount(component, minlength=n_components)
    may_search = sizes <= np.sort(sizes)[(n_components - 1) // 2]
    may_search[np.argmax(sizes)] = False
    if not may_search.any():
        may_search[np.arange(n_components) != np.argmax(sizes)] = True
    return may_search


def minimum_spanning_tree(
    rows: Rows, neighbors: Neighbors, *, cells: Cells | None = None, n_jobs: Workers = None
) -> Tree:
    """Return the exact Euclidean minimum spanning tree of distinct rows.

    `cells`, if given, save time where lists give out; the tree is the same.

    Examples
    --------
    >>> from vecfill.method.search.neighbors import exact_neighbors
    >>> rows = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> tree = minimum_spanning_tree(rows, exact_neighbors(rows, n_neighbors=1))
    >>> sorted(tree.squared.tolist())
    [1.0, 1.0, 16.0]
    """
    return grown_tree(
        neighbors.reach,
        partial(_shortest_edges, neighbors.indices, neighbors.squared),
        partial(outside_search, rows, neighbors, cells, n_jobs=n_jobs),
    )


@runtime_checkable
class Outside(Protocol):
    """Looks for the nearest row of another component."""

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an edge out for each query where one is quickly found: other end and length."""
        ...

    def outside(self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray) -> Found:
        """Return each query's first edge to another component no longer than its bound."""
        ...


def grown_tree(
    reach: np.ndarray,
    shortest_edges: Callable[..., tuple[np.ndarray, np.ndarray]],
    make_search: Callable[[], Outside],
) -> Tree:
    """Return the tree that grows from edges that are listed, and from searches where they end.

    `shortest_edges` tells the shortest listed edge out of each component; no edge that is not
    listed is shorter than the `reach` of either of its rows.
    """
    n_rows = reach.size
    component = np.arange(n_rows)
    n_components, n_edges = n_rows, 0
    tails, heads = np.empty(n_rows - 1, np.int64), np.empty(n_rows - 1, np.int64)
    squared = np.empty(n_rows - 1)
    reach = reach.copy()
    seen_to = SeenEdges(n_rows)
    search: Outside | None = None
    while n_components > 1:
        best, ends = shortest_edges(component, n_components, seen_to.index, seen_to.squared)
        may_search = who_searches(component, n_components)
        is_unsure = reach <= best[component]
        queries = np.flatnonzero(is_unsure & may_search[component])
        if queries.size:
            search = search or make_search()
            near = search.near(queries, best[component[queries]], component)
            seen_to.add(queries, *near, component)
            # A first edge out lowers the bound of the whole component: fewer rows are unsure.
            best, ends = shortest_edges(component, n_components, seen_to.index, seen_to.squared)
            is_unsure = reach <= best[component]
            queries = np.flatnonzero(is_unsure & may_search[component])
        if search is not None and queries.size:
            searched = search.outside(queries, best[component[queries]], component)
            seen_to.add(queries, searched.index, searched.squared, component)
            reach[queries] = searched.sure_to
            best, ends = shortest_edges(component, n_components, seen_to.index, seen_to.squared)
            # They have searched everything within the bound, so they are sure now.
            is_unsure[queries] = False
        may_choose = np.ones(n_components, np.bool_)
        # A component with an unsure row waits: a shorter edge may still be found.
        may_choose[component[is_unsure]] = False
        n_edges, n_components = join(
            component, may_choose, best, ends, tails, heads, squared, n_edges
        )
    assert n_edges == n_rows - 1
    return Tree(tails, heads, squared)


@compiled
def _prim(distances, tails, heads, lengths):
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
        tails[edge], heads[edge], lengths[edge] = nearest[chosen], chosen, best[chosen]
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
    tails, heads = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    lengths = np.empty(n_edges)
    _prim(distances, tails, heads, lengths)
    return Tree(tails, heads, lengths**2)


EDGE = np.dtype([("squared", np.float64), ("low", np.int32), ("high", np.int32)])
"""An edge of squared length and two rows, the lower number first."""


@compiled
def _first_to_join(low, high, n_rows):
    """Tell which edges of a sorted list join two components."""
    parent = np.arange(n_rows)
    joins = np.zeros(low.size, np.bool_)
    for edge in range(low.size):
        a, b = root(parent, low[edge]), root(parent, high[edge])
        if a != b:
            parent[max(a, b)] = min(a, b)
            joins[edge] = True
    return joins


@compiled
def _shortest_listed(low, high, squared, component, n_components, out_index, out_squared):
    """Return the shortest edge that leaves each component, listed or found by a search."""
    best = np.full(n_components, np.inf)
    ends = np.full((n_components, 2), -1)
    for edge in range(low.size):
        i, j = low[edge], high[edge]
        if component[i] != component[j]:
            offer(best, ends, component[i], squared[edge], i, j)
            offer(best, ends, component[j], squared[edge], i, j)
    for row in range(component.size):
        neighbor = out_index[row]
        if neighbor >= 0 and component[neighbor] != component[row]:
            offer(best, ends, component[row], out_squared[row], row, neighbor)
            offer(best, ends, component[neighbor], out_squared[row], row, neighbor)
    return best, ends


def edges_of_lists(rows: np.ndarray, numbers: np.ndarray, squared: np.ndarray) -> np.ndarray:
    """Return the edges from rows to the rows that they list; -1 is none.

    Examples
    --------
    >>> edges_of_lists(np.array([4]), np.array([[2, -1]]), np.array([[9.0, np.inf]])).tolist()
    [(9.0, 2, 4)]
    """
    place, rank = np.nonzero(numbers >= 0)
    edges = np.empty(place.size, EDGE)
    mine, neighbors = rows[place], numbers[place, rank]
    edges["squared"] = squared[place, rank]
    edges["low"], edges["high"] = np.minimum(mine, neighbors), np.maximum(mine, neighbors)
    return edges


def spanning_forest(edges: np.ndarray) -> np.ndarray:
    """Return the minimum spanning forest of some edges, by (length, low, high).

    Examples
    --------
    >>> edges = np.array([(1.0, 0, 1), (2.0, 0, 2), (2.0, 1, 2)], EDGE)
    >>> spanning_forest(edges).tolist()
    [(1.0, 0, 1), (2.0, 0, 2)]
    """
    # The strict order of edges, on which all parts agree.
    order = np.lexsort((edges["high"], edges["low"], edges["squared"]))
    edges = edges[order]
    rows, ends = np.unique(np.concatenate([edges["low"], edges["high"]]), return_inverse=True)
    low, high = ends[: edges.size], ends[edges.size :]
    return edges[_first_to_join(low, high, rows.size)]


def tree_of_forest(forest: np.ndarray, reach: np.ndarray, search: Outside) -> Tree:
    """Return the spanning tree of all rows: the forest's edges, and what searches find between.

    It is the exact minimum spanning tree if no pair that is not listed is nearer than the `reach`
    of either row, and if the search is exact.

    Examples
    --------
    >>> from vecfill.method.search.tree_search import TileSearch
    >>> forest, reach = np.array([(1.0, 0, 1)], EDGE), np.ones(3)
    >>> search = TileSearch(np.array([[0.0], [1.0], [3.0]]), reach, None)
    >>> tree_of_forest(forest, reach, search).squared.tolist()
    [1.0, 4.0]
    """
    columns = (np.ascontiguousarray(forest[name]) for name in ("low", "high", "squared"))
    return grown_tree(reach, partial(_shortest_listed, *columns), lambda: search)
