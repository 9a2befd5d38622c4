"""The nearest of some rows to others, exactly, when neither are all rows there are.

A large set is searched part by part (`nearest_among`): lists of the nearest so far are merged with
those of the next part. Rows carry their numbers in the whole set, which break ties, so the parts do
not matter.

Rows that come later meet very many fitted ones (`nearest_fitted`). So these are looked at once, in
blocks, in 32 bits, and only the best candidates of each new row are measured in 64 bits. The same
bound as in `neighbors` proves that no other fitted row is nearer; rows without proof are done again
in 64 bits.
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
from vecfill.method.search.distances import (
    Rows,
    as_targets,
    certified_reach,
    lifted,
    pair_distances,
)
from vecfill.method.search.neighbors import careful_blocks, careful_neighbors
from vecfill.method.search.scans import merge_lists, scan_rows

# A guess that bounds memory: a few rows against 16,384 targets are a few MB.
TARGETS_AT_ONCE = 16384
"""Targets compared with a block of rows at once, in 64 bits."""


def sorted_lists(numbers: np.ndarray, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lists sorted by (distance, number).

    Examples
    --------
    >>> sorted_lists(np.array([[7, 3, 5]]), np.array([[1.0, 1.0, 0.5]]))[0]
    array([[5, 3, 7]])
    """
    order = np.lexsort((numbers, squared), axis=-1)
    return np.take_along_axis(numbers, order, 1), np.take_along_axis(squared, order, 1)


def merged_lists(
    lists: tuple[np.ndarray, np.ndarray], new_lists: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of two sets of lists of different rows: numbers and squared distances."""
    n_listed = lists[0].shape[1]
    numbers, squared = (np.hstack(arrays) for arrays in zip(lists, new_lists, strict=True))
    numbers, squared = sorted_lists(numbers, squared)
    return numbers[:, :n_listed], squared[:, :n_listed]


def no_lists(n_rows: int, n_listed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of nothing: number -1 at infinite distance."""
    return np.full((n_rows, n_listed), -1, np.int64), np.full((n_rows, n_listed), np.inf)


def nearest_among(
    rows: np.ndarray,
    numbers: np.ndarray,
    targets: np.ndarray,
    target_numbers: np.ndarray,
    *,
    n_listed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact nearest targets of each row: their numbers and squared distances.

    A row does not list itself, which its number tells. Lists that are too long for the targets end
    with -1 at an infinite distance.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [3.0]])
    >>> found, _ = nearest_among(rows[:1], np.array([5]), rows, np.array([5, 6, 7]), n_listed=3)
    >>> found
    array([[ 6,  7, -1]])
    """
    nearest = no_lists(len(rows), n_listed)
    for block in row_blocks(len(targets), TARGETS_AT_ONCE):
        compared = as_targets(targets[block])
        for queries in careful_blocks(np.arange(len(rows)), block.stop - block.start):
            squared, error = compared.squared_from(rows[queries])
            squared[numbers[queries][:, None] == target_numbers[block]] = np.inf
            nth = min(n_listed, squared.shape[1]) - 1
            at_most = np.partition(squared + error, nth, axis=1)[:, nth]
            # Everything within the error of the n-th is measured again, exactly.
            is_near = np.isfinite(squared) & (squared - error <= at_most[:, None])
            place, target = np.nonzero(is_near)
            exact = pair_distances(rows, compared.targets, queries[place], target)
            lists = _listed(place, target_numbers[block][target], exact, queries.size, n_listed)
            part = merged_lists((nearest[0][queries], nearest[1][queries]), lists)
            nearest[0][queries], nearest[1][queries] = part
    return nearest


def _listed(
    place: np.ndarray, numbers: np.ndarray, squared: np.ndarray, n_rows: int, n_listed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first few pairs of each place as lists."""
    order = np.lexsort((numbers, squared, place))
    place = place[order]
    rank = np.arange(place.size) - np.searchsorted(place, place)
    is_kept = rank < n_listed
    lists = no_lists(n_rows, n_listed)
    at = (place[is_kept], rank[is_kept])
    lists[0][at], lists[1][at] = numbers[order][is_kept], squared[order][is_kept]
    return lists


# A guess: below, lifting and scanning cost more than they save.
FEW = 2000
"""Fitted rows up to which they are looked at in 64 bits straight away."""

# A guess; as in `exact_neighbors`, room for rounding to swap candidates.
SLACK = 8
"""Candidates beyond those asked for."""

# A guess.
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
        nearest = careful_neighbors(
            rows, fitted, everyone, n_neighbors, skip_self=False, n_jobs=n_jobs
        )
    else:
        nearest = _searched(rows, fitted, n_neighbors, n_jobs)
    return _nearest_fitted(*nearest, fitted.shape[0])


@one_blas_thread()
def _searched(
    rows: np.ndarray, fitted: np.ndarray, n_neighbors: int, n_jobs: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest fitted rows of each new one, and their squared distances."""
    # About the mean will do: the centre only keeps rounding small.
    sample = fitted[:: max(1, len(fitted) // 4096)]
    centre = sample.mean(axis=0, dtype=np.float64)
    lift = lifted(rows, centre=centre, n_jobs=1)
    n_listed = n_neighbors + SLACK
    blocks = row_blocks(len(fitted), TARGETS)
    n_shares = min(n_workers(n_jobs), len(blocks))
    shares = [blocks[first::n_shares] for first in range(n_shares)]
    scan = partial(_scanned, lift, fitted, centre, n_listed)
    (values, indices), *other_lists = parallel_map(scan, shares, n_jobs=n_jobs)
    for lists_of_share in other_lists:
        merge_lists(values, indices, *lists_of_share)
    reach = certified_reach(lift, values[:, -1])
    numbers = np.repeat(np.arange(len(rows)), n_listed)
    squared = pair_distances(rows, fitted, numbers, indices.ravel()).reshape(indices.shape)
    order = np.lexsort((indices, squared), axis=1)
    indices, squared = (np.take_along_axis(array, order, axis=1) for array in (indices, squared))
    indices, squared = indices[:, :n_neighbors].copy(), squared[:, :n_neighbors].copy()
    # As in `neighbors`: what was not listed could be as near as the last one listed.
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
