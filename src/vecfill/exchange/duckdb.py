"""DuckDB: fill the missing vectors of a table in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vecfill.errors import InputError
from vecfill.exchange.extras import library
from vecfill.exchange.stores import (
    Columns,
    NewCells,
    Store,
    filling,
    quoted,
    quoted_table,
    refuse_changed,
)
from vecfill.inputs.table.filling import vector_cells

_VIEW = "vecfill_new_vectors"


@filling
@contextmanager
def fill_duckdb(connection: Any, table: str) -> Iterator[Store]:
    """Fill the null vectors of a DuckDB table, in one transaction.

    `key` and `vector` name columns; vectors are lists or arrays of ``FLOAT`` or ``DOUBLE``. The
    other columns describe the rows, unless `ignore` names them. Rows that have a vector are not
    changed, so a second run finds nothing to do.

    Parameters
    ----------
    connection
        A connection from `duckdb.connect` without an open transaction, or the path of a database
        file.
    table
        Name of the table.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.sql("CREATE TABLE items (id INTEGER, wave DOUBLE, hue FLOAT[])")
    >>> rows = "(1, 680, [1.0]), (2, 610, [2.0]), (3, 580, [3.0]), (4, 595, NULL)"
    >>> _ = connection.sql(f"INSERT INTO items VALUES {rows}")
    >>> fill_duckdb(connection, "items", key="id", vector="hue", method="paper").keys
    (4,)
    >>> connection.sql("SELECT count(*) FROM items WHERE hue IS NULL").fetchall()
    [(0,)]
    """
    duckdb = library("duckdb", extra="duckdb")
    if not isinstance(connection, str | os.PathLike):
        yield _DuckDB(connection, table)
        return
    with duckdb.connect(os.fspath(connection)) as opened:
        yield _DuckDB(opened, table)


@dataclass(frozen=True)
class _DuckDB(Store):
    connection: Any
    table: str

    def read(self, columns: Columns) -> pa.Table:  # noqa: ARG002 - all of them
        """Return all rows."""
        rows = self.connection.sql(f"SELECT * FROM {quoted_table(self.table)}")
        return rows.to_arrow_table()

    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all cells in one transaction."""
        connection, table = self.connection, quoted_table(self.table)
        key, vector = quoted(columns.key), quoted(columns.vector)
        lists = vector_cells(cells.vectors, pa.list_(pa.from_numpy_dtype(cells.vectors.dtype)))
        new: dict[str, Any] = {"key": cells.keys, "vector": lists}
        changes = f"{vector} = new.vector"
        if cells.confidence is not None:
            new["sure"] = pa.array(cells.confidence, from_pandas=True)
            changes += f", {quoted(str(columns.confidence))} = new.sure"
        self._begin()
        try:
            if cells.confidence is not None:
                name = quoted(str(columns.confidence))
                connection.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} DOUBLE")
            connection.register(_VIEW, pa.table(new))
            updated = connection.execute(
                f"UPDATE {table} AS old SET {changes} FROM {_VIEW} AS new "
                f"WHERE old.{key} = new.key AND old.{vector} IS NULL"
            )
            refuse_changed(updated.fetchone()[0], len(cells), self.table)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        finally:
            connection.unregister(_VIEW)

    def _begin(self) -> None:
        duckdb = library("duckdb", extra="duckdb")
        try:
            self.connection.execute("BEGIN TRANSACTION")
        except duckdb.TransactionException as error:
            raise InputError(
                "the connection has a transaction open, and the vectors need one of their own. "
                "Commit it or roll it back first."
            ) from error
