"""A user's table -> the columns of it that a page shows, and where entities lie on the Earth."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.inputs.entities import is_missing
from vecfill.inputs.files import holds_vectors
from vecfill.inputs.table.frames import frame_of, keyed, objects
from vecfill.requests import TEXT_OPTIONS, Reading

MOST_COLUMNS = 6
LONGEST = 80
LATITUDES = ("latitude", "lat")
LONGITUDES = ("longitude", "lon", "lng", "long")

Cell = float | str | None


@dataclass(frozen=True)
class ShownColumn:
    """A column by its name, with the cell of each entity that has one."""

    name: str
    cells: dict[str, Cell]

    @property
    def is_numeric(self) -> bool:
        """Whether no cell is text."""
        return not any(isinstance(cell, str) for cell in self.cells.values())

    def of(self, words: Sequence[str]) -> list[Cell]:
        """Return the cells of some entities, in their order."""
        return [self.cells.get(word) for word in words]


def columns_to_show(table: Any, reading: Reading) -> tuple[ShownColumn, ...]:
    """Return the columns of a table as it was read for imputation; none if it is no table."""
    is_path = isinstance(table, str | os.PathLike)
    if reading.kind != "features" or isinstance(table, Mapping):
        return ()
    if is_path and holds_vectors(Path(table)):
        return ()
    options = {name: getattr(reading, name) for name in TEXT_OPTIONS} if is_path else {}
    frame = frame_of(table, **options)
    if frame is None or not keyed(frame, reading.key, names_suffice=True)[1].names:
        return ()
    columns = shown_columns(table, key=reading.key, **options)
    return tuple(column for column in columns if column.name != reading.vector)


def shown_columns(table: Any, *, key: str | None = None, **options: Any) -> tuple[ShownColumn, ...]:
    """Return the columns of a table of any make, as numbers and short texts.

    Columns that hold vectors or other structures are left out. A mapping from column to cells by
    entity is taken too, and columns that were read already are returned. `options` say how a text
    file is read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"name": ["Oslo", "Bern"], "country": ["NO", "CH"], "people": [7e5, None]})
    >>> [(each.name, each.of(["Bern"])) for each in shown_columns(table)]
    [('country', ['CH']), ('people', [None])]
    """
    if isinstance(table, tuple) and all(isinstance(column, ShownColumn) for column in table):
        return table
    if isinstance(table, Mapping):
        read_columns = [
            (str(name), [*cells], [*cells.values()])
            for name, cells in table.items()
            if isinstance(cells, Mapping)
        ]
        if len(read_columns) < len(table):
            raise InputError(
                "columns is a mapping whose values are not all mappings. Pass a table keyed by "
                "entity, or {column: {entity: cell}}."
            )
    else:
        frame = frame_of(table, **options)
        if frame is None:
            raise InputError(
                f"columns is a {type(table).__name__}. Pass a pandas, polars or Arrow table, the "
                "path of one, or {column: {entity: cell}}."
            )
        entities, facts = keyed(frame, key)
        read_columns = [
            (name, list(entities), objects(cells))
            for name, cells in zip(facts.names, facts.cells, strict=True)
        ]
    columns = []
    for name, entities, values in read_columns:
        cells = _as_numbers([_cell(value) for value in values])
        if not all(cell is Ellipsis for cell in cells):
            cells_of_entities = {
                entity: cell
                for entity, cell in zip(entities, cells, strict=True)
                if cell is not None and cell is not Ellipsis
            }
            columns.append(ShownColumn(printable(name)[:LONGEST], cells_of_entities))
    return tuple(column for column in columns if column.cells)


def _cell(value: Any) -> Any:
    """Return a number, a short text or None; ``...`` for what a cell cannot show."""
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.integer | np.floating):
        return _shown_number(float(value))
    if isinstance(value, list | tuple | dict | np.ndarray | bytes):
        return ...
    text = printable(str(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _shown_number(number: float) -> float | None:
    """Return a whole number as it is, and others with six digits, which keeps the page small.

    Examples
    --------
    >>> _shown_number(1008106.0), _shown_number(2 / 3), _shown_number(float("nan"))
    (1008106.0, 0.666667, None)
    """
    if not np.isfinite(number):
        return None
    return number if number.is_integer() else float(f"{number:.6g}")


def _as_numbers(cells: list[Any]) -> list[Any]:
    """Return cells as numbers if all of them are: a text file has its numbers as text."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not texts or any(isinstance(cell, float) for cell in cells):
        return cells
    try:
        numbers = {text: float(text) for text in {*texts}}
    except ValueError:
        return cells
    return [_cell(numbers[cell]) if isinstance(cell, str) else cell for cell in cells]


def places_on_earth(columns: Sequence[ShownColumn]) -> dict[str, tuple[float, float]] | None:
    """Return longitude and latitude by entity, if the table has columns of these names.

    Examples
    --------
    >>> columns = [ShownColumn("lat", {"Oslo": 59.9}), ShownColumn("lon", {"Oslo": 10.7})]
    >>> places_on_earth(columns)
    {'Oslo': (10.7, 59.9)}
    >>> places_on_earth(columns[:1]) is None
    True
    """
    north, east = _named(columns, LATITUDES, 90.0), _named(columns, LONGITUDES, 180.0)
    if north is None or east is None:
        return None
    entities_on_both = north.cells.keys() & east.cells.keys()
    return {
        entity: (float(east.cells[entity] or 0.0), float(north.cells[entity] or 0.0))
        for entity in north.cells
        if entity in entities_on_both
    }


def _named(
    columns: Sequence[ShownColumn], names: Sequence[str], limit: float
) -> ShownColumn | None:
    """Return the column of one of these names, if its numbers can be degrees."""
    for column in columns:
        if column.name.strip().lower() in names and column.is_numeric:
            degrees = [abs(float(cell)) for cell in column.cells.values() if cell is not None]
            return column if degrees and max(degrees) <= limit else None
    return None
