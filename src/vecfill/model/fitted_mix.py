"""New rows as convex mixes of fitted ones, whose vectors are known or imputed by now."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.model.known import KnownRows
from vecfill.model.prediction import Mix, PropagatedMix
from vecfill.model.space import Space, WeightsKey
from vecfill.model.wanted import Wanted

CARRIED_TOL = 1e-6
"""Residual to which what known rows carry is solved; it is kept with three digits."""


class FittedMix(Mix):
    """The mix of the nearest fitted rows, which are mixes of known ones themselves.

    Examples
    --------
    >>> from vecfill.model.wanted import New
    >>> space, key = Space(np.array([[0.0], [4.0]])), WeightsKey(min_degree=2, weight_floor=0.0)
    >>> given = KnownRows(np.zeros((2, 1)), np.array([True, True]))
    >>> FittedMix(space, key, given, New(np.array([[1.0]]))).shares([0])
    array([[0.75, 0.25]])
    """

    def __init__(self, space: Space, key: WeightsKey, given: KnownRows, wanted: Wanted) -> None:
        self.space = space
        self.key = key
        self.given = given
        self.rows = wanted.prepared(space, key.preparation, given)
        """The new rows, prepared."""
        self.mixes, _ = space.mixes_of_new(self.rows, key, weight_floor=key.weight_floor)
        """(n_new, n_rows) weights on fitted rows."""

    @cached_property
    def used(self) -> np.ndarray:
        """Numbers of the fitted rows that are mixed: there may be millions of others."""
        return np.unique(self.mixes.indices)

    @cached_property
    def among_used(self) -> csr_array:
        """(n_new, n_used) the same weights."""
        places = np.searchsorted(self.used, self.mixes.indices)
        shape = (self.mixes.shape[0], self.used.size)
        return csr_array((self.mixes.data, places, self.mixes.indptr), shape)

    def of_fitted(self, values: Any) -> np.ndarray:
        """Return the mix of what every fitted row has, in 64 bits; only used rows are read."""
        return self.among_used @ values[self.used].astype(np.float64)

    @property
    def _propagated(self) -> PropagatedMix:
        return PropagatedMix(self.space, self.key, self.given)

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row: directly, and through imputed rows."""
        is_known, mixes = self.given.is_known, csr_array(self.mixes[places])
        among_known = np.cumsum(is_known) - 1
        among_unknown = np.arange(is_known.size) - among_known - 1
        shares = np.zeros((mixes.shape[0], self.given.n_known))
        through = np.unique(mixes.indices[~is_known[mixes.indices]])
        if through.size:
            shares += mixes[:, through] @ self._propagated.shares(among_unknown[through])
        row, column = mixes.tocoo().coords
        direct = is_known[column]
        np.add.at(shares, (row[direct], among_known[column[direct]]), mixes.data[direct])
        return shares

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every new row."""
        return self.of_fitted(_at_fitted(self._propagated, values, np.float64, np.float64, tol))

    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the same of what known rows carry; it is propagated once and kept."""
        at_fitted = carried_by_fitted(self.space, self.key, self.given, values, tol=tol)
        return self.of_fitted(at_fitted)

    def misfit(self) -> np.ndarray:
        """Return how badly the neighbours explain each row, relative to how far they are."""
        if not self.space.has_vectors:
            return np.zeros(self.mixes.shape[0])
        rows, near = self.rows, self.space.prepared(self.key.preparation)[self.used]
        near, rows = (each.toarray() if issparse(each) else each for each in (near, rows))
        near, rows = near.astype(np.float64), rows.astype(np.float64)
        mixes = self.among_used
        missed = np.linalg.norm(rows - mixes @ near, axis=1)
        owner = np.repeat(np.arange(mixes.shape[0]), np.diff(mixes.indptr))
        squares = ((near[mixes.indices] - rows[owner]) ** 2).sum(axis=1)
        spread = np.sqrt(np.bincount(owner, mixes.data * squares, mixes.shape[0]))
        return np.divide(missed, spread, out=np.zeros_like(missed), where=spread > 0)

    def straight(self) -> np.ndarray:
        """Return how much of each row's weight rests on known rows directly."""
        is_known = self.given.is_known
        on_known = self.mixes.multiply(is_known[None, :]) if self.mixes.nnz else self.mixes
        return np.asarray(on_known.sum(axis=1)).ravel()

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each row."""
        return np.asarray(self.mixes.max(axis=1).todense()).ravel()


def carried_by_fitted(
    space: Space,
    key: WeightsKey,
    given: KnownRows,
    carried: Callable[[], np.ndarray],
    *,
    tol: float = CARRIED_TOL,
) -> np.ndarray:
    """Return what known rows carry for signals, propagated to all rows, and kept.

    In half precision, which is enough: signals of confidence are compared by rank.
    """

    def propagated() -> np.ndarray:
        mix = PropagatedMix(space, key, given)
        return _at_fitted(mix, carried(), np.float32, np.float16, tol)

    return given.once(("carried", key), propagated)


def _at_fitted(
    mix: PropagatedMix, values: np.ndarray, solved: Any, dtype: Any, tol: float
) -> np.ndarray:
    """Return values of the known rows, propagated to the others: `solved` and kept as a type."""
    given = mix.given
    at_fitted = np.empty((given.is_known.size, values.shape[1]), dtype)
    at_fitted[given.is_known] = values
    if given.unknown.size:
        at_fitted[given.unknown] = mix.spread(values.astype(solved), tol=tol)
    return at_fitted
