"""One way to impute is a `Setting`; `Stages` runs many of them on one domain and shares the work.

Neighbours, graphs and weights do not depend on which rows are known, so they are computed once
for all settings and folds that need them. Only the last stage is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.inputs.preparation import PREPARATIONS
from vecfill.method.graph import measured_neighbor_graphs, spanning_neighbor_graph_of_distances
from vecfill.method.propagation import propagate
from vecfill.method.trend import Trend, linear_trend, reduced
from vecfill.method.weights import convex_weights, convex_weights_of_distances

MIN_DEGREES = (8, 20)
RIDGES = (0.0, 0.1, 0.3)
GAMMAS = (0.3, 0.6, 1.0)
"""Shares of the propagated residual that are added to a trend."""


@dataclass(frozen=True)
class Setting:
    """How to impute: preparation of the domain, graph, weights, trend.

    Examples
    --------
    >>> print(Setting(preparation="unit_rows", gamma=0.6))
    unit_rows, min_degree 8, ridge 0, trend + 0.6 x propagated residual
    """

    preparation: str = "as_given"
    min_degree: int = 8
    ridge: float = 0.0
    gamma: float | None = None
    """``None``: no trend, the vectors themselves are propagated, as in the paper. A number: a
    linear trend plus this share of its propagated residual; 0 is plain ridge regression."""

    def __str__(self) -> str:
        if self.gamma == 0.0:
            return f"{self.preparation}, trend alone"
        trend = "" if self.gamma is None else f", trend + {self.gamma:g} x propagated residual"
        return f"{self.preparation}, min_degree {self.min_degree}, ridge {self.ridge:g}{trend}"

    def to_dict(self) -> dict[str, Any]:
        """Return the setting as plain values, for JSON.

        Examples
        --------
        >>> Setting().to_dict()["min_degree"]
        8
        """
        return asdict(self)


PAPER = Setting()
"""The paper to the letter: the domain as given, no ridge, no trend."""


@dataclass(frozen=True)
class Imputation:
    """Vectors of the unknown rows, and what they are made of."""

    vectors: np.ndarray
    """(n_unknown, n_dims)."""
    trend: Trend | None
    """The trend, if the setting has one."""
    relative_residual: float
    """Of the linear system; 0 if nothing was propagated."""


class Stages:
    """The stages on one domain, each computed when first asked for and then kept.

    Examples
    --------
    >>> stages = Stages(np.array([[0.0], [1.0], [2.0]]))
    >>> embedding, is_known = np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True])
    >>> stages.impute(embedding, is_known, Setting(min_degree=2)).vectors
    array([[1.]])
    """

    def __init__(
        self,
        domain: np.ndarray | csr_array,
        *,
        is_distances: bool = False,
        min_degrees: Sequence[int] = MIN_DEGREES,
        weight_floor: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        self.domain = domain
        self.is_distances = is_distances
        self.weight_floor = weight_floor
        self.n_jobs = n_jobs
        n_rows = domain.shape[0]
        self.min_degrees = tuple(min(degree, max(1, n_rows - 1)) for degree in min_degrees)
        # Kept on the instance, so that the work is freed with it.
        self.prepared = cache(self._prepared)
        self.coordinates = cache(self._coordinates)
        self._graphs = cache(self._all_graphs)
        self._weights = cache(self._new_weights)

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations that this domain admits."""
        return ("as_given",) if self.is_distances else tuple(PREPARATIONS)

    def _prepared(self, preparation: str) -> Any:
        assert not self.is_distances or preparation == "as_given"
        return PREPARATIONS[preparation](self.domain)

    def _coordinates(self, preparation: str) -> np.ndarray:
        return reduced(self.prepared(preparation))

    def _all_graphs(self, preparation: str) -> dict[int, csr_array]:
        rows = self.prepared(preparation)
        if self.is_distances:
            graphs = [
                spanning_neighbor_graph_of_distances(rows, min_degree=degree)
                for degree in self.min_degrees
            ]
        else:
            found = measured_neighbor_graphs(rows, min_degrees=self.min_degrees, n_jobs=self.n_jobs)
            graphs = [one.graph for one in found]
        return dict(zip(self.min_degrees, graphs, strict=True))

    def graph(self, setting: Setting) -> csr_array:
        """Return who may explain whom under a setting."""
        largest = max(self.min_degrees)
        return self._graphs(setting.preparation)[min(setting.min_degree, largest)]

    def weights(self, setting: Setting) -> csr_array:
        """Return each row as a convex mix of its neighbours under a setting."""
        return self._weights(Setting(setting.preparation, setting.min_degree, setting.ridge))

    def _new_weights(self, setting: Setting) -> csr_array:
        rows, graph = self.prepared(setting.preparation), self.graph(setting)
        options = {
            "ridge": setting.ridge,
            "weight_floor": self.weight_floor,
            "n_jobs": self.n_jobs,
        }
        if self.is_distances:
            return convex_weights_of_distances(rows, graph, **options)
        return convex_weights(rows, graph, **options)

    def trend(self, embedding: EmbeddingVectors, is_known: KnownMask, preparation: str) -> Trend:
        """Return the linear trend of the known rows under a preparation."""
        return linear_trend(self.coordinates(preparation), embedding, is_known)

    def propagated(
        self, values: np.ndarray, is_known: KnownMask, setting: Setting, *, tol: float = 1e-10
    ) -> tuple[np.ndarray, float]:
        """Return the known rows' `values` spread to the unknown rows, and the residual."""
        columns = np.empty((is_known.size, values.shape[1]), values.dtype)
        columns[is_known] = values
        found = propagate(self.weights(setting), columns, is_known, tol=tol, n_jobs=self.n_jobs)
        return found.vectors, found.relative_change

    def impute(
        self, embedding: EmbeddingVectors, is_known: KnownMask, setting: Setting
    ) -> Imputation:
        """Return the vectors of the unknown rows under a setting."""
        if setting.gamma is None:
            vectors, residual = self.propagated(embedding[is_known], is_known, setting)
            return Imputation(vectors, None, residual)
        trend = self.trend(embedding, is_known, setting.preparation)
        vectors, residual = trend.values[~is_known], 0.0
        if setting.gamma > 0.0:
            spread, residual = self.propagated(trend.residuals, is_known, setting)
            vectors = vectors + setting.gamma * spread
        return Imputation(vectors.astype(embedding.dtype), trend, residual)
