"""PostgreSQL: fill the missing vectors of a table with array columns, in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from vecfill.errors import InputError, library
from vecfill.exchange import stores

_TYPES = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64(), 25: pa.string(),
    700: pa.float64(), 701: pa.float64(), 1043: pa.string(),
    1021: pa.list_(pa.float32()), 1022: pa.list_(pa.float64()),
}  # fmt: skip
"""Arrow types by the number of PostgreSQL's; the last two are real[] and double precision[]."""


def fill_postgres(connection: Any, table: str, **options: Any) -> stores.Filled:
    """Fill the null vectors of a PostgreSQL table, in one transaction: `fill` of a `PostgresTable`.

    Parameters
    ----------
    connection, table
        As in `PostgresTable`.
    options
        As in `vecfill.fill`.

    Examples
    --------
    >>> with psycopg.connect("dbname=shop") as connection:           # doctest: +SKIP
    ...     fill_postgres(connection, "items", key="id", vector="embedding").keys
    (4, 8, 15)
    """
    return stores.fill(PostgresTable(connection, table), **options)


@dataclass(frozen=True)
class PostgresTable(stores.SqlTable):
    """A table of PostgreSQL; its vectors are of type ``real[]`` or ``double precision[]``.

    The connection is from `psycopg.connect`, or it is a connection string.
    """

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what psycopg raises."""
        return (library("psycopg", extra="postgres").Error,)

    @contextmanager
    def opened(self) -> Iterator[stores.Store]:
        """Connect, if that is still to be done."""
        psycopg = library("psycopg", extra="postgres")
        if isinstance(self.connection, str):
            with psycopg.connect(self.connection) as connection:
                yield replace(self, connection=connection)
            return
        expected = "a psycopg connection or a connection string. Pass one"
        stores.refuse_object(self.connection, ["transaction", "info"], expected)
        if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            stores.refuse_transaction(is_closed=self.connection.closed)
        yield self

    def read(self, columns: stores.Columns) -> pa.Table:
        """Return all rows."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            # A statement that psycopg prepared fails once the table has another column.
            cursor.execute(f"SELECT * FROM {self._quoted(cursor)}", prepare=False)
            rows = cursor.fetchall()
            kinds = {column.name: column.type_code for column in cursor.description}
        values = {name: [row[place] for row in rows] for place, name in enumerate(kinds)}
        keys = values.get(columns.key, range(1, len(rows) + 1))
        cells: dict[str, pa.Array] = {}
        for name, code in kinds.items():
            try:
                cells[name] = _arrow_column(values[name], _TYPES.get(code))
            except _CellError as error:
                row = error.row
                raise InputError(
                    f"{self.name}, column {name!r}, row {row + 1} (key {keys[row]!r}) holds "
                    f"{str(values[name][row])[:60]}, which is not a list of numbers. Correct it, "
                    "or make it null."
                ) from error
        return pa.table(cells)

    def write(self, cells: stores.NewCells, columns: stores.Columns) -> None:
        """Write all cells in one transaction."""
        names = [columns.key, columns.vector]
        values: list[list[Any]] = [cells.keys.to_pylist(), cells.vectors.tolist()]
        if columns.confidence is not None:
            names.append(columns.confidence)
            values.append(cells.confidence_cells().to_pylist())
        key, vector, *confidence = map(stores.quoted, names)
        changes = ", ".join(f"{name} = new.{name}" for name in (vector, *confidence))
        # A name of its own: a temporary table of that name may exist.
        new = f"vecfill_{uuid.uuid4().hex}"
        with self.connection.transaction(), self.connection.cursor() as cursor:
            table = self._quoted(cursor)
            for name in confidence:
                cursor.execute(
                    f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} double precision"
                )
            # A copy of the columns, so that keys and vectors have the types of the table itself.
            cursor.execute(
                f"CREATE TEMPORARY TABLE {new} ON COMMIT DROP AS "
                f"SELECT {', '.join(map(stores.quoted, names))} FROM {table} WITH NO DATA"
            )
            with cursor.copy(f"COPY {new} FROM STDIN") as copy:
                for row in zip(*values, strict=True):
                    copy.write_row(row)
            cursor.execute(
                f"UPDATE {table} AS old SET {changes} FROM {new} AS new "
                f"WHERE old.{key} = new.{key} AND old.{vector} IS NULL"
            )
            stores.refuse_changed(cursor.rowcount, len(cells), self.name)

    def _quoted(self, cursor: Any) -> str:
        def exists(name: str) -> bool:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
            return cursor.fetchone()[0]

        return stores.quoted_table(self.table, exists)


class _CellError(Exception):
    """A cell that is not of the type of its column."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _arrow_column(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    """Return a column; what Arrow has no type for, such as a UUID, is text."""
    if kind is not None:
        try:
            return pa.array(values, kind)
        except _REFUSALS:
            for row, value in enumerate(values):
                try:
                    pa.array([value], kind)
                except _REFUSALS as error:
                    raise _CellError(row) from error
            raise
    try:
        column = pa.array(values)
    except _REFUSALS:
        column = None
    if column is None or isinstance(column.type, pa.BaseExtensionType):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return column
