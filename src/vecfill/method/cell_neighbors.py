"""Candidates for nearest rows by cells: each cell asks near cells first, then those it must.

A row first meets the nearest cells. The worst candidate it then keeps is a radius, and only
cells that can hold a row within the radius are met next, nearest first, while the radius shrinks.
"""

from __future__ import annotations

import numpy as np

from vecfill.method.blocks import parallel_map, row_blocks
from vecfill.method.cells import MAX_WIDTH, Cells, next_cells
from vecfill.method.scans import scan_rows

N_FIRST = 8
"""Cells met before any bound is asked for: a radius must come from somewhere."""

N_NEXT = 16
"""Cells met in the first batch after a bound; each batch doubles, so that batches stay few."""

QUERIES = 1024
"""Most rows of a cell that search together."""

N_PROBES = 8
"""Cells that search before all others, to see whether bounds prune."""


def query_blocks(cells: Cells) -> list[tuple[int, slice]]:
    """Cut every cell in blocks of positions that search together, the largest cells first."""
    by_size = np.argsort(-np.diff(cells.starts), kind="stable")
    return [
        (int(cell), slice(int(cells.starts[cell]) + b.start, int(cells.starts[cell]) + b.stop))
        for cell in by_size
        for b in row_blocks(int(cells.starts[cell + 1] - cells.starts[cell]), QUERIES)
    ]


def meet(
    cells: Cells,
    swapped: np.ndarray,
    positions: np.ndarray,
    chosen: np.ndarray,
    lists: tuple[np.ndarray, np.ndarray],
    buffer: np.ndarray,
) -> int:
    """Let rows keep the best of the chosen cells, ascending; return how many pairs that took."""
    n_met = 0
    for run in cells.runs(chosen):
        width = run.stop - run.start
        products = buffer[: len(swapped) * width].reshape(len(swapped), width)
        np.matmul(swapped, cells.lift.points[run].T, out=products)
        scan_rows(products, positions, run.start, *lists)
        n_met += products.size
    return n_met


def _search(cells: Cells, cell: int, block: slice, lists: tuple[np.ndarray, np.ndarray]) -> int:
    """Find all candidates of one block of a cell; return how many pairs that took."""
    values = lists[0]
    positions = np.arange(block.start, block.stop)
    swapped = cells.lift.swapped(block)
    buffer = np.empty(len(swapped) * MAX_WIDTH, np.float32)
    gaps = cells.gaps[cell]
    first = np.sort(np.argsort(gaps, kind="stable")[:N_FIRST])
    n_met = meet(cells, swapped, positions, first, lists, buffer)
    leans = cells.leans_of(swapped, cell, None)
    limits = cells.limits(cell, np.arange(cells.n_cells))
    is_open = np.ones(cells.n_cells, np.uint8)
    is_open[first] = 0
    n_next = N_NEXT
    while True:
        radii = cells.radii(-2.0 * values[block, -1].astype(np.float64))
        chosen, some = next_cells(leans, limits, gaps, radii, is_open, n_next)
        if chosen.size == 0:
            return n_met
        n_met += meet(cells, swapped[some], positions[some], chosen, lists, buffer)
        n_next *= 2


def empty_lists(n_rows: int, n_listed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists that hold nothing yet: products below any, and of no row."""
    values = np.full((n_rows, n_listed), -np.inf, np.float32)
    return values, np.full((n_rows, n_listed), -1, np.int32)


def share_of_pairs(cells: Cells, n_listed: int, *, n_jobs: int | None = None) -> float:
    """Return about the share of all pairs that a search by cells would look at.

    A few cells search and are measured; what they find is thrown away.
    """
    n_rows = cells.order.size
    lists = empty_lists(n_rows, n_listed)
    blocks = query_blocks(cells)
    probes = blocks[:: max(1, len(blocks) // N_PROBES)][:N_PROBES]
    n_met = sum(parallel_map(lambda query: _search(cells, *query, lists), probes, n_jobs=n_jobs))
    return n_met / (n_rows * sum(block.stop - block.start for _, block in probes))


def candidates_by_cells(
    cells: Cells, n_listed: int, *, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_listed` largest products of each position, and the positions they are of.

    Nothing nearer than the last candidate is missed, but for the error of the products.
    """
    lists = empty_lists(cells.order.size, n_listed)
    parallel_map(lambda query: _search(cells, *query, lists), query_blocks(cells), n_jobs=n_jobs)
    return lists
