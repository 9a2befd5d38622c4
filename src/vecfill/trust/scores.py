"""How near imputed vectors come to the truth, row by row.

Three measures that disagree, so all are told. *Centred cosine* is the cosine after the mean of the
known rows has been subtracted: plain cosine flatters anything near the mean. The *reciprocal rank*
and *hits at 10* ask where the truth stands when all known vectors are sorted by their centred
cosine with the imputed one: could it be told from others?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from vecfill._lengths import row_lengths
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.model.directions import unit

ROWS_PER_BLOCK = 256

MANY_PAIRS = 10_000_000
"""Pairs of predicted and known rows from which on products in 32 bits do."""

MANY_DIMS = 16
"""Dimensions from which on directions are far enough apart for that."""

MEASURES = ("centred_cosine", "mrr", "hits_at_10", "cosine", "norm_ratio")
"""The measures by the names they have in reports."""


@dataclass(frozen=True)
class RowScores:
    """Scores of imputed rows whose truth is known, one value a row."""

    centred_cosine: np.ndarray
    reciprocal_rank: np.ndarray
    """One over the rank of the truth; the mean over rows is the mean reciprocal rank, MRR."""
    hits_at_10: np.ndarray
    cosine: np.ndarray
    norm_ratio: np.ndarray
    """Length of the imputed vector over that of the true one."""

    def means(self) -> dict[str, float]:
        """Return the mean of each measure.

        Examples
        --------
        >>> known = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        >>> score_rows(known, np.arange(3), known, np.zeros(2)).means()["mrr"]
        1.0
        """
        return {measure: float(self.of(measure).mean()) for measure in MEASURES}

    def of(self, measure: str) -> np.ndarray:
        """Return the values of a measure, a row each; ``"mrr"`` gives reciprocal ranks."""
        return getattr(self, "reciprocal_rank" if measure == "mrr" else measure)

    def rows(self, rows: np.ndarray) -> RowScores:
        """Return the scores of some rows."""
        return RowScores(*(getattr(self, field.name)[rows] for field in fields(self)))


def joined(parts: list[RowScores]) -> RowScores:
    """Return the scores of several folds as one.

    Examples
    --------
    >>> known = np.eye(2)
    >>> part = score_rows(known, np.arange(2), known, np.zeros(2))
    >>> joined([part, part]).reciprocal_rank
    array([1., 1., 1., 1.])
    """
    names = [field.name for field in fields(RowScores)]
    return RowScores(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


GOALS = {
    "balanced": ("centred_cosine", "mrr", "hits_at_10"),
    "cosine": ("centred_cosine",),
    "rank": ("mrr", "hits_at_10"),
}
"""Measures that decide, by what the user wants."""


def total_score(scores: Sequence[RowScores], goal: str) -> np.ndarray:
    """Return one number for each method: its measures relative to the mean of all methods.

    Examples
    --------
    >>> known = np.eye(3)
    >>> good = score_rows(known, np.arange(3), known, np.zeros(3))
    >>> bad = score_rows(known[::-1], np.arange(3), known, np.zeros(3))
    >>> total_score([bad, good], "balanced").argmax()
    np.int64(1)
    """
    total = np.zeros(len(scores))
    for measure in GOALS[goal]:
        means = np.array([float(score.of(measure).mean()) for score in scores])
        total += means / max(float(np.abs(means).mean()), 1e-9)
    return total


def total_rows(scores: Sequence[RowScores], goal: str) -> np.ndarray:
    """Return what each row adds to the total of each method, (n_methods, n_rows).

    Unlike for the total itself, all methods must have been asked for the same rows.
    """
    total = np.zeros((len(scores), scores[0].centred_cosine.size))
    for measure in GOALS[goal]:
        values = np.array([score.of(measure) for score in scores])
        total += values / max(float(np.abs(values.mean(axis=1)).mean()), 1e-9)
    return total


def score_rows(
    predicted: np.ndarray,
    truth: np.ndarray,
    known: np.ndarray,
    centre: np.ndarray,
    *,
    n_jobs: Workers = 1,
) -> RowScores:
    """Score each row of `predicted` against row ``truth[i]`` of all `known` vectors.

    `centre` is the mean of the vectors that the prediction was made from. Ties count against the
    prediction: one that is equally near to all known vectors has rank last. Many rows are ranked
    by products in 32 bits.

    Examples
    --------
    >>> known = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> scores = score_rows(np.array([[1.0, 0.1]]), np.array([0]), known, np.zeros(2))
    >>> scores.reciprocal_rank, scores.norm_ratio.round(1)
    (array([1.]), array([0.5]))
    """
    return Judge(known, centre).scored(predicted, truth, n_jobs=n_jobs)


class Judge:
    """Known vectors as seen from a centre, against which many predictions are scored."""

    def __init__(self, known: np.ndarray, centre: np.ndarray) -> None:
        self.known = known
        self.centre = centre
        self._targets: dict[Any, np.ndarray] = {}
        self._asked: tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def scored(self, predicted: np.ndarray, truth: np.ndarray, *, n_jobs: Workers = 1) -> RowScores:
        """Return what `score_rows` does."""
        predicted = predicted.astype(np.float64)
        from_centre, from_zero, lengths = self._truth(truth)
        directions = unit(predicted - self.centre)
        centred = np.einsum("ij,ij->i", directions, from_centre)
        # In few dimensions directions lie so close that 32 bits would not tell them apart.
        is_large = len(predicted) * len(self.known) > MANY_PAIRS
        dtype = np.float32 if is_large and self.known.shape[1] >= MANY_DIMS else np.float64
        rank = np.empty(len(predicted))
        ranked = partial(_ranked, directions.astype(dtype), self._directions(dtype), truth)
        fill([rank], ranked, row_blocks(len(predicted), ROWS_PER_BLOCK), n_jobs=n_jobs)
        ratio = row_lengths(predicted) / np.where(lengths > 0, lengths, 1.0)
        cosine = np.einsum("ij,ij->i", unit(predicted), from_zero)
        return RowScores(centred, 1.0 / rank, (rank <= 10).astype(np.float64), cosine, ratio)

    def _truth(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return directions from the centre and from zero, and lengths, of some known vectors.

        Those asked for last are kept, since many predictors are asked for the same rows.
        """
        asked = self._asked
        if asked is None or not np.array_equal(asked[0], rows):
            true = self.known[rows].astype(np.float64)
            asked = (rows, (unit(true - self.centre), unit(true), row_lengths(true)))
            self._asked = asked
        return asked[1]

    def _directions(self, dtype: Any) -> np.ndarray:
        """Return the known vectors' directions from the centre."""
        if dtype not in self._targets:
            self._targets[dtype] = _directions_from(self.centre, self.known, dtype)
        return self._targets[dtype]


def _directions_from(centre: np.ndarray, vectors: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the directions of vectors from the centre; only a part is ever there in 64 bits."""
    found = np.empty(vectors.shape, dtype)
    for block in row_blocks(len(vectors), 32 * ROWS_PER_BLOCK):
        found[block] = unit(vectors[block].astype(np.float64) - centre)
    return found


def _ranked(
    directions: np.ndarray, targets: np.ndarray, truth: np.ndarray, block: slice, rank: np.ndarray
) -> None:
    """Write the rank of the truth for a block of rows."""
    nearness = directions[block] @ targets.T
    own = nearness[np.arange(len(nearness)), truth[block]]
    rank[:] = (nearness >= own[:, None]).sum(axis=1)
