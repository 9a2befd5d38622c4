"""What is given -> right sides of the unknown rows' equations, and solutions -> what is wanted.

A few columns are widened to 64 bits at a time, so that there is never a second copy of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csc_array, csr_array

from vecfill.method.scaling import divided, safe_exponents


@runtime_checkable
class Sides(Protocol):
    """Turns a few columns of what is given into right sides and a start for the iteration."""

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return right sides, a start, and the powers of two that both were divided by.

        They are in 64 bits and in the order of the equations.
        """
        ...

    def put(self, found: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write a solution, in the order of the equations, where the caller wants it."""
        ...


@dataclass(frozen=True)
class KnownSides:
    """Right sides from known vectors, in the unknown rows' equations."""

    on_known: csr_array
    is_known: np.ndarray
    rows: np.ndarray
    """Where each equation's solution goes."""
    wanted: np.ndarray | None = None
    """Equations whose solutions alone are wanted, in this order, in the place of all `rows`."""

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the known vectors' part in each unknown row, and their mean as a start.

        Columns have all rows, or the known ones alone.
        """
        is_whole = len(columns) == self.is_known.size
        known = (columns[self.is_known] if is_whole else columns).astype(np.float64)
        exponents = safe_exponents(known, each_column=True)
        known = divided(known, exponents)
        start = np.repeat(known.mean(axis=0, keepdims=True), self.on_known.shape[0], axis=0)
        return self.on_known @ known, start, exponents

    def put(self, found: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write the vectors of the unknown rows."""
        if self.wanted is None:
            out[self.rows] = divided(found, -exponents)
        else:
            out[:] = divided(found[self.wanted], -exponents)


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

    def put(self, found: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:
        """Write the solution in the order in which right sides came."""
        out[self.order] = divided(found, -exponents)


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

    def put(self, found: np.ndarray, exponents: np.ndarray, out: np.ndarray) -> None:  # noqa: ARG002
        """Write what reaches each known row; the visits of unknown rows are not kept."""
        out[:] = self.onto_known @ found
