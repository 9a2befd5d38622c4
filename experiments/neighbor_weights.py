"""Weights on a plain k-nearest-neighbour graph, and what the paper's lemma asks of weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from sklearn.neighbors import NearestNeighbors


def neighbor_weights(domain: np.ndarray, k: int) -> csr_array:
    """Return each row as a mix of its k nearest rows: non-negative least squares over its sum."""
    nearest = NearestNeighbors(n_neighbors=k).fit(domain).kneighbors(return_distance=False)
    found = np.empty(nearest.shape)
    for row, neighbors in enumerate(nearest):
        mix = nnls(domain[neighbors].T, domain[row])[0]
        found[row] = mix / mix.sum() if mix.sum() > 0 else 1 / k
    rows = np.repeat(np.arange(len(domain)), k)
    shape = (len(domain), len(domain))
    weights = csr_array((found.ravel(), (rows, nearest.ravel())), shape=shape)
    weights.eliminate_zeros()
    return weights


def cut_off(weights: csr_array, is_known: np.ndarray) -> np.ndarray:
    """Tell which unknown rows have no path of positive weights to a known row.

    Examples
    --------
    >>> cut_off(csr_array([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]]), np.array([True, False, False]))
    array([False, False,  True])
    """
    n_rows = weights.shape[0]
    # Backwards from one more node that stands for all known rows.
    coordinates = weights.tocoo()
    known = np.flatnonzero(is_known)
    heads = np.concatenate([coordinates.col, np.full(len(known), n_rows)])
    tails = np.concatenate([coordinates.row, known])
    backwards = csr_array(
        (np.ones(len(heads)), (heads, tails)), shape=(n_rows + 1, n_rows + 1)
    )  # fmt: skip
    reached = breadth_first_order(backwards, n_rows, return_predecessors=False)
    found = np.ones(n_rows + 1, bool)
    found[reached] = False
    return found[:-1] & ~is_known


def spectral_radius(weights: csr_array, unknown: np.ndarray) -> float:
    """Return the largest modulus of an eigenvalue of the unknown block of W."""
    rows = np.flatnonzero(unknown)
    return float(np.abs(np.linalg.eigvals(weights[rows][:, rows].toarray())).max())
