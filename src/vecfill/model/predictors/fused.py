"""Several sources at once: each predicts what it describes, and the predictions are added up.

The weights of the sources depend on which of them describe a row (its *pattern*): a source that
helps beside another need not be worth as much alone. Each prediction counts from the mean of the
known rows that its source describes: that mean is an estimate of few rows, which a large weight
would blow up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Mix, Prediction
from vecfill.model.predictors.base import TOL, Hiding, Predictor
from vecfill.model.sources import Member, SourcesSpace

Pattern = tuple[bool, ...]
"""Which sources describe a row."""


@dataclass(frozen=True)
class Part:
    """What one source adds to the vectors of some unknown rows."""

    name: str
    places: np.ndarray
    """Places of the rows among the unknown rows of the whole."""
    vectors: np.ndarray
    """(n_places, n_dims) its weighted prediction, from the mean of the known rows it describes."""


@dataclass(frozen=True)
class FusedComposition(Composition):
    """What fused vectors are made of, source by source."""

    parts: tuple[Part, ...] = ()

    def source_shares(self, place: int) -> dict[str, float]:
        """Return how much of a row's way from the mean each source went; they sum to one."""
        found = {
            part.name: part.vectors[np.searchsorted(part.places, place)]
            for part in self.parts
            if place in part.places
        }
        total = np.sum(list(found.values()), axis=0) if found else np.zeros(1)
        size = float(np.dot(total, total))
        if size == 0.0:
            return dict.fromkeys(found, 0.0)
        return {name: float(np.dot(part, total)) / size for name, part in found.items()}


@dataclass(frozen=True)
class Fused(Predictor):
    """The mean of the known rows, and a weighted sum of what several sources predict beside it.

    Examples
    --------
    >>> from vecfill.model.predictors.nearest import Nearest
    >>> from vecfill.model.space import Space
    >>> line = np.arange(4.0)[:, None]
    >>> space = SourcesSpace([[Member("a", Space(line), np.arange(4), 4)],
    ...                       [Member("b", Space(line), np.arange(4), 4)]])
    >>> near = Nearest(n_neighbors=1)
    >>> fused = Fused(("a", "b"), (0, 0), (near, near), (((True, True), (0.5, 0.5)),))
    >>> given = KnownRows(np.array([[0.0], [1.0], [2.0], [np.nan]]), np.arange(4) < 3)
    >>> fused.predict(space, given).vectors
    array([[2.]])
    """

    sources: tuple[str, ...]
    """Names of the sources, in the order of the members of the space."""
    variants: tuple[int, ...]
    """Which way of turning each source into rows is used."""
    members: tuple[Predictor | None, ...]
    """How each source predicts; ``None`` if it was dropped."""
    weights: tuple[tuple[Pattern, tuple[float, ...]], ...]
    """Weights of the sources for each pattern."""

    name: ClassVar[str] = "fused"
    needs_vectors: ClassVar[bool] = False

    @classmethod
    def of_one(cls, space: SourcesSpace, place: int, predictor: Predictor) -> Fused:
        """Return one source alone, in a space of several."""
        names = space.names
        members = tuple(predictor if at == place else None for at in range(len(names)))
        alone = tuple(float(at == place) for at in range(len(names)))
        patterns = {tuple(row) for row in space.presence.tolist()}
        weights = tuple((each, alone) for each in sorted(patterns))
        return cls(names, space.which, members, weights)

    def __str__(self) -> str:
        kept = [name for name, each in zip(self.sources, self.members, strict=True) if each]
        return " + ".join(kept) if kept else "the mean of the known vectors"

    def in_words(self) -> str:
        """Return the setting as one would say it: what each source does."""
        members = zip(self.sources, self.members, strict=True)
        kept = [f"{name} ({each.in_words()})" for name, each in members if each]
        return " + ".join(kept) if kept else "the mean of the known vectors"

    def to_dict(self) -> dict[str, Any]:
        """Return the predictor as plain values, for JSON."""
        members = zip(self.sources, self.members, strict=True)
        return {
            "predictor": self.name,
            "sources": {name: None if each is None else each.to_dict() for name, each in members},
            "weights": [
                {
                    "present": [
                        name for name, here in zip(self.sources, pattern, strict=True) if here
                    ],
                    "weights": dict(zip(self.sources, weights, strict=True)),
                }
                for pattern, weights in self.weights
            ],
        }

    def fitted_to(self, space: Any) -> Self:
        """Return the predictor itself: its members were chosen in their spaces."""
        assert isinstance(space, SourcesSpace)
        return self

    def weights_of(self, presence: np.ndarray) -> np.ndarray:
        """Return the weights of the sources for each row, (n_rows, n_sources)."""
        table = dict(self.weights)
        nothing = (0.0,) * len(self.sources)
        return np.array([table.get(tuple(row), nothing) for row in presence.tolist()]).reshape(
            len(presence), len(self.sources)
        )

    def predict(
        self,
        space: Any,
        given: KnownRows,
        *,
        places: np.ndarray | None = None,
        tol: float = TOL,
    ) -> Prediction:
        """Return vectors of the unknown rows, and what they are made of."""
        assert isinstance(space, SourcesSpace)
        (found,) = self._predicted(space, [(given, places)], tol, together=False)
        return found

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Any, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows; each source shares what it can."""
        found = [each._predicted(space, folds, tol, together=True) for each in predictors]
        return [list(fold) for fold in zip(*found, strict=True)]

    def _predicted(
        self,
        space: SourcesSpace,
        folds: Sequence[tuple[KnownRows, np.ndarray | None]],
        tol: float,
        *,
        together: bool,
    ) -> list[Prediction]:
        """Return a prediction for each fold, source by source."""
        space = space.of_variants(self.variants)
        sums = [_Sums(given, given.wanted(places)) for given, places in folds]
        weights = [self.weights_of(space.presence[each.wanted]) for each in sums]
        mixes: list[list[MemberMix]] = [[] for _ in folds]
        for number, (member, predictor) in enumerate(zip(space.members, self.members, strict=True)):
            if predictor is None:
                continue
            asked = []
            for (given, _), total in zip(folds, sums, strict=True):
                key = ("member", number, self.variants[number])
                own = given.once(key, lambda member=member, given=given: member.given(given))
                asked.append((own, _positions(member, own, total.wanted)))
            hidings = [(own, at.among_own) for own, at in asked]
            found = _found(predictor, member.space, hidings, tol, together=together)
            for place, ((own, at), one) in enumerate(zip(asked, found, strict=True)):
                mine = weights[place][at.among_wanted, number]
                sums[place].add(member.name, own, at, mine, one)
                mixes[place].append(MemberMix(number, member, own, at, one.composition.mix))
        return [_put_together(*each) for each in zip(folds, sums, weights, mixes, strict=True)]


def _found(
    predictor: Predictor, space: Any, hidings: Sequence[Hiding], tol: float, *, together: bool
) -> list[Prediction]:
    """Return what one source's predictor gives in each fold."""
    if together:
        folds = type(predictor).predict_folds([predictor], space, hidings, tol=tol)
        return [fold[0] for fold in folds]
    return [predictor.predict(space, own, places=at, tol=tol) for own, at in hidings]


def _put_together(
    fold: tuple[KnownRows, Any], sums: _Sums, weights: np.ndarray, mixes: list[MemberMix]
) -> Prediction:
    given, _ = fold
    mix = FusedMix(tuple(mixes), weights, given)
    composition = FusedComposition(mix, sums.trend(), None, tuple(sums.parts))
    return Prediction(in_range_of(given.embedding.dtype, sums.vectors), composition)


class _Sums:
    """Vectors of the wanted rows while sources are added up, from the mean of the known rows."""

    def __init__(self, given: KnownRows, wanted: np.ndarray) -> None:
        self.wanted = wanted
        self.centre = given.known.mean(axis=0, dtype=np.float64)
        self.vectors = np.repeat(self.centre[None], wanted.size, axis=0)
        self.trends = np.repeat(self.centre[None], given.is_known.size, axis=0)
        self.has_trend = False
        self.parts: list[Part] = []

    def add(
        self, name: str, own: KnownRows, at: _Positions, weights: np.ndarray, found: Prediction
    ) -> None:
        """Add what one source predicts for the rows that it describes."""
        centre = own.mean
        moved = weights[:, None] * (found.vectors - centre)
        self.vectors[at.among_wanted] += moved
        self.parts.append(Part(name, at.among_wanted, moved))
        if found.composition.trend is not None:
            self.has_trend = True
            values = found.composition.trend.at(own.unknown[at.among_own])
            rows = self.wanted[at.among_wanted]
            self.trends[rows] += weights[:, None] * (values - centre)

    def trend(self) -> Trend | None:
        """Return the sum of the trends of those sources that have one."""
        if not self.has_trend:
            return None
        return Trend(self.trends.__getitem__, np.empty((0, self.centre.size)), np.nan)


@dataclass(frozen=True)
class _Positions:
    """Where the wanted rows of the whole are among those of a member."""

    among_wanted: np.ndarray
    among_own: np.ndarray
    """Places among the unknown rows of the member."""


def _positions(member: Member, own: KnownRows, wanted: np.ndarray) -> _Positions:
    place_of = np.full(member.n_all, -1)
    place_of[member.rows[own.unknown]] = np.arange(own.unknown.size)
    among_own = place_of[wanted]
    among_wanted = np.flatnonzero(among_own >= 0)
    return _Positions(among_wanted, among_own[among_wanted])


@dataclass(frozen=True)
class MemberMix:
    """How the known rows of one source are mixed."""

    number: int
    member: Member
    own: KnownRows
    at: _Positions
    """Which of the wanted rows it describes."""
    mix: Mix


@dataclass(frozen=True)
class FusedMix:
    """How the known rows of all sources are mixed: the members' mixes, weighted.

    All known rows have an equal share first, which makes their mean. What a source adds sums to
    nothing: its mix, less an equal share of the known rows that it describes.
    """

    members: tuple[MemberMix, ...]
    weights: np.ndarray
    """(n_wanted, n_sources)."""
    given: KnownRows

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some unknown rows (down)."""
        places = np.asarray(places, np.int64)
        n_known = self.given.n_known
        found = np.zeros((places.size, n_known))
        found += 1.0 / n_known
        among_known = np.cumsum(self.given.is_known) - 1
        for each in self.members:
            here = np.flatnonzero(np.isin(places, each.at.among_wanted))
            if not here.size:
                continue
            columns = among_known[each.member.rows[each.own.is_known]]
            weight = self.weights[places[here], each.number][:, None]
            own = np.searchsorted(each.at.among_wanted, places[here])
            if not columns.size:
                continue
            added = each.mix.shares(own) - 1.0 / columns.size
            found[np.ix_(here, columns)] += weight * added
        return found

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""
        found = np.repeat(values.mean(axis=0)[None], len(self.weights), axis=0)
        among_known = np.cumsum(self.given.is_known) - 1
        for each in self.members:
            own = values[among_known[each.member.rows[each.own.is_known]]]
            if not len(own):
                continue
            weight = self.weights[each.at.among_wanted, each.number][:, None]
            added = each.mix.spread(own, tol=tol) - own.mean(axis=0)
            found[each.at.among_wanted] += weight * added
        return found

    def misfit(self) -> np.ndarray:
        """Return how badly neighbours explain each unknown row, averaged over its sources."""
        return self._averaged("misfit")

    def straight(self) -> np.ndarray:
        """Return how much weight rests on known rows directly, averaged over the sources."""
        return self._averaged("straight")

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each unknown row, averaged over the sources."""
        return self._averaged("tightness")

    def _averaged(self, signal: str) -> np.ndarray:
        total, weight = np.zeros((2, len(self.weights)))
        for each in self.members:
            own = self.weights[each.at.among_wanted, each.number]
            total[each.at.among_wanted] += own * getattr(each.mix, signal)()
            weight[each.at.among_wanted] += own
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
