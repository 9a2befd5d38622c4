"""Kernel ridge regression, its width and strength chosen by leave-one-out in closed form.

A prediction is a linear mix of the known vectors::

    vector = mean + k (K + ridge I)^-1 (known - mean)

with `K` the kernel of the known rows and `k` that of the row with them. Above `MOST_EXACT` known
rows the kernel is replaced by its Nystrom approximation from `MOST_LANDMARKS` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from vecfill import checks
from vecfill.errors import InputError
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import unit
from vecfill.method.engine import fill, row_blocks
from vecfill.method.scaling import in_range_of
from vecfill.model.kernels import BY_DISTANCE, KERNELS, Kernel, check_kernel
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Mix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation
from vecfill.model.predictors.kernel_systems import (
    ROWS_PER_BLOCK,
    Approximate,
    Exact,
    Factors,
    FromLandmarks,
    Restored,
    Solved,
    factorised,
    factors_of,
    sampled,
)
from vecfill.model.preparation import prepared_in_words
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, New, Wanted

MOST_EXACT = 4000
"""Known rows up to which the regression is exact: a factorisation grows with their cube."""

MOST_LANDMARKS = 1000
"""Known rows from which the kernel of more is approximated."""

MOST_TUNED_ON = 500
"""Known rows on which widths and strengths are compared: a decomposition for each width."""

WIDTHS = (0.35, 0.7, 1.4)
"""Widths tried, in units of the median distance between rows."""

RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Strengths tried, relative to the kernel of a row with itself."""

N_JUDGES = 32
"""Dimensions in which widths and strengths are compared: random mixes, if there are more."""

MOST_ALIKE = 1 << 23
"""Entries of a kernel with new rows that are kept while they are used several times: 64 MB."""

FEWEST_DIMS = 4
"""Fewer dimensions have too few directions for a cosine to tell strengths apart."""


@dataclass(frozen=True)
class KernelRidge(Predictor):
    """Kernel ridge regression from domain to embedding.

    Examples
    --------
    >>> rows = np.linspace(0, 3, 13)[:, None]
    >>> is_known = np.arange(13) != 6
    >>> found = KernelRidge(ridge=0.001).predict(Space(rows), KnownRows(np.sin(rows), is_known))
    >>> found.vectors.round(2), np.sin(rows[6]).round(2)
    (array([[1.]]), array([1.]))
    """

    preparation: str = "as_given"
    kernel: str = "rbf"
    """``"rbf"`` and ``"laplacian"`` fall with the squared and the plain Euclidean distance;
    ``"linear"`` is ridge regression; ``"tanimoto"`` is for features that are 0 or 1."""
    width: float | None = None
    """How far a row reaches, in units of the median distance between rows; ``None``: chosen by
    leave-one-out. Only ``"rbf"`` and ``"laplacian"`` have one."""
    ridge: float | None = None
    """Strength; ``None``: chosen by leave-one-out."""

    name: ClassVar[str] = "kernel_ridge"
    needs_vectors: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.one_of(self.kernel, "kernel", KERNELS)
        if self.width is not None:
            checks.number(self.width, "width", low=0, open_low=True)
            if self.kernel not in BY_DISTANCE:
                raise InputError(
                    f"width={self.width} cannot be used with kernel={self.kernel!r}, which has no "
                    f"width. Leave it out, or use one of {', '.join(BY_DISTANCE)}."
                )
        if self.ridge is not None:
            checks.number(self.ridge, "ridge", low=0, open_low=True)
        if self.kernel == "tanimoto" and self.preparation != "as_given":
            raise InputError(
                f"kernel='tanimoto' compares features that are 0 or 1, and "
                f"preparation={self.preparation!r} gives them other values. Leave it out."
            )

    def __str__(self) -> str:
        width = "" if self.width is None else f", width {self.width:g}"
        ridge = "" if self.ridge is None else f", ridge {self.ridge:g}"
        return f"{self.preparation}, {self.kernel} kernel ridge{width}{ridge}"

    def in_words(self) -> str:
        """Return the setting as one would say it.

        Examples
        --------
        >>> KernelRidge(kernel="rbf", preparation="rank_normal").in_words()
        'kernel regression (RBF), columns by rank'
        """
        kernel = {"rbf": "RBF"}.get(self.kernel, self.kernel.capitalize())
        prepared = prepared_in_words(self.preparation)
        return ", ".join([f"kernel regression ({kernel})", *filter(None, [prepared])])

    def fitted_to(self, space: Space) -> Self:
        """Return the predictor, or refuse a kernel that the space does not admit."""
        check_kernel(space, self.kernel)
        return super().fitted_to(space)

    @one_blas_thread()
    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the regression's values for every row that is wanted."""
        ready = self.tuned(space, known_rows)
        rows, dtype = wanted.among(space, self.preparation, known_rows), known_rows.embedding.dtype
        # Folds solve once and are gone; a model is asked for new rows again and again.
        if wanted.is_new:
            mix = NewKernelMix(ready._solved_once(space, known_rows), rows, known_rows, ready)
            return Prediction(in_range_of(dtype, mix.vectors()), Composition(mix))
        mix = KernelMix(ready.solved(space, known_rows), rows)
        vectors = mix.spread(known_rows.known, tol=0.0)
        return Prediction(in_range_of(dtype, vectors), Composition(mix))

    def _solved_once(self, space: Space, known_rows: KnownRows) -> Solved:
        return known_rows.once(("solved", self), lambda: self.solved(space, known_rows))

    def settled(self, space: Space, known_rows: KnownRows) -> KernelRidge:
        """Return the predictor with the width and the strength that it chooses by itself."""
        return self.tuned(space, known_rows)

    @one_blas_thread()
    def kept(
        self, space: Space, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return the slopes, and the factors of a kernel that is too large to solve again."""
        ready = self.tuned(space, known_rows)
        solved = ready._solved_once(space, known_rows)
        mix = NewKernelMix(solved, New(np.empty((0, 1))), known_rows, ready)
        # Side by side in one array: a model is opened once for each array in its file.
        parts = mix.slopes_of_known(), mix.slopes_of_carried(carried)
        slopes, mean = (
            np.concatenate(parts_of_both, axis=-1) for parts_of_both in zip(*parts, strict=True)
        )
        stored: dict[str, Any] = {"slopes": slopes, "mean": mean}
        if isinstance(solved, Approximate):
            stored |= {"back": solved.factors.back, "values": solved.factors.values}
        return stored

    def restore(self, space: Space, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:
        """Give back to the known rows what `kept` returned for the same ones."""
        ready = self.tuned(space, known_rows)
        slopes, mean, n_dims = stored["slopes"], stored["mean"], known_rows.n_dims
        # A product's last bits depend on the layout: as it was when they were computed.
        for key, columns in (("slopes", slice(0, n_dims)), ("carried slopes", slice(n_dims, None))):
            known_rows.keep((key, ready), (np.ascontiguousarray(slopes[:, columns]), mean[columns]))
        if "back" in stored:
            assert ready.ridge is not None
            known, kernel = np.flatnonzero(known_rows.is_known), ready.kernel_in(space)
            nothing = np.empty((0, len(stored["values"])))
            factors = Factors(
                kernel, landmarks_of(known), nothing, stored["values"], stored["back"]
            )
            known_rows.keep(("solved", ready), Restored(factors, known, ready.ridge))

    def kernels(self, space: Space) -> tuple[Kernel, ...]:
        """Return the kernel on a space that it needs."""
        return (self.kernel_in(space),)

    @one_blas_thread()
    def tuned(self, space: Space, known_rows: KnownRows) -> KernelRidge:
        """Return the predictor with the width and the strength that leave-one-out prefers.

        They are compared on at most `MOST_TUNED_ON` of the known rows.
        """
        if self.ridge is not None and (self.width is not None or self.kernel not in BY_DISTANCE):
            return self
        return known_rows.once(("tuned", self), lambda: self._tuned(space, known_rows))

    def _tuned(self, space: Space, known_rows: KnownRows) -> KernelRidge:
        # The same sample for every setting, or chance would choose between them.
        sample = sampled(np.flatnonzero(known_rows.is_known), MOST_TUNED_ON)
        known = known_rows.embedding[sample]
        has_width = self.kernel in BY_DISTANCE and self.width is None
        ridges = RIDGES if self.ridge is None else (self.ridge,)
        best, best_score = self, -np.inf
        for width in WIDTHS if has_width else (self.width,):
            kernel = replace(self, width=width).kernel_in(space)
            factors = self._factors(kernel, sample, known_rows)
            scores = _looked_over(factors, known, ridges)
            place = int(np.argmax(scores))
            if scores[place] > best_score:
                best, best_score = replace(self, width=width, ridge=ridges[place]), scores[place]
        return best

    @one_blas_thread()
    def left_out(self, space: Space, known_rows: KnownRows) -> np.ndarray:
        """Return each known row minus the mean of the others, as predicted from the others."""
        ready = self.tuned(space, known_rows)
        assert ready.ridge is not None
        known = np.flatnonzero(known_rows.is_known)
        kernel = ready.kernel_in(space)
        # Then these are the rows that it was tuned on, and their factors may still be there.
        if known.size <= min(MOST_LANDMARKS, MOST_TUNED_ON):
            factors = ready._factors(kernel, known, known_rows)
        else:
            factors = factorised(kernel, known, landmarks_of(known))
        return factors.left_out(known_rows.known, ready.ridge)

    def _factors(self, kernel: Kernel, sample: np.ndarray, known_rows: KnownRows) -> Factors:
        """Return the kernel of the rows that it is tuned on; all widths share their distances."""

        def gram() -> np.ndarray:
            if self.kernel not in BY_DISTANCE:
                return kernel.between(sample, sample)
            key = ("squared distances", self.preparation)
            squares = known_rows.once(key, lambda: kernel.squared_distances(sample, sample))
            return kernel.of_squares(squares)

        return factors_of(kernel, sample, gram)

    def kernel_in(self, space: Space) -> Kernel:
        """Return the kernel of a space; the width must have been chosen."""
        width = 1.0 if self.width is None else self.width
        return Kernel(space, self.preparation, self.kernel, width)

    def solved(self, space: Space, known_rows: KnownRows) -> Solved:
        """Return the regression on the known rows; width and strength must have been chosen."""
        assert self.ridge is not None
        known, kernel = np.flatnonzero(known_rows.is_known), self.kernel_in(space)
        # Distances need not be those of vectors, and then the kernel has negative eigenvalues.
        if known.size <= MOST_EXACT and space.has_vectors:
            return Exact(kernel, known, self.ridge)
        landmarks = landmarks_of(known)
        if landmarks.size < known.size:
            return FromLandmarks(kernel, known, landmarks, self.ridge)
        return Approximate(factorised(kernel, known, landmarks), self.ridge)


def landmarks_of(known: np.ndarray) -> np.ndarray:
    """Return the rows from which a kernel is approximated: all, or a sample of many."""
    return sampled(known, MOST_LANDMARKS)


def _looked_over(factors: Factors, known: np.ndarray, ridges: tuple[float, ...]) -> list[float]:
    """Return how near leave-one-out predictions come under each strength."""
    n_known, n_dims = known.shape
    centred = known.astype(np.float64) - known.mean(axis=0, dtype=np.float64)
    # Random mixes keep angles on average, and the comparison is of means over all rows.
    if n_dims > N_JUDGES:
        centred = centred @ np.random.default_rng(0).normal(size=(n_dims, N_JUDGES))
    # Each row minus the mean of the others: what a prediction that never saw it can hope for.
    truth = centred * (n_known / max(1, n_known - 1))
    directions = unit(truth)
    scores = []
    for left_out in factors.left_out_each(centred, ridges):
        if n_dims < FEWEST_DIMS:
            scores.append(-float(((truth - left_out) ** 2).sum()))
        else:
            scores.append(float(np.einsum("ij,ij->i", directions, unit(left_out)).mean()))
    return scores


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
        return self._along(self.solved.slopes(values - mean), mean)

    def _along(self, slopes: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return what slopes give to every wanted row."""

        def put(block: slice, part: np.ndarray) -> None:
            part[:] = mean + self._alike(block) @ slopes

        return self._filled(put, mean.size)

    @one_blas_thread()
    def misfit(self) -> np.ndarray:
        """Return the standard deviation that a Gaussian process with this kernel would have.

        Of many known rows, a sample is enough to tell rows apart that are far from all of them.
        """
        # A solve with all known rows for each wanted one would cost more than the prediction.
        sample = self.solved.of_few(MOST_TUNED_ON)

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
        self, solved: Solved, rows: Any, known_rows: KnownRows, predictor: KernelRidge
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
