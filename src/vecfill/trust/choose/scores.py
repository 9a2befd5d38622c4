"""How near imputed vectors come to the truth, row by row.

Measures that disagree, so all are reported. *Centred cosine* is the cosine after the mean of the
known rows has been subtracted: plain cosine flatters anything near the mean. The *reciprocal rank*
and *hits at 10* ask where the truth stands when all known vectors, and words of the file if there
are any, are sorted by their centred cosine with the imputed one: could it be told from others?
*Agreement* compares the ten nearest known entities with those of the true vector.

All of these can be good on average for vectors that nobody could use because they are nearly one
vector. *Crowding* and *hubs* show that: by how much the imputed vectors are more alike than the
true ones, and by how much more often they share their nearest word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from vecfill.machine.lengths import row_lengths, unit
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.trust.choose.recommending import Audience

ROWS_PER_BLOCK = 256

MANY_PAIRS = 1_000_000
"""Pairs of predicted and known rows from which on products in 32 bits do."""

MANY_DIMS = 16
"""Dimensions from which on directions are far enough apart for that."""

MEASURES = ("centred_cosine", "mrr", "hits_at_10", "cosine", "norm_ratio", "agreement")
"""The measures by the names they have in reports."""

RECOMMENDING = ("ndcg", "recall", "coverage")
"""Measures of recommendations, in the order of `gains`."""

N_NEAREST = 10
"""Nearest known entities that are compared with those of the truth."""

MOST_COMPARED = 1000
"""Known entities among which the nearest ones are sought for that. Sorting more of them for every
candidate would cost more than the products do."""

MOST_CROWDED = 0.3
"""Mean cosine, from the centre, by which imputed vectors may be more alike than the true ones.
On cities, all candidates are below .2; one vector for everybody is at 1."""

MOST_HUBS = 0.1
"""How much more often than for true vectors two imputed vectors may share their nearest word.
On cities, candidates are below .02; the collapse that this must prevent had .2."""

LEAST_COSINE = 0.95
"""Share of the best centred cosine that a balanced choice needs. Measured on ten sets: within 5 %
of the best cosine, the best rank costs 1 % of cosine and gains 3 to 4 % of rank and hits."""


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
    agreement: np.ndarray
    """Share of the ten nearest known entities that are among the ten nearest of the truth."""
    crowding: np.ndarray
    """Mean cosine with the other imputed vectors, seen from the centre, less that of the truth."""
    hubs: np.ndarray
    """Share of the other imputed vectors that have the same nearest word, less that of the
    truth."""
    gains: np.ndarray | None = None
    """(n_rows, 3) what each row adds to `RECOMMENDING`, if anybody was recommended anything."""

    def means(self) -> dict[str, float]:
        """Return the mean of each measure.

        Examples
        --------
        >>> known = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        >>> score_rows(known, np.arange(3), known, np.zeros(2)).means()["mrr"]
        1.0
        """
        measures = MEASURES if self.gains is None else (*MEASURES, *RECOMMENDING)
        return {measure: float(self.of(measure).mean()) for measure in measures}

    def of(self, measure: str) -> np.ndarray:
        """Return the values of a measure, a row each; ``"mrr"`` gives reciprocal ranks."""
        if measure in RECOMMENDING:
            assert self.gains is not None
            return self.gains[:, RECOMMENDING.index(measure)]
        return getattr(self, "reciprocal_rank" if measure == "mrr" else measure)

    def rows(self, rows: np.ndarray) -> RowScores:
        """Return the scores of some rows."""
        return self.mapped(lambda values: values[rows])

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> RowScores:
        """Return the scores with the values of every measure changed."""
        values: dict[str, Any] = {}
        for field in fields(self):
            rows = getattr(self, field.name)
            values[field.name] = None if rows is None else change(rows)
        return RowScores(**values)


def joined(parts: list[RowScores]) -> RowScores:
    """Return the scores of several folds as one.

    Examples
    --------
    >>> known = np.eye(2)
    >>> part = score_rows(known, np.arange(2), known, np.zeros(2))
    >>> joined([part, part]).reciprocal_rank
    array([1., 1., 1., 1.])
    """
    columns: dict[str, Any] = {}
    for field in fields(RowScores):
        values = [getattr(part, field.name) for part in parts]
        columns[field.name] = None if values[0] is None else np.concatenate(values)
    return RowScores(**columns)


GOALS = {
    "balanced": ("centred_cosine", "mrr", "hits_at_10"),
    "cosine": ("centred_cosine",),
    "rank": ("mrr", "hits_at_10"),
    "recommend": ("ndcg",),
}
"""Measures by which methods are compared, by what the user wants."""

DECIDING = {
    "balanced": ("mrr", "hits_at_10", "agreement", "centred_cosine"),
    "cosine": ("centred_cosine",),
    "rank": ("mrr", "hits_at_10", "centred_cosine"),
    "recommend": ("centred_cosine",),
}
"""Measures by which the predictor is chosen among those that are good enough in other respects."""


def total_score(
    scores: Sequence[RowScores],
    goal: str,
    *,
    measures: Mapping[str, tuple[str, ...]] = GOALS,
    rows: Any = slice(None),
) -> np.ndarray:
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
    for measure in measures[goal]:
        # Relative to the mean of all: reciprocal ranks may be a tenth of cosines, and count as
        # much.
        means = np.array([float(score.of(measure)[rows].mean()) for score in scores])
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


def has_collapsed(scores: RowScores, rows: Any = slice(None)) -> bool:
    """Tell whether vectors are far more alike than the true ones, whatever their cosine.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> known = rng.normal(size=(50, 5))
    >>> same = np.repeat(known[:1], 50, axis=0)
    >>> [has_collapsed(score_rows(each, np.arange(50), known, np.zeros(5)))
    ...  for each in (known, same)]
    [False, True]
    """
    # Both: vectors can share a direction without sharing a word, and the other way round.
    crowding, hubs = float(scores.crowding[rows].mean()), float(scores.hubs[rows].mean())
    return crowding > MOST_CROWDED or hubs > MOST_HUBS


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


@dataclass(frozen=True, eq=False)
class _Truth:
    """The true vectors of some rows, as a judge sees them."""

    rows: np.ndarray
    """Their places among the known vectors."""
    from_centre: np.ndarray
    from_zero: np.ndarray
    lengths: np.ndarray
    nearest: np.ndarray
    """(n_rows, n_nearest) the nearest of the compared known vectors, itself left out."""
    crowding: float
    hubs: float


class Judge:
    """Known vectors as seen from a centre, against which many predictions are scored.

    `words` are vectors of other words of the file: the truth is ranked among them as well. An
    `audience` is recommended the rows.
    """

    def __init__(
        self,
        known: np.ndarray,
        centre: np.ndarray,
        words: np.ndarray | None = None,
        audience: Audience | None = None,
    ) -> None:
        self.audience = audience
        self.known = known
        self.centre = centre
        self.words = words
        self._targets: dict[Any, np.ndarray] = {}
        self._asked: _Truth | None = None
        n_compared = min(MOST_COMPARED, len(known))
        # The same entities for every candidate: samples of their own would differ by chance.
        self._compared = np.random.default_rng(0).permutation(len(known))[:n_compared]
        # Half of them at most. If nearly all entities are among the nearest, all candidates agree.
        self._n_nearest = min(N_NEAREST, max(n_compared - 1, 0) // 2)

    def scored(self, predicted: np.ndarray, truth: np.ndarray, *, n_jobs: Workers = 1) -> RowScores:
        """Return what `score_rows` does."""
        predicted = predicted.astype(np.float64)
        directions = unit(predicted - self.centre)
        # In few dimensions directions lie so close that 32 bits would not tell them apart.
        is_large = len(predicted) * len(self.known) > MANY_PAIRS
        dtype = np.float32 if is_large and self.known.shape[1] >= MANY_DIMS else np.float64
        true = self._truth(truth, dtype)
        rank, agreement = np.empty((2, len(predicted)))
        nearest = np.empty(len(predicted), np.int64)
        targets = self._directions(dtype)
        ranked = partial(_ranked, directions.astype(dtype), targets, true, self._compared)
        blocks = row_blocks(len(predicted), ROWS_PER_BLOCK)
        fill([rank, agreement, nearest], ranked, blocks, n_jobs=n_jobs)
        return RowScores(
            centred_cosine=np.einsum("ij,ij->i", directions, true.from_centre),
            reciprocal_rank=1.0 / rank,
            hits_at_10=(rank <= N_NEAREST).astype(np.float64),
            cosine=np.einsum("ij,ij->i", unit(predicted), true.from_zero),
            norm_ratio=row_lengths(predicted) / np.where(true.lengths > 0, true.lengths, 1.0),
            agreement=agreement,
            crowding=likeness(directions) - true.crowding,
            hubs=shared(nearest) - true.hubs,
            gains=None if self.audience is None else self.audience.gains(predicted),
        )

    def _truth(self, rows: np.ndarray, dtype: Any) -> _Truth:
        """Return the true vectors of some rows and their neighbors.

        Those asked for last are kept, since many predictors are asked for the same rows.
        """
        if self._asked is None or not np.array_equal(self._asked.rows, rows):
            true = self.known[rows].astype(np.float64)
            from_centre = unit(true - self.centre)
            # The nearest of all, then those of the compared ones.
            nearest = np.empty(len(rows), np.int64)
            compared = np.empty((len(rows), self._n_nearest), np.int64)
            directions, targets = from_centre.astype(dtype), self._directions(dtype)
            for block in row_blocks(len(rows), ROWS_PER_BLOCK):
                nearness = directions[block] @ targets.T
                nearness[np.arange(len(nearness)), rows[block]] = -np.inf
                nearest[block] = nearness.argmax(axis=1)
                compared[block] = _largest(nearness[:, self._compared], self._n_nearest)
            self._asked = _Truth(
                rows,
                from_centre,
                unit(true),
                row_lengths(true),
                compared,
                float(likeness(from_centre).mean()) if len(rows) else 0.0,
                float(shared(nearest).mean()) if len(rows) else 0.0,
            )
        return self._asked

    def _directions(self, dtype: Any) -> np.ndarray:
        """Return the directions from the centre of the known vectors, and of the words."""
        if dtype not in self._targets:
            targets = _directions_from(self.centre, self.known, dtype)
            if self.words is not None:
                words = _directions_from(self.centre, self.words, dtype)
                targets = np.vstack([targets, words])
            self._targets[dtype] = targets
        return self._targets[dtype]


def _ranked(
    directions: np.ndarray,
    targets: np.ndarray,
    true: _Truth,
    compared: np.ndarray,
    block: slice,
    rank: np.ndarray,
    agreement: np.ndarray,
    nearest: np.ndarray,
) -> None:
    """Write the rank of the truth, and what lies nearest, for a block of rows."""
    nearness = directions[block] @ targets.T
    places = np.arange(len(nearness)), true.rows[block]
    of_truth = nearness[places]
    # The truth is among them itself, so the best rank is 1; ties count against the prediction.
    rank[:] = (nearness >= of_truth[:, None]).sum(axis=1)
    nearest[:] = nearness.argmax(axis=1)
    # The truth itself would be in one of the two lists only.
    nearness[places] = -np.inf
    true_nearest = true.nearest[block]
    largest = _largest(nearness[:, compared], true_nearest.shape[1])
    is_same = largest[:, :, None] == true_nearest[:, None, :]
    agreement[:] = is_same.any(axis=2).sum(axis=1) / max(true_nearest.shape[1], 1)


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Return the columns of the `n` largest values of each row, in no order."""
    if not n:
        return np.empty((len(values), 0), np.int64)
    return np.argpartition(-values, n, axis=1)[:, :n]


def likeness(directions: np.ndarray) -> np.ndarray:
    """Return the mean cosine of each unit row with the others.

    Examples
    --------
    >>> likeness(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    array([0.5, 0.5, 0. ])
    """
    if len(directions) < 2:
        return np.zeros(len(directions))
    with_itself = np.einsum("ij,ij->i", directions, directions)
    return (directions @ directions.sum(axis=0) - with_itself) / (len(directions) - 1)


def shared(labels: np.ndarray) -> np.ndarray:
    """Return for each label the share of the others that are equal to it.

    Examples
    --------
    >>> shared(np.array([7, 7, 3]))
    array([0.5, 0.5, 0. ])
    """
    if len(labels) < 2:
        return np.zeros(len(labels))
    _, place, times = np.unique(labels, return_inverse=True, return_counts=True)
    return (times[place] - 1.0) / (len(labels) - 1)


def _directions_from(centre: np.ndarray, vectors: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the directions of vectors from the centre; only a part is ever there in 64 bits."""
    directions = np.empty(vectors.shape, dtype)
    for block in row_blocks(len(vectors), 32 * ROWS_PER_BLOCK):
        directions[block] = unit(vectors[block].astype(np.float64) - centre)
    return directions
