"""Several sources at once: each predicts what it describes, and the predictions are added up.

The weights of the sources depend on which of them describe a row (its *pattern*): a source that
helps beside another need not be worth as much alone. Each prediction counts from the mean of the
known rows that its source describes: that mean is an estimate of few rows, which a large weight
would blow up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np

from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Prediction
from vecfill.model.predictors.base import TOL, Hiding, Predictor
from vecfill.model.predictors.fused_mix import FusedComposition, FusedMix, MemberMix, Part
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Member
from vecfill.model.wanted import ALL, Unknown, Wanted

Pattern = tuple[bool, ...]
"""Which sources describe a row."""


@dataclass(frozen=True)
class Fused(Predictor):
    """The mean of the known rows, and a weighted sum of what several sources predict beside it.

    Examples
    --------
    >>> from vecfill.model.predictors.rivals import Nearest
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
    """Weights of the sources for each pattern of those that are used."""

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
        weights = tuple((pattern, alone) for pattern in sorted(patterns))
        return cls(names, space.which, members, weights)

    def without_sources(self, names: Collection[str]) -> Fused | None:
        """Return the predictor without sources of these names; ``None`` if no other is used.

        Examples
        --------
        >>> from vecfill.model.predictors.mean import Mean
        >>> Fused(("names",), (0,), (Mean(),), ()).without_sources({"names"}) is None
        True
        """
        members = tuple(
            None if name in names else member
            for name, member in zip(self.sources, self.members, strict=True)
        )
        return replace(self, members=members) if any(members) else None

    def cheapened(self) -> Fused:
        """Return the predictor with members of less work."""
        return replace(
            self, members=tuple(member and member.cheapened() for member in self.members)
        )

    @property
    def _used_sources(self) -> dict[str, Predictor]:
        """The predictors of the sources that were not dropped, by name."""
        members = zip(self.sources, self.members, strict=True)
        return {name: member for name, member in members if member is not None}

    def __str__(self) -> str:
        return " + ".join(self._used_sources) or "the mean of the known vectors"

    def in_words(self) -> str:
        """Return the setting as one would say it: what each source does."""
        members = self._used_sources.items()
        parts = [f"{name} ({member.in_words()})" for name, member in members]
        return " + ".join(parts) or "the mean of the known vectors"

    def in_short(self) -> str:
        """Return the method in half a line: that of one source, or the sources."""
        members = self._used_sources
        if len(members) > 1:
            return f"by {len(members)} sources: {', '.join(members)}"
        return next(iter(members.values())).in_short() if members else f"by {self.in_words()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the predictor as plain values, for JSON."""
        members = self._used_sources
        return {
            "predictor": self.name,
            "sources": {
                name: members[name].to_dict() if name in members else None for name in self.sources
            },
            "weights": [
                {
                    "present": list(compress(self.sources, pattern)),
                    "weights": dict(zip(self.sources, weights, strict=True)),
                }
                for pattern, weights in self.weights
            ],
        }

    @property
    def whitened(self) -> float:
        """By what power of their variance directions were strengthened, at most."""
        return max((member.whitened for member in self._used_sources.values()), default=0.0)

    def fitted_to(self, space: Any) -> Self:
        """Return the predictor itself: its members were chosen in their spaces."""
        return self

    def of_used(self, pattern: Pattern) -> Pattern:
        """Return a pattern without the sources that were dropped: nobody reads them for new rows.

        Examples
        --------
        >>> from vecfill.model.predictors.rivals import Nearest
        >>> Fused(("a", "b"), (0, 0), (Nearest(), None), ()).of_used((True, True))
        (True, False)
        """
        members = zip(pattern, self.members, strict=True)
        return tuple(is_present and member is not None for is_present, member in members)

    @property
    def _weights_of_used(self) -> dict[Pattern, tuple[float, ...]]:
        return {self.of_used(pattern): weights for pattern, weights in self.weights}

    def weights_of(self, presence: np.ndarray) -> np.ndarray:
        """Return the weights of the sources for each row, (n_rows, n_sources)."""
        patterns, pattern_of = np.unique(presence, axis=0, return_inverse=True)
        weights = [self.weights_of_pattern(tuple(pattern)) for pattern in patterns.tolist()]
        return np.array(weights).reshape(len(patterns), len(self.sources))[pattern_of.ravel()]

    def weights_of_pattern(self, pattern: Pattern) -> np.ndarray:
        """Return the weights of the sources for a pattern.

        Sources that were dropped make no difference. For a pattern that no fitted row has, they are
        those of the fitted one that shares most sources with it, without the sources that are
        absent, and as large together as they were.
        """
        # Files of earlier versions tell patterns apart by dropped sources, which added rows lack.
        table = self._weights_of_used | dict(self.weights)
        for same in (pattern, self.of_used(pattern)):
            if same in table:
                return np.array(table[same])
        present = np.array(pattern)
        usable = [number for number, member in enumerate(self.members) if member is not None]
        best, n_best = np.zeros(len(pattern)), 0
        for fitted_pattern, weights in table.items():
            shared = np.where(present, weights, 0.0)
            n_shared = int((np.array(fitted_pattern) & present)[usable].sum())
            if n_shared > n_best and shared.sum() > 0:
                best, n_best = shared * (sum(weights) / shared.sum()), n_shared
        # Sources that no fitted pattern has together: nothing says which of them is worth more.
        if n_best == 0 and present[usable].any():
            best[usable] = present[usable] / present[usable].sum()
        return best

    def predict(
        self, space: Any, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of."""
        (prediction,) = self._predicted(space, [(known_rows, wanted)], tol, together=False)
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
        # What was not chosen is never asked for again, and would be saved with the model.
        members = space.of_variants(self.variants).members
        return replace(self, variants=(0,) * len(members)), space.with_members(members)

    def settled(self, space: Any, known_rows: KnownRows) -> Fused:
        """Return the predictor with everything chosen that its members would choose."""
        chosen = tuple(
            None if predictor is None else predictor.settled(member.space, member.given(known_rows))
            for member, predictor in self.by_source(space)
        )
        return replace(self, members=chosen)

    def kept(
        self, space: Any, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what the sources keep, by number."""
        stored: dict[str, Any] = {}
        for number, member, predictor, of_member in self._used(space, known_rows):
            of_known = partial(_of_own, carried, _among_known(known_rows, member, of_member))
            stored[str(number)] = predictor.kept(member.space, of_member, of_known)
        return stored

    def restore(self, space: Any, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:
        """Give back to the known rows of each source what it kept."""
        for number, member, predictor, of_member in self._used(space, known_rows):
            predictor.restore(member.space, of_member, stored[str(number)])

    def _used(
        self, space: Any, known_rows: KnownRows
    ) -> Iterator[tuple[int, Member, Predictor, KnownRows]]:
        """Yield the sources that are used: number, rows, predictor and what is known of them."""
        for number, (member, predictor) in enumerate(self.by_source(space)):
            if predictor is not None:
                yield number, member, predictor, self._of_member(number, member, known_rows)

    def _of_member(self, number: int, member: Member, known_rows: KnownRows) -> KnownRows:
        """Return what is known of a source's rows, always the same, so that it keeps its work."""
        key = ("member", number, self.variants[number])
        return known_rows.once(key, lambda: member.given(known_rows))

    def is_described(self, space: Any, known_rows: KnownRows, wanted: Wanted = ALL) -> np.ndarray:
        """Tell which of the wanted rows are described by a source that counts."""
        presence = wanted.presence(space.of_variants(self.variants).presence, known_rows)
        return self.weights_of(presence).sum(axis=1) > 0

    def is_usual(self, space: Any, known_rows: KnownRows, wanted: Wanted) -> np.ndarray:
        """Tell which of the wanted rows are described by the same sources as a fitted row."""
        presence = wanted.presence(space.presence, known_rows)
        fitted = self._weights_of_used
        return np.array([self.of_used(tuple(row)) in fitted for row in presence.tolist()], np.bool_)

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Any, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows; each source shares what it can."""
        hidings = [(known_rows, Unknown(places)) for known_rows, places in folds]
        by_predictor = [
            predictor._predicted(space, hidings, tol, together=True) for predictor in predictors
        ]
        return [list(fold) for fold in zip(*by_predictor, strict=True)]

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
        sums = []
        for known_rows, wanted in folds:
            weights = self.weights_of(wanted.presence(space.presence, known_rows))
            sums.append(_Sums(known_rows, wanted, weights))
        # Source by source, and all folds of one together: its systems are large, and only those
        # of one source need to be in memory.
        for number, (member, predictor) in enumerate(self.by_source(space)):
            if predictor is None:
                continue
            # New rows may all lack a source; then nothing is asked of it.
            pieces = [
                piece
                for fold, (known_rows, wanted) in zip(sums, folds, strict=True)
                if (piece := self._piece(fold, number, member, known_rows, wanted)) is not None
            ]
            for piece, prediction in zip(
                pieces, _predictions(predictor, pieces, tol, together=together), strict=True
            ):
                piece.fold.add(piece, prediction)
        return [fold.prediction() for fold in sums]

    def _piece(
        self, fold: _Sums, number: int, member: Member, known_rows: KnownRows, wanted: Wanted
    ) -> _Piece | None:
        """Return what is asked of a source in a fold; ``None`` if nothing can be said there."""
        of_member = self._of_member(number, member, known_rows)
        described = wanted.of_source(number, member, known_rows, of_member)
        return None if described is None else _Piece(fold, number, member, of_member, *described)


@dataclass(frozen=True, eq=False)
class _Piece:
    """What is asked of one source in one fold."""

    fold: _Sums
    number: int
    member: Member
    known_rows: KnownRows
    """What is known of the source's own rows."""
    described: np.ndarray
    """Which of the wanted rows it describes."""
    wanted: Wanted
    """The same rows among its own."""


def _predictions(
    predictor: Predictor, pieces: Sequence[_Piece], tol: float, *, together: bool
) -> list[Prediction]:
    """Return what one source's predictor gives in each fold."""
    if together and pieces:
        # Folds hide rows of the fit, so their places are numbers.
        folds = [(piece.known_rows, piece.wanted.places) for piece in pieces]  # pyright: ignore
        space = pieces[0].member.space
        by_fold = type(predictor).predict_folds([predictor], space, folds, tol=tol)
        return [prediction for (prediction,) in by_fold]
    return [
        predictor.predict(piece.member.space, piece.known_rows, piece.wanted, tol=tol)
        for piece in pieces
    ]


def _among_known(known_rows: KnownRows, member: Member, of_member: KnownRows) -> np.ndarray:
    """Return the places of a source's known rows among all known rows."""
    return (np.cumsum(known_rows.is_known) - 1)[member.rows[of_member.is_known]]


def _of_own(values: Callable[[], np.ndarray], places: np.ndarray) -> np.ndarray:
    return values()[places]


class _Sums:
    """The wanted rows of a fold while sources are added up, from the mean of the known rows."""

    def __init__(self, known_rows: KnownRows, wanted: Wanted, weights: np.ndarray) -> None:
        self.known_rows = known_rows
        self.weights = weights
        self.numbers = wanted.numbers(known_rows)
        centre = known_rows.known.mean(axis=0, dtype=np.float64)
        self.vectors = np.repeat(centre[None], self.numbers.size, axis=0)
        self.trends = np.repeat(centre[None], wanted.n_numbers(known_rows), axis=0)
        self.has_trend = False
        self.parts: list[Part] = []
        self.mixes: list[MemberMix] = []

    def add(self, piece: _Piece, prediction: Prediction) -> None:
        """Add what one source predicts for the rows that it describes."""
        composition, described = prediction.composition, piece.described
        weights = self.weights[described, piece.number][:, None]
        # From the mean of its own known rows: they may lie elsewhere than all of them do.
        centre = piece.known_rows.mean
        step = weights * (prediction.vectors - centre)
        self.vectors[described] += step
        self.parts.append(Part(piece.member.name, described, step))
        if composition.trend is not None:
            self.has_trend = True
            # Trends add up as vectors do; explanations ask for their sum by number of the row.
            values = composition.trend.at(piece.wanted.numbers(piece.known_rows))
            self.trends[self.numbers[described]] += weights * (values - centre)
        columns = _among_known(self.known_rows, piece.member, piece.known_rows)
        self.mixes.append(MemberMix(piece.number, described, columns, composition.mix))

    def prediction(self) -> Prediction:
        """Return the sum of what was added, and what it is made of."""
        trend = None
        if self.has_trend:
            nothing = np.empty((0, self.trends.shape[1]))
            trend = Trend(self.trends.__getitem__, nothing, np.nan)
        mix = FusedMix(tuple(self.mixes), self.weights, self.known_rows.n_known)
        composition = FusedComposition(mix, trend, None, tuple(self.parts))
        vectors = in_range_of(self.known_rows.embedding.dtype, self.vectors)
        return Prediction(vectors, composition)
