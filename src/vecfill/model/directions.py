"""Vectors -> directions."""

from __future__ import annotations

import numpy as np

from vecfill.machine.lengths import unit

__all__ = ["leading_axes", "unit"]


def leading_axes(rows: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the directions along which rows are longest, (n_dims, n_axes), the longest first.

    Examples
    --------
    >>> abs(leading_axes(np.array([[3.0, 0.0], [0.0, 1.0]]), 1)).ravel()
    array([1., 0.])
    """
    _, axes = np.linalg.eigh(rows.T @ rows)
    return axes[:, ::-1][:, :n_axes]
