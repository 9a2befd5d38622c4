"""Candidates for nearest rows by cells, and how many pairs that looks at."""

from __future__ import annotations

import numpy as np

from vecfill.method.engine import Workers
from vecfill.method.search.cell_search import search_cells
from vecfill.method.search.cells import Cells

N_FIRST = 8
"""Cells met before any bound is asked for: a radius must come from somewhere."""

N_NEXT = 16
"""Cells met in the first batch after a bound; each batch doubles, so that batches stay few."""

N_PROBES = 8
"""Cells that search before all others, to see whether bounds prune."""


def empty_lists(n_rows: int, n_listed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists that hold nothing yet: products below any, and of no row."""
    values = np.full((n_rows, n_listed), -np.inf, np.float32)
    return values, np.full((n_rows, n_listed), -1, np.int32)


def share_of_pairs(cells: Cells, n_listed: int, *, n_jobs: Workers = None) -> float:
    """Return about the share of all pairs that a search by cells would look at.

    A few cells search and are measured; what they find is thrown away.
    """
    by_size = np.argsort(np.diff(cells.starts), kind="stable")
    probes = np.sort(by_size[:: max(1, cells.n_cells // N_PROBES)][:N_PROBES])
    spans = zip(cells.starts[probes], cells.starts[probes + 1], strict=True)
    positions = np.concatenate([np.arange(*span, dtype=np.int32) for span in spans])
    _, n_met = _searched(cells, positions, n_listed, n_jobs)
    return n_met / (cells.order.size * positions.size)


def candidates_by_cells(
    cells: Cells, n_listed: int, *, n_jobs: Workers = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_listed` largest products of each position, and the positions they are of.

    Nothing nearer than the last candidate is missed, but for the error of the products.
    """
    positions = np.arange(cells.order.size, dtype=np.int32)
    return _searched(cells, positions, n_listed, n_jobs)[0]


def _searched(
    cells: Cells, positions: np.ndarray, n_listed: int, n_jobs: Workers
) -> tuple[tuple[np.ndarray, np.ndarray], int]:
    """Return the candidates of these positions, and how many pairs were looked at."""
    lists = empty_lists(positions.size, n_listed)
    n_met = search_cells(cells, positions, lists, n_first=N_FIRST, n_next=N_NEXT, n_jobs=n_jobs)
    return lists, n_met
