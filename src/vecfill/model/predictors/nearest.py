"""k nearest neighbours, as scikit-learn's `KNeighborsRegressor` defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from vecfill import checks
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, known_and_wanted
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


@dataclass(frozen=True)
class Nearest(Predictor):
    """The mean of the nearest known rows' vectors, plain or weighted by inverse distance.

    Examples
    --------
    >>> space = Space(np.array([[0.0], [2.0], [9.0], [1.0]]))
    >>> embedding = np.array([[1.0], [3.0], [50.0], [np.nan]])
    >>> is_known = np.array([True, True, True, False])
    >>> Nearest(n_neighbors=2).predict(space, KnownRows(embedding, is_known)).vectors
    array([[2.]])
    """

    preparation: str = "as_given"
    n_neighbors: int = 10
    by_distance: bool = False

    name: ClassVar[str] = "nearest"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.whole_number(self.n_neighbors, "n_neighbors", low=1)

    def predict(
        self,
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,  # noqa: ARG002
    ) -> Prediction:
        """Return the mean of the nearest known vectors for every row that is wanted."""
        from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415 - slow to load

        shown, rows = known_and_wanted(space, self.preparation, given, wanted)
        n_neighbors = min(self.n_neighbors, given.n_known)
        model = KNeighborsRegressor(n_neighbors, weights=self._weights())
        model.fit(shown, given.known)
        if rows.shape[0] == 0:
            return Prediction(
                given.known[:0], Composition(FixedMix(csr_array((0, shown.shape[0]))))
            )
        mixes = self._coefficients(model, rows)
        return Prediction(mixes @ given.known, Composition(FixedMix(mixes)))

    def _weights(self) -> str:
        return "distance" if self.by_distance else "uniform"

    def _coefficients(self, model: Any, wanted: np.ndarray) -> csr_array:
        distances, rows = model.kneighbors(wanted)
        weights = np.ones(distances.shape)
        if self.by_distance:
            # A row at distance zero takes all the weight, as scikit-learn has it.
            is_equal = distances == 0
            inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=~is_equal)
            weights = np.where(is_equal.any(axis=1, keepdims=True), is_equal, inverse)
        weights = weights / weights.sum(axis=1, keepdims=True)
        starts = np.arange(len(rows) + 1) * rows.shape[1]
        shape = (len(rows), model.n_samples_fit_)
        return csr_array((weights.ravel(), rows.ravel(), starts), shape)
