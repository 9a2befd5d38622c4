"""The mean of the known vectors: what any other predictor must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


@dataclass(frozen=True)
class Mean(Predictor):
    """The mean of the known vectors for every unknown row.

    Examples
    --------
    >>> embedding, is_known = np.array([[1.0], [3.0], [np.nan]]), np.array([True, True, False])
    >>> Mean().predict(Space(np.eye(3)), KnownRows(embedding, is_known)).vectors
    array([[2.]])
    """

    name: ClassVar[str] = "mean"
    needs_vectors: ClassVar[bool] = False

    def predict(
        self,
        space: Space,  # noqa: ARG002
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,  # noqa: ARG002
    ) -> Prediction:
        """Return the mean of the known vectors for every row that is wanted."""
        known = given.known
        n_wanted = wanted.numbers(given).size
        vectors = np.repeat(known.mean(axis=0)[None], n_wanted, axis=0)
        shares = np.broadcast_to(1.0 / len(known), (n_wanted, len(known)))
        return Prediction(vectors, Composition(FixedMix(shares)))
