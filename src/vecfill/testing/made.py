"""The rows and vectors on which checks run."""

from __future__ import annotations

import numpy as np

N_KNOWN, N_FITTED, N_ROWS, N_DIMS = 60, 80, 90, 5


def made() -> tuple[np.ndarray, np.ndarray]:
    """Return rows that tell their vectors, and the vectors."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, 3))
    return rows, np.tanh(rows @ rng.normal(size=(3, N_DIMS)))
