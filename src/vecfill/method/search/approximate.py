"""Who is near whom, nearly: for so many rows without structure that looking at all pairs is slow.

Each cell meets only the nearest cells. Then neighbours of neighbours are tried, which repairs most
of what was missed across the borders of cells. If a sample of rows, searched exactly, shows that
too few of the true neighbours are found, each cell meets a ring of farther cells, and so on, until
the exact search is the cheaper way on. No chance is involved: a pass reads the lists of the pass
before and writes new ones, so the result is the same for any number of threads.
"""

from __future__ import annotations

import logging
from functools import partial

import numpy as np

from vecfill.machine.compiled import compiled, compiled_in_any_order
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.method.search.cell_search import empty_lists, search_cells
from vecfill.method.search.cells import Cells
from vecfill.method.search.scans import merge_lists, push

logger = logging.getLogger(__name__)

# Decision 4: two passes after 8,000 rows reach a recall of .959 on 50,000 word vectors.
FIRST_MET = 8000
"""Rows of the nearest cells that every row is compared with at first."""

# Decision 4; a ring three times as wide is the next step that is worth two passes.
WIDENING = 3
"""How many times more rows a ring reaches than the ring before it."""

# Decision 4: what is promised is .95.
ENOUGH_RECALL = 0.96
"""Recall on the sample at which the search ends: a little above what we promise."""

# Decision 4: then the exact search, which looks at each pair once, is cheaper.
MOST_MET = 0.25
"""Share of all rows that rings may reach: looking at every pair once is cheaper than more."""

# Decision 4: passes alone stopped at a recall of .87 on sums of two word vectors.
N_PASSES = 2
"""Passes over neighbours of neighbours after each ring; further ones find little more."""

ROWS_PER_JOB = 16384


@compiled_in_any_order
def _half_product(lifted_point, swapped_point):
    """Product of a lifted point and a swapped one, the last columns added at the end."""
    n_features = lifted_point.size - 2
    total = np.float32(0.0)
    for t in range(n_features):
        total += lifted_point[t] * swapped_point[t]
    return total + lifted_point[n_features] + swapped_point[n_features]


@compiled
def _listed_by(indices):
    """Return who lists each position, nearest first, no more than a list holds; and how many."""
    n_rows, n_listed = indices.shape
    listed_by = np.full((n_rows, n_listed), -1, np.int32)
    counts = np.zeros(n_rows, np.int32)
    for rank in range(n_listed):
        for position in range(n_rows):
            neighbor = indices[position, rank]
            if neighbor >= 0 and counts[neighbor] < n_listed:
                listed_by[neighbor, counts[neighbor]] = position
                counts[neighbor] += 1
    return listed_by, counts


@compiled
def _improve(points, old, listed_by, counts, first, values, indices):
    """Offer rows the neighbours of those they list and of those that list them.

    The lists to improve are those of the rows from `first` on.
    """
    n_rows, n_listed = old.shape[0], old.shape[1]
    last_offered = np.full(n_rows, -1, np.int32)
    for position in range(first, first + len(values)):
        products, candidates = values[position - first], indices[position - first]
        # A mark of the row that was last offered a candidate: no list of them is kept or searched.
        last_offered[position] = position
        for rank in range(n_listed):
            if old[position, rank] >= 0:
                last_offered[old[position, rank]] = position
        for side in range(2):
            n_through = n_listed if side == 0 else counts[position]
            for rank in range(n_through):
                through = old[position, rank] if side == 0 else listed_by[position, rank]
                if through < 0:
                    continue
                for place in range(n_listed + 1):
                    candidate = through if place == n_listed else old[through, place]
                    if candidate >= 0 and last_offered[candidate] != position:
                        last_offered[candidate] = position
                        value = _half_product(points[position], points[candidate])
                        if value > products[-1]:
                            push(products, candidates, value, candidate)


def _meet_ring(
    cells: Cells,
    ring: tuple[float, float],
    lists: tuple[np.ndarray, np.ndarray],
    n_jobs: Workers,
) -> None:
    """Compare each row with the cells around its own that begin within a ring, counted in rows."""
    positions = np.arange(cells.order.size, dtype=np.int32)
    options = {"n_first": cells.n_cells, "n_next": 0, "ring": ring}
    search_cells(cells, positions, lists, **options, n_jobs=n_jobs)


def _one_pass(cells: Cells, values: np.ndarray, indices: np.ndarray, n_jobs: Workers) -> None:
    """Improve all lists by neighbours of neighbours, as the lists were before the pass."""
    # Lists as before the pass, or what a thread has done already would decide what others see.
    old = indices.copy()
    improve = partial(_improve_block, cells.lift.points, old, *_listed_by(old))
    fill([values, indices], improve, row_blocks(len(old), ROWS_PER_JOB), n_jobs=n_jobs)


def _improve_block(
    points: np.ndarray,
    old: np.ndarray,
    listed_by: np.ndarray,
    counts: np.ndarray,
    block: slice,
    values: np.ndarray,
    indices: np.ndarray,
) -> None:
    _improve(points, old, listed_by, counts, block.start, values, indices)


def _recall(indices: np.ndarray, sample: np.ndarray, truth: np.ndarray) -> float:
    listed = indices[sample]
    hits = [np.isin(truth[place], listed[place]).sum() for place in range(sample.size)]
    return float(np.sum(hits) / truth.size)


def approximate_candidates(
    cells: Cells, n_listed: int, sample: np.ndarray, truth: np.ndarray, *, n_jobs: Workers = None
) -> tuple[np.ndarray, float]:
    """Return about the nearest positions of each position, and the share of true ones found.

    `sample` are positions whose true nearest positions, `truth`, are known. The share is less
    than `ENOUGH_RECALL` if farther rings would take longer than the exact search.
    """
    met = empty_lists(cells.order.size, n_listed)
    values, indices = empty_lists(cells.order.size, n_listed)
    inner, outer = 0.0, max(float(FIRST_MET), 2.0 * n_listed)
    while True:
        _meet_ring(cells, (inner, outer), met, n_jobs)
        merge_lists(values, indices, *met)
        recall = _recall(indices, sample, truth)
        for n_passes in range(N_PASSES + 1):
            if n_passes:
                _one_pass(cells, values, indices, n_jobs)
                recall = _recall(indices, sample, truth)
            logger.info("%.0f rows met, %d passes: recall %.3f", outer, n_passes, recall)
            if recall >= ENOUGH_RECALL or outer >= cells.order.size:
                return indices, recall
        # Cells met before are left out of the next ring.
        inner, outer = outer, WIDENING * outer
        if outer > MOST_MET * cells.order.size:
            return indices, recall
