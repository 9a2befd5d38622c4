"""The best predictor for the user's own data, chosen on known rows that are hidden and imputed.

Predictors are compared as the user's goal says. Graphs and weights are shared by all folds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import InputError
from vecfill.machine.lengths import leading_axes, unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic, Predictor
from vecfill.model.space import Space
from vecfill.trust.choose.candidates import (
    CLASSIC_PREPARATIONS,
    MOST_FOR_KERNELS,
    N_KERNELS,
    N_PREPARATIONS,
    are_alike,
    first_round,
    graphless,
    kernel_ridges,
    n_in_second_round,
    other_degrees,
    other_ridges,
    race_sample,
    raced,
    second_round,
    summands,
)
from vecfill.trust.choose.columns import leaner
from vecfill.trust.choose.dependence import MOST_TESTED, dependence_p_value, permutation_p_value
from vecfill.trust.choose.folds import hidden_folds, judged_together
from vecfill.trust.choose.scores import RowScores, joined
from vecfill.trust.choose.trials import Trials, standing
from vecfill.trust.choose.twins import twins_of
from vecfill.wording import count

if TYPE_CHECKING:
    from vecfill.trust.choose.fusion import SourceReport

FEWEST_KNOWN = 10
"""Fewer known rows can neither rank predictors nor show a signal."""

# From decision 5: below it ten folds chose better than five.
FEW_KNOWN = 1000
"""Known rows up to which a fifth of them is much to hide."""

FEW_ROWS = 5000
"""Rows up to which ten folds cost little."""

# From decision 34.
MOST_QUICK = 3000
"""Rows up to which it does not matter what a graph costs."""

MOST_HIDDEN = 2000
"""Rows that one fold hides at most: more would cost more and tell no more."""

ENOUGH_HIDDEN = 800
"""Hidden rows after which another fold would change no choice."""

# From decision 27, as `LEAST_DIMS` is.
MOST_ENTRIES = 300_000
"""Embeddings with more entries are compared in fewer dimensions, the leading ones."""

LEAST_DIMS = 64
"""Dimensions in which embeddings are compared at least."""

# A guess, strict because a user who gets noise is worse off than one who gets an error. Decision 40
# measures that data without signal is accepted no more often.
CHANCE = 1e-3
"""A signal counts when chance alone would show it this rarely."""

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
    """How likely chance alone would tie the vectors to the rows as they are."""
    stretch: float = 1.0
    """What makes the steps from the mean so long that hidden rows are as spread as the truth."""
    sources: tuple[SourceReport, ...] = ()
    """How several sources were weighed; empty if there was one table."""

    @property
    def has_signal(self) -> bool:
        """Whether vectors depend on rows beyond chance, and the choice beats the mean of the known.

        No choice can flatter the p-value: it is that of a test in which nothing is predicted.
        """
        return self.p_value < CHANCE and float(self.honest.centred_cosine.mean()) > 0

    def __repr__(self) -> str:
        return f"Choice({self.predictor}; best of {len(self.tried)}, p = {self.p_value:.2g})"


@dataclass(frozen=True, eq=False)
class FewerDims:
    """The dimensions in which large embeddings are compared.

    These are the ones in which known vectors differ most, and that of their mean, so that plain
    cosines mean what they mean for whole vectors.

    Examples
    --------
    >>> fewer = FewerDims.of(np.ones((3, 2)), np.array([True, True, False]))
    >>> fewer.along(np.ones((1, 2))).shape
    (1, 2)
    """

    axes: np.ndarray | None
    """(n_dims, n_kept); ``None``: all dimensions are kept."""

    @classmethod
    def of(cls, embedding: EmbeddingVectors, is_known: KnownMask) -> FewerDims:
        """Return the dimensions in which to compare an embedding of this size."""
        n_rows, n_dims = embedding.shape
        n_kept = max(LEAST_DIMS, MOST_ENTRIES // n_rows)
        if n_kept >= n_dims:
            return cls(None)
        known = embedding[is_known].astype(np.float64)
        mean = known.mean(axis=0)
        axes = leading_axes(known - mean, n_kept)
        # The mean need not lie along these axes. Without an axis of its own, plain cosines and
        # lengths would be those of other vectors.
        beside = mean - axes @ (axes.T @ mean)
        return cls(np.column_stack([axes, unit(beside[None])[0]]))

    def along(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors, or steps, in these dimensions."""
        return vectors.astype(np.float64) if self.axes is None else vectors @ self.axes

    def of_known(self, embedding: EmbeddingVectors, is_known: KnownMask) -> EmbeddingVectors:
        """Return an embedding in these dimensions; only its known rows hold anything."""
        if self.axes is None:
            return embedding.astype(np.float64)
        fewer = np.full((len(embedding), self.axes.shape[1]), np.nan)
        fewer[is_known] = embedding[is_known].astype(np.float64) @ self.axes
        return fewer


def honest_scores(
    scores: Sequence[RowScores],
    directions: Sequence[np.ndarray],
    group: np.ndarray,
    goal: str = "balanced",
) -> tuple[RowScores, np.ndarray]:
    """Return scores and directions of each row under the predictor that other groups choose."""
    parts, rows_of, honest_directions = [], [], np.empty_like(directions[0])
    for label in np.unique(group):
        rows = np.flatnonzero(group == label)
        # The group itself has no vote: whatever is luckiest on its rows would be taken, and be
        # flattered.
        best = int(np.argmax(standing(scores, np.flatnonzero(group != label), goal)))
        parts.append(scores[best].rows(rows))
        rows_of.append(rows)
        honest_directions[rows] = directions[best][rows]
    back = np.argsort(np.concatenate(rows_of), kind="stable")
    return joined(parts).rows(back), honest_directions


def choose(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    words: np.ndarray | None = None,
    goal: str = "balanced",
    candidates: str = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Return the predictor that best imputes known rows when they are hidden.

    `words` are vectors of other words of the file, among which the truth is ranked as well.

    ``candidates="classic"`` tries latent semantic imputation under four preparations and nothing
    else; ``"all"`` also rank-normal columns, kernel ridge regression and a stack.

    Where few rows are known, ten folds are hidden and not five: a fifth of few is much, and what
    is best without it need not be best with it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 3))
    >>> domain = np.tanh(latent @ rng.normal(size=(3, 8)))
    >>> choice = choose(Space(domain), latent @ rng.normal(size=(3, 5)), np.ones(120, bool))
    >>> print(choice.predictor)
    rank_normal, min_degree 8, ridge 0.3, trend + 0.6 x propagated residual
    >>> round(float(choice.honest.reciprocal_rank.mean()), 1)
    0.9
    """
    n_known = int(is_known.sum())
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"Only {count(n_known, 'entity is', 'entities are')} known, too few to choose a method "
            f"by hiding some of them: {FEWEST_KNOWN} are needed. Use method='paper', which needs "
            "no choice; its vectors cannot be checked on so few."
        )
    n_folds = n_folds_of(n_known, is_known.size)
    twins = twins_of(embedding, is_known)
    folds = list(
        hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN, twins=twins)
    )
    # The race needs no such saving, and whitening strengthens what would be left out.
    fewer = FewerDims(None) if goal == "rank" else FewerDims.of(embedding, is_known)
    vectors = fewer.of_known(embedding, is_known)
    words = None if words is None else fewer.along(words)
    trials = Trials(space, vectors, is_known, folds, goal, words)
    is_full = candidates == "classic"
    known = np.flatnonzero(is_known)
    preparations = _classic(space)[0] if is_full else space.worth_trying
    # Before the race, which forgets prepared rows that the folds do not need.
    of_pairs = dependence_p_value(space, vectors[known], known, preparations)
    entrants = _classic(space) if is_full else _raced(space, embedding, is_known, goal)
    n_groups = sum(map(len, entrants)) + n_in_second_round(space, is_full=is_full)
    tell, steps_done = progress or (lambda _done, _total: None), itertools.count(1)

    def one_more() -> None:
        # The last is told below: later rounds may be left out.
        if (n_done := next(steps_done)) < n_groups:
            tell(n_done, n_groups)

    for groups in _rounds(space, trials, *entrants, is_full=is_full):
        trials.run(groups, one_more)
    tell(n_groups, n_groups)
    group = judged_together(folds, n_folds)
    if not is_full:
        trials.add_stacks(group)

    def p_value(directions: np.ndarray, truth: np.ndarray) -> float:
        if known.size <= MOST_TESTED:
            return of_pairs
        # Many rows hold signals that a sample of their pairs does not show. Rows of one fold do
        # not predict one another, and those that did not race have not picked their predictor.
        is_raced = race_sample(KnownRows(embedding, is_known)).is_known[folds[0].hidden]
        fresh = np.flatnonzero(is_full | ~is_raced)
        of_hidden = permutation_p_value(directions[fresh], truth[fresh])
        return min(1.0, 2.0 * min(of_pairs, of_hidden))

    return _judged(trials, group, p_value)


def n_folds_of(n_known: int, n_rows: int) -> int:
    """Return in how many parts known rows are hidden to choose among predictors.

    Examples
    --------
    >>> n_folds_of(200, 500), n_folds_of(3000, 9000), n_folds_of(60_000, 200_000)
    (10, 5, 30)
    """
    least = 10 if n_known < FEW_KNOWN and n_rows <= FEW_ROWS else 5
    return max(least, n_known // MOST_HIDDEN)


Entrants = tuple[list[str], list[KernelRidge]]
"""Preparations for latent semantic imputation, and kernel ridge regressions."""


def _classic(space: Space) -> Entrants:
    return [
        preparation for preparation in CLASSIC_PREPARATIONS if preparation in space.preparations
    ], []


def _raced(space: Space, embedding: EmbeddingVectors, is_known: KnownMask, goal: str) -> Entrants:
    """Return what is worth hiding rows for, by leave-one-out in closed form."""
    known_rows = KnownRows(embedding, is_known)
    order = raced(space, known_rows, kernel_ridges(space), goal=goal)
    front = list(dict.fromkeys(entrant.preparation for entrant in order))
    # From decision 62: bins that win the race need not win the folds, so they take no place from
    # others, except where all places are averaged.
    placed = [
        entrant for entrant in order if goal == "recommend" or entrant.preparation != "smooth"
    ]
    preparations = list(dict.fromkeys(entrant.preparation for entrant in placed))[:N_PREPARATIONS]
    kernels = placed[:N_KERNELS] if known_rows.n_known <= MOST_FOR_KERNELS else []
    # Both places are taken by what is one thing under two names, so the better one runs alone.
    if len(preparations) > 1 and are_alike(space, known_rows, *preparations):
        preparations = preparations[:1]
        kernels = list({entrant.kernel: entrant for entrant in reversed(kernels)}.values())[::-1]
    if goal == "recommend" and kernels:
        kernels = summands(space, order, preparations)
    elif "smooth" in front[:N_PREPARATIONS] and "smooth" not in preparations:
        preparations = [*preparations, "smooth"]
        best_smooth = next(entrant for entrant in order if entrant.preparation == "smooth")
        kernels = [*kernels, best_smooth] if kernels else []
    if (lean := leaner(space, known_rows, order[0], goal)) is not None:
        preparations = [*preparations, lean.preparation]
        kernels = [*kernels, lean] if kernels else []
    # Rows that were prepared for the race alone would stay in memory through all folds.
    space.release({*preparations, *(entrant.preparation for entrant in kernels)})
    return preparations, kernels


def _rounds(
    space: Space,
    trials: Trials,
    preparations: list[str],
    kernels: list[KernelRidge],
    *,
    is_full: bool,
) -> Iterator[Sequence[Sequence[Predictor]]]:
    """Yield rounds of groups of kin to try; later ones depend on how the earlier ones went."""
    if is_full:
        yield first_round(space, preparations)
        yield second_round(space, trials.best(LatentSemantic))
        return
    first, *more_groups = first_round(space, preparations)
    others_tried = graphless(space, len(trials.known), preparations[0], trials.goal)
    # What is averaged must not be dropped for being second best.
    is_averaged = trials.goal == "recommend" and bool(kernels)
    kernel_rounds = [kernels] if is_averaged else [[kernel] for kernel in kernels]
    yield [*kernel_rounds, *others_tried, first]
    # Each preparation has graphs of its own. A worse one, by the race, makes up for no clear loss.
    if more_groups and not trials.is_beaten(LatentSemantic):
        yield more_groups
    if trials.is_beaten(LatentSemantic) or trials.needs_no_graph():
        return
    ways = [other_degrees, other_ridges]
    if space.n_rows > MOST_QUICK and trials.are_shared([trials.best(LatentSemantic)]):
        # Where one solve serves all folds, nothing is dropped after the first of them, and the
        # graph with more neighbours takes several times as long. It comes last, with the best
        # weights alone.
        ways.reverse()
    for way in ways:
        yield way(space, trials.best(LatentSemantic))


ChanceOf = Callable[[np.ndarray, np.ndarray], float]
"""From directions of hidden rows, predicted and true, to the p-value of their choice."""


def _judged(trials: Trials, group: np.ndarray, p_value: ChanceOf) -> Choice:
    predictors = tuple(trials.scores)
    scores = [trials.scores[predictor] for predictor in predictors]
    directions = [trials.directions[predictor] for predictor in predictors]
    truth = trials.truth()
    return judged(
        predictors, scores, directions, truth, group, trials.stretch, trials.goal, p_value
    )


def judged(
    predictors: Sequence[Any],
    scores: Sequence[RowScores],
    directions: Sequence[np.ndarray],
    truth: np.ndarray,
    group: np.ndarray,
    stretch: Callable[[Any], float],
    goal: str = "balanced",
    p_value: ChanceOf = permutation_p_value,
) -> Choice:
    """Return the choice among predictors, by their scores and directions on hidden rows.

    `truth` holds the true directions, and `stretch` gives the factor of the best predictor. The
    default p-value is for rows of one fold.
    """
    best = predictors[int(np.argmax(standing(scores, np.arange(group.size), goal)))]
    honest, honest_directions = honest_scores(scores, directions, group, goal)
    return Choice(
        best,
        tuple(predictors),
        tuple(score.means() for score in scores),
        honest,
        p_value(honest_directions, truth),
        stretch(best),
    )
