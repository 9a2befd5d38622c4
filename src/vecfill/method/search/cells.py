"""Rows grouped in cells, and which cells can hold a row that is near enough.

Every row belongs to the cell of its nearest centre, so two cells are split by a plane, and a row
that lies far on its own side of the plane is far from all rows on the other side. Where data has
structure, a search that skips such cells looks at a small share of all pairs. The bounds allow
for every rounding, so skipping a cell never loses a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.method.search.distances import Lifted, lifted

# A guess; further rounds move centres little, and cells are only a way to save time.
ROUNDS = 6
"""Rounds of k-means: centres need only be good, not best."""

# A guess.
SAMPLE_PER_CELL = 40
"""Rows a cell that k-means looks at; the others only ask which centre is nearest."""

# Gaps and limits of 8,000 cells are matrices of 256 MB each in 32 bits.
MOST_CELLS = 8000
"""Cells are compared with cells, so their number is held where that stays cheap."""

# A guess.
MAX_WIDTH = 4096
"""Columns of a tile of products: with a few hundred rows it stays in the cache."""

UNIT = float(np.finfo(np.float32).eps) / 2


@dataclass(frozen=True)
class Cells:
    """Rows in the order of their cells, ready for products, and what bounds their distances.

    A *position* is a place in that order; ``order[position]`` is the row.
    """

    order: np.ndarray
    """(n_rows,) the row at each position; ascending within a cell."""
    starts: np.ndarray
    """(n_cells + 1,) the position where each cell begins."""
    lift: Lifted
    """The rows by position, lifted for 32-bit products."""
    centres: np.ndarray
    """(n_cells, n_features + 2) the centres, with two zeros, so that lifted rows can meet them."""
    gaps: np.ndarray
    """(n_cells, n_cells) distances of centres, rounded up."""
    limits: np.ndarray
    """What the lean of a row of s to t, ``row @ (c_t - c_s)``, is compared with.

    A row of s at distance r from some row of t has ``limits[s, t] - lean <= r * gaps[s, t]``, and
    ``-limits[t, s]`` is at least the largest lean. All rounding is allowed for.
    """
    nearest: np.ndarray
    """(n_cells, n_cells) all cells, those with the nearest centres first."""
    diameter: float
    """No two rows are farther apart than this."""

    @property
    def n_cells(self) -> int:
        """How many cells there are; none is empty."""
        return self.starts.size - 1

    def cell_of(self, positions: np.ndarray) -> np.ndarray:
        """Return the cell that each position lies in."""
        return np.searchsorted(self.starts, positions, side="right") - 1


def evenly_spaced(n_rows: int, n_wanted: int) -> np.ndarray:
    """Return row numbers spread over all rows: no chance, and the same for any thread."""
    n_wanted = min(n_rows, n_wanted)
    return (np.arange(n_wanted) * n_rows) // n_wanted


def nearest_centres(
    rows: np.ndarray, centres: np.ndarray, n_jobs: Workers, *, middle: np.ndarray | None = None
) -> np.ndarray:
    """Return the nearest centre of each row, less `middle` if the centres are centred there."""
    nearest = np.empty(len(rows), np.int64)
    half_squares = 0.5 * np.einsum("ij,ij->i", centres, centres)
    assign = partial(_assign, rows, middle, centres, half_squares)
    fill([nearest], assign, row_blocks(len(rows), MAX_WIDTH), n_jobs=n_jobs)
    return nearest


def _assign(
    rows: np.ndarray,
    middle: np.ndarray | None,
    centres: np.ndarray,
    half_squares: np.ndarray,
    block: slice,
    nearest: np.ndarray,
) -> None:
    # Centred before they are cut to 32 bits: far from the origin nothing would be left.
    points = rows[block] if middle is None else (rows[block] - middle).astype(np.float32)
    products = points @ centres.T
    products -= half_squares
    nearest[:] = products.argmax(axis=1)


def centres_of(sample: np.ndarray, n_cells: int, n_jobs: Workers) -> np.ndarray:
    """Return centres by k-means from evenly spaced rows."""
    centres = sample[evenly_spaced(len(sample), n_cells)].copy()
    for _ in range(ROUNDS):
        nearest = nearest_centres(sample, centres, n_jobs)
        by_centre = np.argsort(nearest, kind="stable")
        nonempty, first = np.unique(nearest[by_centre], return_index=True)
        sums = np.add.reduceat(sample[by_centre], first, axis=0)
        centres[nonempty] = sums / np.diff(np.append(first, len(sample)))[:, None]
    return centres


def by_place(centres: np.ndarray) -> np.ndarray:
    """Return an order of the centres in which neighbours are near: halves of halves."""
    ordered: list[np.ndarray] = []
    waiting = [np.arange(len(centres))]
    while waiting:
        members = waiting.pop()
        if members.size <= 2:
            ordered.append(members)
            continue
        centred = centres[members] - centres[members].mean(axis=0)
        # Sizes of 1: fourth powers of what is far apart would overflow.
        centred /= max(float(np.abs(centred).max()), float(np.finfo(np.float32).tiny))
        direction = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
        # Power iteration: five steps are enough for a direction in which to halve.
        for _ in range(5):
            direction = centred.T @ (centred @ direction)
            direction /= np.linalg.norm(direction) + np.finfo(np.float32).tiny
        sorted_along = members[np.argsort(centred @ direction, kind="stable")]
        waiting += [sorted_along[members.size // 2 :], sorted_along[: members.size // 2]]
    return np.concatenate(ordered)


def _gaps(centres: np.ndarray) -> np.ndarray:
    wide = centres.astype(np.float64)
    squares = np.einsum("ij,ij->i", wide, wide)
    sums = squares[:, None] + squares
    # As in `product_error`: a gap that is too small would let the search skip a cell that it needs.
    error = 4 * (wide.shape[1] + 4) * np.finfo(np.float64).eps
    gaps = np.sqrt(np.maximum(sums * (1.0 + error) - 2.0 * (wide @ wide.T), 0.0))
    np.fill_diagonal(gaps, 0.0)
    # Rounded to 32 bits and then up, so that it stays a bound.
    return np.nextafter(gaps.astype(np.float32), np.float32(np.inf))


def _limits(
    leans: np.ndarray, lengths: np.ndarray, centres: np.ndarray, n_features: int
) -> np.ndarray:
    """Return `Cells.limits` from the largest leans, row lengths and lengths of the centres."""
    # Two products of n terms, the subtraction, the comparison, and rounding of centred rows.
    slack = (1.02 * n_features + 32) * UNIT * np.add.outer(lengths, lengths)
    slack *= np.add.outer(centres, centres)
    tiny = 16 * n_features * float(np.finfo(np.float32).tiny)
    limits = (-leans.T - slack - tiny).astype(np.float32)
    return np.nextafter(limits, np.float32(-np.inf), out=limits)


def set_leans(
    points: np.ndarray,
    starts: np.ndarray,
    centre_columns: np.ndarray,
    cells: slice,
    out: np.ndarray,
) -> None:
    """Write the largest lean of a cell's rows to every other cell."""
    cell = cells.start
    leans = out[0]
    leans[:] = -np.inf
    for block in row_blocks(int(starts[cell + 1] - starts[cell]), MAX_WIDTH):
        leans_of_rows = (
            points[starts[cell] + block.start : starts[cell] + block.stop, :-2] @ centre_columns
        )
        # Less the lean to its own centre: what the plane between two centres measures.
        leans_of_rows -= leans_of_rows[:, cell].copy()[:, None]
        np.maximum(leans, leans_of_rows.max(axis=0), out=leans)


@one_blas_thread()
def cells_of(rows: np.ndarray, *, n_jobs: Workers = None) -> Cells:
    """Group dense rows in about ``2 sqrt(n_rows)`` cells by k-means.

    Examples
    --------
    >>> cells = cells_of(np.repeat([[0.0], [9.0]], 40, axis=0))
    >>> sorted(np.diff(cells.starts).tolist())
    [40, 40]
    """
    n_rows = len(rows)
    # With sqrt(n) cells of sqrt(n) rows, asking cells costs about as much as asking rows.
    n_cells = min(n_rows, int(np.clip(2.0 * np.sqrt(n_rows), 16, MOST_CELLS)))
    sample = rows[evenly_spaced(n_rows, SAMPLE_PER_CELL * n_cells)]
    middle = sample.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    centres = centres_of((sample - middle).astype(np.float32), n_cells, n_jobs)
    # Cells that are near each other lie near each other in memory, and are met after each other.
    centres = centres[by_place(centres)]
    nearest = nearest_centres(rows, centres, n_jobs, middle=middle)
    nonempty, nearest = np.unique(nearest, return_inverse=True)
    centres = np.ascontiguousarray(centres[nonempty])
    order = np.argsort(nearest, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(nearest))])
    lift = lifted(rows, order=order, centre=middle, n_jobs=n_jobs)
    leans = np.empty((nonempty.size, nonempty.size), np.float32)
    lean = partial(set_leans, lift.points, starts, np.ascontiguousarray(centres.T))
    fill([leans], lean, row_blocks(nonempty.size, 1), n_jobs=n_jobs)
    lengths = np.maximum.reduceat(lift.lengths, starts[:-1])
    return Cells(order, starts, lift, *bounds_of(centres, leans, lengths))


def bounds_of(
    centres: np.ndarray, leans: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Return what bounds distances between cells: `Cells.centres` and all that follows it.

    `leans` and `lengths` are the largest of each cell's rows.
    """
    lengths = lengths * (1.0 + 8 * UNIT)
    sizes = np.linalg.norm(centres.astype(np.float64), axis=1)
    limits = _limits(leans, lengths, sizes, centres.shape[1])
    gaps = _gaps(centres)
    nearest = np.argsort(gaps, axis=1, kind="stable").astype(np.int32)
    padded = np.pad(centres, ((0, 0), (0, 2)))
    return padded, gaps, limits, nearest, 2.1 * float(lengths.max())
