"""Who is near whom, exactly.

Each pair of blocks of rows is multiplied once, in 32 bits; a compiled scan keeps the best few
candidates of each row; their distances are computed again in 64 bits by differences. A bound on
the error of the products proves for nearly every row that no other row can be nearer. The few
rows without proof (ties, near-duplicates) are done again in 64 bits, with all candidates within
the error looked at. So the result is that of brute force, ties broken by row number.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.method.engine import Workers, fill, n_workers, parallel_map, row_blocks
from vecfill.method.search.approximate import ENOUGH_RECALL, approximate_candidates
from vecfill.method.search.cell_search import candidates_by_cells, share_of_pairs
from vecfill.method.search.cells import Cells
from vecfill.method.search.distances import (
    Lifted,
    Rows,
    Targets,
    as_targets,
    certified_reach,
    lifted,
    pair_distances,
)
from vecfill.method.search.scans import merge_lists, rank_exactly, scan_columns, scan_rows

logger = logging.getLogger(__name__)

# 512 x 512 products in 32 bits; half of a usual second-level cache of 2 MB. A guess.
TILE = 512
"""Rows of a block: a tile of products, 1 MB, stays in the cache between product and scan."""

# A guess that bounds memory.
BLOCK_ENTRIES = 4_000_000
"""Entries of a dense block of products in 64 bits: 32 MB a thread."""

# Tiles use the symmetry of distances and meet each pair once, cells meet it twice.
WORTH_PAIRS = 0.5
"""Share of pairs from which meeting every pair once, by tiles, is cheaper than cells."""

# Decision 4.
MOST_EXACT_WORK = 1e13
"""Pairs times features that are looked at exactly unasked: some five minutes on two cores."""

# 500 rows of 8 neighbours tell a recall of .96 to within .01.
RECALL_SAMPLE = 500
"""Rows searched exactly to measure the recall of an approximate search."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest rows of each row, nearest first, ties by row number, itself left out."""

    indices: np.ndarray
    """(n_rows, n_listed) row numbers. The first `n_neighbors` asked for are exact."""
    squared: np.ndarray
    """(n_rows, n_listed) squared distances, 64-bit."""
    reach: np.ndarray
    """(n_rows,) no row missing from a list is nearer than this squared distance."""
    recall: float = 1.0
    """Share of the true neighbours that are listed; measured on a sample if approximate."""


def _candidates_by_tiles(
    lift: Lifted, n_listed: int, n_jobs: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_listed` largest products of each row, and of which rows they are."""
    blocks = row_blocks(len(lift.points), TILE)
    shares = _even_shares(blocks, min(n_workers(n_jobs), len(blocks)))
    (values, indices), *other_lists = parallel_map(
        partial(_best_of_tiles, lift, n_listed), shares, n_jobs=n_jobs
    )
    for lists_of_share in other_lists:
        merge_lists(values, indices, *lists_of_share)
    return values, indices


def _even_shares(blocks: list[slice], n_shares: int) -> list[list[slice]]:
    """Deal blocks out, back and forth: each meets all blocks before it, so later ones cost more."""
    shares: list[list[slice]] = [[] for _ in range(n_shares)]
    for place, block in enumerate(reversed(blocks)):
        turn, seat = divmod(place, n_shares)
        shares[seat if turn % 2 == 0 else n_shares - 1 - seat].append(block)
    return shares


def _best_of_tiles(
    lift: Lifted, n_listed: int, column_blocks: list[slice]
) -> tuple[np.ndarray, np.ndarray]:
    """Let some blocks of rows meet all rows up to themselves; return what each row keeps."""
    n_rows = len(lift.points)
    values = np.full((n_rows, n_listed), -np.inf, lift.points.dtype)
    indices = np.full((n_rows, n_listed), -1, np.int32)
    buffer = np.empty(TILE * TILE, lift.points.dtype)
    everyone = np.arange(n_rows, dtype=np.int32)
    lists = (everyone, everyone, values, indices)
    for columns in column_blocks:
        swapped = lift.swapped(columns).T
        width = columns.stop - columns.start
        for rows in row_blocks(columns.stop, TILE):
            height = rows.stop - rows.start
            products = buffer[: height * width].reshape(height, width)
            np.matmul(lift.points[rows], swapped, out=products)
            scan_rows(products, everyone[rows], columns.start, *lists)
            # On the diagonal both scans would offer each pair twice.
            if rows.start != columns.start:
                scan_columns(products, rows.start, everyone[columns], *lists)
    return values, indices


def careful_blocks(numbers: np.ndarray, n_targets: int) -> Iterator[np.ndarray]:
    """Cut row numbers so that a dense 64-bit block against all targets stays small."""
    size = max(1, BLOCK_ENTRIES // n_targets)
    for part in row_blocks(numbers.size, size):
        yield numbers[part]


def careful_neighbors(
    rows: Rows,
    targets: Rows,
    numbers: np.ndarray,
    n_listed: int,
    *,
    skip_self: bool,
    n_jobs: Workers,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact lists of `some` rows, looking at every candidate within the error."""
    options = {"n_listed": n_listed, "skip_self": skip_self}
    search = partial(_search_carefully, rows, as_targets(targets), **options)
    lists = parallel_map(search, careful_blocks(numbers, targets.shape[0]), n_jobs=n_jobs)
    return np.concatenate([f[0] for f in lists]), np.concatenate([f[1] for f in lists])


def _search_carefully(
    rows: Rows, targets: Targets, part: np.ndarray, *, n_listed: int, skip_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    squared, error = targets.squared_from(rows[part])
    if skip_self:
        squared[np.arange(part.size), part] = np.inf
    # Whatever is nearer than the n-th could at most be may belong to the list.
    nth_at_most = np.partition(squared + error, n_listed - 1, axis=1)[:, n_listed - 1]
    position, index = np.nonzero(squared - error <= nth_at_most[:, None])
    exact = pair_distances(rows, targets.targets, part[position], index)
    # Ties by row number: without it equal distances would follow the order of blocks.
    order = np.lexsort((index, exact, position))
    starts = np.searchsorted(position, np.arange(part.size))
    chosen = order[starts[:, None] + np.arange(n_listed)]
    return index[chosen].astype(np.int32), exact[chosen]


def _candidates(
    rows: np.ndarray, cells: Cells | None, n_listed: int, n_jobs: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Return candidates for each row, and how near a row must be to be missing from them."""
    if cells is None:
        lift = lifted(rows, n_jobs=n_jobs)
        values, indices = _candidates_by_tiles(lift, n_listed, n_jobs)
        return indices, certified_reach(lift, values[:, -1])
    if share_of_pairs(cells, n_listed, n_jobs=n_jobs) <= WORTH_PAIRS:
        values, positions = candidates_by_cells(cells, n_listed, n_jobs=n_jobs)
    else:
        logger.info("cells prune too little: every pair of %d rows is looked at", len(rows))
        values, positions = _candidates_by_tiles(cells.lift, n_listed, n_jobs)
    reach = np.empty(len(rows))
    reach[cells.order] = certified_reach(cells.lift, values[:, -1])
    return _by_row(cells, positions), reach


def _by_row(cells: Cells, positions: np.ndarray) -> np.ndarray:
    """Return lists of positions, by position, as lists of rows, by row."""
    indices = np.empty_like(positions)
    row_at = cells.order.astype(np.int32)
    for block in row_blocks(len(positions), 65536):
        indices[cells.order[block]] = row_at[positions[block]]
    return indices


def _ranked(rows: np.ndarray, indices: np.ndarray, n_jobs: Workers) -> np.ndarray:
    """Sort each list by exact distance, in place; return the squared distances."""
    squared = np.empty(indices.shape)
    blocks = row_blocks(len(rows), TILE)
    fill([indices, squared], partial(_rank_block, rows), blocks, n_jobs=n_jobs)
    return squared


def _rank_block(rows: np.ndarray, block: slice, indices: np.ndarray, squared: np.ndarray) -> None:
    rank_exactly(rows, block.start, indices, squared)


def exact_neighbors(
    rows: np.ndarray | csr_array,
    *,
    n_neighbors: int,
    slack: int = 8,
    cells: Cells | None = None,
    n_jobs: Workers = None,
) -> Neighbors:
    """Return the `n_neighbors` nearest rows of each row, and up to `slack` near ones more.

    The result is that of 64-bit brute force, with `cells` or without: they only save time.
    Memory is linear in the number of rows. Sparse rows are multiplied as sparse matrices, block
    by block.

    Examples
    --------
    >>> found = exact_neighbors(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1)
    >>> found.indices[:, 0]
    array([1, 0, 1], dtype=int32)
    >>> found.squared[:, 0]
    array([1., 1., 4.])
    """
    n_rows = rows.shape[0]
    assert 1 <= n_neighbors < n_rows
    n_listed = min(n_neighbors + slack, n_rows - 1)
    if issparse(rows):
        indices, squared = careful_neighbors(
            rows, rows, np.arange(n_rows), n_listed, skip_self=True, n_jobs=n_jobs
        )
        reach = squared[:, -1].copy()
    else:
        indices, reach = _candidates(rows, cells, n_listed, n_jobs)
        squared = _ranked(rows, indices, n_jobs)
        # A row is proved if what is missing from its list cannot be nearer than its last neighbour.
        doubtful = np.flatnonzero(squared[:, n_neighbors - 1] >= reach)
        if n_listed < n_rows - 1 and doubtful.size:
            logger.debug("%d of %d rows are searched again in 64 bits", doubtful.size, n_rows)
            again = careful_neighbors(rows, rows, doubtful, n_listed, skip_self=True, n_jobs=n_jobs)
            indices[doubtful], squared[doubtful] = again
            reach[doubtful] = again[1][:, -1]
    # Everything is listed, so nothing is missing at any distance.
    if n_listed == n_rows - 1:
        reach = np.full(n_rows, np.inf)
    return Neighbors(indices, squared, reach)


def approximate_neighbors(
    rows: np.ndarray, *, n_neighbors: int, slack: int = 24, cells: Cells, n_jobs: Workers = None
) -> Neighbors:
    """Return about the nearest rows of each row; `recall` says how many of the true ones.

    Every list is full, and distances are exact: only which rows are listed may be wrong. `reach`
    is the last listed distance, as if nothing had been missed; where lists give out, the tree
    searches on from there. Where no approximate search is quicker, the result is the exact one.

    Examples
    --------
    >>> from vecfill.method.search.cells import cells_of
    >>> rows = np.arange(300.0)[:, None]
    >>> found = approximate_neighbors(rows, n_neighbors=2, cells=cells_of(rows))
    >>> found.indices[9, :2], found.recall
    (array([ 8, 10], dtype=int32), 1.0)
    """
    n_rows = len(rows)
    n_listed = min(n_neighbors + slack, n_rows - 1)
    sample = (np.arange(min(RECALL_SAMPLE, n_rows)) * n_rows) // min(RECALL_SAMPLE, n_rows)
    truth, _ = careful_neighbors(
        rows, rows, cells.order[sample], n_neighbors, skip_self=True, n_jobs=n_jobs
    )
    place = np.empty(n_rows, np.int32)
    place[cells.order] = np.arange(n_rows)
    positions, recall = approximate_candidates(cells, n_listed, sample, place[truth], n_jobs=n_jobs)
    if recall < ENOUGH_RECALL:
        logger.info("recall %.3f: an exact search is quicker than a better approximate one", recall)
        del positions  # as large as the rows, and of no use to the exact search
        return exact_neighbors(rows, n_neighbors=n_neighbors, cells=cells, n_jobs=n_jobs)
    indices = _by_row(cells, positions)
    squared = _ranked(rows, indices, n_jobs)
    return Neighbors(indices, squared, squared[:, -1].copy(), recall)


def prefers_approximate(cells: Cells, n_neighbors: int, *, n_jobs: Workers = None) -> bool:
    """Tell whether an exact search would take minutes, by how well cells prune these rows."""
    n_rows, n_features = cells.order.size, cells.lift.n_features
    if 0.5 * n_rows**2 * n_features <= MOST_EXACT_WORK:
        return False
    share = min(0.5, share_of_pairs(cells, n_neighbors, n_jobs=n_jobs))
    return share * n_rows**2 * n_features > MOST_EXACT_WORK
