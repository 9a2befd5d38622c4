"""The nearest row of another component, exactly, for rows whose list of nearest rows gave out.

Two ways, one answer: against all rows in tiles, or against the cells that can hold a row near
enough. Either way 32-bit products choose candidates, exact distances decide, and rows for which
the error of the products leaves a doubt are searched once more in 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import issparse

from vecfill.method.engine import Workers, fill, parallel_map, row_blocks
from vecfill.method.search.cell_search import Components, search_cells
from vecfill.method.search.cells import MAX_WIDTH, Cells
from vecfill.method.search.distances import (
    Lifted,
    Rows,
    Targets,
    as_targets,
    lifted,
    pair_distances,
    product_error,
)
from vecfill.method.search.neighbors import TILE, Neighbors, careful_blocks
from vecfill.method.search.scans import scan_rows

# A guess: two could be swapped by rounding, and four hardly ever are not enough.
N_KEPT = 4
"""Candidates a searching row keeps: room for rounding to swap a few before we look closer."""

# A guess.
N_NEAR = 2
"""Cells looked at for a first edge, which makes a bound for the search that proves."""

# A guess; half of what nearest rows take, since one edge is looked for and not many.
N_NEXT = 8
"""Cells met in the first batch of the search that proves."""

DECIDED_AT_ONCE = 8192
"""Queries whose candidates are decided between together."""


@dataclass(frozen=True)
class Found:
    """What a search found for each query."""

    index: np.ndarray
    """The row at the other end of its first edge out of the component, or -1."""
    squared: np.ndarray
    """The squared length of that edge, or infinity."""
    sure_to: np.ndarray
    """No edge out that was not found is shorter than this."""


def first_edges(
    position: np.ndarray,
    row: np.ndarray,
    other_ends: np.ndarray,
    squared: np.ndarray,
    n_queries: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each query, its first edge in the strict order: other end and length."""
    low, high = np.minimum(row, other_ends), np.maximum(row, other_ends)
    order = np.lexsort((high, low, squared, position))
    answered, first = np.unique(position[order], return_index=True)
    index = np.full(n_queries, -1, np.int64)
    length = np.full(n_queries, np.inf)
    index[answered] = other_ends[order[first]]
    length[answered] = squared[order[first]]
    return index, length


class _Kept:
    """The candidates that queries keep, and what the products can miss."""

    def __init__(self, lift: Lifted, places: np.ndarray, bounds: np.ndarray) -> None:
        relative, absolute = product_error(lift.n_features, np.float32)
        with np.errstate(over="ignore"):
            # The other end is at most the bound away, which bounds its length and so the error.
            partner = 0.5 * (lift.lengths[places] + np.sqrt(bounds)) ** 2
        partner = np.minimum(partner, lift.half_squares.max())
        self.errors = relative * (lift.half_squares[places] + partner) + absolute
        # What is farther than the bound is never kept; rounded down in 64 bits and in 32.
        floor = np.nextafter(-0.5 * (bounds + self.errors), -np.inf).astype(np.float32)
        floor = np.nextafter(floor, np.float32(-np.inf))
        self.values = np.repeat(floor[:, None], N_KEPT, axis=1)
        self.indices = np.full(self.values.shape, -1, np.int32)

    @contextmanager
    def lists_of(self, part: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Lend the lists of some queries, to be changed in place."""
        lists = self.values[part], self.indices[part]
        yield lists
        self.values[part], self.indices[part] = lists


class OutsideSearch(ABC):
    """Looks for the nearest row of another component."""

    def __init__(
        self,
        rows: Rows,
        lift: Lifted | None,
        row_at: np.ndarray,
        n_jobs: Workers,
        numbers: np.ndarray | None = None,
    ) -> None:
        self.rows = rows
        self.numbers = numbers
        """Row numbers, which break ties and name the other end; by default the places of rows."""
        self.lift = lift
        """All rows in some order, `row_at`, ready for products; none for sparse rows."""
        self.row_at = row_at
        self.place = np.empty(row_at.size, np.int32)
        self.place[row_at] = np.arange(row_at.size)
        self.n_jobs = n_jobs
        self._targets: Targets | None = None

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an edge out for each query where one is quickly found: other end and length."""
        del bounds, component
        return np.full(queries.size, -1, np.int64), np.full(queries.size, np.inf)

    def outside(self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray) -> Found:
        """Return each query's first edge to another component no longer than its bound.

        A pair in neither row's list is at least as long as both reaches, so a row with a reach
        beyond the bound is no target. Only the shortest edge of a component is asked for, so a
        query may stop at an edge that another row of its component has found.
        """
        if self.lift is None:
            index, squared = self._carefully(queries, bounds, component)
            return Found(index, squared, np.minimum(squared, np.nextafter(bounds, np.inf)))
        places, sure_to = self.place[queries], bounds.copy()
        candidates = _Kept(self.lift, places, bounds)
        self._search(places, sure_to, component[self.row_at].astype(np.int32), candidates)
        index, squared = self._edges(queries, candidates)
        unlisted_at_least = -2.0 * candidates.values[:, -1].astype(np.float64) - candidates.errors
        doubtful = np.flatnonzero((candidates.indices[:, -1] >= 0) & (squared >= unlisted_at_least))
        if doubtful.size:
            exact_edges = self._carefully(queries[doubtful], bounds[doubtful], component)
            index[doubtful], squared[doubtful] = exact_edges
        # All edges up to and with the bound are found, so the next one is longer.
        return Found(index, squared, np.minimum(squared, np.nextafter(sure_to, np.inf)))

    @abstractmethod
    def _search(
        self, places: np.ndarray, bounds: np.ndarray, theirs: np.ndarray, candidates: _Kept
    ) -> None:
        """Let queries at these places keep candidates; lower bounds to how far all is seen."""

    def _edges(self, queries: np.ndarray, candidates: _Kept) -> tuple[np.ndarray, np.ndarray]:
        """Return the first edge of each query among its candidates: other end and length."""
        index = np.empty(queries.size, np.int64)
        squared = np.empty(queries.size)
        decide = partial(_decide, self.rows, self.numbers, self.row_at, queries, candidates.indices)
        blocks = row_blocks(queries.size, DECIDED_AT_ONCE)
        fill([index, squared], decide, blocks, n_jobs=self.n_jobs)
        return index, squared

    def _carefully(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Search in 64 bits, looking at every candidate within the error."""
        if self._targets is None:
            self._targets = as_targets(self.rows)
        about = (self.numbers, component, queries, bounds)
        search = partial(_search_carefully, self._targets, *about)
        parts = careful_blocks(np.arange(queries.size), self.rows.shape[0])
        edges = parallel_map(search, parts, n_jobs=self.n_jobs)
        return np.concatenate([f[0] for f in edges]), np.concatenate([f[1] for f in edges])


def _numbered(numbers: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    return rows if numbers is None else numbers[rows]


def _decide(
    rows: np.ndarray,
    numbers: np.ndarray | None,
    row_at: np.ndarray,
    queries: np.ndarray,
    candidates: np.ndarray,
    block: slice,
    index: np.ndarray,
    squared: np.ndarray,
) -> None:
    """Write the first edge of some queries among their candidates: other end and length."""
    position, rank = np.nonzero(candidates[block] >= 0)
    row = queries[block][position]
    other_ends = row_at[candidates[block][position, rank]]
    length = pair_distances(rows, rows, row, other_ends)
    row, other_ends = _numbered(numbers, row), _numbered(numbers, other_ends)
    index[:], squared[:] = first_edges(position, row, other_ends, length, index.size)


def _search_carefully(
    targets: Targets,
    numbers: np.ndarray | None,
    component: np.ndarray,
    queries: np.ndarray,
    bounds: np.ndarray,
    part: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    rows, mine = targets.targets, queries[part]
    squared, error = targets.squared_from(rows[mine])
    squared[component[mine][:, None] == component] = np.inf
    limit = np.minimum((squared + error).min(axis=1), bounds[part])
    position, other_ends = np.nonzero(squared - error <= limit[:, None])
    row = mine[position]
    length = pair_distances(rows, rows, row, other_ends)
    row, other_ends = _numbered(numbers, row), _numbered(numbers, other_ends)
    return first_edges(position, row, other_ends, length, part.size)


def _search_tiles(
    lift: Lifted,
    theirs: np.ndarray,
    queries: tuple[np.ndarray, int],
    values: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Let queries at some places keep the best of the first rows; how many is given with them."""
    places, n_targets = queries
    swapped, mine = lift.swapped(places), theirs[places]
    rows = np.arange(places.size, dtype=np.int32)
    for block in row_blocks(n_targets, MAX_WIDTH):
        products = swapped @ lift.points[block].T
        scan_rows(products, rows, block.start, mine, theirs, values, indices)


class TileSearch(OutsideSearch):
    """Searches all rows in tiles, those with the least reach first."""

    def __init__(self, rows: Rows, reach: np.ndarray, n_jobs: Workers) -> None:
        # Rows with a reach beyond the bound are no targets; in this order they come last.
        by_reach = np.argsort(reach, kind="stable")
        lift = None if issparse(rows) else lifted(rows, order=by_reach, n_jobs=n_jobs)
        super().__init__(rows, lift, by_reach, n_jobs)
        self.sorted_reach = reach[by_reach]

    def _search(self, places, bounds, theirs, candidates):
        assert self.lift is not None
        # Queries with like bounds share the rows that they must look at.
        order = np.argsort(bounds, kind="stable")
        blocks = row_blocks(order.size, TILE)
        widest = np.array([bounds[order[block]].max() for block in blocks])
        n_targets = np.searchsorted(self.sorted_reach, widest, side="right").tolist()
        items = [(places[order[block]], n) for block, n in zip(blocks, n_targets, strict=True)]
        with candidates.lists_of(order) as lists:
            search = partial(_search_tiles, self.lift, theirs)
            fill(lists, search, blocks, items=items, n_jobs=self.n_jobs)


class CellSearch(OutsideSearch):
    """Searches only cells that can hold a row of another component within the bound."""

    def __init__(
        self,
        rows: np.ndarray,
        reach: np.ndarray,
        cells: Cells,
        n_jobs: Workers,
        numbers: np.ndarray | None = None,
    ) -> None:
        super().__init__(rows, cells.lift, cells.order, n_jobs, numbers)
        self.cells = cells
        self.least_reach = np.minimum.reduceat(reach[cells.order], cells.starts[:-1])

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an edge out for each query that has one to the nearest cells."""
        places = self.place[queries]
        candidates = _Kept(self.cells.lift, places, bounds)
        theirs = component[self.row_at].astype(np.int32)
        self._meet(places, bounds.copy(), theirs, candidates, n_first=N_NEAR, n_next=0)
        return self._edges(queries, candidates)

    def _search(self, places, bounds, theirs, candidates):
        self._meet(places, bounds, theirs, candidates, n_first=0, n_next=N_NEXT)

    def _meet(self, places, bounds, theirs, candidates, *, n_first: int, n_next: int) -> None:
        cells = self.cells
        lowest = np.minimum.reduceat(theirs, cells.starts[:-1])
        highest = np.maximum.reduceat(theirs, cells.starts[:-1])
        # Cells are searched in the order of positions.
        order = np.argsort(places, kind="stable")
        components = Components(
            theirs=theirs,
            only=np.where(lowest == highest, lowest, np.int32(-1)),
            least_reach=self.least_reach,
            bounds=bounds[order],
            errors=candidates.errors[order],
        )
        options = {"n_first": n_first, "n_next": n_next, "components": components}
        with candidates.lists_of(order) as lists:
            search_cells(cells, places[order], lists, **options, n_jobs=self.n_jobs)
        bounds[order] = components.bounds


def outside_search(
    rows: Rows, neighbors: Neighbors, cells: Cells | None, *, n_jobs: Workers
) -> OutsideSearch:
    """Return the search for these rows: by cells if there are any, else by tiles."""
    if cells is None:
        return TileSearch(rows, neighbors.reach, n_jobs)
    return CellSearch(rows, neighbors.reach, cells, n_jobs)
