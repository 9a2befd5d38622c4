"""Lengths of vectors of any finite size: squares of 1e200 overflow, those of 1e-200 vanish."""

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
    with np.errstate(over="ignore", under="ignore"):
        odd = _odd(np.linalg.norm(vectors, axis=1))
    if odd.size == 0:
        return vectors
    safe = vectors.copy()
    safe[odd], _ = _scaled(vectors[odd])
    return safe


def _odd(lengths: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows whose squares may have lost digits."""
    low, high = _SAFE.get(lengths.dtype.itemsize, (0.0, np.inf))
    return np.flatnonzero(~((lengths >= low) & (lengths <= high)))


def _scaled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose largest value is near 1, and the powers of two they were divided by."""
    exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    return np.ldexp(rows, -exponents[:, None]), exponents
