"""What a set offers: a domain and an embedding, and everything else known about its entities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Vocabulary:
    """A whole embedding file, most frequent word first; loaded when first looked at."""

    name: str
    load: Callable[[], tuple[list[str], np.ndarray]] = field(repr=False)

    @cached_property
    def _loaded(self) -> tuple[list[str], np.ndarray]:
        return self.load()

    @property
    def words(self) -> list[str]:
        return self._loaded[0]

    @property
    def vectors(self) -> np.ndarray:
        """(n_words, n_dims), memory-mapped."""
        return self._loaded[1]


@dataclass(frozen=True)
class Set:
    """Entities with a domain row each, and an embedding with NaN rows for those it lacks.

    Whatever a set does not have is ``None``, or empty. `domain` is ready to use; `table`, `edges`
    and `texts` are the sources as they were found.
    """

    name: str
    entities: list[str]
    domain: np.ndarray
    embedding: np.ndarray
    words: list[str | None] = field(default_factory=list)
    """The word of each known entity in the embedding's file; ``None`` if it is unknown."""
    ranks: np.ndarray | None = None
    """Row of that word in the whole file, counted from 0; -1 if unknown. ``None`` if the order of
    the file means nothing."""
    counts: np.ndarray | None = None
    """How often each entity was seen, for unknown entities too; NaN where nobody counted."""
    vocabulary: Vocabulary | None = None
    table: pd.DataFrame | None = None
    """Columns before any preparation, one row an entity in the order of `entities`."""
    edges: pd.DataFrame | None = None
    """Columns `a` and `b`: names of joined nodes. Nodes need not be entities of the set."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Texts by kind, one an entity in the order of `entities`; empty where there is none."""

    @property
    def is_known(self) -> np.ndarray:
        return ~np.isnan(self.embedding).any(axis=1)

    @property
    def rarity(self) -> np.ndarray | None:
        """Log rank, or minus the log of the count: the larger, the rarer. NaN where unknown."""
        if self.ranks is not None:
            return np.where(self.ranks >= 0, np.log(np.maximum(self.ranks, 0) + 1.0), np.nan)
        return None if self.counts is None else -np.log(self.counts + 1.0)

    def __repr__(self) -> str:
        return f"{self.name}: {len(self.entities)} entities, {self.is_known.sum()} known"
