"""LanceDB: fill the missing vectors of a table; the result is one new version of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vecfill.errors import InputError
from vecfill.exchange.extras import library
from vecfill.exchange.stores import Columns, NewCells, Store, filling, refuse_changed
from vecfill.inputs.table.filling import vector_cells


@filling
@contextmanager
def fill_lancedb(table: Any) -> Iterator[Store]:
    """Fill the null vectors of a LanceDB table.

    `key` and `vector` name columns. The other columns describe the rows, unless `ignore` names
    them. Rows that have a vector are not changed, so a second run finds nothing to do. If writing
    fails, or if rows changed while vectors were being imputed, the table goes back to the version
    it had.

    Parameters
    ----------
    table
        A table from ``lancedb.connect(...).open_table(...)``.

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
    if not hasattr(table, "merge_insert"):
        raise InputError(
            f"an object of type {type(table).__name__} is not a LanceDB table. Pass "
            "lancedb.connect(...).open_table(...)."
        )
    yield _LanceDB(table)


@dataclass(frozen=True)
class _LanceDB(Store):
    table: Any

    def read(self, columns: Columns) -> pa.Table:  # noqa: ARG002 - all of them
        """Return all rows."""
        return self.table.to_arrow()

    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all cells as one new version, or go back to the version before."""
        version = self.table.version
        try:
            self._merge(cells, columns)
        except BaseException:
            if self.table.version != version:
                self.table.restore(version)
            raise

    def _merge(self, cells: NewCells, columns: Columns) -> None:
        key, vector, confidence = columns.key, columns.vector, columns.confidence
        if confidence is not None and confidence not in self.table.schema.names:
            self.table.add_columns({confidence: "CAST(NULL AS DOUBLE)"})
        schema = self.table.schema
        new = {
            key: cells.keys.cast(schema.field(key).type),
            vector: vector_cells(cells.vectors, schema.field(vector).type),
        }
        if confidence is not None and cells.confidence is not None:
            new[confidence] = pa.array(cells.confidence, from_pandas=True)
        done = (
            self.table.merge_insert(key)
            .when_matched_update_all(where=f"target.`{vector}` IS NULL")
            .execute(pa.table(new))
        )
        refuse_changed(done.num_updated_rows, len(cells), "the table")
