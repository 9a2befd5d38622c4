"""Two models in one table: only empty cells of the new one change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from vecfill.errors import InputError
from vecfill.jobs.migrate_columns import migrate_columns


def made() -> pa.Table:
    rng = np.random.default_rng(0)
    old = rng.normal(size=(120, 3)).astype(np.float32)
    new = old @ rng.normal(size=(3, 4)).astype(np.float32)
    cells = [row.tolist() if number % 2 else None for number, row in enumerate(new)]
    kind = pa.list_(pa.float32())
    return pa.table(
        {
            "id": np.arange(120),
            "v1": pa.array(old.tolist(), kind),
            "note": ["x"] * 120,
            "v2": pa.array(cells, kind),
        }
    )


def test_only_empty_cells_of_the_new_column_change(tmp_path):
    table = made()
    pa_parquet.write_table(table, tmp_path / "items.parquet")
    output = tmp_path / "new.parquet"
    migration = migrate_columns(
        tmp_path / "items.parquet", old="v1", new="v2", output=output, confidence="sure"
    )
    after = pa_parquet.read_table(output)
    assert len(migration.words) == 60
    assert after.column("v2").null_count == 0
    assert after.column("sure").null_count == 60
    for name in ("id", "v1", "note"):
        assert after.column(name).equals(table.column(name))
    known = np.flatnonzero(np.arange(120) % 2)
    assert after.column("v2").take(known).equals(table.column("v2").take(known))


def test_a_file_needs_an_output_and_a_database_a_key(tmp_path):
    pa_parquet.write_table(made(), tmp_path / "items.parquet")
    with pytest.raises(InputError, match="pass output="):
        migrate_columns(tmp_path / "items.parquet", old="v1", new="v2")
    with pytest.raises(InputError, match="no column 'v3'"):
        migrate_columns(
            tmp_path / "items.parquet", old="v1", new="v3", output=tmp_path / "new.parquet"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["items.parquet"]
