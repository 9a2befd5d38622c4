"""Stage 3: weights + known rows -> unknown rows.

Every unknown row is to be the mix of its neighbours that the weights say; known rows stay. So
``vectors = weights_on_known @ known + weights_on_unknown @ vectors``, which `propagate` solves,
and which `propagate_by_iteration` repeats as the paper does until little changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from vecfill._types import EmbeddingVectors, KnownMask, UnknownVectors
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.method.scaling import divided, safe_exponents
from vecfill.method.solve.parts import cut_off_rows, split_weights
from vecfill.method.solve.system import (
    N_COLUMNS,
    RESIDUAL_TOL,
    UnknownSystem,
)

__all__ = [
    "Convergence",
    "Outcome",
    "Propagation",
    "cut_off_rows",
    "fill_unknown",
    "propagate",
    "propagate_by_iteration",
    "propagate_known",
    "split_weights",
]


class Outcome(Enum):
    """How a propagation ended."""

    SOLVED = "solved"
    CONVERGED = "converged"
    MAX_ITER_REACHED = "max_iter reached"
    NOTHING_UNKNOWN = "nothing unknown"


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How a propagation went."""

    n_iter: int
    """Iterations; 0 for a factorisation."""
    relative_change: float
    """Last relative l1 change of the iteration; for a solution, its relative residual."""
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Propagation(Convergence):
    """The vectors of the unknown rows, and how it went."""

    vectors: UnknownVectors

    def convergence(self) -> Convergence:
        """Return how it went, without the vectors."""
        return Convergence(
            n_iter=self.n_iter, relative_change=self.relative_change, outcome=self.outcome
        )


NOTHING_UNKNOWN = Convergence(n_iter=0, relative_change=0.0, outcome=Outcome.NOTHING_UNKNOWN)


def _with_vectors(vectors: np.ndarray, convergence: Convergence) -> Propagation:
    return Propagation(vectors=vectors, **vars(convergence))


def propagate(
    weights: csr_array,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    tol: float = RESIDUAL_TOL,
    n_jobs: Workers = None,
) -> Propagation:
    """Return the fixed point itself: unknown rows that are exactly the mix of their neighbours.

    The relative residual is at most `tol`, by default 1e-8, whatever the size. Every
    unknown row must reach a known one (see `cut_off_rows`), else there is no single solution.
    Sums run in 64 bits; vectors come back in the precision of `embedding`.

    Small systems are factored. Others are iterated with sweeps; if the first columns show that this
    is slow, they are factored too where the factor stays thin.

    Examples
    --------
    A row between two known ones, at a quarter of the way:

    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> propagate(weights, embedding, np.array([True, False, True])).vectors
    array([[1.]])
    """
    return _solved(weights, embedding, is_known, None, tol, n_jobs)


def propagate_known(
    weights: csr_array,
    known: np.ndarray,
    is_known: KnownMask,
    *,
    places: np.ndarray | None = None,
    tol: float = RESIDUAL_TOL,
    n_jobs: Workers = None,
) -> Propagation:
    """Return what `propagate` does, from the vectors of the known rows alone, in order.

    With `places`, only the vectors of these unknown rows are kept; they are numbered among
    themselves.

    Examples
    --------
    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> propagate_known(weights, np.array([[0.0], [4.0]]), np.array([True, False, True])).vectors
    array([[1.]])
    """
    return _solved(weights, known, is_known, places, tol, n_jobs)


def _solved(
    weights: csr_array,
    known_vectors: np.ndarray,
    is_known: np.ndarray,
    places: np.ndarray | None,
    tol: float,
    n_jobs: Workers,
) -> Propagation:
    rows = np.arange(int((~is_known).sum()))
    n_wanted = rows.size if places is None else places.size
    vectors = np.empty((n_wanted, known_vectors.shape[1]), known_vectors.dtype)
    convergence = _solve(weights, known_vectors, is_known, vectors, rows, tol, n_jobs, places)
    return _with_vectors(vectors, convergence)


def fill_unknown(
    weights: csr_array,
    embedding: np.ndarray,
    is_known: KnownMask,
    *,
    tol: float = RESIDUAL_TOL,
    n_jobs: Workers = None,
) -> Convergence:
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


def _solve(
    weights: csr_array,
    embedding: np.ndarray,
    is_known: np.ndarray,
    vectors: np.ndarray,
    rows: np.ndarray,
    tol: float,
    n_jobs: Workers,
    places: np.ndarray | None = None,
) -> Convergence:
    """Write the unknown rows, in order, into `rows` of `vectors`, or those at `places` alone."""
    if is_known.all():
        return NOTHING_UNKNOWN
    system = UnknownSystem(weights, is_known)
    n_iter, residual = system.solve_known(
        embedding, vectors, rows, places=places, tol=tol, n_jobs=n_jobs
    )
    return Convergence(n_iter=n_iter, relative_change=residual, outcome=Outcome.SOLVED)


def propagate_by_iteration(
    weights: csr_array,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    tol: float = 1e-2,
    max_iter: int = 1000,
    self_weight: float = 0.0,
    rng: np.random.Generator,
    n_jobs: Workers = None,
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
        return _with_vectors(np.empty((0, embedding.shape[1]), embedding.dtype), NOTHING_UNKNOWN)
    on_known, on_unknown = split_weights(weights, is_known)
    known = embedding[is_known].astype(np.float64)
    # One power of two for all columns, because the change is summed over all of them.
    exponent = safe_exponents(known, each_column=False)
    known = divided(known, exponent)
    shape = (on_unknown.shape[0], embedding.shape[1])
    vectors = rng.normal(known.mean(axis=0), known.std(axis=0), size=shape)
    known_part = on_known @ known
    blocks = row_blocks(shape[1], N_COLUMNS)
    mixture = np.empty_like(vectors)
    change, n_iter = np.inf, 0
    while change >= tol and n_iter < max_iter:
        n_iter += 1
        columns = [(known_part[:, block], vectors[:, block]) for block in blocks]
        fill([mixture], partial(_mix, on_unknown), blocks, items=columns, axis=1, n_jobs=n_jobs)
        new = (1.0 - self_weight) * mixture + self_weight * vectors if self_weight else mixture
        size = float(np.abs(vectors).sum())
        difference = float(np.abs(new - vectors).sum())
        change = difference / size if size > 0 else (0.0 if difference == 0 else np.inf)
        vectors, mixture = new, vectors
    outcome = Outcome.CONVERGED if change < tol else Outcome.MAX_ITER_REACHED
    convergence = Convergence(n_iter=n_iter, relative_change=change, outcome=outcome)
    vectors = divided(vectors, -exponent)
    return _with_vectors(vectors.astype(embedding.dtype), convergence)


def _mix(
    on_unknown: csr_array, columns: tuple[np.ndarray, np.ndarray], mixture: np.ndarray
) -> None:
    """Write one step of the iteration for a few columns."""
    known_part, vectors = columns
    mixture[:] = known_part + on_unknown @ vectors
