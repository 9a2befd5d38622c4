"""The known rows among all rows, and what predictors of the same known rows can share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class KnownRows:
    """An embedding in which only some rows are known; the others may hold anything.

    Examples
    --------
    >>> given = KnownRows(np.array([[1.0], [np.nan], [3.0]]), np.array([True, False, True]))
    >>> given.known.ravel(), given.unknown, given.n_known
    (array([1., 3.]), array([1]), 2)
    """

    embedding: EmbeddingVectors = field(repr=False)
    """(n_rows, n_dims)."""
    is_known: KnownMask = field(repr=False)
    """(n_rows,)."""
    is_imputed: bool = False
    """Whether the other rows hold what the predictor in question has imputed."""
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> np.ndarray:
        """(n_known, n_dims) the known vectors."""
        return self.embedding[self.is_known]

    @cached_property
    def unknown(self) -> np.ndarray:
        """Numbers of the unknown rows."""
        return np.flatnonzero(~self.is_known)

    @property
    def n_known(self) -> int:
        """How many rows are known."""
        return int(self.is_known.sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """(n_dims,) the mean of the known vectors in 64 bits; zeros if none is known."""
        # A source may describe no known row, and its mean is then no step from anything.
        if not self.n_known:
            return np.zeros(self.n_dims)
        return self.known.mean(axis=0, dtype=np.float64)

    @property
    def n_dims(self) -> int:
        """How many dimensions the embedding has."""
        return self.embedding.shape[1]

    def wanted(self, places: np.ndarray | None) -> np.ndarray:
        """Return the numbers of the unknown rows at some places among them; by default all."""
        return self.unknown if places is None else self.unknown[places]

    @property
    def for_members(self) -> KnownRows:
        """The same for one of several predictors, each of which imputes other vectors."""
        # What was computed and kept stays shared: it depends on the known rows alone.
        return replace(self, is_imputed=False) if self.is_imputed else self

    def in_place(self, values: np.ndarray) -> np.ndarray:
        """Return rows of which the known ones hold `values`, and the others anything."""
        columns = np.empty((self.is_known.size, values.shape[1]), values.dtype)
        columns[self.is_known] = values
        return columns

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what was computed under a key before, or compute it."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep what was computed elsewhere, under the key by which it will be asked for."""
        self._kept[key] = value
