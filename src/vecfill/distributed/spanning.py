"""Stage: forests of all groups -> one spanning tree.

One process joins the forests, about two edges a row. Where the lists give out, tasks search for the
nearest row of another component, as in memory: the tree is the exact minimum spanning tree if
neighbours are exact. If cells were left out, lists count as if they had missed nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.search.tree import spanning_forest, tree_of_forest
from vecfill.method.search.tree_search import CellSearch, Found

QUERIES = 16384
"""Rows that search in one task; so few the driver searches for itself."""

FOUND = ("index", "squared", "sure_to")


def search_outside(
    partition: Partition, name: str, part: slice, number: int, is_near: bool
) -> None:
    """Write the first edges out of some rows' components: to near cells, or to any, proved."""
    view = partition.view
    queries, bounds, component = (
        read_array(view.piece("tree", name, what)) for what in ("queries", "bounds", "components")
    )
    found = _edges_out(partition, np.array(queries[part]), bounds[part], component, is_near=is_near)
    for what in FOUND:
        write_array(view.piece("tree", name, what, number), getattr(found, what))


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
        found = self._found(queries, bounds, component, is_near=True)
        return found.index, found.squared

    def outside(self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray) -> Found:
        """Return each query's first edge to another component no longer than its bound."""
        return self._found(queries, bounds, component, is_near=False)

    def _found(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray, *, is_near: bool
    ) -> Found:
        place = self.partition.place[queries].astype(np.int64)
        by_place = np.argsort(place, kind="stable")
        asked = (
            place[by_place],
            bounds[by_place],
            component[self.partition.order].astype(np.int32),
        )
        if queries.size <= QUERIES:
            found = _edges_out(self.partition, *asked, is_near=is_near)
        else:
            found = self._found_by_tasks(*asked, is_near=is_near)
        back = np.argsort(by_place)
        sure_to = found.sure_to if is_near else found.sure_to[back]
        return Found(found.index[back], found.squared[back], sure_to)

    def _found_by_tasks(
        self, positions: np.ndarray, bounds: np.ndarray, component: np.ndarray, *, is_near: bool
    ) -> Found:
        view, name = self.partition.view, f"round {next(self.rounds)}"
        write_array(view.piece("tree", name, "queries"), positions)
        write_array(view.piece("tree", name, "bounds"), bounds)
        write_array(view.piece("tree", name, "components"), component)
        common = {"partition": self.partition, "name": name, "is_near": is_near}
        tasks = [
            Task(
                f"tree {view.preparation}",
                f"{name}, {number}",
                search_outside,
                {**common, "part": part, "number": number},
                tuple(view.piece("tree", name, what, number) for what in FOUND),
            )
            for number, part in enumerate(row_blocks(positions.size, QUERIES))
        ]
        self.runner.run(tasks)
        parts = [[self.runner.read(read_array, path) for path in task.outputs] for task in tasks]
        return Found(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def spanned(runner: Runner, partition: Partition) -> None:
    """Run the stage: write the tree's neighbours of each row, as CSR lists."""
    view = partition.view
    outputs = (view.piece("tree", "indptr"), view.piece("tree", "indices"))
    joining = Task(f"tree {view.preparation}", "joined", spanned, {}, outputs)
    with runner.here(joining) as is_left:
        if is_left:
            for path, array in zip(outputs, _joined(runner, partition), strict=True):
                write_array(path, array)


def _joined(runner: Runner, partition: Partition) -> tuple[np.ndarray, np.ndarray]:
    """Return the tree's neighbours of each row as CSR lists: where they begin, and the rows."""
    view, groups = partition.view, range(len(partition.groups))
    forests = [runner.read(read_array, view.piece("forest", group)) for group in groups]
    forest = spanning_forest(np.concatenate(forests))
    by_place = np.concatenate(
        [runner.read(read_array, view.piece("reach", group)) for group in groups]
    )
    write_array(view.piece("tree", "reach"), by_place)
    reach = np.empty_like(by_place)
    reach[partition.order] = by_place
    tree = tree_of_forest(forest, reach, _TaskSearch(runner, partition))
    ends = np.concatenate([tree.left, tree.right])
    others = np.concatenate([tree.right, tree.left])
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=view.layout.n_rows)
    return np.concatenate([[0], np.cumsum(counts)]), others[order].astype(np.int32)
