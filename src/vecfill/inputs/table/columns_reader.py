"""How the columns of a table were read, so that entities which come later are read alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from vecfill.checks import is_sparse
from vecfill.errors import InputError
from vecfill.inputs.entities import listed
from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.table.column_facts import ColumnFacts, refusal_of_absent
from vecfill.inputs.table.column_type import ColumnType
from vecfill.inputs.table.columns import has_value
from vecfill.inputs.table.frames import Cells
from vecfill.inputs.table.new_cells import NewCells


@dataclass(frozen=True, eq=False)
class ColumnsReader(Reader):
    """A table whose columns became numbers one by one."""

    columns: tuple[ColumnType, ...]
    ignored: tuple[str, ...] = ()
    """Columns of the fitted table that were not used."""
    dtype: str = "float64"
    key: str | None = None
    like: tuple[ColumnFacts, ...] = ()
    """What each column was like at the fit; empty in older files."""

    @property
    def names(self) -> list[str]:
        """Names of the columns that are used."""
        return [column.name for column in self.columns]

    def finds(self, facts: Facts) -> bool:
        """Tell whether a table has any of the columns."""
        return facts.has_any(self.names)

    def has_range(self) -> np.ndarray:
        """(n_columns,) which columns of the domain are numbers of the table."""
        widths = [column.width for column in self.columns]
        return np.repeat([column.is_number for column in self.columns], widths)

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the same columns of new entities; those that are absent are missing values."""
        cells = self._cells(facts)
        present = [name for name in self.names if name in cells]
        if not present:
            raise InputError(
                f"{facts.label} has none of the columns that the model uses "
                f"({listed(self.names, 10)}). It has {listed(cells, 10)}."
            )
        _refuse_empty(facts, [cells[name] for name in present])
        n_rows, nothing = len(facts.entities), [None] * len(facts.entities)
        blocks, unusual = [], [[] for _ in facts.entities]
        lacks, is_odd = np.zeros((n_rows, len(self.columns)), np.bool_), np.zeros(n_rows, np.bool_)
        for number, (column, like) in enumerate(self._with_facts()):
            of_column = NewCells(
                column.name, cells.get(column.name, nothing), facts.entities, facts.label
            )
            block, reasons = column.encoded(of_column)
            blocks.append(block)
            # A category that no fitted entity had, or a text of unknown words, says nothing either.
            is_lacking = ~np.array(has_value(of_column.cells), np.bool_) | column.is_lacking(block)
            lacks[:, number] = is_lacking
            why_odd = "" if like is None else like.lacking()
            for row, reason in enumerate(reasons):
                if said := reason or (why_odd if is_lacking[row] else ""):
                    unusual[row].append(said)
                is_odd[row] |= bool(reason) and not is_lacking[row]
        rows = np.hstack(blocks).astype(self.dtype)
        return LaterRows(facts.entities, rows, tuple(map(tuple, unusual)), lacks, is_odd)

    def _with_facts(self) -> list[tuple[ColumnType, ColumnFacts | None]]:
        """Return each column, and what it was like at the fit if that was kept."""
        like = self.like or (None,) * len(self.columns)
        return list(zip(self.columns, like, strict=True))

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.names)

    def _starts(self) -> np.ndarray:
        """Return where the numbers of each column begin, and the last one's end."""
        return np.cumsum([0, *(column.width for column in self.columns)])

    def spans(self) -> list[tuple[str, int, int]]:
        """Return each column, with its first column of the domain and its end."""
        starts = self._starts().tolist()
        return list(zip(self.names, starts, starts[1:], strict=False))

    def lacks(self, rows: np.ndarray) -> np.ndarray:
        """(n_rows, n_columns) which columns say nothing about rows."""
        starts = self._starts()
        return np.column_stack(
            [
                column.is_lacking(rows[:, first:last])
                for column, first, last in zip(self.columns, starts, starts[1:], strict=False)
            ]
        )

    def lacks_of_fitted(self, rows: np.ndarray, is_known: np.ndarray) -> np.ndarray:
        """(n_rows, n_columns) the same for rows of the fit: known ones say what means something."""
        # A category that only unknown entities have says as little as one that came later.
        means_nothing = ~(rows[is_known] != 0).any(axis=0) & ~self.has_range()
        return self.lacks(np.where(means_nothing, 0.0, rows) if means_nothing.any() else rows)

    def blanked(self, rows: np.ndarray, lacks: np.ndarray) -> np.ndarray:
        """Return rows in which some columns have no value."""
        blanked, starts = np.array(rows), self._starts()
        for number, column in enumerate(self.columns):
            blanked[lacks[:, number], starts[number] : starts[number + 1]] = column.blank
        return blanked

    def shifts(self, rows: np.ndarray, lacks: np.ndarray) -> dict[int, str]:
        """Return which columns of numbers differ as a whole from those of the fit, in words."""
        shifts, starts = {}, self._starts()
        for number, (column, like) in enumerate(self._with_facts()):
            if like is not None and column.is_number:
                block = rows[~lacks[:, number], starts[number] : starts[number + 1]]
                shifts[number] = like.shift(column.told(block))
        return {number: shift for number, shift in shifts.items() if shift}

    def drifts(self, lacks: np.ndarray) -> list[str]:
        """Return which columns rows lack far more often than those of the fit, in words."""
        drifts = [like.drift(lacks[:, number]) for number, like in enumerate(self.like)]
        return [drift for drift in drifts if drift]

    def refuse_absent(self, facts: Facts) -> None:
        """Refuse a table that lacks fitted columns altogether; it may be misspelt."""
        if facts.matrix is None and (
            why := refusal_of_absent(facts.label, self.names, self.ignored, list(facts.columns))
        ):
            raise InputError(why)

    def schema(self) -> dict[str, Any]:
        """Return what the columns of the fitted table were like, as plain values."""
        return {like.name: like.to_dict() for like in self.like}

    def _cells(self, facts: Facts) -> dict[str, Cells]:
        if facts.matrix is None:
            return facts.columns
        matrix = facts.matrix.toarray() if is_sparse(facts.matrix) else facts.matrix
        fitted = [*self.names, *self.ignored]
        had_numbers = all(name.isdigit() for name in fitted)
        if not had_numbers or matrix.shape[1] != len(fitted):
            fitted_to, advice = f"vectors of {len(fitted)} numbers", "as many"
            if not had_numbers:
                fitted_to = f"a table with the columns {listed(self.names, 10)}"
                advice = "a table with these"
            raise InputError(
                f"{facts.label} has {matrix.shape[1]} numbers for each entity, but the model was "
                f"fitted to {fitted_to}. Pass {advice}."
            )
        return {str(number): list(column) for number, column in enumerate(matrix.T.tolist())}


def _refuse_empty(facts: Facts, columns: Sequence[Cells]) -> None:
    """Refuse an entity about which no column says anything, as a table of known ones does."""
    is_empty = ~np.any([has_value(cells) for cells in columns], axis=0)
    if is_empty.any():
        raise InputError(
            f"{facts.label} says nothing about {listed(compress(facts.entities, is_empty))}: every "
            "cell that the model uses is empty. Fill one, or leave the row out."
        )
