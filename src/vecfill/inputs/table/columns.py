"""One column of a table -> numbers or categories, or a refusal that names the cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.errors import InputError
from vecfill.inputs.entities import is_missing
from vecfill.inputs.table.dates import DateError, is_date, years_of_cells, years_of_texts
from vecfill.inputs.table.frames import Cells, Frame, objects
from vecfill.inputs.table.written_numbers import refuse_what_was_meant_otherwise
from vecfill.io.cutting import MISSING, text_array


@dataclass(frozen=True)
class Numbers:
    """A numeric column; a missing value is NaN.

    Examples
    --------
    >>> Numbers("density", np.array([7.9, np.nan])).values
    array([7.9, nan])
    """

    name: str
    values: np.ndarray
    is_date: bool = field(default=False, repr=False)
    """Whether the values are dates, as years with a fraction."""
    about_missing: ClassVar[str] = (
        "set to the column's mean, and marked in a column '... (missing)'"
    )
    """What becomes of missing values, in words."""

    def at(self, rows: np.ndarray) -> Numbers:
        """Return the column of some rows."""
        return replace(self, values=self.values[rows])

    @cached_property
    def is_missing(self) -> np.ndarray:
        """Which values are missing."""
        return np.isnan(self.values)

    @cached_property
    def present(self) -> np.ndarray:
        """The values that are not missing."""
        return self.values[~self.is_missing] if self.is_missing.any() else self.values

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return bool(self.present.min() == self.present.max())

    def fits_32_bits(self, lost_of_spread: float) -> bool:
        """Tell whether rounding to 32 bits changes no more than a share of the spread."""
        with np.errstate(over="ignore"):
            lost = float(np.abs(self.present.astype(np.float32) - self.present).max())
        return lost <= lost_of_spread * self.mean_and_spread[1]

    def texts(self) -> list[str | None]:
        """Return nothing for each row: a column read as categories is this if no cell has any."""
        return [None] * len(self.values)

    @cached_property
    def mean_and_spread(self) -> tuple[float, float]:
        """Mean and standard deviation, also of values whose squares would overflow or vanish."""
        largest = float(np.abs(self.present).max())
        if largest == 0:
            return 0.0, 0.0
        scaled = self.present / largest
        return float(scaled.mean() * largest), float(scaled.std() * largest)


@dataclass(frozen=True)
class Categories:
    """A column of categories; `codes` count into `labels`, and a missing value is -1.

    Examples
    --------
    >>> Categories("sector", np.array([0, 1, 0]), ("Energy", "Retail")).labels
    ('Energy', 'Retail')
    """

    name: str
    codes: np.ndarray
    labels: tuple[str, ...]
    is_asked: bool = field(default=False, repr=False)
    """Whether the user, or the table's own type, says that it holds categories."""
    about_missing: ClassVar[str] = "in no category"
    """What becomes of missing values, in words."""

    def at(self, rows: np.ndarray) -> Categories:
        """Return the column of some rows; labels stay, also those that none of them has."""
        return replace(self, codes=self.codes[rows])

    @property
    def is_missing(self) -> np.ndarray:
        """Which rows are in no category."""
        return self.codes < 0

    @property
    def is_constant(self) -> bool:
        """Whether there is one category only."""
        return len(self.labels) == 1

    @property
    def is_identifier(self) -> bool:
        """Whether every row has another category, as a key has."""
        return len(self.labels) == int((self.codes >= 0).sum())

    def fits_32_bits(self, _lost_of_spread: float) -> bool:
        """Say that indicators are the same in 32 bits."""
        return True

    def texts(self) -> list[str | None]:
        """Return the category of each row, None where it has none."""
        return [None if code < 0 else self.labels[code] for code in self.codes.tolist()]


def read_column(
    name: str, cells: pa.ChunkedArray, entities: Sequence[str], *, is_category: bool = False
) -> Numbers | Categories:
    """Return what a column holds: numbers, categories, or a refusal.

    A column of text is numeric if every cell that is not missing is a number, boolean if every
    one is true or false, and otherwise categorical.

    Examples
    --------
    >>> read_column("mass", pa.chunked_array([["1.5", "NA"]]), ["iron", "gold"])
    Numbers(name='mass', values=array([1.5, nan]))
    >>> read_column("kind", pa.chunked_array([["metal", "gas"]]), ["iron", "neon"]).labels
    ('gas', 'metal')
    """
    kind = cells.type
    if pa.types.is_dictionary(kind):
        cells = cells.cast(kind.value_type)
        kind, is_category = cells.type, True
    if pa.types.is_null(kind):
        return Numbers(name, np.full(len(cells), np.nan))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Numbers(name, years_of_cells(cells), is_date=True)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        cells, kind = _joined_lists(cells), pa.large_string()
    if _is_text(kind):
        return _from_text(name, cells.cast(pa.large_string()), entities, is_category)
    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    if not (is_plain or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(
            f"column {name!r} holds values of type {kind}. Only numbers, booleans and text can be "
            "used. Turn the column into those, or leave it out (ignore=)."
        )
    if is_category:
        return _from_text(name, cells.cast(pa.large_string()), entities, is_category)
    if pa.types.is_decimal(kind):
        cells = cells.cast(pa.float64())
    return Numbers(name, _finite(name, _as_floats(cells), entities))


LISTS = "|"
"""What stands between the items of a list in a cell."""


def _joined_lists(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of lists as text."""
    texts = [None if cell is None else LISTS.join(map(str, cell)) for cell in cells.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def read_objects(
    name: str, cells: Sequence[object], entities: Sequence[str], *, is_category: bool = False
) -> Numbers | Categories:
    """Return what a column of Python objects holds, of which Arrow could make no one type.

    Examples
    --------
    >>> read_objects("mass", [1, 2.5, None], ["a", "b", "c"])
    Numbers(name='mass', values=array([1. , 2.5, nan]))
    """
    texts: list[str | None] = []
    for row, cell in enumerate(cells):
        if is_missing(cell):
            texts.append(None)
        elif isinstance(cell, str | bool | int | float | np.number | np.bool_):
            texts.append(str(cell))
        else:
            raise InputError(
                f"column {name!r}, entity {entities[row]!r}: an object of type "
                f"{type(cell).__name__}. Only numbers, booleans and text can be used; turn it "
                "into columns of those, or leave the column out (ignore=)."
            )
    return _from_text(
        name, pa.chunked_array([pa.array(texts, pa.large_string())]), entities, is_category
    )


def read_cells(
    label: str,
    name: str,
    cells: Cells,
    rows: Sequence[str],
    *,
    row: str = "entity",
    is_category: bool = False,
) -> Numbers | Categories:
    """Return what a column of the table `label` holds; a `row` is what messages call its rows."""
    read = read_objects if isinstance(cells, list) else read_column
    try:
        return read(name, cells, rows, is_category=is_category)
    except InputError as error:
        raise InputError(f"{label}, {str(error).replace(', entity ', f', {row} ')}") from None


def read_numbers(
    label: str, name: str, cells: Cells, rows: Sequence[str], *, advice: str, row: str = "entity"
) -> np.ndarray:
    """Return the numbers of a column; anything else is refused with some advice.

    Examples
    --------
    >>> read_numbers("the table", "mass", [1, None], ["a", "b"], advice="Masses are numbers.")
    array([ 1., nan])
    """
    column = read_cells(label, name, cells, rows, row=row)
    if isinstance(column, Numbers) and not column.is_date:
        return column.values
    if isinstance(column, Numbers):
        raise InputError(f"{label}, column {name!r} holds dates. {advice}")
    raise InputError(
        f"{label}, column {name!r} holds text such as {column.labels[0][:60]!r}. {advice}"
    )


def read_matrix(frame: Frame, rows: Sequence[str], *, advice: str) -> np.ndarray:
    """Return all columns of a table as numbers; anything else is refused with some advice."""
    columns = frame.columns.items()
    numbers = [
        read_numbers(frame.label, name, cells, rows, advice=advice) for name, cells in columns
    ]
    return np.column_stack(numbers)


def has_value(cells: Cells) -> list[bool]:
    """Tell which cells have a value; a text file writes that there is none as an empty cell, say.

    Examples
    --------
    >>> has_value(["1", "", "NA", None, 0])
    [True, False, False, False, True]
    """
    return [
        not (is_missing(cell) or (isinstance(cell, str) and cell in MISSING))
        for cell in objects(cells)
    ]


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _from_text(
    name: str, cells: pa.ChunkedArray, entities: Sequence[str], is_category: bool
) -> Numbers | Categories:
    if not is_category:
        # The common case first, at full speed: every cell is a number.
        numbers = _cast(cells)
        if numbers is None:
            cells = _trimmed(cells)
            numbers = _cast(cells)
        if numbers is not None:
            return Numbers(name, _finite(name, numbers, entities))
    else:
        cells = _trimmed(cells)
    counted = pc.value_counts(cells)
    times = {
        label: count
        for label, count in zip(
            counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
        )
        if label is not None
    }
    if not is_category:
        if times and all(label.lower() in ("true", "false") for label in times):
            truth = pc.equal(pc.utf8_lower(cells), "true").cast(pa.float64())
            return Numbers(name, truth.to_numpy())
        if times and 2 * sum(times[label] for label in times if is_date(label)) > sum(
            times.values()
        ):
            return _dates(name, cells.to_pylist(), entities)
        refuse_what_was_meant_otherwise(name, times, cells, entities)
    labels = tuple(sorted(times))
    codes = pc.index_in(cells, value_set=text_array(labels).cast(pa.large_string()))
    filled_codes = _as_numpy(codes, np.dtype(np.int32), -1).astype(np.int64)
    return Categories(name, filled_codes, labels, is_asked=is_category)


def _trimmed(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells without spaces around them, null where they say that a value is missing."""
    cells = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(cells, value_set=text_array(MISSING).cast(pa.large_string()))
    return pc.if_else(missing, pa.nulls(1, pa.large_string())[0], cells)


def _cast(cells: pa.ChunkedArray) -> np.ndarray | None:
    try:
        return _as_floats(cells.cast(pa.float64()))
    except pa.ArrowException:
        return None


def _as_floats(cells: pa.ChunkedArray) -> np.ndarray:
    """Return numbers as float64, NaN where they are null."""
    if not pa.types.is_float64(cells.type):
        return cells.to_numpy().astype(np.float64)
    return _as_numpy(cells, np.dtype(np.float64), np.nan)


def _as_numpy(cells: pa.ChunkedArray, dtype: np.dtype[Any], missing: float) -> np.ndarray:
    """Return numbers of a type that NumPy has too, and `missing` where they are null.

    Arrow's own `to_numpy` and `fill_null` load pandas if it is there, which takes longer than to
    read a small table.
    """
    values = np.empty(len(cells), dtype)
    start = 0
    for chunk in cells.chunks:
        stop = start + len(chunk)
        validity, numbers = chunk.buffers()
        place = slice(chunk.offset, chunk.offset + len(chunk))
        if len(chunk):
            values[start:stop] = np.frombuffer(numbers, dtype)[place]
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            values[start:stop][bits[place] == 0] = missing
        start = stop
    return values


def _finite(name: str, numbers: np.ndarray, entities: Sequence[str]) -> np.ndarray:
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(infinite.argmax())
        raise InputError(
            f"column {name!r}, entity {entities[row]!r} (row {row + 1}): the value is infinite, or "
            "too large for a number of 64 bits. Correct it, or leave the cell empty if it is "
            "not known."
        )
    return numbers


def _dates(name: str, texts: Sequence[str | None], entities: Sequence[str]) -> Numbers:
    """Return a column of dates as years, or refuse the cell that is none."""
    try:
        return Numbers(name, years_of_texts(texts), is_date=True)
    except DateError as problem:
        row = problem.row
        raise InputError(
            f"column {name!r}, entity {entities[row]!r} (row {row + 1}): {problem} Other values of "
            "the column are dates; leave it out (ignore=) if it is to say nothing."
        ) from None
