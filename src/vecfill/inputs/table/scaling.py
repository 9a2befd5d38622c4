"""Columns of a domain brought to one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from vecfill.checks import is_sparse
from vecfill.inputs.prepared import Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def standardized(domain: Matrix) -> Matrix:
    """Return columns of mean 0 and variance 1; a constant column becomes 0.

    A sparse matrix is scaled but not shifted, which leaves every distance the same.

    Examples
    --------
    >>> standardized(np.array([[1.0, 7.0], [3.0, 7.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    if is_sparse(domain):
        return _standardized_sparse(cast("csr_array", domain))
    exact = domain.astype(np.float64)
    # Divided by the largest entry first, so that squares neither overflow nor vanish.
    exact *= inverse(np.abs(exact).max(axis=0, initial=0.0))
    varies = exact.min(axis=0, initial=np.inf) < exact.max(axis=0, initial=-np.inf)
    exact -= exact.mean(axis=0)
    exact *= inverse(np.where(varies, exact.std(axis=0), 0.0))
    return exact.astype(domain.dtype)


def _standardized_sparse(domain: csr_array) -> csr_array:
    from scipy.sparse import csr_array, diags_array  # noqa: PLC0415 - slow to load

    largest, spread = _largest_and_spread(domain)
    scaled = domain @ diags_array(inverse(largest))
    return csr_array(scaled @ diags_array(inverse(spread))).astype(domain.dtype)


def _largest_and_spread(domain: csr_array) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse import diags_array  # noqa: PLC0415 - slow to load

    largest = np.maximum(abs(domain).max(axis=0).toarray().ravel(), 0).astype(np.float64)
    scaled = domain @ diags_array(inverse(largest))
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    spread[spread <= 1e-7] = 0
    return largest, spread


def standardizing_factors(domain: csr_array) -> np.ndarray:
    """Return by what `standardized` multiplies each column of a sparse matrix.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> standardizing_factors(csr_array(np.array([[0.0], [4.0]])))
    array([0.5])
    """
    largest, spread = _largest_and_spread(domain)
    return inverse(largest) * inverse(spread)


def inverse(lengths: np.ndarray) -> np.ndarray:
    """Return one over each length, and 0 for a length of 0.

    Examples
    --------
    >>> inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    with np.errstate(over="ignore", divide="ignore"):
        return np.where(lengths > 0, np.minimum(1 / lengths, np.finfo(np.float64).max), 0.0)
