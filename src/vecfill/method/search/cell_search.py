"""Each cell asks near cells first, then those it must: the compiled search that cells are for.

The rows of a cell that search together meet the nearest cells. The worst candidate that a row then
keeps is a radius, and only cells that can hold a row within the radius are met next, nearest
first, while the radius shrinks. Many cells are searched in one compiled call that holds no lock:
threads that came back to Python for every product would spend their time waiting for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from vecfill.machine.compiled import compiled
from vecfill.method.engine import Workers, fill, n_workers, row_blocks
from vecfill.method.search.cells import UNIT, Cells
from vecfill.method.search.scans import scan_columns

# A guess: more would widen the radius that all of them share, fewer make products too small.
QUERIES = 1024
"""Most rows of a cell that search together."""

TILE_ENTRIES = 1 << 18
"""Entries of a tile of products: 1 MB stays in the cache between product and scan."""

# A guess: to copy some queries out costs time as well.
WORTH_SPARING = 0.7
"""Share of queries that need a batch of cells, below which the others are spared it."""

# A guess.
JOBS_PER_THREAD = 16
"""Calls that the work of a thread is cut in, so that all threads end at about the same time."""


@compiled
def radius_of(squared, diameter):
    """Return a distance for comparison with bounds, rounded up and never infinite."""
    # Infinity times a gap of zero would be no number.
    distance = min(np.sqrt(max(squared, 0.0)) * (1.0 + 16 * UNIT), diameter)
    return np.float32(distance) + np.float32(1e-30)


@compiled
def _rows_at(rows, places):
    """Return some rows; written out, because NumPy's ways to say it take seconds to compile."""
    gathered = np.empty((places.size, rows.shape[1]), np.float32)
    for place in range(places.size):
        row = places[place]
        for t in range(rows.shape[1]):
            gathered[place, t] = rows[row, t]
    return gathered


@compiled
def _products(rows, queries):
    """Return the product of every row of `left` with every row of `right`."""
    products = np.empty((rows.shape[0], queries.shape[0]), np.float32)
    np.dot(rows, queries.T, products)
    return products


@compiled
def _meet(points, starts, cells, swapped, queries, mine, theirs, values, indices):
    """Let some queries keep the best rows of these cells; return how many pairs that took."""
    # A cell may be larger than a tile: it is met in parts.
    n_high = max(1, TILE_ENTRIES // queries.size)
    n_met = 0
    for cell in cells:
        for start in range(starts[cell], starts[cell + 1], n_high):
            stop = min(start + n_high, starts[cell + 1])
            products = _products(points[start:stop], swapped)
            scan_columns(products, start, queries, mine, theirs, values, indices)
            n_met += products.size
    return n_met


@compiled
def _set_radii(values, errors, bounds, is_shared, diameter, radii):
    """Write how far each query must look, to its worst candidate or its bound; return the most."""
    # Only the shortest edge of a component is wanted, so what one query has found bounds all.
    if is_shared:
        for query in range(bounds.size):
            bounds[0] = min(bounds[0], -2.0 * np.float64(values[query, 0]) + errors[query])
        bounds[:] = bounds[0]
    widest = np.float32(0.0)
    for query in range(bounds.size):
        worst = -2.0 * np.float64(values[query, -1])
        radii[query] = radius_of(min(worst, bounds[query]), diameter)
        widest = max(widest, radii[query])
    return widest


@compiled
def _within(cell, cells, gaps, limits, widest):
    """Return the cells that can hold a row as near as `widest` to a row of `cell`."""
    near = np.empty(cells.size, np.int64)
    n_near = 0
    for other_cell in cells:
        # The limit back is minus the largest lean of the rows here: the most favourable row.
        if limits[cell, other_cell] + limits[other_cell, cell] <= widest * gaps[cell, other_cell]:
            near[n_near] = other_cell
            n_near += 1
    return near[:n_near]


@compiled
def _next_needed(leans, to_own, limits, gaps, radii, near, is_open, n_next, is_needed):
    """Return the first open cells that a query needs, write who needs any, and close them."""
    chosen = np.empty(min(n_next, near.size), np.int64)
    n_chosen = 0
    is_needed[:] = 0
    for place in range(near.size):
        if n_chosen == n_next:
            break
        if not is_open[place]:
            continue
        lean, limit, gap = leans[place], limits[near[place]], gaps[near[place]]
        n_needing = 0
        for query in range(radii.size):
            # No branch, so that comparisons can become vector instructions.
            needs = np.uint8(limit - (lean[query] - to_own[query]) <= radii[query] * gap)
            is_needed[query] |= needs
            n_needing += needs
        if n_needing > 0:
            # A cell is met once, whoever asked for it.
            is_open[place] = 0
            chosen[n_chosen] = near[place]
            n_chosen += 1
    return chosen[:n_chosen]


@compiled
def _who(is_needed):
    """Return the queries to ask: those in need, or all if most are."""
    queries = np.empty(is_needed.size, np.int64)
    n_some = 0
    for query in range(is_needed.size):
        if is_needed[query]:
            queries[n_some] = query
            n_some += 1
    if n_some <= WORTH_SPARING * queries.size:
        return queries[:n_some]
    for query in range(queries.size):
        queries[query] = query
    return queries


@compiled
def _search(
    points, starts, centres, gaps, limits, diameter,
    cell, waiting, positions, theirs, errors, bounds, n_first, n_next, values, indices,
):  # fmt: skip
    """Search for the rows of one cell at `positions`; return how many pairs that took."""
    n_queries = positions.size
    swapped = _rows_at(points, positions)
    mine = np.empty(n_queries, theirs.dtype)
    is_shared = errors.size > 0
    for query in range(n_queries):
        # See `Lifted.swapped`; written out here, because this runs without Python.
        swapped[query, -2], swapped[query, -1] = swapped[query, -1], swapped[query, -2]
        mine[query] = theirs[positions[query]]
        is_shared &= mine[query] == mine[0]

    is_needed = np.empty(n_queries, np.uint8)
    is_needed[:] = 1
    lists = (mine, theirs, values, indices)
    n_met = _meet(points, starts, waiting[:n_first], swapped, _who(is_needed), *lists)
    if n_next == 0:
        return n_met
    radii = np.empty(n_queries, np.float32)
    widest = _set_radii(values, errors, bounds, is_shared, diameter, radii)
    near = _within(cell, waiting[n_first:], gaps, limits, widest)
    leans = _products(_rows_at(centres, near), swapped)
    to_own = _products(centres[cell : cell + 1], swapped)[0]
    is_open = np.empty(near.size, np.uint8)
    is_open[:] = 1
    while True:
        to_cells = (limits[cell], gaps[cell])
        chosen = _next_needed(leans, to_own, *to_cells, radii, near, is_open, n_next, is_needed)
        if chosen.size == 0:
            return n_met
        queries = _who(is_needed)
        asking = swapped if queries.size == n_queries else _rows_at(swapped, queries)
        n_met += _meet(points, starts, chosen, asking, queries, *lists)
        _set_radii(values, errors, bounds, is_shared, diameter, radii)
        # Batches double, so that their number grows as a logarithm of the cells that are needed.
        n_next *= 2


@compiled
def _waiting(starts, nearest, component, widest, only, least_reach, ring):
    """Return the cells that queries of a component, -1 if of several, may meet; nearest first."""
    waiting = np.empty(nearest.size, np.int64)
    n_waiting = 0
    n_before = 0
    for cell in nearest:
        is_in_ring = ring[0] <= n_before < ring[1]
        n_before += starts[cell + 1] - starts[cell]
        is_other = component < 0 or only[cell] != component
        if is_in_ring and is_other and least_reach[cell] <= widest:
            waiting[n_waiting] = cell
            n_waiting += 1
    return waiting[:n_waiting]


@compiled
def _search_groups(
    points, starts, centres, gaps, limits, nearest, diameter,
    groups, positions, theirs, only, least_reach, ring, errors, bounds, n_first, n_next,
    values, indices,
):  # fmt: skip
    """Search for each of some groups of positions; return how many pairs that took."""
    n_met = 0
    for place in range(len(groups)):
        cell, first, last = groups[place]
        mine = positions[first:last]
        component, widest = theirs[mine[0]], bounds[first]
        for query in range(first, last):
            widest = max(widest, bounds[query])
            if theirs[positions[query]] != component:
                # Queries of several components: no cell belongs to all of them.
                component = np.int32(-1)
        waiting = _waiting(starts, nearest[cell], component, widest, only, least_reach, ring)
        n_met += _search(
            points, starts, centres, gaps, limits, diameter,
            cell, waiting, mine, theirs, errors[first:last], bounds[first:last], n_first, n_next,
            values[first:last], indices[first:last],
        )  # fmt: skip
    return n_met


def _groups(cells: Cells, positions: np.ndarray) -> np.ndarray:
    """Cut ascending positions in groups of one cell each: the cell, the first, and the end."""
    cell = cells.cell_of(positions)
    ends = np.append(np.flatnonzero(np.diff(cell)) + 1, positions.size)
    starts = np.concatenate([[0], ends[:-1]])
    groups = [
        (cell[start], start + block.start, start + block.stop)
        for start, end in zip(starts, ends, strict=True)
        for block in row_blocks(int(end - start), QUERIES)
    ]
    return np.array(groups, np.int64)


@dataclass(frozen=True)
class Components:
    """Who belongs together, so that each query looks for rows of another component only."""

    theirs: np.ndarray
    """(n_rows,) the component at each position."""
    only: np.ndarray
    """(n_cells,) the component of a cell that has but one, else -1."""
    least_reach: np.ndarray
    """(n_cells,) a query with a smaller bound wants no row of the cell."""
    bounds: np.ndarray
    """(n_queries,) squared distances beyond which no row is wanted. Only the nearest row of a
    component is: when one query has found a row, those with it shrink to that, in place."""
    errors: np.ndarray
    """(n_queries,) of the products: a squared distance is at most this much larger."""


def _everyone(cells: Cells, n_queries: int) -> Components:
    """Return components of one row each, all of whose nearest rows are wanted."""
    return Components(
        theirs=np.arange(cells.order.size, dtype=np.int32),
        only=np.full(cells.n_cells, -1, np.int32),
        least_reach=np.zeros(cells.n_cells),
        bounds=np.full(n_queries, np.inf),
        errors=np.empty(0),
    )


def search_cells(
    cells: Cells,
    positions: np.ndarray,
    lists: tuple[np.ndarray, np.ndarray],
    *,
    n_first: int,
    n_next: int,
    ring: tuple[float, float] = (0.0, np.inf),
    components: Components | None = None,
    n_jobs: Workers = None,
) -> int:
    """Let rows at ascending positions keep the best of all others; return the pairs that took.

    Each row meets the `n_first` nearest cells, then those in which a row may be nearer than what
    it keeps, `n_next` at a time at first; with ``n_next=0`` none. Only cells are met that begin
    within a `ring`, counted in rows from the nearest.
    """
    groups = _groups(cells, positions)
    components_of_rows = components or _everyone(cells, positions.size)
    size = max(1, len(groups) // (JOBS_PER_THREAD * n_workers(n_jobs)))
    parts = [groups[block] for block in row_blocks(len(groups), size)]
    blocks = [slice(int(part[0, 1]), int(part[-1, 2])) for part in parts]
    # Groups are numbered from where their own block of queries begins.
    items = [
        (part - [0, block.start, block.start], positions[block], components_of_rows.errors[block])
        for part, block in zip(parts, blocks, strict=True)
    ]
    about_cells = (
        components_of_rows.theirs,
        components_of_rows.only,
        components_of_rows.least_reach,
    )
    search = partial(_search_block, cells, about_cells, ring, (n_first, n_next))
    return sum(
        fill([components_of_rows.bounds, *lists], search, blocks, items=items, n_jobs=n_jobs)
    )


def _search_block(
    cells: Cells,
    about_cells: tuple[np.ndarray, np.ndarray, np.ndarray],
    ring: tuple[float, float],
    n_met_at_once: tuple[int, int],
    queries: tuple[np.ndarray, np.ndarray, np.ndarray],
    bounds: np.ndarray,
    values: np.ndarray,
    indices: np.ndarray,
) -> int:
    groups, positions, errors = queries
    return _search_groups(
        cells.lift.points, cells.starts, cells.centres, cells.gaps, cells.limits,
        cells.nearest, cells.diameter, groups, positions, *about_cells, ring, errors,
        bounds, *n_met_at_once, values, indices,
    )  # fmt: skip


# A guess: eight cells hold more rows than lists usually ask for.
N_FIRST = 8
"""Cells met before any bound is asked for: a radius must come from somewhere."""

# A guess.
N_NEXT = 16
"""Cells met in the first batch after a bound; each batch doubles, so that batches stay few."""

# A guess: by size, so that large and small cells are both asked.
N_PROBES = 8
"""Cells that search before all others, to see whether bounds prune."""


def empty_lists(n_rows: int, n_listed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists that hold nothing yet: products below any, and of no row."""
    # Minus infinity loses to every product, so that the first candidates need no special case.
    values = np.full((n_rows, n_listed), -np.inf, np.float32)
    return values, np.full((n_rows, n_listed), -1, np.int32)


def share_of_pairs(cells: Cells, n_listed: int, *, n_jobs: Workers = None) -> float:
    """Return about the share of all pairs that a search by cells would look at.

    A few cells search and are measured; what they find is thrown away.
    """
    # Even steps through the sizes, so that the few cells stand for all.
    by_size = np.argsort(np.diff(cells.starts), kind="stable")
    probes = np.sort(by_size[:: max(1, cells.n_cells // N_PROBES)][:N_PROBES])
    spans = zip(cells.starts[probes], cells.starts[probes + 1], strict=True)
    positions = np.concatenate([np.arange(*span, dtype=np.int32) for span in spans])
    _, n_met = _searched(cells, positions, n_listed, n_jobs)
    return n_met / (cells.order.size * positions.size)


def candidates_by_cells(
    cells: Cells, n_listed: int, *, n_jobs: Workers = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_listed` largest products of each position, and the positions they are of.

    Nothing nearer than the last candidate is missed, but for the error of the products.
    """
    positions = np.arange(cells.order.size, dtype=np.int32)
    return _searched(cells, positions, n_listed, n_jobs)[0]


def _searched(
    cells: Cells, positions: np.ndarray, n_listed: int, n_jobs: Workers
) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """Return the candidates of these positions, and how many pairs were looked at."""
    lists = empty_lists(positions.size, n_listed)
    n_met = search_cells(cells, positions, lists, n_first=N_FIRST, n_next=N_NEXT, n_jobs=n_jobs)
    return lists, n_met
