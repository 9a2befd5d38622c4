"""What a predictor gives: vectors for the rows that are wanted, and what they are made of.

A `Mix` says how known rows are mixed: by propagation among the rows of the fit (`PropagatedMix`,
`CondensedMix`), from the nearest fitted rows for rows that came later (`FittedMix`), or by
coefficients that are there already (`FixedMix`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.machine.blas import one_blas_thread
from vecfill.method.propagation import Convergence, propagate_known
from vecfill.method.scaling import scaled_together, well_scaled
from vecfill.method.solve.system import UnknownSystem
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.space import Rows, Space, WeightsKey
from vecfill.model.wanted import Wanted

CARRIED_TOL = 1e-6
"""Residual to which what known rows carry is solved; it is kept with three digits."""


class Mix(ABC):
    """How the known rows are mixed to give each row that was asked for."""

    @abstractmethod
    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some wanted rows (down)."""

    @abstractmethod
    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""

    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the same of what known rows carry for signals, which is always the same.

        So a model can keep what it has computed from them, and need not ask for the values.
        """
        return self.spread(values(), tol=tol)

    @abstractmethod
    def misfit(self) -> np.ndarray:
        """Return how badly its neighbours explain each wanted row in the domain, 0 if exactly."""

    @abstractmethod
    def straight(self) -> np.ndarray:
        """Return how much of each wanted row's weight rests on known rows directly."""

    @abstractmethod
    def tightness(self) -> np.ndarray:
        """Return the largest weight of each wanted row."""


@dataclass(frozen=True)
class Composition:
    """What the vectors of the unknown rows are made of, and how they were found."""

    mix: Mix
    trend: Trend | None = None
    """A linear map from domain to embedding, if the predictor has one; then what is mixed are the
    known rows' residuals."""
    convergence: Convergence | None = None
    """How the linear system was solved; ``None`` if there was none."""

    def source_shares(self, place: int) -> dict[str, float]:
        """Return how much of a row's way from the mean each source went, if there are several."""
        return {}

    @property
    def relative_residual(self) -> float:
        """Relative residual of the linear system; 0 if nothing was solved."""
        return 0.0 if self.convergence is None else self.convergence.relative_change


@dataclass(frozen=True)
class Prediction:
    """Vectors of the wanted rows, and what they are made of."""

    vectors: np.ndarray
    """(n_wanted, n_dims), in the order of the rows."""
    composition: Composition


@dataclass(eq=False)
class PropagatedMix(Mix):
    """The mix that propagation makes: ``(I - W_qq)^-1 W_qp``, solved for the rows asked for.

    Its rows are not negative and sum to one, so each unknown row is a convex mix of known rows.

    Examples
    --------
    >>> space = Space(np.array([[0.0], [1.0], [4.0]]))
    >>> key = WeightsKey(min_degree=2, weight_floor=0.0)
    >>> given = KnownRows(np.zeros((3, 1)), np.array([True, False, True]))
    >>> mix = PropagatedMix(space, key, given)
    >>> mix.shares([0])
    array([[0.75, 0.25]])
    """

    space: Space
    key: WeightsKey
    known_rows: KnownRows
    places: np.ndarray | None = None
    """Unknown rows that were asked for, numbered among themselves; ``None``: all."""

    @property
    def weights(self) -> csr_array:
        """Each row as a convex mix of its neighbours."""
        return self.space.weights(self.key)

    @cached_property
    def _system(self) -> UnknownSystem:
        # One factorisation serves every explanation of a model.
        return UnknownSystem(self.weights, self.known_rows.is_known)

    def __getstate__(self) -> dict[str, Any]:
        # A factorisation cannot be pickled; it is made again when asked for.
        return {name: value for name, value in vars(self).items() if name != "_system"}

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some unknown rows (down)."""
        rows = np.asarray(places, np.int64)
        rows = rows if self.places is None else self.places[rows]
        return self._system.known_shares(rows, n_jobs=self.space.n_jobs)

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every unknown row."""
        options = {"places": self.places, "tol": tol, "n_jobs": self.space.n_jobs}
        return propagate_known(self.weights, values, self.known_rows.is_known, **options).vectors

    @property
    def _numbers(self) -> np.ndarray:
        """Numbers of the rows that were asked for."""
        return self.known_rows.wanted(self.places)

    def misfit(self) -> np.ndarray:
        """Return how badly its neighbours explain each unknown row in the domain."""
        space, key = self.space, self.key
        if not space.has_vectors:
            # Distances alone do not tell how far a row is from a mix of others.
            return np.zeros(self._numbers.size)
        of_all = space.once(
            ("misfit", key), lambda: misfit_of(space.prepared(key.preparation), space.weights(key))
        )
        return of_all[self._numbers]

    def straight(self) -> np.ndarray:
        """Return the sum of each unknown row's weights on known rows."""
        # What is not on known rows comes through other unknown ones, and is less certain.
        on_known = self.weights @ self.known_rows.is_known.astype(np.float64)
        return on_known[self._numbers]

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each unknown row."""
        largest = self.weights.max(axis=1).todense()
        return np.asarray(largest).ravel()[self._numbers]


@dataclass(eq=False)
class CondensedMix(PropagatedMix):
    """The same for rows whose shares of all known rows are there already."""

    coefficients: np.ndarray = field(kw_only=True)

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some unknown rows (down)."""
        return self.coefficients[np.asarray(places, np.int64)]

    @one_blas_thread()
    def spread(self, values: np.ndarray, *, tol: float = 0.0) -> np.ndarray:
        """Return the mix of the known rows' `values` for every row asked for."""
        return self.coefficients @ values

    def spread_and_none(self, values: np.ndarray) -> tuple[np.ndarray, None]:
        """Return the mix, and nothing about how a system was solved: there was none."""
        return self.spread(values), None


class FixedMix(Mix):
    """A mix whose coefficients are there already, one row for each unknown row.

    Examples
    --------
    >>> FixedMix(np.array([[0.5, 0.5], [1.0, 0.0]])).spread(np.array([[2.0], [4.0]]), tol=0.0)
    array([[3.],
           [2.]])
    """

    def __init__(self, coefficients: Any) -> None:
        self.coefficients = coefficients

    def shares(self, places: Any) -> np.ndarray:
        """Return the coefficients of every known row (across) for some unknown rows (down)."""
        rows: Any = self.coefficients[np.asarray(places, np.int64)]
        return rows.toarray() if issparse(rows) else rows

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every unknown row."""
        return self.coefficients @ values

    def misfit(self) -> np.ndarray:
        """Return zeros: nothing is known about how well the domain row was explained."""
        return np.zeros(self.coefficients.shape[0])

    def straight(self) -> np.ndarray:
        """Return ones: every coefficient is on a known row."""
        return np.ones(self.coefficients.shape[0])

    def tightness(self) -> np.ndarray:
        """Return the largest coefficient of each unknown row."""
        if not self.coefficients.shape[1]:
            return np.zeros(self.coefficients.shape[0])
        # Regressions have negative coefficients, and a large one is a large share as well.
        largest: Any = abs(self.coefficients).max(axis=1)
        return np.asarray(largest.todense() if issparse(largest) else largest).ravel()


def _mixes_beside(space: Space, rows: Any, key: WeightsKey, hidden: np.ndarray | None) -> csr_array:
    """Return prepared rows as mixes of the nearest fitted ones that are not hidden."""
    if hidden is None or not hidden.size:
        return space.mixes_of_new(rows, key, weight_floor=key.weight_floor)[0]
    seen, fitted = np.delete(np.arange(space.n_rows), hidden), space.prepared(key.preparation)
    is_vectors, n_jobs = space.has_vectors, space.n_jobs
    near = fitted[seen] if is_vectors else fitted[np.ix_(seen, seen)]
    beside = Space(near, is_distances=not is_vectors, n_jobs=n_jobs)
    of_seen = _mixes_beside(
        beside, rows if is_vectors else rows[:, seen], replace(key, preparation="as_given"), None
    )
    shape = (of_seen.shape[0], space.n_rows)
    return csr_array((of_seen.data, seen[of_seen.indices], of_seen.indptr), shape)


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

    def __init__(
        self, space: Space, key: WeightsKey, known_rows: KnownRows, wanted: Wanted
    ) -> None:
        self.space = space
        self.key = key
        self.known_rows = known_rows
        self.rows = wanted.prepared(space, key.preparation, known_rows)
        """The new rows, prepared."""
        self.mixes = _mixes_beside(space, self.rows, key, getattr(wanted, "hidden", None))
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
        return PropagatedMix(self.space, self.key, self.known_rows)

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row: directly, and through imputed rows."""
        is_known, mixes = self.known_rows.is_known, csr_array(self.mixes[places])
        among_known = np.cumsum(is_known) - 1
        among_unknown = np.arange(is_known.size) - among_known - 1
        shares = np.zeros((mixes.shape[0], self.known_rows.n_known))
        # Only imputed rows that are mixed at all: each needs a solve for its shares.
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
        at_fitted = carried_by_fitted(self.space, self.key, self.known_rows, values, tol=tol)
        return self.of_fitted(at_fitted)

    def misfit(self) -> np.ndarray:
        """Return how badly the neighbours explain each row, relative to how far they are."""
        if not self.space.has_vectors:
            return np.zeros(self.mixes.shape[0])
        # Distances to a mix are not given, so a domain of distances has no misfit.
        rows, near = self.rows, self.space.prepared(self.key.preparation)[self.used]
        near, rows = (side.toarray() if issparse(side) else side for side in (near, rows))
        near, rows = scaled_together(near.astype(np.float64), rows.astype(np.float64))
        mixes = self.among_used
        missed = np.linalg.norm(rows - mixes @ near, axis=1)
        owner = np.repeat(np.arange(mixes.shape[0]), np.diff(mixes.indptr))
        # Row by row, not by the law of cosines: new rows are few, and digits are kept so.
        squares = ((near[mixes.indices] - rows[owner]) ** 2).sum(axis=1)
        spread = np.sqrt(np.bincount(owner, mixes.data * squares, mixes.shape[0]))
        return np.divide(missed, spread, out=np.zeros_like(missed), where=spread > 0)

    def straight(self) -> np.ndarray:
        """Return how much of each row's weight rests on known rows directly."""
        is_known = self.known_rows.is_known
        on_known = self.mixes.multiply(is_known[None, :]) if self.mixes.nnz else self.mixes
        return np.asarray(on_known.sum(axis=1)).ravel()

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each row."""
        return np.asarray(self.mixes.max(axis=1).todense()).ravel()


def carried_by_fitted(
    space: Space,
    key: WeightsKey,
    known_rows: KnownRows,
    carried: Callable[[], np.ndarray],
    *,
    tol: float = CARRIED_TOL,
) -> np.ndarray:
    """Return what known rows carry for signals, propagated to all rows, and kept.

    In half precision, which is enough: signals of confidence are compared by rank.
    """

    def propagated() -> np.ndarray:
        mix = PropagatedMix(space, key, known_rows)
        return _at_fitted(mix, carried(), np.float32, np.float16, tol)

    return known_rows.once(("carried", key), propagated)


def _at_fitted(
    mix: PropagatedMix, values: np.ndarray, solved: Any, dtype: Any, tol: float
) -> np.ndarray:
    """Return values of the known rows, propagated to the others: `solved` and kept as a type."""
    known_rows = mix.known_rows
    at_fitted = np.empty((known_rows.is_known.size, values.shape[1]), dtype)
    at_fitted[known_rows.is_known] = values
    if known_rows.unknown.size:
        at_fitted[known_rows.unknown] = mix.spread(values.astype(solved), tol=tol)
    return at_fitted


def misfit_of(rows: Rows, weights: csr_array, fitted: Rows | None = None) -> np.ndarray:
    """Return how badly mixes of `fitted` rows, or of the rows themselves, explain each row.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.5, 0.5]]))
    >>> misfit_of(np.array([[3.0, 1.0]]), weights, np.array([[2.0, 0.0], [4.0, 0.0]])).round(3)
    array([0.707])
    """
    if fitted is None:
        rows = neighbors = well_scaled(rows)
    else:
        rows, neighbors = scaled_together(rows, fitted)
    missed = rows - weights @ neighbors
    if issparse(missed):
        length = np.sqrt(np.asarray(missed.multiply(missed).sum(axis=1)).ravel())
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        squares_near = np.asarray(neighbors.multiply(neighbors).sum(axis=1)).ravel()
        product = np.asarray(rows.multiply(missed).sum(axis=1)).ravel()
    else:
        length = np.linalg.norm(missed, axis=1)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        squares_near = np.einsum("ij,ij->i", neighbors, neighbors, dtype=np.float64)
        product = np.einsum("ij,ij->i", rows, missed, dtype=np.float64)
    # The weighted mean squared distance of the neighbours from the row, by the law of cosines.
    spread = np.sqrt(np.maximum(weights @ squares_near - squares + 2.0 * product, 0.0))
    return np.divide(length, spread, out=np.zeros(len(length)), where=spread > 0)
