"""Cells of one column about entities that come later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.inputs.table.columns import read_cells, read_numbers
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

    def labels(self) -> list[str | None]:
        """Return them as texts, None where they are missing."""
        column = read_cells(self.label, self.name, self.cells, self.entities, is_category=True)
        return column.texts()
