"""New rows as convex mixes of fitted ones, whose vectors are known or imputed by now."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.method.trend import Trend, linear_trend, trend_in_rows
from vecfill.model.prediction import PropagatedMix
from vecfill.model.predictors.latent_semantic import LatentSemantic
from vecfill.model.serving.base import Ground, Served, Server, mixed

CARRIED_TOL = 1e-6


class LatentServer(Server):
    """Latent semantic imputation for new rows: the same mix of vectors as in the domain."""

    def __init__(
        self,
        predictor: LatentSemantic,
        ground: Ground,
        kept: Mapping[str, Any] | None,
        *,
        is_alone: bool,
    ) -> None:
        self.predictor = predictor
        self.ground = ground
        self._is_alone = is_alone
        self._kept = dict(kept or {})

    def serve(self, new_rows: Any) -> Served:
        """Return the mixes of the nearest fitted rows' vectors, on top of a trend if there is."""
        key, space = self.predictor.weights_key, self.ground.space
        prepared = space.prepared_new(key.preparation, new_rows)
        floor = key.weight_floor
        mixes, _ = space.mixes_of_new(prepared, key, weight_floor=floor)
        trend, share = None, self.predictor.residual_share
        if share is None:
            vectors = mixed(mixes, self._filled)
        else:
            trend = vectors = prepared @ self._slopes[0] + self._slopes[1]
            if share > 0:
                vectors = trend + share * self._mixed_residuals(mixes, share)
        is_known = self.ground.rows.is_known
        on_known = mixes.multiply(is_known[None, :]) if mixes.nnz else mixes
        return Served(
            values=np.hstack([vectors, mixed(mixes, self.carried)]),
            shares=lambda places: self._shares(mixes[places]),
            misfit=self._misfit(prepared, mixes),
            straight=np.asarray(on_known.sum(axis=1)).ravel(),
            tightness=np.asarray(mixes.max(axis=1).todense()).ravel(),
            trend=trend,
        )

    def arrays(self) -> dict[str, Any]:
        """Return what is carried by all rows, and the trend."""
        kept: dict[str, Any] = {"carried": self.carried}
        if not self._is_alone:
            kept["filled"] = self._filled
        if self.predictor.residual_share is not None:
            kept["slopes"], kept["shift"] = self._slopes
            kept["residuals"] = self._residuals
        return kept

    @cached_property
    def _filled(self) -> np.ndarray:
        """(n_rows, n_dims) known rows, and the others as this predictor alone imputes them."""
        rows = self.ground.rows
        if self._is_alone:
            return rows.embedding
        if "filled" in self._kept:
            return self._kept["filled"]
        found = np.array(rows.embedding)
        found[rows.unknown] = self.predictor.predict(self.ground.space, rows).vectors
        return found

    @cached_property
    def carried(self) -> np.ndarray:
        """(n_rows, n_columns) what else known rows carry, propagated to all rows.

        In half precision: signals of confidence are compared by rank.
        """
        if "carried" in self._kept:
            return self._kept["carried"]
        rows, extra = self.ground.rows, self.ground.extra()
        found = np.empty((rows.is_known.size, extra.shape[1]), np.float16)
        found[rows.is_known] = extra
        if rows.unknown.size:
            mix = PropagatedMix(self.ground.space, self.predictor.weights_key, rows)
            found[rows.unknown] = mix.spread(extra.astype(np.float32), tol=CARRIED_TOL)
        return found

    @cached_property
    def _trend(self) -> Trend:
        space, rows = self.ground.space, self.ground.rows
        coordinates = space.coordinates(self.predictor.preparation)
        return linear_trend(coordinates, rows.embedding, rows.is_known)

    @cached_property
    def _slopes(self) -> tuple[np.ndarray, ...]:
        if "slopes" in self._kept:
            return self._kept["slopes"], self._kept["shift"]
        space, preparation = self.ground.space, self.predictor.preparation
        return trend_in_rows(
            self._trend, space.prepared(preparation), space.coordinates(preparation)
        )

    @cached_property
    def _residuals(self) -> np.ndarray:
        """(n_known, n_dims) what the trend misses at each known row when fitted without it."""
        kept = self._kept.get("residuals")
        return self._trend.residuals if kept is None else kept

    def _mixed_residuals(self, mixes: csr_array, share: float) -> np.ndarray:
        """Return mixes of what the trend misses: at known rows, and propagated to the others."""
        rows = self.ground.rows
        used, places = np.unique(mixes.indices, return_inverse=True)
        small = csr_array((mixes.data, places, mixes.indptr), (mixes.shape[0], used.size))
        is_known = rows.is_known[used]
        among_known = np.cumsum(rows.is_known) - 1
        found = np.empty((used.size, rows.n_dims))
        found[is_known] = self._residuals[among_known[used[is_known]]]
        others = used[~is_known]
        prepared = self.ground.space.prepared(self.predictor.preparation)[others]
        trend = prepared @ self._slopes[0] + self._slopes[1]
        found[~is_known] = (self._filled[others] - trend) / share
        return small @ found

    def _shares(self, mixes: csr_array) -> np.ndarray:
        """Return the share of every known row: directly, and through imputed rows."""
        rows = self.ground.rows
        dense = csr_array(mixes)
        among_known = np.cumsum(rows.is_known) - 1
        among_unknown = np.arange(rows.is_known.size) - among_known - 1
        found = np.zeros((dense.shape[0], rows.n_known))
        through = np.unique(dense.indices[~rows.is_known[dense.indices]])
        if through.size:
            mix = PropagatedMix(self.ground.space, self.predictor.weights_key, rows)
            found += dense[:, through] @ mix.shares(among_unknown[through])
        coordinates = dense.tocoo()
        row, column = coordinates.coords
        is_known = rows.is_known[column]
        np.add.at(found, (row[is_known], among_known[column[is_known]]), dense.data[is_known])
        return found

    def _misfit(self, prepared: Any, mixes: csr_array) -> np.ndarray:
        """Return how badly the neighbours explain each row, relative to how far they are."""
        space = self.ground.space
        if not space.has_vectors:
            return np.zeros(mixes.shape[0])
        fitted = space.prepared(self.predictor.preparation)
        used, places = np.unique(mixes.indices, return_inverse=True)
        near = fitted[used]
        near, prepared = (each.toarray() if issparse(each) else each for each in (near, prepared))
        near, prepared = near.astype(np.float64), prepared.astype(np.float64)
        small = csr_array((mixes.data, places, mixes.indptr), (mixes.shape[0], used.size))
        missed = np.linalg.norm(prepared - small @ near, axis=1)
        owner = np.repeat(np.arange(mixes.shape[0]), np.diff(mixes.indptr))
        apart = ((near[places] - prepared[owner]) ** 2).sum(axis=1)
        spread = np.sqrt(np.bincount(owner, mixes.data * apart, mixes.shape[0]))
        return np.divide(missed, spread, out=np.zeros_like(missed), where=spread > 0)
