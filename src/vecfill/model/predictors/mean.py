"""The mean of the known vectors: what any other predictor must beat; alone, or with a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill.method.trend import Trend
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
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the mean of the known vectors for every row that is wanted."""
        known, n_wanted = known_rows.known, wanted.numbers(known_rows).size
        vectors = np.repeat(known.mean(axis=0)[None], n_wanted, axis=0)
        # A view: every row has the same shares, and there may be millions of rows.
        shares = np.broadcast_to(1.0 / len(known), (n_wanted, len(known)))
        return Prediction(vectors, Composition(FixedMix(shares)))


@dataclass(frozen=True)
class Guessed(Predictor):
    """The mean of the known vectors plus the row itself: no known row has to teach that.

    Its rows are steps in the space of the embedding, such as those that the parts of a name give.

    Examples
    --------
    >>> embedding, is_known = np.array([[1.0], [3.0], [np.nan]]), np.array([True, True, False])
    >>> rows = np.array([[0.0], [0.0], [0.5]])
    >>> Guessed().predict(Space(rows), KnownRows(embedding, is_known)).vectors
    array([[2.5]])
    """

    name: ClassVar[str] = "guessed"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "as the vocabulary says"

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the mean of the known vectors plus the row, for every row that is wanted."""
        centre, rows = known_rows.mean, wanted.prepared(space, "as_given", known_rows)
        # A trend is asked by number: new rows are numbered among themselves.
        steps = rows if wanted.is_new else space.prepared("as_given")
        # A source of guesses may describe no known row at all.
        shares = np.full((len(rows), known_rows.n_known), 1.0 / max(known_rows.n_known, 1))
        trend = Trend(
            lambda numbers: centre + steps[numbers], np.empty((0, known_rows.n_dims)), np.nan
        )
        return Prediction(centre + rows, Composition(FixedMix(shares), trend))
