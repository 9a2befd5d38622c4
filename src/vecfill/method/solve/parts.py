"""Weights -> the parts that the unknown rows' equations are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee

from vecfill._types import KnownMask


def split_weights(weights: csr_array, is_known: KnownMask) -> tuple[csr_array, csr_array]:
    """Return the unknown rows of the weights: their columns on known and on unknown rows.

    Examples
    --------
    >>> weights = csr_array(np.array([[0, 1.0], [0.5, 0.5]]))
    >>> on_known, on_unknown = split_weights(weights, np.array([True, False]))
    >>> on_known.toarray(), on_unknown.toarray()
    (array([[0.5]]), array([[0.5]]))
    """
    return split_columns(weights[np.flatnonzero(~is_known)], is_known)


def split_columns(unknown_rows: csr_array, is_known: KnownMask) -> tuple[csr_array, csr_array]:
    """Return the columns on known and on unknown rows of weights that only unknown rows have."""
    on_known = csr_array(unknown_rows[:, np.flatnonzero(is_known)])
    return on_known, csr_array(unknown_rows[:, np.flatnonzero(~is_known)])


def cut_off_rows(weights: csr_array, is_known: KnownMask) -> np.ndarray:
    """Return the unknown rows that no positive weights connect to a known one.

    Nothing determines their vectors: the equations have no single solution.

    Examples
    --------
    >>> weights = csr_array(np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 1.0, 0]]))
    >>> cut_off_rows(weights, np.array([True, False, False]))
    array([1, 2])
    """
    n_rows = is_known.size
    entry = weights.tocoo()
    is_link = entry.data > 0
    known = np.flatnonzero(is_known)
    # What reaches a known row is what can be reached against the arrows from a new node that
    # leads to all known rows.
    tail = np.concatenate([entry.col[is_link], np.full(known.size, n_rows)])
    head = np.concatenate([entry.row[is_link], known])
    backwards = csr_array((np.ones(tail.size), (tail, head)), (n_rows + 1, n_rows + 1))
    reached = breadth_first_order(backwards, n_rows, return_predecessors=False)
    is_cut_off = np.ones(n_rows + 1, np.bool_)
    is_cut_off[reached] = False
    return np.flatnonzero(is_cut_off[:n_rows] & ~is_known)


@dataclass(frozen=True)
class OrderedParts:
    """The weights of the unknown rows on known and on unknown rows, rows in an `order`."""

    on_known: csr_array
    on_unknown: csr_array
    order: np.ndarray


def ordered_parts(on_known: csr_array, on_unknown: csr_array) -> OrderedParts:
    """Return the parts with neighbours near each other in memory: sweeps take half the time."""
    order = reverse_cuthill_mckee(on_unknown)
    return OrderedParts(
        csr_array(on_known[order]), csr_array(on_unknown[order][:, order]), np.asarray(order)
    )
