"""Spearman correlation, with intervals, between cosines of vectors and people's scores of pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata


def cosines(pairs: pd.DataFrame, vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the cosine of each pair of ``one`` and ``other``; both must have a vector."""
    ones = np.stack([vectors[word] for word in pairs["one"]])
    others = np.stack([vectors[word] for word in pairs["other"]])
    lengths = np.linalg.norm(ones, axis=1) * np.linalg.norm(others, axis=1)
    return (ones * others).sum(axis=1) / np.maximum(lengths, 1e-12)


def spearman(
    found: np.ndarray, scores: np.ndarray, *, n_draws: int, seed: int
) -> tuple[float, float, float]:
    """Return the rank correlation and its 95 % interval over draws of pairs with replacement.

    Cosines that are all the same, as those of words with one vector are, rank nothing: NaN.
    """
    return _with_interval([found], scores, n_draws=n_draws, seed=seed)


def spearman_gain(
    found: np.ndarray, other: np.ndarray, scores: np.ndarray, *, n_draws: int, seed: int
) -> tuple[float, float, float]:
    """Return how far `found` is ahead of `other`, and its 95 % interval; each draw judges both."""
    return _with_interval([found, other], scores, n_draws=n_draws, seed=seed)


def _with_interval(
    rankings: list[np.ndarray], scores: np.ndarray, *, n_draws: int, seed: int
) -> tuple[float, float, float]:
    """Return the correlation of the first ranking, less that of a second, and its interval."""

    def value(chosen: np.ndarray | slice) -> float:
        first, *second = (_rank_correlation(each[chosen], scores[chosen]) for each in rankings)
        return first - sum(second)

    rng = np.random.default_rng(seed)
    draws = [value(rng.integers(len(scores), size=len(scores))) for _ in range(n_draws)]
    whole = value(slice(None))
    if np.isnan(whole):
        return whole, whole, whole
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return whole, float(low), float(high)


def _rank_correlation(found: np.ndarray, scores: np.ndarray) -> float:
    # Equal up to rounding is equal: the cosine of a vector with itself differs in the last digit.
    ranks = [rankdata(values) - (len(values) + 1) / 2 for values in (found.round(12), scores)]
    lengths = np.sqrt([(rank**2).sum() for rank in ranks])
    return float(ranks[0] @ ranks[1] / lengths.prod()) if lengths.all() else float("nan")


def shown(values: tuple[float, float, float]) -> str:
    """Return a correlation and its interval as a cell of a table."""
    if np.isnan(values[0]):
        return "none"
    return f"{values[0]:.3f} ({values[1]:.2f} to {values[2]:.2f})"


def read_shown(cell: str) -> tuple[float, float, float]:
    """Return what `shown` wrote, for figures."""
    if cell.startswith("none"):
        return float("nan"), float("nan"), float("nan")
    value, low, _, high = cell.split()[:4]
    return float(value), float(low.removeprefix("(")), float(high.rstrip("),"))
