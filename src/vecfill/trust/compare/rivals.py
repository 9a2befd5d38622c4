"""What a user could do instead, each method tuned on the rows that it may see.

A rival that is compared as it comes out of the box loses to anything that was tuned. So every rival
has all preparations of the domain, and its own parameters, chosen inside the training fold: by
hiding some of its rows once more, or by leave-one-out in closed form.

A source that brings a rival of its own (encode the text and regress, for example) adds an entry
with the `space` that the rival works in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from vecfill.inputs.interactions import Tastes
from vecfill.machine.blas import one_thread
from vecfill.model.known import KnownRows
from vecfill.model.predictors import (
    PAPER,
    LeafKernel,
    LinearRidge,
    MatchingPursuit,
    Mean,
    Nearest,
    Predictor,
    Sparsemax,
)
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import AnySpace, SourcesSpace
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.candidates import kernel_ridges, raced
from vecfill.trust.choose.decision import Decision
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.choose.recommending import audience_for, of_rows
from vecfill.trust.choose.scores import Judge, RowScores, joined, total_score
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.prove.hidden import HIDDEN_TOL

Predict = Callable[[np.ndarray], np.ndarray]
"""Places among the unknown rows -> their vectors."""

AUTO_LABEL = "vecfill (auto)"

PAPER_LABEL = "the paper's method"

POPULAR = "popularity"
"""The same list for everybody: a rival for recommendations."""

POPULAR_LABEL = "what is popular"

# From decision 15.
MOST_TUNED_ON = 800
"""Known rows on which rivals are tuned: more would cost more than they tell."""

# A guess, as the number of folds is.
ENOUGH_HIDDEN = 150
"""Hidden rows after which no further fold is hidden."""

N_FOLDS = 5

Tune = Callable[[Space, KnownRows, str, int], Predictor]
"""Space, known rows, goal and seed -> the predictor with its parameters."""


@dataclass(frozen=True)
class Rival:
    """One thing a user could do instead.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.exp(3 * rng.normal(size=(60, 3)))
    >>> given = KnownRows(np.log(rows), np.arange(60) < 50)
    >>> RIVALS["ridge"].tuned(Space(rows), given).preparation
    'smooth'
    """

    label: str
    """What readers call it, in the middle of a sentence."""
    tune: Tune
    needs_vectors: bool = True
    """Whether a matrix of distances is not enough."""
    space: Space | None = None
    """Rows of its own to compare entities by; ``None``: those of the domain."""

    def tuned(
        self, space: Space, known_rows: KnownRows, *, goal: str = "balanced", seed: int = 0
    ) -> Predictor:
        """Return its predictor, tuned on known rows alone."""
        with one_thread():
            return self.tune(self.space or space, known_rows, goal, seed)

    def fits(self, space: Space) -> bool:
        """Tell whether it can be used on a space."""
        return (self.space or space).has_vectors or not self.needs_vectors


def by_hidden_rows(
    plain: Any,
    preparations: Sequence[str] | None = None,
    *,
    enough: int = ENOUGH_HIDDEN,
    **grid: Sequence[Any],
) -> Tune:
    """Return how to tune a predictor: first its preparation, then each parameter in turn.

    `plain` is the predictor to start from and `grid` has the values of each parameter to try.
    At least `enough` known rows are hidden, if there are so many, and what imputes them best by the
    goal is kept.
    """

    def tune(space: Space, known_rows: KnownRows, goal: str, seed: int) -> Predictor:
        trial = _Trial(space, known_rows, goal, seed, enough)
        names = preparations or space.worth_trying
        best = trial.best([replace(plain, preparation=preparation) for preparation in names])
        # In turn, not in all combinations: their number would be a product.
        for name, values in grid.items():
            best = trial.best([replace(best, **{name: value}) for value in values])
        return best

    return tune


class _Trial:
    """Known rows of which some are hidden, and predictors scored on them."""

    def __init__(
        self, space: Space, known_rows: KnownRows, goal: str, seed: int, enough: int
    ) -> None:
        rows = np.flatnonzero(known_rows.is_known)
        rng = np.random.default_rng(seed)
        is_used = np.zeros(known_rows.is_known.size, np.bool_)
        # Rows that are left out are not seen either: tuning must cost the same on a large set.
        is_used[rng.permutation(rows)[:MOST_TUNED_ON]] = True
        n_used = int(is_used.sum())
        # Twice as few rows hidden at a time, if a fifth is more than enough.
        n_folds = min(n_used, N_FOLDS if n_used < 2 * N_FOLDS * enough else n_used // enough)
        twins = twins_of(known_rows.embedding, is_used)
        self.folds = list(
            hidden_folds(is_used, n_folds=n_folds, seed=seed, enough=enough, twins=twins)
        )
        self.seen_rows = [KnownRows(known_rows.embedding, fold.is_seen) for fold in self.folds]
        self.known = known_rows.embedding[is_used]
        audience = audience_for(goal, known_rows.embedding, self.folds)
        self.audiences = [None] * len(self.folds) if audience is None else audience.by_fold
        self.space, self.goal = space, goal
        self._scores: dict[Predictor, RowScores] = {}

    def best(self, predictors: Sequence[Any]) -> Any:
        """Return the predictor that imputes the hidden rows best; of equals, the first."""
        scores = [self._scored(predictor) for predictor in predictors]
        return predictors[int(np.argmax(total_score(scores, self.goal)))]

    def _scored(self, predictor: Predictor) -> RowScores:
        if predictor not in self._scores:
            parts = []
            folds = zip(self.folds, self.seen_rows, self.audiences, strict=True)
            for fold, seen_rows, audience in folds:
                vectors = predictor.predict(self.space, seen_rows, Unknown(fold.places)).vectors
                centre = seen_rows.known.mean(axis=0)
                parts.append(
                    Judge(self.known, centre, audience=audience).scored(vectors, fold.truth)
                )
            self._scores[predictor] = joined(parts)
        return self._scores[predictor]


def _kernel_ridge(space: Space, known_rows: KnownRows, goal: str, seed: int) -> Predictor:  # noqa: ARG001
    return raced(space, known_rows, kernel_ridges(space), goal=goal)[0]


# Sparsemax looks at directions only, so unit rows would be tried twice.
_UNEQUAL = ("as_given", "standardized", "unit_rows_without_first_component", "rank_normal")

RIVALS: Mapping[str, Rival] = MappingProxyType(
    {
        "mean": Rival("the mean of the known vectors", lambda *_: Mean(), needs_vectors=False),
        "knn": Rival(
            "k nearest neighbours",
            by_hidden_rows(
                Nearest(by_distance=True),
                n_neighbors=(10, 3, 5, 20, 40),
                by_distance=(True, False),
            ),
        ),
        "ridge": Rival("ridge regression", by_hidden_rows(LinearRidge())),
        "kernel_ridge": Rival("kernel ridge regression", _kernel_ridge, needs_vectors=False),
        "extra_trees": Rival(
            "extremely randomised trees",
            by_hidden_rows(LeafKernel(n_trees=200), min_leaf=(3, 1, 5, 10)),
        ),
        "omp": Rival(
            "matching pursuit (tokensurgeon)",
            # A pursuit takes milliseconds a row, so fewer rows have to do.
            by_hidden_rows(MatchingPursuit(n_atoms=16), enough=50, n_atoms=(16, 8, 32, 64)),
        ),
        "sparsemax": Rival(
            "sparsemax (FOCUS)",
            by_hidden_rows(Sparsemax(), _UNEQUAL, scale=(1.0, 3.0, 10.0, 30.0)),
        ),
    }
)
"""Every rival by the name it has in reports."""


class Competitors:
    """The methods that `auto` is compared with, tuned on the known rows of one fold.

    Beside several sources, rivals work with the first one, as their users would. Every source
    competes alone, and every further one by ridge regression too: encode the text, and regress.
    """

    def __init__(
        self,
        space: Any,
        known_rows: KnownRows,
        decision: Decision,
        rivals: Mapping[str, Rival],
        *,
        goal: str,
        seed: int,
    ) -> None:
        self.tuned: dict[str, Predictor] = {}
        self.predict: dict[str, Predict] = {}
        self.labels = {"auto": AUTO_LABEL, "paper": PAPER_LABEL}
        self.labels |= {name: rival.label for name, rival in rivals.items()}
        self._known_rows = known_rows
        self._space_of: dict[str, AnySpace] = {}
        self._tuning: dict[str, Any] = {"goal": goal, "seed": seed}
        if space.is_joint:
            assert decision.choice is not None
            self._add_sources(space, decision.choice.sources, rivals)
            return
        self._add("paper", PAPER, space)
        for name, rival in rivals.items():
            if rival.fits(space):
                self._add(
                    name, rival.tuned(space, known_rows, **self._tuning), rival.space or space
                )

    def popular(self, tastes: Tastes, places: np.ndarray) -> np.ndarray:
        """Return how popular hidden items will be, by the rival that regresses or has neighbours.

        Nobody has taken a new item, so the table must say it. Items that are recommended to new
        users have been taken: then each row holds how often.
        """
        known_rows = self._known_rows
        if tastes.are_users:
            times = tastes.taken[:, np.flatnonzero(known_rows.is_known)].astype(bool).sum(axis=1)
            return np.repeat(np.asarray(times, np.float64)[None], len(places), axis=0)
        times = np.asarray(tastes.taken.astype(bool).sum(axis=0), np.float64)
        values = np.where(known_rows.is_known, np.log1p(times), np.nan)[:, None]
        # The mean needs nothing, and all items are equally popular by it.
        name = next((name for name in ("ridge", "knn", "mean") if name in self.tuned), "paper")
        predicted = self.tuned[name].predict(
            self._space_of[name], KnownRows(values, known_rows.is_known), Unknown(places)
        )
        return predicted.vectors[:, 0]

    def _add(self, name: str, predictor: Predictor, space: AnySpace) -> None:
        self.tuned[name] = predictor
        self._space_of[name] = space
        self.predict[name] = lambda places: (
            predictor.predict(space, self._known_rows, Unknown(places), tol=HIDDEN_TOL).vectors
        )

    def _add_sources(
        self, space: SourcesSpace, reports: Sequence[SourceReport], rivals: Mapping[str, Rival]
    ) -> None:
        space = space.of_variants([report.variant for report in reports])
        self._add("paper", Fused.of_one(space, 0, PAPER), space)
        for place, (member, report) in enumerate(zip(space.members, reports, strict=True)):
            # A guess cannot be tuned, and a source with too few known rows has no predictor.
            if report.predictor is None or member.is_guess:
                continue
            alone = f"{member.name} alone"
            self.labels[alone] = f"source {member.name!r} alone"
            self._add(alone, Fused.of_one(space, place, report.predictor), space)
            # What users do with a further source is mostly ridge regression; all rivals on all
            # sources would multiply the time.
            if place > 0:
                rivals = {f"{member.name} + ridge": RIVALS["ridge"]}
            member_rows = member.given(self._known_rows)
            for name, rival in rivals.items():
                if rival.fits(member.space):
                    tuning = {
                        **self._tuning,
                        "goal": of_rows(self._tuning["goal"], member.rows),
                    }
                    tuned = rival.tuned(member.space, member_rows, **tuning)
                    self.labels.setdefault(name, f"ridge regression from source {member.name!r}")
                    self._add(name, Fused.of_one(space, place, tuned), space)
