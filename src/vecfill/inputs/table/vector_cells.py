"""A column of vectors -> an array and a mask; a cell without a vector is null."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, is_missing, listed
from vecfill.inputs.table.columns import MISSING
from vecfill.inputs.table.frames import Cells, Frame


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
    cells = frame.cells[frame.names.index(name)]
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
        found = "NaN" if np.isnan(flat.numbers[place]) else "infinity"
        row = _row_of(place, flat.lengths)
        raise InputError(
            f"{_cell(where, row, entities)} contains {found} at position {place % n_dims + 1}. "
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
