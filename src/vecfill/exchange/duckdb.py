"""DuckDB: fill the missing vectors of a table in one transaction."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from vecfill.errors import InputError, library
from vecfill.exchange import stores
from vecfill.inputs.table.filling import vector_cells


def fill_duckdb(connection: Any, table: str, **options: Any) -> stores.Filled:
    """Fill the null vectors of a DuckDB table, in one transaction: `fill` of a `DuckDBTable`.

    Parameters
    ----------
    connection, table
        As in `DuckDBTable`.
    options
        As in `vecfill.fill`.

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
    return stores.fill(DuckDBTable(connection, table), **options)


@dataclass(frozen=True)
class DuckDBTable(stores.SqlTable):
    """A table of DuckDB; its vectors are lists or arrays of ``FLOAT`` or ``DOUBLE``.

    The connection is from `duckdb.connect`, or it is the path of a database file.
    """

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what DuckDB raises."""
        return (library("duckdb", extra="duckdb").Error,)

    @contextmanager
    def opened(self) -> Iterator[stores.Store]:
        """Open the file, if it is one; `duckdb.connect` would make one that does not exist."""
        duckdb = library("duckdb", extra="duckdb")
        if not isinstance(self.connection, str | os.PathLike):
            stores.refuse_object(
                self.connection, ["register"], "a DuckDB connection or a path. Pass one"
            )
            yield self
            return
        path = os.fspath(self.connection)
        if ":" not in path and not Path(path).is_file():  # "md:shop" is no file
            raise InputError(f"{path}: there is no such file. Pass the path of a database.")
        with duckdb.connect(path) as connection:
            yield replace(self, connection=connection)

    def read(self, columns: stores.Columns) -> pa.Table:  # noqa: ARG002 - all of them
        """Return all rows."""
        table = self._quoted()
        with self._transaction():
            return self.connection.sql(f"SELECT * FROM {table}").to_arrow_table()

    def write(self, cells: stores.NewCells, columns: stores.Columns) -> None:
        """Write all cells in one transaction."""
        connection = self.connection
        key, vector = stores.quoted(columns.key), stores.quoted(columns.vector)
        lists = vector_cells(cells.vectors, pa.list_(pa.from_numpy_dtype(cells.vectors.dtype)))
        new: dict[str, Any] = {"key": cells.keys, "vector": lists}
        changes = f"{vector} = new.vector"
        # A name of its own: a view that the user registered under ours would be lost.
        view = f"vecfill_{uuid.uuid4().hex}"
        table, confidence = self._quoted(), columns.confidence
        if confidence is not None:
            new["sure"] = cells.confidence_cells()
            changes += f", {stores.quoted(confidence)} = new.sure"
        connection.register(view, pa.table(new))
        try:
            with self._transaction():
                if confidence is not None:
                    column = f"{stores.quoted(confidence)} DOUBLE"
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}")
                updated = connection.execute(
                    f"UPDATE {table} AS old SET {changes} FROM {view} AS new "
                    f"WHERE old.{key} = new.key AND old.{vector} IS NULL"
                )
                stores.refuse_changed(updated.fetchone()[0], len(cells), self.name)
        finally:
            connection.unregister(view)

    def _quoted(self) -> str:
        with self._transaction():
            pass  # a name that does not exist would abort a transaction of the user's
        return stores.quoted_table(self.table, self._exists)

    def _exists(self, table: str) -> bool:
        duckdb = library("duckdb", extra="duckdb")
        try:
            self.connection.execute(f"DESCRIBE {table}").fetchall()
        except (duckdb.CatalogException, duckdb.BinderException):
            return False
        return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        duckdb = library("duckdb", extra="duckdb")
        try:
            self.connection.execute("BEGIN TRANSACTION")
        except duckdb.TransactionException:
            stores.refuse_transaction(is_closed=False)
        except duckdb.ConnectionException:
            stores.refuse_transaction(is_closed=True)
        try:
            yield
            self.connection.execute("COMMIT")
        except duckdb.TransactionException as error:
            # Two transactions changed the same rows, and DuckDB lets the first one pass.
            self._roll_back()
            raise InputError(
                f"{self.name} changed meanwhile. Nothing was written; run again. DuckDB says: "
                f"{stores.first_line(error)}"
            ) from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        duckdb = library("duckdb", extra="duckdb")
        try:
            self.connection.execute("ROLLBACK")
        except duckdb.Error:
            return  # the transaction ended with the error, or with the connection
