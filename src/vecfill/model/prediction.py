"""What a predictor gives: vectors for the unknown rows, and what they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.machine.blas import one_blas_thread
from vecfill.method.propagation import Convergence, propagate_known
from vecfill.method.solve.system import UnknownSystem
from vecfill.method.trend import Trend
from vecfill.model.known import KnownRows
from vecfill.model.space import Space, WeightsKey


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

    def source_shares(self, place: int) -> dict[str, float]:  # noqa: ARG002
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

    def __init__(
        self, space: Space, key: WeightsKey, given: KnownRows, places: np.ndarray | None = None
    ) -> None:
        self.space = space
        self.key = key
        self.given = given
        self.places = places
        """Unknown rows that were asked for, numbered among themselves; ``None``: all."""

    @property
    def weights(self) -> csr_array:
        """Each row as a convex mix of its neighbours."""
        return self.space.weights(self.key)

    @cached_property
    def _system(self) -> UnknownSystem:
        # One factorisation serves every explanation of a model.
        return UnknownSystem(self.weights, self.given.is_known)

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
        return propagate_known(self.weights, values, self.given.is_known, **options).vectors

    @property
    def _wanted(self) -> np.ndarray:
        """Numbers of the rows that were asked for."""
        return self.given.wanted(self.places)

    def misfit(self) -> np.ndarray:
        """Return how badly its neighbours explain each unknown row in the domain."""
        return self.space.misfit(self.key)[self._wanted]

    def straight(self) -> np.ndarray:
        """Return the sum of each unknown row's weights on known rows."""
        on_known = self.weights @ self.given.is_known.astype(np.float64)
        return on_known[self._wanted]

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each unknown row."""
        largest = self.weights.max(axis=1).todense()
        return np.asarray(largest).ravel()[self._wanted]


class CondensedMix(PropagatedMix):
    """The same for rows whose shares of all known rows are there already."""

    def __init__(
        self,
        space: Space,
        key: WeightsKey,
        given: KnownRows,
        places: np.ndarray | None,
        coefficients: np.ndarray,
    ) -> None:
        super().__init__(space, key, given, places)
        self.coefficients = coefficients

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some unknown rows (down)."""
        return self.coefficients[np.asarray(places, np.int64)]

    @one_blas_thread()
    def spread(self, values: np.ndarray, *, tol: float = 0.0) -> np.ndarray:  # noqa: ARG002
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

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:  # noqa: ARG002
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
        largest: Any = abs(self.coefficients).max(axis=1)
        return np.asarray(largest.todense() if issparse(largest) else largest).ravel()
