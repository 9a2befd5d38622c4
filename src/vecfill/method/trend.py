"""What a linear map already explains, and what is left over.

Ridge regression from domain to embedding, fitted on the known rows. What stage 3 then propagates
are its *leave-one-out* residuals: what the map would miss at each known row if that row had not
been there to fit it. In-sample residuals would be near zero and say nothing about unknown rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import svds

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import row_blocks
from vecfill.method.scaling import divided, safe_exponents, well_scaled

# A guess.
MAX_RANK = 512
"""Directions of the domain that a trend may use: wider or sparse domains are reduced to them."""

# A guess, by the cube of the side.
MOST_DECOMPOSED = 4000
"""The smaller side of a sparse domain up to which all its directions are computed."""

# A guess.
N_BEYOND = 64
"""Directions sought besides, so that the last ones wanted are nearly those that they should be."""

# A guess: ten powers of ten, in steps of about three.
ALPHAS = np.logspace(-5, 5, 21)
"""Strengths tried, as multiples of the mean squared singular value."""

# A guess that keeps a block in the cache.
ROWS_PER_BLOCK = 4096

# A guess: one strength serves all columns, and mixes of all of them judge it.
N_JUDGES = 16
"""Columns on which strengths are compared: random mixes, if the embedding has more."""


@dataclass(frozen=True)
class Trend:
    """A linear map from domain to embedding: its values for any rows, and what it misses."""

    at: Callable[[Any], np.ndarray]
    """Row numbers, or a slice of rows -> the map's vectors for them, (n_asked, n_dims)."""
    residuals: np.ndarray
    """(n_known, n_dims) known minus the value that the map has when fitted without the row."""
    alpha: float
    """Strength chosen by the leave-one-out error, in the units of the coordinates, squared."""
    slopes: np.ndarray | None = None
    """(n_coordinates, n_dims): the values are ``coordinates @ slopes + shift``."""
    shift: np.ndarray | None = None
    """(n_dims,)."""

    @property
    def values(self) -> np.ndarray:
        """(n_rows, n_dims) the map's vector for every row."""
        return self.at(slice(None))


def _mapped(
    coordinates: np.ndarray,
    centre: np.ndarray,
    slopes: np.ndarray,
    mean: np.ndarray,
    exponent: np.ndarray,
    rows: Any,
) -> np.ndarray:
    """Return the vectors that a linear map has for some rows."""
    with one_blas_thread():
        return divided(mapped(coordinates[rows], centre, slopes, mean), -exponent)


def mapped(
    rows: np.ndarray, centre: np.ndarray, slopes: np.ndarray, mean: np.ndarray
) -> np.ndarray:
    """Return the vectors that a linear map through `centre` and `mean` has for some rows.

    Examples
    --------
    >>> mapped(np.array([[3.0]]), np.array([1.0]), np.array([[2.0]]), np.array([10.0]))
    array([[14.]])
    """
    return (rows.astype(np.float64) - centre) @ slopes + mean


@one_blas_thread()
def reduced(domain: Any) -> np.ndarray:
    """Return coordinates of all rows along the leading directions of the domain, centred.

    A change of basis loses nothing that ridge regression uses, as long as no more than
    `MAX_RANK` directions matter. Coordinates of a domain of extreme size are in units of a power
    of two, so that their squares are numbers. Of a dense domain that is not reduced, they keep its
    precision.

    Examples
    --------
    >>> reduced(np.array([[0.0, 0.0], [3.0, 4.0]])).round(1).tolist()
    [[-1.5, -2.0], [1.5, 2.0]]
    """
    domain = well_scaled(domain)
    n_rows, n_features = domain.shape
    if issparse(domain):
        if min(n_rows, n_features) > MOST_DECOMPOSED:
            return _leading_coordinates(domain)
        centred = domain.astype(np.float64)
        # Not filled by centring: what that does to products is known.
        mean = np.asarray(centred.mean(axis=0)).ravel()
    else:
        mean = domain.mean(axis=0, dtype=np.float64)
        if n_features <= MAX_RANK:
            centred = np.empty_like(domain)
            for part in row_blocks(n_rows, ROWS_PER_BLOCK):
                centred[part] = domain[part] - mean
            return centred
        centred = domain - mean
        mean = np.zeros(n_features)
    size = float(abs(centred).max()) or 1.0  # squares of it shall neither over- nor underflow
    centred, mean = centred / size, mean / size
    # Directions of the smaller of the two Gram matrices; both have the same non-zero spectrum.
    if n_rows <= n_features:
        along = centred @ mean
        gram = _dense(centred @ centred.T) - along[:, None] - along + mean @ mean
        squares, vectors = _leading(gram) if issparse(domain) else np.linalg.eigh(gram)
        largest = np.arange(squares.size)[::-1][:MAX_RANK]
        return size * vectors[:, largest] * np.sqrt(np.maximum(squares[largest], 0.0))
    gram = _dense(centred.T @ centred) - n_rows * np.outer(mean, mean)
    _, right = _leading(gram) if issparse(domain) else np.linalg.eigh(gram)
    leading = right[:, ::-1][:, :MAX_RANK]
    return size * (centred @ leading - mean @ leading)


def _leading(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return about the leading directions of a Gram matrix, in ascending order as `eigh` does.

    By one step of block power iteration: two fifths of the time of all directions at 2,000 rows.
    The last ones wanted are mixed with those just beyond them, which carry as much.
    """
    n_directions = MAX_RANK + N_BEYOND
    if len(gram) < 2 * n_directions:
        return np.linalg.eigh(gram)
    start = np.random.default_rng(0).normal(size=(len(gram), n_directions)).astype(np.float32)
    # In 32 bits, which only choose the directions; what is read off along them has 64.
    single = gram.astype(np.float32)
    basis = np.linalg.qr((single @ (single @ start)).astype(np.float64))[0]
    squares, turns = np.linalg.eigh(basis.T @ (gram @ basis))
    return squares, basis @ turns


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if issparse(matrix) else matrix


def _leading_coordinates(domain: Any) -> np.ndarray:
    """Return the same for a sparse domain too large to decompose: about the leading directions."""
    start = np.random.default_rng(0).normal(size=min(domain.shape))
    directions, values, _ = svds(domain.astype(np.float64), k=MAX_RANK, v0=start)
    coordinates = directions * values
    return coordinates - coordinates.mean(axis=0)


@one_blas_thread()
def linear_trend(
    coordinates: np.ndarray, embedding: EmbeddingVectors, is_known: KnownMask
) -> Trend:
    """Return the ridge regression of the known vectors on their rows of `coordinates`.

    Its strength is the one with the least leave-one-out error, which one decomposition gives in
    closed form for all strengths: an in-sample residual divided by one minus its leverage.

    Examples
    --------
    >>> coordinates = np.array([[-1.0], [0.0], [1.0], [2.0]])
    >>> embedding = np.array([[1.0], [2.0], [3.0], [np.nan]])
    >>> is_known = np.array([True, True, True, False])
    >>> linear_trend(coordinates, embedding, is_known).values.round(3).ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    known = embedding[is_known].astype(np.float64)
    exponent = safe_exponents(known, each_column=False)
    unit = _unit_of(coordinates)
    known, coordinates = divided(known, exponent), well_scaled(coordinates)
    n_known = len(known)
    rows = coordinates[is_known].astype(np.float64)
    mean, centre = known.mean(axis=0), rows.mean(axis=0)
    centred, rows = known - mean, rows - centre
    if n_known < 2 or not rows.any():
        slopes = np.zeros((coordinates.shape[1], known.shape[1]))
        constant = partial(_mapped, coordinates, centre, slopes, mean, exponent)
        return Trend(
            constant, divided(centred, -exponent), np.inf, slopes, divided(mean, -exponent)
        )
    left_vectors, singular, right_vectors = _decomposed(rows)
    alpha = _least_missing(left_vectors, singular, centred)
    targets = left_vectors.T @ centred
    slopes = slopes_of(singular, right_vectors.T, targets, alpha)
    residuals = missed(left_vectors, singular, centred, targets, alpha)
    line = divided(slopes, -exponent) * unit, divided(mean - centre @ slopes, -exponent)
    at = partial(_mapped, coordinates, centre, slopes, mean, exponent)
    return Trend(at, divided(residuals, -exponent), alpha, *line)


def _unit_of(coordinates: np.ndarray) -> float:
    """Return what `well_scaled` multiplies coordinates with."""
    largest = max(coordinates.max(initial=0.0), -coordinates.min(initial=0.0))
    return float(well_scaled(largest[None, None]).item() / largest) if largest > 0 else 1.0


@one_blas_thread()
def trend_in_rows(trend: Trend, rows: Any, coordinates: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a trend as a map of domain rows: slopes and shift, ``rows @ slopes + shift``.

    `coordinates` are those that `reduced` gave for `rows`.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [4.0]])
    >>> coordinates, is_known = reduced(rows), np.ones(3, bool)
    >>> trend = linear_trend(coordinates, 3 * rows, is_known)
    >>> slopes, shift = trend_in_rows(trend, rows, coordinates)
    >>> (np.array([[10.0]]) @ slopes + shift).round(2)
    array([[30.]])
    """
    assert trend.slopes is not None
    assert trend.shift is not None
    unit = _unit_of(rows.data[:, None] if issparse(rows) else rows)
    rows = well_scaled(rows)
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    slopes = trend.slopes
    if issparse(rows) or rows.shape[1] > MAX_RANK:
        # Coordinates are products with orthonormal directions, so these can be had from them.
        squares = np.einsum("ij,ij->j", coordinates, coordinates)
        is_large = squares > 1e-12 * squares.max(initial=0.0)
        inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=is_large)
        slopes = (rows.T @ coordinates * inverse) @ slopes
    return slopes * unit, trend.shift - mean @ slopes


def _decomposed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition, by the smaller Gram matrix: several times quicker.

    Directions below its rounding are left out: they carry nothing that can be told from noise,
    and every strength that is tried holds them at zero.
    """
    if len(rows) < rows.shape[1]:
        right_vectors, singular, left_vectors = _decomposed(rows.T)
        return left_vectors.T, singular, right_vectors.T
    size = np.abs(rows).max()
    rows = rows / size
    singular, right_vectors = directions_of(rows.T @ rows)
    return rows @ right_vectors / singular, size * singular, right_vectors.T


def directions_of(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values and right singular vectors of rows, by their Gram matrix.

    Examples
    --------
    >>> directions_of(np.diag([0.0, 4.0]))
    (array([2.]), array([[0.],
           [1.]]))
    """
    squares, right = np.linalg.eigh(gram)
    is_clear = squares > 1e-12 * max(squares[-1], np.finfo(np.float64).tiny)
    return np.sqrt(squares[is_clear]), right[:, is_clear]


def slopes_of(
    singular: np.ndarray, right: np.ndarray, targets: np.ndarray, alpha: float
) -> np.ndarray:
    """Return the map of ridge regression; `targets` are the left singular vectors' products.

    Examples
    --------
    >>> slopes_of(np.ones(1), np.eye(1), np.array([[4.0]]), 1.0)
    array([[2.]])
    """
    return right @ ((singular / (singular**2 + alpha))[:, None] * targets)


def missed(
    left_vectors: np.ndarray,
    singular: np.ndarray,
    centred: np.ndarray,
    targets: np.ndarray,
    alpha: float,
    n_rows: int | None = None,
) -> np.ndarray:
    """Return what the map misses at each row when fitted without it.

    `n_rows` says how many rows the map was fitted on, if `left` has only some of them.
    """
    shrink = singular**2 / (singular**2 + alpha)
    n_rows = len(left_vectors) if n_rows is None else n_rows
    leverage = np.minimum(1.0 / n_rows + (left_vectors**2) @ shrink, 1.0 - 1e-9)
    return (centred - left_vectors @ (shrink[:, None] * targets)) / (1.0 - leverage)[:, None]


def _least_missing(left_vectors: np.ndarray, singular: np.ndarray, centred: np.ndarray) -> float:
    """Return the strength with the least leave-one-out error, the stronger of equals."""
    centred = centred @ judges(centred.shape[1])
    targets = left_vectors.T @ centred
    errors = np.zeros(ALPHAS.size)
    # A part that stays in the cache is looked at under all strengths before the next.
    for part in row_blocks(len(left_vectors), ROWS_PER_BLOCK):
        block = left_vectors[part], singular, centred[part], targets
        errors += errors_of(*block, len(left_vectors))
    return strongest_of_best(strengths_of(singular), errors)


def strengths_of(singular: np.ndarray) -> np.ndarray:
    """Return the strengths that are tried on rows with these singular values.

    Examples
    --------
    >>> strengths_of(np.array([2.0]))[10]
    np.float64(4.0)
    """
    return ALPHAS * (singular**2).mean()


def errors_of(
    left_vectors: np.ndarray,
    singular: np.ndarray,
    centred: np.ndarray,
    targets: np.ndarray,
    n_rows: int,
) -> np.ndarray:
    """Return the leave-one-out error of each strength on some of the `n_rows` rows."""
    block = left_vectors, singular, centred, targets
    strengths = strengths_of(singular)
    return np.array([(missed(*block, alpha, n_rows) ** 2).sum() for alpha in strengths])


def judges(n_dims: int) -> np.ndarray:
    """Return the mixes of columns on which strengths are compared: all, or a few random ones.

    Examples
    --------
    >>> judges(2), judges(300).shape
    (array([[1., 0.],
           [0., 1.]]), (300, 16))
    """
    if n_dims <= N_JUDGES:
        return np.eye(n_dims)
    return np.random.default_rng(0).normal(size=(n_dims, N_JUDGES))


def strongest_of_best(alphas: np.ndarray, errors: np.ndarray) -> float:
    """Return the strength with the least error, the stronger of equals.

    Examples
    --------
    >>> strongest_of_best(np.array([1.0, 2.0, 3.0]), np.array([5.0, 4.0, 4.0]))
    3.0
    """
    is_least = errors <= errors.min() * (1 + 1e-9)
    return float(alphas[np.flatnonzero(is_least)[-1]])
