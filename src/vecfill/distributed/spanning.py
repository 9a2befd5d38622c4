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
from vecfill.method.search.forest import spanning_forest, tree_of_forest
from vecfill.method.search.tree_search import CellSearch, Found

QUERIES = 16384
"""Rows that search in one task."""

FOUND = ("index", "squared", "sure_to")


def search_outside(
    partition: Partition, name: str, part: slice, number: int, is_near: bool
) -> None:
    """Write the first edges out of some rows' components: to near cells, or to any, proved."""
    view = partition.view

    def read(*names: object) -> np.ndarray:
        return read_array(view.piece("tree", *names))

    positions, bounds = (np.array(read(name, what)[part]) for what in ("queries", "bounds"))
    # Rows are numbered by position here, so that near rows are near on disk.
    cells = replace(partition.cells, order=np.arange(partition.order.size))
    search = CellSearch(partition.rows, read("reach"), cells, 1, partition.order)
    component = read(name, "components")
    if is_near:
        found = Found(*search.near(positions, bounds, component), np.empty(0))
    else:
        found = search.outside(positions, bounds, component)
    for what in FOUND:
        write_array(view.piece("tree", name, what, number), getattr(found, what))


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
        partition, view = self.partition, self.partition.view
        name = f"round {next(self.rounds)}"
        by_place = np.argsort(partition.place[queries], kind="stable")
        positions = partition.place[queries[by_place]].astype(np.int64)
        write_array(view.piece("tree", name, "queries"), positions)
        write_array(view.piece("tree", name, "bounds"), bounds[by_place])
        components = component[partition.order].astype(np.int32)
        write_array(view.piece("tree", name, "components"), components)
        common = {"partition": partition, "name": name, "is_near": is_near}
        tasks = [
            Task(
                f"tree {view.preparation}",
                f"{name}, {number}",
                search_outside,
                {**common, "part": part, "number": number},
                tuple(view.piece("tree", name, what, number) for what in FOUND),
            )
            for number, part in enumerate(row_blocks(queries.size, QUERIES))
        ]
        self.runner.run(tasks)
        parts = [[self.runner.read(read_array, path) for path in task.outputs] for task in tasks]
        index, squared, sure_to = (np.concatenate(each) for each in zip(*parts, strict=True))
        back = np.argsort(by_place)
        return Found(index[back], squared[back], sure_to if is_near else sure_to[back])


def spanned(runner: Runner, partition: Partition) -> None:
    """Run the stage: write the tree's neighbours of each row, as CSR lists."""
    view = partition.view
    outputs = (view.piece("tree", "indptr"), view.piece("tree", "indices"))
    done = Task(f"tree {view.preparation}", "joined", spanned, {}, outputs)
    if done.is_done:
        return
    groups = range(len(partition.groups))
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
    write_array(outputs[0], np.concatenate([[0], np.cumsum(counts)]))
    write_array(outputs[1], others[order].astype(np.int32))
