"""Cells of one column about entities that come later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.table.columns import Numbers, read_cells, read_numbers
from vecfill.inputs.table.frames import Cells


@dataclass(frozen=True, eq=False)
class NewCells:
    """Cells of one column about entities that come later; `label` names their table."""

    name: str
    cells: Cells
    entities: Sequence[str]
    label: str = "the table"

    def numbers(self, advice: str) -> np.ndarray:
        """Return them as numbers; anything else is refused with some advice."""
        return read_numbers(self.label, self.name, self.cells, self.entities, advice=advice)

    def years(self) -> np.ndarray:
        """Return dates as years with a fraction; a year alone is its first day."""
        column = read_cells(self.label, self.name, self.cells, self.entities)
        if isinstance(column, Numbers) and (column.is_date or _are_years(column.present)):
            return column.values
        raise InputError(
            f"{self.label}, column {self.name!r} held dates when the model was fitted. Write "
            "1979-05-25, or the year."
        )

    def labels(self) -> list[str | None]:
        """Return them as texts, None where they are missing."""
        column = read_cells(self.label, self.name, self.cells, self.entities, is_category=True)
        return column.texts()


def _are_years(values: np.ndarray) -> bool:
    return bool(((values >= 1000) & (values < 3000)).all())
