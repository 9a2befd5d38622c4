"""The proof that a table with a vector column was only filled and extended."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vecfill as vf
from vecfill.cli import main
from vecfill.io.verifying import verify_table

OLD = {"id": [1, 2, 3], "x": [0.0, float("nan"), None], "v": [[1.0], None, [3.0]]}


def written(place, name, columns):
    table = pa.table({key: pa.array(values) for key, values in columns.items()})
    pq.write_table(table, place / name)
    return place / name


def test_filled_vectors_and_further_rows_and_columns_are_counted(tmp_path):
    old = written(tmp_path, "old.parquet", OLD)
    more = {"id": [1, 2, 3, 4], "x": [*OLD["x"], 5.0], "v": [[1.0], [2.0], [3.0], [4.0]]}
    new = written(tmp_path, "new.parquet", {**more, "sure": [None, 0.5, None, 0.5]})
    found = verify_table(old, new, vector="v")
    assert found.ok
    assert (found.n_rows, found.n_vectors, found.n_filled, found.n_added) == (3, 2, 1, 1)
    assert found.new_columns == ("sure",)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("v", [[1.0], [2.0], [3.5]], "row 3, column 'v'"),
        ("v", [[1.0], [2.0], None], "row 3, column 'v'"),
        ("x", [-0.0, float("nan"), None], "row 1, column 'x'"),
        ("x", [0.0, float("nan"), 0.0], "row 3, column 'x'"),
        ("id", [1, 3, 2], "row 2, column 'id'"),
        ("id", ["1", "2", "3"], "type"),
    ],
)
def test_a_cell_that_changed_is_found(tmp_path, capsys, column, values, says):
    old = written(tmp_path, "old.parquet", OLD)
    new = written(tmp_path, "new.parquet", {**OLD, column: values})
    found = verify_table(old, new, vector="v")
    assert not found.ok
    assert says in str(found.difference)
    assert main(["verify", str(old), str(new), "--vector", "v"]) == 2
    assert says in capsys.readouterr().err


def test_rows_and_columns_that_went_are_found(tmp_path):
    old = written(tmp_path, "old.parquet", OLD)
    fewer = written(tmp_path, "fewer.parquet", {key: cells[:2] for key, cells in OLD.items()})
    assert "2 rows" in str(verify_table(old, fewer, vector="v").difference)
    narrow = written(tmp_path, "narrow.parquet", {key: OLD[key] for key in ("id", "v")})
    assert "no column 'x'" in str(verify_table(old, narrow, vector="v").difference)
    with pytest.raises(vf.InputError, match="no column 'w'"):
        verify_table(old, old, vector="w")


def test_text_tables_are_compared_too(tmp_path, capsys):
    (tmp_path / "old.csv").write_text("id,v\n1,[1.0]\n2,\n")
    (tmp_path / "new.csv").write_text("id,v\n1,[1.0]\n2,[0.5]\n")
    words = ["verify", str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), "--vector", "v"]
    assert main(words) == 0
    assert "1 vector filled" in capsys.readouterr().out
    assert main([*words, "--format", "csv"]) == 2
    assert "--format has no effect" in capsys.readouterr().err
