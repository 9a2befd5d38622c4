"""Solve ``(I - W) Y = B`` for a block of columns, W sparse with rows that sum to at most one.

BiCGSTAB with a Gauss-Seidel sweep as preconditioner. A block of columns lies row by row in
memory, so that one read of the weights serves all of its columns, and one thread solves it, so
that the bits do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from vecfill._compiled import compiled


@compiled
def _residual(indptr, indices, weights, right, vectors, out):
    """Write ``right - (I - W) vectors``; return the sum of squares of each column."""
    n_rows, n_columns = vectors.shape
    squares = np.zeros(n_columns)
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = right[row, t] - vectors[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            weight, other = weights[place], indices[place]
            for t in range(n_columns):
                out[row, t] += weight * vectors[other, t]
        for t in range(n_columns):
            squares[t] += out[row, t] * out[row, t]
    return squares


@compiled
def _apply(indptr, indices, weights, vectors, out):
    """Write ``(I - W) vectors``."""
    n_rows, n_columns = vectors.shape
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = vectors[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            weight, other = weights[place], indices[place]
            for t in range(n_columns):
                out[row, t] -= weight * vectors[other, t]


@compiled
def _sweep(indptr, indices, weights, right, out):
    """Write one forward Gauss-Seidel sweep from zero: ``(I - lower(W))^-1 right``."""
    n_rows, n_columns = right.shape
    for row in range(n_rows):
        for t in range(n_columns):
            out[row, t] = right[row, t]
        for place in range(indptr[row], indptr[row + 1]):
            other = indices[place]
            if other < row:
                weight = weights[place]
                for t in range(n_columns):
                    out[row, t] += weight * out[other, t]


@compiled
def _dots(left, right, out):
    out[:] = 0.0
    for row in range(left.shape[0]):
        for t in range(left.shape[1]):
            out[t] += left[row, t] * right[row, t]


@compiled
def solve_columns(indptr, indices, weights, right, vectors, tol, max_iter):
    """Improve `vectors` in place until each column's residual is below `tol` times its right side.

    Returns the number of iterations and the largest relative residual, computed afresh.
    """
    n_rows, n_columns = vectors.shape
    scale = np.zeros(n_columns)
    _dots(right, right, scale)
    for t in range(n_columns):
        scale[t] = max(scale[t], np.finfo(np.float64).tiny)
    residual, direction = np.empty_like(vectors), np.zeros_like(vectors)
    applied, smoothed, image = (
        np.zeros_like(vectors),
        np.empty_like(vectors),
        np.empty_like(vectors),
    )
    rho, alpha, omega = np.ones(n_columns), np.ones(n_columns), np.ones(n_columns)
    dot, other_dot, beta = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    n_iter = 0
    squares = _residual(indptr, indices, weights, right, vectors, residual)
    shadow = residual.copy()
    restart_below = squares.copy()
    while n_iter < max_iter:
        worst = np.sqrt((squares / scale).max())
        if worst <= tol:
            # The recurrence drifts from the truth: believe only the residual itself.
            squares = _residual(indptr, indices, weights, right, vectors, residual)
            worst = np.sqrt((squares / scale).max())
            if worst <= tol:
                return n_iter, worst
            shadow[:] = residual
            rho[:], alpha[:], omega[:] = 1.0, 1.0, 1.0
            direction[:], applied[:] = 0.0, 0.0
        elif n_iter % 100 == 99:
            # A stalled recurrence is begun again from where it has come to.
            squares = _residual(indptr, indices, weights, right, vectors, residual)
            if (squares > 0.25 * restart_below).any():
                shadow[:] = residual
                rho[:], alpha[:], omega[:] = 1.0, 1.0, 1.0
                direction[:], applied[:] = 0.0, 0.0
            restart_below[:] = squares
        n_iter += 1
        _dots(shadow, residual, dot)
        for t in range(n_columns):
            is_active = squares[t] > tol * tol * scale[t] and rho[t] != 0.0 and omega[t] != 0.0
            beta[t] = dot[t] / rho[t] * (alpha[t] / omega[t]) if is_active else 0.0
            rho[t] = dot[t]
        for row in range(n_rows):
            for t in range(n_columns):
                kept = direction[row, t] - omega[t] * applied[row, t]
                direction[row, t] = residual[row, t] + beta[t] * kept
        _sweep(indptr, indices, weights, direction, smoothed)
        _apply(indptr, indices, weights, smoothed, applied)
        _dots(shadow, applied, dot)
        for t in range(n_columns):
            is_active = squares[t] > tol * tol * scale[t] and dot[t] != 0.0
            alpha[t] = rho[t] / dot[t] if is_active else 0.0
        for row in range(n_rows):
            for t in range(n_columns):
                vectors[row, t] += alpha[t] * smoothed[row, t]
                residual[row, t] -= alpha[t] * applied[row, t]
        _sweep(indptr, indices, weights, residual, smoothed)
        _apply(indptr, indices, weights, smoothed, image)
        _dots(image, residual, dot)
        _dots(image, image, other_dot)
        for t in range(n_columns):
            is_active = squares[t] > tol * tol * scale[t] and other_dot[t] > 0.0
            omega[t] = dot[t] / other_dot[t] if is_active else 0.0
        squares[:] = 0.0
        for row in range(n_rows):
            for t in range(n_columns):
                vectors[row, t] += omega[t] * smoothed[row, t]
                residual[row, t] -= omega[t] * image[row, t]
                squares[t] += residual[row, t] * residual[row, t]
    squares = _residual(indptr, indices, weights, right, vectors, residual)
    return n_iter, np.sqrt((squares / scale).max())
