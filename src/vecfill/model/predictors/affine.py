"""Ridge regression shrunk towards a rotation, and the same read backwards.

`Affine` adds to Procrustes what known rows bear out. `Adjoint` is fitted from vectors to rows and
transposed, which keeps what a search by inner products would find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from vecfill import checks
from vecfill.method.rotation import AffineMap, Rotated, transposed
from vecfill.method.scaling import in_range_of
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, dense
from vecfill.model.predictors.procrustes import rotated, trend_along
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


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
        pair = rotated(space, known_rows, self.preparation)
        best = known_rows.once(("strength", self.preparation), pair.best_strength)
        return replace(self, strength=best)

    def line(self, space: Space, known_rows: KnownRows) -> AffineMap:
        """Return the map, fitted once."""
        strength = self.settled(space, known_rows).strength
        assert strength is not None
        pair = rotated(space, known_rows, self.preparation)
        return known_rows.once(
            ("affine", self.preparation, strength), lambda: pair.affine(strength)
        )

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the map's vectors; what is mixed is what the rotation misses of known rows."""
        line, pair = self.line(space, known_rows), rotated(space, known_rows, self.preparation)
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows))
        strength, numbers = self.settled(space, known_rows).strength, wanted.numbers(known_rows)
        assert strength is not None
        trend = trend_along(pair.rotation, rows, numbers, known_rows.n_dims)
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
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows))
        # The whole is a map; every known row has had its share in the slopes, and none in a mix.
        n_known, numbers = known_rows.n_known, wanted.numbers(known_rows)
        even = np.broadcast_to(1.0 / n_known, (len(rows), n_known))
        trend = trend_along(line, rows, numbers, known_rows.n_dims)
        return Prediction(vectors, Composition(FixedMix(even), trend))


def _check_strength(strength: float | None) -> None:
    if strength is not None and not np.isposinf(strength):
        checks.number(strength, "strength", low=0)


def _in_digits(strength: float | None) -> str:
    return "" if strength is None else f", strength {strength:g}"
