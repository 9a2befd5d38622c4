"""Kernel ridge regression for new rows: one product of their kernel with what was solved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import row_blocks
from vecfill.model.predictors.kernel_ridge import (
    MOST_TUNED_ON,
    KernelMix,
    KernelRidge,
    landmarks_of,
)
from vecfill.model.predictors.kernel_systems import Approximate, Factors, Solved
from vecfill.model.serving.base import Ground, Served, Server

ROWS_PER_BLOCK = 1024


class KernelServer(Server):
    """Kernel ridge regression, solved once."""

    def __init__(
        self, predictor: KernelRidge, ground: Ground, kept: Mapping[str, Any] | None, mix: Any
    ) -> None:
        self.predictor = predictor.tuned(ground.space, ground.rows)
        self.ground = ground
        self._kept = dict(kept or {})
        self._mix = mix

    @one_blas_thread()
    def serve(self, new_rows: Any) -> Served:
        """Return the regression's values."""
        space, kernel = self.ground.space, self.solved.kernel
        prepared = space.prepared_new(self.predictor.preparation, new_rows)
        slopes, mean = self._slopes
        few, n_new = self.solved.of_few(MOST_TUNED_ON), prepared.shape[0]
        values, misfit, tightness = (
            np.empty((n_new, mean.size)),
            np.empty(n_new),
            np.empty(n_new),
        )
        for block in row_blocks(n_new, ROWS_PER_BLOCK):
            some = prepared[block]
            alike = kernel.with_new(some, self.solved.landmarks)
            values[block] = mean + alike @ slopes
            missing = kernel.own_new(some) - few.told(kernel.with_new(some, few.landmarks))
            misfit[block] = np.sqrt(np.maximum(missing, 0.0))
            tightness[block] = alike.max(axis=1)
        shares = self._shares_of(prepared)
        return Served(values, shares, misfit, np.ones(n_new), tightness)

    def arrays(self) -> dict[str, Any]:
        """Return the slopes, and the factors of a kernel that is too large to solve again."""
        slopes, mean = self._slopes
        kept: dict[str, Any] = {"slopes": slopes, "mean": mean}
        if isinstance(self.solved, Approximate):
            factors = self.solved.factors
            kept |= {"back": factors.back, "values": factors.values}
        return kept

    @cached_property
    def solved(self) -> Solved:
        """The regression: as it was fitted, from what was kept, or solved again."""
        if isinstance(self._mix, KernelMix):
            return self._mix.solved
        space, rows = self.ground.space, self.ground.rows
        if "back" not in self._kept:
            return self.predictor.solved(space, rows)
        kernel = self.predictor.kernel_in(space)
        known = np.flatnonzero(rows.is_known)
        back, values = self._kept["back"], self._kept["values"]
        nothing = np.empty((0, len(values)))
        factors = Factors(kernel, landmarks_of(known), nothing, values, back)
        assert self.predictor.ridge is not None
        return Approximate(factors, self.predictor.ridge)

    @cached_property
    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        if "slopes" in self._kept:
            return self._kept["slopes"], self._kept["mean"]
        values = self.ground.values
        mean = values.mean(axis=0)
        # A product's last bits depend on the layout, and what was saved comes back row by row.
        return np.ascontiguousarray(self.solved.slopes(values - mean)), mean

    def _shares_of(self, prepared: Any) -> Any:
        @one_blas_thread()
        def shares(places: np.ndarray) -> np.ndarray:
            alike = self.solved.kernel.with_new(prepared[places], self.solved.landmarks)
            found = self._onto_known(alike)
            return found + (1.0 - found.sum(axis=1, keepdims=True)) / found.shape[1]

        return shares

    def _onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row counts."""
        solved = self.solved
        if not isinstance(solved, Approximate) or len(solved.factors.vectors):
            return solved.onto_known(alike)
        # The coordinates of all known rows were not kept: they are made again, block by block.
        factors, ridge = solved.factors, self.predictor.ridge
        assert ridge is not None
        known = np.flatnonzero(self.ground.rows.is_known)
        turned = factors.back * (np.sqrt(factors.values) / (factors.values + ridge))
        along = (alike @ turned) @ (factors.back / np.sqrt(factors.values)).T
        found = np.empty((len(alike), known.size))
        for block in row_blocks(known.size, ROWS_PER_BLOCK):
            found[:, block] = along @ solved.kernel.between(known[block], solved.landmarks).T
        return found
