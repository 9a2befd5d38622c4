"""A stack for new rows: what its members give, weighted, and drawn towards known vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.model.serving.base import Ground, Served, Server
from vecfill.model.stack import FEWEST_DIMS, Attention, Stack


class StackServer(Server):
    """The servers of all members."""

    def __init__(self, predictor: Stack, ground: Ground, members: Sequence[Server]) -> None:
        self.predictor = predictor
        self.ground = ground
        self.members = tuple(members)

    @one_blas_thread()
    def serve(self, new_rows: Any) -> Served:
        """Return the weighted sum of the members, after attention."""
        found = [each.serve(new_rows) for each in self.members]
        weights, values = self.predictor.weights, self.ground.values
        mean, n_dims = values.mean(axis=0), self.ground.rows.n_dims
        sums = np.repeat(mean[None], new_rows.shape[0], axis=0)
        for weight, each in zip(weights, found, strict=True):
            sums += weight * (each.values - mean)
        share = self.predictor.attention if n_dims >= FEWEST_DIMS else 0.0
        near = Attention(sums[:, :n_dims], values[:, :n_dims], share, self.predictor.sharpness)
        drawn = near.drawn(sums, values)

        def shares(places: np.ndarray) -> np.ndarray:
            rows = np.asarray(places, np.int64)
            total = np.zeros((rows.size, len(values)))
            for weight, each in zip(weights, found, strict=True):
                total += weight * each.shares(rows)
            if share:
                total = (1.0 - share) * total + near.coefficients(rows)
            return total + (1.0 - total.sum(axis=1, keepdims=True)) / len(values)

        return Served(
            drawn,
            shares,
            self._averaged([each.misfit for each in found]),
            self._averaged([each.straight for each in found]),
            self._averaged([each.tightness for each in found]),
        )

    def arrays(self) -> dict[str, Any]:
        """Return what the members keep."""
        return {str(number): each.arrays() for number, each in enumerate(self.members)}

    def _averaged(self, told: list[np.ndarray]) -> np.ndarray:
        total = sum(self.predictor.weights)
        weights = np.array(self.predictor.weights) / total if total > 0 else None
        return np.average(np.array(told), axis=0, weights=weights)
