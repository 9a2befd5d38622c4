"""The equations of the unknown rows, solved by whichever way is quickest.

The vectors of the unknown rows satisfy ``(I - W_qq) Y_q = W_qp Y_p``: weights on unknown rows on
the left, weights on known rows times known vectors on the right. A small system is factored, and
a larger one too where few rows are known and the factor stays thin. Others are iterated with
sweeps; if the first columns show that this is slow, they are factored after all where the factor
stays thin. What was built for one right side is kept for the next. What is chosen depends on the
equations and on this right side alone, never on what was solved before, so neither do the bits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from vecfill._types import KnownMask
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.method.solve.factorisation import Factor, expected_fill, factor_of
from vecfill.method.solve.krylov import GaussSeidel, solve_columns
from vecfill.method.solve.lanes import N_LANES
from vecfill.method.solve.parts import (
    GivenSides,
    KnownSides,
    OrderedParts,
    Sides,
    SparseSides,
    ordered_parts,
    split_weights,
)

logger = logging.getLogger(__name__)

# Decision 7: far below what 32-bit vectors can show.
RESIDUAL_TOL = 1e-8
"""Relative residual that every column must reach, computed afresh and not by recurrence."""

# Decision 7.
MOST_ROWS_FACTORED = 3000
"""Below this a sparse factorisation is always quick; above it may fill up."""

# A guess: sweeps take some tens of products with the system, too.
MOST_FILL = 20.0
"""A factor with more entries than this times those of the system is slower than iterating."""

N_COLUMNS = N_LANES
"""Columns solved together."""

N_PILOT_BLOCKS = 2
"""Blocks of columns that show how sweeps go: two, so that a second thread is not idle."""

# Decision 7.
PILOT_ITER = 40
"""Iterations with plain sweeps after which the system counts as hard: few rows are known."""

# Decision 26: the pilot is given up after ten iterations if it is far behind.
FIRST_ITER = 10
"""Iterations after which a system counts as hard if it is far from where it should be by then."""

# A guess: a walk then takes ten steps on average before it meets a known row.
SLOW_LEAK = 0.1
"""Mean weight of unknown rows on known ones below which sweeps are expected to be slow."""

# A guess: below, the forecast itself would cost more than a factor can save.
LEAST_SWEEPS = 1000
"""Iterations of all columns together that must be left for a forecast of fill to be worth it."""

# A guess, many times what real systems took; what stalls is factored.
MAX_KRYLOV = 3000

Went = tuple[int, float]
"""How a block of columns went: iterations, and the largest relative residual."""


def _relative_residual(weights: csr_array, right: np.ndarray, vectors: np.ndarray) -> float:
    misfit = np.linalg.norm(right - vectors + weights @ vectors, axis=0)
    scale = np.maximum(np.linalg.norm(right, axis=0), np.finfo(np.float64).tiny)
    return float((misfit / scale).max(initial=0.0))


def _solve_by_factor(
    weights: csr_array,
    factor: Factor,
    sides: Sides,
    columns: Any,
    out: np.ndarray,
) -> Went:
    """Write the solution for a few columns."""
    right, _, exponents = sides.of(columns)
    solution = factor.solve(right)
    sides.put(solution, exponents, out)
    return 0, _relative_residual(weights, right, solution)


def _solve_by_iteration(
    weights: csr_array,
    precondition: GaussSeidel,
    limits: dict[str, Any],
    sides: Sides,
    columns: Any,
    out: np.ndarray,
) -> Went:
    """Write the same by iteration, within the `limits` of `solve_columns`."""
    right, solution, exponents = sides.of(columns)
    reached = solve_columns(weights, right, solution, precondition, **limits)
    sides.put(solution, exponents, out)
    return reached


@dataclass(frozen=True)
class _Task:
    """Right sides, or what they are made of, and where the solution goes, column by column."""

    sides: Sides
    inputs: Any
    """A dense or a CSC array."""
    out: np.ndarray
    n_jobs: Workers

    def run(self, solve: Callable[..., Went], blocks: list[slice]) -> list[Went]:
        columns = [self.inputs[:, block] for block in blocks]
        solve = partial(solve, self.sides)
        return fill([self.out], solve, blocks, items=columns, axis=1, n_jobs=self.n_jobs)


class _Equations:
    """``(I - W) Y = B`` for one W, and whatever was built to solve it."""

    def __init__(self, weights: csr_array, transposed_of: _Equations | None = None) -> None:
        self.weights = weights
        self._other = transposed_of

    @cached_property
    def factor(self) -> Factor:
        return self._other.factor.transposed() if self._other else factor_of(self.weights)

    @cached_property
    def fill(self) -> float:
        return self._other.fill if self._other else expected_fill(self.weights)

    @property
    def is_slow(self) -> bool:
        # The mean weight on known rows tells how soon a walk ends.
        return 1.0 - float(self.weights.sum()) / self.weights.shape[0] < SLOW_LEAK

    @cached_property
    def sweep(self) -> GaussSeidel:
        return GaussSeidel(self.weights)

    def _factoring(self) -> Callable[..., Went]:
        return partial(_solve_by_factor, self.weights, self.factor)

    def _iterating(self, **limits: Any) -> Callable[..., Went]:
        return partial(_solve_by_iteration, self.weights, self.sweep, limits)

    def _pilot(self, task: _Task, blocks: list[slice], tol: float) -> list[Went]:
        """Return how plain sweeps go on the first columns; hard ones are soon given up."""
        # At an even pace, the whole way would take at most half as many iterations again.
        least_after = FIRST_ITER, tol ** (FIRST_ITER / (1.5 * PILOT_ITER))
        limits = {"tol": tol, "max_iter": PILOT_ITER, "least_after": least_after}
        return task.run(self._iterating(**limits), blocks)

    def _pays_to_factor(self, n_iter: int, n_columns: int) -> bool:
        """Tell whether a factor would save more than it costs, in products of an entry.

        Its entries are used once for each column, those of the system in each iteration. To make
        it takes about as many products as the sum of its squared columns.
        """
        n_rows, n_entries = self.weights.shape[0], self.weights.nnz
        if n_iter * n_columns < LEAST_SWEEPS or self.fill > MOST_FILL:
            return False
        saved = n_columns * n_entries * (n_iter - self.fill)
        return saved > (self.fill * n_entries) ** 2 / n_rows

    @one_blas_thread()
    def quickest(self, task: _Task, tol: float) -> tuple[str, list[Went]]:
        """Return the way that is quickest for these equations, and the blocks that are solved."""
        n_columns = task.inputs.shape[1]
        if self.weights.shape[0] <= MOST_ROWS_FACTORED:
            return "factor", []
        if self.is_slow and self._pays_to_factor(PILOT_ITER, n_columns):
            return "factor", []
        first = row_blocks(n_columns, N_COLUMNS)[:N_PILOT_BLOCKS]
        pilot = self._pilot(task, first, tol)
        if all(residual <= tol for _, residual in pilot):
            n_iter = max((n for n, _ in pilot), default=0)
            if self._pays_to_factor(n_iter, n_columns - len(first) * N_COLUMNS):
                return "factor", []
            return "sweep", pilot
        logger.info("sweeps are slow; a factorisation would fill %.0f-fold", self.fill)
        return ("factor" if self.fill <= MOST_FILL else "sweep"), []

    @one_blas_thread()
    def solve(self, task: _Task, tol: float, way: str | None = None) -> Went:
        """Solve all columns; return the iterations and the largest relative residual."""
        blocks = row_blocks(task.inputs.shape[1], N_COLUMNS)
        way, reached = self.quickest(task, tol) if way is None else (way, [])
        is_factored = way == "factor"
        solve = self._factoring() if is_factored else self._iterating(tol=tol, max_iter=MAX_KRYLOV)
        reached += task.run(solve, blocks[len(reached) :])
        stalled = [place for place, (_, residual) in enumerate(reached) if not residual <= tol]
        if stalled and not is_factored:
            # A factorisation may cost much memory, but it never stalls.
            again = task.run(self._factoring(), [blocks[place] for place in stalled])
            for place, (_, residual) in zip(stalled, again, strict=True):
                reached[place] = (reached[place][0], residual)
        return max((n for n, _ in reached), default=0), max((r for _, r in reached), default=0.0)


@dataclass(frozen=True)
class Solution:
    """The solution for some right sides, and how it was reached."""

    vectors: np.ndarray
    """(n_unknown, n_columns), in 64 bits."""
    n_iter: int
    """Iterations; 0 for a factorisation."""
    residual: float
    """The largest relative residual of a column."""


class UnknownSystem:
    """The equations of the unknown rows, for any number of right sides.

    Every unknown row must reach a known one (see `cut_off_rows`), else there is no single
    solution. A factor, if one is computed, is kept, and serves transposed systems too.

    Examples
    --------
    A row between two known ones, at a quarter of the way:

    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> system = UnknownSystem(weights, np.array([True, False, True]))
    >>> system.solve(np.array([[0.75 * 0.0 + 0.25 * 4.0]])).vectors
    array([[1.]])
    >>> system.known_shares(np.array([0]))
    array([[0.75, 0.25]])
    """

    def __init__(self, weights: csr_array, is_known: KnownMask) -> None:
        self._set(ordered_parts(*split_weights(weights, is_known)), is_known)

    @classmethod
    def of_parts(cls, parts: OrderedParts) -> UnknownSystem:
        """Return the system whose parts were made before; known rows come without unknown ones."""
        system = cls.__new__(cls)
        system._set(parts, np.ones(parts.on_known.shape[1], np.bool_))
        return system

    def _set(self, parts: OrderedParts, is_known: KnownMask) -> None:
        self.n_unknown, self.n_known = parts.on_known.shape
        self._order = parts.order
        self._is_known = is_known
        self._on_known = parts.on_known
        self._equations = _Equations(parts.on_unknown)

    @cached_property
    def _transposed(self) -> _Equations:
        return _Equations(csr_array(self._equations.weights.T), self._equations)

    def is_thin(self) -> bool:
        """Tell whether the equations are small, or slow to iterate and their factor thin."""
        equations = self._equations
        return self.n_unknown <= MOST_ROWS_FACTORED or (
            equations.is_slow and equations.fill <= MOST_FILL
        )

    def solve(
        self, right: np.ndarray, *, tol: float = RESIDUAL_TOL, n_jobs: Workers = None
    ) -> Solution:
        """Return the solution for right sides given as columns, a row for each unknown row."""
        return self._solution(self._equations, right, tol, n_jobs)

    def solve_transposed(
        self, right: np.ndarray, *, tol: float = RESIDUAL_TOL, n_jobs: Workers = None
    ) -> Solution:
        """Return the solution of the transposed equations, ``(I - W_qq^T) Y = right``.

        For a column that is 1 at one unknown row and 0 elsewhere, it says how often a walk that
        starts there visits each unknown row before it ends at a known one.
        """
        return self._solution(self._transposed, right, tol, n_jobs)

    def known_shares(
        self, rows: np.ndarray, *, tol: float = 1e-10, n_jobs: Workers = None
    ) -> np.ndarray:
        """Return the share of every known row in some unknown ones, (n_rows, n_known).

        `rows` are numbered among the unknown rows. Shares are not negative and sum to one.
        """
        shares = np.empty((rows.size, self.n_known))
        for block in row_blocks(rows.size, N_COLUMNS):
            targets = rows[block]
            units = np.zeros((self.n_unknown, targets.size))
            units[targets, np.arange(targets.size)] = 1.0
            visits = self.solve_transposed(units, tol=tol, n_jobs=n_jobs).vectors
            shares[block] = (self._on_known.T @ visits[self._order]).T
        # Rounding alone makes a share negative.
        shares = np.maximum(shares, 0.0)
        return shares / shares.sum(axis=1, keepdims=True)

    def solve_known(
        self,
        embedding: np.ndarray,
        out: np.ndarray,
        rows: np.ndarray,
        *,
        places: np.ndarray | None = None,
        tol: float = RESIDUAL_TOL,
        way: str | None = None,
        n_jobs: Workers = None,
    ) -> Went:
        """Write the vectors of the unknown rows, in order, into `rows` of `out`.

        With `places`, those of these unknown rows alone are written, and they fill `out`.

        A few columns are widened to 64 bits at a time, so `out` may be the embedding itself and
        no second array is needed. Returns the iterations and the largest relative residual.
        The first columns show which `way` is quickest, unless that is given.
        """
        equations_at = None if places is None else np.argsort(self._order)[places]
        sides = KnownSides(self._on_known, self._is_known, rows[self._order], equations_at)
        return self._equations.solve(_Task(sides, embedding, out, n_jobs), tol, way)

    def through_unknown(
        self, right: csc_array, *, tol: float = RESIDUAL_TOL, n_jobs: Workers = None
    ) -> np.ndarray:
        """Return where walks end that enter the unknown rows as `right` says, (n_known, n_columns).

        A column of `right` is the chance of entering at each unknown row; what comes back is the
        chance of leaving at each known one.
        """
        ends = np.empty((self.n_known, right.shape[1]))
        sides = SparseSides(self._order, csr_array(self._on_known.T))
        self._transposed.solve(_Task(sides, right, ends, n_jobs), tol)
        return ends

    def seen_through_unknown(
        self, entering: csr_array, *, tol: float = RESIDUAL_TOL, n_jobs: Workers = None
    ) -> np.ndarray:
        """Return the transposed of `through_unknown`, for walks that are given as rows.

        There is a column to solve for each known row instead of each walk, and a factor takes half
        as long for it.
        """
        ends = np.empty((entering.shape[0], self.n_known))
        sides = SparseSides(slice(None), csr_array(entering[:, self._order]))
        self._equations.solve(_Task(sides, csc_array(self._on_known), ends, n_jobs), tol)
        return ends

    def quickest_way(self, embedding: np.ndarray, *, tol: float = RESIDUAL_TOL) -> str:
        """Return how to solve for columns like these: ``"factor"`` or ``"sweep"``.

        Whoever solves columns in several places passes it to `solve_known` in each of them, so
        that the bits do not depend on how the columns are shared out.
        """
        out = np.empty((self.n_unknown, min(N_COLUMNS, embedding.shape[1])))
        sides = KnownSides(self._on_known, self._is_known, self._order)
        columns = embedding[:, : out.shape[1]]
        return self._equations.quickest(_Task(sides, columns, out, None), tol)[0]

    def _solution(
        self, equations: _Equations, right: np.ndarray, tol: float, n_jobs: Workers
    ) -> Solution:
        assert right.shape[0] == self.n_unknown
        vectors = np.empty(right.shape)
        task = _Task(GivenSides(self._order), right, vectors, n_jobs)
        return Solution(vectors, *equations.solve(task, tol))
