"""The nearest rows of some rows among others, exactly, when neither are all rows there are.

A large set is searched part by part: lists of the nearest so far are merged with those of the next
part. Rows carry their numbers in the whole set, which break ties, so the parts do not matter.
"""

from __future__ import annotations

import numpy as np

from vecfill.method.engine import row_blocks
from vecfill.method.search.distances import as_targets, pair_distances
from vecfill.method.search.neighbors import careful_blocks

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
    lists: tuple[np.ndarray, np.ndarray], others: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of two sets of lists of different rows: numbers and squared distances."""
    n_listed = lists[0].shape[1]
    numbers, squared = (np.hstack(each) for each in zip(lists, others, strict=True))
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
    found = no_lists(len(rows), n_listed)
    for block in row_blocks(len(targets), TARGETS_AT_ONCE):
        compared = as_targets(targets[block])
        for some in careful_blocks(np.arange(len(rows)), block.stop - block.start):
            squared, error = compared.squared_from(rows[some])
            squared[numbers[some][:, None] == target_numbers[block]] = np.inf
            nth = min(n_listed, squared.shape[1]) - 1
            at_most = np.partition(squared + error, nth, axis=1)[:, nth]
            is_near = np.isfinite(squared) & (squared - error <= at_most[:, None])
            place, other = np.nonzero(is_near)
            exact = pair_distances(rows, compared.targets, some[place], other)
            lists = _listed(place, target_numbers[block][other], exact, some.size, n_listed)
            part = merged_lists((found[0][some], found[1][some]), lists)
            found[0][some], found[1][some] = part
    return found


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
