"""Solve ``(I - W) Y = B`` for a block of columns, W sparse with rows that sum to at most one.

BiCGSTAB, which needs only products with W, and a preconditioner. A block of columns lies row by
row in memory, so that one read of the weights serves all of its columns, and one thread solves
it, so that the bits do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from vecfill._compiled import compiled
from vecfill.method.multilevel import sweep_forward

CHECK_EVERY = 100
"""Iterations after which a recurrence that has hardly moved is begun again."""

Preconditioner = Callable[[np.ndarray], np.ndarray]


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
def _apply(indptr, indices, weights, vectors, partner, out, dots):
    """Write ``(I - W) vectors``, and its products with `partner` and with itself."""
    n_rows, n_columns = vectors.shape
    dots[:] = 0.0
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = vectors[row, t]
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
def _step(vectors, residual, smoothed, applied, length, shadow, dots):
    """Step along `smoothed`; write the residual's products with itself and with `shadow`."""
    n_rows, n_columns = vectors.shape
    dots[:] = 0.0
    for row in range(n_rows):
        for t in range(n_columns):
            vectors[row, t] += length[t] * smoothed[row, t]
            residual[row, t] -= length[t] * applied[row, t]
            dots[0, t] += residual[row, t] * residual[row, t]
            dots[1, t] += residual[row, t] * shadow[row, t]


def gauss_seidel(weights: csr_array) -> Preconditioner:
    """Return one sweep over the rows: cheap, and enough where known rows are many."""
    arrays = (weights.indptr, weights.indices, weights.data, np.ones(weights.shape[0]))

    def sweep(right: np.ndarray) -> np.ndarray:
        out = np.empty_like(right)
        sweep_forward(*arrays, right, out)
        return out

    return sweep


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
    >>> _ = solve_columns(weights, right, vectors, gauss_seidel(weights), tol=1e-10, max_iter=9)
    >>> vectors.ravel()
    array([2., 4.])
    """
    arrays = (weights.indptr, weights.indices, weights.data)
    n_columns = vectors.shape[1]
    scale = np.maximum(np.einsum("ij,ij->j", right, right), np.finfo(np.float64).tiny)
    residual, applied = np.empty_like(vectors), np.empty_like(vectors)
    direction, shadow = np.empty_like(vectors), np.empty_like(vectors)
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
            smoothed = precondition(direction)
            _apply(*arrays, smoothed, shadow, applied, dots)
            alpha = _ratio(rho, dots[0], is_active)
            _step(vectors, residual, smoothed, applied, alpha, shadow, dots)
            smoothed = precondition(residual)
            image = np.empty_like(vectors)
            _apply(*arrays, smoothed, residual, image, dots)
            omega = _ratio(dots[0], dots[1], is_active)
            _step(vectors, residual, smoothed, image, omega, shadow, dots)
            squares = dots[0].copy()
    _residual(*arrays, right, vectors, residual)
    squares = np.einsum("ij,ij->j", residual, residual)
    return n_iter, float(np.sqrt((squares / scale).max(initial=0.0)))
