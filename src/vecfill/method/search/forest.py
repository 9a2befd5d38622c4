"""The minimum spanning tree of rows whose edges come in parts.

By the cycle property an edge that is not in the minimum spanning forest of its own part is not in
that of the whole. So each part keeps its forest, about two edges a row, and the forest of all these
is the forest of all listed edges. The shortest listed edge out of any set of rows is in it, which
is all that growing the tree asks for.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vecfill.machine.compiled import compiled
from vecfill.method.search.tree import Outside, Tree, grown_tree, offer, root

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
        other = out_index[row]
        if other >= 0 and component[other] != component[row]:
            offer(best, ends, component[row], out_squared[row], row, other)
            offer(best, ends, component[other], out_squared[row], row, other)
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
    mine, others = rows[place], numbers[place, rank]
    edges["squared"] = squared[place, rank]
    edges["low"], edges["high"] = np.minimum(mine, others), np.maximum(mine, others)
    return edges


def spanning_forest(edges: np.ndarray) -> np.ndarray:
    """Return the minimum spanning forest of some edges, by (length, low, high).

    Examples
    --------
    >>> edges = np.array([(1.0, 0, 1), (2.0, 0, 2), (2.0, 1, 2)], EDGE)
    >>> spanning_forest(edges).tolist()
    [(1.0, 0, 1), (2.0, 0, 2)]
    """
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
