"""Hidden rows predicted by many predictors and by stacks of them, and how those stand.

Groups of predictors race: one that is behind on the first fold is not tried on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.machine.lengths import unit
from vecfill.method.engine import parallel_map
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic, LeafKernel, Predictor, Sparsemax
from vecfill.model.predictors.base import Hiding
from vecfill.model.space import Space
from vecfill.model.stack import ATTENTION, Stack
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
from vecfill.trust.choose.stacking import (
    ATTENTIONS,
    FINISHES,
    PLAIN,
    WHITENINGS,
    Blend,
    Finish,
    Hidden,
    alone,
    averages,
    blended,
)

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
        """Score stacks of the predictors that do best and whose shares are exact.

        Where ranks are what is wanted, single predictors enter as well, and whitening is tried.
        """
        hidden = Hidden(
            np.vstack(
                [
                    self.known[fold.truth] - centre
                    for fold, centre in zip(self.folds, self.centres, strict=True)
                ]
            ),
            group,
            tuple(fold.hidden.size for fold in self.folds),
            tuple(known_rows.known for known_rows in self.seen_rows),
            # Errors of scores count, and long vectors with them; otherwise every row counts alike.
            None if self.audience is None else self.audience.metric,
        )
        # Shares of a predictor with a trend are shares of residuals, not of vectors.
        mixes = [mix for mix in self.of_kind(LatentSemantic) if mix.residual_share is None]
        members = [*self.leading(mixes, 2), *self.of_kind(KernelRidge)]
        if self.audience is not None:
            kernels = {kernel: self.steps[kernel] for kernel in self.of_kind(KernelRidge)}
            self._add_finished(averages(kernels, hidden), FINISHES)
            return
        # Trees bring cosines nearer to the truth and may cost rank, so hidden rows decide.
        blends = self._blends([members, [*members, *self.of_kind(LeafKernel)]], hidden)
        if self.goal != "rank":
            self._add_finished(blends.values(), FINISHES)
            return
        for kin in (mixes, self.of_kind(Sparsemax)):
            for single in self.leading(kin, 1) if kin else []:
                blends[single,] = alone(single, self.steps[single], hidden)
        # One way after the other: all of them would be as many rankings as their product.
        self._add_finished(
            blends.values(), [PLAIN, *(Finish(ATTENTION, whitening=power) for power in WHITENINGS)]
        )
        best = self.best(Stack)
        finishes = [Finish(*attention, best.whitening) for attention in ATTENTIONS]
        self._add_finished([blends[best.members]], finishes)

    def _blends(
        self, groups: Sequence[Sequence[Predictor]], hidden: Hidden
    ) -> dict[tuple[Predictor, ...], Blend]:
        """Return weighted sums of groups of predictors, by those that count."""
        sums = [
            blended({member: self.steps[member] for member in group}, hidden) for group in groups
        ]
        return {blend.members: blend for blend in sums if blend is not None}

    def _add_finished(self, blends: Iterable[Blend], finishes: Sequence[Finish]) -> None:
        for blend, finish in product(blends, finishes):
            if blend.stack(finish) not in self.scores:
                self.add(blend.stack(finish), blend.vectors(finish))

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
    2. So are those whose centred cosine is more than 5 % below the best one, by more than chance.
    3. Of the others, the best is the one with the highest sum of reciprocal rank, hits at 10,
       agreement of neighbors and centred cosine, each relative to the mean of all.

    ``"rank"`` leaves out what ranks worse than the best by more than chance, instead of step 2. Of
    what is level, that with better cosines is found better among other words of the file, too.
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
        cosines = np.array([score.centred_cosine[rows] for score in scores])
        best = cosines[np.where(is_out, -np.inf, cosines.mean(axis=1)).argmax()]
        short = best - (1.0 - LEAST_COSINE) * abs(best.mean()) - cosines
        is_out |= short.mean(axis=1) > short.std(axis=1) / np.sqrt(rows.size)
    total[is_out] = -np.inf
    return total
