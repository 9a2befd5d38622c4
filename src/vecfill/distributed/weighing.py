"""Stage: each row that is not known, or is hidden, as a convex mix of its neighbours.

Columns of a row are in the order of row numbers, as in memory, so that the weights have the same
bits however rows are grouped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import piece_about, read_array
from vecfill.distributed.tasks import Runner
from vecfill.method.engine import row_blocks
from vecfill.method.graph import lists_of_rows
from vecfill.method.weights import convex_weights
from vecfill.model.prediction import misfit_of
from vecfill.model.space import WeightsKey

ROWS_AT_ONCE = 16384
"""Rows whose neighbours are gathered together: 8 neighbours of 100 features are 52 MB."""

PARTS = ("rows", "indptr", "indices", "weights", "misfit")


def folder_of(key: WeightsKey) -> str:
    """Return the folder of what depends on the weights of a setting."""
    return key_name(key).replace(".", "_").replace(", ", "-").replace(" ", "_")


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


def pieces_of(partition: Partition, key: WeightsKey) -> list[tuple[Path, ...]]:
    """Return the pieces of the weights of each group, in the order of `PARTS`."""
    folder, piece = folder_of(key), partition.view.piece
    groups = range(len(partition.groups))
    return [tuple(piece("weights", folder, part, group) for part in PARTS) for group in groups]


def weigh_group(partition: Partition, key: WeightsKey, group: int) -> tuple[np.ndarray, ...]:
    """Return the weights of the wanted rows of a group, and how badly neighbours explain them.

    Wanted are unknown rows and hidden ones; known rows that stay are never mixed.
    """
    view = partition.view
    span = partition.span(group)
    numbers, rows = partition.order[span], partition.rows[span]
    is_wanted = read_array(view.layout.piece("known", "wanted"))
    places = np.flatnonzero(is_wanted[numbers])
    nearest = read_array(view.piece("nearest", group))
    parts = [[np.empty(0, kind) for kind in (np.int64, np.int32, np.float64, np.float64)]]
    for block in row_blocks(places.size, ROWS_AT_ONCE):
        at = places[block]
        parts.append(_weighed(partition, key, numbers[at], rows[at], nearest[at]))
    counts, neighbors, weights, misfit = map(np.concatenate, zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return numbers[places], indptr, neighbors, weights, misfit


def _weighed(
    partition: Partition,
    key: WeightsKey,
    numbers: np.ndarray,
    rows: np.ndarray,
    nearest: np.ndarray,
) -> list[np.ndarray]:
    """Return numbers of neighbours, neighbours, weights and misfit of some rows."""
    degree = min(key.min_degree, max(1, partition.view.layout.n_rows - 1))
    indptr, neighbors = lists_of_rows(
        *_tree_lists(partition, numbers), np.array(nearest), min_degree=degree
    )
    fitted_numbers, columns = np.unique(neighbors, return_inverse=True)
    fitted = partition.rows[partition.place[fitted_numbers]]
    shape = (numbers.size, fitted_numbers.size)
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
    return [np.diff(indptr), neighbors, weights.data, misfit]


def _tree_lists(partition: Partition, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tree's neighbours of some rows as CSR lists."""
    starts = read_array(partition.view.piece("tree", "indptr"))
    indices = read_array(partition.view.piece("tree", "indices"))
    counts = starts[numbers + 1] - starts[numbers]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    place = np.repeat(starts[numbers] - indptr[:-1], counts) + np.arange(indptr[-1])
    return indptr, indices[place]


def weighed(runner: Runner, partition: Partition, key: WeightsKey) -> None:
    """Run the stage."""
    runner.run_each(
        f"weights {partition.view.preparation}",
        f"{key_name(key)}, group",
        weigh_group,
        pieces_of(partition, key),
        by="group",
        partition=partition,
        key=key,
    )
    # The rows are needed no more where tasks run in this process; equations are what comes next.
    partition.forget()


def n_weights(partition: Partition, key: WeightsKey) -> int:
    """Return about how many weights there are, by the size of their pieces."""
    place = PARTS.index("indices")
    about = [piece_about(pieces[place]) for pieces in pieces_of(partition, key)]
    return sum(piece["bytes"] for piece in about if piece is not None) // 4


def all_weights(partition: Partition, key: WeightsKey) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Return the wanted rows, ascending, their weights on all rows, and their misfit."""
    groups = [[read_array(path) for path in paths] for paths in pieces_of(partition, key)]
    rows, indptrs, indices, values, misfit = zip(*groups, strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in indptrs]))])
    rows, indices, values, misfit = map(np.concatenate, (rows, indices, values, misfit))
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    weights = csr_array((values, indices, indptr), (rows.size, partition.view.layout.n_rows))
    order = np.argsort(rows)
    return rows[order], csr_array(weights[order]), misfit[order]
