"""LanceDB: fill the missing vectors of a table; the result is one new version of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vecfill.errors import library
from vecfill.exchange import stores
from vecfill.inputs.table.filling import vector_cells

_N_TRIES = 10  # as often as LanceDB itself tries a merge


def fill_lancedb(table: Any, **options: Any) -> stores.Filled:
    """Fill the null vectors of a LanceDB table: `fill` of a `LanceDBTable`.

    Parameters
    ----------
    table
        A table from ``lancedb.connect(...).open_table(...)``.
    options
        As in `vecfill.fill`.

    Examples
    --------
    >>> import lancedb, tempfile
    >>> hue = pa.array([[1.0], [2.0], [3.0], None], pa.list_(pa.float32(), 1))
    >>> rows = pa.table({"id": [1, 2, 3, 4], "wave": [680.0, 610.0, 580.0, 595.0], "hue": hue})
    >>> table = lancedb.connect(tempfile.mkdtemp()).create_table("colours", rows)
    >>> fill_lancedb(table, key="id", vector="hue", method="paper").keys
    (4,)
    >>> table.count_rows("hue IS NULL")
    0
    """
    library("lancedb", extra="lancedb")
    return stores.fill(LanceDBTable(table), **options)


@dataclass(frozen=True)
class LanceDBTable(stores.Store):
    """A table of LanceDB. Its handle is moved to the newest version."""

    table: Any
    """From ``lancedb.connect(...).open_table(...)``."""

    def __post_init__(self) -> None:
        expected = "a LanceDB table. Pass lancedb.connect(...).open_table(...)"
        stores.refuse_object(self.table, ["merge_insert"], expected)

    @property
    def name(self) -> str:
        """The name of the table."""
        return f"table {self.table.name!r}"

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what LanceDB raises, which has no errors of its own."""
        return (ValueError, RuntimeError, OSError, KeyError, TypeError)

    def read(self, columns: stores.Columns) -> pa.Table:  # noqa: ARG002 - all of them
        """Return all rows of the newest version."""
        self.table.checkout_latest()
        return self.table.to_arrow()

    def write(self, cells: stores.NewCells, columns: stores.Columns) -> None:
        """Write all cells as one new version; what other clients commit is never undone."""
        self._check_missing(cells, columns)
        confidence = columns.confidence
        is_new = confidence is not None and confidence not in self.table.schema.names
        if is_new:
            self._committed(lambda: self.table.add_columns({confidence: "CAST(NULL AS DOUBLE)"}))
        try:
            n_written = self._merge(cells, columns)
        except BaseException:
            if is_new:
                self._drop_empty(str(confidence))
            raise
        # A version cannot be taken back without those that others made since.
        stores.refuse_changed(n_written, len(cells), self.name, n_written=n_written)

    def _check_missing(self, cells: stores.NewCells, columns: stores.Columns) -> None:
        self.table.checkout_latest()
        table = self.table.to_arrow()
        is_missing = table.column(columns.vector).is_null()
        missing = set(table.column(columns.key).filter(is_missing).to_pylist())
        n_missing = sum(key in missing for key in cells.keys.to_pylist())
        stores.refuse_changed(n_missing, len(cells), self.name)

    def _merge(self, cells: stores.NewCells, columns: stores.Columns) -> int:
        """Write cells that are still null in one commit; return how many these were."""
        key, vector, confidence = columns.key, columns.vector, columns.confidence
        schema = self.table.schema
        new = {
            key: cells.keys.cast(schema.field(key).type),
            vector: vector_cells(cells.vectors, schema.field(vector).type),
        }
        if confidence is not None:
            new[confidence] = cells.confidence_cells().cast(schema.field(confidence).type)
        merge = self.table.merge_insert(key)
        merge = merge.when_matched_update_all(where=f"target.`{vector}` IS NULL")
        return self._committed(lambda: merge.execute(pa.table(new)).num_updated_rows)

    def _committed(self, change: Callable[[], Any]) -> Any:
        """Make a change; LanceDB refuses it whole if another client commits in the same moment."""
        for _ in range(_N_TRIES - 1):
            try:
                return change()
            except (RuntimeError, OSError, ValueError) as error:
                if "commit conflict" not in str(error):
                    raise
                self.table.checkout_latest()
        return change()

    def _drop_empty(self, confidence: str) -> None:
        """Drop the column that was added, unless another client uses it by now."""
        self.table.checkout_latest()
        column = self.table.to_arrow().column(confidence)
        if column.null_count == len(column):
            self.table.drop_columns([confidence])
