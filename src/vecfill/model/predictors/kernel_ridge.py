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
from vecfill.method.scaling import in_range_of
from vecfill.model.kernels import BY_DISTANCE, KERNELS, Kernel, check_kernel
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation
from vecfill.model.predictors.kernel_mix import KernelMix, NewKernelMix
from vecfill.model.predictors.kernel_systems import (
    Approximate,
    Exact,
    Factors,
    FromLandmarks,
    Inverse,
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

SINGLE_TOL = 1e-6
"""Residual from which on a caller who can do with it gets a regression in 32 bits."""

LEAST_SINGLE = 1e-3
"""Strength below which 32 bits may not have the digits to factorise a kernel. A guess: a third of
the least that is tried."""

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
    is_quick: ClassVar[bool] = True

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
        mix = KernelMix(ready.solved(space, known_rows, tol=tol), rows)
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
            setting = replace(self, width=width)
            leave_out = setting._leaving_out(space, sample, known_rows, min(ridges))
            scores = _looked_over(leave_out, known, ridges)
            ridge = max(scores, key=lambda ridge: scores[ridge])
            if scores[ridge] > best_score:
                best, best_score = replace(setting, ridge=ridge), scores[ridge]
        return best

    @one_blas_thread()
    def left_out(self, space: Space, known_rows: KnownRows) -> np.ndarray:
        """Return each known row minus the mean of the others, as predicted from the others."""
        ready = self.tuned(space, known_rows)
        assert ready.ridge is not None
        known = np.flatnonzero(known_rows.is_known)
        if known.size <= min(MOST_LANDMARKS, MOST_TUNED_ON):
            leave_out = ready._leaving_out(space, known, known_rows, ready.ridge)
        else:
            leave_out = factorised(ready.kernel_in(space), known, landmarks_of(known)).left_out
        return leave_out(known_rows.known, ready.ridge)

    def _leaving_out(
        self, space: Space, sample: np.ndarray, known_rows: KnownRows, ridge: float
    ) -> LeavingOut:
        """Return what predicts rows from the others, for strengths from `ridge` on.

        All widths share their distances.
        """
        is_single = self._bears_single(space, ridge)
        kernel = self.kernel_in(space, is_single=is_single)

        def gram() -> np.ndarray:
            if self.kernel not in BY_DISTANCE:
                return kernel.between(sample, sample)
            key = ("squared distances", self.preparation, is_single)
            squares = known_rows.once(key, lambda: kernel.squared_distances(sample, sample))
            return kernel.of_squares(squares)

        if is_single:
            return Inverse(gram()).left_out
        return factors_of(kernel, sample, gram).left_out

    def _bears_single(self, space: Space, ridge: float) -> bool:
        """Tell whether 32 bits have the digits to invert the kernel: it is bounded, and positive.

        Distances need not be those of vectors, and then it has negative eigenvalues.
        """
        return space.has_vectors and self.kernel != "linear" and ridge >= LEAST_SINGLE

    def kernel_in(self, space: Space, *, is_single: bool = False) -> Kernel:
        """Return the kernel of a space; the width must have been chosen."""
        width = 1.0 if self.width is None else self.width
        return Kernel(space, self.preparation, self.kernel, width, is_single)

    def solved(self, space: Space, known_rows: KnownRows, *, tol: float = TOL) -> Solved:
        """Return the regression on the known rows; width and strength must have been chosen."""
        assert self.ridge is not None
        known = np.flatnonzero(known_rows.is_known)
        # Distances need not be those of vectors, and then the kernel has negative eigenvalues.
        if known.size <= MOST_EXACT and space.has_vectors:
            is_single = tol >= SINGLE_TOL and self._bears_single(space, self.ridge)
            return Exact(self.kernel_in(space, is_single=is_single), known, self.ridge)
        kernel = self.kernel_in(space)
        landmarks = landmarks_of(known)
        if landmarks.size < known.size:
            return FromLandmarks(kernel, known, landmarks, self.ridge)
        return Approximate(factorised(kernel, known, landmarks), self.ridge)


def landmarks_of(known: np.ndarray) -> np.ndarray:
    """Return the rows from which a kernel is approximated: all, or a sample of many."""
    return sampled(known, MOST_LANDMARKS)


LeavingOut = Callable[[np.ndarray, float], np.ndarray]
"""From known vectors and a strength to each of them as predicted from the others."""


def _looked_over(
    leave_out: LeavingOut, known: np.ndarray, ridges: tuple[float, ...]
) -> dict[float, float]:
    """Return how near leave-one-out predictions come under strengths around the best one.

    Scores rise to the best strength and fall behind it, so the way goes up from the middle.
    """
    n_known, n_dims = known.shape
    centred = known.astype(np.float64) - known.mean(axis=0, dtype=np.float64)
    # Random mixes keep angles on average, and the comparison is of means over all rows.
    if n_dims > N_JUDGES:
        centred = centred @ np.random.default_rng(0).normal(size=(n_dims, N_JUDGES))
    # Each row minus the mean of the others: what a prediction that never saw it can hope for.
    truth = centred * (n_known / max(1, n_known - 1))
    directions = unit(truth)

    def score(ridge: float) -> float:
        steps = leave_out(centred, ridge)
        if n_dims < FEWEST_DIMS:
            return -float(((truth - steps) ** 2).sum())
        return float(np.einsum("ij,ij->i", directions, unit(steps)).mean())

    middle = len(ridges) // 2
    scores = {ridges[middle]: score(ridges[middle])}
    for way in (range(middle - 1, -1, -1), range(middle + 1, len(ridges))):
        for place in way:
            best = max(scores.values())
            scores[ridges[place]] = score(ridges[place])
            if scores[ridges[place]] < best:
                break
        # Where it goes up one way, it goes down the other.
        if max(scores.values()) > scores[ridges[middle]]:
            break
    return scores
