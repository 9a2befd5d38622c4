"""Hidden rows predicted by many predictors and by stacks of them, and how those stand.

Groups of predictors race: one that is behind on the first fold is not tried on the others. The
folds leave a prediction of every hidden row by every predictor, made without the row, so the
weights of a stack cost nothing more: non-negative least squares on these predictions. What a stack
is worth is measured with weights that were learnt on the other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.machine.lengths import unit
from vecfill.method.engine import parallel_map
from vecfill.method.scaling import scaled_together
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic, Predictor
from vecfill.model.predictors.base import Hiding
from vecfill.model.space import Space
from vecfill.model.stack import ATTENTION, SHARPNESS, Attention, Stack
from vecfill.model.stretch import stretch_of
from vecfill.trust.choose.folds import Fold
from vecfill.trust.choose.recommending import audience_for
from vecfill.trust.choose.scores import (
    DECIDING,
    GOALS,
    LEAST_COSINE,
    Judge,
    RowScores,
    has_collapsed,
    joined,
    total_rows,
    total_score,
)

# A guess.
SHRINK = 1e-3
"""Added to the diagonal, relative: members are much alike."""

CHOICE_TOL = 1e-4
"""Residual to which hidden rows are solved: far finer than what tells two predictors apart."""

# From decision 27, as `CLEAR_LOSS` is.
FEWEST_RACED = 100
"""Hidden rows of a fold that can show which of two predictors is ahead."""

CLEAR_LOSS = 3.0
"""Standard errors by which a kind of predictor that is not tuned further lies behind."""

LEADING = {"rank": "mrr", "recommend": "ndcg"}
"""Measures in which the choice must be level with the best, by goal."""

# From decision 43: with it the same predictors were chosen on the sets named there.
CLEAR_LEAD = 2.0
"""Standard errors by which the trend alone leads every mixture, for no graph to be tuned."""

# A guess: in a larger pool all ranks are worse, and their order is the same.
POOL = 5000
"""Known vectors among which the truth is ranked when predictors are compared."""


def pool_of(truth: np.ndarray, n_known: int) -> np.ndarray:
    """Return the hidden rows and so many other known ones that ranks mean something."""
    # Ranks among the hidden rows alone would be better the fewer of them there are.
    other_places = np.setdiff1d(np.arange(n_known), truth)
    n_others = min(other_places.size, max(0, POOL - truth.size))
    return np.union1d(truth, np.random.default_rng(0).permutation(other_places)[:n_others])


class Found(NamedTuple):
    """What a predictor finds for the hidden rows of a fold, and how near that is."""

    vectors: np.ndarray
    scores: RowScores


class Trials:
    """Hidden rows predicted by many predictors, fold by fold, each thing computed once.

    `words` are vectors of other words of the file, among which the truth is ranked as well.
    """

    def __init__(
        self,
        space: Space,
        embedding: EmbeddingVectors,
        is_known: KnownMask,
        folds: list[Fold],
        goal: str,
        words: np.ndarray | None = None,
    ) -> None:
        self.space = space
        self.goal = goal
        self.known = embedding[is_known]
        self.folds = folds
        self.seen_rows = [KnownRows(embedding, fold.is_seen) for fold in folds]
        self.pools = [pool_of(fold.truth, len(self.known)) for fold in folds]
        self.centres = [known_rows.known.mean(axis=0) for known_rows in self.seen_rows]
        ranked = zip(self.pools, self.centres, strict=True)
        self.audience = audience_for(goal, embedding, folds)
        audiences = [None] * len(folds) if self.audience is None else self.audience.by_fold
        self.judges = [
            Judge(self.known[pool], centre, words, audience)
            for (pool, centre), audience in zip(ranked, audiences, strict=True)
        ]
        self.scores: dict[Any, RowScores] = {}
        self.dropped: list[Any] = []
        self.directions: dict[Any, np.ndarray] = {}
        self.steps: dict[Any, np.ndarray] = {}

    def run(self, groups: Sequence[Sequence[Predictor]], tell: Callable[[], None]) -> None:
        """Score groups of predictors that do not depend on each other; `tell` of each group.

        Those of one group share most of their work. If none of them is ahead of the best of their
        kind on the first fold, they are not tried on the others.
        """
        # One after the other they are told of as they end.
        beside = [[kin] for kin in groups] if self.space.n_beside == 1 else [groups]
        for batch in beside:
            first_results = parallel_map(self._first_results, batch, n_jobs=self.space.n_beside)
            for kin, results in zip(batch, first_results, strict=True):
                self._finish(kin, results)
                tell()

    def _first_results(self, kin: Sequence[Predictor]) -> list[list[Found]]:
        """Return what predictors find on the first fold if they race, otherwise on all folds."""
        races = self._can_race() and not self.are_shared(kin)
        return self._results(kin, range(1 if races else len(self.folds)))

    def _finish(self, kin: Sequence[Predictor], first_results: list[list[Found]]) -> None:
        later_folds = range(len(first_results[0]), len(self.folds))
        scores = [results[0].scores for results in first_results]
        if later_folds and not self._leads(scores, type(kin[0])):
            self.dropped += kin
            return
        later_results = self._results(kin, later_folds) if later_folds else [[] for _ in kin]
        for predictor, first, later in zip(kin, first_results, later_results, strict=True):
            self._add(predictor, first + later)

    def are_shared(self, kin: Sequence[Predictor]) -> bool:
        """Tell whether one solve serves all folds."""
        return type(kin[0]).shares_folds(kin, self.space, self._hidings())

    def _hidings(self) -> list[Hiding]:
        return [
            (known_rows, fold.places)
            for fold, known_rows in zip(self.folds, self.seen_rows, strict=True)
        ]

    def _results(self, kin: Sequence[Predictor], folds: range) -> list[list[Found]]:
        """Return the vectors of the hidden rows and their scores, by predictor and by fold."""
        hidings = self._hidings()[folds.start : folds.stop]
        by_fold = type(kin[0]).predict_folds(kin, self.space, hidings, tol=CHOICE_TOL)
        return [
            [
                self._scored(fold, predictions[place].vectors)
                for fold, predictions in zip(folds, by_fold, strict=True)
            ]
            for place in range(len(kin))
        ]

    def _can_race(self) -> bool:
        return len(self.folds) > 1 and self.folds[0].hidden.size >= FEWEST_RACED

    def _leads(self, scores: Sequence[RowScores], kind: type[Predictor]) -> bool:
        """Tell whether a predictor is ahead, on the first fold, of the best so far of a kind."""
        if not self.of_kind(kind):
            return True
        # The best of its kind only: kinds that are slow to lead may still win when they are tuned.
        best = self.scores[self.best(kind)].rows(np.arange(self.folds[0].hidden.size))
        return int(np.argmax(total_score([best, *scores], self.goal))) > 0

    def is_beaten(self, kind: type[Predictor]) -> bool:
        """Tell whether a kind of predictor is so far behind another that tuning it is no use."""
        # On few rows nothing is clear, and tuning costs little.
        if self.scores[self.best()].cosine.size < FEWEST_RACED:
            return False
        return clearly_loses(self.scores[self.best(kind)], self.scores[self.best()], self.goal)

    def needs_no_graph(self) -> bool:
        """Tell whether the trend alone is clearly ahead of it with any share of the residuals.

        Then residuals of neighbors have nothing in common, in whatever graph they are neighbors.
        """
        leader = self.best()
        is_trend = isinstance(leader, LatentSemantic) and leader.residual_share == 0.0
        if not is_trend or self.scores[leader].cosine.size < FEWEST_RACED:
            return False
        mixtures = [mix for mix in self.of_kind(LatentSemantic) if mix.residual_share != 0.0]
        rows = total_rows([self.scores[mix] for mix in (leader, *mixtures)], self.goal)
        ahead = rows[0] - rows[1:]
        errors = ahead.std(axis=1) / np.sqrt(rows.shape[1])
        return bool((ahead.mean(axis=1) > CLEAR_LEAD * errors).all())

    def add(self, predictor: Predictor, vectors: list[np.ndarray]) -> None:
        """Score predictions of the hidden rows of each fold."""
        self._add(predictor, [self._scored(*of_fold) for of_fold in enumerate(vectors)])

    def _add(self, predictor: Predictor, results: list[Found]) -> None:
        self.scores[predictor] = joined([result.scores for result in results])
        steps = [
            result.vectors - centre for result, centre in zip(results, self.centres, strict=True)
        ]
        self.directions[predictor] = np.vstack([unit(step) for step in steps])
        self.steps[predictor] = np.vstack(steps)

    def add_stacks(self, group: np.ndarray) -> None:
        """Score stacks of the predictors that do best and whose shares are exact."""
        # Shares of a predictor with a trend are shares of residuals, not of vectors.
        mixes = [
            predictor
            for predictor in self.of_kind(LatentSemantic)
            if predictor.residual_share is None
        ]
        members = [*self.leading(mixes, 2), *self.of_kind(KernelRidge)]
        pairs = zip(self.folds, self.centres, strict=True)
        truth = np.vstack([self.known[fold.truth] - centre for fold, centre in pairs])
        folds = [
            (fold, known_rows.known)
            for fold, known_rows in zip(self.folds, self.seen_rows, strict=True)
        ]
        parts = [self.steps[member] for member in members]
        # Errors of scores count, and long vectors with them; otherwise every row counts the same.
        metric = None if self.audience is None else self.audience.metric
        for stack, vectors in stacked(members, parts, truth, group, folds, metric):
            self.add(stack, vectors)

    def _scored(self, number: int, vectors: np.ndarray) -> Found:
        truth = np.searchsorted(self.pools[number], self.folds[number].truth)
        scores = self.judges[number].scored(vectors, truth, n_jobs=self.space.n_jobs)
        return Found(vectors, scores)

    def truth(self) -> np.ndarray:
        """Return the hidden rows' true directions, in the order of the predictions."""
        pairs = zip(self.folds, self.centres, strict=True)
        return np.vstack([unit(self.known[fold.truth] - centre) for fold, centre in pairs])

    def stretch(self, predictor: Any) -> float:
        """Return how much longer a predictor's steps must be for hidden rows to be spread."""
        pairs = list(zip(self.folds, self.centres, strict=True))
        starts = np.vstack(
            [np.repeat(mean[None], fold.hidden.size, axis=0) for fold, mean in pairs]
        )
        if self.audience is not None:
            return self.audience.stretch(starts, self.steps[predictor])
        truth = np.vstack([self.known[fold.truth] for fold in self.folds])
        return stretch_of(starts, self.steps[predictor], truth)

    def of_kind(self, kind: type[Predictor]) -> list[Any]:
        """Return the predictors of a kind that were tried, in the order in which they were."""
        return [predictor for predictor in self.scores if isinstance(predictor, kind)]

    def best(self, kind: type[Predictor] = Predictor) -> Any:
        """Return the predictor, of a kind, that does best on all hidden rows."""
        predictors = self.of_kind(kind)
        every_row = np.arange(len(self.scores[predictors[0]].cosine))
        total = standing([self.scores[predictor] for predictor in predictors], every_row, self.goal)
        return predictors[int(np.argmax(total))]

    def leading(self, predictors: list[Any], n: int) -> list[Any]:
        """Return the `n` best of some predictors, the best first."""
        totals = total_score([self.scores[predictor] for predictor in predictors], self.goal)
        order = np.argsort(-totals, kind="stable")
        return [predictors[place] for place in order[:n]]


def clearly_loses(scores: RowScores, better_scores: RowScores, goal: str) -> bool:
    """Tell whether one predictor is nowhere above another, and somewhere far below.

    Examples
    --------
    >>> from vecfill.trust.choose.scores import score_rows
    >>> known, truth = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200)
    >>> good, bad = (score_rows(each, truth, known, np.zeros(4)) for each in (known, known[::-1]))
    >>> clearly_loses(bad, good, "balanced"), clearly_loses(good, bad, "balanced")
    (True, False)
    """
    gaps = [scores.of(measure) - better_scores.of(measure) for measure in GOALS[goal]]
    errors = [max(float(gap.std()) / np.sqrt(gap.size), 1e-12) for gap in gaps]
    sizes = [float(gap.mean()) / error for gap, error in zip(gaps, errors, strict=True)]
    return bool(max(sizes) <= 0 and min(sizes) < -CLEAR_LOSS)


def standing(scores: Sequence[RowScores], rows: np.ndarray, goal: str = "balanced") -> np.ndarray:
    """Return how well each predictor does on some rows; the largest number is the best.

    The default goal, ``"balanced"``, follows what people see:

    1. Predictors whose vectors crowd together or share their nearest words are out.
    2. So are those whose centred cosine is more than 5 % below the best one.
    3. Of the others, the best is the one with the highest sum of reciprocal rank, hits at 10,
       agreement of neighbors and centred cosine, each relative to the mean of all.

    ``"rank"`` leaves out step 2, and what ranks worse than the best by more than chance is out.
    ``"recommend"`` leaves out steps 1 and 2, since what many like may well crowd: of those whose
    NDCG is level with the best but for chance, the one with the best centred cosine, which varies
    less. ``"cosine"`` compares centred cosines alone.
    """
    total = total_score(scores, goal, measures=DECIDING, rows=rows)
    is_out = np.array([goal != "recommend" and has_collapsed(score, rows) for score in scores])
    # If all have collapsed, users are told so later; one is still needed.
    if is_out.all():
        is_out[:] = False
    if goal in LEADING:
        ranks = np.array([score.of(LEADING[goal])[rows] for score in scores])
        best = np.where(is_out, -np.inf, ranks.mean(axis=1)).argmax()
        short = ranks[best] - ranks
        is_out |= short.mean(axis=1) > short.std(axis=1) / np.sqrt(rows.size)
    if goal == "balanced":
        cosines = np.array([float(score.centred_cosine[rows].mean()) for score in scores])
        best = float(cosines[~is_out].max())
        is_out |= cosines < best - (1.0 - LEAST_COSINE) * abs(best)
    total[is_out] = -np.inf
    return total


def stack_weights(
    parts: Sequence[np.ndarray], truth: np.ndarray, metric: np.ndarray | None = None
) -> np.ndarray:
    """Return non-negative weights whose sum of `parts` comes nearest to the truth.

    Every row counts the same, however long its vector is, unless a `metric` says what errors count.

    Examples
    --------
    >>> truth = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> stack_weights([truth / 2, -truth], truth).round(2)
    array([2., 0.])
    """
    if metric is not None:
        truth, parts = truth @ metric, [part @ metric for part in parts]
    truth, *parts = scaled_together(truth, *parts)
    lengths = np.linalg.norm(truth, axis=1, keepdims=True)
    if metric is not None:
        lengths = np.ones_like(lengths)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    columns = np.stack([(part * scale).ravel() for part in parts], axis=1)
    gram = columns.T @ columns
    # A member that always predicts the mean has a zero on the diagonal, and no factor would exist.
    gram[np.diag_indices_from(gram)] += SHRINK * np.diag(gram) + 1e-300
    # The same problem with few rows: the factor of the Gram matrix stands for the columns.
    factor = np.linalg.cholesky(gram)
    target = np.linalg.solve(factor, columns.T @ (truth * scale).ravel())
    return nnls(factor.T, target)[0]


def stacked(
    members: Sequence[Predictor],
    parts: Sequence[np.ndarray],
    truth: np.ndarray,
    group: np.ndarray,
    folds: Sequence[tuple[Fold, np.ndarray]],
    metric: np.ndarray | None = None,
) -> list[tuple[Stack, list[np.ndarray]]]:
    """Return stacks of predictors, and their honest predictions of the hidden rows by fold.

    There are two, without attention and with it: which is better depends on the data.

    `parts` are the members' predictions of the hidden rows and `truth` the true vectors, all minus
    the mean of the fold's seen ones; `group` tells which rows are judged together, and `folds` has
    the seen vectors of each fold. There is none if fewer than two members are of use.
    """
    whole = stack_weights(parts, truth, metric)
    # Each member costs a fit of its own, and one of so little weight changes nothing one can see.
    # One in a hundred is a guess.
    useful = np.flatnonzero(whole > 0.01 * max(whole.max(), 1e-300)).tolist()
    if metric is not None:
        useful = [place for place, member in enumerate(members) if isinstance(member, KernelRidge)]
    if len(useful) < 2:
        return []
    members, parts = [members[place] for place in useful], [parts[place] for place in useful]
    steps = np.zeros_like(truth)
    for label in np.unique(group):
        is_other, rows = group != label, group == label
        # Without the group itself, or the stack would be scored on rows that set its weights.
        learnt = stack_weights([part[is_other] for part in parts], truth[is_other], metric)
        steps[rows] = sum(w * part[rows] for w, part in zip(learnt, parts, strict=True))
    learnt = tuple(float(weight) for weight in stack_weights(parts, truth, metric))
    sums = [(learnt, steps)]
    if metric is not None:
        # Errors of scores are not NDCG, and a plain mean of unlike predictors is hard to beat.
        sums.append(((1.0 / len(parts),) * len(parts), np.mean(parts, axis=0)))
    bounds = np.cumsum([0, *(fold.hidden.size for fold, _ in folds)])
    stacks = []
    for (weights, steps), share in product(sums, (0.0, ATTENTION)):
        predictions = []
        for place, (_, known) in enumerate(folds):
            estimates = known.mean(axis=0) + steps[bounds[place] : bounds[place + 1]]
            predictions.append(
                Attention(estimates, known, share, SHARPNESS).drawn(estimates, known)
            )
        stacks.append((Stack(tuple(members), weights, share), predictions))
    return stacks
