"""Domain vectors -> the geometry in which rows are compared; each preparation by its name.

Every one is a pure function of the whole matrix, keeps float32, and is safe for rows of zeros.
Sparse matrices stay sparse, except where a component is removed, which fills every entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array, diags_array

from vecfill.errors import InputError
from vecfill.inputs.prepared import Matrix
from vecfill.inputs.table.scaling import inverse, standardized
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import row_blocks
from vecfill.model.rank_normal import RankNormal, own_scores

_SMALL = 500
_N_ROUNDS = 30
_MAX_DENSE = 1 << 31
ROWS_PER_BLOCK = 2048
"""Rows that are in the cache at once."""


def as_given(domain: Matrix) -> Matrix:
    """Return the vectors unchanged.

    Examples
    --------
    >>> as_given(np.array([[1.0, 2.0]]))
    array([[1., 2.]])
    """
    return domain


def unit_rows(domain: Matrix) -> Matrix:
    """Return rows of length 1, so that distance means angle; a row of zeros stays one.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if isinstance(domain, csr_array):
        largest = abs(domain).max(axis=1).toarray().ravel().astype(np.float64)
        scaled = diags_array(inverse(largest)) @ domain
        length = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        return csr_array(diags_array(inverse(length)) @ scaled).astype(domain.dtype)
    found = np.empty_like(domain)
    for part in row_blocks(len(domain), ROWS_PER_BLOCK):
        exact = domain[part].astype(np.float64)
        exact *= inverse(np.abs(exact).max(axis=1, initial=0.0))[:, None]
        exact *= inverse(np.linalg.norm(exact, axis=1))[:, None]
        found[part] = exact
    return found


@one_blas_thread()
def unit_rows_without_first_component(domain: Matrix) -> Matrix:
    """Return unit rows after the first principal component has been taken out of the columns.

    For returns of companies that component is the market, which all share. The result is
    dense; a sparse matrix that would not fit is refused.

    Examples
    --------
    >>> shared = np.array([[9.0, 1.0], [-9.0, 1.0], [8.0, -1.0], [-8.0, -1.0]])
    >>> unit_rows_without_first_component(shared)[:, 1].round(6)
    array([ 1.,  1., -1., -1.])
    """
    if isinstance(domain, csr_array):
        n_rows, n_features = domain.shape
        if n_rows * n_features * domain.dtype.itemsize > _MAX_DENSE:
            raise InputError(
                f"removing a component fills all {n_rows:,} x {n_features:,} entries of this "
                "sparse domain. Choose 'unit_rows', or reduce the columns first."
            )
        exact = csr_array(domain).toarray().astype(np.float64)
    else:
        exact = domain.astype(np.float64)
    largest = float(np.abs(exact).max(initial=0.0))
    if largest > 0:
        exact /= largest
    exact -= exact.mean(axis=0) if len(exact) else 0.0
    direction = first_direction(exact)
    exact -= np.outer(exact @ direction, direction)
    # What only rounding has left of a row must not be blown up to length 1.
    exact[np.linalg.norm(exact, axis=1) < 1e-12] = 0.0
    return unit_rows(exact).astype(domain.dtype)


def rank_normal(domain: Matrix) -> Matrix:
    """Return columns whose values are normal scores of their ranks, so that only order counts.

    Skewed columns and outliers lose their hold on distances. `RankNormal.fitted` keeps what is
    needed to prepare other rows in the same way.

    Examples
    --------
    >>> rank_normal(np.array([[1.0], [2.0], [1000.0]])).round(2).ravel()
    array([-0.97,  0.  ,  0.97])
    """
    if isinstance(domain, csr_array):
        return RankNormal.fitted(domain).applied(domain)
    scores = np.empty(domain.shape, domain.dtype)
    for column in range(domain.shape[1]):
        scores[:, column] = own_scores(domain[:, column].astype(np.float64))
    return scores


def rank_normal_unit_rows(domain: Matrix) -> Matrix:
    """Return the same with rows of length 1.

    Examples
    --------
    >>> rank_normal_unit_rows(np.array([[1.0, 5.0], [2.0, 9.0], [8.0, 6.0]])).round(2)[0]
    array([-0.71, -0.71])
    """
    return unit_rows(rank_normal(domain))


PREPARATIONS: Mapping[str, Callable[[Matrix], Matrix]] = MappingProxyType(
    {
        "as_given": as_given,
        "standardized": standardized,
        "unit_rows": unit_rows,
        "unit_rows_without_first_component": unit_rows_without_first_component,
        "rank_normal": rank_normal,
        "rank_normal_unit_rows": rank_normal_unit_rows,
    }
)
"""The preparations by name, in the order in which they are tried."""

PREPARED_IN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "standardized": "columns standardized",
        "unit_rows": "rows of unit length",
        "unit_rows_without_first_component": "rows of unit length without their main direction",
        "rank_normal": "columns by rank",
        "rank_normal_unit_rows": "columns by rank, rows of unit length",
    }
)
"""What readers are told about a preparation; nothing about rows taken as they are."""


def first_direction(centred: np.ndarray) -> np.ndarray:
    """Return the first principal direction, fully decomposed or, if large, by power steps."""
    n_rows, n_features = centred.shape
    if min(n_rows, n_features) == 0:
        return np.zeros(n_features)
    if n_features <= _SMALL:
        return np.linalg.eigh(centred.T @ centred)[1][:, -1]
    if n_rows <= _SMALL:
        left = np.linalg.eigh(centred @ centred.T)[1][:, -1] @ centred
        length = np.linalg.norm(left)
        return left / length if length > 0 else left
    # A block of directions converges by the gap to the ninth, not to the second.
    block = np.random.default_rng(0).standard_normal((n_features, 8))
    for _ in range(_N_ROUNDS):
        block = np.linalg.qr(centred.T @ (centred @ block))[0]
    projected = centred @ block
    turns = np.linalg.eigh(projected.T @ projected)[1]
    return block @ turns[:, -1]
