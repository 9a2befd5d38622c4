"""Solve ``(I - W) Y = B`` for a block of columns, W sparse with rows that sum to at most one.

BiCGSTAB, which needs only products with W, and a preconditioner. A block of columns lies row by
row in memory, so that one read of the weights serves all of its columns (see `lanes`), and one
thread solves it, so that the bits do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, tril, triu

from vecfill.machine.compiled import compiled
from vecfill.method.solve.lanes import (
    N_LANES,
    load,
    padded,
    plus,
    product,
    quotient,
    scaled,
    store,
    widened,
)

# A guess: a new beginning costs one product, so it may be rare.
CHECK_EVERY = 100
"""Iterations after which a recurrence that has hardly moved is begun again."""

# A guess: 200 roundings of 1.2e-7 are the five digits that 32 bits gain before they drift.
DIGITS_KEPT = 200.0
"""A recurrence is trusted until it has fallen to this many roundings of where it began."""


@compiled
def _set_residual(indptr, indices, weights, right, vectors, sizes, out, squares):
    """Write ``right - (I - W) vectors`` in units of `sizes`, and its sums of squares."""
    squares[:] = 0.0
    total, units = load(squares, 0), load(sizes, 0)
    for row in range(len(vectors)):
        residue = plus(load(right, row), scaled(load(vectors, row), -1.0))
        for place in range(indptr[row], indptr[row + 1]):
            residue = plus(residue, scaled(load(vectors, indices[place]), weights[place]))
        residue = quotient(residue, units)
        total = plus(total, product(residue, residue))
        store(out, row, residue)
    store(squares, 0, total)


@compiled
def _sweep_below(indptr, indices, weights, right, out):
    """Write a sweep over the rows, each of which knows the rows before it."""
    for row in range(len(right)):
        mixture = load(right, row)
        for place in range(indptr[row], indptr[row + 1]):
            mixture = plus(mixture, scaled(load(out, indices[place]), weights[place]))
        store(out, row, mixture)


@compiled
def _less_weighted(indptr, indices, weights, begin, vectors, partner, out, dots):
    """Write ``begin - W vectors``, and its products with `partner` and with itself."""
    dots[:] = 0.0
    with_partner = with_itself = load(dots, 0)
    # From the last row: what a sweep wrote last is still in the cache.
    for row in range(len(vectors) - 1, -1, -1):
        residue = load(begin, row)
        for place in range(indptr[row], indptr[row + 1]):
            residue = plus(residue, scaled(load(vectors, indices[place]), -weights[place]))
        store(out, row, residue)
        wide = widened(residue)
        with_partner = plus(with_partner, product(wide, widened(load(partner, row))))
        with_itself = plus(with_itself, product(wide, wide))
    store(dots, 0, with_partner)
    store(dots, 1, with_itself)


@compiled
def _turn(direction, residual, applied, beta, omega):
    """Turn the direction towards the residual."""
    n_rows, n_columns = direction.shape
    for row in range(n_rows):
        for t in range(n_columns):
            carried = direction[row, t] - omega[t] * applied[row, t]
            direction[row, t] = residual[row, t] + beta[t] * carried


@compiled
def _shorten(residual, applied, length):
    """Take a step along a direction off the residual."""
    n_rows, n_columns = residual.shape
    for row in range(n_rows):
        for t in range(n_columns):
            residual[row, t] -= length[t] * applied[row, t]


@compiled
def _step(vectors, first, second, lengths, sizes, residual, image, shadow, dots):
    """Take both steps of an iteration; write the residual's products with itself and `shadow`."""
    alpha, omega, units = load(lengths, 0), load(lengths, 1), load(sizes, 0)
    dots[:] = 0.0
    with_itself = with_shadow = load(dots, 0)
    for row in range(len(vectors)):
        step = plus(product(alpha, load(first, row)), product(omega, load(second, row)))
        store(vectors, row, plus(load(vectors, row), product(units, widened(step))))
        step_back = scaled(product(omega, load(image, row)), -1.0)
        residue = plus(load(residual, row), step_back)
        store(residual, row, residue)
        wide = widened(residue)
        with_itself = plus(with_itself, product(wide, wide))
        with_shadow = plus(with_shadow, product(wide, widened(load(shadow, row))))
    store(dots, 0, with_itself)
    store(dots, 1, with_shadow)


class GaussSeidel:
    """One sweep over the rows: cheap, and enough where known rows are many.

    A sweep solves ``(I - L) smoothed = right``, L being the weights on earlier rows; so
    ``(I - W) smoothed`` is ``right`` less the weights on later rows, half of a whole product.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, weights: csr_array) -> None:
        weights = weights.astype(self.dtype)
        below, above = csr_array(tril(weights, -1)), csr_array(triu(weights))
        self._below = (below.indptr, below.indices, below.data)
        self._above = (above.indptr, above.indices, above.data)

    def smooth(self, right: np.ndarray, out: np.ndarray) -> None:
        """Write about the solution for the right side `right`: one sweep."""
        _sweep_below(*self._below, right, out)

    def apply(
        self,
        smoothed: np.ndarray,
        right: np.ndarray,
        partner: np.ndarray,
        out: np.ndarray,
        dots: np.ndarray,
    ) -> None:
        """Write ``(I - W) smoothed``, of the `smoothed` that was made of `right`.

        Its products with `partner` and with itself, column by column, go to `dots`.
        """
        _less_weighted(*self._above, right, smoothed, partner, out, dots)


def _ratio(over: np.ndarray, under: np.ndarray, is_active: np.ndarray) -> np.ndarray:
    """Return ``over / under`` for active columns, zero for those that are done or stuck."""
    is_fine = is_active & (under != 0.0)
    return np.divide(over, under, out=np.zeros_like(over), where=is_fine)


def _sizes(right: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the unit of each column: the norm of its right side, or if that is 0, of its start."""
    norms = np.sqrt(np.einsum("ij,ij->j", right, right))
    starts = np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
    sizes = np.where(norms > 0.0, norms, starts)
    return np.where(sizes > 0.0, sizes, 1.0)


def solve_columns(
    weights: csr_array,
    right: np.ndarray,
    vectors: np.ndarray,
    precondition: GaussSeidel,
    *,
    tol: float,
    max_iter: int,
    least_after: tuple[int, float] | None = None,
) -> tuple[int, float]:
    """Improve `vectors` in place until each column's residual is below `tol` times its right side.

    The recurrence is BiCGSTAB as van der Vorst wrote it, for sixteen columns side by side, each in
    units of its own. It runs in the precision of the preconditioner. In 32 bits it gains about five
    digits, then begins again from the residual, which like the vectors is always in 64.

    With `least_after`, a number of iterations and a residual, it is given up if a column is above
    that residual by then.

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
    if n_columns < N_LANES or not (vectors.flags.c_contiguous and right.flags.c_contiguous):
        right, wide_vectors = padded(right), padded(vectors)
        limits = {"tol": tol, "max_iter": max_iter, "least_after": least_after}
        reached = solve_columns(weights, right, wide_vectors, precondition, **limits)
        vectors[:] = wide_vectors[:, :n_columns]
        return reached
    sizes = _sizes(right, vectors)
    dtype = precondition.dtype
    residual, applied, direction, shadow, first, second, image = (
        np.empty(vectors.shape, dtype) for _ in range(7)
    )
    rho, omega, alpha, squares = np.ones((4, n_columns))
    dots = np.empty((2, n_columns))

    def begin() -> np.ndarray:
        """Begin the recurrence from where the vectors are; return how low it can go."""
        _set_residual(*arrays, right, vectors, sizes[None], residual, squares[None])
        shadow[:], direction[:], applied[:] = residual, 0.0, 0.0
        rho[:], alpha[:], omega[:] = 1.0, 1.0, 1.0
        dots[:] = squares
        return np.maximum(tol * tol, (DIGITS_KEPT * np.finfo(dtype).eps) ** 2 * squares)

    due, least = least_after or (max_iter, np.inf)
    goal = begin()
    earlier = squares.copy()
    n_iter = 0
    with np.errstate(over="ignore", invalid="ignore"):
        while n_iter < max_iter:
            if not (squares > goal).any():
                # The recurrence drifts from the truth: believe only the residual itself.
                goal = begin()
                if not (squares > tol * tol).any():
                    break
            elif n_iter % CHECK_EVERY == CHECK_EVERY - 1:
                # A recurrence that has lost its directions would go on for ever.
                if not (squares <= 0.25 * earlier).all():
                    goal = begin()
                earlier = squares.copy()
            n_iter += 1
            # Columns that are done stay as they are, or they would divide noise by noise.
            is_active = squares > goal
            beta = _ratio(dots[1] * alpha, rho * omega, is_active)
            rho[:] = dots[1]
            _turn(direction, residual, applied, beta.astype(dtype), omega.astype(dtype))
            precondition.smooth(direction, first)
            precondition.apply(first, direction, shadow, applied, dots)
            alpha[:] = _ratio(rho, dots[0], is_active)
            _shorten(residual, applied, alpha.astype(dtype))
            precondition.smooth(residual, second)
            precondition.apply(second, residual, residual, image, dots)
            omega[:] = _ratio(dots[0], dots[1], is_active)
            steps = (np.array([alpha, omega], dtype), sizes[None])
            _step(vectors, first, second, *steps, residual, image, shadow, dots)
            squares[:] = dots[0]
            if n_iter == due and (squares > least**2).any():
                break
    _set_residual(*arrays, right, vectors, sizes[None], residual, squares[None])
    return n_iter, float(np.sqrt(squares.max(initial=0.0)))
