"""Stage: forests of all groups -> one spanning tree.

One process joins the forests, about two edges a row. Where the lists give out, tasks search for the
nearest row of another component: everywhere if neighbours are exact, so that the tree is the exact
minimum spanning tree; otherwise the nearest cells that hold another component.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from scipy.spatial.distance import cdist

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.search.cells import evenly_spaced
from vecfill.method.search.distances import as_targets, pair_distances
from vecfill.method.search.forest import spanning_forest, tree_of_forest
from vecfill.method.search.tree_search import Found, first_edges

QUERIES = 1024
"""Rows that search in one task."""

TARGETS = 4096
"""Rows that they are compared with at once, in 64 bits."""

MOST_SEEKERS = 512
"""Rows of a component that search, evenly spaced, if neighbours are not exact."""

N_CELLS = 8
"""Cells with rows of other components that they look at."""


class _Edges:
    """The first edge out of its component for each of some rows, as far as has been searched."""

    def __init__(self, numbers: np.ndarray, rows: np.ndarray, mine: np.ndarray) -> None:
        self.numbers, self.rows, self.mine = numbers, rows, mine
        self.index = np.full(numbers.size, -1, np.int64)
        self.squared = np.full(numbers.size, np.inf)

    def meet(
        self,
        numbers: np.ndarray,
        targets: np.ndarray,
        theirs: np.ndarray,
        bounds: np.ndarray,
        some: np.ndarray,
    ) -> None:
        """Compare `some` of the rows with all targets of other components within the bounds."""
        for block in row_blocks(len(targets), TARGETS):
            compared = as_targets(np.ascontiguousarray(targets[block]))
            squared, error = compared.squared_from(self.rows[some])
            squared[self.mine[some][:, None] == theirs[block]] = np.inf
            limit = np.minimum(bounds[some], self.squared[some])
            limit = np.minimum((squared + error).min(axis=1), limit)
            is_near = np.isfinite(squared) & (squared - error <= limit[:, None])
            place, other = np.nonzero(is_near)
            length = pair_distances(self.rows, compared.targets, some[place], other)
            old = np.flatnonzero(self.index[some] >= 0)
            place = np.concatenate([place, old])
            found = np.concatenate([numbers[block][other], self.index[some[old]]])
            length = np.concatenate([length, self.squared[some[old]]])
            row = self.numbers[some[place]]
            self.index[some], self.squared[some] = first_edges(place, row, found, length, some.size)


def _queries(partition: Partition, name: str, part: slice) -> tuple[np.ndarray, ...]:
    view = partition.view
    numbers = read_array(view.piece("tree", name, "queries"))[part]
    bounds = read_array(view.piece("tree", name, "bounds"))[part]
    component = read_array(view.piece("tree", name, "components"))
    return numbers, bounds, component


def _write_found(partition: Partition, name: str, number: int, edges: _Edges) -> None:
    view = partition.view
    write_array(view.piece("tree", name, "index", number), edges.index)
    write_array(view.piece("tree", name, "squared", number), edges.squared)


def search_everywhere(partition: Partition, name: str, part: slice, number: int) -> None:
    """Write the first edges of some rows, among all rows of other components."""
    numbers, bounds, component = _queries(partition, name, part)
    rows = partition.rows_at(partition.place[numbers])
    edges = _Edges(numbers, rows, component[numbers])
    only = read_array(partition.view.piece("tree", name, "only"))
    # No row of a cell is nearer than its centre less its radius; rounding is allowed for.
    away = cdist(rows, partition.centre(slice(None)))
    nearest = away - partition.radii - 1e-9 * (away + partition.radii)
    nearest = np.maximum(nearest, 0.0) ** 2
    for cell in np.argsort(away.sum(axis=0), kind="stable"):
        limits = np.minimum(bounds, edges.squared)
        some = np.flatnonzero((nearest[:, cell] <= limits) & (only[cell] != edges.mine))
        first, last = partition.starts[cell : cell + 2]
        if some.size and first < last:
            theirs = partition.order[first:last].astype(np.int64)
            cell_rows = partition.cell_rows(int(cell))
            edges.meet(theirs, cell_rows, component[theirs], bounds, some)
    _write_found(partition, name, number, edges)


def search_near(partition: Partition, name: str, part: slice, number: int) -> None:
    """Write the first edges of some rows, among the nearest cells that hold other components."""
    numbers, bounds, component = _queries(partition, name, part)
    only = read_array(partition.view.piece("tree", name, "only"))
    positions = partition.place[numbers]
    rows = partition.rows_at(positions)
    edges = _Edges(numbers, rows, component[numbers])
    cells = np.searchsorted(partition.starts, positions, side="right") - 1
    kinds, which = np.unique(np.column_stack([cells, edges.mine]), axis=0, return_inverse=True)
    for kind, (cell, mine) in enumerate(kinds):
        some = np.flatnonzero(which.ravel() == kind)
        away = ((partition.centres - partition.centres[cell]) ** 2).sum(axis=1)
        near = np.argsort(away, kind="stable")
        near = near[(only[near] != mine) & (only[near] != _EMPTY)][:N_CELLS]
        for other in near:
            first, last = partition.starts[other : other + 2]
            theirs = partition.order[first:last].astype(np.int64)
            edges.meet(theirs, partition.cell_rows(int(other)), component[theirs], bounds, some)
    _write_found(partition, name, number, edges)


_MIXED, _EMPTY = -1, -2
"""A cell that holds several components, or no row."""


class _TaskSearch:
    """Looks for the nearest row of another component by tasks, a round at a time."""

    def __init__(self, runner: Runner, partition: Partition, *, is_exact: bool) -> None:
        self.runner, self.partition, self.is_exact = runner, partition, is_exact
        self.rounds = count()

    def near(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return no edge: one round of tasks finds them all."""
        del bounds, component
        return np.full(queries.size, -1, np.int64), np.full(queries.size, np.inf)

    def outside(self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray) -> Found:
        """Return each query's first edge to another component no longer than its bound."""
        seekers = np.arange(queries.size)
        if not self.is_exact:
            seekers = _seekers(component[queries])
        index, squared = np.full(queries.size, -1, np.int64), np.full(queries.size, np.inf)
        index[seekers], squared[seekers] = self._found(queries[seekers], bounds[seekers], component)
        sure_to = np.full(queries.size, np.inf)
        if self.is_exact:
            sure_to = np.minimum(squared, np.nextafter(bounds, np.inf))
        return Found(index, squared, sure_to)

    def _found(
        self, queries: np.ndarray, bounds: np.ndarray, component: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        view, name = self.partition.view, f"round {next(self.rounds)}"
        write_array(view.piece("tree", name, "queries"), queries)
        write_array(view.piece("tree", name, "bounds"), bounds)
        write_array(view.piece("tree", name, "components"), component)
        write_array(view.piece("tree", name, "only"), self._only(component))
        function = search_everywhere if self.is_exact else search_near
        parts = row_blocks(queries.size, QUERIES)
        tasks = [
            Task(
                f"tree {view.preparation}",
                f"{name}, {number}",
                function,
                {"partition": self.partition, "name": name, "part": part, "number": number},
                tuple(view.piece("tree", name, what, number) for what in ("index", "squared")),
            )
            for number, part in enumerate(parts)
        ]
        self.runner.run(tasks)
        found = [[self.runner.read(read_array, path) for path in task.outputs] for task in tasks]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    def _only(self, component: np.ndarray) -> np.ndarray:
        """Return the one component that each cell holds."""
        partition = self.partition
        only = np.full(partition.starts.size - 1, _EMPTY, np.int64)
        filled = np.flatnonzero(np.diff(partition.starts) > 0)
        theirs = component[partition.order]
        lowest = np.minimum.reduceat(theirs, partition.starts[filled])
        highest = np.maximum.reduceat(theirs, partition.starts[filled])
        only[filled] = np.where(lowest == highest, lowest, _MIXED)
        return only


def _seekers(component: np.ndarray) -> np.ndarray:
    """Return places of a few rows of each component."""
    order = np.argsort(component, kind="stable")
    begins = np.flatnonzero(np.diff(component[order], prepend=-1))
    spans = zip(begins, [*begins[1:], order.size], strict=True)
    chosen = [order[low + evenly_spaced(int(high - low), MOST_SEEKERS)] for low, high in spans]
    return np.sort(np.concatenate(chosen))


def spanned(runner: Runner, partition: Partition, *, is_exact: bool) -> None:
    """Run the stage: write the tree's neighbours of each row, as CSR lists."""
    view = partition.view
    outputs = (view.piece("tree", "indptr"), view.piece("tree", "indices"))
    done = Task(f"tree {view.preparation}", "joined", spanned, {}, outputs)
    if done.is_done:
        return
    groups = range(len(partition.groups))
    forests = [runner.read(read_array, view.piece("forest", group)) for group in groups]
    reach = np.empty(view.layout.n_rows)
    for group in groups:
        first, last = partition.group_starts[group : group + 2]
        mine = partition.order[first:last]
        reach[mine] = runner.read(read_array, view.piece("reach", group))
    forest = spanning_forest(np.concatenate(forests))
    search = _TaskSearch(runner, partition, is_exact=is_exact)
    tree = tree_of_forest(forest, reach, search)
    ends = np.concatenate([tree.left, tree.right])
    others = np.concatenate([tree.right, tree.left])
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=view.layout.n_rows)
    write_array(outputs[0], np.concatenate([[0], np.cumsum(counts)]))
    write_array(outputs[1], others[order].astype(np.int32))
