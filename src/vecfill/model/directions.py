"""Vectors -> directions."""

from __future__ import annotations

import numpy as np

from vecfill._lengths import with_safe_squares


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    vectors = with_safe_squares(vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def leading_axes(rows: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the directions along which rows are longest, (n_dims, n_axes), the longest first.

    Examples
    --------
    >>> abs(leading_axes(np.array([[3.0, 0.0], [0.0, 1.0]]), 1)).ravel()
    array([1., 0.])
    """
    _, axes = np.linalg.eigh(rows.T @ rows)
    return axes[:, ::-1][:, :n_axes]
