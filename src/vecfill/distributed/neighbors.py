"""Stage: who is near whom, exactly within the cells that each row looks at.

Each row meets the cells with the nearest centres. How many are needed is read off a sample of rows
whose true neighbours are known: the rank of the cell that holds each of them. If all true
neighbours are asked for, a row meets every cell that can hold a nearer row, and the result is that
of brute force. Products in 32 bits choose candidates and exact distances decide,
as in memory, so neither groups nor tiles decide any bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial.distance import cdist

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import View
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.search.among import merged_lists, nearest_among, no_lists, sorted_lists
from vecfill.method.search.cell_neighbors import N_FIRST, empty_lists
from vecfill.method.search.cells import MAX_WIDTH, evenly_spaced
from vecfill.method.search.distances import Lifted, lifted
from vecfill.method.search.forest import edges_of_lists, spanning_forest
from vecfill.method.search.neighbors import RECALL_SAMPLE, certified_reach
from vecfill.method.search.scans import scan_rows

SLACK = 8
"""Rows listed beyond those asked for: most proofs of the tree need no further search."""

TILE = 1024
"""Rows that meet a cell at once."""

MOST_PROBES_HELD = 4_000_000
"""Pairs of a row and a cell that are sorted at once."""


@dataclass(frozen=True)
class Search:
    """How neighbours are searched: how many, and in how many cells."""

    n_neighbors: int
    n_probes: int
    recall: float
    """Share of true neighbours found, on a sample; 1 if all cells are met."""
    is_exact: bool

    def n_listed(self, n_rows: int) -> int:
        """Return how many candidates a row keeps."""
        return min(self.n_neighbors + SLACK, n_rows - 1)


def sample_truth(view: View, block: int, n_neighbors: int) -> None:
    """Write the nearest rows, within a block, of a sample of all rows."""
    sample = evenly_spaced(view.layout.n_rows, RECALL_SAMPLE)
    span = view.layout.blocks[block]
    numbers = np.arange(span.start, span.stop)
    found = nearest_among(
        view.some_rows(sample), sample, view.rows(block), numbers, n_listed=n_neighbors
    )
    write_array(view.piece("sample", "numbers", block), found[0])
    write_array(view.piece("sample", "squared", block), found[1])


def planned_search(
    runner: Runner, partition: Partition, n_neighbors: int, recall: float | None
) -> Search:
    """Return how many cells each row must meet; `recall` is what is asked for, ``None`` exact."""
    view = partition.view
    n_cells = view.layout.n_cells
    n_neighbors = min(n_neighbors, view.layout.n_rows - 1)
    if recall is None or recall >= 1.0:
        return Search(n_neighbors, n_cells, 1.0, is_exact=True)
    blocks = range(len(view.layout.blocks))
    runner.run(
        Task(
            f"neighbours {view.preparation}",
            f"sample {block}",
            sample_truth,
            {"view": view, "block": block, "n_neighbors": n_neighbors},
            (view.piece("sample", "numbers", block), view.piece("sample", "squared", block)),
        )
        for block in blocks
    )
    sample = evenly_spaced(view.layout.n_rows, RECALL_SAMPLE)
    truth = no_lists(sample.size, n_neighbors)
    for block in blocks:
        part = [
            runner.read(read_array, view.piece("sample", name, block))
            for name in ("numbers", "squared")
        ]
        truth = merged_lists(truth, (part[0], part[1]))
    nearness = partition.nearness(view.some_rows(sample))
    cell_of = np.searchsorted(partition.starts, partition.place[truth[0]], side="right") - 1
    own = np.take_along_axis(nearness, cell_of, 1)
    ranks = np.sort((nearness[:, None, :] > own[:, :, None]).sum(axis=2).ravel())
    n_probes = int(ranks[int(np.ceil(recall * ranks.size)) - 1]) + 1
    if n_probes >= n_cells:
        return Search(n_neighbors, n_cells, 1.0, is_exact=True)
    found = float((ranks < n_probes).mean())
    return Search(n_neighbors, n_probes, found, is_exact=False)


def search_group(partition: Partition, group: int, search: Search) -> None:
    """Write the nearest rows of a group, how far its lists reach, and the forest of its edges."""
    view = partition.view
    found = _GroupSearch(partition, group, search)
    for first, last in found.batches():
        found.meet(first, last)
    numbers, squared, reach = found.ranked()
    n_neighbors = search.n_neighbors
    mine = partition.order[partition.group_starts[group] : partition.group_starts[group + 1]]
    write_array(view.piece("nearest", group), numbers[:, :n_neighbors].astype(np.int32))
    write_array(view.piece("reach", group), reach)
    write_array(
        view.piece("forest", group), spanning_forest(edges_of_lists(mine, numbers, squared))
    )


class _GroupSearch:
    """The rows of one group on their way to their neighbours."""

    def __init__(self, partition: Partition, group: int, search: Search) -> None:
        self.partition, self.search = partition, search
        self.cells = partition.groups[group]
        self.first, self.last = (int(each) for each in partition.group_starts[group : group + 2])
        self.rows = np.array(partition.group_rows(group))
        self.lift = lifted(self.rows, centre=partition.middle, n_jobs=1)
        self.n_rows = partition.view.layout.n_rows
        self.values, self.indices = empty_lists(len(self.rows), search.n_listed(self.n_rows))
        self.mine = np.arange(self.first, self.last, dtype=np.int32)
        self.everyone = np.arange(self.n_rows, dtype=np.int32)

    def batches(self) -> list[tuple[int, int]]:
        """Return runs of cells whose probes are held at once."""
        starts = self.partition.starts
        n_held = max(1, MOST_PROBES_HELD // self.search.n_probes)
        runs, first = [], self.cells[0]
        for cell in range(self.cells[0] + 1, self.cells[1] + 1):
            if cell == self.cells[1] or starts[cell + 1] - starts[first] > n_held:
                runs.append((first, cell))
                first = cell
        return runs

    def probing(
        self, first: int, last: int, n_probes: int | None = None
    ) -> list[tuple[int, np.ndarray]]:
        """Return the cells that rows of some cells meet, each with the places of these rows."""
        partition, n_probes = self.partition, n_probes or self.search.n_probes
        begin, end = (int(partition.starts[cell]) - self.first for cell in (first, last))
        if n_probes >= partition.view.layout.n_cells:
            places = np.arange(begin, end, dtype=np.int32)
            return [(cell, places) for cell in range(partition.view.layout.n_cells)]
        chosen = np.empty((end - begin, n_probes), np.int32)
        # A cell at a time: the shape of a product must not depend on how cells are grouped.
        for cell in range(first, last):
            start, stop = (int(each) - self.first for each in partition.starts[cell : cell + 2])
            for block in row_blocks(stop - start, MAX_WIDTH):
                some = slice(start + block.start, start + block.stop)
                near = partition.nearness(self.rows[some])
                best = np.argpartition(-near, n_probes - 1, axis=1)[:, :n_probes]
                chosen[some.start - begin : some.stop - begin] = best
        flat = chosen.ravel()
        by_cell = np.argsort(flat, kind="stable")
        places = (begin + by_cell // n_probes).astype(np.int32)
        edges = np.searchsorted(flat[by_cell], np.arange(partition.view.layout.n_cells + 1))
        spans = pairwise(edges)
        return [(cell, places[low:high]) for cell, (low, high) in enumerate(spans) if high > low]

    def meet(self, first: int, last: int) -> None:
        """Let the rows of some cells keep the best of the cells that they meet."""
        if not self.search.is_exact:
            for cell, places in self.probing(first, last):
                self._meet_cell(cell, places)
            return
        partition = self.partition
        begin, end = (int(partition.starts[cell]) - self.first for cell in (first, last))
        # No row of a cell is nearer than its centre less its radius; rounding is allowed for.
        away = cdist(self.rows[begin:end], partition.centre(slice(None)))
        nearest = away - partition.radii - 1e-6 * (away + partition.radii)
        nearest = np.maximum(nearest, 0.0) ** 2
        for cell, places in self.probing(first, last, min(N_FIRST, partition.radii.size)):
            self._meet_cell(cell, places)
            nearest[places - begin, cell] = np.inf
        for cell in range(partition.radii.size):
            worst = -2.0 * self.values[begin:end, -1].astype(np.float64)
            places = np.flatnonzero(nearest[:, cell] <= worst) + begin
            self._meet_cell(cell, places[np.isfinite(nearest[places - begin, cell])])

    def _meet_cell(self, cell: int, places: np.ndarray) -> None:
        """Let rows at some places keep the best of a cell."""
        partition = self.partition
        theirs, places = partition.cell_rows(cell), places.astype(np.int32)
        if not (len(theirs) and places.size):
            return
        points = lifted(theirs, centre=partition.middle, n_jobs=1).points
        for columns in row_blocks(len(points), MAX_WIDTH):
            start = int(partition.starts[cell]) + columns.start
            for block in row_blocks(places.size, TILE):
                some = places[block]
                products = self.lift.swapped(some) @ points[columns].T
                lists = (self.mine, self.everyone, self.values, self.indices)
                scan_rows(products, some, start, *lists)

    def ranked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the lists by exact distance: row numbers, squared distances, and their reach."""
        n_listed = self.indices.shape[1]
        squared = self.partition.squared_from(self.rows, self.indices)
        is_listed = self.indices >= 0
        squared[~is_listed] = np.inf
        numbers = np.where(is_listed, self.partition.order[self.indices], -1).astype(np.int64)
        numbers, squared = sorted_lists(numbers, squared)
        is_full = is_listed.all(axis=1)
        reach = np.full(len(numbers), np.inf)
        if n_listed < self.n_rows - 1:
            some = np.flatnonzero(is_full)
            reach[some] = certified_reach(_rows_of(self.lift, some), self.values[some, -1])
        self._search_again(numbers, squared, reach)
        if not self.search.is_exact:
            # Nothing is proved about rows in cells that were not met.
            reach[:] = np.inf
        return numbers, squared, reach

    def _search_again(self, numbers: np.ndarray, squared: np.ndarray, reach: np.ndarray) -> None:
        """Search rows without proof, or with too few neighbours, again in 64 bits."""
        last = self.search.n_neighbors - 1
        is_short = numbers[:, last] < 0
        doubtful = np.flatnonzero(is_short | (squared[:, last] >= reach))
        if not doubtful.size:
            return
        n_listed = numbers.shape[1]
        lists = no_lists(doubtful.size, n_listed)
        mine = self.partition.order[self.first : self.last][doubtful].astype(np.int64)
        for first, end in self.batches():
            for cell, places in self.probing(first, end):
                some = np.flatnonzero(np.isin(doubtful, places))
                self._meet_carefully(cell, doubtful, mine, some, lists)
        if not self.search.is_exact and is_short.any():
            lists = self._all_cells(doubtful, mine, is_short[doubtful], lists)
        numbers[doubtful], squared[doubtful] = lists
        reach[doubtful] = squared[doubtful, -1]

    def _meet_carefully(
        self,
        cell: int,
        doubtful: np.ndarray,
        mine: np.ndarray,
        some: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray],
    ) -> None:
        theirs = self.partition.cell_rows(cell)
        if not (some.size and len(theirs)):
            return
        first, last = self.partition.starts[cell : cell + 2]
        found = nearest_among(
            self.rows[doubtful[some]],
            mine[some],
            np.ascontiguousarray(theirs),
            self.partition.order[first:last].astype(np.int64),
            n_listed=lists[0].shape[1],
        )
        lists[0][some], lists[1][some] = merged_lists((lists[0][some], lists[1][some]), found)

    def _all_cells(
        self,
        doubtful: np.ndarray,
        mine: np.ndarray,
        is_short: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Let rows whose cells held too few others look at every cell."""
        some = np.flatnonzero(is_short)
        lists[0][some], lists[1][some] = no_lists(some.size, lists[0].shape[1])
        for cell in range(self.partition.view.layout.n_cells):
            self._meet_carefully(cell, doubtful, mine, some, lists)
        return lists


def _rows_of(lift: Lifted, some: np.ndarray) -> Lifted:
    return Lifted(lift.points[some], lift.half_squares[some])


def searched(runner: Runner, partition: Partition, search: Search) -> None:
    """Run the stage."""
    view = partition.view
    runner.run(
        Task(
            f"neighbours {view.preparation}",
            f"group {group}",
            search_group,
            {"partition": partition, "group": group, "search": search},
            tuple(view.piece(name, group) for name in ("nearest", "reach", "forest")),
        )
        for group in range(len(partition.groups))
    )
