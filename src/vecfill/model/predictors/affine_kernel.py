"""An affine map near a rotation, and kernel ridge regression of what it misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vecfill.method.scaling import in_range_of
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Prediction
from vecfill.model.predictors.affine import Affine
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, dense
from vecfill.model.predictors.kernel_ridge import KernelRidge
from vecfill.model.predictors.procrustes import rotated, trend_along
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


@dataclass(frozen=True)
class AffineKernel(Predictor):
    """An affine map, and what it misses of known rows passed on to rows that are alike.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.linspace(-2, 2, 41)[:, None]
    >>> embedding, is_known = np.hstack([rows, rows**2]), np.arange(41) != 30
    >>> known_rows = KnownRows(embedding, is_known)
    >>> AffineKernel(strength=0.1).predict(Space(rows), known_rows).vectors.round(1), embedding[30]
    (array([[1., 1.]]), array([1., 1.]))
    """

    preparation: str = "as_given"
    strength: float | None = None
    """As in `Affine`."""
    width: float | None = None
    """As in `KernelRidge`: how far what is missed reaches."""

    name: ClassVar[str] = "affine_kernel"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        Affine(self.preparation, self.strength)

    def __str__(self) -> str:
        return f"{Affine(self.preparation, self.strength)} + kernel of what it misses"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        return "affine map near a rotation, and a kernel of what it misses"

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the map's vectors plus the kernel's residuals."""
        affine = Affine(self.preparation, self.strength).settled(space, known_rows)
        line, missed = affine.line(space, known_rows), self._missed(affine, space, known_rows)
        kernel = KernelRidge(self.preparation, "rbf", self.width)
        residuals = kernel.predict(space, missed, wanted, tol=tol)
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        vectors = in_range_of(known_rows.embedding.dtype, line(rows) + residuals.vectors)
        numbers = wanted.numbers(known_rows)
        trend = trend_along(line, rows, numbers, known_rows.n_dims)
        return Prediction(vectors, Composition(residuals.composition.mix, trend))

    def _missed(self, affine: Affine, space: Space, known_rows: KnownRows) -> KnownRows:
        """Return what the map misses of each known row when it is fitted without it."""
        strength = affine.strength
        assert strength is not None

        def left_over() -> KnownRows:
            residuals = rotated(space, known_rows, self.preparation).residuals(strength)
            return KnownRows(known_rows.in_place(residuals), known_rows.is_known)

        return known_rows.once(("missed by", affine), left_over)
