"""Stage: each row that is not known, or is hidden, as a convex mix of its neighbours.

Columns of a row are in the order of row numbers, as in memory, so that the weights have the same
bits however rows are grouped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import piece_about, read_array, write_array
from vecfill.distributed.tasks import Runner, Task
from vecfill.method.engine import row_blocks
from vecfill.method.graph import lists_of_rows
from vecfill.method.weights import convex_weights
from vecfill.model.prediction import misfit_of
from vecfill.model.space import WeightsKey

ROWS_AT_ONCE = 16384
"""Rows whose neighbours are gathered together."""

PARTS = ("rows", "indptr", "indices", "weights", "misfit")


def key_name(key: WeightsKey) -> str:
    """Return a name for the weights of a setting.

    Examples
    --------
    >>> key_name(WeightsKey("unit_rows", 8, 0.1))
    'degree 8, ridge 0.1, simplex, floor 0.1'
    """
    return (
        f"degree {key.min_degree}, ridge {key.ridge!r}, {key.weight_rule}, "
        f"floor {key.weight_floor!r}"
    )


def pieces_of(partition: Partition, key: WeightsKey, group: int) -> list[Path]:
    """Return the pieces of the weights of a group, in the order of `PARTS`."""
    folder = key_name(key).replace(".", "_").replace(", ", "-").replace(" ", "_")
    return [partition.view.piece("weights", folder, part, group) for part in PARTS]


def weigh_group(partition: Partition, group: int, key: WeightsKey) -> None:
    """Write the weights of the wanted rows of a group, and how badly their neighbours explain them.

    Wanted are unknown rows and hidden ones; known rows that stay are never mixed.
    """
    view = partition.view
    span = partition.span(group)
    mine = partition.order[span]
    is_wanted = read_array(view.layout.piece("known", "wanted"))
    places = np.flatnonzero(is_wanted[mine])
    nearest = read_array(view.piece("nearest", group))
    rows = partition.rows[span]
    found = [
        _weighed(partition, key, mine[some], rows[some], nearest[some])
        for some in (places[block] for block in row_blocks(places.size, ROWS_AT_ONCE))
    ]
    parts = [np.concatenate(each) for each in zip(*found, strict=True)] if found else _nothing()
    parts[1] = np.concatenate([[0], np.cumsum(parts[1])])
    for piece, part in zip(
        pieces_of(partition, key, group), [mine[places], *parts[1:]], strict=True
    ):
        write_array(piece, part)


def _nothing() -> list[np.ndarray]:
    return [np.empty(0, kind) for kind in (np.int32, np.int64, np.int32, np.float64, np.float64)]


def _weighed(
    partition: Partition, key: WeightsKey, mine: np.ndarray, rows: np.ndarray, nearest: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return rows, their numbers of neighbours, neighbours, weights and misfit."""
    indptr, neighbors = lists_of_rows(
        *_tree_lists(partition, mine), np.array(nearest), min_degree=_degree(partition, key)
    )
    numbers, columns = np.unique(neighbors, return_inverse=True)
    fitted = partition.rows[partition.place[numbers]]
    shape = (mine.size, numbers.size)
    graph = csr_array((np.ones(columns.size, np.bool_), columns.astype(np.int32), indptr), shape)
    weights = convex_weights(
        rows,
        graph,
        fitted=fitted,
        form=key.weight_rule,
        ridge=key.ridge,
        weight_floor=key.weight_floor,
        n_jobs=1,
    )
    misfit = misfit_of(rows, weights, fitted)
    return mine, np.diff(indptr), neighbors, weights.data, misfit


def _degree(partition: Partition, key: WeightsKey) -> int:
    return min(key.min_degree, max(1, partition.view.layout.n_rows - 1))


def _tree_lists(partition: Partition, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tree's neighbours of some rows as CSR lists."""
    starts = read_array(partition.view.piece("tree", "indptr"))
    indices = read_array(partition.view.piece("tree", "indices"))
    counts = starts[mine + 1] - starts[mine]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    place = np.repeat(starts[mine] - indptr[:-1], counts) + np.arange(indptr[-1])
    return indptr, indices[place]


def weighed(runner: Runner, partition: Partition, key: WeightsKey) -> None:
    """Run the stage."""
    runner.run(
        Task(
            f"weights {partition.view.preparation}",
            f"{key_name(key)}, group {group}",
            weigh_group,
            {"partition": partition, "group": group, "key": key},
            tuple(pieces_of(partition, key, group)),
        )
        for group in range(len(partition.groups))
    )
    # The rows are needed no more where tasks run in this process; equations are what comes next.
    partition.forget()


def n_weights(partition: Partition, key: WeightsKey) -> int:
    """Return about how many weights there are, by the size of their pieces."""
    pieces = [
        pieces_of(partition, key, g)[PARTS.index("indices")] for g in range(len(partition.groups))
    ]
    return sum((piece_about(piece) or {"bytes": 0})["bytes"] for piece in pieces) // 4


def all_weights(partition: Partition, key: WeightsKey) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Return the wanted rows, ascending, their weights on all rows, and their misfit."""
    groups = range(len(partition.groups))
    parts = [[read_array(path) for path in pieces_of(partition, key, g)] for g in groups]
    rows = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([np.diff(part[1]) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([part[2] for part in parts])
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    values = np.concatenate([part[3] for part in parts])
    misfit = np.concatenate([part[4] for part in parts])
    weights = csr_array((values, indices, indptr), (rows.size, partition.view.layout.n_rows))
    order = np.argsort(rows)
    return rows[order], csr_array(weights[order]), misfit[order]
