"""A column of dates: the year, and the season if dates lie in several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill.inputs.table.column_type import Block, Column, ColumnType, Encoded, Scales
from vecfill.inputs.table.columns import Numbers
from vecfill.inputs.table.new_cells import NewCells

FEWEST_DAYS = 8
"""Days of the year from which on they may be a season: first days of months are twelve. A guess."""


@dataclass(frozen=True, eq=False)
class DateColumn(ColumnType):
    """A column of dates; a missing one becomes the mean year, and no season.

    The season is a place on a circle, so that December is near January; it is as long as the spread
    of the years. An age is a year in the other direction, so it needs no column.

    Examples
    --------
    >>> born = DateColumn("born", mean=2000.0, spread=10.0, unit=1.0, has_season=True)
    >>> born.encoded(NewCells("born", ["1990-01-01", None], ["a", "b"]))[0]
    array([[1990.,    0.,   10.],
           [2000.,    0.,    0.]])
    """

    is_number: ClassVar[bool] = False
    name: str
    mean: float
    spread: float
    unit: float
    """By what steps from the mean are divided, and the season with them."""
    shift: float = 0.0
    """What is taken from the mean: all of it if columns are standardized."""
    has_season: bool = False
    marks_missing: bool = False

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return years and seasons of a column of dates."""
        if not isinstance(column, Numbers) or not column.is_date:
            return None
        mean, spread = column.mean_and_spread
        has_season = np.unique((column.present % 1.0).round(3)).size >= FEWEST_DAYS
        is_missing = bool(column.is_missing.any())
        unit, shift = (spread, mean) if scales.standardize else (1.0, 0.0)
        encoder = cls(column.name, mean, spread, unit, shift, has_season, is_missing)
        names = [f"{column.name} (year)"]
        names += [f"{column.name} (season {number})" for number in (1, 2)] if has_season else []
        names += [f"{column.name} (missing)"] if is_missing else []
        note = f"Column {column.name!r} holds dates: used as the year"
        note += " and the season." if has_season else "."

        def write(part: np.ndarray) -> None:
            part[:] = encoder.filled(column.values)

        return Block(column, names, encoder, write, note)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the numbers of new cells."""
        years = cells.years()
        why = f"{self.name} is missing, which no fitted entity lacked"
        is_unusual = np.isnan(years) & (not self.marks_missing)
        return self.filled(years), [why if is_odd else "" for is_odd in is_unusual.tolist()]

    def is_lacking(self, numbers: np.ndarray) -> np.ndarray:
        """Tell which rows are marked as missing: without marks, none was."""
        return numbers[:, -1] != 0 if self.marks_missing else np.zeros(len(numbers), np.bool_)

    def filled(self, years: np.ndarray) -> np.ndarray:
        """Return years, NaN where they are missing, as columns of the domain."""
        missing = np.isnan(years)
        columns = [(np.where(missing, self.mean, years) - self.shift) / self.unit]
        if self.has_season:
            angle = 2.0 * np.pi * np.where(missing, 0.0, years % 1.0)
            length = np.where(missing, 0.0, self.spread / self.unit)
            columns += [length * np.sin(angle), length * np.cos(angle)]
        if self.marks_missing:
            columns.append(missing * (self.spread / self.unit))
        return np.column_stack(columns)
