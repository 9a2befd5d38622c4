"""Lengths and directions of vectors of any finite size.

Squares of 1e200 overflow, those of 1e-200 vanish.
"""

from __future__ import annotations

import numpy as np

# Beyond these, squares of 32 or 64 bits lose digits; a million columns are allowed for.
_SAFE = {4: (1e-15, 1e15), 8: (1e-140, 1e140)}


def row_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the Euclidean length of each row.

    Rows of ordinary size have the bits of `numpy.linalg.norm`.

    Examples
    --------
    >>> row_lengths(np.array([[3.0, 4.0], [3e200, 4e200], [0.0, 0.0]]))
    array([5.e+000, 5.e+200, 0.e+000])
    """
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    odd = _odd(lengths)
    if odd.size:
        rows, exponents = _scaled(vectors[odd])
        with np.errstate(over="ignore", under="ignore"):
            lengths[odd] = np.ldexp(np.linalg.norm(rows, axis=1), exponents)
    return lengths


def with_safe_squares(vectors: np.ndarray) -> np.ndarray:
    """Return the rows, each of extreme size divided by a power of two; its direction stays.

    Examples
    --------
    >>> with_safe_squares(np.array([[3.0], [2.0**900]])).ravel()
    array([3. , 0.5])
    """
    return _safe(vectors)[0]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    safe, lengths = _safe(vectors)
    if lengths is not None:
        return safe / lengths[:, None]
    lengths = np.linalg.norm(safe, axis=1, keepdims=True)
    return np.divide(safe, lengths, out=np.zeros_like(safe), where=lengths > 0)


def leading_axes(rows: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the directions along which rows are longest, (n_dims, n_axes), the longest first.

    Examples
    --------
    >>> abs(leading_axes(np.array([[3.0, 0.0], [0.0, 1.0]]), 1)).ravel()
    array([1., 0.])
    """
    _, axes = np.linalg.eigh(rows.T @ rows)
    return axes[:, ::-1][:, :n_axes]


def _safe(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows of ordinary size and, if all were so and none is zero, their lengths."""
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    odd = _odd(lengths)
    if odd.size == 0:
        return vectors, lengths
    safe = vectors.copy()
    safe[odd], _ = _scaled(vectors[odd])
    return safe, None


def _odd(lengths: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows whose squares may have lost digits."""
    low, high = _SAFE.get(lengths.dtype.itemsize, (0.0, np.inf))
    return np.flatnonzero(~((lengths >= low) & (lengths <= high)))


def _scaled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose largest value is near 1, and the powers of two they were divided by."""
    exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    return np.ldexp(rows, -exponents[:, None]), exponents
