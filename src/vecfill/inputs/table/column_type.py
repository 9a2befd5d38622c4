"""What all types of columns share: how long their columns are, and what they can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from vecfill.inputs.table.columns import Categories, Numbers
from vecfill.inputs.table.new_cells import NewCells

Column = Numbers | Categories
Encoded = tuple[np.ndarray, list[str]]
"""Numbers of some cells, and what is unusual about each."""


@dataclass(frozen=True)
class Scales:
    """How long the columns of a table are to be."""

    standardize: bool = False
    categorical_weight: float = 1.0


AS_THEY_ARE = Scales()


@dataclass(frozen=True, eq=False)
class Block:
    """A column of a table, and the columns of the domain that it becomes."""

    column: Column
    names: Sequence[str]
    encoder: ColumnType
    write: Callable[[np.ndarray], None] = field(repr=False)
    """Writes its columns into an array of zeros."""
    note: str | None = None


class ColumnType(ABC):
    """What a column of one type learnt at the fit."""

    name: str
    is_number: ClassVar[bool] = False
    """Whether its columns of the domain are numbers of the table, whose range means something."""

    @classmethod
    @abstractmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return what a column becomes, or None if it is not of this type."""

    @property
    def blank(self) -> np.ndarray:
        """(width,) the numbers of a cell without a value."""
        numbers, _ = self.encoded(NewCells(self.name, [None], [""]))
        return numbers[0]

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return self.blank.size

    def told(self, numbers: np.ndarray) -> np.ndarray:
        """Return the values that a column of numbers had in the table."""
        return numbers[:, 0]

    def is_lacking(self, numbers: np.ndarray) -> np.ndarray:
        """Tell which rows of its numbers say nothing: no value, or one that means nothing here."""
        return (numbers == self.blank.astype(numbers.dtype)).all(axis=1)

    @abstractmethod
    def encoded(self, cells: NewCells) -> Encoded:
        """Return the numbers of new cells, and what is unusual about each."""


def dense_block(
    column: Column,
    encoding: str,
    values: np.ndarray,
    encoder: Callable[[float], Any],
    note: str,
    scales: Scales,
) -> Block | None:
    """Return dense columns, together as long as one category; None if they are all alike."""
    variance = float(values.var(axis=0).sum())
    if not variance > 0:
        return None
    unit = values / np.sqrt(variance)
    weight = scales.categorical_weight

    def write(part: np.ndarray) -> None:
        part[:] = weight * unit

    names = [f"{column.name} ({encoding}) {number + 1}" for number in range(values.shape[1])]
    scale = weight * float(1.0 / np.sqrt(variance))
    return Block(column, names, encoder(scale), write, note)
