"""Which fitted rows are near rows that come later, exactly.

A few new rows meet very many fitted ones. So these are looked at once, in blocks, in 32 bits, and
only the best candidates of each new row are measured in 64 bits. The same bound as in `neighbors`
proves that no other fitted row is nearer; rows without proof are done again in 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import Workers, n_workers, parallel_map, row_blocks
from vecfill.method.scaling import scaled_together
from vecfill.method.search.distances import Rows, lifted, pair_distances
from vecfill.method.search.neighbors import careful_neighbors, certified_reach
from vecfill.method.search.scans import merge_lists, scan_rows

FEW = 2000
"""Fitted rows up to which they are looked at in 64 bits straight away."""

SLACK = 8
"""Candidates beyond those asked for."""

TARGETS = 4096
"""Fitted rows of a block."""

QUERIES = 512
"""New rows of a tile: with a block of fitted rows it stays in the cache."""


@dataclass(frozen=True)
class NearestFitted:
    """The fitted rows nearest to new rows."""

    graph: csr_array
    """``graph[new_row, fitted_row]`` is true for the nearest, columns sorted."""
    is_equal: np.ndarray
    """(n_new,) whether a new row equals a fitted one."""
    equal_to: np.ndarray
    """The first fitted row equal to each new row for which `is_equal`."""


def _nearest_fitted(indices: np.ndarray, squared: np.ndarray, n_fitted: int) -> NearestFitted:
    n_new, n_neighbors = indices.shape
    is_equal = squared[:, 0] == 0.0
    graph = csr_array(
        (
            np.ones(indices.size, np.bool_),
            np.sort(indices, axis=1).ravel(),
            np.arange(0, indices.size + 1, n_neighbors),
        ),
        (n_new, n_fitted),
    )
    return NearestFitted(graph, is_equal, indices[is_equal, 0])


def nearest_fitted(
    rows: Rows, fitted: Rows, *, n_neighbors: int, n_jobs: Workers = None
) -> NearestFitted:
    """Return the exact `n_neighbors` nearest fitted rows of each new row, ties by row number.

    Examples
    --------
    >>> fitted = np.array([[0.0], [1.0], [5.0]])
    >>> nearest_fitted(np.array([[0.9]]), fitted, n_neighbors=2).graph.indices.tolist()
    [0, 1]
    """
    rows, fitted = scaled_together(rows, fitted)
    if issparse(fitted) or fitted.shape[0] <= max(FEW, 2 * (n_neighbors + SLACK)):
        everyone = np.arange(rows.shape[0])
        found = careful_neighbors(
            rows, fitted, everyone, n_neighbors, skip_self=False, n_jobs=n_jobs
        )
    else:
        found = _searched(rows, fitted, n_neighbors, n_jobs)
    return _nearest_fitted(*found, fitted.shape[0])


@one_blas_thread()
def _searched(
    rows: np.ndarray, fitted: np.ndarray, n_neighbors: int, n_jobs: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest fitted rows of each new one, and their squared distances."""
    sample = fitted[:: max(1, len(fitted) // 4096)]
    centre = sample.mean(axis=0, dtype=np.float64)
    lift = lifted(rows, centre=centre, n_jobs=1)
    n_listed = n_neighbors + SLACK
    blocks = row_blocks(len(fitted), TARGETS)
    n_shares = min(n_workers(n_jobs), len(blocks))
    shares = [blocks[first::n_shares] for first in range(n_shares)]
    scan = partial(_scanned, lift, fitted, centre, n_listed)
    (values, indices), *others = parallel_map(scan, shares, n_jobs=n_jobs)
    for other in others:
        merge_lists(values, indices, *other)
    reach = certified_reach(lift, values[:, -1])
    numbers = np.repeat(np.arange(len(rows)), n_listed)
    squared = pair_distances(rows, fitted, numbers, indices.ravel()).reshape(indices.shape)
    order = np.lexsort((indices, squared), axis=1)
    indices, squared = (np.take_along_axis(each, order, axis=1) for each in (indices, squared))
    indices, squared = indices[:, :n_neighbors].copy(), squared[:, :n_neighbors].copy()
    doubtful = np.flatnonzero(squared[:, -1] >= reach)
    if doubtful.size:
        again = careful_neighbors(
            rows, fitted, doubtful, n_neighbors, skip_self=False, n_jobs=n_jobs
        )
        indices[doubtful], squared[doubtful] = again
    return indices, squared


def _scanned(
    lift: Any, fitted: np.ndarray, centre: np.ndarray, n_listed: int, blocks: list[slice]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best candidates among some blocks of fitted rows, for each new row."""
    n_new = len(lift.points)
    values = np.full((n_new, n_listed), -np.inf, np.float32)
    indices = np.full((n_new, n_listed), -1, np.int32)
    everyone = np.arange(n_new, dtype=np.int32)
    # No new row is a fitted one, so none is skipped.
    mine, theirs = np.full(n_new, -1, np.int32), np.zeros(len(fitted), np.int32)
    for block in blocks:
        swapped = lifted(fitted[block], centre=centre, n_jobs=1).swapped(slice(None)).T
        for part in row_blocks(n_new, QUERIES):
            products = lift.points[part] @ swapped
            scan_rows(products, everyone[part], block.start, mine, theirs, values, indices)
    return values, indices


def nearest_of_distances(distances: np.ndarray, *, n_neighbors: int) -> NearestFitted:
    """Return the same from the distances of new rows (down) to fitted ones (across).

    Examples
    --------
    >>> nearest_of_distances(np.array([[3.0, 0.0, 1.0]]), n_neighbors=2).graph.indices.tolist()
    [1, 2]
    """
    indices = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return _nearest_fitted(
        indices, np.take_along_axis(distances, indices, axis=1), distances.shape[1]
    )
