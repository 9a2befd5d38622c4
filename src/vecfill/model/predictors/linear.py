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

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the regression's values."""
        from sklearn.linear_model import RidgeCV  # noqa: PLC0415 - slow to load

        # Squared errors of vectors of extreme size would overflow or vanish.
        exponent = safe_exponents(known, each_column=False)
        n_known, rows_of_known, wanted_rows = len(known), dense(rows_of_known), dense(wanted_rows)
        # Of known rows alone: what a row is given must not depend on who else is asked for.
        scale = float(np.mean(rows_of_known**2)) * max(1, n_known) or 1.0
        model = RidgeCV(alphas=scale * ALPHAS).fit(rows_of_known, divided(known, exponent))
        if not len(wanted_rows):
            return Prediction(known[:0], Composition(FixedMix(np.empty((0, n_known)))))
        vectors = divided(model.predict(wanted_rows), -exponent).reshape(-1, known.shape[1])
        mix = _RidgeMix(rows_of_known, wanted_rows, float(model.alpha_))
        return Prediction(vectors, Composition(mix))


class _RidgeMix(FixedMix):
    """What each known vector counts in each value, computed when asked for."""

    def __init__(self, rows_of_known: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> None:
        self._made_from = (rows_of_known, wanted_rows, alpha)

    @cached_property
    def coefficients(self) -> np.ndarray:
        return _coefficients(*self._made_from)


def _coefficients(rows_of_known: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> np.ndarray:
    """Return what each known vector counts in each value; rows sum to one."""
    centre = rows_of_known.mean(axis=0)
    rows_of_known, wanted_rows = rows_of_known - centre, wanted_rows - centre
    if len(rows_of_known) <= rows_of_known.shape[1]:
        gram = rows_of_known @ rows_of_known.T
        gram[np.diag_indices_from(gram)] += alpha
        return np.linalg.solve(gram, rows_of_known @ wanted_rows.T).T + 1.0 / len(rows_of_known)
    gram = rows_of_known.T @ rows_of_known
    gram[np.diag_indices_from(gram)] += alpha
    return wanted_rows @ np.linalg.solve(gram, rows_of_known.T) + 1.0 / len(rows_of_known)
