"""PostgreSQL: fill the missing vectors of a table with array columns, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
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

_ARRAYS = {1021: pa.list_(pa.float32()), 1022: pa.list_(pa.float64())}
"""Arrow types by the number of PostgreSQL's: real[] and double precision[]."""


@filling
@contextmanager
def fill_postgres(connection: Any, table: str) -> Iterator[Store]:
    """Fill the null vectors of a PostgreSQL table, in one transaction.

    `key` and `vector` name columns; vectors are of type ``real[]`` or ``double precision[]``. The
    other columns describe the rows, unless `ignore` names them. Rows that have a vector are not
    changed, so a second run finds nothing to do. If a row gets a vector while others are being
    imputed, nothing is written.

    Parameters
    ----------
    connection
        A connection from `psycopg.connect` without an open transaction, or a connection string.
    table
        Name of the table.

    Examples
    --------
    >>> with psycopg.connect("dbname=shop") as connection:           # doctest: +SKIP
    ...     fill_postgres(connection, "items", key="id", vector="embedding").keys
    (4, 8, 15)
    """
    psycopg = library("psycopg", extra="postgres")
    if isinstance(connection, str):
        with psycopg.connect(connection) as opened:
            yield _Postgres(opened, table)
        return
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        raise InputError(
            "the connection has a transaction open, and the vectors need one of their own. "
            "Commit it or roll it back first."
        )
    yield _Postgres(connection, table)


@dataclass(frozen=True)
class _Postgres(Store):
    connection: Any
    table: str

    def read(self, columns: Columns) -> pa.Table:  # noqa: ARG002 - all of them
        """Return all rows."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted_table(self.table)}")
            rows = cursor.fetchall()
            kinds = [(column.name, column.type_code) for column in cursor.description]
        cells = {
            name: _arrow_column([row[place] for row in rows], code)
            for place, (name, code) in enumerate(kinds)
        }
        return pa.table(cells)

    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all cells in one transaction."""
        table, key, vector = quoted_table(self.table), quoted(columns.key), quoted(columns.vector)
        sure = None if columns.confidence is None else quoted(columns.confidence)
        names = ", ".join([key, vector, *([] if sure is None else [sure])])
        changes = f"{vector} = new.{vector}" + ("" if sure is None else f", {sure} = new.{sure}")
        values: list[list[Any]] = [cells.keys.to_pylist(), cells.vectors.tolist()]
        if cells.confidence is not None:
            values.append(
                [None if np.isnan(value) else value for value in cells.confidence.tolist()]
            )
        with self.connection.transaction(), self.connection.cursor() as cursor:
            if sure is not None:
                cursor.execute(
                    f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {sure} double precision"
                )
            # A copy of the columns, so that keys and vectors have the types of the table itself.
            cursor.execute(
                "CREATE TEMPORARY TABLE vecfill_new ON COMMIT DROP AS "
                f"SELECT {names} FROM {table} WITH NO DATA"
            )
            with cursor.copy("COPY vecfill_new FROM STDIN") as copy:
                for row in zip(*values, strict=True):
                    copy.write_row(row)
            cursor.execute(
                f"UPDATE {table} AS old SET {changes} FROM vecfill_new AS new "
                f"WHERE old.{key} = new.{key} AND old.{vector} IS NULL"
            )
            refuse_changed(cursor.rowcount, len(cells), self.table)


def _arrow_column(values: list[Any], code: int) -> pa.Array:
    """Return a column; what Arrow has no type for, such as a UUID, is text."""
    if code in _ARRAYS:
        return pa.array(values, _ARRAYS[code])
    try:
        column = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is None or isinstance(column.type, pa.BaseExtensionType):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return column
