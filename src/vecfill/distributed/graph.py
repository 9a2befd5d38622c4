"""Stage: who is near whom, exactly within the cells that each row may meet, and one tree of all.

The search is that of the path in memory, over rows that are mapped from disk. A row meets the cells
that can hold a nearer row than it has, so the result is that of brute force. Where that would take
too long, each cell meets only the nearest cells, up to a number of rows that is read off a sample:
how many rows lie nearer than the cell of each true neighbour. Products in 32 bits choose candidates
and exact distances decide, as in memory, so neither groups nor tiles decide any bit.

Each group leaves a forest, and one process joins the forests, about two edges a row. Where the
lists give out, tasks search for the nearest row of another component, as in memory: the tree is the
exact minimum spanning tree if neighbours are exact. If cells were left out, lists count as if they
had missed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import read_array, read_values, write_array
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
from vecfill.method.search.distances import Lifted, certified_reach
from vecfill.method.search.neighbors import RECALL_SAMPLE
from vecfill.method.search.scans import rank_exactly
from vecfill.method.search.tree import edges_of_lists, spanning_forest, tree_of_forest
from vecfill.method.search.tree_search import CellSearch, Found

SLACK = 8
"""Rows listed beyond those asked for: most proofs of the tree need no further search. A guess."""

N_SURE = 4
"""Of these, so many are proved like those asked for if cells are left out. A guess: half."""

MOST_EXACT_WORK = 5e12
"""Pairs times features that are looked at exactly unasked: more takes as long as all the rest. It
is about a million rows of 100 features (docs/scale.md)."""

DEFAULT_RECALL = 0.95
"""At two million rows it costs .0013 of centred cosine, and takes 56 % as long (docs/scale.md)."""

DOUBTFUL_AT_ONCE = 4096
"""Rows whose distances to all centres are held together: 16 MB for a thousand cells."""


LISTS = ("nearest", "reach", "forest")

QUERIES = 16384
"""Rows that search in one task; so few the driver searches for itself. A guess: below it, sending
tasks costs more than the search."""


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


def plan_search(partition: Partition, n_neighbors: int, recall: float | None) -> dict[str, Any]:
    """Return how many rows each cell must meet for a recall; ``None``: exactly if that is quick."""
    cells = partition.cells
    n_rows, n_listed = cells.order.size, Search(n_neighbors, np.inf, 1.0).n_listed(len(cells.order))
    if recall is None:
        n_pairs = share_of_pairs(cells, n_listed, n_jobs=1) * n_rows**2
        recall = 1.0 if n_pairs * cells.lift.n_features <= MOST_EXACT_WORK else DEFAULT_RECALL
    plan = {"n_met": None, "recall": 1.0}
    if recall < 1.0:
        before = np.sort(_rows_before(cells, n_neighbors, n_listed).ravel())
        n_met = int(before[int(np.ceil(recall * before.size)) - 1]) + 1
        if n_met < n_rows - 1:
            n_met = max(n_met, 2 * n_listed)
            plan = {"n_met": n_met, "recall": float((before < n_met).mean())}
    return plan


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
    plan = runner.read(read_values, piece)
    n_met = np.inf if plan["n_met"] is None else float(plan["n_met"])
    return Search(n_neighbors, n_met, plan["recall"])


def search_group(partition: Partition, search: Search, group: int) -> tuple[np.ndarray, ...]:
    """Return the nearest rows of a group, how far its lists reach, and the forest of its edges."""
    cells, span = partition.cells, partition.span(group)
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
    forest = spanning_forest(edges_of_lists(partition.order[span], numbers, squared))
    return numbers[:, : search.n_neighbors].astype(np.int32), reach, forest


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
        rows = doubtful[block]
        lists = _searched_again(partition, span.start + rows, search, squared[rows])
        numbers[rows], squared[rows] = lists
        reach[rows] = lists[1][:, -1]
    return numbers, squared, reach


def _searched_again(
    partition: Partition, positions: np.ndarray, search: Search, squared: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of rows without proof, searched in 64 bits wherever a row can be as near."""
    cells, order = partition.cells, partition.order
    may_hold = _may_hold(cells, positions, np.sqrt(squared[:, -1]), search.n_met)
    lists = no_lists(*squared.shape)
    rows, numbers = partition.rows[positions], order[positions].astype(np.int64)
    for cell in np.flatnonzero(may_hold.any(axis=0)):
        at, span = np.flatnonzero(may_hold[:, cell]), slice(*cells.starts[cell : cell + 2])
        nearest = nearest_among(
            rows[at],
            numbers[at],
            partition.rows[span],
            order[span].astype(np.int64),
            n_listed=squared.shape[1],
        )
        lists[0][at], lists[1][at] = merged_lists((lists[0][at], lists[1][at]), nearest)
    return lists


def _may_hold(cells: Cells, positions: np.ndarray, radii: np.ndarray, n_met: float) -> np.ndarray:
    """Tell which cells can hold a row within a radius of each position, of those it may meet."""
    may_hold = np.empty((positions.size, cells.n_cells), np.bool_)
    cell_of = cells.cell_of(positions)
    radii = (radii * (1.0 + 1e-6) + 1e-30).astype(np.float32)
    for cell in np.unique(cell_of):
        at = np.flatnonzero(cell_of == cell)
        leans = cells.lift.points[positions[at], :-2] @ cells.centres[:, :-2].T
        leans -= leans[:, cell].copy()[:, None]
        is_near = cells.limits[cell] - leans <= radii[at, None] * cells.gaps[cell]
        may_hold[at] = is_near & (_before(cells, int(cell)) < n_met)
    return may_hold


def searched(runner: Runner, partition: Partition, search: Search) -> None:
    """Run the first part of the stage: neighbours, and a forest of each group."""
    view, groups = partition.view, range(len(partition.groups))
    runner.run_each(
        f"neighbours {view.preparation}",
        "group",
        search_group,
        [tuple(view.piece(kind, group) for kind in LISTS) for group in groups],
        by="group",
        partition=partition,
        search=search,
    )


ASKED = ("queries", "bounds", "components")
FOUND = ("index", "squared", "sure_to")
"""What a search out of components reads, and what it writes."""


def search_outside(
    partition: Partition, name: str, part: slice, is_near: bool
) -> tuple[np.ndarray, ...]:
    """Return the first edges out of some rows' components: to near cells, or to any, proved."""
    view = partition.view
    queries, bounds, component = (read_array(view.piece("tree", name, kind)) for kind in ASKED)
    edges = _edges_out(partition, np.array(queries[part]), bounds[part], component, is_near=is_near)
    return tuple(getattr(edges, kind) for kind in FOUND)


def _edges_out(
    partition: Partition,
    positions: np.ndarray,
    bounds: np.ndarray,
    component: np.ndarray,
    *,
    is_near: bool,
) -> Found:
    """Return the first edges out of the components of rows at some positions."""
    # Rows are numbered by position here, so that near rows are near on disk.
    cells = replace(partition.cells, order=np.arange(partition.order.size))
    reach = read_array(partition.view.piece("tree", "reach"))
    search = CellSearch(partition.rows, reach, cells, 1, partition.order)
    if is_near:
        return Found(*search.near(positions, bounds, component), np.empty(0))
    return search.outside(positions, bounds, component)


class _TaskSearch:
    """Looks for the nearest row of another component by tasks, a round at a time."""

    def __init__(self, runner: Runner, partition: Partition) -> None:
        self.runner, self.partition = runner, partition
        self.rounds = count()

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an edge out for each query that has one to the nearest cells."""
        edges = self._found(queries, bounds, component, is_near=True)
        return edges.index, edges.squared

    def outside(self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray) -> Found:
        """Return each query's first edge to another component no longer than its bound."""
        return self._found(queries, bounds, component, is_near=False)

    def _found(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray, *, is_near: bool
    ) -> Found:
        place = self.partition.place[queries].astype(np.int64)
        by_place = np.argsort(place, kind="stable")
        component = component[self.partition.order].astype(np.int32)
        by_position = place[by_place], bounds[by_place], component
        search = self._by_tasks if queries.size > QUERIES else partial(_edges_out, self.partition)
        edges = search(*by_position, is_near=is_near)
        back = np.argsort(by_place)
        sure_to = edges.sure_to if is_near else edges.sure_to[back]
        return Found(edges.index[back], edges.squared[back], sure_to)

    def _by_tasks(self, *arrays: np.ndarray, is_near: bool) -> Found:
        """Return the edges that tasks find for positions, bounds and components."""
        view, name = self.partition.view, f"round {next(self.rounds)}"
        for kind, array in zip(ASKED, arrays, strict=True):
            write_array(view.piece("tree", name, kind), array)
        common = {"partition": self.partition, "name": name, "is_near": is_near}
        tasks = [
            Task(
                f"tree {view.preparation}",
                f"{name}, {number}",
                search_outside,
                {**common, "part": part},
                tuple(view.piece("tree", name, kind, number) for kind in FOUND),
            )
            for number, part in enumerate(row_blocks(arrays[0].size, QUERIES))
        ]
        self.runner.run(tasks)
        outputs = zip(*(task.outputs for task in tasks), strict=True)
        return Found(*(self.runner.joined(paths) for paths in outputs))


def spanned(runner: Runner, partition: Partition) -> None:
    """Run the second part of the stage: write the tree's neighbours of each row, as CSR lists."""
    view = partition.view
    outputs = (view.piece("tree", "indptr"), view.piece("tree", "indices"))
    joining = Task(f"tree {view.preparation}", "joined", spanned, {}, outputs)
    with runner.here(joining) as remains:
        if remains:
            for path, array in zip(outputs, _joined(runner, partition), strict=True):
                write_array(path, array)


def _joined(runner: Runner, partition: Partition) -> tuple[np.ndarray, np.ndarray]:
    """Return the tree's neighbours of each row as CSR lists: where they begin, and the rows."""
    view, groups = partition.view, range(len(partition.groups))
    forest = spanning_forest(runner.joined(view.piece("forest", group) for group in groups))
    by_place = runner.joined(view.piece("reach", group) for group in groups)
    write_array(view.piece("tree", "reach"), by_place)
    reach = np.empty_like(by_place)
    reach[partition.order] = by_place
    tree = tree_of_forest(forest, reach, _TaskSearch(runner, partition))
    ends = np.concatenate([tree.left, tree.right])
    neighbors = np.concatenate([tree.right, tree.left])
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=view.layout.n_rows)
    return np.concatenate([[0], np.cumsum(counts)]), neighbors[order].astype(np.int32)
