"""Stage: rows -> prepared rows, block by block, from column statistics that blocks add up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from vecfill.distributed.layout import Layout
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.tasks import Runner, Task
from vecfill.inputs.table.scaling import inverse
from vecfill.method.scaling import SAFE_RANGE
from vecfill.model.preparation import unit_rows

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
        found = np.empty((numbers.size, self.layout.n_features), self.layout.dtype)
        edges = [block.start for block in self.layout.blocks] + [self.layout.n_rows]
        places = np.searchsorted(numbers, edges)
        for block, (first, last) in enumerate(pairwise(places)):
            if first < last:
                found[first:last] = self.rows(block)[numbers[first:last] - edges[block]]
        return found


def _raw(layout: Layout, block: int) -> np.ndarray:
    return read_array(layout.piece("features", "rows", block)).astype(np.float64)


def measure(layout: Layout, block: int) -> None:
    """Write the least and largest value of each column, and the largest in size."""
    rows = read_array(layout.piece("features", "rows", block))
    found = [rows.min(axis=0), rows.max(axis=0), np.abs(rows).max(axis=0)]
    write_array(layout.piece("measured", block), np.array(found, np.float64))


def add_up(layout: Layout, block: int, scale: np.ndarray, name: str) -> None:
    """Write the sums of the columns, divided by a scale."""
    write_array(layout.piece(name, "sums", block), (_raw(layout, block) * scale).sum(axis=0))


def add_products(
    layout: Layout, block: int, scale: np.ndarray, mean: np.ndarray, name: str, full: bool
) -> None:
    """Write the sums of squares of centred columns, or of all their products."""
    centred = _raw(layout, block) * scale - mean
    found = centred.T @ centred if full else (centred**2).sum(axis=0)
    write_array(layout.piece(name, "products", block), found)


def prepare(view: View, block: int, scale: np.ndarray, mean: np.ndarray, last: np.ndarray) -> None:
    """Write a block of prepared rows; `last` is the inverse spread, or a direction to remove."""
    rows = _raw(view.layout, block)
    if view.preparation == "unit_rows":
        found = unit_rows(rows)
    else:
        found = rows * scale - mean
        if view.preparation == "standardized":
            found *= last
        elif view.preparation == "unit_rows_without_first_component":
            found -= np.outer(found @ last, last)
            # What only rounding has left of a row must not be blown up to length 1.
            found[np.linalg.norm(found, axis=1) < 1e-12] = 0.0
            found = unit_rows(found)
    write_array(view.rows_piece(block), found.astype(view.layout.dtype))


def prepared(runner: Runner, layout: Layout, preparation: str) -> View:
    """Run the stage; return the view of the prepared rows."""
    blocks = range(len(layout.blocks))
    stage = f"prepare {preparation}"
    runner.run(
        Task(stage, f"extremes {b}", measure, {"layout": layout, "block": b},
             (layout.piece("measured", b),)) for b in blocks
    )  # fmt: skip
    found = np.array([runner.read(read_array, layout.piece("measured", b)) for b in blocks])
    low, high, sizes = found[:, 0].min(axis=0), found[:, 1].max(axis=0), found[:, 2].max(axis=0)
    largest = float(sizes.max())
    is_safe = largest == 0.0 or 1 / SAFE_RANGE <= largest <= SAFE_RANGE
    if preparation == "as_given" and is_safe:
        return View(layout, preparation, is_raw=True)
    zeros = np.zeros(layout.n_features)
    scale, mean, last = zeros + 2.0 ** -float(np.frexp(largest)[1]), zeros, zeros
    if preparation not in ("as_given", "unit_rows"):
        full = preparation != "standardized"
        scale = inverse(zeros + largest) if full else inverse(sizes)
        mean, products = _moments(runner, layout, preparation, scale, full=full)
        if full:
            last = np.linalg.eigh(products)[1][:, -1]
        else:
            spread = np.sqrt(products / layout.n_rows)
            last = inverse(np.where(low < high, spread, 0.0))
    view = View(layout, preparation, is_raw=False)
    arguments = {"view": view, "scale": scale, "mean": mean, "last": last}
    runner.run(
        Task(stage, f"rows {b}", prepare, {**arguments, "block": b}, (view.rows_piece(b),))
        for b in blocks
    )
    return view


def _moments(
    runner: Runner, layout: Layout, name: str, scale: np.ndarray, *, full: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of scaled columns, and the sums of their centred products."""
    blocks, stage = range(len(layout.blocks)), f"prepare {name}"
    common = {"layout": layout, "scale": scale, "name": name}
    runner.run(
        Task(stage, f"sums {b}", add_up, {**common, "block": b}, (layout.piece(name, "sums", b),))
        for b in blocks
    )
    mean = sum_of_pieces(runner, [layout.piece(name, "sums", b) for b in blocks]) / layout.n_rows
    common = {**common, "mean": mean, "full": full}
    pieces = [layout.piece(name, "products", b) for b in blocks]
    runner.run(
        Task(stage, f"products {b}", add_products, {**common, "block": b}, (pieces[b],))
        for b in blocks
    )
    return mean, sum_of_pieces(runner, pieces)


def sum_of_pieces(runner: Runner, pieces: list[Path]) -> np.ndarray:
    """Return the sum of arrays, added in the order of their blocks."""
    total = np.array(runner.read(read_array, pieces[0]))
    for piece in pieces[1:]:
        total += runner.read(read_array, piece)
    return total
