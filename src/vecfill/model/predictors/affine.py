"""Affine maps, as from one embedding to another: known rows turned, and what departs from that.

`Procrustes` turns, scales and shifts. `Affine` is ridge regression shrunk towards it, so it adds
what known rows bear out; `AffineKernel` adds to that what the map misses of rows that are alike.
`Adjoint` is fitted from vectors to rows and transposed, which keeps what a search by inner products
would find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from vecfill import checks
from vecfill.method.rotation import AffineMap, Rotated, transposed
from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, Rows, check_preparation, dense
from vecfill.model.predictors.kernel_ridge import KernelRidge
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


def _rotated(space: Space, known_rows: KnownRows, preparation: str) -> Rotated:
    """Return the known rows brought near their vectors, computed once for all who ask."""

    def fitted() -> Rotated:
        rows = space.prepared(preparation)[np.flatnonzero(known_rows.is_known)]
        return Rotated(dense(rows), known_rows.known)

    return known_rows.once(("rotated", preparation), fitted)


def _trend_along(line: AffineMap, rows: np.ndarray, numbers: np.ndarray, n_dims: int) -> Trend:
    """Return a map as the trend of the wanted rows, which are asked for by their numbers."""

    def at(row_numbers: np.ndarray) -> np.ndarray:
        # The numbers rise, as those of unknown rows and of new ones do.
        return line(rows[np.searchsorted(numbers, row_numbers)])

    return Trend(at, np.empty((0, n_dims)), np.nan)


def _along(line: AffineMap, rows: Rows, known_rows: KnownRows, wanted: Wanted) -> Prediction:
    """Return what a map makes of the wanted rows, and nothing else."""
    rows = dense(rows)
    vectors = in_range_of(known_rows.embedding.dtype, line(rows))
    # The whole is a map; every known row has had its share in the slopes, and none in a mix.
    even = np.broadcast_to(1.0 / known_rows.n_known, (len(rows), known_rows.n_known))
    trend = _trend_along(line, rows, wanted.numbers(known_rows), known_rows.n_dims)
    return Prediction(vectors, Composition(FixedMix(even), trend))


@dataclass(frozen=True)
class Procrustes(Predictor):
    """The rotation that brings known rows nearest to their vectors, with one scale and a shift.

    It keeps every angle between rows, so what was near stays near.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [2.0, 2.0]])
    >>> embedding, is_known = 3.0 * rows[:, ::-1], np.arange(5) < 4
    >>> Procrustes().predict(Space(rows), KnownRows(embedding, is_known)).vectors.round(6)
    array([[6., 6.]])
    """

    preparation: str = "as_given"

    name: ClassVar[str] = "procrustes"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)

    def __str__(self) -> str:
        return f"{self.preparation}, rotation"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "rotation (Procrustes)"

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the turned rows; what the rotation misses is zero on average, and is not added."""
        line = _rotated(space, known_rows, self.preparation).rotation
        return _along(
            line, wanted.prepared(space, self.preparation, known_rows), known_rows, wanted
        )


class _AffineMix(FixedMix):
    """What each known row's distance from the rotation counts, computed when asked for."""

    def __init__(self, pair: Rotated, rows: np.ndarray, strength: float) -> None:
        self._made_from = (pair, rows, strength)

    @cached_property
    def coefficients(self) -> np.ndarray:
        pair, rows, strength = self._made_from
        return pair.shares(rows, strength)


@dataclass(frozen=True)
class Affine(Predictor):
    """An affine map: ridge regression that is shrunk towards a rotation instead of nothing.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> embedding, is_known = rows * [1.0, 5.0], np.arange(40) < 39
    >>> vectors = Affine().predict(Space(rows), KnownRows(embedding, is_known)).vectors
    >>> bool(np.allclose(vectors, embedding[39:], atol=0.1))
    True
    """

    preparation: str = "as_given"
    strength: float | None = None
    """How strongly it is held to the rotation, in units of the mean variance of a direction;
    ``None``: chosen by leave-one-out."""

    name: ClassVar[str] = "affine"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        _check_strength(self.strength)

    def __str__(self) -> str:
        return f"{self.preparation}, affine map{_in_digits(self.strength)}"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "affine map near a rotation"

    def settled(self, space: Space, known_rows: KnownRows) -> Affine:
        """Return the predictor with the strength that it chooses by itself."""
        if self.strength is not None:
            return self
        pair = _rotated(space, known_rows, self.preparation)
        best = known_rows.once(("strength", self.preparation), pair.best_strength)
        return replace(self, strength=best)

    def line(self, space: Space, known_rows: KnownRows) -> AffineMap:
        """Return the map, fitted once."""
        strength = self.settled(space, known_rows).strength
        assert strength is not None
        pair = _rotated(space, known_rows, self.preparation)
        return known_rows.once(
            ("affine", self.preparation, strength), lambda: pair.affine(strength)
        )

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the map's vectors; what is mixed is what the rotation misses of known rows."""
        line, pair = self.line(space, known_rows), _rotated(space, known_rows, self.preparation)
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows))
        strength, numbers = self.settled(space, known_rows).strength, wanted.numbers(known_rows)
        assert strength is not None
        trend = _trend_along(pair.rotation, rows, numbers, known_rows.n_dims)
        return Prediction(vectors, Composition(_AffineMix(pair, rows, strength), trend))


@dataclass(frozen=True)
class Adjoint(Predictor):
    """The affine map from vectors to rows, transposed, so that it leads from rows to vectors.

    Searching among vectors by such a row finds what searching by the row itself would find among
    vectors that were mapped the other way.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> embedding, is_known = rows[:, ::-1].copy(), np.arange(40) < 39
    >>> vectors = Adjoint(strength=1.0).predict(Space(rows), KnownRows(embedding, is_known)).vectors
    >>> bool(np.allclose(vectors, embedding[39:], atol=0.3))
    True
    """

    preparation: str = "as_given"
    strength: float | None = None
    """As in `Affine`, of the map the other way."""
    is_centred: bool = True
    """Whether the mean of the rows is taken off before."""

    name: ClassVar[str] = "adjoint"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        _check_strength(self.strength)

    def __str__(self) -> str:
        centred = "" if self.is_centred else ", not centred"
        return f"{self.preparation}, transposed map{_in_digits(self.strength)}{centred}"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "transposed map from the vectors"

    def line(self, space: Space, known_rows: KnownRows) -> AffineMap:
        """Return the map, fitted once."""

        def fitted() -> AffineMap:
            known = np.flatnonzero(known_rows.is_known)
            rows = dense(space.prepared(self.preparation)[known])
            pair = known_rows.once(
                ("rotated back", self.preparation), lambda: Rotated(known_rows.known, rows)
            )
            strength = pair.best_strength() if self.strength is None else self.strength
            return transposed(
                pair.affine(strength), rows, known_rows.known, is_centred=self.is_centred
            )

        return known_rows.once(("adjoint", self), fitted)

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the map's vectors."""
        line = self.line(space, known_rows)
        return _along(
            line, wanted.prepared(space, self.preparation, known_rows), known_rows, wanted
        )


@dataclass(frozen=True)
class AffineKernel(Predictor):
    """An affine map, and what it misses of known rows passed on to rows that are alike.

    Examples
    --------
    >>> rows = np.linspace(-2, 2, 41)[:, None]
    >>> embedding, is_known = np.hstack([rows, rows**2]), np.arange(41) != 30
    >>> known_rows = KnownRows(embedding, is_known)
    >>> AffineKernel(strength=0.1).predict(Space(rows), known_rows).vectors.round(1), embedding[30]
    (array([[1., 1.]]), array([1., 1.]))
    """

    preparation: str = "as_given"
    strength: float | None = None
    """As in `Affine`."""
    width: float | None = None
    """As in `KernelRidge`: how far what is missed reaches."""

    name: ClassVar[str] = "affine_kernel"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        Affine(self.preparation, self.strength)

    def __str__(self) -> str:
        return f"{Affine(self.preparation, self.strength)} + kernel of what it misses"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "affine map near a rotation, and a kernel of what it misses"

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the map's vectors plus the kernel's residuals."""
        affine = Affine(self.preparation, self.strength).settled(space, known_rows)
        line, missed = affine.line(space, known_rows), self._missed(affine, space, known_rows)
        kernel = KernelRidge(self.preparation, "rbf", self.width)
        residuals = kernel.predict(space, missed, wanted, tol=tol)
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows) + residuals.vectors)
        numbers = wanted.numbers(known_rows)
        trend = _trend_along(line, rows, numbers, known_rows.n_dims)
        return Prediction(vectors, Composition(residuals.composition.mix, trend))

    def _missed(self, affine: Affine, space: Space, known_rows: KnownRows) -> KnownRows:
        """Return what the map misses of each known row when it is fitted without it."""
        strength = affine.strength
        assert strength is not None

        def left_over() -> KnownRows:
            residuals = _rotated(space, known_rows, self.preparation).residuals(strength)
            return KnownRows(known_rows.in_place(residuals), known_rows.is_known)

        return known_rows.once(("missed by", affine), left_over)


def _check_strength(strength: float | None) -> None:
    if strength is not None and not np.isposinf(strength):
        checks.number(strength, "strength", low=0)


def _in_digits(strength: float | None) -> str:
    return "" if strength is None else f", strength {strength:g}"
