"""New rows by a predictor that looks at nothing but known rows: it predicts again."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill.model.known import KnownRows
from vecfill.model.predictors.base import Predictor
from vecfill.model.serving.base import Ground, Served, Server
from vecfill.model.space import Space


class FixedServer(Server):
    """The known rows and the new ones as a space of their own."""

    def __init__(self, predictor: Predictor, ground: Ground) -> None:
        self.predictor = predictor
        self.ground = ground

    @cached_property
    def _preparation(self) -> str:
        return getattr(self.predictor, "preparation", "as_given")

    @cached_property
    def _known_rows(self) -> Any:
        known = np.flatnonzero(self.ground.rows.is_known)
        rows = self.ground.space.prepared(self._preparation)[known]
        return rows if self.ground.space.has_vectors else np.zeros((known.size, 1))

    def serve(self, new_rows: Any) -> Served:
        """Return what the predictor gives to the new rows."""
        space, n_new = self.ground.space, new_rows.shape[0]
        prepared = space.prepared_new(self._preparation, new_rows)
        prepared = prepared if space.has_vectors else np.zeros((n_new, 1))
        known = self.ground.rows.known
        both = (
            csr_array(vstack([self._known_rows, prepared]))
            if issparse(prepared)
            else np.vstack([self._known_rows, prepared])
        )
        nothing = np.full((n_new, known.shape[1]), np.nan, known.dtype)
        is_known = np.arange(both.shape[0]) < len(known)
        given = KnownRows(np.vstack([known, nothing]), is_known)
        ready = self.predictor
        if self._preparation != "as_given":
            # The rows are prepared already.
            ready = replace(ready, preparation="as_given")  # pyright: ignore[reportArgumentType]
        found = ready.predict(Space(both, n_jobs=space.n_jobs), given)
        mix = found.composition.mix
        extra = mix.spread(self.ground.extra(), tol=0.0)
        values = np.hstack([found.vectors.astype(np.float64), extra])
        trend = found.composition.trend
        own = None if trend is None else trend.at(given.unknown)
        return Served(values, mix.shares, mix.misfit(), mix.straight(), mix.tightness(), own)
