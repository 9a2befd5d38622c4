"""Ways to read what the authors ran for Table 1, and how near each comes to their figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from finance import Companies
from iteration import iterate
from sectors import sector_accuracy

MAX_ITER = 5000


def accuracy(
    weights: np.ndarray, known: np.ndarray, companies: Companies, ks: list[int], **reading: Any
) -> np.ndarray:
    """Return the accuracy at each k after imputation by `weights`, counted as `reading` says.

    A random start is drawn ``n_starts`` times, and the mean is returned.
    """
    n_starts = reading.get("n_starts", 1)
    found = []
    for seed in range(n_starts):
        vectors = iterate(
            weights,
            known,
            tol=reading["tol"],
            noise=reading["noise"],
            self_weight=reading["self_weight"],
            seed=seed,
            max_iter=MAX_ITER,
        ).vectors
        vectors = _formed(vectors, reading.get("form", "as they are"))
        found.append(sector_accuracy(vectors, companies.sector, ks, votes=reading["votes"]))
    return np.mean(found, axis=0)


def _formed(vectors: np.ndarray, form: str) -> np.ndarray:
    if form == "standardised":
        return (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    if form == "unit":
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert form == "as they are"
    return vectors


def agreement(
    config: dict[str, Any],
    companies: Companies,
    embeddings: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    published: pd.DataFrame,
) -> pd.DataFrame:
    """Return the largest and mean difference from the paper's imputed rows, by reading."""
    rows = {}
    for given in config["readings"]:
        reading = config["table1"] | given
        row = []
        for matrix in weights.values():
            found = [
                accuracy(matrix, known, companies, config["ks"], **reading)
                for known in embeddings.values()
            ]
            theirs = published.loc[[f"{label}+aff" for label in embeddings]].to_numpy()
            difference = np.abs(np.array(found) - theirs)
            row += [difference.max(), difference.mean()]
        rows[given["name"]] = row
    columns = [f"{name}: {what}" for name in weights for what in ("largest", "mean")]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("reading")
