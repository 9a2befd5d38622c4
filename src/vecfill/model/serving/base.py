"""What a server is: it gives vectors to rows that were not there at the fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill.model.known import KnownRows
from vecfill.model.space import Space


@dataclass(frozen=True, eq=False)
class Ground:
    """What was fitted, as servers see it."""

    space: Space
    rows: KnownRows
    """Vectors of all rows, known and imputed, as the predictor saw and gave them."""
    extra: Callable[[], np.ndarray]
    """Gives (n_known, n_columns) further values of the known rows, to be mixed as vectors are."""

    @cached_property
    def values(self) -> np.ndarray:
        """(n_known, n_dims + n_columns) vectors and further values of the known rows."""
        return np.hstack([self.rows.known.astype(np.float64), self.extra()])


@dataclass(frozen=True, eq=False)
class Served:
    """What new rows are given."""

    values: np.ndarray = field(repr=False)
    """(n_new, n_dims + n_columns) vectors, and the mix of what else known rows carry."""
    shares: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    """Gives the share of every known row (across) in some new rows (down)."""
    misfit: np.ndarray = field(repr=False)
    straight: np.ndarray = field(repr=False)
    tightness: np.ndarray = field(repr=False)
    trend: np.ndarray | None = field(default=None, repr=False)
    """(n_new, n_dims) what a linear trend gives, if the predictor has one."""
    parts: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """(n_new, n_dims) what each source adds to the mean of the known rows, if there are several."""


class Server(ABC):
    """A predictor that was fitted, ready for new rows."""

    @abstractmethod
    def serve(self, new_rows: Any) -> Served:
        """Return what new rows are given; each row's answer does not depend on the others."""

    def arrays(self) -> dict[str, Any]:
        """Return what is worth keeping, so that the server need not be made again."""
        return {}


def mixed(mixes: csr_array, rows: Any) -> np.ndarray:
    """Return mixes of rows in 64 bits; only the rows that are used are read.

    Examples
    --------
    >>> mixed(csr_array(np.array([[0.0, 0.5, 0.5]])), np.array([[9.0], [2.0], [4.0]]))
    array([[3.]])
    """
    used, places = np.unique(mixes.indices, return_inverse=True)
    small = csr_array((mixes.data, places, mixes.indptr), (mixes.shape[0], used.size))
    return small @ rows[used].astype(np.float64)
