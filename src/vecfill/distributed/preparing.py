"""Stage: rows -> prepared rows, block by block, from column statistics that blocks add up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from vecfill.distributed.layout import Layout
from vecfill.distributed.pieces import read_array
from vecfill.distributed.tasks import Runner
from vecfill.inputs.table.scaling import inverse
from vecfill.method.scaling import SAFE_RANGE
from vecfill.model.preparation import FittedPreparation

PREPARATIONS = ("as_given", "standardized", "unit_rows", "unit_rows_without_first_component")
"""Those whose statistics add up; ranks of columns do not."""


@dataclass(frozen=True)
class View:
    """The rows under one preparation, and the pieces of what follows from them."""

    layout: Layout
    preparation: str
    is_raw: bool
    """Whether the rows as they were read will do."""

    def piece(self, *names: object) -> Path:
        """Return the path of a piece that depends on the preparation."""
        return self.layout.piece(self.preparation, *names)

    def rows_piece(self, block: int) -> Path:
        """Return the piece of a block of prepared rows."""
        if self.is_raw:
            return self.layout.piece("features", "rows", block)
        return self.piece("rows", block)

    def rows(self, block: int) -> np.ndarray:
        """Return a block of prepared rows."""
        return read_array(self.rows_piece(block))

    def some_rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return some rows, in the order of their numbers, which ascend."""
        rows = np.empty((numbers.size, self.layout.n_features), self.layout.dtype)
        edges = [block.start for block in self.layout.blocks] + [self.layout.n_rows]
        places = np.searchsorted(numbers, edges)
        for block, (first, last) in enumerate(pairwise(places)):
            if first < last:
                rows[first:last] = self.rows(block)[numbers[first:last] - edges[block]]
        return rows


def _raw(layout: Layout, block: int) -> np.ndarray:
    return read_array(layout.piece("features", "rows", block)).astype(np.float64)


def extremes(layout: Layout, block: int) -> np.ndarray:
    """Return the least and largest value of each column, and the largest in size."""
    rows = read_array(layout.piece("features", "rows", block))
    return np.array([rows.min(axis=0), rows.max(axis=0), np.abs(rows).max(axis=0)], np.float64)


def sums(layout: Layout, scale: np.ndarray, block: int) -> np.ndarray:
    """Return the sums of the columns, multiplied by a scale."""
    return (_raw(layout, block) * scale).sum(axis=0)


def products(
    layout: Layout, scale: np.ndarray, mean: np.ndarray, is_full: bool, block: int
) -> np.ndarray:
    """Return the sums of squares of centred columns, or of all their products."""
    centred = _raw(layout, block) * scale - mean
    return centred.T @ centred if is_full else (centred**2).sum(axis=0)


def prepared_rows(
    view: View, scale: np.ndarray, preparation: FittedPreparation, block: int
) -> np.ndarray:
    """Return a block of rows, prepared by what all rows taught as those of new entities are."""
    rows = preparation.applied(_raw(view.layout, block) * scale)
    return rows.astype(view.layout.dtype)


def prepared(runner: Runner, layout: Layout, preparation: str) -> View:
    """Run the stage; return the view of the prepared rows."""
    blocks, stage = range(len(layout.blocks)), f"prepare {preparation}"
    pieces = [layout.piece("measured", block) for block in blocks]
    runner.run_each(stage, "extremes", extremes, pieces, layout=layout)
    measured = np.array([runner.read(read_array, piece) for piece in pieces])
    low, high = measured[:, 0].min(axis=0), measured[:, 1].max(axis=0)
    sizes = measured[:, 2].max(axis=0)
    largest = float(sizes.max())
    is_safe = largest == 0.0 or 1 / SAFE_RANGE <= largest <= SAFE_RANGE
    if preparation == "as_given" and is_safe:
        return View(layout, preparation, is_raw=True)
    unscaled, arrays = np.ones(layout.n_features), {}
    if preparation == "as_given":
        # A power of two: squares of what is prepared are numbers, and no digit changes.
        scale = unscaled * 2.0 ** -float(np.frexp(largest)[1])
    elif preparation == "unit_rows":
        scale = unscaled
    elif preparation == "standardized":
        scale = inverse(sizes)
        mean, squares = _moments(runner, layout, preparation, scale, is_full=False)
        spread = np.where(low < high, np.sqrt(squares / layout.n_rows), 0.0)
        arrays = {"by_largest": unscaled, "mean": mean, "by_spread": inverse(spread)}
    else:
        scale = inverse(unscaled * largest)
        mean, gram = _moments(runner, layout, preparation, scale, is_full=True)
        direction = np.linalg.eigh(gram)[1][:, -1]
        arrays = {"largest": np.ones(1), "mean": mean, "direction": direction}
    view = View(layout, preparation, is_raw=False)
    runner.run_each(
        stage,
        "rows",
        prepared_rows,
        [view.rows_piece(block) for block in blocks],
        view=view,
        scale=scale,
        preparation=FittedPreparation(preparation, arrays),
    )
    return view


def _moments(
    runner: Runner, layout: Layout, name: str, scale: np.ndarray, *, is_full: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of scaled columns, and the sums of their centred products."""
    blocks, stage = range(len(layout.blocks)), f"prepare {name}"
    shared = {"layout": layout, "scale": scale}
    pieces = [layout.piece(name, "sums", block) for block in blocks]
    runner.run_each(stage, "sums", sums, pieces, **shared)
    mean = runner.total(pieces) / layout.n_rows
    pieces = [layout.piece(name, "products", block) for block in blocks]
    runner.run_each(stage, "products", products, pieces, **shared, mean=mean, is_full=is_full)
    return mean, runner.total(pieces)
