"""Stage: a linear map from rows to vectors, from Gram matrices that blocks of known rows add up.

Four passes over the known rows: their means; their products; the leave-one-out error of every
strength, which needs the leverage of each row; and what the map chosen misses at each row. The
formulas are those of `vecfill.method.trend`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.distributed.alignment import Sample, in_slabs
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import View
from vecfill.distributed.tasks import Runner
from vecfill.errors import InputError
from vecfill.method.trend import (
    MAX_RANK,
    directions_of,
    errors_of,
    judges,
    mapped,
    missed,
    slopes_of,
    strengths_of,
    strongest_of_best,
)

LINE = ("centre", "slopes", "mean")


@dataclass(frozen=True)
class Trend:
    """A linear map fitted on the seen rows."""

    view: View
    sample: Sample

    def piece(self, *names: object) -> Path:
        """Return the path of a piece of this trend."""
        return self.sample.piece(self.view.preparation, "trend", *names)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return the map's vectors for some prepared rows."""
        return mapped(rows, *(read_array(self.piece(name)) for name in LINE))

    def residuals_piece(self, block: int) -> Path:
        """Return the piece of what the map misses at a block of known rows, in slabs."""
        return self.piece("residuals", block)

    def seen(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of the seen rows within a block, these rows, and their vectors."""
        places, numbers = self.sample.block(block)
        rows = self.view.some_rows(numbers).astype(np.float64)
        return places, rows, self.sample.known.vectors(block)[places].astype(np.float64)


def sums(trend: Trend, block: int) -> np.ndarray:
    """Return the sums of rows and vectors, and how many they are."""
    _, rows, vectors = trend.seen(block)
    return np.concatenate([rows.sum(axis=0), vectors.sum(axis=0), [len(rows)]])


def products(trend: Trend, centre: np.ndarray, mean: np.ndarray, block: int) -> np.ndarray:
    """Return the products of centred rows with each other and with centred vectors."""
    _, rows, vectors = trend.seen(block)
    rows -= centre
    return rows.T @ np.hstack([rows, vectors - mean])


@dataclass(frozen=True)
class _Decomposed:
    """The seen rows' Gram matrix by its directions."""

    centre: np.ndarray
    mean: np.ndarray
    singular: np.ndarray
    right: np.ndarray
    """(n_features, n_kept)."""
    targets: np.ndarray
    """(n_kept, n_dims)."""
    n_rows: int

    @classmethod
    def of(cls, gram: np.ndarray, centre: np.ndarray, mean: np.ndarray, n_rows: int) -> _Decomposed:
        singular, right = directions_of(gram[:, : centre.size])
        if not singular.size:
            raise InputError("All known rows are equal, so no trend can be fitted to them.")
        targets = right.T @ gram[:, centre.size :] / singular[:, None]
        return cls(centre, mean, singular, right, targets, n_rows)

    def left(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self.centre) @ self.right / self.singular


def errors(trend: Trend, fit: _Decomposed, block: int) -> np.ndarray:
    """Return the leave-one-out error of each strength."""
    _, rows, vectors = trend.seen(block)
    mixes = judges(vectors.shape[1])
    values, targets = (vectors - fit.mean) @ mixes, fit.targets @ mixes
    return errors_of(fit.left(rows), fit.singular, values, targets, fit.n_rows)


def residuals(trend: Trend, fit: _Decomposed, alpha: float, block: int) -> np.ndarray:
    """Return what the map misses at the seen rows of a block, and zeros for the others."""
    places, rows, vectors = trend.seen(block)
    span = trend.sample.known.blocks[block]
    missing = np.zeros((span.stop - span.start, vectors.shape[1]))
    values = vectors - fit.mean
    missing[places] = missed(fit.left(rows), fit.singular, values, fit.targets, alpha, fit.n_rows)
    return in_slabs(missing)


def fitted_trend(runner: Runner, view: View, sample: Sample) -> Trend:
    """Run the stage."""
    n_features = view.layout.n_features
    if n_features > MAX_RANK:
        raise InputError(
            f"A trend on {n_features} features is not built here; at most {MAX_RANK}. Reduce the "
            "columns first, or use a method without trend (residual_share=None)."
        )
    stage, blocks = f"trend {view.preparation}", range(len(sample.known.blocks))
    trend = Trend(view, sample)

    run = partial(runner.run_each, stage, trend=trend)

    def added_up(name: str, function: Callable[..., np.ndarray], **arguments: Any) -> np.ndarray:
        pieces = [trend.piece(name, block) for block in blocks]
        return runner.total(run(f"{sample.variant} {name}", function, pieces, **arguments))

    totals = added_up("sums", sums)
    n_rows = int(totals[-1])
    centre, mean = totals[:n_features] / n_rows, totals[n_features:-1] / n_rows
    gram = added_up("gram", products, centre=centre, mean=mean)
    fit = _Decomposed.of(gram, centre, mean, n_rows)
    alpha = strongest_of_best(strengths_of(fit.singular), added_up("errors", errors, fit=fit))
    slopes = slopes_of(fit.singular, fit.right, fit.targets, alpha)
    for name, array in zip(LINE, (centre, slopes, mean), strict=True):
        write_array(trend.piece(name), array)
    pieces = [trend.residuals_piece(block) for block in blocks]
    run(f"{sample.variant} residuals", residuals, pieces, fit=fit, alpha=alpha)
    return trend
