"""Stage: rows -> cells of near rows, and the rows in the order of their cells.

Centres come from k-means on a sample, as in memory. A *position* is a place in the order of cells.
All rows lie in that order in one file, because near rows are then near on disk, and a search maps
what it meets. Cells that follow each other form groups: one task searches for one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vecfill.distributed.pieces import new_array, read_array, write_array
from vecfill.distributed.preparing import View
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.search.cells import (
    SAMPLE_PER_CELL,
    Cells,
    bounds_of,
    by_place,
    centres_of,
    evenly_spaced,
    nearest_centres,
    set_leans,
)
from vecfill.method.search.distances import Lifted, lifted

ROWS_AT_ONCE = 131072
"""Rows that are put in their order together: as many as a group has at most."""

CENTRES = ("centres", "middle")
ORDER = ("rows", "places", "starts", "centres")
ORDERED = ("rows", "points", "half_squares")
BOUNDS = ("centres", "gaps", "limits", "nearest", "diameter")


def _read_once(*names: str) -> cached_property[np.ndarray]:
    return cached_property(lambda partition: read_array(partition.view.piece(*names)))


@dataclass(frozen=True)
class Partition:
    """The rows of a view in cells, and the cells in groups."""

    view: View
    groups: tuple[tuple[int, int], ...]
    """First cell, and the one after the last, of each group."""

    def __reduce__(self) -> tuple[type[Partition], tuple[View, tuple[tuple[int, int], ...]]]:
        # Arrays that were read stay here; a task reads its own.
        return Partition, (self.view, self.groups)

    starts = _read_once("order", "starts")
    """The position where each cell begins, and the number of rows."""
    order = _read_once("order", "rows")
    """The row at each position."""
    place = _read_once("order", "places")
    """The position of each row."""
    rows = _read_once("ordered", "rows")
    """All rows by position."""

    @cached_property
    def lift(self) -> Lifted:
        """All rows by position, ready for products."""
        return Lifted(*(read_array(self.view.piece("ordered", name)) for name in ORDERED[1:]))

    @cached_property
    def cells(self) -> Cells:
        """The cells as a search in memory has them, but mapped from disk."""
        centres, gaps, limits, nearest, diameter = (
            read_array(self.view.piece("bounds", name)) for name in BOUNDS
        )
        bounds = (centres, gaps, limits, nearest, float(diameter[0]))
        return Cells(self.order, self.starts, self.lift, *bounds)

    @cached_property
    def group_starts(self) -> np.ndarray:
        """The position where each group begins, and the number of rows."""
        firsts = [first for first, _ in self.groups]
        return self.starts[[*firsts, self.groups[-1][1]]]

    def forget(self) -> None:
        """Let go of arrays that were read: mapped pages count as memory while they are held."""
        for name in vars(self).keys() - {"view", "groups"}:
            vars(self).pop(name)

    def span(self, group: int) -> slice:
        """Return the positions of a group."""
        return slice(*self.group_starts[group : group + 2].tolist())


def find_centres(view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return centres of cells, found by k-means on rows evenly spaced, and what they are from."""
    layout = view.layout
    sample = view.some_rows(evenly_spaced(layout.n_rows, SAMPLE_PER_CELL * layout.n_cells))
    middle = sample.mean(axis=0, dtype=np.float64).astype(layout.dtype)
    centres = centres_of((sample - middle).astype(np.float32), layout.n_cells, 1)
    return centres[by_place(centres)], middle


def assign(view: View, block: int) -> np.ndarray:
    """Return the cell of each row of a block."""
    centres = read_array(view.piece("cells", "centres"))
    middle = read_array(view.piece("cells", "middle"))
    return nearest_centres(view.rows(block), centres, 1, middle=middle).astype(np.int32)


def put_in_order(view: View) -> tuple[np.ndarray, ...]:
    """Return the order of the rows by cell, where cells begin, and the centres that have rows."""
    pieces = [view.piece("cells", "of", block) for block in range(len(view.layout.blocks))]
    cells = np.concatenate([read_array(piece) for piece in pieces])
    counts = np.bincount(cells, minlength=view.layout.n_cells)
    order = np.argsort(cells, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    centres = read_array(view.piece("cells", "centres"))[counts > 0]
    return order, place, starts, centres


def put_rows_in_order(view: View) -> None:
    """Write all rows by position, as they are and ready for products."""
    layout = view.layout
    order = read_array(view.piece("order", "rows"))
    middle = read_array(view.piece("cells", "middle"))
    half_squares, shape = np.empty(layout.n_rows), (layout.n_rows, layout.n_features)
    lifted_shape = (layout.n_rows, layout.n_features + 2)
    with (
        new_array(view.piece("ordered", "rows"), shape, layout.dtype) as rows_file,
        new_array(view.piece("ordered", "points"), lifted_shape, np.float32) as points_file,
    ):
        for block in row_blocks(layout.n_rows, ROWS_AT_ONCE):
            by_number = np.argsort(order[block])
            rows = np.empty((by_number.size, layout.n_features), layout.dtype)
            rows[by_number] = view.some_rows(order[block][by_number])
            lift = lifted(rows, centre=middle, n_jobs=1)
            half_squares[block] = lift.half_squares
            rows_file.write(rows)
            points_file.write(lift.points)
    write_array(view.piece("ordered", "half_squares"), half_squares)


def lean_group(partition: Partition, group: int) -> np.ndarray:
    """Return how far the rows of each cell of a group lean to every other cell, at most."""
    centres = np.ascontiguousarray(read_array(partition.view.piece("order", "centres")).T)
    first, last = partition.groups[group]
    leans = np.empty((last - first, centres.shape[1]), np.float32)
    for cell in range(first, last):
        out = leans[cell - first : cell - first + 1]
        set_leans(partition.lift.points, partition.starts, centres, slice(cell, cell + 1), out)
    return leans


def find_bounds(partition: Partition) -> tuple[np.ndarray, ...]:
    """Return what bounds the distances between cells."""
    view, groups = partition.view, range(len(partition.groups))
    centres = read_array(view.piece("order", "centres"))
    leans = np.concatenate([read_array(view.piece("leans", group)) for group in groups])
    lengths = np.maximum.reduceat(partition.lift.lengths, partition.starts[:-1])
    *arrays, diameter = bounds_of(centres, leans, lengths)
    return *arrays, np.array([diameter])


def grouped_cells(starts: np.ndarray, n_rows: int) -> tuple[tuple[int, int], ...]:
    """Return runs of cells that hold about `n_rows` rows each.

    Examples
    --------
    >>> grouped_cells(np.array([0, 4, 6, 7, 12]), 7)
    ((0, 3), (3, 4))
    """
    groups, first = [], 0
    n_cells = starts.size - 1
    for cell in range(1, n_cells + 1):
        if cell == n_cells or starts[cell + 1] - starts[first] > n_rows:
            groups.append((first, cell))
            first = cell
    return tuple(groups)


def partitioned(runner: Runner, view: View) -> Partition:
    """Run the stage."""
    layout, stage = view.layout, f"partition {view.preparation}"
    cells = [view.piece("cells", "of", block) for block in range(len(layout.blocks))]
    centres, order, ordered, bounds = (
        tuple(view.piece(kind, name) for name in names)
        for kind, names in (
            ("cells", CENTRES),
            ("order", ORDER),
            ("ordered", ORDERED),
            ("bounds", BOUNDS),
        )
    )
    runner.run([Task(stage, "centres", find_centres, {"view": view}, centres)])
    runner.run_each(stage, "cells", assign, cells, view=view)
    runner.run([Task(stage, "order", put_in_order, {"view": view}, order)])
    runner.run([Task(stage, "rows", put_rows_in_order, {"view": view}, ordered)])
    starts = runner.read(read_array, order[ORDER.index("starts")])
    partition = Partition(view, grouped_cells(starts, layout.rows_per_group))
    leans = [view.piece("leans", group) for group in range(len(partition.groups))]
    runner.run_each(stage, "leans", lean_group, leans, by="group", partition=partition)
    runner.run([Task(stage, "bounds", find_bounds, {"partition": partition}, bounds)])
    return partition
