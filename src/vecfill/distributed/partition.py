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
"""Rows that are put in their order together."""

ORDER = ("rows", "places", "starts", "centres")
ORDERED = ("rows", "points", "half_squares")
BOUNDS = ("centres", "gaps", "limits", "nearest", "diameter")


@dataclass(frozen=True)
class Partition:
    """The rows of a view in cells, and the cells in groups."""

    view: View
    groups: tuple[tuple[int, int], ...]
    """First cell, and the one after the last, of each group."""

    def __reduce__(self) -> tuple[type[Partition], tuple[View, tuple[tuple[int, int], ...]]]:
        # Arrays that were read stay here; a task reads its own.
        return Partition, (self.view, self.groups)

    @cached_property
    def starts(self) -> np.ndarray:
        """The position where each cell begins, and the number of rows."""
        return read_array(self.view.piece("order", "starts"))

    @cached_property
    def order(self) -> np.ndarray:
        """The row at each position."""
        return read_array(self.view.piece("order", "rows"))

    @cached_property
    def place(self) -> np.ndarray:
        """The position of each row."""
        return read_array(self.view.piece("order", "places"))

    @cached_property
    def rows(self) -> np.ndarray:
        """All rows by position."""
        return read_array(self.view.piece("ordered", "rows"))

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
        first, last = (int(each) for each in self.group_starts[group : group + 2])
        return slice(first, last)


def find_centres(view: View) -> None:
    """Write centres of cells, found by k-means on rows evenly spaced."""
    layout = view.layout
    wanted = evenly_spaced(layout.n_rows, SAMPLE_PER_CELL * layout.n_cells)
    sample = view.some_rows(wanted)
    middle = sample.mean(axis=0, dtype=np.float64).astype(layout.dtype)
    centres = centres_of((sample - middle).astype(np.float32), layout.n_cells, 1)
    write_array(view.piece("cells", "centres"), centres[by_place(centres)])
    write_array(view.piece("cells", "middle"), middle)


def assign(view: View, block: int) -> None:
    """Write the cell of each row of a block."""
    centres = read_array(view.piece("cells", "centres"))
    middle = read_array(view.piece("cells", "middle"))
    cells = nearest_centres(view.rows(block), centres, 1, middle=middle)
    write_array(view.piece("cells", "of", block), cells.astype(np.int32))


def put_in_order(view: View) -> None:
    """Write the order of the rows by cell, where cells begin, and the centres that have rows."""
    pieces = [view.piece("cells", "of", block) for block in range(len(view.layout.blocks))]
    cells = np.concatenate([read_array(piece) for piece in pieces])
    counts = np.bincount(cells, minlength=view.layout.n_cells)
    order = np.argsort(cells, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    centres = read_array(view.piece("cells", "centres"))[counts > 0]
    for name, array in zip(ORDER, (order, place, starts, centres), strict=True):
        write_array(view.piece("order", name), array)


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


def lean_group(partition: Partition, group: int) -> None:
    """Write how far the rows of each cell of a group lean to every other cell, at most."""
    centres = np.ascontiguousarray(read_array(partition.view.piece("order", "centres")).T)
    first, last = partition.groups[group]
    leans = np.empty((last - first, centres.shape[1]), np.float32)
    for cell in range(first, last):
        out = leans[cell - first : cell - first + 1]
        set_leans(partition.lift.points, partition.starts, centres, slice(cell, cell + 1), out)
    write_array(partition.view.piece("leans", group), leans)


def write_bounds(partition: Partition) -> None:
    """Write what bounds the distances between cells."""
    view, groups = partition.view, range(len(partition.groups))
    centres = read_array(view.piece("order", "centres"))
    leans = np.concatenate([read_array(view.piece("leans", group)) for group in groups])
    lengths = np.maximum.reduceat(partition.lift.lengths, partition.starts[:-1])
    *arrays, diameter = bounds_of(centres, leans, lengths)
    for name, array in zip(BOUNDS, (*arrays, np.array([diameter])), strict=True):
        write_array(view.piece("bounds", name), array)


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
    centres = (view.piece("cells", "centres"), view.piece("cells", "middle"))
    runner.run([Task(stage, "centres", find_centres, {"view": view}, centres)])
    runner.run(
        Task(stage, f"cells {block}", assign, {"view": view, "block": block},
             (view.piece("cells", "of", block),)) for block in range(len(layout.blocks))
    )  # fmt: skip
    order = tuple(view.piece("order", name) for name in ORDER)
    runner.run([Task(stage, "order", put_in_order, {"view": view}, order)])
    ordered = tuple(view.piece("ordered", name) for name in ORDERED)
    runner.run([Task(stage, "rows", put_rows_in_order, {"view": view}, ordered)])
    starts = runner.read(read_array, order[ORDER.index("starts")])
    partition = Partition(view, grouped_cells(starts, layout.rows_per_group))
    runner.run(
        Task(stage, f"leans {group}", lean_group, {"partition": partition, "group": group},
             (view.piece("leans", group),)) for group in range(len(partition.groups))
    )  # fmt: skip
    bounds = tuple(view.piece("bounds", name) for name in BOUNDS)
    runner.run([Task(stage, "bounds", write_bounds, {"partition": partition}, bounds)])
    return partition
