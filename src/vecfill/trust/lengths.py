"""Lengths of imputed vectors, brought to the distribution of the known ones."""

from __future__ import annotations

import numpy as np

from vecfill.machine.lengths import row_lengths
from vecfill.method.scaling import scaled_together


def norm_factors(imputed: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return factors that give imputed rows the distribution of lengths of the known ones.

    The order of lengths stays: the k-th shortest imputed row gets the length of the known row
    that stands at the same share of the way.

    Examples
    --------
    >>> norm_factors(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0], [6.0]])).tolist()
    [3.0, 2.5]
    """
    imputed, known = scaled_together(imputed, known)
    lengths = row_lengths(imputed)
    # Half a step in: the shortest of few rows should not get the very shortest length there is.
    rank = (np.argsort(np.argsort(lengths, kind="stable"), kind="stable") + 0.5) / lengths.size
    return _factors(lengths, rank, known)


def norm_factors_of_new(new: np.ndarray, imputed: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return factors for rows that come later, by where they stand among the imputed ones.

    Examples
    --------
    >>> imputed, known = np.array([[1.0], [2.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> norm_factors_of_new(np.array([[1.5]]), imputed, known).round(2)
    array([2.67])
    """
    new, imputed, known = scaled_together(new, imputed, known)
    lengths, imputed_lengths = row_lengths(new), np.sort(row_lengths(imputed))
    rank = (np.searchsorted(imputed_lengths, lengths) / max(1, imputed_lengths.size)).clip(0.0, 1.0)
    return _factors(lengths, rank, known)


def _factors(lengths: np.ndarray, rank: np.ndarray, known: np.ndarray) -> np.ndarray:
    target_lengths = np.quantile(row_lengths(known), rank)
    return np.divide(target_lengths, lengths, out=np.ones(lengths.size), where=lengths > 0)
