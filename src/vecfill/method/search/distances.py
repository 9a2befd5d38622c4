"""How far apart two rows are: exactly, and by matrix products with a bound on their error.

"Exact" means `squared_distance`: 64-bit, by differences, summed in one fixed order. Everything
else is a fast way to avoid calling it. A product of *lifted* rows gives minus half the squared
distance of every pair of two blocks at the speed of BLAS; `product_error` bounds how far that is
from the exact value, so a search that keeps the bound in mind misses nothing. Equal rows are found
once (`distinct_rows`), so that no later search meets a distance of zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.machine.compiled import compiled, compiled_part
from vecfill.method.engine import Workers, fill, row_blocks

# A guess: 8,192 rows of a hundred features are 6.5 MB, which a core keeps near.
TARGETS_WIDENED = 8192
"""Targets copied in 64 bits at once."""

Rows: TypeAlias = Any
"""Dense rows or a `csr_array`; which of them, only `issparse` can tell."""


@compiled_part
def squared_distance(row, other_row):
    """Return the squared distance of two dense rows; the same bits wherever it is called."""
    n = row.size
    whole = n - n % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    # Eight running sums written out: the compiler may not reorder sums, so we give it the order.
    for t in range(0, whole, 8):
        d0 = np.float64(row[t]) - np.float64(other_row[t])
        d1 = np.float64(row[t + 1]) - np.float64(other_row[t + 1])
        d2 = np.float64(row[t + 2]) - np.float64(other_row[t + 2])
        d3 = np.float64(row[t + 3]) - np.float64(other_row[t + 3])
        d4 = np.float64(row[t + 4]) - np.float64(other_row[t + 4])
        d5 = np.float64(row[t + 5]) - np.float64(other_row[t + 5])
        d6 = np.float64(row[t + 6]) - np.float64(other_row[t + 6])
        d7 = np.float64(row[t + 7]) - np.float64(other_row[t + 7])
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
        s4 += d4 * d4
        s5 += d5 * d5
        s6 += d6 * d6
        s7 += d7 * d7
    total = ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    for t in range(whole, n):
        difference = np.float64(row[t]) - np.float64(other_row[t])
        total += difference * difference
    return total


@compiled
def _dense_pairs(left_rows, right_rows, rows_of_pairs, others_of_pairs, out):
    for pair in range(rows_of_pairs.size):
        out[pair] = squared_distance(
            left_rows[rows_of_pairs[pair]], right_rows[others_of_pairs[pair]]
        )


@compiled
def _sparse_pairs(
    data,
    indices,
    indptr,
    other_data,
    other_indices,
    other_indptr,
    rows_of_pairs,
    others_of_pairs,
    out,
):
    """Write the squared distances of pairs of sparse rows with sorted columns."""
    for pair in range(rows_of_pairs.size):
        a, a_end = indptr[rows_of_pairs[pair]], indptr[rows_of_pairs[pair] + 1]
        b, b_end = other_indptr[others_of_pairs[pair]], other_indptr[others_of_pairs[pair] + 1]
        total = 0.0
        while a < a_end or b < b_end:
            # Columns are sorted, so one walk along both rows meets every column once.
            if b == b_end or (a < a_end and indices[a] < other_indices[b]):
                difference = np.float64(data[a])
                a += 1
            elif a == a_end or other_indices[b] < indices[a]:
                difference = np.float64(other_data[b])
                b += 1
            else:
                difference = np.float64(data[a]) - np.float64(other_data[b])
                a += 1
                b += 1
            total += difference * difference
        out[pair] = total


def pair_distances(
    left_rows: Rows, right_rows: Rows, rows_of_pairs: np.ndarray, others_of_pairs: np.ndarray
) -> np.ndarray:
    """Return the exact squared distance of each pair ``left_rows[left], right_rows[right]``.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> pair_distances(rows, rows, np.array([0]), np.array([1]))
    array([25.])
    """
    out = np.empty(rows_of_pairs.size)
    # One type of numbers, so that each loop is compiled once.
    rows_of_pairs = rows_of_pairs.astype(np.int64, copy=False)
    others_of_pairs = others_of_pairs.astype(np.int64, copy=False)
    if issparse(left_rows):
        a, b = left_rows, right_rows
        arrays = (a.data, a.indices, a.indptr, b.data, b.indices, b.indptr)
        _sparse_pairs(*arrays, rows_of_pairs, others_of_pairs, out)
    else:
        _dense_pairs(left_rows, right_rows, rows_of_pairs, others_of_pairs, out)
    return out


@dataclass(frozen=True)
class Lifted:
    """Centred rows with their half squared lengths: a product away from all distances.

    ``points[i] @ swapped(j) == -squared_distance(i, j) / 2``, but for rounding.
    """

    points: np.ndarray
    """(n_rows, n_features + 2): the centred row, minus its half squared length, and 1."""
    half_squares: np.ndarray
    """(n_rows,) in 64 bits."""

    @property
    def n_features(self) -> int:
        """How many columns the rows had before they were lifted."""
        return self.points.shape[1] - 2

    @property
    def lengths(self) -> np.ndarray:
        """Distance of each row from the centre."""
        return np.sqrt(2.0 * self.half_squares)

    def swapped(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the other side of the product for these rows, (n, n_features + 2)."""
        points = self.points[rows]
        swapped = np.empty_like(points)
        swapped[:, :-2] = points[:, :-2]
        # So that each row's half square meets the other row's 1: one product gives the distance.
        swapped[:, -2] = points[:, -1]
        swapped[:, -1] = points[:, -2]
        return swapped


def lifted(
    rows: np.ndarray,
    *,
    order: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    dtype: type = np.float32,
    n_jobs: Workers = None,
) -> Lifted:
    """Lift dense rows, in another order if one is given, for products in `dtype`."""
    n_rows, n_features = rows.shape
    # The bound on the error grows with the distance from the centre, so it lies amid the rows.
    middle = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype) if centre is None else centre
    points = np.empty((n_rows, n_features + 2), dtype)
    half_squares = np.empty(n_rows)
    lift = partial(_lift, rows, order, middle)
    fill([points, half_squares], lift, row_blocks(n_rows, 4096), n_jobs=n_jobs)
    return Lifted(points, half_squares)


def _lift(
    rows: np.ndarray,
    order: np.ndarray | None,
    middle: np.ndarray,
    block: slice,
    points: np.ndarray,
    half_squares: np.ndarray,
) -> None:
    centred = points[:, :-2]
    rows_of_block = rows[block] if order is None else rows[order[block]]
    np.subtract(rows_of_block, middle, out=centred, casting="same_kind")
    half_squares[:] = 0.5 * np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
    points[:, -2] = -half_squares
    # Set against -half_squares of the other row, this adds both lengths to the product.
    points[:, -1] = 1.0


def product_error(n_features: int, dtype: type) -> tuple[float, float]:
    """Bound the error of a squared distance got from a product of lifted rows.

    The true value differs from ``-2 * product`` by at most ``relative * (h_i + h_j) + absolute``,
    with h the half squared lengths. Of the relative part, ``4 (n + 2) + 2`` roundings come from
    the product of n + 2 terms, whatever its order of summation, and from storing h; 8 from
    rounding the centred rows; the rest covers the exact sum's own rounding. The absolute part is
    for values that underflow.

    Examples
    --------
    >>> relative, absolute = product_error(100, np.float32)
    >>> relative < 1e-4
    True
    """
    unit = float(np.finfo(dtype).eps) / 2
    return (6 * n_features + 32) * 1.02 * unit, 8 * n_features * float(np.finfo(dtype).tiny)


def certified_reach(lift: Lifted, worst_kept: np.ndarray) -> np.ndarray:
    """Return a squared distance that no row with a product below `worst_kept` undercuts."""
    relative, absolute = product_error(lift.n_features, lift.points.dtype.type)
    looked_to = np.maximum(-2.0 * worst_kept.astype(np.float64), 0.0)
    # A row nearer than `seen` lies at most this far from the centre, which bounds its error.
    farthest = lift.lengths + np.sqrt(looked_to)
    return looked_to - relative * (lift.half_squares + 0.5 * farthest**2) - absolute


class Targets(ABC):
    """Rows that others are compared with, all at once, in 64 bits."""

    def __init__(self, targets: Rows) -> None:
        self.targets = targets
        self.errors = product_error(targets.shape[1], np.float64)

    def squared_from(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances of some rows from all targets, and bounds on their error."""
        products, half_sums = self._products(rows)
        relative, absolute = self.errors
        return 2.0 * (half_sums - products), relative * half_sums + absolute

    @abstractmethod
    def _products(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return products with all targets, and the sums of the half squared lengths."""


class SparseTargets(Targets):
    """Sparse rows, multiplied as sparse matrices."""

    def __init__(self, targets: csr_array) -> None:
        super().__init__(targets)
        self.matrix = targets.astype(np.float64)
        self.half_squares = 0.5 * np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()

    def _products(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        rows = rows.astype(np.float64)
        halves = 0.5 * np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return (rows @ self.matrix.T).toarray(), halves[:, None] + self.half_squares


class DenseTargets(Targets):
    """Dense rows; a few at a time are widened, to save memory."""

    def __init__(self, targets: np.ndarray) -> None:
        super().__init__(targets)
        self.centre = targets.mean(axis=0, dtype=np.float64)

    def _products(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        rows = rows - self.centre
        halves = 0.5 * np.einsum("ij,ij->i", rows, rows)
        # Centred first: far from the origin, products lose the digits that tell rows apart.
        products, half_sums = np.empty((2, len(rows), len(self.targets)))
        for part in row_blocks(len(self.targets), TARGETS_WIDENED):
            centred = self.targets[part] - self.centre
            np.matmul(rows, centred.T, out=products[:, part])
            half_sums[:, part] = halves[:, None] + 0.5 * np.einsum("ij,ij->i", centred, centred)
        return products, half_sums


def as_targets(rows: Rows) -> Targets:
    """Return rows that others can be compared with, dense or sparse.

    Examples
    --------
    >>> squared, error = as_targets(np.array([[0.0], [2.0]])).squared_from(np.array([[1.0]]))
    >>> squared
    array([[1., 1.]])
    """
    return SparseTargets(rows) if issparse(rows) else DenseTargets(rows)


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
    # The odd multiplier, 2**64 over the golden ratio, spreads neighbouring bit patterns far.
    # The shift brings the well mixed high bits down, where the next value is added.
    state = (state ^ value) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(29))


@compiled
def _dense_hashes(bits, hashes):
    for row in range(bits.shape[0]):
        state = np.uint64(0)
        for column in range(bits.shape[1]):
            state = _mix(state, np.uint64(bits[row, column]))
        # Column numbers are not hashed: in dense rows the order of values is enough.
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


def _are_equal(rows: Rows, rows_of_pairs: np.ndarray, others_of_pairs: np.ndarray) -> bool:
    if issparse(rows):
        return (rows[rows_of_pairs] != rows[others_of_pairs]).nnz == 0
    return bool(np.array_equal(rows[rows_of_pairs], rows[others_of_pairs]))


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
    # A stable sort keeps equal hashes in the order of rows: the first of a run is the smallest.
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
