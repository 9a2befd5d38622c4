"""Stage: rows -> cells of near rows, and the rows in the order of their cells.

Centres come from k-means on a sample, as in memory. A *position* is a place in the order of cells.
Cells that follow each other form groups: one task searches the neighbours of one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import View
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.search.cells import (
    SAMPLE_PER_CELL,
    by_place,
    centres_of,
    evenly_spaced,
    nearest_centres,
)
from vecfill.method.search.distances import pair_distances


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
    def centres(self) -> np.ndarray:
        """The centres of the cells, less the middle."""
        return read_array(self.view.piece("cells", "centres"))

    @cached_property
    def middle(self) -> np.ndarray:
        """What rows are centred by."""
        return read_array(self.view.piece("cells", "middle"))

    @cached_property
    def group_starts(self) -> np.ndarray:
        """The position where each group begins, and the number of rows."""
        firsts = [first for first, _ in self.groups]
        return self.starts[[*firsts, self.groups[-1][1]]]

    def group_rows(self, group: int) -> np.ndarray:
        """Return the rows of a group, by position."""
        return read_array(self.view.piece("grouped", group))

    def cell_rows(self, cell: int) -> np.ndarray:
        """Return the rows of a cell."""
        first, last = self.starts[cell], self.starts[cell + 1]
        group = int(np.searchsorted(self.group_starts, first, side="right")) - 1
        offset = self.group_starts[group]
        return self.group_rows(group)[first - offset : last - offset]

    @cached_property
    def radii(self) -> np.ndarray:
        """How far the farthest row of each cell lies from its centre."""
        groups = range(len(self.groups))
        return np.concatenate([read_array(self.view.piece("radii", group)) for group in groups])

    def centre(self, cell: int | slice) -> np.ndarray:
        """Return the centre of a cell, where the rows are."""
        return self.middle.astype(np.float64) + self.centres[cell]

    def rows_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the rows at some positions."""
        found = np.empty((positions.size, self.view.layout.n_features), self.view.layout.dtype)
        group_of = np.searchsorted(self.group_starts, positions, side="right") - 1
        for group in np.unique(group_of):
            some = np.flatnonzero(group_of == group)
            found[some] = self.group_rows(int(group))[positions[some] - self.group_starts[group]]
        return found

    def squared_from(self, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the exact squared distance of each row from the positions that it lists."""
        squared = np.full(positions.size, np.inf)
        listed = positions.ravel()
        group_of = np.searchsorted(self.group_starts, listed, side="right") - 1
        by_group = np.argsort(group_of, kind="stable")
        begins = np.searchsorted(group_of[by_group], np.arange(len(self.groups) + 1))
        for group in range(len(self.groups)):
            some = by_group[begins[group] : begins[group + 1]]
            if some.size:
                others = listed[some] - self.group_starts[group]
                left = some // positions.shape[1]
                squared[some] = pair_distances(rows, self.group_rows(group), left, others)
        return squared.reshape(positions.shape)

    def points_of(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as they are compared with centres: centred, in 32 bits."""
        return (rows - self.middle).astype(np.float32)

    def nearness(self, rows: np.ndarray) -> np.ndarray:
        """Return how near each row is to every centre: larger is nearer."""
        products = self.points_of(rows) @ self.centres.T
        products -= 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)
        return products


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
    """Write the order of the rows by cell, and where cells begin."""
    layout = view.layout
    pieces = [view.piece("cells", "of", block) for block in range(len(layout.blocks))]
    cells = np.concatenate([read_array(piece) for piece in pieces])
    order = np.argsort(cells, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=layout.n_cells))])
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=np.int32)
    write_array(view.piece("order", "rows"), order)
    write_array(view.piece("order", "places"), place)
    write_array(view.piece("order", "starts"), starts)


def gather_group(partition: Partition, group: int) -> None:
    """Write the rows of a group of cells by position."""
    first, last = partition.group_starts[group : group + 2]
    numbers = partition.order[first:last]
    by_number = np.argsort(numbers)
    rows = np.empty((numbers.size, partition.view.layout.n_features), partition.view.layout.dtype)
    rows[by_number] = partition.view.some_rows(numbers[by_number])
    write_array(partition.view.piece("grouped", group), rows)
    radii = []
    for cell in range(*partition.groups[group]):
        begin, end = partition.starts[cell : cell + 2] - first
        away = rows[begin:end] - partition.centre(cell)
        radii.append(np.sqrt(np.einsum("ij,ij->i", away, away).max(initial=0.0)))
    write_array(partition.view.piece("radii", group), np.array(radii))


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
    order = tuple(view.piece("order", name) for name in ("rows", "places", "starts"))
    runner.run([Task(stage, "order", put_in_order, {"view": view}, order)])
    starts = runner.read(read_array, order[2])
    partition = Partition(view, grouped_cells(starts, layout.rows_per_group))
    runner.run(
        Task(stage, f"rows {group}", gather_group, {"partition": partition, "group": group},
             (view.piece("grouped", group), view.piece("radii", group)))
        for group in range(len(partition.groups))
    )  # fmt: skip
    return partition
