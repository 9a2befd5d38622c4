"""Hidden known rows as every source predicts them, and what weights of sources they teach.

Unknown rows differ from the known ones: most headings without a vector have names of several
words, for example. So hidden rows of a kind that is frequent among the unknown rows count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.method.scaling import scaled_together
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.predictors.fused import Pattern
from vecfill.model.sources import Member, SourcesSpace
from vecfill.model.stretch import stretch_of
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.choice import FewerDims
from vecfill.trust.choose.folds import Fold, judged_together
from vecfill.trust.choose.recommending import Audience, audience_for
from vecfill.trust.choose.scores import Judge, RowScores
from vecfill.trust.choose.trials import CHOICE_TOL

# A guess, the same as for kinds that can be proved.
FEWEST_IN_PATTERN = 30
"""Hidden rows that weights of a pattern are learnt on at least; a third, if there are few."""

MOST_RAISED = 5.0
"""How much more often than once a hidden row of a rare kind may count. On cities, 64 names of
several words stand for 60 % of the unknown: uncapped, their chance decides for all."""

PRIOR_ROWS = 1000
"""Rows that those of other kinds count as beside the rows of a pattern. On cities, the 63 known
names of several words alone would divide the weight of the table by three; ranks of those names are
the same with any number from 100 on, and known ones (with hyphens) are not quite like unknown ones.
"""

GUESS_ROWS = 100
"""Rows' worth of belief that a guess counts as it is."""

SHRINK = 1e-3
"""Added to the diagonal of the normal equations, as a share of it."""


@dataclass(frozen=True, eq=False)
class KindsOfUnknown:
    """By which hidden rows count more: kinds of rows, and which sources describe which row."""

    presence: np.ndarray
    """(n_rows, n_sources)."""
    kinds: np.ndarray
    """(n_rows,) their labels."""
    is_known: KnownMask
    hidden: np.ndarray

    @cached_property
    def importance(self) -> np.ndarray:
        """(n_hidden,) how much each hidden row counts for all unknown rows."""
        return importance_like(self.kinds, self.is_known, self.hidden)

    def importance_for(self, pattern: Pattern, kept_sources: Sequence[int]) -> np.ndarray:
        """Return the same for the unknown rows that just these of the kept sources describe."""
        kept = list(kept_sources)
        described = self.presence[:, kept], np.array(pattern, np.bool_)[kept]
        is_other = self.is_known | (described[0] != described[1]).any(axis=1)
        if is_other.all():
            return self.importance
        key = (*kept, -1, *np.flatnonzero(described[1]).tolist())
        if key not in self._importances:
            self._importances[key] = importance_like(self.kinds, is_other, self.hidden)
        return self._importances[key]

    @cached_property
    def _importances(self) -> dict[tuple[int, ...], np.ndarray]:
        return {}


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Hidden known rows as every source predicts them, without having seen them."""

    predicted: np.ndarray
    """(n_sources, n_hidden, n_dims) from the mean of the hidden rows' predictions; 0 if absent."""
    truth: np.ndarray
    """(n_hidden, n_dims) from the mean of the hidden rows."""
    is_present: np.ndarray
    """(n_hidden, n_sources)."""
    group: np.ndarray
    """(n_hidden,) rows that are judged together."""
    pool: np.ndarray
    """(n_pool, n_dims) known rows from the same mean, among which the truth is ranked."""
    place: np.ndarray
    """(n_hidden,) each hidden row in the pool."""
    importance: np.ndarray
    """(n_hidden,) how much each hidden row counts, 1 on average: more if it is of a kind that is
    more frequent among the unknown rows."""
    kinds: KindsOfUnknown | None
    """By which that differs for rows that some sources describe; ``None``: it does not."""
    centre: np.ndarray
    """Mean of the hidden rows."""
    is_guess: np.ndarray
    """(n_sources,) whose rows are guesses that were learnt on other words."""
    words: np.ndarray | None = None
    """Other words of the file, from the same mean, among which the truth is ranked as well."""
    audience: Audience | None = None
    """To whom hidden rows are recommended, if that is the goal."""

    def weights(
        self, pattern: Pattern, kept_sources: Sequence[int], rows: np.ndarray
    ) -> np.ndarray:
        """Return non-negative weights of all sources for a pattern, learnt on some hidden rows.

        Only rows that have at least the sources of the pattern can teach. Where these are too few,
        the source that most rows lack is left out; if its rows are guesses, it counts as it is.
        """
        sources = [place for place in kept_sources if pattern[place]]
        teachers, fewest = rows, min(FEWEST_IN_PATTERN, rows.size // 3 + 1)
        while sources:
            teachers = rows[self.is_present[rows][:, sources].all(axis=1)]
            if teachers.size >= fewest:
                break
            sources.remove(min(sources, key=lambda place: self.is_present[rows, place].sum()))
        weights = np.zeros(len(pattern))
        if len(sources) == 1:
            weights[sources] = 1.0
        elif sources:
            importance = self.importance
            if self.kinds is not None:
                importance = self.kinds.importance_for(pattern, kept_sources)
            lesson = self._lesson(importance[teachers], sources, teachers, rows)
            weights[sources] = _non_negative(*lesson)
        for place in kept_sources:
            if pattern[place] and place not in sources and self.is_guess[place]:
                weights[place] = 1.0
        return weights

    def _lesson(
        self,
        importance: np.ndarray,
        sources: Sequence[int],
        teachers: np.ndarray,
        rows: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions by the used sources and the truth that their weights are learnt on.

        Few rows have a guess. So beside it, the other sources are learnt on rows without one too,
        and the guess is believed to count as it is.
        """
        # At most one, so that `PRIOR_ROWS` are rows whatever the kinds are.
        importance = importance / max(float(importance.max()), 1e-300)
        # Rows of other kinds count a little, or the chance of a few would decide.
        scale = np.sqrt(importance + PRIOR_ROWS / teachers.size)[:, None]
        predicted = [self.predicted[sources][:, teachers] * scale]
        truth = [self.truth[teachers] * scale]
        guesses = [at for at, place in enumerate(sources) if self.is_guess[place]]
        # Rows with a guess are few, and weights of the others learnt on them alone would be chance.
        if guesses:
            plain = [place for place in sources if not self.is_guess[place]]
            other_rows = rows[self.is_present[rows][:, plain].all(axis=1)]
            other_rows = np.setdiff1d(other_rows, teachers)
            # Where most rows have a guess, the few others count no more than once each.
            scale = np.sqrt(min(PRIOR_ROWS / max(other_rows.size, 1), 1.0))
            predicted.append(self.predicted[sources][:, other_rows] * scale)
            truth.append(self.truth[other_rows] * scale)
            scale = np.sqrt(GUESS_ROWS / teachers.size)
            # As if so many rows had said that the guess is right as it is, with no other source
            # beside it.
            for at in guesses:
                alone = np.zeros((len(sources), teachers.size, self.truth.shape[1]))
                alone[at] = self.predicted[sources[at]][teachers] * scale
                predicted.append(alone)
                truth.append(alone[at])
        return np.concatenate(predicted, axis=1), np.concatenate(truth)

    def can_be_judged(self, place: int) -> bool:
        """Tell whether enough hidden rows are described by a source to say whether it helps."""
        return int(self.is_present[:, place].sum()) >= FEWEST_IN_PATTERN

    def fused(self, kept_sources: Sequence[int]) -> np.ndarray:
        """Return hidden rows by the kept sources, each with weights learnt without its group."""
        out = np.zeros_like(self.truth)
        everyone = np.arange(len(out))
        for label in np.unique(self.group):
            group_rows, other_rows = everyone[self.group == label], everyone[self.group != label]
            for pattern in np.unique(self.is_present[group_rows], axis=0):
                weights = self.weights(tuple(pattern.tolist()), kept_sources, other_rows)
                rows = group_rows[(self.is_present[group_rows] == pattern).all(axis=1)]
                out[rows] = np.einsum("s,snd->nd", weights, self.predicted[:, rows])
        return out

    def scores(self, kept_sources: Sequence[int]) -> RowScores:
        """Return honest scores of the kept sources."""
        centre = np.zeros(self.truth.shape[1])
        if self.audience is None:
            judge = Judge(self.pool, centre, self.words)
            return judge.scored(self.fused(kept_sources), self.place)
        judge = Judge(self.pool + self.centre, self.centre, audience=self.audience)
        return judge.scored(self.fused(kept_sources) + self.centre, self.place)

    def stretch(self, kept_sources: Sequence[int]) -> float:
        """Return how much longer the fused steps must be for hidden rows to be spread."""
        if self.audience is not None:
            starts = np.repeat(self.centre[None], len(self.truth), axis=0)
            return self.audience.stretch(starts, self.fused(kept_sources))
        return stretch_of(self.centre, self.fused(kept_sources), self.truth + self.centre)

    def shares(self, weights: np.ndarray) -> np.ndarray:
        """Return the part of each source in the fused rows, under weights of (n_hidden, n_sources).

        It is the projection of what the source adds on the sum, so that parts sum to one.
        """
        total = np.einsum("ns,snd->nd", weights, self.predicted)
        along = np.einsum("ns,snd,nd->s", weights, self.predicted, total)
        return along / max(float((total**2).sum()), 1e-300)

    def like_unknown(self, kept_sources: Sequence[int]) -> RowScores:
        """Return scores whose means are those of rows like the unknown ones."""
        # Transposed, because recommendations have several columns.
        return self.scores(kept_sources).mapped(lambda values: (values.T * self.importance).T)


def importance_like(kinds: np.ndarray, is_known: KnownMask, hidden: np.ndarray) -> np.ndarray:
    """Return weights of hidden rows under which kinds are as frequent as among the unknown rows.

    A kind of which few rows are hidden is not raised: they would decide about all others.

    Examples
    --------
    >>> kinds = np.array(["one"] * 90 + ["several"] * 110)
    >>> weights = importance_like(kinds, np.arange(200) < 130, np.arange(130))
    >>> bool(weights[100] > weights[0]), round(float(weights.mean()), 6)
    (True, 1.0)
    """
    importance = np.ones(hidden.size)
    for kind in np.unique(kinds[hidden]):
        rows = kinds[hidden] == kind
        share = float((kinds[~is_known] == kind).mean()) / float(rows.mean())
        importance[rows] = min(share, MOST_RAISED if rows.sum() >= FEWEST_IN_PATTERN else 1.0)
    return importance / importance.mean() if importance.any() else np.ones(hidden.size)


def _non_negative(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the weights of predictions, none below zero, that come nearest to the truth.

    Examples
    --------
    >>> one, other = np.eye(3), np.ones((3, 3))
    >>> _non_negative(np.stack([one, other]), 2 * one).round(2)
    array([2., 0.])
    """
    predicted, truth = scaled_together(predicted, truth)
    # A few sources against many rows and dimensions: products of sources hold all that least
    # squares needs, and the Cholesky factor stands for the rows.
    gram = np.einsum("snd,tnd->st", predicted, predicted)
    gram[np.diag_indices_from(gram)] *= 1.0 + SHRINK
    along = np.einsum("snd,nd->s", predicted, truth)
    # A source that predicts the mean for all has no length and no weight, and the factor would not
    # exist with it.
    if not (np.diag(gram) > 0).all():
        is_useful = np.flatnonzero(np.diag(gram) > 0)
        weights = np.zeros(len(gram))
        if is_useful.size:
            weights[is_useful] = _non_negative(predicted[is_useful], truth)
        return weights
    lower = np.linalg.cholesky(gram)
    return nnls(lower.T, np.linalg.solve(lower, along))[0]


def out_of_fold(
    space: SourcesSpace,
    predictors: Sequence[Predictor | None],
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    folds: Sequence[Fold],
    fewer: FewerDims,
    words: np.ndarray | None = None,
    goal: str = "balanced",
) -> OutOfFold:
    """Return the hidden rows of some folds as every source predicts them.

    Everything is measured from the mean of the hidden rows, so that an offset which they all
    share does not decide about weights.
    """
    hidden = np.concatenate([fold.hidden for fold in folds])
    vectors = fewer.of_known(embedding, is_known)
    predicted = np.zeros((len(space.members), hidden.size, vectors.shape[1]))
    is_present = space.presence[hidden]
    for number, (member, predictor) in enumerate(zip(space.members, predictors, strict=True)):
        if predictor is None:
            is_present[:, number] = False
            continue
        steps_by_fold = [_of_fold(member, predictor, vectors, fold, fewer) for fold in folds]
        predicted[number] = np.concatenate(steps_by_fold)
        present = is_present[:, number]
        # A constant that a source misses by would otherwise be paid for with its weight.
        if present.any():
            predicted[number, present] -= predicted[number, present].mean(axis=0)
    centre = vectors[hidden].mean(axis=0)
    known = np.flatnonzero(is_known)
    kinds = None
    # With nothing unknown, or kinds that nobody knows, every hidden row counts the same.
    if space.kinds and not is_known.all():
        kinds = KindsOfUnknown(space.presence, np.array(space.kinds), is_known, hidden)
    return OutOfFold(
        predicted,
        vectors[hidden] - centre,
        is_present,
        judged_together(folds),
        vectors[known] - centre,
        np.searchsorted(known, hidden),
        np.ones(hidden.size) if kinds is None else kinds.importance,
        kinds,
        centre,
        np.array([member.is_guess for member in space.members], np.bool_),
        None if words is None else fewer.along(words) - centre,
        audience_for(goal, vectors, folds),
    )


def _of_fold(
    member: Member,
    predictor: Predictor,
    vectors: EmbeddingVectors,
    fold: Fold,
    fewer: FewerDims,
) -> np.ndarray:
    """Return a fold's hidden rows as one source predicts them, from the mean of what it has seen.

    Rows that it does not describe are 0.
    """
    member_rows = member.given(KnownRows(vectors, fold.is_seen))
    # Below zero are rows that the source does not describe.
    place_of = np.full(member.n_all, -1)
    place_of[member.rows[member_rows.unknown]] = np.arange(member_rows.unknown.size)
    places = place_of[fold.hidden]
    steps = np.zeros((fold.hidden.size, vectors.shape[1]))
    if member.is_guess:
        # Guesses are made in all dimensions, whatever is seen.
        guesses = member.space.prepared("as_given")[member_rows.wanted(places[places >= 0])]
        steps[places >= 0] = fewer.along(guesses)
    elif (places >= 0).any() and member_rows.n_known:
        prediction = predictor.predict(
            member.space, member_rows, Unknown(places[places >= 0]), tol=CHOICE_TOL
        )
        steps[places >= 0] = prediction.vectors - member_rows.known.mean(axis=0)
    return steps
