"""LanceDB: fill the missing vectors of a table; the result is one new version of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vecfill.errors import InputError
from vecfill.exchange.extras import library
from vecfill.exchange.stores import Filled, NewCells, StoreOptions, fill_store, refuse_changed
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.table_filling import vector_cells
from vecfill.requests import Method, Reading, Trust, takes


@takes(reading=Reading, how=Method, trust=Trust)
def fill_lancedb(
    table: Any,
    *,
    confidence: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
    how: Method,
    trust: Trust,
) -> Filled:
    """Fill the null vectors of a LanceDB table.

    `key` and `vector` name columns. The other columns describe the rows, unless `ignore` names
    them. Rows that have a vector are not changed, so a second run finds nothing to do. If writing
    fails, or if rows changed while vectors were being imputed, the table goes back to the version
    it had.

    Parameters
    ----------
    table
        A table from ``lancedb.connect(...).open_table(...)``.
    confidence
        Name of a column for the confidence of each new vector; it is added if it does not exist.
        Later runs do not learn from rows that have a confidence.
    n_jobs, progress
        As in `vecfill.impute`.

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
    options = StoreOptions(confidence, n_jobs, progress or quiet)
    store = _LanceDB(table, str(reading.key), str(reading.vector), confidence)
    return fill_store(store, (reading, how, trust), options)


@dataclass(frozen=True)
class _LanceDB:
    table: Any
    key: str
    vector: str
    confidence: str | None

    def read(self) -> pa.Table:
        return self.table.to_arrow()

    def write(self, cells: NewCells) -> None:
        version = self.table.version
        try:
            self._merge(cells)
        except BaseException:
            if self.table.version != version:
                self.table.restore(version)
            raise

    def _merge(self, cells: NewCells) -> None:
        if self.confidence is not None and self.confidence not in self.table.schema.names:
            self.table.add_columns({self.confidence: "CAST(NULL AS DOUBLE)"})
        schema = self.table.schema
        columns = {
            self.key: cells.keys.cast(schema.field(self.key).type),
            self.vector: vector_cells(cells.vectors, schema.field(self.vector).type),
        }
        if self.confidence is not None and cells.confidence is not None:
            columns[self.confidence] = pa.array(cells.confidence, from_pandas=True)
        done = (
            self.table.merge_insert(self.key)
            .when_matched_update_all(where=f"target.`{self.vector}` IS NULL")
            .execute(pa.table(columns))
        )
        refuse_changed(done.num_updated_rows, len(cells), "the table")
