"""Systems of kernel ridge regression, each solved in the way that its size and kernel admit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, get_lapack_funcs, solve_triangular

from vecfill.errors import InputError
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import fill, parallel_map, row_blocks
from vecfill.model.kernels import Kernel

ROWS_PER_BLOCK = 1024
"""Rows whose kernel with the landmarks is made at a time: it stays in the cache while it is gone
over several times."""

COLUMNS_PER_BLOCK = 256
"""Coordinates whose products are made at a time."""

N_SUMS = 4
"""Parts in which sums over known rows are computed beside each other."""

LEAST_VALUE = 1e-7
"""Eigenvalue of a landmark kernel, relative to the largest, below which a direction is left out:
products of coordinates would have no digits there, and every strength holds it at zero."""


class Solved(Protocol):
    """A regression that was solved: what the kernel of a row with some known rows is good for."""

    kernel: Kernel
    landmarks: np.ndarray
    """Numbers of the known rows with which a row is compared."""

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return what the kernel is multiplied with to give the known rows' centred `values`."""
        ...

    def onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row (across) counts in rows (down) by their kernel."""
        ...

    def told(self, alike: np.ndarray) -> np.ndarray:
        """Return how much of each row's own kernel the known rows explain."""
        ...

    def of_few(self, n_rows: int) -> Solved:
        """Return the regression on a sample of so many known rows; itself if there are fewer."""
        ...


class Exact:
    """The regression on all known rows, by a Cholesky factorisation."""

    def __init__(self, kernel: Kernel, known: np.ndarray, ridge: float) -> None:
        self.kernel = kernel
        self.landmarks = known
        self.ridge = ridge

    @property
    def _lower(self) -> np.ndarray:
        """The factor, which others with the same known rows may have made."""
        return self.kernel.lately(("factor", self.ridge), self.landmarks, self._factored)

    def _factored(self) -> np.ndarray:
        # The ridge is on the diagonal, so the kernel is positive definite as long as it is not
        # tiny: Cholesky takes half the time of LU.
        gram = self.kernel.between(self.landmarks, self.landmarks)
        gram[np.diag_indices_from(gram)] += self.ridge
        try:
            return _lower_factor(gram)
        except LinAlgError as error:
            raise InputError(
                f"ridge={self.ridge:g} is too small: some known rows are so alike that their "
                "kernel cannot be inverted. Use a larger one, or leave it out to have it chosen."
            ) from error

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return what the kernel is multiplied with."""
        lower = self._lower
        return cho_solve((lower, True), values.astype(lower.dtype, copy=False), check_finite=False)

    def onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row counts."""
        return cho_solve((self._lower, True), alike.T, check_finite=False).T

    def told(self, alike: np.ndarray) -> np.ndarray:
        """Return how much of each row the known rows explain."""
        # k (K + ridge I)^-1 k' is the square of L^-1 k': half the work of solving for both sides.
        half = solve_triangular(self._lower, alike.T, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", half, half)

    def of_few(self, n_rows: int) -> Solved:
        """Return the regression on a sample of the known rows."""
        if self.landmarks.size <= n_rows:
            return self
        return Exact(self.kernel, sampled(self.landmarks, n_rows), self.ridge)


class Approximate:
    """The regression on all known rows, by eigenvalues: some may be negative, and are left out."""

    def __init__(self, factors: Factors, ridge: float) -> None:
        self.kernel = factors.kernel
        self.landmarks = factors.landmarks
        self.factors = factors
        self.ridge = ridge
        values = factors.values
        # Divided by (value + ridge), as the exact inverse would in the directions that are kept.
        self._turned = factors.back * (np.sqrt(values) / (values + ridge))
        self._told = values / (values + ridge)

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return what the kernel is multiplied with."""
        return self._turned @ (self.factors.vectors.T @ values)

    def onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row counts."""
        return (alike @ self._turned) @ self.factors.vectors.T

    def told(self, alike: np.ndarray) -> np.ndarray:
        """Return how much of each row the known rows explain."""
        return (alike @ self.factors.back) ** 2 @ self._told

    def of_few(self, n_rows: int) -> Solved:
        """Return the regression on a sample of the known rows."""
        if self.landmarks.size <= n_rows:
            return self
        sample = sampled(self.landmarks, n_rows)
        return Approximate(factorised(self.kernel, sample, sample), self.ridge)


class Restored(Approximate):
    """The same from a file, without the coordinates of the known rows: they are made again."""

    def __init__(self, factors: Factors, known: np.ndarray, ridge: float) -> None:
        super().__init__(factors, ridge)
        self.known = known

    def onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row counts, block by block."""
        # The coordinates of the known rows are their kernel times `back`, by the square root of
        # the values: the kernel is made again here, since a file that held them would be large.
        along = (alike @ self._turned) @ (self.factors.back / np.sqrt(self.factors.values)).T
        counts = np.empty((len(alike), self.known.size))
        for block in row_blocks(self.known.size, ROWS_PER_BLOCK):
            counts[:, block] = along @ self.kernel.between(self.known[block], self.landmarks).T
        return counts


class FromLandmarks:
    """The regression of many known rows on coordinates that some of them, the landmarks, give.

    The kernel of all known rows with the landmarks is never kept: it is made again in parts.
    """

    def __init__(
        self, kernel: Kernel, known: np.ndarray, landmarks: np.ndarray, ridge: float
    ) -> None:
        self.kernel = kernel
        self.known = known
        self.landmarks = landmarks
        self.ridge = ridge

    @property
    def _back(self) -> np.ndarray:
        """(n_landmarks, rank): the kernel of a row, times this, gives its coordinates."""

        def computed() -> np.ndarray:
            between = self.kernel.between(self.landmarks, self.landmarks)
            # Landmarks may be nearly alike; their kernel then has directions without any digits.
            values, turn = _positive(between, least=LEAST_VALUE)
            return turn / np.sqrt(values)

        return self.kernel.lately("back", self.landmarks, computed)

    @property
    def _lower(self) -> np.ndarray:
        """Factor of the known rows' products of coordinates, plus the ridge."""
        nothing = np.empty((self.known.size, 0))
        return self.kernel.recent.once(
            self._key(), lambda: self._factored(self._summed(nothing, is_squared=True)[1])
        )

    def _key(self) -> Hashable:
        return self.kernel.key(("lower", self.ridge, self.landmarks.tobytes()), self.known)

    def _factored(self, squares: np.ndarray) -> np.ndarray:
        back = self._back
        products = np.empty((back.shape[1], back.shape[1]))

        def put(block: slice, part: np.ndarray) -> None:
            part[:] = back.T @ (squares @ back[:, block])

        blocks = row_blocks(back.shape[1], COLUMNS_PER_BLOCK)
        fill([products], put, blocks, axis=1, n_jobs=self.kernel.space.n_threads)
        products[np.diag_indices_from(products)] += self.ridge
        return _lower_factor(products)

    def _parts(self) -> Iterator[np.ndarray]:
        for block in row_blocks(self.known.size, ROWS_PER_BLOCK):
            # Made again each time: for a million rows it would be 8 GB.
            yield self.kernel.between(self.known[block], self.landmarks)

    def _summed(self, values: np.ndarray, *, is_squared: bool) -> tuple[np.ndarray, Any]:
        """Return sums over known rows of their kernel times `values`, and squared if asked for."""

        def summed(blocks: Sequence[slice]) -> list[Any]:
            sums: list[Any] = [0.0, 0.0]
            if not blocks:
                _ = self._back  # which is needed next, and does not depend on the sums
            for block in blocks:
                alike = self.kernel.between(self.known[block], self.landmarks)
                sums[0] += alike.T @ values[block]
                if is_squared:
                    sums[1] += alike.T @ alike
            return sums

        blocks = row_blocks(self.known.size, ROWS_PER_BLOCK)
        # Sums of as many parts for any number of threads, so that they have the same bits.
        parts = [blocks[place::N_SUMS] for place in range(min(N_SUMS, len(blocks)))]
        _, *sums = parallel_map(summed, [[], *parts], n_jobs=self.kernel.space.n_threads)
        products, squares = (
            reduce(np.add, parts_of_one) for parts_of_one in zip(*sums, strict=True)
        )
        return products, squares

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return what the kernel is multiplied with."""
        recent, key = self.kernel.recent, self._key()
        lower = recent.get(key)
        # To make the kernel takes long, so what the factor needs is summed up on the way.
        products, squares = self._summed(values, is_squared=lower is None)
        if lower is None:
            lower = recent.put(key, self._factored(squares))
        # The sum of the coordinates' products with `values`, and back again to the landmarks.
        back = self._back
        return back @ cho_solve((lower, True), back.T @ products)

    def onto_known(self, alike: np.ndarray) -> np.ndarray:
        """Return what each known row counts."""
        steps = cho_solve((self._lower, True), (alike @ self._back).T)
        turned = self._back @ steps
        return np.vstack([part @ turned for part in self._parts()]).T

    def told(self, alike: np.ndarray) -> np.ndarray:
        """Return how much of each row the known rows explain."""
        # What the Nystrom kernel of a row with itself has, less what the ridge leaves of it.
        coordinates = (alike @ self._back).T
        half = solve_triangular(self._lower, coordinates, lower=True, check_finite=False)
        explained = np.einsum("ij,ij->j", coordinates, coordinates)
        return explained - self.ridge * np.einsum("ij,ij->j", half, half)

    def of_few(self, n_rows: int) -> Solved:
        """Return the regression on a sample of the known rows."""
        sample = sampled(self.known, n_rows)
        if self.kernel.space.has_vectors:
            return Exact(self.kernel, sample, self.ridge)
        return Approximate(factorised(self.kernel, sample, sample), self.ridge)


@dataclass(frozen=True, eq=False)
class Factors:
    """A kernel of known rows as ``vectors @ diag(values) @ vectors.T``."""

    kernel: Kernel
    landmarks: np.ndarray
    """Numbers of the rows from which the kernel is approximated: all known ones, if few."""
    vectors: np.ndarray = field(repr=False)
    """(n_known, rank), orthonormal columns."""
    values: np.ndarray = field(repr=False)
    """(rank,), positive."""
    back: np.ndarray = field(repr=False)
    """(n_landmarks, rank): the kernel of a row with the landmarks, times this, gives the row's
    coordinates; those of the known rows are ``vectors * sqrt(values)``."""

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return self.vectors.nbytes + self.values.nbytes + self.back.nbytes

    def left_out(self, known: np.ndarray, ridge: float) -> np.ndarray:
        """Return each known row as predicted from all others, minus the mean of the others.

        In closed form, exactly what fits without the row would give, with the landmarks fixed.
        """
        n_known = len(known)
        centred = known.astype(np.float64) - known.mean(axis=0, dtype=np.float64)
        # A fit without a row has another mean too; the known rows' own mean would leak it.
        mean_of_others = -centred / max(1, n_known - 1)
        shrink = self.values / (self.values + ridge)
        missed = centred - self.vectors @ (shrink[:, None] * (self.vectors.T @ centred))
        missed_by_one = 1.0 - self.vectors @ (shrink * self.vectors.sum(axis=0))
        # One minus the leverage: how far the fit at a row is free of the row itself. At 0 the fit
        # repeats the row whatever it is, and the floor keeps the residual finite.
        free = np.maximum(1.0 - self.vectors**2 @ shrink, 1e-9)
        # The mean is taken off by hand, so it is left out by hand as well.
        residual = (missed - missed_by_one[:, None] * mean_of_others) / free[:, None]
        return centred - residual - mean_of_others


class Inverse:
    """A kernel of known rows in 32 bits, without negative eigenvalues, to be inverted.

    For one strength it takes a tenth of the time of the eigenvalues that `Factors` needs, which
    serve all strengths.
    """

    def __init__(self, gram: np.ndarray) -> None:
        self.gram = gram

    def left_out(self, known: np.ndarray, ridge: float) -> np.ndarray:
        """Return each known row minus the mean of the others, as `Factors.left_out` does."""
        n_known, n_dims = known.shape
        centred = known.astype(np.float64) - known.mean(axis=0, dtype=np.float64)
        # A largest number of one: the squares of extreme vectors are no numbers in 32 bits.
        size = float(np.abs(centred).max(initial=0.0)) or 1.0
        centred = (centred / size).astype(np.float32)
        gram = self.gram.copy()
        gram[np.diag_indices_from(gram)] += ridge
        lower = _lower_factor(gram)
        (trtri,) = get_lapack_funcs(("trtri",), (lower,))
        inverse, _ = trtri(lower, lower=1, overwrite_c=1)
        sides = np.column_stack([centred, np.ones(n_known, np.float32)])
        missed = inverse.T @ (inverse @ sides)
        # The diagonal of the whole inverse: how far the fit at a row is free of the row itself.
        free = np.einsum("ij,ij->j", inverse, inverse)
        # A fit without a row has another mean too; the known rows' own mean would leak it.
        mean_of_others = -centred / max(1, n_known - 1)
        residual = (missed[:, :n_dims] - missed[:, n_dims:] * mean_of_others) / free[:, None]
        return size * (centred - residual - mean_of_others).astype(np.float64)


@one_blas_thread()
def factorised(kernel: Kernel, known: np.ndarray, landmarks: np.ndarray) -> Factors:
    """Return a kernel of known rows in factors, from some of them or exactly from all.

    Examples
    --------
    >>> from vecfill.model.space import Space
    >>> kernel = Kernel(Space(np.array([[0.0], [1.0], [3.0]])), "as_given", "rbf")
    >>> found = factorised(kernel, np.arange(3), np.arange(3))
    >>> whole = found.vectors * found.values @ found.vectors.T
    >>> np.allclose(whole, kernel.between(np.arange(3), np.arange(3)))
    True
    """
    factors = factors_of(kernel, landmarks, lambda: kernel.between(landmarks, landmarks))
    if np.array_equal(known, landmarks):
        return factors
    back = factors.back
    # Orthonormal columns for all known rows, so that leave-one-out is as cheap as for the exact.
    coordinates = kernel.between(known, landmarks) @ back
    values, turn = _positive(coordinates.T @ coordinates)
    vectors = coordinates @ (turn / np.sqrt(values))
    return Factors(kernel, landmarks, vectors, values, back @ turn)


@one_blas_thread()
def factors_of(kernel: Kernel, rows: np.ndarray, gram: Callable[[], np.ndarray]) -> Factors:
    """Return the kernel of some rows, which `gram` makes, in factors."""

    def computed() -> Factors:
        values, turn = _positive(gram())
        return Factors(kernel, rows, turn, values, turn / np.sqrt(values))

    return kernel.lately("factors", rows, computed)


def _lower_factor(gram: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of a symmetric matrix, in its place."""
    # Turned over it is the same matrix, and in the order of LAPACK, which takes 40 % of the time.
    return cholesky(gram.T, lower=True, overwrite_a=True, check_finite=False)


def _positive(gram: np.ndarray, *, least: float = 1e-10) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive eigenvalues above rounding and their vectors.

    Distances that are not Euclidean can make a kernel with negative ones; they are left out.
    """
    values, vectors = np.linalg.eigh(gram)
    # 1e-300: of a kernel that is all zeros nothing is above rounding, and nothing may divide by 0.
    is_positive = values > max(least * values[-1], 1e-300)
    return values[is_positive], vectors[:, is_positive]


def sampled(rows: np.ndarray, n_sampled: int) -> np.ndarray:
    """Return at most so many rows, the same ones each time, ascending."""
    if rows.size <= n_sampled:
        return rows
    # At random, since rows in order of frequency or place would be a poor sample.
    return np.sort(np.random.default_rng(0).permutation(rows)[:n_sampled])
