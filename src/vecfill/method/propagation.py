"""Stage 3: weights + known rows -> unknown rows.

Every unknown row is to be the mix of its neighbours that the weights say; known rows stay. So
``vectors = weights_on_known @ known + weights_on_unknown @ vectors``, which `propagate` solves,
and which `propagate_by_iteration` repeats as the paper does until little changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu

from vecfill._types import EmbeddingVectors, KnownMask, UnknownVectors
from vecfill.method.blocks import parallel_map, row_blocks
from vecfill.method.krylov import solve_columns

RESIDUAL_TOL = 1e-10
"""What the solver aims at; ten times better than it must reach is cheap insurance."""

MOST_ROWS_FACTORED = 3000
"""Below this a sparse factorisation is always quick; above it may fill up."""

N_COLUMNS = 16
"""Columns solved together: two cache lines a row."""

MAX_KRYLOV = 3000


class Outcome(Enum):
    """How a propagation ended."""

    SOLVED = "solved"
    CONVERGED = "converged"
    MAX_ITER_REACHED = "max_iter reached"
    NOTHING_UNKNOWN = "nothing unknown"


@dataclass(frozen=True)
class Propagation:
    """The vectors of the unknown rows, and how it went."""

    vectors: UnknownVectors
    n_iter: int
    """Iterations; 0 for a factorisation."""
    relative_change: float
    """Last relative l1 change of the iteration; for a solution, its relative residual."""
    outcome: Outcome


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


def _nothing_unknown(embedding: EmbeddingVectors) -> Propagation:
    empty = np.empty((0, embedding.shape[1]), embedding.dtype)
    return Propagation(empty, 0, 0.0, Outcome.NOTHING_UNKNOWN)


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

    The relative residual is below `tol`, by default far below 1e-8, whatever the size. Every
    unknown row must reach a known one (see `cut_off_rows`), else there is no single solution.
    Sums run in 64 bits; vectors come back in the precision of `embedding`.

    Examples
    --------
    A row between two known ones, at a quarter of the way:

    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> propagate(weights, embedding, np.array([True, False, True])).vectors
    array([[1.]])
    """
    if is_known.all():
        return _nothing_unknown(embedding)
    on_known, on_unknown = split_weights(weights, is_known)
    known = embedding[is_known]
    n_unknown, n_dims = on_unknown.shape[0], embedding.shape[1]
    vectors = np.empty((n_unknown, n_dims), embedding.dtype)
    is_small = n_unknown <= MOST_ROWS_FACTORED
    factor = _factor(on_unknown) if is_small else None
    mean = known.mean(axis=0, dtype=np.float64)

    def solve(columns: slice) -> tuple[int, float]:
        right = on_known @ known[:, columns].astype(np.float64)
        if factor is None:
            found = np.repeat(mean[None, columns], n_unknown, axis=0)
            n_iter, residual = solve_columns(
                on_unknown.indptr,
                on_unknown.indices,
                on_unknown.data,
                right,
                found,
                tol,
                MAX_KRYLOV,
            )
        else:
            found = factor.solve(right)
            n_iter, residual = 0, _relative_residual(on_unknown, right, found)
        vectors[:, columns] = found
        return n_iter, residual

    blocks = row_blocks(n_dims, N_COLUMNS)
    went = parallel_map(solve, blocks, n_jobs=n_jobs)
    if factor is None and max(residual for _, residual in went) > tol:
        # The iteration stalled on some columns; a factorisation costs memory but never stalls.
        factor = _factor(on_unknown)
        stalled = [b for b, (_, residual) in zip(blocks, went, strict=True) if residual > tol]
        again = parallel_map(solve, stalled, n_jobs=n_jobs)
        went = [w for w in went if w[1] <= tol] + again
    n_iter, residual = max(n for n, _ in went), max(r for _, r in went)
    return Propagation(vectors, n_iter, residual, Outcome.SOLVED)


def _factor(on_unknown: csr_array):
    n_unknown = on_unknown.shape[0]
    system = csc_array(eye_array(n_unknown, format="csc") - on_unknown)
    # Weakly diagonally dominant, so the diagonal is a safe pivot and keeps the fill low.
    return splu(system, diag_pivot_thresh=0.0, options={"SymmetricMode": True})


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
        return _nothing_unknown(embedding)
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
    return Propagation(vectors.astype(embedding.dtype), n_iter, change, outcome)
