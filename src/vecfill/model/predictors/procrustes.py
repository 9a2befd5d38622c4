"""Orthogonal Procrustes: known rows turned, scaled and shifted onto their vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill.method.rotation import AffineMap, Rotated
from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, dense
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


def rotated(space: Space, known_rows: KnownRows, preparation: str) -> Rotated:
    """Return the known rows brought near their vectors, computed once for all who ask."""

    def brought() -> Rotated:
        rows = space.prepared(preparation)[np.flatnonzero(known_rows.is_known)]
        return Rotated(dense(rows), known_rows.known)

    return known_rows.once(("rotated", preparation), brought)


def trend_along(line: AffineMap, rows: np.ndarray, numbers: np.ndarray, n_dims: int) -> Trend:
    """Return a map as the trend of the wanted rows, which are asked for by their numbers."""

    def at(asked: np.ndarray) -> np.ndarray:
        # The numbers rise, as those of unknown rows and of new ones do.
        return line(rows[np.searchsorted(numbers, asked)])

    return Trend(at, np.empty((0, n_dims)), np.nan)


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
        line = rotated(space, known_rows, self.preparation).rotation
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows))
        n_known, numbers = known_rows.n_known, wanted.numbers(known_rows)
        even = np.broadcast_to(1.0 / n_known, (len(rows), n_known))
        trend = trend_along(line, rows, numbers, known_rows.n_dims)
        return Prediction(vectors, Composition(FixedMix(even), trend))
