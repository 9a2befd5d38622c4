"""Sizes that neither overflow nor vanish when they are squared, by powers of two.

Results do not depend on the scale of the domain, and grow with that of the embedding. So numbers of
extreme size are multiplied by a power of two, which changes no digit, and divided by it at the end
where it matters. Numbers of ordinary size are left as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

SAFE_RANGE = 2.0**50
"""Largest value kept as it is: its square times a million columns is far from overflow."""

SAFE_VECTORS = 2.0**400
"""The same for vectors in 64 bits, of which only sums of squares are taken."""


def _largest(values: Any) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def _times_power(rows: Any, exponent: int) -> Any:
    if exponent == 0:
        return rows
    if issparse(rows):
        values = np.ldexp(rows.data, exponent)
        return csr_array((values, rows.indices, rows.indptr), rows.shape)
    return np.ldexp(rows, exponent)


def scaled_together(*tables: Any) -> tuple[Any, ...]:
    """Return rows that are compared with each other, times one power of two if their size asks.

    Examples
    --------
    >>> left, right = scaled_together(np.array([[2.0**900]]), np.array([[2.0**899]]))
    >>> left.item(), right.item()
    (0.5, 0.25)
    """
    largest = max(_largest(rows.data if issparse(rows) else rows) for rows in tables)
    is_safe = largest == 0.0 or 1 / SAFE_RANGE <= largest <= SAFE_RANGE
    exponent = 0 if is_safe else -int(np.frexp(largest)[1])
    return tuple(_times_power(rows, exponent) for rows in tables)


def well_scaled(rows: Any) -> Any:
    """Return `rows`, times a power of two if their size would over- or underflow when squared.

    Graphs and convex weights do not change with scale.

    Examples
    --------
    >>> float(well_scaled(np.array([[1e300], [3e300]])).max()) < 4
    True
    """
    return scaled_together(rows)[0]


def safe_exponents(vectors: np.ndarray, *, each_column: bool) -> np.ndarray:
    """Return the powers of two by which vectors in 64 bits are to be divided: mostly zero.

    There is one for each column, or a single one for all.

    Examples
    --------
    >>> safe_exponents(np.array([[1.0, 2.0**900]]), each_column=True)
    array([  0, 901], dtype=int32)
    """
    axis = 0 if each_column else None
    highest, lowest = (reduce(vectors, axis=axis, initial=0.0) for reduce in (np.max, np.min))
    largest = np.atleast_1d(np.maximum(highest, -lowest))
    is_safe = (largest == 0.0) | ((largest >= 1 / SAFE_VECTORS) & (largest <= SAFE_VECTORS))
    return np.where(is_safe, 0, np.frexp(largest)[1]).astype(np.int32)


def divided(vectors: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Return vectors divided by powers of two; the same array where all of these are one.

    Examples
    --------
    >>> divided(np.array([[4.0, 3.0]]), np.array([2, 0]))
    array([[1., 3.]])
    """
    return np.ldexp(vectors, -exponents) if exponents.any() else vectors


def in_range_of(dtype: np.dtype[Any], vectors: np.ndarray) -> np.ndarray:
    """Return `vectors` in `dtype`; values too large for it become its largest.

    Known vectors may reach the largest float32, and a trend leads beyond it.

    Examples
    --------
    >>> in_range_of(np.dtype(np.float32), np.array([1.0, -4e38])).tolist()
    [1.0, -3.4028234663852886e+38]
    """
    try:
        with np.errstate(over="raise"):
            return vectors.astype(dtype, order="C", copy=False)
    except FloatingPointError:
        limits = np.finfo(dtype)
        return vectors.clip(limits.min, limits.max).astype(dtype, order="C")
