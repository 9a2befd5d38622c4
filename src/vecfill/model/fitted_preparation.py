"""Preparations that remember what they learnt, so that rows which come later are prepared alike."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from vecfill.inputs.prepared import Matrix
from vecfill.inputs.table.scaling import inverse
from vecfill.machine.blas import one_blas_thread
from vecfill.model.preparation import first_direction, unit_rows
from vecfill.model.rank_normal import Ladder, RankNormal

MOST_STEPS = 4096
"""Distinct values of a column whose ranks are kept."""


@dataclass(frozen=True, eq=False)
class FittedPreparation:
    """One preparation of a matrix, applicable to rows that were not in it.

    Examples
    --------
    >>> fitted = FittedPreparation.of("standardized", np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> fitted.applied(np.array([[2.0, 9.0]]))
    array([[0., 0.]])
    """

    name: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """What was learnt from the columns."""

    @classmethod
    def of(cls, name: str, rows: Matrix) -> FittedPreparation:
        """Return what a preparation learns from the rows that it was made of."""
        if name == "standardized":
            return cls(name, _scales(rows))
        if name == "unit_rows_without_first_component":
            return cls(name, _first_component(rows))
        if name in ("rank_normal", "rank_normal_unit_rows"):
            ladders = [_thinned(each) for each in RankNormal.fitted(rows).ladders]
            ends = np.cumsum([each.values.size for each in ladders])
            values = np.concatenate([each.values for each in ladders])
            scores = np.concatenate([each.scores for each in ladders])
            return cls(name, {"ends": ends, "values": values, "scores": scores})
        return cls(name)

    def applied(self, rows: Matrix) -> Matrix:
        """Return other rows, prepared in the same way."""
        if self.name == "as_given":
            return rows
        if self.name == "unit_rows":
            return unit_rows(rows)
        if self.name == "standardized":
            return self._standardized(rows)
        if self.name == "unit_rows_without_first_component":
            return self._without_first_component(rows)
        found = self._rank_normal().applied(rows)
        return unit_rows(found) if self.name == "rank_normal_unit_rows" else found

    def _standardized(self, rows: Matrix) -> Matrix:
        by_largest, by_spread = self.arrays["by_largest"], self.arrays["by_spread"]
        if isinstance(rows, csr_array):
            scaled = rows @ diags_array(by_largest)
            return csr_array(scaled @ diags_array(by_spread)).astype(rows.dtype)
        exact = rows.astype(np.float64) * by_largest
        exact -= self.arrays["mean"]
        exact *= by_spread
        return exact.astype(rows.dtype)

    @one_blas_thread()
    def _without_first_component(self, rows: Matrix) -> Matrix:
        dense = csr_array(rows).toarray() if issparse(rows) else rows
        exact = dense.astype(np.float64) / self.arrays["largest"] - self.arrays["mean"]
        direction = self.arrays["direction"]
        exact -= np.outer(exact @ direction, direction)
        exact[np.linalg.norm(exact, axis=1) < 1e-12] = 0.0
        return unit_rows(exact).astype(rows.dtype)

    def _rank_normal(self) -> RankNormal:
        starts = self.arrays["ends"][:-1]
        values = np.split(self.arrays["values"], starts)
        scores = np.split(self.arrays["scores"], starts)
        return RankNormal(tuple(Ladder(*pair) for pair in zip(values, scores, strict=True)))


def _thinned(ladder: Ladder) -> Ladder:
    """Return a ladder of few enough steps to keep; between two of them scores are interpolated."""
    if ladder.values.size <= MOST_STEPS:
        return ladder
    kept = np.linspace(0, ladder.values.size - 1, MOST_STEPS).round().astype(np.int64)
    return Ladder(ladder.values[kept], ladder.scores[kept])


def _scales(rows: Matrix) -> dict[str, np.ndarray]:
    """Return what `vecfill.inputs.table.scaling.standardized` multiplies and subtracts."""
    if isinstance(rows, csr_array):
        by_largest = inverse(np.maximum(abs(rows).max(axis=0).toarray().ravel(), 0).astype(float))
        scaled = rows @ diags_array(by_largest)
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        spread[spread <= 1e-7] = 0
        return {"by_largest": by_largest, "by_spread": inverse(spread)}
    exact = rows.astype(np.float64)
    by_largest = inverse(np.abs(exact).max(axis=0, initial=0.0))
    exact *= by_largest
    varies = exact.min(axis=0, initial=np.inf) < exact.max(axis=0, initial=-np.inf)
    mean = exact.mean(axis=0)
    exact -= mean
    by_spread = inverse(np.where(varies, exact.std(axis=0), 0.0))
    return {"by_largest": by_largest, "mean": mean, "by_spread": by_spread}


@one_blas_thread()
def _first_component(rows: Matrix) -> dict[str, np.ndarray]:
    """Return what `unit_rows_without_first_component` takes out."""
    exact = (csr_array(rows).toarray() if issparse(rows) else rows).astype(np.float64)
    largest = float(np.abs(exact).max(initial=0.0)) or 1.0
    exact /= largest
    mean = exact.mean(axis=0)
    exact -= mean
    return {"largest": np.array([largest]), "mean": mean, "direction": first_direction(exact)}
