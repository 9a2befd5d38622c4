"""The parts of the unknown rows' equations: weights on the left, right sides, and back again.

A few columns of right sides are widened to 64 bits at a time, so that there is never a second copy
of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee

from vecfill._types import KnownMask
from vecfill.method.scaling import divided, safe_exponents


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
    # Sweeps read the vectors of neighbours, which then are in the cache.
    order = reverse_cuthill_mckee(on_unknown)
    return OrderedParts(
        csr_array(on_known[order]), csr_array(on_unknown[order][:, order]), np.asarray(order)
    )


@runtime_checkable
class Sides(Protocol):
    """Turns a few columns of what is given into right sides and a start for the iteration."""

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return right sides, a start, and the powers of two that both were divided by.

        They are in 64 bits and in the order of the equations.
        """
        ...

    def put(self, solution: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write a solution, in the order of the equations, where the caller wants it."""
        ...


@dataclass(frozen=True)
class KnownSides:
    """Right sides from known vectors, in the unknown rows' equations."""

    on_known: csr_array
    is_known: np.ndarray
    rows: np.ndarray
    """Where each equation's solution goes."""
    places: np.ndarray | None = None
    """Equations whose solutions alone are wanted, in this order, in the place of all `rows`."""

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the known vectors' part in each unknown row, and their mean as a start.

        Columns have all rows, or the known ones alone.
        """
        # Callers may keep the known vectors alone, and no array of all rows.
        is_whole = len(columns) == self.is_known.size
        known = (columns[self.is_known] if is_whole else columns).astype(np.float64)
        exponents = safe_exponents(known, each_column=True)
        known = divided(known, exponents)
        # Unknown rows are mixes of known ones, so the mean is a better start than nothing.
        start = np.repeat(known.mean(axis=0, keepdims=True), self.on_known.shape[0], axis=0)
        return self.on_known @ known, start, exponents

    def put(self, solution: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write the vectors of the unknown rows."""
        if self.places is None:
            out[self.rows] = divided(solution, -exponents)
        else:
            out[:] = divided(solution[self.places], -exponents)


@dataclass(frozen=True)
class GivenSides:
    """Right sides as they are, put in the order of the equations."""

    order: np.ndarray

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the right sides, and the same as a start."""
        right = columns[self.order].astype(np.float64)
        exponents = safe_exponents(right, each_column=True)
        right = divided(right, exponents)
        return right, right.copy(), exponents

    def put(self, solution: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write the solution in the order in which right sides came."""
        out[self.order] = divided(solution, -exponents)


@dataclass(frozen=True)
class SparseSides:
    """Right sides that are mostly zero; wanted is what reaches the known rows."""

    order: np.ndarray | slice
    """Of the equations in the right sides."""
    onto_known: csr_array
    """From the solution, in the order of the equations, to what is wanted."""

    def of(self, columns: csc_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the right sides, filled, and the same as a start."""
        right = columns.toarray()[self.order]
        return right, right.copy(), np.zeros(right.shape[1], np.int32)

    def put(self, solution: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:  # noqa: ARG002
        """Write what reaches each known row; the visits of unknown rows are not kept."""
        out[:] = self.onto_known @ solution
