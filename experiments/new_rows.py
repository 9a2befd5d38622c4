"""Rows for new tokens by the rules of others: FOCUS, WECHSEL, mergekit, ridge regression."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV


def sparsemax_rows(shown: np.ndarray, asked: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return mixes of known rows whose shares are the sparsemax of cosines: FOCUS's rule."""
    atoms, targets = _unit(shown), _unit(asked)
    rows = []
    for block in np.array_split(targets, max(1, len(targets) // 250)):
        scores = block @ atoms.T
        falling = -np.sort(-scores, axis=1)
        sums = np.cumsum(falling, axis=1)
        counts = np.arange(1, scores.shape[1] + 1)
        n_kept = (1 + counts * falling > sums).sum(axis=1)
        threshold = (sums[np.arange(len(block)), n_kept - 1] - 1) / n_kept
        rows.append(np.maximum(scores - threshold[:, None], 0.0) @ known)
    return np.vstack(rows)


def wechsel_rows(
    shown: np.ndarray,
    asked: np.ndarray,
    known: np.ndarray,
    n_neighbors: int = 10,
    temperature: float = 0.1,
) -> np.ndarray:
    """Return means of near known rows, weighted by the softmax of cosines: WECHSEL's rule."""
    scores = _unit(asked) @ _unit(shown).T
    nearest = np.argpartition(-scores, n_neighbors, axis=1)[:, :n_neighbors]
    weights = np.exp(np.take_along_axis(scores, nearest, axis=1) / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, known[nearest])


def pursued_rows(
    shown: np.ndarray, asked: np.ndarray, known: np.ndarray, n_atoms: int
) -> np.ndarray:
    """Return mixes of known rows by orthogonal matching pursuit, all targets at once."""
    lengths = np.linalg.norm(shown, axis=1)
    atoms = _unit(shown).astype(np.float32)
    everyone = np.arange(len(asked))
    chosen = np.empty((len(asked), 0), np.int64)
    coefficients, residual = np.empty((len(asked), 0)), asked
    for _ in range(n_atoms):
        products = np.abs(residual.astype(np.float32) @ atoms.T)
        products[everyone[:, None], chosen] = -1.0
        chosen = np.column_stack([chosen, products.argmax(axis=1)])
        parts = atoms[chosen].astype(np.float64)
        gram = parts @ parts.transpose(0, 2, 1) + 1e-9 * np.eye(chosen.shape[1])
        right = np.einsum("nkd,nd->nk", parts, asked)
        coefficients = np.linalg.solve(gram, right[..., None])[..., 0]
        residual = asked - np.einsum("nk,nkd->nd", coefficients, parts)
    shares = coefficients / lengths[chosen]
    return np.stack([share @ known[row] for share, row in zip(shares, chosen, strict=True)])


def ridge_rows(shown: np.ndarray, asked: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return what ridge regression gives, its strength chosen by leave-one-out error."""
    scale = float(np.mean(shown**2)) * len(shown)
    return RidgeCV(alphas=scale * np.logspace(-5, 4, 19)).fit(shown, known).predict(asked)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
