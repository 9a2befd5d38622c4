"""What a linear map already explains, and what is left over.

Ridge regression from domain to embedding, fitted on the known rows. What stage 3 then propagates
are its *leave-one-out* residuals: what the map would miss at each known row if that row had not
been there to fit it. In-sample residuals would be near zero and say nothing about unknown rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import svds

from vecfill._blas import one_blas_thread
from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.method.scaling import divided, safe_exponents, well_scaled

MAX_RANK = 512
"""Directions of the domain that a trend may use: wider or sparse domains are reduced to them."""

MOST_DECOMPOSED = 4000
"""The smaller side of a sparse domain up to which all its directions are computed."""

ALPHAS = np.logspace(-5, 5, 21)
"""Strengths tried, as multiples of the mean squared singular value."""

N_JUDGES = 16
"""Columns on which strengths are compared: random mixes, if the embedding has more."""


@dataclass(frozen=True)
class Trend:
    """A linear map from domain to embedding: its values for all rows, and what it misses."""

    values: np.ndarray
    """(n_rows, n_dims) the map's vector for every row."""
    residuals: np.ndarray
    """(n_known, n_dims) known minus the value that the map has when fitted without the row."""
    alpha: float
    """Strength chosen by the leave-one-out error, in the units of the coordinates, squared."""


@one_blas_thread()
def reduced(domain: Any) -> np.ndarray:
    """Return coordinates of all rows along the leading directions of the domain, centred.

    A change of basis loses nothing that ridge regression uses, as long as no more than
    `MAX_RANK` directions matter. Coordinates of a domain of extreme size are in units of a power
    of two, so that their squares are numbers.

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
        centred = domain - domain.mean(axis=0, dtype=np.float64)
        if n_features <= MAX_RANK:
            return centred
        mean = np.zeros(n_features)
    size = float(abs(centred).max()) or 1.0  # squares of it shall neither over- nor underflow
    centred, mean = centred / size, mean / size
    # Directions of the smaller of the two Gram matrices; both have the same non-zero spectrum.
    if n_rows <= n_features:
        along = centred @ mean
        gram = _dense(centred @ centred.T) - along[:, None] - along + mean @ mean
        squares, left = np.linalg.eigh(gram)
        kept = np.arange(squares.size)[::-1][:MAX_RANK]
        return size * left[:, kept] * np.sqrt(np.maximum(squares[kept], 0.0))
    _, right = np.linalg.eigh(_dense(centred.T @ centred) - n_rows * np.outer(mean, mean))
    leading = right[:, ::-1][:, :MAX_RANK]
    return size * (centred @ leading - mean @ leading)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if issparse(matrix) else matrix


def _leading_coordinates(domain: Any) -> np.ndarray:
    """Return the same for a sparse domain too large to decompose: about the leading directions."""
    start = np.random.default_rng(0).normal(size=min(domain.shape))
    left, values, _ = svds(domain.astype(np.float64), k=MAX_RANK, v0=start)
    coordinates = left * values
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
    known, coordinates = divided(known, exponent), well_scaled(coordinates)
    n_known = len(known)
    mean, centre = known.mean(axis=0), coordinates[is_known].mean(axis=0)
    wanted, rows = known - mean, coordinates[is_known] - centre
    if n_known < 2 or not rows.any():
        values = np.repeat(mean[None], len(coordinates), axis=0)
        return Trend(divided(values, -exponent), divided(wanted, -exponent), np.inf)
    left, singular, right = _decomposed(rows)
    alpha = _least_missing(left, singular, wanted)
    targets = left.T @ wanted
    slopes = right.T @ ((singular / (singular**2 + alpha))[:, None] * targets)
    residuals = _missed(left, singular, wanted, targets, alpha)
    values = (coordinates - centre) @ slopes + mean
    return Trend(divided(values, -exponent), divided(residuals, -exponent), alpha)


def _decomposed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition, by the smaller Gram matrix: several times quicker.

    Directions below its rounding are left out: they carry nothing that can be told from noise,
    and every strength that is tried holds them at zero.
    """
    if len(rows) < rows.shape[1]:
        right, singular, left = _decomposed(rows.T)
        return left.T, singular, right.T
    size = np.abs(rows).max()
    rows = rows / size
    squares, right = np.linalg.eigh(rows.T @ rows)
    kept = squares > 1e-12 * squares[-1]
    singular = np.sqrt(squares[kept])
    return rows @ right[:, kept] / singular, size * singular, right[:, kept].T


def _missed(
    left: np.ndarray, singular: np.ndarray, wanted: np.ndarray, targets: np.ndarray, alpha: float
) -> np.ndarray:
    """Return what the map misses at each row when fitted without it."""
    shrink = singular**2 / (singular**2 + alpha)
    leverage = np.minimum(1.0 / len(left) + (left**2) @ shrink, 1.0 - 1e-9)
    return (wanted - left @ (shrink[:, None] * targets)) / (1.0 - leverage)[:, None]


def _least_missing(left: np.ndarray, singular: np.ndarray, wanted: np.ndarray) -> float:
    """Return the strength with the least leave-one-out error, the stronger of equals."""
    if wanted.shape[1] > N_JUDGES:
        wanted = wanted @ np.random.default_rng(0).normal(size=(wanted.shape[1], N_JUDGES))
    targets = left.T @ wanted
    alphas = ALPHAS * (singular**2).mean()
    errors = [(_missed(left, singular, wanted, targets, alpha) ** 2).sum() for alpha in alphas]
    is_least = np.array(errors) <= min(errors) * (1 + 1e-9)
    return float(alphas[np.flatnonzero(is_least)[-1]])
