"""Ridge regression from domain to embedding, as scikit-learn's `RidgeCV` defines it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from vecfill.method.scaling import divided, safe_exponents
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import RowPredictor, Rows, dense

ALPHAS = np.logspace(-5, 4, 19)
"""Strengths tried, as multiples of the mean square of an entry times the number of known rows. A
guess, wide enough that the ends are not chosen."""


@dataclass(frozen=True)
class LinearRidge(RowPredictor):
    """Ridge regression, its strength chosen by leave-one-out error on the known rows.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> is_known = np.array([True, True, True, False])
    >>> LinearRidge().predict(Space(rows), KnownRows(rows, is_known)).vectors.round(1)
    array([[3.]])
    """

    name: ClassVar[str] = "ridge"

    def of_rows(self, known_rows: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the regression's values."""
        from sklearn.linear_model import RidgeCV  # noqa: PLC0415 - slow to load

        # Squared errors of vectors of extreme size would overflow or vanish.
        exponent = safe_exponents(known, each_column=False)
        n_known, known_rows, wanted_rows = len(known), dense(known_rows), dense(wanted_rows)
        # Of known rows alone: what a row is given must not depend on who else is asked for.
        scale = float(np.mean(known_rows**2)) * max(1, n_known) or 1.0
        model = RidgeCV(alphas=scale * ALPHAS).fit(known_rows, divided(known, exponent))
        if not len(wanted_rows):
            return Prediction(known[:0], Composition(FixedMix(np.empty((0, n_known)))))
        vectors = divided(model.predict(wanted_rows), -exponent).reshape(-1, known.shape[1])
        mix = _RidgeMix(known_rows, wanted_rows, float(model.alpha_))
        return Prediction(vectors, Composition(mix))


class _RidgeMix(FixedMix):
    """What each known vector counts in each value, computed when asked for."""

    def __init__(self, known_rows: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> None:
        self._made_from = (known_rows, wanted_rows, alpha)

    @cached_property
    def coefficients(self) -> np.ndarray:
        return _coefficients(*self._made_from)


def _coefficients(known_rows: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> np.ndarray:
    """Return what each known vector counts in each value; rows sum to one."""
    centre = known_rows.mean(axis=0)
    known_rows, wanted_rows = known_rows - centre, wanted_rows - centre
    if len(known_rows) <= known_rows.shape[1]:
        gram = known_rows @ known_rows.T
        gram[np.diag_indices_from(gram)] += alpha
        return np.linalg.solve(gram, known_rows @ wanted_rows.T).T + 1.0 / len(known_rows)
    gram = known_rows.T @ known_rows
    gram[np.diag_indices_from(gram)] += alpha
    return wanted_rows @ np.linalg.solve(gram, known_rows.T) + 1.0 / len(known_rows)
