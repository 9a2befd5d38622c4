"""What a user could pick instead: each rival from domain and known rows to imputed rows.

All are given the same prepared domain and are written as their authors or scikit-learn define
them, with their usual parameters; those that have one to choose, choose it on the known rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.linear_model import RidgeCV, orthogonal_mp_gram
from sklearn.neighbors import KNeighborsRegressor

from vecfill.method.engine import row_blocks
from vecfill.trust.scores import unit

N_NEIGHBORS = 10
N_ATOMS = 64
"""Atoms of orthogonal matching pursuit, the default of mergekit's tokensurgeon."""

Rival = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
"""(domain of all rows, known vectors, is_known) -> vectors of the unknown rows."""


def mean(domain: Any, known: np.ndarray, is_known: np.ndarray) -> np.ndarray:  # noqa: ARG001
    """Return the mean of the known vectors for every unknown row.

    Examples
    --------
    >>> mean(np.eye(3), np.array([[1.0], [3.0]]), np.array([True, True, False]))
    array([[2.]])
    """
    return np.repeat(known.mean(axis=0)[None], (~is_known).sum(), axis=0)


def _neighbors(how: str) -> Rival:
    def impute(domain: Any, known: np.ndarray, is_known: np.ndarray) -> np.ndarray:
        n_neighbors = min(N_NEIGHBORS, int(is_known.sum()))
        model = KNeighborsRegressor(n_neighbors, weights=how)
        model.fit(domain[np.flatnonzero(is_known)], known)
        return model.predict(domain[np.flatnonzero(~is_known)])

    return impute


def ridge(domain: Any, known: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Return scikit-learn's ridge regression, its strength chosen by leave-one-out error.

    Examples
    --------
    >>> domain = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> ridge(domain, domain[:3], np.array([True, True, True, False])).round(1)
    array([[3.]])
    """
    rows = domain.toarray() if issparse(domain) else domain
    scale = float(np.mean(rows**2)) * max(1, is_known.sum()) or 1.0
    model = RidgeCV(alphas=scale * np.logspace(-5, 4, 19))
    found = model.fit(rows[is_known], known).predict(rows[~is_known])
    return found.reshape(-1, known.shape[1])


def orthogonal_matching_pursuit(domain: Any, known: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Return sparse mixes of known rows: what mergekit's tokensurgeon does for new tokens.

    Examples
    --------
    >>> domain = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> orthogonal_matching_pursuit(domain, np.array([[1.0], [5.0]]), np.array([True, True, False]))
    array([[7.]])
    """
    atoms, targets = domain[np.flatnonzero(is_known)], domain[np.flatnonzero(~is_known)]
    if issparse(domain):
        atoms, targets = atoms.toarray(), targets.toarray()
    # Lengths are taken out of the atoms, as the pursuit needs, and put back into the mixes.
    lengths = np.linalg.norm(atoms, axis=1)
    lengths[lengths == 0] = 1.0
    atoms = atoms / lengths[:, None]
    gram = atoms @ atoms.T
    n_atoms = min(N_ATOMS, *atoms.shape)
    found = np.empty((len(targets), known.shape[1]))
    for block in row_blocks(len(targets), 256):
        with warnings.catch_warnings():
            # It stops early when the atoms left depend on those taken: that is its answer.
            warnings.simplefilter("ignore", RuntimeWarning)
            mixes = orthogonal_mp_gram(
                gram, atoms @ targets[block].T, n_nonzero_coefs=n_atoms, copy_Gram=False
            )
        found[block] = (mixes.reshape(len(atoms), -1).T / lengths) @ known
    return found


def sparsemax(domain: Any, known: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Return mixes by sparsemax over cosines: the rule of FOCUS.

    Examples
    --------
    >>> domain = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.1]])
    >>> sparsemax(domain, np.array([[1.0], [5.0]]), np.array([True, True, False])).round(2)
    array([[1.07]])
    """
    rows = domain.toarray() if issparse(domain) else np.asarray(domain)
    atoms, targets = unit(rows[is_known]), unit(rows[~is_known])
    found = np.empty((len(targets), known.shape[1]))
    for block in row_blocks(len(targets), 512):
        found[block] = _sparsemax_rows(targets[block] @ atoms.T) @ known
    return found


def _sparsemax_rows(scores: np.ndarray) -> np.ndarray:
    """Return the nearest point of the simplex to each row (Martins and Astudillo, 2016)."""
    falling = -np.sort(-scores, axis=1)
    sums = np.cumsum(falling, axis=1)
    counts = np.arange(1, scores.shape[1] + 1)
    n_kept = (1 + counts * falling > sums).sum(axis=1)
    threshold = (sums[np.arange(len(scores)), n_kept - 1] - 1) / n_kept
    return np.maximum(scores - threshold[:, None], 0.0)


RIVALS: Mapping[str, Rival] = MappingProxyType(
    {
        "mean": mean,
        "knn": _neighbors("uniform"),
        "knn_distance": _neighbors("distance"),
        "ridge": ridge,
        "omp": orthogonal_matching_pursuit,
        "sparsemax": sparsemax,
    }
)
"""Every rival by the name it has in reports."""
