"""Stage: a linear map from rows to vectors, from Gram matrices that blocks of known rows add up.

Four passes over the known rows: their means; their products; the leave-one-out error of every
strength, which needs the leverage of each row; and what the map chosen misses at each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vecfill.distributed.alignment import Known, in_slabs
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import View, sum_of_pieces
from vecfill.distributed.tasks import Runner, Task
from vecfill.errors import InputError
from vecfill.method.trend import (
    ALPHAS,
    MAX_RANK,
    directions_of,
    judges,
    missed,
    slopes_of,
    strongest_of_best,
)


@dataclass(frozen=True)
class Sample:
    """Known rows that may be seen: all of them, or all but the hidden ones."""

    known: Known
    variant: str
    """``"final"`` or ``"hidden"``."""

    def piece(self, *names: object) -> Path:
        """Return the path of a piece that depends on which rows are seen."""
        return self.known.layout.piece(self.variant, *names)

    def is_seen(self) -> np.ndarray:
        """Return which known rows are seen."""
        return read_array(self.known.layout.piece("known", f"seen_{self.variant}"))

    def block(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the seen rows within a block, and their numbers."""
        span = self.known.blocks[block]
        places = np.flatnonzero(self.is_seen()[span])
        return places, np.array(self.known.rows()[span])[places]


@dataclass(frozen=True)
class Trend:
    """A linear map fitted on the seen rows."""

    view: View
    sample: Sample
    alpha: float

    def piece(self, *names: object) -> Path:
        """Return the path of a piece of this trend."""
        return self.sample.piece(self.view.preparation, "trend", *names)

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return the map's vectors for some prepared rows."""
        centre, slopes, mean = (
            read_array(self.piece(name)) for name in ("centre", "slopes", "mean")
        )
        return (rows - centre) @ slopes + mean

    def residuals_piece(self, block: int) -> Path:
        """Return the piece of what the map misses at a block of known rows, in slabs."""
        return self.piece("residuals", block)


def _seen(view: View, sample: Sample, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places, numbers = sample.block(block)
    rows = view.some_rows(numbers).astype(np.float64)
    return places, rows, sample.known.vectors(block)[places].astype(np.float64)


def add_sums(view: View, sample: Sample, block: int, path: Path) -> None:
    """Write the sums of rows and vectors."""
    _, rows, vectors = _seen(view, sample, block)
    write_array(path, np.concatenate([rows.sum(axis=0), vectors.sum(axis=0), [len(rows)]]))


def add_gram(
    view: View, sample: Sample, block: int, path: Path, centre: np.ndarray, mean: np.ndarray
) -> None:
    """Write the products of centred rows with each other and with centred vectors."""
    _, rows, vectors = _seen(view, sample, block)
    rows -= centre
    write_array(path, rows.T @ np.hstack([rows, vectors - mean]))


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

    def left(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self.centre) @ self.right / self.singular


def add_errors(view: View, sample: Sample, block: int, path: Path, found: _Decomposed) -> None:
    """Write the leave-one-out error of each strength."""
    _, rows, vectors = _seen(view, sample, block)
    mixes = judges(vectors.shape[1])
    left, wanted = found.left(rows), (vectors - found.mean) @ mixes
    common = (left, found.singular, wanted, found.targets @ mixes)
    alphas = ALPHAS * (found.singular**2).mean()
    errors = [(missed(*common, alpha, found.n_rows) ** 2).sum() for alpha in alphas]
    write_array(path, np.array(errors))


def write_residuals(trend: Trend, block: int, found: _Decomposed) -> None:
    """Write what the map misses at the seen rows of a block, and zeros for the others."""
    places, rows, vectors = _seen(trend.view, trend.sample, block)
    residuals = np.zeros((_size(trend.sample.known.blocks[block]), vectors.shape[1]))
    common = (found.left(rows), found.singular, vectors - found.mean, found.targets)
    residuals[places] = missed(*common, trend.alpha, found.n_rows)
    write_array(trend.residuals_piece(block), in_slabs(residuals))


def _size(span: slice) -> int:
    return span.stop - span.start


def fitted_trend(runner: Runner, view: View, sample: Sample) -> Trend:
    """Run the stage."""
    n_features = view.layout.n_features
    if n_features > MAX_RANK:
        raise InputError(
            f"A trend on {n_features} features is not built here; at most {MAX_RANK}. Reduce the "
            "columns first, or use a method without trend (residual_share=None)."
        )
    stage, blocks = f"trend {view.preparation}", range(len(sample.known.blocks))
    common = {"view": view, "sample": sample}
    trend = Trend(view, sample, 0.0)

    def summed(what: str, function: object, **arguments: object) -> np.ndarray:
        pieces = [trend.piece(what, block) for block in blocks]
        runner.run(
            Task(stage, f"{sample.variant} {what} {b}", function,  # pyright: ignore[reportArgumentType]
                 {**common, **arguments, "block": b, "path": pieces[b]}, (pieces[b],))
            for b in blocks
        )  # fmt: skip
        return sum_of_pieces(runner, pieces)

    sums = summed("sums", add_sums)
    n_rows = int(sums[-1])
    centre, mean = sums[:n_features] / n_rows, sums[n_features:-1] / n_rows
    gram = summed("gram", add_gram, centre=centre, mean=mean)
    found = _decomposed(gram, centre, mean, n_rows)
    errors = summed("errors", add_errors, found=found)
    alphas = ALPHAS * (found.singular**2).mean()
    trend = Trend(view, sample, strongest_of_best(alphas, errors))
    slopes = slopes_of(found.singular, found.right, found.targets, trend.alpha)
    for name, array in (("centre", centre), ("slopes", slopes), ("mean", mean)):
        write_array(trend.piece(name), array)
    runner.run(
        Task(stage, f"{sample.variant} residuals {b}", write_residuals,
             {"trend": trend, "block": b, "found": found}, (trend.residuals_piece(b),))
        for b in blocks
    )  # fmt: skip
    return trend


def _decomposed(gram: np.ndarray, centre: np.ndarray, mean: np.ndarray, n_rows: int) -> _Decomposed:
    n_features = centre.size
    singular, right = directions_of(gram[:, :n_features])
    if not singular.size:
        raise InputError("All known rows are equal, so no trend can be fitted to them.")
    targets = right.T @ gram[:, n_features:] / singular[:, None]
    return _Decomposed(centre, mean, singular, right, targets, n_rows)
