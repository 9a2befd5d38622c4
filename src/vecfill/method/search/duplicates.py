"""Equal rows, found once, so that no later search meets a distance of zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from vecfill.machine.compiled import compiled, compiled_part
from vecfill.method.search.distances import Rows


@dataclass(frozen=True)
class DistinctRows:
    """Which rows are equal: a group for each row, a first row and all members for each group."""

    group: np.ndarray
    """(n_rows,) the group of each row; groups are numbered by their first row."""
    first: np.ndarray
    """(n_groups,) the smallest row of each group, ascending."""
    members: np.ndarray
    """(n_rows,) rows by group, ascending within each."""
    starts: np.ndarray
    """(n_groups + 1,) where each group's members begin."""


@compiled_part
def _mix(state, value):
    state = (state ^ value) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(29))


@compiled
def _dense_hashes(bits, hashes):
    for row in range(bits.shape[0]):
        state = np.uint64(0)
        for column in range(bits.shape[1]):
            state = _mix(state, np.uint64(bits[row, column]))
        hashes[row] = state


@compiled
def _sparse_hashes(bits, indices, indptr, hashes):
    for row in range(indptr.size - 1):
        state = np.uint64(0)
        for place in range(indptr[row], indptr[row + 1]):
            state = _mix(_mix(state, np.uint64(indices[place])), np.uint64(bits[place]))
        hashes[row] = state


def _hashes(rows: Rows) -> np.ndarray:
    hashes = np.empty(rows.shape[0], np.uint64)
    values = rows.data if issparse(rows) else rows
    # Adding zero turns -0.0, which has other bits, into 0.0, which it equals.
    bits = np.ascontiguousarray(values + values.dtype.type(0.0))
    bits = bits.view(np.uint32 if values.dtype.itemsize == 4 else np.uint64)
    if issparse(rows):
        _sparse_hashes(bits, rows.indices, rows.indptr, hashes)
    else:
        _dense_hashes(bits, hashes)
    return hashes


def _are_equal(rows: Rows, left: np.ndarray, right: np.ndarray) -> bool:
    if issparse(rows):
        return (rows[left] != rows[right]).nnz == 0
    return bool(np.array_equal(rows[left], rows[right]))


def distinct_rows(rows: Rows) -> DistinctRows | None:
    """Return which rows are equal, or ``None`` when all differ.

    Examples
    --------
    >>> distinct_rows(np.array([[1.0], [2.0], [1.0]])).group
    array([0, 1, 0])
    >>> distinct_rows(np.array([[1.0], [2.0]])) is None
    True
    """
    n_rows = rows.shape[0]
    hashes = _hashes(rows)
    by_hash = np.argsort(hashes, kind="stable")
    is_repeat = hashes[by_hash][1:] == hashes[by_hash][:-1]
    if not is_repeat.any():
        return None
    begins = np.concatenate([[True], ~is_repeat])
    run_first = by_hash[np.maximum.accumulate(np.where(begins, np.arange(n_rows), 0))]
    repeats = ~begins
    if not _are_equal(rows, by_hash[repeats], run_first[repeats]):
        # Two different rows with one 64-bit hash: compare the rows themselves.
        dense = rows.toarray() if issparse(rows) else rows
        _, first_of, inverse = np.unique(dense, axis=0, return_index=True, return_inverse=True)
        first_row = first_of[inverse.ravel()]
    else:
        first_row = np.empty(n_rows, np.int64)
        first_row[by_hash] = run_first
    first, group = np.unique(first_row, return_inverse=True)
    if first.size == n_rows:
        return None
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
    return DistinctRows(group, first, members, starts)
