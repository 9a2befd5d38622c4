"""What others do to bring vectors of one model into the space of another."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.neural_network import MLPRegressor


def procrustes(rows: np.ndarray, vectors: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return orthogonal Procrustes with centring and scale."""
    centre, mean = rows.mean(axis=0), vectors.mean(axis=0)
    left, values, right = np.linalg.svd((rows - centre).T @ (vectors - mean), full_matrices=False)
    turned = (rows - centre) @ left @ right
    scale = values.sum() / (turned**2).sum()
    return (wanted - centre) @ left @ right * scale + mean


def ridge(rows: np.ndarray, vectors: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return ridge regression, its strength chosen by leave-one-out error."""
    scale = float(np.mean(rows**2)) * len(rows)
    return RidgeCV(alphas=scale * np.logspace(-5, 2, 15)).fit(rows, vectors).predict(wanted)


def adapter(rows: np.ndarray, vectors: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return a network with one hidden layer, stopped early on a tenth of the pairs."""
    spread = rows.std() or 1.0
    network = MLPRegressor(
        hidden_layer_sizes=(512,),
        early_stopping=True,
        n_iter_no_change=8,
        max_iter=200,
        random_state=0,
        alpha=1e-4,
    )
    size = vectors.std() or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(rows / spread, vectors / size)
    return network.predict(wanted / spread) * size


RIVALS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "Procrustes": procrustes,
    "ridge": ridge,
    "MLP": adapter,
}
