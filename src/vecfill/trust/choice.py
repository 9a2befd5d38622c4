"""The best predictor for the user's own data, chosen on known rows that are hidden and imputed.

Predictors are compared by the sum of three standardised measures, because each alone can be
fooled. Neighbours, graphs and weights are shared by all folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import InputError
from vecfill.model.directions import unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.trust.candidates import first_round, n_groups, second_round
from vecfill.trust.folds import Fold, hidden_folds
from vecfill.trust.scores import GOALS, RowScores, joined, score_rows

FEWEST_KNOWN = 10
"""Fewer known rows can neither rank predictors nor show a signal."""

FEW_KNOWN = 1000

ENOUGH_HIDDEN = 800
"""Hidden rows after which another fold would change no choice."""

MOST_ENTRIES = 600_000
"""Embeddings with more entries are compared in fewer dimensions, the leading ones."""

LEAST_DIMS = 64

CHOICE_TOL = 1e-4
"""Residual to which hidden rows are solved: far finer than what tells two predictors apart."""

CHANCE = 1e-3
"""A signal counts when chance alone would show it this rarely."""

POOL = 5000
"""Known vectors among which the truth is ranked when predictors are compared."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Choice:
    """The predictor chosen, how it was judged, and whether there is any signal."""

    predictor: Predictor
    tried: tuple[Predictor, ...]
    means: tuple[dict[str, float], ...]
    """Mean measures of each on the hidden rows."""
    honest: RowScores
    """Scores of the hidden rows, each under the predictor chosen without it."""
    p_value: float
    """How likely chance alone would come so near to the hidden vectors."""

    @property
    def has_signal(self) -> bool:
        """Whether the choice beats the mean of the known rows by more than chance."""
        return self.p_value < CHANCE and float(self.honest.centred_cosine.mean()) > 0

    def __repr__(self) -> str:
        return f"Choice({self.predictor}; best of {len(self.tried)}, p = {self.p_value:.2g})"


def permutation_p_value(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return how likely vectors dealt out at random would be as near to the truth.

    Rows are directions from the centre. The sum of cosines of the pairs is compared with that
    under all permutations of the truth, whose mean and variance have a closed form.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, other = unit(rng.normal(size=(50, 5))), unit(rng.normal(size=(50, 5)))
    >>> permutation_p_value(truth, truth) < 1e-6, permutation_p_value(other, truth) > 0.01
    (True, True)
    """
    n_rows = len(truth)
    if n_rows < 3:
        return 1.0
    cosines = predicted @ truth.T
    own = float(np.trace(cosines))
    grand = cosines.mean()
    centred = cosines - cosines.mean(axis=0) - cosines.mean(axis=1, keepdims=True) + grand
    spread = np.sqrt((centred**2).sum() / (n_rows - 1))
    return float(norm.sf((own - n_rows * grand) / spread)) if spread > 0 else 1.0


def fewer_dims(embedding: EmbeddingVectors, is_known: KnownMask) -> EmbeddingVectors:
    """Return the embedding, or if it is large its leading dimensions, in which to compare.

    Examples
    --------
    >>> fewer_dims(np.ones((3, 2)), np.array([True, True, False])).shape
    (3, 2)
    """
    n_rows, n_dims = embedding.shape
    n_kept = max(LEAST_DIMS, MOST_ENTRIES // n_rows)
    if n_kept >= n_dims:
        return embedding.astype(np.float64)
    known = embedding[is_known].astype(np.float64)
    centre = known.mean(axis=0)
    _, directions = np.linalg.eigh((known - centre).T @ (known - centre))
    return (embedding - centre) @ directions[:, ::-1][:, :n_kept]


def _pool(truth: np.ndarray, n_known: int) -> np.ndarray:
    """Return the hidden rows and so many other known ones that ranks mean something."""
    others = np.setdiff1d(np.arange(n_known), truth)
    n_others = min(others.size, max(0, POOL - truth.size))
    return np.union1d(truth, np.random.default_rng(0).permutation(others)[:n_others])


class Trials:
    """Hidden rows predicted by many predictors, fold by fold, each thing computed once."""

    def __init__(
        self,
        space: Space,
        embedding: EmbeddingVectors,
        is_known: KnownMask,
        folds: list[Fold],
        goal: str,
    ) -> None:
        self.space = space
        self.goal = goal
        self.known = embedding[is_known]
        self.folds = folds
        self.given = [KnownRows(embedding, fold.is_seen) for fold in folds]
        self.pools = [_pool(fold.truth, len(self.known)) for fold in folds]
        self.centres = [given.known.mean(axis=0) for given in self.given]
        self.scores: dict[Any, RowScores] = {}
        self.directions: dict[Any, np.ndarray] = {}

    def run(self, kin: Sequence[Predictor]) -> None:
        """Score predictors that share most of their work."""
        parts: dict[Predictor, list[np.ndarray]] = {each: [] for each in kin}
        for fold, given in zip(self.folds, self.given, strict=True):
            found = type(kin[0]).predict_together(
                kin, self.space, given, places=fold.places, tol=CHOICE_TOL
            )
            for each, prediction in zip(kin, found, strict=True):
                parts[each].append(prediction.vectors)
        for each, vectors in parts.items():
            self.scores[each] = joined([self._scored(*one) for one in enumerate(vectors)])
            self.directions[each] = np.vstack(
                [unit(part - centre) for part, centre in zip(vectors, self.centres, strict=True)]
            )

    def _scored(self, number: int, vectors: np.ndarray) -> RowScores:
        pool = self.pools[number]
        truth = np.searchsorted(pool, self.folds[number].truth)
        return score_rows(vectors, truth, self.known[pool], self.centres[number])

    def truth(self) -> np.ndarray:
        """Return the hidden rows' true directions, in the order of the predictions."""
        pairs = zip(self.folds, self.centres, strict=True)
        return np.vstack([unit(self.known[fold.truth] - centre) for fold, centre in pairs])

    def best(self) -> Any:
        """Return the predictor that does best on all hidden rows."""
        tried = list(self.scores)
        every_row = np.arange(len(self.scores[tried[0]].cosine))
        total = standing([self.scores[each] for each in tried], every_row, self.goal)
        return tried[int(np.argmax(total))]


def standing(scores: Sequence[RowScores], rows: np.ndarray, goal: str = "balanced") -> np.ndarray:
    """Return how well each predictor does on some rows: the sum of standardised measures.

    A predictor whose ranks are worse than the best one's by more than chance is out, however good
    its cosines: a vector that cannot be told from others is of no use. Not so if cosines are all
    that is wanted.
    """
    total = np.zeros(len(scores))
    for measure in GOALS[goal]:
        means = np.array([score.of(measure)[rows].mean() for score in scores])
        spread = means.std()
        if spread > 0:
            total += (means - means.mean()) / spread
    if goal == "cosine":
        return total
    ranks = np.array([score.reciprocal_rank[rows] for score in scores])
    short = ranks[ranks.mean(axis=1).argmax()] - ranks
    total[short.mean(axis=1) > short.std(axis=1) / np.sqrt(rows.size)] = -np.inf
    return total


def honest_scores(
    scores: Sequence[RowScores],
    directions: Sequence[np.ndarray],
    group: np.ndarray,
    goal: str = "balanced",
) -> tuple[RowScores, np.ndarray]:
    """Return scores and directions of each row under the predictor that other groups choose."""
    parts, rows_of, found = [], [], np.empty_like(directions[0])
    for one in np.unique(group):
        rows = np.flatnonzero(group == one)
        best = int(np.argmax(standing(scores, np.flatnonzero(group != one), goal)))
        parts.append(scores[best].rows(rows))
        rows_of.append(rows)
        found[rows] = directions[best][rows]
    back = np.argsort(np.concatenate(rows_of), kind="stable")
    return joined(parts).rows(back), found


def choose(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    goal: str = "balanced",
    seed: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Return the predictor that best imputes known rows when they are hidden.

    Where few rows are known, ten folds are hidden and not five: a fifth of few is much, and what
    is best without it need not be best with it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 3))
    >>> domain = np.tanh(latent @ rng.normal(size=(3, 8)))
    >>> choice = choose(Space(domain), latent @ rng.normal(size=(3, 5)), np.ones(120, bool))
    >>> print(choice.predictor)
    standardized, min_degree 8, ridge 0, trend + 0.6 x propagated residual
    >>> round(float(choice.honest.reciprocal_rank.mean()), 1)
    0.8
    """
    n_known = int(is_known.sum())
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"Only {n_known} entities are known, too few to choose a method by hiding some of "
            f"them: {FEWEST_KNOWN} are needed. Use method='paper' (--method paper), which needs "
            f"no choice; its vectors cannot be checked on so few."
        )
    n_folds = 10 if n_known < FEW_KNOWN else 5
    folds = list(hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN))
    trials = Trials(space, fewer_dims(embedding, is_known), is_known, folds, goal)
    n_done = 0
    for groups in (first_round, lambda space: second_round(space, trials.best())):
        for kin in groups(space):
            trials.run(kin)
            n_done += 1
            if progress is not None:
                progress(n_done, n_groups(space))
    return _judged(trials, n_folds)


def _judged(trials: Trials, n_folds: int) -> Choice:
    tried = tuple(trials.scores)
    scores = [trials.scores[each] for each in tried]
    sizes = [fold.hidden.size for fold in trials.folds]
    # One large fold: its rows are dealt out, so that each is judged by the others.
    group = (
        np.repeat(np.arange(len(sizes)), sizes) if len(sizes) > 1 else np.arange(sizes[0]) % n_folds
    )
    directions = [trials.directions[each] for each in tried]
    honest, found = honest_scores(scores, directions, group, trials.goal)
    return Choice(
        trials.best(),
        tried,
        tuple(score.means() for score in scores),
        honest,
        permutation_p_value(found, trials.truth()),
    )
