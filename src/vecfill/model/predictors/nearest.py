"""k nearest neighbours, as scikit-learn's `KNeighborsRegressor` defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from vecfill import checks
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import RowPredictor, Rows


@dataclass(frozen=True)
class Nearest(RowPredictor):
    """The mean of the nearest known rows' vectors, plain or weighted by inverse distance.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> space = Space(np.array([[0.0], [2.0], [9.0], [1.0]]))
    >>> embedding = np.array([[1.0], [3.0], [50.0], [np.nan]])
    >>> is_known = np.array([True, True, True, False])
    >>> Nearest(n_neighbors=2).predict(space, KnownRows(embedding, is_known)).vectors
    array([[2.]])
    """

    n_neighbors: int = 10
    by_distance: bool = False

    name: ClassVar[str] = "nearest"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number(self.n_neighbors, "n_neighbors", low=1)

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the mean of the nearest known vectors."""
        from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415 - slow to load

        weights = "distance" if self.by_distance else "uniform"
        model = KNeighborsRegressor(min(self.n_neighbors, len(known)), weights=weights)
        model.fit(rows_of_known, known)
        if wanted_rows.shape[0] == 0:
            # scikit-learn refuses to look for the neighbours of no rows.
            return Prediction(known[:0], Composition(FixedMix(csr_array((0, len(known))))))
        mixes = self._coefficients(model, wanted_rows)
        return Prediction(mixes @ known, Composition(FixedMix(mixes)))

    def _coefficients(self, model: Any, wanted_rows: Rows) -> csr_array:
        distances, rows = model.kneighbors(wanted_rows)
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
