"""Solve ``(I - W) Y = B`` for a block of columns, W sparse with rows that sum to at most one.

BiCGSTAB, which needs only products with W, and a preconditioner. A block of columns lies row by
row in memory, so that one read of the weights serves all of its columns, and one thread solves
it, so that the bits do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array, tril, triu

from vecfill._compiled import compiled

CHECK_EVERY = 100
"""Iterations after which a recurrence that has hardly moved is begun again."""


@runtime_checkable
class Preconditioner(Protocol):
    """Solves the system about, at the price of a few products with W."""

    def smooth(self, right: np.ndarray, out: np.ndarray) -> None:
        """Write about the solution for the right side `right`."""
        ...

    def apply(
        self,
        smoothed: np.ndarray,
        right: np.ndarray,
        partner: np.ndarray,
        out: np.ndarray,
        dots: np.ndarray,
    ) -> None:
        """Write ``(I - W) smoothed``, which is about the `right` that `smoothed` was made of.

        Its products with `partner` and with itself, column by column, go to `dots`.
        """
        ...


@compiled
def _residual(indptr, indices, weights, right, vectors, out):
    """Write ``right - (I - W) vectors``."""
    n_rows, n_columns = vectors.shape
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = right[row, t] - vectors[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            weight, other = weights[place], indices[place]
            for t in range(n_columns):
                out[row, t] += weight * vectors[other, t]


@compiled
def _sweep_below(indptr, indices, weights, right, out):
    """Write a sweep over the rows, each of which knows the rows before it."""
    n_rows, n_columns = right.shape
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = right[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            weight, other = weights[place], indices[place]
            for t in range(n_columns):
                out[row, t] += weight * out[other, t]


@compiled
def less_weighted(indptr, indices, weights, begin, vectors, partner, out, dots):
    """Write ``begin - W vectors``, and its products with `partner` and with itself."""
    n_rows, n_columns = vectors.shape
    dots[:] = 0.0
    # From the last row: what a sweep wrote last is still in the cache.
    for row in range(n_rows - 1, -1, -1):
        for t in range(n_columns):
            out[row, t] = begin[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            weight, other = weights[place], indices[place]
            for t in range(n_columns):
                out[row, t] -= weight * vectors[other, t]
        for t in range(n_columns):
            dots[0, t] += out[row, t] * partner[row, t]
            dots[1, t] += out[row, t] * out[row, t]


@compiled
def _turn(direction, residual, applied, beta, omega):
    """Turn the direction towards the residual."""
    n_rows, n_columns = direction.shape
    for row in range(n_rows):
        for t in range(n_columns):
            kept = direction[row, t] - omega[t] * applied[row, t]
            direction[row, t] = residual[row, t] + beta[t] * kept


@compiled
def _shorten(residual, applied, length):
    """Take a step along a direction off the residual."""
    n_rows, n_columns = residual.shape
    for row in range(n_rows):
        for t in range(n_columns):
            residual[row, t] -= length[t] * applied[row, t]


@compiled
def _step(vectors, first, second, alpha, omega, residual, image, shadow, dots):
    """Take both steps of an iteration; write the residual's products with itself and `shadow`."""
    n_rows, n_columns = vectors.shape
    dots[:] = 0.0
    for row in range(n_rows):
        for t in range(n_columns):
            vectors[row, t] += alpha[t] * first[row, t] + omega[t] * second[row, t]
        for t in range(n_columns):
            residual[row, t] -= omega[t] * image[row, t]
            dots[0, t] += residual[row, t] * residual[row, t]
            dots[1, t] += residual[row, t] * shadow[row, t]


class GaussSeidel:
    """One sweep over the rows: cheap, and enough where known rows are many.

    A sweep solves ``(I - L) smoothed = right``, L being the weights on earlier rows; so
    ``(I - W) smoothed`` is ``right`` less the weights on later rows, half of a whole product.
    """

    def __init__(self, weights: csr_array) -> None:
        below, above = csr_array(tril(weights, -1)), csr_array(triu(weights))
        self._below = (below.indptr, below.indices, below.data)
        self._above = (above.indptr, above.indices, above.data)

    def smooth(self, right: np.ndarray, out: np.ndarray) -> None:
        """Write the sweep."""
        _sweep_below(*self._below, right, out)

    def apply(
        self,
        smoothed: np.ndarray,
        right: np.ndarray,
        partner: np.ndarray,
        out: np.ndarray,
        dots: np.ndarray,
    ) -> None:
        """Write ``(I - W) smoothed`` and its products, as `Preconditioner` says."""
        less_weighted(*self._above, right, smoothed, partner, out, dots)


def _ratio(over: np.ndarray, under: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Return ``over / under`` for active columns, zero for those that are done or stuck."""
    is_fine = is_active & (under != 0.0)
    return np.divide(over, under, out=np.zeros_like(over), where=is_fine)


def solve_columns(
    weights: csr_array,
    right: np.ndarray,
    vectors: np.ndarray,
    precondition: Preconditioner,
    *,
    tol: float,
    max_iter: int,
) -> tuple[int, float]:
    """Improve `vectors` in place until each column's residual is below `tol` times its right side.

    Returns the number of iterations and the largest relative residual, computed afresh.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> vectors = np.zeros((2, 1))
    >>> right = np.array([[0.0], [3.0]])
    >>> _ = solve_columns(weights, right, vectors, GaussSeidel(weights), tol=1e-10, max_iter=9)
    >>> vectors.ravel()
    array([2., 4.])
    """
    arrays = (weights.indptr, weights.indices, weights.data)
    n_columns = vectors.shape[1]
    scale = np.maximum(np.einsum("ij,ij->j", right, right), np.finfo(np.float64).tiny)
    residual, applied = np.empty_like(vectors), np.empty_like(vectors)
    direction, shadow = np.empty_like(vectors), np.empty_like(vectors)
    first, second, image = (np.empty_like(vectors) for _ in range(3))
    rho, omega, alpha = np.ones((3, n_columns))
    dots = np.empty((2, n_columns))

    def begin() -> np.ndarray:
        """Begin the recurrence from where the vectors are; return the squared residuals."""
        _residual(*arrays, right, vectors, residual)
        shadow[:], direction[:], applied[:] = residual, 0.0, 0.0
        rho[:], alpha[:], omega[:] = 1.0, 1.0, 1.0
        squares = np.einsum("ij,ij->j", residual, residual)
        dots[0], dots[1] = squares, squares
        return squares

    squares = begin()
    earlier = squares
    n_iter = 0
    with np.errstate(over="ignore", invalid="ignore"):
        while n_iter < max_iter:
            if not (squares > tol * tol * scale).any():
                # The recurrence drifts from the truth: believe only the residual itself.
                squares = begin()
                if not (squares > tol * tol * scale).any():
                    break
            elif n_iter % CHECK_EVERY == CHECK_EVERY - 1:
                if not (squares <= 0.25 * earlier).all():
                    squares = begin()
                earlier = squares
            n_iter += 1
            is_active = squares > tol * tol * scale
            beta = _ratio(dots[1] * alpha, rho * omega, is_active)
            rho = dots[1].copy()
            _turn(direction, residual, applied, beta, omega)
            precondition.smooth(direction, first)
            precondition.apply(first, direction, shadow, applied, dots)
            alpha = _ratio(rho, dots[0], is_active)
            _shorten(residual, applied, alpha)
            precondition.smooth(residual, second)
            precondition.apply(second, residual, residual, image, dots)
            omega = _ratio(dots[0], dots[1], is_active)
            _step(vectors, first, second, alpha, omega, residual, image, shadow, dots)
            squares = dots[0].copy()
    _residual(*arrays, right, vectors, residual)
    squares = np.einsum("ij,ij->j", residual, residual)
    return n_iter, float(np.sqrt((squares / scale).max(initial=0.0)))
