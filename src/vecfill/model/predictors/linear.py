"""Ridge regression from domain to embedding, as scikit-learn's `RidgeCV` defines it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse, vstack

from vecfill.method.scaling import divided, safe_exponents
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, known_and_wanted
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted

ALPHAS = np.logspace(-5, 4, 19)
"""Strengths tried, as multiples of the mean square of an entry times the number of known rows."""


@dataclass(frozen=True)
class LinearRidge(Predictor):
    """Ridge regression, its strength chosen by leave-one-out error on the known rows.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> is_known = np.array([True, True, True, False])
    >>> LinearRidge().predict(Space(rows), KnownRows(rows, is_known)).vectors.round(1)
    array([[3.]])
    """

    preparation: str = "as_given"

    name: ClassVar[str] = "ridge"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)

    def predict(
        self,
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,  # noqa: ARG002
    ) -> Prediction:
        """Return the regression's values for every row that is wanted."""
        from sklearn.linear_model import RidgeCV  # noqa: PLC0415 - slow to load

        shown, asked = known_and_wanted(space, self.preparation, given, wanted)
        known = given.known
        # Squared errors of vectors of extreme size would overflow or vanish.
        exponent = safe_exponents(known, each_column=False)
        rows = _dense(vstack([shown, asked]) if issparse(shown) else np.vstack([shown, asked]))
        n_known = len(known)
        # Of known rows alone: what a row is given must not depend on who else is asked for.
        scale = float(np.mean(rows[:n_known] ** 2)) * max(1, n_known) or 1.0
        model = RidgeCV(alphas=scale * ALPHAS).fit(rows[:n_known], divided(known, exponent))
        if len(rows) == n_known:
            return Prediction(known[:0], Composition(FixedMix(np.empty((0, n_known)))))
        vectors = divided(model.predict(rows[n_known:]), -exponent).reshape(-1, known.shape[1])
        mix = _RidgeMix(rows[:n_known], rows[n_known:], float(model.alpha_))
        return Prediction(vectors, Composition(mix))


class _RidgeMix(FixedMix):
    """What each known vector counts in each value, computed when asked for."""

    def __init__(self, shown: np.ndarray, wanted: np.ndarray, alpha: float) -> None:
        self._made_from = (shown, wanted, alpha)

    @cached_property
    def coefficients(self) -> np.ndarray:
        return _coefficients(*self._made_from)


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if issparse(rows) else rows


def _coefficients(shown: np.ndarray, wanted: np.ndarray, alpha: float) -> np.ndarray:
    """Return what each known vector counts in each value; rows sum to one."""
    centre = shown.mean(axis=0)
    shown, wanted = shown - centre, wanted - centre
    if len(shown) <= shown.shape[1]:
        gram = shown @ shown.T
        gram[np.diag_indices_from(gram)] += alpha
        return np.linalg.solve(gram, shown @ wanted.T).T + 1.0 / len(shown)
    gram = shown.T @ shown
    gram[np.diag_indices_from(gram)] += alpha
    return wanted @ np.linalg.solve(gram, shown.T) + 1.0 / len(shown)
