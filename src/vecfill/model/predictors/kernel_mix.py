"""What kernel ridge regression makes of known rows, for rows of the fit and for later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import fill, row_blocks
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Mix
from vecfill.model.predictors.base import Predictor
from vecfill.model.predictors.kernel_systems import ROWS_PER_BLOCK, Solved

MOST_SEEN = 500
"""Known rows that tell how far a row is from all of them: a guess, as many as tune the kernel."""

MOST_ALIKE = 1 << 23
"""Entries of a kernel with new rows that are kept while they are used several times: 64 MB."""


class KernelMix(Mix):
    """What each known vector counts in each row that is wanted; computed when asked for."""

    def __init__(self, solved: Solved, rows: Any) -> None:
        self.solved = solved
        self.rows = rows
        """Their numbers, or `New` rows."""

    def _alike(self, block: slice) -> np.ndarray:
        """Return the kernel of some rows with the landmarks."""
        return self.solved.kernel.between(self.rows[block], self.solved.landmarks)

    def _filled(self, put: Callable[[slice, np.ndarray], None], *n_columns: int) -> np.ndarray:
        """Return a number, or a row of them, for each row that is wanted."""
        size = self.rows.size
        numbers, blocks = np.empty((size, *n_columns)), row_blocks(size, ROWS_PER_BLOCK)
        fill([numbers], put, blocks, n_jobs=self.solved.kernel.space.n_threads)
        return numbers

    @one_blas_thread()
    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some wanted rows (down)."""
        rows = self.rows[np.asarray(places, np.int64)]
        alike = self.solved.kernel.between(rows, self.solved.landmarks)
        shares = self.solved.onto_known(alike)
        # What the regression shrinks away goes to the mean, of which all known rows are a part.
        return shares + (1.0 - shares.sum(axis=1, keepdims=True)) / shares.shape[1]

    @one_blas_thread()
    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""
        mean = values.mean(axis=0, dtype=np.float64)
        steps, size = values - mean, 1.0
        if self.solved.kernel.is_single:
            # A largest number of one, since vectors of any size come here.
            size = float(np.abs(steps).max(initial=0.0)) or 1.0
            steps /= size
        return self._along(self.solved.slopes(steps), mean, size)

    def _along(self, slopes: np.ndarray, mean: np.ndarray, size: float = 1.0) -> np.ndarray:
        """Return what slopes, of values divided by their `size`, give to every wanted row."""

        def put(block: slice, part: np.ndarray) -> None:
            steps = self._alike(block) @ slopes
            part[:] = mean + (steps if size == 1.0 else size * steps.astype(np.float64))

        return self._filled(put, mean.size)

    @one_blas_thread()
    def misfit(self) -> np.ndarray:
        """Return the standard deviation that a Gaussian process with this kernel would have.

        Of many known rows, a sample is enough to tell rows apart that are far from all of them.
        """
        # A solve with all known rows for each wanted one would cost more than the prediction.
        sample = self.solved.of_few(MOST_SEEN)

        def put(block: slice, part: np.ndarray) -> None:
            alike = sample.kernel.between(self.rows[block], sample.landmarks)
            missing = sample.kernel.own(self.rows[block]) - sample.told(alike)
            # Rounding can leave less than nothing of a row that a known one repeats.
            part[:] = np.sqrt(np.maximum(missing, 0.0))

        return self._filled(put)

    def straight(self) -> np.ndarray:
        """Return ones: every coefficient is on a known row."""
        return np.ones(self.rows.size)

    @one_blas_thread()
    def tightness(self) -> np.ndarray:
        """Return how alike each wanted row and the known row most like it are."""

        def put(block: slice, part: np.ndarray) -> None:
            part[:] = self._alike(block).max(axis=1)

        return self._filled(put)


class NewKernelMix(KernelMix):
    """The same for rows that came later: what was solved for the known rows is kept with them."""

    def __init__(
        self, solved: Solved, rows: Any, known_rows: KnownRows, predictor: Predictor
    ) -> None:
        super().__init__(solved, rows)
        self.known_rows = known_rows
        self.predictor = predictor
        self._made: dict[int, np.ndarray] = {}

    def _alike(self, block: slice) -> np.ndarray:
        # Vectors, carried values and signals need the same kernel; of many rows it is too large.
        if self.rows.size * self.solved.landmarks.size > MOST_ALIKE:
            return super()._alike(block)
        if block.start not in self._made:
            self._made[block.start] = super()._alike(block)
        return self._made[block.start]

    def vectors(self) -> np.ndarray:
        """Return the regression's values."""
        return self._along(*self.slopes_of_known())

    @one_blas_thread()
    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the mix of what known rows carry for signals."""
        return self._along(*self.slopes_of_carried(values))

    def slopes_of_known(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what the kernel is multiplied with to give vectors, and their mean."""
        key = ("slopes", self.predictor)
        return self.known_rows.once(
            key, lambda: self._slopes(self.known_rows.known.astype(np.float64))
        )

    def slopes_of_carried(self, values: Callable[[], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for what known rows carry."""
        key = ("carried slopes", self.predictor)
        return self.known_rows.once(key, lambda: self._slopes(values()))

    def _slopes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = values.mean(axis=0)
        return np.ascontiguousarray(self.solved.slopes(values - mean)), mean
