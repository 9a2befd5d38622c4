"""The nearest row of another component, exactly, for rows whose list of nearest rows gave out.

Two ways, one answer: against all rows in tiles, or against the cells that can hold a row near
enough. Either way 32-bit products choose candidates, exact distances decide, and rows for which
the error of the products leaves a doubt are searched once more in 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from vecfill.method.blocks import parallel_map, row_blocks
from vecfill.method.cell_neighbors import N_NEXT, QUERIES
from vecfill.method.cells import MAX_WIDTH, Cells, next_cells
from vecfill.method.distances import (
    DistanceBlock,
    Lifted,
    Rows,
    distances_from,
    lifted,
    pair_distances,
    product_error,
)
from vecfill.method.neighbors import TILE, Neighbors, careful_blocks
from vecfill.method.scans import scan_outside

N_KEPT = 4
"""Candidates a searching row keeps: room for rounding to swap a few before we look closer."""

N_NEAR = 2
"""Cells looked at for a first edge, which makes a bound for the search that proves."""


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
    position: np.ndarray, row: np.ndarray, other: np.ndarray, squared: np.ndarray, n_queries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each query, its first edge in the strict order: other end and length."""
    low, high = np.minimum(row, other), np.maximum(row, other)
    order = np.lexsort((high, low, squared, position))
    found, first = np.unique(position[order], return_index=True)
    index = np.full(n_queries, -1, np.int64)
    length = np.full(n_queries, np.inf)
    index[found] = other[order[first]]
    length[found] = squared[order[first]]
    return index, length


class _Kept:
    """The candidates that a block of queries keeps, and what the products can miss."""

    def __init__(self, lift: Lifted, places: np.ndarray, bounds: np.ndarray) -> None:
        relative, absolute = product_error(lift.n_features, np.float32)
        with np.errstate(over="ignore"):
            partner = 0.5 * (lift.lengths[places] + np.sqrt(bounds)) ** 2
        partner = np.minimum(partner, lift.half_squares.max())
        self.error = relative * (lift.half_squares[places] + partner) + absolute
        floor = np.nextafter(-0.5 * (bounds + self.error), -np.inf).astype(np.float32)
        floor = np.nextafter(floor, np.float32(-np.inf))
        self.values = np.repeat(floor[:, None], N_KEPT, axis=1)
        self.indices = np.full(self.values.shape, -1, np.int64)

    def shortest_at_most(self) -> float:
        """Return a squared length that the shortest edge of all these queries does not exceed."""
        has_any = self.indices[:, 0] >= 0
        shortest = -2.0 * self.values[has_any, 0].astype(np.float64) + self.error[has_any]
        return float(shortest.min(initial=np.inf))

    def edges(self, rows: Rows, queries: np.ndarray, row_at: np.ndarray | None):
        """Return first edges, lengths, and for whom the error of the products leaves a doubt."""
        position, rank = np.nonzero(self.indices >= 0)
        other = self.indices[position, rank]
        other = other if row_at is None else row_at[other]
        length = pair_distances(rows, rows, queries[position], other)
        index, squared = first_edges(position, queries[position], other, length, queries.size)
        unlisted_at_least = -2.0 * self.values[:, -1].astype(np.float64) - self.error
        is_doubtful = (self.indices[:, -1] >= 0) & (squared >= unlisted_at_least)
        return index, squared, is_doubtful


class OutsideSearch(ABC):
    """Looks for the nearest row of another component."""

    def __init__(self, rows: Rows, n_jobs: int | None) -> None:
        self.rows = rows
        self.n_jobs = n_jobs
        self._block_of: DistanceBlock | None = None

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
        index = np.full(queries.size, -1, np.int64)
        squared = np.full(queries.size, np.inf)
        sure_to = bounds.copy()
        doubtful = np.sort(self._search(queries, bounds, component, index, squared, sure_to))
        if doubtful.size:
            found = self._carefully(queries[doubtful], bounds[doubtful], component)
            index[doubtful], squared[doubtful] = found
        # All edges up to and with the bound are found, so the next one is longer.
        return Found(index, squared, np.minimum(squared, np.nextafter(sure_to, np.inf)))

    @abstractmethod
    def _search(
        self,
        queries: np.ndarray,
        bounds: np.ndarray,
        component: np.ndarray,
        index: np.ndarray,
        squared: np.ndarray,
        sure_to: np.ndarray,
    ) -> np.ndarray:
        """Write what products find; return the places of the queries that are left in doubt."""

    def _carefully(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Search in 64 bits, looking at every candidate within the error."""
        if self._block_of is None:
            self._block_of = distances_from(self.rows)
        block_of = self._block_of

        def search(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mine = queries[part]
            squared, error = block_of(self.rows[mine])
            squared[component[mine][:, None] == component] = np.inf
            limit = np.minimum((squared + error).min(axis=1), bounds[part])
            position, other = np.nonzero(squared - error <= limit[:, None])
            row = mine[position]
            length = pair_distances(self.rows, self.rows, row, other)
            return first_edges(position, row, other, length, part.size)

        parts = careful_blocks(np.arange(queries.size), self.rows.shape[0])
        found = parallel_map(search, parts, n_jobs=self.n_jobs)
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


class TileSearch(OutsideSearch):
    """Searches all rows in tiles, those with the least reach first."""

    def __init__(self, rows: Rows, reach: np.ndarray, n_jobs: int | None) -> None:
        super().__init__(rows, n_jobs)
        self.by_reach = np.argsort(reach, kind="stable")
        self.sorted_reach = reach[self.by_reach]
        self.lift = None if issparse(rows) else lifted(rows, order=self.by_reach, n_jobs=n_jobs)
        self.place = np.empty_like(self.by_reach)
        self.place[self.by_reach] = np.arange(self.by_reach.size)

    def _search(self, queries, bounds, component, index, squared, sure_to):
        del sure_to
        order = np.argsort(bounds, kind="stable")
        lift = self.lift
        if lift is None:
            return order
        theirs = component[self.by_reach]

        def search(part: np.ndarray) -> np.ndarray:
            places = self.place[queries[part]]
            kept = _Kept(lift, places, bounds[part])
            swapped = lift.swapped(places)
            n_targets = int(np.searchsorted(self.sorted_reach, bounds[part].max(), side="right"))
            for block in row_blocks(n_targets, MAX_WIDTH):
                products = swapped @ lift.points[block].T
                lists = (kept.values, kept.indices)
                scan_outside(products, theirs[places], theirs[block], block.start, *lists)
            edges = kept.edges(self.rows, queries[part], self.by_reach)
            index[part], squared[part], is_doubtful = edges
            return part[is_doubtful]

        parts = [order[block] for block in row_blocks(order.size, TILE)]
        return np.concatenate(parallel_map(search, parts, n_jobs=self.n_jobs))


class CellSearch(OutsideSearch):
    """Searches only cells that can hold a row of another component within the bound."""

    def __init__(
        self, rows: np.ndarray, reach: np.ndarray, cells: Cells, n_jobs: int | None
    ) -> None:
        super().__init__(rows, n_jobs)
        self.cells = cells
        self.place = np.empty_like(cells.order)
        self.place[cells.order] = np.arange(cells.order.size)
        self.least_reach = np.minimum.reduceat(reach[cells.order], cells.starts[:-1])

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an edge out for each query that has one to the nearest cells."""
        index = np.full(queries.size, -1, np.int64)
        squared = np.full(queries.size, np.inf)
        theirs, only = self._components(component)

        def search(part: np.ndarray) -> None:
            cell, places, kept = self._begin(queries[part], bounds[part])
            others = np.flatnonzero(only != theirs[places[0]])
            chosen = others[np.argsort(self.cells.gaps[cell, others], kind="stable")[:N_NEAR]]
            swapped, every = self.cells.lift.swapped(places), slice(None)
            self._meet(swapped, places, np.sort(chosen), theirs, kept, every)
            edges = kept.edges(self.rows, queries[part], self.cells.order)
            index[part], squared[part] = edges[0], edges[1]

        parallel_map(search, self._parts(queries), n_jobs=self.n_jobs)
        return index, squared

    def _search(self, queries, bounds, component, index, squared, sure_to):
        theirs, only = self._components(component)

        def search(part: np.ndarray) -> np.ndarray:
            cell, places, kept = self._begin(queries[part], bounds[part])
            sure_to[part] = self._meet_needed(cell, places, bounds[part], theirs, only, kept)
            edges = kept.edges(self.rows, queries[part], self.cells.order)
            index[part], squared[part], is_doubtful = edges
            return part[is_doubtful]

        return np.concatenate(parallel_map(search, self._parts(queries), n_jobs=self.n_jobs))

    def _components(self, component: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the component at each position, and of each cell if it has but one, else -1."""
        theirs = component[self.cells.order]
        lowest = np.minimum.reduceat(theirs, self.cells.starts[:-1])
        highest = np.maximum.reduceat(theirs, self.cells.starts[:-1])
        return theirs, np.where(lowest == highest, lowest, -1)

    def _parts(self, queries: np.ndarray) -> list[np.ndarray]:
        """Cut queries in parts of one cell each."""
        places = self.place[queries]
        order = np.argsort(places, kind="stable")
        cell = self.cells.cell_of(places[order])
        ends = np.append(np.flatnonzero(np.diff(cell)) + 1, order.size)
        starts = np.concatenate([[0], ends[:-1]])
        return [
            order[start:stop][block]
            for start, stop in zip(starts, ends, strict=True)
            for block in row_blocks(int(stop - start), QUERIES)
        ]

    def _begin(self, queries: np.ndarray, bounds: np.ndarray) -> tuple[int, np.ndarray, _Kept]:
        places = self.place[queries]
        cell = int(self.cells.cell_of(places[:1])[0])
        return cell, places, _Kept(self.cells.lift, places, bounds)

    def _meet(self, swapped, places, chosen, theirs, kept, some) -> None:
        """Let some of the queries keep the best of the chosen cells."""
        values, indices = kept.values[some], kept.indices[some]
        for run in self.cells.runs(chosen):
            products = swapped[some] @ self.cells.lift.points[run].T
            mine = theirs[places[some]]
            scan_outside(products, mine, theirs[run], run.start, values, indices)
        kept.values[some], kept.indices[some] = values, indices

    def _meet_needed(self, cell, places, bounds, theirs, only, kept) -> np.ndarray:
        """Meet every cell that can matter; return how far each query has then seen all."""
        cells = self.cells
        mine = theirs[places]
        is_one = bool((mine == mine[0]).all())
        all_cells = np.arange(cells.n_cells)
        limits, gaps = cells.limits(cell, all_cells), cells.gaps[cell]
        widest = cells.radii(bounds.max(keepdims=True))
        is_open = (limits - cells.leans[cell] <= widest * gaps) & (self.least_reach <= bounds.max())
        if is_one:
            is_open &= only != mine[0]
        others = np.flatnonzero(is_open)
        if others.size == 0:
            return bounds
        swapped = cells.lift.swapped(places)
        leans = cells.leans_of(swapped, cell, others)
        limits, gaps = limits[others], np.ascontiguousarray(gaps[others])
        is_open = np.ones(others.size, np.uint8)
        n_next = N_NEXT // 2
        while True:
            if is_one:
                bounds = np.minimum(bounds, kept.shortest_at_most())
            radii = cells.radii(bounds)
            chosen, some = next_cells(leans, limits, gaps, radii, is_open, n_next)
            if chosen.size == 0:
                return bounds
            self._meet(swapped, places, others[chosen], theirs, kept, some)
            n_next *= 2


def outside_search(
    rows: Rows, neighbors: Neighbors, cells: Cells | None, *, n_jobs: int | None
) -> OutsideSearch:
    """Return the search for these rows: by cells if there are any, else by tiles."""
    if cells is None:
        return TileSearch(rows, neighbors.reach, n_jobs)
    return CellSearch(rows, neighbors.reach, cells, n_jobs)
