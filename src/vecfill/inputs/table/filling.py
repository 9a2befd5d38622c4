"""A table and vectors for some of its rows -> the same kind of table, those cells filled.

Only the cells named are touched. Columns, their order and types, rows, the index of pandas and the
metadata of Arrow stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.errors import InputError
from vecfill.inputs.entities import is_missing
from vecfill.inputs.objects import comes_from
from vecfill.io.tables import read_table


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
    taken = filling.rows[has_value[filling.rows]]
    if taken.size:
        raise InputError(
            f"the column {name!r} has a value in row {taken[0] + 1}, which had no vector, so it "
            "does not hold confidences of imputed ones. Choose another name."
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
    found = table.copy(deep=False)
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
    found[label] = _series(pd, values, series)
    if filling.confidence_column is not None:
        name = filling.confidence_column
        sure = np.full(len(table), np.nan)
        if name in table.columns:
            _refuse_taken(name, table[name].notna().to_numpy(), filling)
            sure = table[name].to_numpy(np.float64, copy=True)
        sure[filling.rows] = np.nan if filling.confidence is None else filling.confidence
        found[name] = pd.Series(sure, index=table.index)
    return found


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
