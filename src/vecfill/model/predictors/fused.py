"""Several sources at once: each predicts what it describes, and the predictions are added up.

The weights of the sources depend on which of them describe a row (its *pattern*): a source that
helps beside another need not be worth as much alone. Each prediction counts from the mean of the
known rows that its source describes: that mean is an estimate of few rows, which a large weight
would blow up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Mix, Prediction
from vecfill.model.predictors.base import TOL, Hiding, Predictor
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Member
from vecfill.model.wanted import ALL, Unknown, Wanted

Pattern = tuple[bool, ...]
"""Which sources describe a row."""


@dataclass(frozen=True)
class Part:
    """What one source adds to the vectors of some unknown rows."""

    name: str
    places: np.ndarray
    """Places of the rows among the wanted ones."""
    vectors: np.ndarray
    """(n_places, n_dims) its weighted prediction, from the mean of the known rows it describes."""


@dataclass(frozen=True)
class FusedComposition(Composition):
    """What fused vectors are made of, source by source."""

    parts: tuple[Part, ...] = ()

    def source_shares(self, place: int) -> dict[str, float]:
        """Return how much of a row's way from the mean each source went; they sum to one."""
        found = {
            part.name: part.vectors[np.flatnonzero(part.places == place)[0]]
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
    is_for_sources: ClassVar[bool] = True

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

    def in_short(self) -> str:
        """Return the method in half a line: that of one source, or the sources."""
        kept = [name for name, each in zip(self.sources, self.members, strict=True) if each]
        if len(kept) > 1:
            return f"by {len(kept)} sources: {', '.join(kept)}"
        alone = [each for each in self.members if each]
        return alone[0].in_short() if alone else f"by {self.in_words()}"

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
        return self

    def weights_of(self, presence: np.ndarray) -> np.ndarray:
        """Return the weights of the sources for each row, (n_rows, n_sources)."""
        weights = [self.weights_of_pattern(tuple(row)) for row in presence.tolist()]
        return np.array(weights).reshape(len(presence), len(self.sources))

    def weights_of_pattern(self, pattern: Pattern) -> np.ndarray:
        """Return the weights of the sources for a pattern.

        For one that no fitted row has, they are those of the fitted pattern that shares most
        sources with it, without the sources that are absent, and as large together as they were.
        """
        table, present = dict(self.weights), np.array(pattern)
        if pattern in table:
            return np.array(table[pattern])
        usable = [number for number, each in enumerate(self.members) if each is not None]
        best, most = np.zeros(len(pattern)), 0
        for other, weights in table.items():
            shared = np.where(present, weights, 0.0)
            n_shared = int((np.array(other) & present)[usable].sum())
            if n_shared > most and shared.sum() > 0:
                best, most = shared * (sum(weights) / shared.sum()), n_shared
        if most == 0 and present[usable].any():
            best[usable] = present[usable] / present[usable].sum()
        return best

    def predict(
        self, space: Any, given: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of."""
        (prediction,) = self._predicted(space, [(given, wanted)], tol, together=False)
        return prediction

    def by_source(self, space: Any) -> list[tuple[Member, Predictor | None]]:
        """Return what each source of a space is imputed by; ``None`` if it is not used."""
        members = space.of_variants(self.variants).members
        return list(zip(members, self.members, strict=True))

    def variant_of(self, number: int) -> int:
        """Return which of the ways to read a source is used."""
        return self.variants[number]

    def with_chosen_variants(self, space: SourcesSpace) -> tuple[Predictor, SourcesSpace]:
        """Return the predictor and the space without the ways of reading that were not chosen."""
        members = space.of_variants(self.variants).members
        return replace(self, variants=(0,) * len(members)), space.with_members(members)

    def settled(self, space: Any, given: KnownRows) -> Fused:
        """Return the predictor with everything chosen that its members would choose."""
        chosen = tuple(
            None if each is None else each.settled(member.space, member.given(given))
            for member, each in self.by_source(space)
        )
        return replace(self, members=chosen)

    def kept(
        self, space: Any, given: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what the sources keep, by number."""
        kept: dict[str, Any] = {}
        for number, member, predictor, own in self._used(space, given):
            of_own = partial(_of_own, carried, _among_known(given, member, own))
            kept[str(number)] = predictor.kept(member.space, own, of_own)
        return kept

    def restore(self, space: Any, given: KnownRows, kept: Mapping[str, Any]) -> None:
        """Give back to the known rows of each source what it kept."""
        for number, member, predictor, own in self._used(space, given):
            predictor.restore(member.space, own, kept[str(number)])

    def _used(
        self, space: Any, given: KnownRows
    ) -> Iterator[tuple[int, Member, Predictor, KnownRows]]:
        """Yield the sources that are used: number, rows, predictor and what is known of them."""
        for number, (member, predictor) in enumerate(self.by_source(space)):
            if predictor is not None:
                key = ("member", number, self.variants[number])
                yield number, member, predictor, given.once(key, partial(member.given, given))

    def is_described(self, space: Any, given: KnownRows, wanted: Wanted = ALL) -> np.ndarray:
        """Tell which of the wanted rows are described by a source that counts."""
        presence = wanted.presence(space.of_variants(self.variants).presence, given)
        return self.weights_of(presence).sum(axis=1) > 0

    def is_usual(self, space: Any, given: KnownRows, wanted: Wanted) -> np.ndarray:
        """Tell which of the wanted rows are described by the same sources as a fitted row."""
        presence = wanted.presence(space.presence, given)
        patterns = dict(self.weights)
        return np.array([tuple(row) in patterns for row in presence.tolist()], np.bool_)

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Any, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows; each source shares what it can."""
        hidings = [(given, Unknown(places)) for given, places in folds]
        found = [each._predicted(space, hidings, tol, together=True) for each in predictors]
        return [list(fold) for fold in zip(*found, strict=True)]

    def _predicted(
        self,
        space: SourcesSpace,
        folds: Sequence[tuple[KnownRows, Wanted]],
        tol: float,
        *,
        together: bool,
    ) -> list[Prediction]:
        """Return a prediction for each fold, source by source."""
        space = space.of_variants(self.variants)
        sums = [_Sums(given, wanted) for given, wanted in folds]
        weights = [
            self.weights_of(wanted.presence(space.presence, given)) for given, wanted in folds
        ]
        mixes: list[list[MemberMix]] = [[] for _ in folds]
        for number, (member, predictor) in enumerate(zip(space.members, self.members, strict=True)):
            if predictor is None:
                continue
            hidings: list[tuple[int, KnownRows, np.ndarray, Wanted]] = []
            for place, (given, wanted) in enumerate(folds):
                key = ("member", number, self.variants[number])
                own = given.once(key, partial(member.given, given))
                described = wanted.of_source(number, member, given, own)
                if described is not None:
                    hidings.append((place, own, *described))
            predictions = _found(predictor, member.space, hidings, tol, together=together)
            for (place, own, described, asked), prediction in zip(
                hidings, predictions, strict=True
            ):
                mine = weights[place][described, number]
                sums[place].add(member.name, own, described, asked, mine, prediction)
                mix = prediction.composition.mix
                mixes[place].append(MemberMix(number, member, own, described, mix))
        return [_put_together(*each) for each in zip(folds, sums, weights, mixes, strict=True)]


def _found(
    predictor: Predictor,
    space: Any,
    hidings: Sequence[tuple[int, KnownRows, np.ndarray, Wanted]],
    tol: float,
    *,
    together: bool,
) -> list[Prediction]:
    """Return what one source's predictor gives in each fold."""
    if together:
        # Folds hide rows of the fit, so their places are numbers.
        folds = [(own, asked.places) for _, own, _, asked in hidings]  # pyright: ignore
        by_fold = type(predictor).predict_folds([predictor], space, folds, tol=tol)
        return [prediction for (prediction,) in by_fold]
    return [predictor.predict(space, own, asked, tol=tol) for _, own, _, asked in hidings]


def _among_known(given: KnownRows, member: Member, own: KnownRows) -> np.ndarray:
    """Return the places of a source's known rows among all known rows."""
    return (np.cumsum(given.is_known) - 1)[member.rows[own.is_known]]


def _of_own(values: Callable[[], np.ndarray], places: np.ndarray) -> np.ndarray:
    return values()[places]


def _put_together(
    fold: tuple[KnownRows, Wanted], sums: _Sums, weights: np.ndarray, mixes: list[MemberMix]
) -> Prediction:
    given, _ = fold
    mix = FusedMix(tuple(mixes), weights, given)
    composition = FusedComposition(mix, sums.trend(), None, tuple(sums.parts))
    return Prediction(in_range_of(given.embedding.dtype, sums.vectors), composition)


class _Sums:
    """Vectors of the wanted rows while sources are added up, from the mean of the known rows."""

    def __init__(self, given: KnownRows, wanted: Wanted) -> None:
        self.numbers = wanted.numbers(given)
        self.centre = given.known.mean(axis=0, dtype=np.float64)
        self.vectors = np.repeat(self.centre[None], self.numbers.size, axis=0)
        self.trends = np.repeat(self.centre[None], wanted.n_numbers(given), axis=0)
        self.has_trend = False
        self.parts: list[Part] = []

    def add(
        self,
        name: str,
        own: KnownRows,
        described: np.ndarray,
        asked: Wanted,
        weights: np.ndarray,
        prediction: Prediction,
    ) -> None:
        """Add what one source predicts for the rows that it describes."""
        centre = own.mean
        moved = weights[:, None] * (prediction.vectors - centre)
        self.vectors[described] += moved
        self.parts.append(Part(name, described, moved))
        if prediction.composition.trend is not None:
            self.has_trend = True
            values = prediction.composition.trend.at(asked.numbers(own))
            self.trends[self.numbers[described]] += weights[:, None] * (values - centre)

    def trend(self) -> Trend | None:
        """Return the sum of the trends of those sources that have one."""
        if not self.has_trend:
            return None
        return Trend(self.trends.__getitem__, np.empty((0, self.centre.size)), np.nan)


@dataclass(frozen=True)
class MemberMix:
    """How the known rows of one source are mixed."""

    number: int
    member: Member
    own: KnownRows
    described: np.ndarray
    """Which of the wanted rows it describes."""
    mix: Mix


@dataclass(frozen=True)
class FusedMix(Mix):
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
        for each in self.members:
            place_of = np.full(len(self.weights), -1)
            place_of[each.described] = np.arange(each.described.size)
            here = np.flatnonzero(place_of[places] >= 0)
            if not here.size:
                continue
            columns = _among_known(self.given, each.member, each.own)
            weight = self.weights[places[here], each.number][:, None]
            if not columns.size:
                continue
            added = each.mix.shares(place_of[places[here]]) - 1.0 / columns.size
            found[np.ix_(here, columns)] += weight * added
        return found

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""
        return self._summed(values, lambda each, own: each.mix.spread(own(), tol=tol))

    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the same of what known rows carry for signals."""
        return self._summed(values(), lambda each, own: each.mix.carried(own, tol=tol))

    def _summed(
        self,
        values: np.ndarray,
        spread: Callable[[MemberMix, Callable[[], np.ndarray]], np.ndarray],
    ) -> np.ndarray:
        """Return the mean of all known rows, and what the sources add to it."""
        sums = np.repeat(values.mean(axis=0)[None], len(self.weights), axis=0)
        for each in self.members:
            own = values[_among_known(self.given, each.member, each.own)]
            if not len(own):
                continue
            weight = self.weights[each.described, each.number][:, None]
            sums[each.described] += weight * (spread(each, lambda own=own: own) - own.mean(axis=0))
        return sums

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
            own = self.weights[each.described, each.number]
            total[each.described] += own * getattr(each.mix, signal)()
            weight[each.described] += own
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
