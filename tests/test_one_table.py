"""One table with features and vectors: only nulls are filled, everything else stays."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import vecfill as vf
from tests.exchange.world import (
    MISSING_ROWS,
    N_DIMS,
    N_TOWNS,
    PRESENT_ROWS,
    TOWNS,
    VECTORS,
    is_near_truth,
    items,
)
from tests.shell import World

ONE = {"vector": "embedding", "key": "id"}
KINDS = [pa.list_(pa.float32(), N_DIMS), pa.list_(pa.float32()), pa.large_list(pa.float64())]


@pytest.fixture(scope="module")
def result():
    return vf.impute(items(), **ONE)


@pytest.fixture
def world(tmp_path, capsys):
    return World(tmp_path, capsys)


def array_of(cells, dtype=np.float32):
    return np.array([list(cell) for cell in cells], dtype)


def check_filled(cells, result):
    """Known cells keep their bits; the others hold what was imputed."""
    vectors = array_of(cells, result.embedding.vectors.dtype)
    known = VECTORS[PRESENT_ROWS].astype(vectors.dtype)
    assert vectors[PRESENT_ROWS].tobytes() == known.tobytes()
    assert vectors[MISSING_ROWS].tobytes() == result.embedding.vectors.tobytes()


def test_whole_numbers_are_names_and_vectors_point_where_they_should(result):
    assert result.embedding.words == tuple(str(1000 + row) for row in MISSING_ROWS)
    for row, vector in zip(MISSING_ROWS, result.embedding.vectors, strict=True):
        assert is_near_truth(TOWNS[row], vector)


def test_one_table_gives_what_table_and_embedding_apart_give(result):
    table = items()
    base = table.filter(table["embedding"].is_valid()).select(["id", "embedding"])
    apart = vf.impute(table.drop(["embedding"]), base, key="id", match="exact")
    assert apart.embedding.equals(result.embedding)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_arrow_table_keeps_schema_rows_and_other_columns(kind):
    table = items(kind).replace_schema_metadata({"made": "by hand"})
    result = vf.impute(table, **ONE)
    found = result.to_table()
    assert found.schema.equals(table.schema, check_metadata=True)
    assert found.drop(["embedding"]).equals(table.drop(["embedding"]))
    check_filled(found["embedding"].to_pylist(), result)


def test_a_table_in_pieces_is_filled_in_the_right_rows(result):
    table = pa.concat_tables([items().slice(0, 7), items().slice(7, 30), items().slice(37)])
    check_filled(vf.impute(table, **ONE).to_table()["embedding"].to_pylist(), result)
    batch = items().combine_chunks().to_batches()[0]
    found = vf.impute(batch, **ONE).to_table()
    assert isinstance(found, pa.RecordBatch)
    check_filled(found.column("embedding").to_pylist(), result)


@pytest.mark.parametrize("as_list", [False, True])
def test_a_pandas_table_keeps_index_types_and_known_objects(result, as_list):
    table = items().to_pandas()
    table.index = pd.RangeIndex(5, 5 + N_TOWNS)
    if as_list:
        table["embedding"] = [None if cell is None else cell.tolist() for cell in table.embedding]
    own = vf.impute(table, **ONE)
    found = own.to_table()
    assert found.dtypes.equals(table.dtypes)
    pd.testing.assert_frame_equal(found.drop(columns="embedding"), table.drop(columns="embedding"))
    for row in PRESENT_ROWS:
        assert found["embedding"].iloc[row] is table["embedding"].iloc[row]
    assert isinstance(found["embedding"].iloc[0], list if as_list else np.ndarray)
    assert table["embedding"].iloc[0] is None
    check_filled(found["embedding"], own)
    # Lists of Python floats have 64 bits: the last of 32 may be rounded another way.
    np.testing.assert_array_max_ulp(
        own.embedding.vectors.astype(np.float32), result.embedding.vectors, maxulp=4
    )


def test_nan_in_an_object_column_is_null_and_arrow_columns_stay_arrow(result):
    table = items().to_pandas()
    table["embedding"] = table["embedding"].where(table["embedding"].notna(), np.nan)
    check_filled(vf.impute(table, **ONE).to_table()["embedding"], result)
    table = items().to_pandas(types_mapper=pd.ArrowDtype)
    found = vf.impute(table, **ONE).to_table()
    assert found.dtypes.equals(table.dtypes)
    check_filled(found["embedding"], result)


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_a_polars_table_stays_one(result, kind):
    table = pl.from_arrow(items(kind))
    found = vf.impute(table, **ONE).to_table(confidence="sure")
    assert found.schema == {**table.schema, "sure": pl.Float64}
    assert found.drop("embedding", "sure").equals(table.drop("embedding"))
    check_filled(found["embedding"].to_list(), result)
    assert found["sure"].to_list()[0] == result.confidence.values[0]
    assert found["sure"].null_count() == len(PRESENT_ROWS)


def test_a_confidence_column_is_added_and_filled_again(result):
    for table in (items(), items().to_pandas()):
        found = vf.impute(table, **ONE).to_table(confidence="sure")
        sure = pd.Series(found["sure"]).to_numpy(np.float64)
        np.testing.assert_array_equal(sure[MISSING_ROWS], result.confidence.values)
        assert np.isnan(sure[PRESENT_ROWS]).all()
    values = [float(row) if row % 4 else None for row in range(N_TOWNS)]
    old = items().append_column("sure", pa.array(values))
    for table in (old, old.to_pandas(), pl.from_arrow(old)):
        found = vf.impute(table, **ONE, ignore=["sure"]).to_table(confidence="sure")
        sure = pd.Series(list(found["sure"].to_numpy()))
        assert sure[1:3].tolist() == [1.0, 2.0]
        assert sure[0] == result.confidence.values[0]


def test_confidences_are_not_written_over_values_of_another_meaning(tmp_path):
    for table in (items(), items().to_pandas(), pl.from_arrow(items())):
        with pytest.raises(vf.InputError, match="'x' has a value in row 1, which had no vector"):
            vf.impute(table, **ONE).to_table(confidence="x")
    (tmp_path / "items.csv").write_text(text_table())
    write(tmp_path / "items.parquet", items())
    for name in ("items.csv", "items.parquet"):
        with pytest.raises(vf.InputError, match="'x' has a value for '1000', which has no vector"):
            vf.fill_table(tmp_path / name, tmp_path / f"out{name}", **ONE, confidence="x")
        with pytest.raises(vf.InputError, match="'id' is the column of names or of vectors"):
            vf.fill_table(tmp_path / name, tmp_path / f"out{name}", **ONE, confidence="id")


def test_what_was_left_out_stays_null(result):
    limit = float(np.median(result.confidence.values))
    strict = vf.impute(items(), **ONE, min_confidence=limit)
    found = strict.to_table()
    assert strict.abstained
    assert found["embedding"].null_count == len(strict.abstained)
    names = {str(each) for each in found.filter(found["embedding"].is_null())["id"].to_pylist()}
    assert names == set(strict.abstained)


def test_an_excluded_entity_is_not_learnt_from_and_keeps_its_vector():
    result = vf.impute(items(), **ONE, exclude=["1001"])
    assert "1001" in result.embedding
    assert array_of(result.to_table()["embedding"].to_pylist())[1].tobytes() == VECTORS[1].tobytes()


def test_counts_of_a_column_are_used_and_do_not_describe():
    counts = pa.array(np.random.default_rng(0).integers(1, 500, N_TOWNS))
    table = items().append_column("sales", counts)
    result = vf.impute(table, **ONE, counts="sales", min_count=100)
    assert "sales" not in result.domain.columns
    assert result.matches.set_aside
    assert result.alignment.rarity.basis == "counts"


def test_evaluate_takes_one_table_too():
    report = vf.evaluate(items(), **ONE)
    assert (report.n_known, report.n_unknown) == (len(PRESENT_ROWS), len(MISSING_ROWS))
    assert report.has_signal


def with_cell(row, cell):
    cells = items(pa.list_(pa.float32()))["embedding"].to_pylist()
    cells[row] = cell
    return items().set_column(3, "embedding", pa.array(cells, pa.list_(pa.float32())))


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (with_cell(5, [0.0] * 5), {}, "row 6 (entity '1005') has 5 numbers, but row 2 has 6"),
        (with_cell(5, []), {}, "row 6 (entity '1005') has 0 numbers, but row 2 has 6"),
        (with_cell(6, [float("nan")] * 6), {}, "row 7 (entity '1006') contains NaN at position 1"),
        (with_cell(7, [0, 0, float("inf"), 0, 0, 0]), {}, "row 8 (entity '1007') contains infin"),
        (with_cell(9, [1, None, 0, 0, 0, 0]), {}, "row 10 (entity '1009') has a null among"),
        (items(), {"vector": "title"}, "row 1 (entity '1000') is 'town0'. A vector in a text"),
        (items(), {"vector": "x"}, "column 'x' holds values of type double"),
        (items(), {"vector": "vec"}, "no column 'vec' with vectors (vector=)"),
        (items(), {"vector": None}, "no embedding was passed. Pass one, or name the column"),
        (items(), {"match": "exact"}, "match='exact' cannot be used here: features and vectors"),
        (items(), {"from_rank": 3}, "from_rank=3 cannot be used here"),
        (items(), {"kind": "edges"}, "kind='edges' cannot be used here"),
        (items().slice(0, 1), {}, "is null in every row"),
        ({"a": [1.0]}, {}, "vector='embedding' names a column, but the table is an object of"),
    ],
)
def test_what_is_not_a_vector_is_refused_by_row(table, options, words):
    with pytest.raises(vf.InputError, match=re.escape(words)):
        vf.impute(table, **{**ONE, **options})


def test_a_result_of_two_files_has_no_table_to_fill():
    result = vf.impute({"a": [1.0], "b": [2.0]}, {"a": [1.0]}, method="paper", force=True)
    with pytest.raises(vf.InputError, match="to_table fills the vector column of one table"):
        result.to_table()


# Files


def write(path, table):
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=25)
    else:
        pf.write_feather(table, path)


def read(path):
    return pq.read_table(path) if path.suffix == ".parquet" else pf.read_table(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_file_is_filled_with_schema_and_manifest(tmp_path, result, suffix):
    old, new = tmp_path / f"items{suffix}", tmp_path / f"out{suffix}"
    table = items().replace_schema_metadata({"made": "by hand"})
    write(old, table)
    done = vf.fill_table(old, new, **ONE, confidence="sure")
    found = read(new)
    check_filled(found["embedding"].to_pylist(), result)
    assert found.drop(["sure"]).schema.equals(read(old).schema, check_metadata=True)
    assert found.drop(["sure", "embedding"]).equals(table.drop(["embedding"]))
    assert done.counts["added"] == len(MISSING_ROWS)
    about = json.loads((tmp_path / f"out{suffix}.manifest.json").read_text())
    assert about["options"]["vector"] == "embedding"
    assert about["options"]["confidence"] == "sure"
    assert about["counts"]["words_before"] == len(PRESENT_ROWS)
    assert len(about["inputs"]["table"]["sha256"]) == 64


def test_a_parquet_file_keeps_its_compression_and_the_index_of_pandas(tmp_path):
    table = items().to_pandas().set_index("id")
    table.to_parquet(tmp_path / "items.parquet", compression="zstd")
    vf.fill_table(tmp_path / "items.parquet", tmp_path / "out.parquet", vector="embedding")
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found.index.equals(table.index)
    assert found.columns.equals(table.columns)
    about = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0)
    assert about.compression == "ZSTD"


def text_table(separator=",", end="\n", quoted=True):
    lines = [separator.join(["id", "note", "embedding", "x", "y", "z"])]
    for row in items().to_pylist():
        cell = "" if row["embedding"] is None else json.dumps(row["embedding"])
        cell = f'"{cell}"' if cell and quoted else cell
        note = f'"says ""{row["title"]}"""' if row["id"] % 2 else f"{row['title']}  "
        lines.append(
            separator.join(
                [str(row["id"]), note, cell, *(repr(row[axis]) for axis in ("x", "y", "z"))]
            )
        )
    return end.join(lines) + end


@pytest.mark.parametrize(
    ("name", "separator", "end", "mark"),
    [
        ("items.csv", ",", "\n", ""),
        ("items.csv", ",", "\r\n", "\ufeff"),
        ("items.tsv", "\t", "\n", ""),
    ],
)
def test_a_text_file_keeps_every_byte_outside_of_empty_cells(tmp_path, name, separator, end, mark):
    text = mark + text_table(separator, end, quoted=separator == ",")
    old, new = tmp_path / name, tmp_path / f"new{name}"
    old.write_bytes(text.encode())
    vf.fill_table(old, new, **ONE, ignore=["note"])
    found = new.read_bytes().decode()
    back = vf.impute(old, **ONE, ignore=["note"])
    for vector in back.embedding.vectors:
        cell = "[" + ", ".join(str(value) for value in vector) + "]"
        cell = f'"{cell}"' if separator == "," else cell
        assert found.count(cell) == 1
        found = found.replace(cell, "")
    assert found == text
    again = vf.impute(new, **ONE, ignore=["note"], method="paper")
    assert not again.alignment.unknown


def test_a_confidence_column_of_a_text_file_comes_last(tmp_path):
    (tmp_path / "items.csv").write_text(text_table())
    vf.fill_table(
        tmp_path / "items.csv", tmp_path / "out.csv", **ONE, ignore=["note"], confidence="sure"
    )
    found = pd.read_csv(tmp_path / "out.csv")
    assert found.columns[-1] == "sure"
    assert found["sure"].notna().tolist() == [row % 4 == 0 for row in range(N_TOWNS)]


def test_a_second_run_changes_nothing(tmp_path):
    write(tmp_path / "items.parquet", items())
    vf.fill_table(tmp_path / "items.parquet", tmp_path / "one.parquet", **ONE, confidence="sure")
    done = vf.fill_table(
        tmp_path / "one.parquet", tmp_path / "two.parquet", **ONE, confidence="sure"
    )
    assert done.result is None
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_vectors_of_an_earlier_run_are_not_learnt_from(tmp_path, result):
    """Rows that come later get what they would have got at once."""
    early = with_cell(1, None)
    table = vf.impute(items(), **ONE).to_table(confidence="sure")
    cells = table["embedding"].to_pylist()
    cells[1] = None
    kind = table["embedding"].type
    write(tmp_path / "a.parquet", table.set_column(3, "embedding", pa.array(cells, kind)))
    vf.fill_table(tmp_path / "a.parquet", tmp_path / "b.parquet", **ONE, confidence="sure")
    found = read(tmp_path / "b.parquet")
    expected = vf.impute(early, **ONE)
    np.testing.assert_allclose(
        found["embedding"][1].as_py(), expected.embedding["1001"], rtol=1e-5, atol=1e-6
    )
    assert found["embedding"][0] == table["embedding"][0]


def test_a_failure_while_writing_leaves_no_file(tmp_path, monkeypatch):
    from vecfill.jobs import job

    write(tmp_path / "items.parquet", items())

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(job, "as_json", fail)
    with pytest.raises(OSError, match="no space"):
        vf.fill_table(tmp_path / "items.parquet", tmp_path / "out.parquet", **ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["items.parquet"]


# The shell


def test_the_shell_fills_one_table(world, result):
    write(world.folder / "items.parquet", items())
    words = ("impute", "--vector", "embedding", "--key", "id", "items.parquet")
    status, out, err = world.run(*words, "-o", "out.parquet", "--confidence-column", "sure")
    assert status == 0, err
    assert "45 vectors unchanged, 15 filled" in out
    found = read(world.folder / "out.parquet")
    check_filled(found["embedding"].to_pylist(), result)
    assert "sure" in found.column_names
    told = world.json(*words, "-o", "three.parquet")
    assert told["counts"]["added"] == len(MISSING_ROWS)
    assert world.json("evaluate", "--vector", "embedding", "--key", "id", "items.parquet")


def test_the_shell_refuses_what_does_not_go_with_one_table(world):
    write(world.folder / "items.parquet", items())
    out = ("-o", "out.parquet")
    one = ("impute", "--vector", "embedding", "--key", "id", "items.parquet")
    assert "is the only file" in world.refused("impute", "items.parquet", *out)
    assert "--replace 'excluded' cannot be used" in world.refused(
        *one, *out, "--replace", "excluded"
    )
    assert "format of items.parquet" in world.refused(*one, "-o", "out.csv")
    assert "no such file" in world.refused("impute", "--vector", "v", "no.parquet", *out)
    two = ("impute", "base.vec", "towns.csv", "-o", "new.vec")
    assert "--confidence-column is for one table" in world.refused(
        *two, "--confidence-column", "sure"
    )
    assert "--vector 'v' cannot be used" in world.refused(*two, "--vector", "v")
