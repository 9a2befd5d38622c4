"""Proof that a table with a vector column was only filled and extended."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.io.comparing import first_other_row, same_bits
from vecfill.io.tables import read_table


@dataclass(frozen=True)
class TableVerification:
    """What a comparison of two tables has shown."""

    n_rows: int
    """Rows of the original."""
    n_vectors: int
    """Vectors of the original, all of them unchanged."""
    n_filled: int
    """Rows of the original that had no vector and have one now."""
    n_added: int
    """Rows after those of the original."""
    new_columns: tuple[str, ...]
    difference: str | None
    """The first cell that is not the same."""

    @property
    def ok(self) -> bool:
        """Whether every cell of the original is there unchanged."""
        return self.difference is None


def verify_table(
    original: str | PathLike[str], enriched: str | PathLike[str], *, vector: str
) -> TableVerification:
    r"""Compare two tables with a column of vectors, cell by cell and bit for bit.

    The enriched table may have vectors where the original has none, further rows at its end and
    further columns. Everything else must be the same: columns, their types, the order of rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> place = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (place / "old.csv").write_text("id,v\n7,[1.0]\n8,\n")
    >>> _ = (place / "new.csv").write_text("id,v\n7,[1.0]\n8,[2.0]\n9,[3.0]\n")
    >>> found = verify_table(place / "old.csv", place / "new.csv", vector="v")
    >>> found.ok, found.n_vectors, found.n_filled, found.n_added
    (True, 1, 1, 1)
    """
    old, new = (read_table(each).combine_chunks() for each in (original, enriched))
    for path, table in ((original, old), (enriched, new)):
        if vector not in table.column_names:
            raise InputError(f"{path} has no column {vector!r} of vectors (vector=).")
    had, has = (_is_there(table, vector) for table in (old, new))
    n_rows = old.num_rows
    return TableVerification(
        n_rows=n_rows,
        n_vectors=int(had.sum()),
        n_filled=int((has[:n_rows] & ~had[: has.size]).sum()) if has.size >= n_rows else 0,
        n_added=max(0, new.num_rows - n_rows),
        new_columns=tuple(name for name in new.column_names if name not in old.column_names),
        difference=_difference(old, new, vector, had),
    )


def _difference(old: pa.Table, new: pa.Table, vector: str, had: np.ndarray) -> str | None:
    if new.num_rows < old.num_rows:
        return f"it has {new.num_rows} rows, and the original has {old.num_rows}."
    for name in old.column_names:
        if name not in new.column_names:
            return f"it has no column {name!r}."
        rows = np.flatnonzero(had) if name == vector else np.arange(old.num_rows)
        mine, theirs = (_cells(table, name).take(pa.array(rows)) for table in (old, new))
        if mine.type != theirs.type:
            return f"column {name!r} is of type {theirs.type} and was of type {mine.type}."
        if not same_bits(mine, theirs):
            row = int(rows[first_other_row(mine, theirs)])
            return f"row {row + 1}, column {name!r}: the cell is not the same."
    return None


def _cells(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _is_there(table: pa.Table, vector: str) -> np.ndarray:
    """Return which rows have a vector; in text tables a missing one is an empty cell."""
    column = table.column(vector)
    found = column.is_valid().to_numpy()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found &= np.array([bool(str(cell).strip()) for cell in column.to_pylist()], np.bool_)
    return found
