"""Stage 3: weights + known rows -> unknown rows.

Every unknown row is to be the mix of its neighbours that the weights say; known rows stay. So
``vectors = weights_on_known @ known + weights_on_unknown @ vectors``, which `propagate` solves,
and which `propagate_by_iteration` repeats as the paper does until little changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    reverse_cuthill_mckee,
)
from scipy.sparse.linalg import splu

from vecfill._blas import one_blas_thread
from vecfill._types import EmbeddingVectors, KnownMask, UnknownVectors
from vecfill.method.engine import parallel_map, row_blocks
from vecfill.method.solve.krylov import GaussSeidel, Preconditioner, solve_columns
from vecfill.method.solve.multilevel import Multilevel

logger = logging.getLogger(__name__)

RESIDUAL_TOL = 1e-8
"""Relative residual that every column must reach, computed afresh and not by recurrence."""

MOST_ROWS_FACTORED = 3000
"""Below this a sparse factorisation is always quick; above it may fill up."""

MOST_FILL = 20.0
"""A factor with more entries than this times those of the system is slower than iterating."""

FILL_SAMPLES = (2000, 4000)
"""Rows of the two pieces that are factored to foretell the fill of the whole."""

MOST_FORETOLD = 25
"""Rows of a system to rows of the larger piece: beyond this a forecast of fill is a guess."""

N_COLUMNS = 16
"""Columns solved together: a cache line a row in 32 bits."""

PILOT_ITER = 40
"""Iterations with plain sweeps after which the system counts as hard: few rows are known."""

MAX_KRYLOV = 3000


class Outcome(Enum):
    """How a propagation ended."""

    SOLVED = "solved"
    CONVERGED = "converged"
    MAX_ITER_REACHED = "max_iter reached"
    NOTHING_UNKNOWN = "nothing unknown"


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a propagation went."""

    n_iter: int
    """Iterations; 0 for a factorisation."""
    relative_change: float
    """Last relative l1 change of the iteration; for a solution, its relative residual."""
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Propagation(Course):
    """The vectors of the unknown rows, and how it went."""

    vectors: UnknownVectors


NOTHING_UNKNOWN = Course(n_iter=0, relative_change=0.0, outcome=Outcome.NOTHING_UNKNOWN)


def split_weights(weights: csr_array, is_known: KnownMask) -> tuple[csr_array, csr_array]:
    """Return the unknown rows of the weights: their columns on known and on unknown rows.

    Examples
    --------
    >>> weights = csr_array(np.array([[0, 1.0], [0.5, 0.5]]))
    >>> on_known, on_unknown = split_weights(weights, np.array([True, False]))
    >>> on_known.toarray(), on_unknown.toarray()
    (array([[0.5]]), array([[0.5]]))
    """
    unknown_rows = weights[np.flatnonzero(~is_known)]
    on_known = csr_array(unknown_rows[:, np.flatnonzero(is_known)])
    return on_known, csr_array(unknown_rows[:, np.flatnonzero(~is_known)])


def cut_off_rows(weights: csr_array, is_known: KnownMask) -> np.ndarray:
    """Return the unknown rows that no positive weights lead to a known one.

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


def _with_course(vectors: np.ndarray, course: Course) -> Propagation:
    return Propagation(vectors=vectors, **vars(course))


def _relative_residual(on_unknown: csr_array, right: np.ndarray, vectors: np.ndarray) -> float:
    rest = np.linalg.norm(right - vectors + on_unknown @ vectors, axis=0)
    scale = np.maximum(np.linalg.norm(right, axis=0), np.finfo(np.float64).tiny)
    return float((rest / scale).max(initial=0.0))


def propagate(
    weights: csr_array,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    tol: float = RESIDUAL_TOL,
    n_jobs: int | None = None,
) -> Propagation:
    """Return the fixed point itself: unknown rows that are exactly the mix of their neighbours.

    The relative residual is at most `tol`, by default 1e-8, whatever the size. Every
    unknown row must reach a known one (see `cut_off_rows`), else there is no single solution.
    Sums run in 64 bits; vectors come back in the precision of `embedding`.

    Small systems are factored. Others are iterated with plain sweeps; if the first columns show
    that this is slow, by a factorisation if it stays thin, else with coarser levels.

    Examples
    --------
    A row between two known ones, at a quarter of the way:

    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> propagate(weights, embedding, np.array([True, False, True])).vectors
    array([[1.]])
    """
    vectors = np.empty((int((~is_known).sum()), embedding.shape[1]), embedding.dtype)
    rows = np.arange(len(vectors))
    course = _solve(weights, embedding, is_known, vectors, rows, tol, n_jobs)
    return _with_course(vectors, course)


def fill_unknown(
    weights: csr_array,
    embedding: np.ndarray,
    is_known: KnownMask,
    *,
    tol: float = RESIDUAL_TOL,
    n_jobs: int | None = None,
) -> Course:
    """Write what `propagate` returns into the unknown rows of `embedding`: no second array.

    Examples
    --------
    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> fill_unknown(weights, embedding, np.array([True, False, True])).outcome
    <Outcome.SOLVED: 'solved'>
    >>> embedding.ravel()
    array([0., 1., 4.])
    """
    rows = np.flatnonzero(~is_known)
    return _solve(weights, embedding, is_known, embedding, rows, tol, n_jobs)


@one_blas_thread()
def _solve(
    weights: csr_array,
    embedding: np.ndarray,
    is_known: np.ndarray,
    vectors: np.ndarray,
    rows: np.ndarray,
    tol: float,
    n_jobs: int | None,
) -> Course:
    """Write the unknown rows, in order, into `rows` of `vectors`, a few columns at a time."""
    if is_known.all():
        return NOTHING_UNKNOWN
    system = _System(weights, embedding, is_known, vectors, rows)
    blocks = row_blocks(embedding.shape[1], N_COLUMNS)
    if system.n_unknown <= MOST_ROWS_FACTORED:
        went = parallel_map(system.solve_by(_factor(system.on_unknown)), blocks, n_jobs=n_jobs)
    else:
        went = _solve_large(system, blocks, tol, n_jobs)
    n_iter, residual = max(n for n, _ in went), max(r for _, r in went)
    return Course(n_iter=n_iter, relative_change=residual, outcome=Outcome.SOLVED)


class _System:
    """The equations of the unknown rows, and where their vectors are written."""

    def __init__(
        self,
        weights: csr_array,
        embedding: np.ndarray,
        is_known: np.ndarray,
        vectors: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        on_known, on_unknown = split_weights(weights, is_known)
        # Neighbours near each other in memory: sweeps take half the time.
        order = reverse_cuthill_mckee(on_unknown)
        self.on_known = csr_array(on_known[order])
        self.on_unknown = csr_array(on_unknown[order][:, order])
        self.embedding = embedding
        self.is_known = is_known
        self.n_unknown = on_unknown.shape[0]
        self.vectors = vectors
        self.rows = rows[order]

    def known(self, columns: slice) -> np.ndarray:
        """Return some columns of the known rows, in 64 bits; never a copy of all at once."""
        return self.embedding[:, columns][self.is_known].astype(np.float64)

    def solve_by(self, factor: Any) -> Callable[[slice], tuple[int, float]]:
        """Return a function that solves columns by a factorisation: iterations and residual."""

        def solve(columns: slice) -> tuple[int, float]:
            right = self.on_known @ self.known(columns)
            found = factor.solve(right)
            self.vectors[self.rows, columns] = found
            return 0, _relative_residual(self.on_unknown, right, found)

        return solve

    def iterate_with(
        self, precondition: Preconditioner, tol: float, max_iter: int
    ) -> Callable[[slice], tuple[int, float]]:
        """Return a function that solves columns by iteration: iterations and residual."""

        def solve(columns: slice) -> tuple[int, float]:
            known = self.known(columns)
            right = self.on_known @ known
            found = np.repeat(known.mean(axis=0, keepdims=True), self.n_unknown, axis=0)
            del known
            went = solve_columns(
                self.on_unknown, right, found, precondition, tol=tol, max_iter=max_iter
            )
            self.vectors[self.rows, columns] = found
            return went

        return solve


def _solve_large(
    system: _System, blocks: list[slice], tol: float, n_jobs: int | None
) -> list[tuple[int, float]]:
    """Solve all blocks of columns by what the first block shows to be quickest."""
    sweep = GaussSeidel(system.on_unknown)
    pilot = parallel_map(system.iterate_with(sweep, tol, PILOT_ITER), blocks[:1], n_jobs=1)
    if pilot[0][1] <= tol:
        others = parallel_map(
            system.iterate_with(sweep, tol, MAX_KRYLOV), blocks[1:], n_jobs=n_jobs
        )
        went = pilot + others
    else:
        fill = _foretold_fill(system.on_unknown)
        logger.info("sweeps are slow; a factorisation would fill %.0f-fold", fill)
        if fill <= MOST_FILL:
            solve = system.solve_by(_factor(system.on_unknown))
        else:
            solve = system.iterate_with(Multilevel(system.on_unknown), tol, MAX_KRYLOV)
        went = parallel_map(solve, blocks, n_jobs=n_jobs)
    stalled = [place for place, (_, residual) in enumerate(went) if not residual <= tol]
    if stalled:
        # A factorisation may cost much memory, but it never stalls.
        solve = system.solve_by(_factor(system.on_unknown))
        again = parallel_map(solve, [blocks[place] for place in stalled], n_jobs=n_jobs)
        for place, (_, residual) in zip(stalled, again, strict=True):
            went[place] = (went[place][0], residual)
    return went


def _factor(on_unknown: csr_array) -> Any:
    n_unknown = on_unknown.shape[0]
    system = csc_array(eye_array(n_unknown, format="csc") - on_unknown)
    # Weakly diagonally dominant, so the diagonal is a safe pivot and keeps the fill low.
    return splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _foretold_fill(on_unknown: csr_array) -> float:
    """Return about how many times more entries a factor has than the system.

    Two pieces of the graph around one row are factored; fill grows as a power of size. Unknown
    rows that only known ones lie between fall apart: what counts is the largest part.
    """
    n_parts, part = connected_components(on_unknown, directed=False)
    n_unknown = int(np.bincount(part, minlength=n_parts).max())
    if n_unknown > MOST_FORETOLD * FILL_SAMPLES[1]:
        return np.inf
    middle = int(np.flatnonzero(part == np.bincount(part).argmax())[n_unknown // 2])
    nearby = breadth_first_order(on_unknown, middle, directed=False, return_predecessors=False)
    fills = []
    for size in FILL_SAMPLES:
        some = np.sort(nearby[:size])
        piece = csr_array(on_unknown[some][:, some])
        fills.append(_factor(piece).nnz / (piece.nnz + some.size))
    small, large = fills
    growth = np.log(large / small) / np.log(FILL_SAMPLES[1] / FILL_SAMPLES[0])
    return float(large * (n_unknown / FILL_SAMPLES[1]) ** max(growth, 0.0))


def propagate_by_iteration(
    weights: csr_array,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    tol: float = 1e-2,
    max_iter: int = 1000,
    self_weight: float = 0.0,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> Propagation:
    """Return the paper's iteration: mix again and again until little changes.

    It starts from normal noise with the mean and spread of the known rows and stops when the l1
    norm of the change is below `tol` times that of the vectors. `self_weight` is the share of
    itself that a row keeps in each step: 0.5 is the authors' lazy walk.

    Examples
    --------
    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> is_known = np.array([True, False, True])
    >>> rng = np.random.default_rng(0)
    >>> propagate_by_iteration(weights, embedding, is_known, rng=rng).vectors
    array([[1.]])
    """
    if is_known.all():
        return _with_course(np.empty((0, embedding.shape[1]), embedding.dtype), NOTHING_UNKNOWN)
    on_known, on_unknown = split_weights(weights, is_known)
    known = embedding[is_known].astype(np.float64)
    shape = (on_unknown.shape[0], embedding.shape[1])
    vectors = rng.normal(known.mean(axis=0), known.std(axis=0), size=shape)
    known_part = on_known @ known
    blocks = row_blocks(shape[1], N_COLUMNS)
    mixed = np.empty_like(vectors)

    def mix(columns: slice) -> None:
        mixed[:, columns] = known_part[:, columns] + on_unknown @ vectors[:, columns]

    change, n_iter = np.inf, 0
    while change >= tol and n_iter < max_iter:
        n_iter += 1
        parallel_map(mix, blocks, n_jobs=n_jobs)
        new = (1.0 - self_weight) * mixed + self_weight * vectors if self_weight else mixed
        size = float(np.abs(vectors).sum())
        difference = float(np.abs(new - vectors).sum())
        change = difference / size if size > 0 else (0.0 if difference == 0 else np.inf)
        vectors, mixed = new, vectors
    outcome = Outcome.CONVERGED if change < tol else Outcome.MAX_ITER_REACHED
    course = Course(n_iter=n_iter, relative_change=change, outcome=outcome)
    return _with_course(vectors.astype(embedding.dtype), course)
