"""Stage: who is near whom, exactly within the cells that each row may meet.

The search is that of the path in memory, over rows that are mapped from disk. A row meets the cells
that can hold a nearer row than it has, so the result is that of brute force. Where that would take
too long, each cell meets only the nearest cells, up to a number of rows that is read off a sample:
how many rows lie nearer than the cell of each true neighbour. Products in 32 bits choose candidates
and exact distances decide, as in memory, so neither groups nor tiles decide any bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import read_values, write_array, write_values
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.search.among import merged_lists, nearest_among, no_lists, sorted_lists
from vecfill.method.search.cell_search import (
    N_FIRST,
    N_NEXT,
    empty_lists,
    search_cells,
    share_of_pairs,
)
from vecfill.method.search.cells import Cells, evenly_spaced
from vecfill.method.search.distances import Lifted
from vecfill.method.search.neighbors import RECALL_SAMPLE, certified_reach
from vecfill.method.search.scans import rank_exactly
from vecfill.method.search.tree import edges_of_lists, spanning_forest

SLACK = 8
"""Rows listed beyond those asked for: most proofs of the tree need no further search."""

N_SURE = 4
"""Of these, so many are proved like those asked for if cells are left out."""

MOST_EXACT_WORK = 5e12
"""Pairs times features that are looked at exactly unasked: more takes as long as all the rest."""

DEFAULT_RECALL = 0.95

DOUBTFUL_AT_ONCE = 4096


@dataclass(frozen=True)
class Search:
    """How neighbours are searched: how many, and how far."""

    n_neighbors: int
    n_met: float
    """A cell meets the nearest cells that begin within so many rows; all of them if infinite."""
    recall: float
    """Share of true neighbours found, on a sample; 1 if all cells may be met."""

    @property
    def is_exact(self) -> bool:
        """Whether all true neighbours are found."""
        return bool(np.isinf(self.n_met))

    def n_listed(self, n_rows: int) -> int:
        """Return how many candidates a row keeps."""
        return min(self.n_neighbors + SLACK, n_rows - 1)

    def n_sure(self, n_rows: int) -> int:
        """Return how many of them must be proved."""
        return min(self.n_neighbors + (0 if self.is_exact else N_SURE), n_rows - 1)


def plan_search(partition: Partition, n_neighbors: int, recall: float | None) -> None:
    """Write how many rows each cell must meet for a recall; ``None``: exactly if that is quick."""
    cells = partition.cells
    n_rows, n_listed = cells.order.size, Search(n_neighbors, np.inf, 1.0).n_listed(len(cells.order))
    if recall is None:
        n_pairs = share_of_pairs(cells, n_listed, n_jobs=1) * n_rows**2
        recall = 1.0 if n_pairs * cells.lift.n_features <= MOST_EXACT_WORK else DEFAULT_RECALL
    found = {"n_met": None, "recall": 1.0}
    if recall < 1.0:
        before = np.sort(_rows_before(cells, n_neighbors, n_listed).ravel())
        n_met = int(before[int(np.ceil(recall * before.size)) - 1]) + 1
        if n_met < n_rows - 1:
            n_met = max(n_met, 2 * n_listed)
            found = {"n_met": n_met, "recall": float((before < n_met).mean())}
    write_values(partition.view.piece("sample", "search.json"), found)


def _rows_before(cells: Cells, n_neighbors: int, n_listed: int) -> np.ndarray:
    """Return how many rows lie in nearer cells than each true neighbour of a sample of rows."""
    sample = evenly_spaced(cells.order.size, RECALL_SAMPLE).astype(np.int32)
    lists = empty_lists(sample.size, n_listed)
    search_cells(cells, sample, lists, n_first=N_FIRST, n_next=N_NEXT, n_jobs=1)
    theirs = cells.cell_of(lists[1][:, :n_neighbors])
    before = [_before(cells, int(cell)) for cell in cells.cell_of(sample)]
    return np.take_along_axis(np.array(before), theirs, 1)


def _before(cells: Cells, cell: int) -> np.ndarray:
    """Return how many rows lie in cells that are nearer to a cell than each cell is."""
    sizes, nearest = np.diff(cells.starts), cells.nearest[cell]
    before = np.empty_like(sizes)
    before[nearest] = np.cumsum(sizes[nearest]) - sizes[nearest]
    return before


def planned_search(
    runner: Runner, partition: Partition, n_neighbors: int, recall: float | None
) -> Search:
    """Return how neighbours are searched for the recall asked for; 1 is exact, ``None`` decides."""
    view = partition.view
    n_neighbors = min(n_neighbors, view.layout.n_rows - 1)
    piece = view.piece("sample", "search.json")
    arguments = {"partition": partition, "n_neighbors": n_neighbors, "recall": recall}
    stage = f"neighbours {view.preparation}"
    runner.run([Task(stage, "sample", plan_search, arguments, (piece,))])
    found = runner.read(read_values, piece)
    n_met = np.inf if found["n_met"] is None else float(found["n_met"])
    return Search(n_neighbors, n_met, found["recall"])


def search_group(partition: Partition, group: int, search: Search) -> None:
    """Write the nearest rows of a group, how far its lists reach, and the forest of its edges."""
    view, cells, span = partition.view, partition.cells, partition.span(group)
    n_rows = cells.order.size
    lists = empty_lists(span.stop - span.start, search.n_listed(n_rows))
    positions, ring = np.arange(span.start, span.stop, dtype=np.int32), (0.0, search.n_met)
    search_cells(cells, positions, lists, n_first=N_FIRST, n_next=N_NEXT, ring=ring, n_jobs=1)
    numbers, squared, reach = _ranked(partition, span, search, *lists)
    if not search.is_exact:
        # Only what is proved has the same bits in any group; beyond it nothing is known.
        n_sure = search.n_sure(n_rows)
        numbers, squared = numbers[:, :n_sure], squared[:, :n_sure]
        reach = squared[:, -1].copy()
    mine = partition.order[span]
    write_array(view.piece("nearest", group), numbers[:, : search.n_neighbors].astype(np.int32))
    write_array(view.piece("reach", group), reach)
    write_array(
        view.piece("forest", group), spanning_forest(edges_of_lists(mine, numbers, squared))
    )


def _ranked(
    partition: Partition, span: slice, search: Search, values: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lists by exact distance: row numbers, squared distances, and their reach."""
    cells = partition.cells
    n_rows, n_listed = cells.order.size, indices.shape[1]
    lift = Lifted(cells.lift.points[span], cells.lift.half_squares[span])
    reach = np.full(len(values), np.inf)
    if n_listed < n_rows - 1:
        reach = certified_reach(lift, values[:, -1])
    squared = np.empty(indices.shape)
    rank_exactly(partition.rows, span.start, indices, squared)
    numbers = cells.order[indices].astype(np.int64)
    # Ties are in the order of positions, and are wanted in that of row numbers.
    tied = np.flatnonzero((np.diff(squared, axis=1) == 0.0).any(axis=1))
    numbers[tied], squared[tied] = sorted_lists(numbers[tied], squared[tied])
    doubtful = np.flatnonzero(squared[:, search.n_sure(n_rows) - 1] >= reach)
    for block in row_blocks(doubtful.size, DOUBTFUL_AT_ONCE):
        some = doubtful[block]
        found = _searched_again(partition, span.start + some, search, squared[some])
        numbers[some], squared[some] = found
        reach[some] = found[1][:, -1]
    return numbers, squared, reach


def _searched_again(
    partition: Partition, positions: np.ndarray, search: Search, squared: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of rows without proof, searched in 64 bits wherever a row can be as near."""
    cells, order = partition.cells, partition.order
    may_hold = _may_hold(cells, positions, np.sqrt(squared[:, -1]), search.n_met)
    lists = no_lists(*squared.shape)
    rows, mine = partition.rows[positions], order[positions].astype(np.int64)
    for cell in np.flatnonzero(may_hold.any(axis=0)):
        some, theirs = np.flatnonzero(may_hold[:, cell]), slice(*cells.starts[cell : cell + 2])
        found = nearest_among(
            rows[some],
            mine[some],
            partition.rows[theirs],
            order[theirs].astype(np.int64),
            n_listed=squared.shape[1],
        )
        lists[0][some], lists[1][some] = merged_lists((lists[0][some], lists[1][some]), found)
    return lists


def _may_hold(cells: Cells, positions: np.ndarray, radii: np.ndarray, n_met: float) -> np.ndarray:
    """Tell which cells can hold a row within a radius of each position, of those it may meet."""
    may_hold = np.empty((positions.size, cells.n_cells), np.bool_)
    cell_of = cells.cell_of(positions)
    radii = (radii * (1.0 + 1e-6) + 1e-30).astype(np.float32)
    for cell in np.unique(cell_of):
        some = np.flatnonzero(cell_of == cell)
        leans = cells.lift.points[positions[some], :-2] @ cells.centres[:, :-2].T
        leans -= leans[:, cell].copy()[:, None]
        is_near = cells.limits[cell] - leans <= radii[some, None] * cells.gaps[cell]
        may_hold[some] = is_near & (_before(cells, int(cell)) < n_met)
    return may_hold


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
