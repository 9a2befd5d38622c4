"""The paper's iteration written out, so that its start and its change at every step can be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array


@dataclass(frozen=True)
class Iteration:
    """All rows after the last step, and the relative change of every step."""

    vectors: np.ndarray
    changes: list[float]


def iterate(
    weights: np.ndarray | csr_array,
    embedding: np.ndarray,
    *,
    tol: float,
    noise: float = 0.0,
    self_weight: float = 0.0,
    seed: int = 0,
    max_iter: int = 1000,
) -> Iteration:
    """Repeat "each unknown row is the mix of its neighbours" until the relative change is `tol`.

    Unknown rows, all NaN in `embedding`, start from the mean of the known ones plus normal noise,
    `noise` times as wide as the known rows are in each dimension. The published scripts use 1;
    Table 1 agrees with 0. `self_weight` is the share of itself that a row keeps in a step.
    """
    unknown = np.isnan(embedding[:, 0])
    known = embedding[~unknown]
    vectors = embedding.copy()
    drawn = np.random.default_rng(seed).normal(size=(int(unknown.sum()), known.shape[1]))
    vectors[unknown] = known.mean(axis=0) + noise * known.std(axis=0) * drawn
    rows = weights[np.flatnonzero(unknown)]
    changes: list[float] = []
    while len(changes) < max_iter and not (changes and changes[-1] <= tol):
        old = vectors[unknown]
        new = (1 - self_weight) * (rows @ vectors) + self_weight * old
        changes.append(float(np.abs(new - old).sum() / np.abs(old).sum()))
        vectors[unknown] = new
    return Iteration(vectors, changes)
