"""Columns of vectors: read from a table, and filled in for some of its rows.

A cell without a vector is null. A filled table is of the same kind as before. Only the cells named
are touched: columns, their order and types, rows, the index of pandas and the metadata of Arrow
stay as they were.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, is_missing, listed
from vecfill.inputs.table.columns import MISSING
from vecfill.inputs.table.frames import Cells, Frame, comes_from
from vecfill.io.tables import read_table


@dataclass(frozen=True, eq=False)
class VectorCells:
    """The vectors of a column; row `i` of `vectors` is all NaN where `is_known[i]` is false."""

    vectors: np.ndarray = field(repr=False)
    is_known: np.ndarray


def is_vectors(cells: Cells) -> bool:
    """Tell whether a column holds lists of floating-point numbers.

    Examples
    --------
    >>> is_vectors(pa.chunked_array([[[1.0, 2.0], None]])), is_vectors(pa.chunked_array([[1.0]]))
    (True, False)
    """
    if isinstance(cells, list):
        first = next((cell for cell in cells if not is_missing(cell)), None)
        return isinstance(first, np.ndarray) and first.ndim == 1 and first.dtype.kind == "f"
    return _is_list(cells.type) and pa.types.is_floating(cells.type.value_type)


def read_vectors(frame: Frame, name: str, entities: Sequence[str]) -> VectorCells:
    """Return the vectors in the column `name`; what is not a vector is refused by row.

    A cell is known whole or not at all: it is null, or a list as long as the others without NaN.
    Cells of text hold lists as JSON has them, for tables in CSV files.

    Examples
    --------
    >>> from vecfill.inputs.table.frames import frame_of
    >>> table = pa.table({"embedding": [[1.0, 2.0], None]})
    >>> read_vectors(frame_of(table), "embedding", ["a", "b"]).vectors
    array([[ 1.,  2.],
           [nan, nan]])
    """
    if name not in frame.names:
        raise InputError(
            f"{frame.label} has no column {name!r} with vectors (vector=)."
            f"{did_you_mean(name, frame.names)} Its columns are {listed(frame.names, 10)}."
        )
    where = f"{frame.label}, column {name!r}"
    cells = frame.columns[name]
    if isinstance(cells, list):
        lists = [None if is_missing(cell) else cell for cell in cells]
        return _of_objects(lists, where, entities)
    kind = cells.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_objects(_parsed(cells.to_pylist(), where, entities), where, entities)
    if pa.types.is_null(kind):
        return _checked(_Flat(np.empty(0), np.full(len(cells), -1)), where, entities)
    if not _is_list(kind) or not pa.types.is_floating(kind.value_type):
        raise InputError(
            f"{where} holds values of type {kind}. Vectors are lists of floating-point numbers; "
            "cast the column, or name another one (vector=)."
        )
    return _of_arrow(cells, where, entities)


@dataclass(frozen=True)
class _Flat:
    """All numbers of a column one after the other, and how many each row has; null is -1."""

    numbers: np.ndarray
    lengths: np.ndarray


def _of_arrow(cells: pa.ChunkedArray, where: str, entities: Sequence[str]) -> VectorCells:
    lengths = pc.fill_null(pc.list_value_length(cells), -1).to_numpy().astype(np.int64)
    # Null cells of lists of a fixed size hold numbers too, which `flatten` leaves out.
    flat = [chunk.flatten() for chunk in cells.drop_null().chunks]
    numbers = pa.chunked_array(flat, cells.type.value_type)
    if numbers.null_count:
        place = int(np.argmax(numbers.is_null().to_numpy()))
        row = _row_of(place, lengths)
        raise InputError(f"{_cell(where, row, entities)} has a null among its numbers. {_FIX}")
    return _checked(_Flat(numbers.to_numpy(), lengths), where, entities)


def _of_objects(cells: Sequence[Any], where: str, entities: Sequence[str]) -> VectorCells:
    arrays: list[np.ndarray] = []
    lengths = np.full(len(cells), -1)
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        try:
            array = np.asarray(cell)
        except ValueError:
            array = np.empty(0, object)
        is_empty = array.size == 0 and array.dtype.kind != "O"
        if array.ndim != 1 or not (array.dtype.kind in "iuf" or is_empty):
            raise InputError(
                f"{_cell(where, row, entities)} is {str(cell)[:60]!r}, which is not a list of "
                f"numbers. {_FIX}"
            )
        lengths[row] = len(array)
        arrays.append(array if array.dtype.kind == "f" else array.astype(np.float64))
    numbers = np.concatenate(arrays) if arrays else np.empty(0)
    return _checked(_Flat(numbers, lengths), where, entities)


def _parsed(texts: Sequence[str | None], where: str, entities: Sequence[str]) -> list[Any]:
    cells: list[Any] = []
    for row, text in enumerate(texts):
        if text is None or text.strip() in MISSING:
            cells.append(None)
            continue
        try:
            # Python's JSON knows NaN and Infinity, which are refused below by name.
            cells.append(json.loads(text))
        except (ValueError, RecursionError):
            raise InputError(
                f"{_cell(where, row, entities)} is {text[:60]!r}. A vector in a text file is a "
                "list such as [0.5, -1.25]; an empty cell is imputed."
            ) from None
    return cells


def _checked(flat: _Flat, where: str, entities: Sequence[str]) -> VectorCells:
    is_known = flat.lengths >= 0
    if not is_known.any():
        raise InputError(
            f"{where} is null in every row. vecfill learns from entities that have a vector."
        )
    first = int(np.argmax(is_known))
    n_dims = int(flat.lengths[first])
    wrong = np.flatnonzero(is_known & (flat.lengths != n_dims))
    if n_dims == 0 or wrong.size:
        row = first if n_dims == 0 else int(wrong[0])
        expected = "" if n_dims == 0 else f", but row {first + 1} has {n_dims}"
        raise InputError(
            f"{_cell(where, row, entities)} has {flat.lengths[row]} numbers{expected}. All vectors "
            f"have one length. {_FIX}"
        )
    is_bad = ~np.isfinite(flat.numbers)
    if is_bad.any():
        place = int(np.argmax(is_bad))
        value = "NaN" if np.isnan(flat.numbers[place]) else "infinity"
        row = _row_of(place, flat.lengths)
        raise InputError(
            f"{_cell(where, row, entities)} contains {value} at position {place % n_dims + 1}. "
            f"{_FIX}"
        )
    vectors = np.full((len(is_known), n_dims), np.nan, flat.numbers.dtype)
    vectors[is_known] = flat.numbers.reshape(-1, n_dims)
    return VectorCells(vectors, is_known)


_FIX = "Correct it, or make the cell null to have it imputed."


def _cell(where: str, row: int, entities: Sequence[str]) -> str:
    return f"{where}, row {row + 1} (entity {entities[row]!r})"


def _row_of(place: int, lengths: np.ndarray) -> int:
    """Return the row that the number at `place` of all numbers belongs to."""
    ends = np.cumsum(np.maximum(lengths, 0))
    return int(np.searchsorted(ends, place, side="right"))


def _is_list(kind: pa.DataType) -> bool:
    kinds = pa.types
    return kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)


@dataclass(frozen=True, eq=False)
class Filling:
    """Vectors for some rows of a column, and how confident they are if that is to be written."""

    column: str
    rows: np.ndarray
    """(n_filled,) numbers of the rows, ascending."""
    vectors: np.ndarray = field(repr=False)
    confidence_column: str | None = None
    confidence: np.ndarray | None = field(default=None, repr=False)


def filled(source: Any, filling: Filling) -> Any:
    """Return a table like `source`, a table or the path of one, with cells filled.

    Examples
    --------
    >>> table = pa.table({"id": [7, 8], "v": [[1.0], None]})
    >>> filled(table, Filling("v", np.array([1]), np.array([[5.0]]))).to_pydict()
    {'id': [7, 8], 'v': [[1.0], [5.0]]}
    """
    if isinstance(source, str | PathLike):
        source = read_table(source)
    if isinstance(source, pa.RecordBatch):
        table = filled_arrow(pa.Table.from_batches([source]), filling)
        return table.combine_chunks().to_batches()[0]
    if isinstance(source, pa.Table):
        return filled_arrow(source, filling)
    if comes_from(source, "pandas"):
        return _filled_pandas(source, filling)
    if comes_from(source, "polars"):
        return _filled_polars(source, filling)
    raise InputError(
        f"a table of type {type(source).__name__} cannot be filled. Use result.to_arrow(), or "
        "pass a pandas, polars or Arrow table."
    )


def filled_arrow(table: pa.Table, filling: Filling) -> pa.Table:
    """Return an Arrow table with cells filled; all other cells keep their bits."""
    place = table.column_names.index(filling.column)
    kind = table.schema.field(place)
    if pa.types.is_null(kind.type):
        raise InputError(f"column {filling.column!r} has the type null. Cast it to a list first.")
    new = vector_cells(filling.vectors, kind.type)
    table = table.set_column(place, kind, _patched(table.column(place), filling.rows, new))
    name = filling.confidence_column
    if name is None:
        return table
    values = _confidence_cells(filling)
    if name not in table.column_names:
        empty = pa.chunked_array([pa.nulls(table.num_rows, values.type)])
        return table.append_column(name, _patched(empty, filling.rows, values))
    place = table.column_names.index(name)
    old = table.schema.field(place)
    _refuse_taken(name, table.column(place).is_valid().to_numpy(), filling)
    return table.set_column(
        place, old, _patched(table.column(place), filling.rows, _cast(values, old.type, name))
    )


def vector_cells(vectors: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return rows as cells of a type of list, or as text where the column is text.

    Examples
    --------
    >>> vector_cells(np.array([[0.5, 1.0]], np.float32), pa.large_list(pa.float32())).to_pylist()
    [[0.5, 1.0]]
    >>> vector_cells(np.array([[0.1, 1.0]], np.float32), pa.string()).to_pylist()
    ['[0.1, 1.0]']
    """
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([vector_text(row) for row in vectors], kind)
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pc.cast(lists, kind)


def vector_text(vector: np.ndarray) -> str:
    """Return a vector as JSON, with as many digits as its type needs to come back.

    Examples
    --------
    >>> vector_text(np.array([0.1, -2.0], np.float32))
    '[0.1, -2.0]'
    """
    return "[" + ", ".join(str(value) for value in vector) + "]"


def _patched(column: pa.ChunkedArray, rows: np.ndarray, new: pa.Array) -> pa.ChunkedArray:
    """Return a column with other cells in some rows."""
    order = np.arange(len(column))
    order[rows] = len(column) + np.arange(len(rows))
    return pa.chunked_array([*column.chunks, new], column.type).take(pa.array(order))


def _refuse_taken(name: str, has_value: np.ndarray, filling: Filling) -> None:
    """Refuse to write confidences over the values of a column that means something else."""
    taken_rows = filling.rows[has_value[filling.rows]]
    if taken_rows.size:
        raise InputError(
            f"the column {name!r} has a value in row {taken_rows[0] + 1}, which had no vector, so "
            "it does not hold confidences of imputed ones. Choose another name."
        )


def _confidence_cells(filling: Filling) -> pa.Array:
    """Return confidences; null where too few entities were known to learn any."""
    if filling.confidence is None:
        return pa.nulls(len(filling.rows), pa.float64())
    return pa.array(filling.confidence.astype(np.float64))


def _cast(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values.cast(kind)
    if not (pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"the column {name!r} is there already and holds values of type {kind}, not "
            "confidences. Choose another name."
        )
    return values.cast(kind)


def _filled_pandas(table: Any, filling: Filling) -> Any:
    import pandas as pd  # noqa: PLC0415 - whoever passes a pandas table has it

    names = [str(name).strip() for name in table.columns]
    copy = table.copy(deep=False)
    label = table.columns[names.index(filling.column)]
    series = table[label]
    if isinstance(series.dtype, pd.ArrowDtype):
        cells = vector_cells(filling.vectors, series.dtype.pyarrow_dtype).to_pylist()
    else:
        is_list = any(isinstance(cell, list) for cell in series if not is_missing(cell))
        cells = filling.vectors.tolist() if is_list else list(filling.vectors)
    values = list(series)
    for row, cell in zip(filling.rows.tolist(), cells, strict=True):
        values[row] = cell
    copy[label] = _series(pd, values, series)
    if filling.confidence_column is not None:
        name = filling.confidence_column
        sure = np.full(len(table), np.nan)
        if name in table.columns:
            _refuse_taken(name, table[name].notna().to_numpy(), filling)
            sure = table[name].to_numpy(np.float64, copy=True)
        sure[filling.rows] = np.nan if filling.confidence is None else filling.confidence
        copy[name] = pd.Series(sure, index=table.index)
    return copy


def _series(pd: Any, values: list[Any], like: Any) -> Any:
    if isinstance(like.dtype, pd.ArrowDtype):
        cells = [None if is_missing(cell) else cell for cell in values]
        arrow = pa.array(cells, like.dtype.pyarrow_dtype)
        return pd.Series(arrow, index=like.index, dtype=like.dtype)
    holder = np.empty(len(values), object)
    holder[:] = values
    return pd.Series(holder, index=like.index, dtype=like.dtype)


def _filled_polars(table: Any, filling: Filling) -> Any:
    import polars as pl  # noqa: PLC0415 - whoever passes a polars table has it

    names = [filling.column]
    sure = filling.confidence_column
    if sure is not None and sure in table.columns:
        names.append(sure)
    arrow = filled_arrow(table.select(names).to_arrow(), filling)
    columns = []
    for name in arrow.column_names:
        series = pl.Series(name, pl.from_arrow(arrow.column(name)))
        columns.append(series.cast(table.schema[name]) if name in table.columns else series)
    return table.with_columns(columns)
