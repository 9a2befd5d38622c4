"""A table or a database with the vectors of two models: empty cells of the new one are filled.

Rows that were embedded by the new model teach the map, and keep their cells. The column of the old
model is not touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.exchange.stores import Columns, NewCells, Store
from vecfill.inputs.files import Progress
from vecfill.inputs.table.filling import Filling, filled_arrow, read_vectors
from vecfill.inputs.table.frames import frame_of
from vecfill.io import atomic_output
from vecfill.io.table_files import check_suffix, rewritten_columns, table_format
from vecfill.io.targets import check_targets
from vecfill.jobs.migrate import Migration, migrate


def migrate_columns(
    source: Any,
    *,
    old: str,
    new: str,
    key: str | None = None,
    output: str | os.PathLike[str] | None = None,
    confidence: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Migration:
    """Fill the empty vectors of a new model from those of an old one in the same table.

    Rows with both vectors teach the map. Cells of the new model that are there stay as they are,
    and so does every other column.

    Parameters
    ----------
    source
        A Parquet or Feather file, or a database: a store of `vecfill.exchange`, as in
        `vecfill.fill`. The column `new` must be there, null where there is no vector yet.
    old, new
        The columns of the vectors of both models.
    key
        The column that identifies rows, for a database.
    output
        The file to write, for a file.
    confidence
        A column for the confidence of each new vector.
    level, seed, overwrite, n_jobs, progress
        As in `vecfill.migrate`.

    Examples
    --------
    >>> import duckdb
    >>> from vecfill.exchange.duckdb import DuckDBTable
    >>> rng = np.random.default_rng(0)
    >>> connection = duckdb.connect()
    >>> _ = connection.sql("CREATE TABLE items (id INTEGER, v1 FLOAT[], v2 FLOAT[])")
    >>> rows = rng.normal(size=(100, 3)); turned = rows @ rng.normal(size=(3, 4))
    >>> cells = [(i, rows[i].tolist(), turned[i].tolist() if i < 80 else None) for i in range(100)]
    >>> _ = connection.executemany("INSERT INTO items VALUES (?, ?, ?)", cells)
    >>> migrate_columns(DuckDBTable(connection, "items"), key="id", old="v1", new="v2")
    Migration(20 translated, 80 pairs)
    >>> connection.sql("SELECT count(*) FROM items WHERE v2 IS NULL").fetchall()
    [(0,)]
    """
    options: dict[str, Any] = {"level": level, "seed": seed, "n_jobs": n_jobs}
    options["progress"] = progress
    if isinstance(source, Store):
        if output is not None or key is None:
            raise InputError(
                "a database is changed in place: pass key=, the column that identifies its rows, "
                "and no output=."
            )
        return _in_store(source, Columns(key, new, confidence), old, options)
    if output is None or key is not None:
        raise InputError("a table file is copied: pass output=, the file to write, and no key=.")
    check_targets([output], [source], overwrite=overwrite)
    path = Path(source)
    if not path.is_file() or table_format(path) == "text":
        raise InputError(f"{path} is not a Parquet or Feather file. Pass one.")
    check_suffix(path, Path(output))
    outcome: list[Migration] = []

    def changed(table: pa.Table) -> pa.Table:
        migration, rows, vectors = _migrated(table, old, new, options)
        outcome.append(migration)
        sure = None if confidence is None else migration.confidence
        return filled_arrow(table, Filling(new, rows, vectors, confidence, sure))

    content = rewritten_columns(path, changed)
    with atomic_output(output, overwrite=overwrite) as file:
        file.write(content)
    return outcome[0]


def _in_store(store: Store, columns: Columns, old: str, options: dict[str, Any]) -> Migration:
    """Write what is missing in a database, where it is still missing."""
    with store.opened() as opened:
        table = opened.read(columns)
        migration, rows, vectors = _migrated(table, old, columns.vector, options)
        if len(rows):
            keys = table.column(columns.key).take(pa.array(rows))
            sure = None if columns.confidence is None else migration.confidence
            opened.write(NewCells(keys, vectors, sure), columns)
    return migration


def _migrated(
    table: pa.Table, old: str, new: str, options: dict[str, Any]
) -> tuple[Migration, np.ndarray, np.ndarray]:
    """Return a migration of a table's rows, which rows it fills, and with what."""
    frame = frame_of(table)
    assert frame is not None
    names = [str(row) for row in range(table.num_rows)]
    of_old, of_new = (read_vectors(frame, column, names) for column in (old, new))
    sides = [
        Embedding(np.array(names)[cells.is_known].tolist(), cells.vectors[cells.is_known])
        for cells in (of_old, of_new)
    ]
    migration = migrate(*sides, **options)
    rows = np.array([int(name) for name in migration.words], np.int64)
    assert migration.embedding is not None
    vectors = np.asarray(migration.embedding[list(migration.words)])
    return migration, rows, vectors
