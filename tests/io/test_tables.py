"""Table files are read as written, or refused by line."""

import contextlib
import csv
import io
import os
import string
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vecfill.errors import FormatError, InputError, VecfillError
from vecfill.inputs.domain import as_domain
from vecfill.io import cutting, tables
from vecfill.io.names import read_pairs
from vecfill.io.tables import read_table

plain_cells = st.text(string.ascii_letters + string.digits + " é.-'", min_size=1, max_size=6)
any_cells = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6
)


def written(folder: Path, data: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows_of(table: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def as_csv(rows, **options) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, **options).writerows(rows)
    return text.getvalue()


@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(st.tuples(*[any_cells] * width), min_size=2, max_size=5)
    )
)
def test_whatever_a_csv_writer_writes_is_read_back_cell_by_cell(rows):
    for line_end in ("\n", "\r\n"):
        text = as_csv(rows, lineterminator=line_end, quoting=csv.QUOTE_ALL)
        with tempfile.TemporaryDirectory() as folder:
            table = read_table(written(Path(folder), text))
        assert tuple(table.column_names) == rows[0]
        assert rows_of(table) == rows[1:]


@given(
    st.lists(st.tuples(plain_cells, plain_cells), min_size=2, max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_the_fast_and_the_careful_reader_agree(rows, line_end):
    data = as_csv(rows, lineterminator=line_end).encode()
    path = Path("table.csv")
    fast = cutting.plain_table(data, ",", header=True, texts=None)
    careful = tables._careful_table(path, data, "utf-8", None, True)
    assert fast is not None
    assert rows_of(fast) == rows_of(careful)
    assert fast.column_names == careful.column_names


def read_or_refused(path):
    try:
        domain = as_domain(path)
    except VecfillError as error:
        return str(error)
    values = domain.vectors.tobytes()
    return domain.entities, domain.columns, domain.notes, domain.vectors.dtype, values


# fmt: off
ODD_NUMBERS = (
    "1", "2.5", "-0", " 7", "8 ", "\t9", "1e5", "1e999", "inf", "-inf", "nan", "-nan", "NaN",
    "NA", "", " ", "+1", "0x10", "1,5", "1_0", "1.", ".5", "true", "False", "2020-01-02", "x",
    "é", '"3"', "5%", "1e-320", "123456789.25", "None", " NA ", "٣", "\x00", "1e", "--1",
)
# fmt: on
odd_numbers = st.sampled_from(ODD_NUMBERS)
mostly_numbers = st.one_of(st.just("1"), st.just("2"), st.floats(width=32).map(str), odd_numbers)


@settings(max_examples=600)
@given(
    st.lists(st.lists(mostly_numbers, min_size=2, max_size=3), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from([",", "\t", ";"]),
)
def test_numbers_parsed_while_reading_are_those_parsed_from_text(rows, line_end, mark):
    lines = [mark.join(["name", "a", "b"])]
    lines += [mark.join([f"row{number}", *row]) for number, row in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "table.txt"
        path.write_bytes(line_end.join(lines).encode())
        small = read_or_refused(path)
        patch.setattr(cutting, "LARGE", 0)
        patch.setattr(cutting, "_SAMPLE", 20)
        assert read_or_refused(path) == small


@pytest.mark.parametrize("line", [3, 40])
def test_a_bad_cell_in_a_large_file_is_refused_as_in_a_small_one(tmp_path, monkeypatch, line):
    monkeypatch.setattr(cutting, "LARGE", 0)
    rows = [f"row{number},{number},{number / 8}\n" for number in range(50)]
    rows[line] = "odd,1,what\n"
    path = tmp_path / "table.csv"
    path.write_text("name,a,b\n" + "".join(rows))
    with pytest.raises(InputError, match=rf"column 'b', entity 'odd' \(row {line + 1}\): 'what'"):
        as_domain(path)
    rows[line] = "odd,1\n"
    path.write_text("name,a,b\n" + "".join(rows))
    with pytest.raises(FormatError, match=f"line {line + 2}: 2 cells, but the first line has 3"):
        as_domain(path)


def test_rows_longer_than_a_block_are_read_fast_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_careful_table", None)
    monkeypatch.setattr(cutting, "_BLOCK_BYTES", 64)
    path = tmp_path / "table.csv"
    path.write_text("name,a\n" + "".join(f"{'x' * 200}{row},{row}\n" for row in range(9)))
    assert read_table(path).column("a").to_pylist() == [str(row) for row in range(9)]


def test_columns_that_are_no_numbers_to_the_user_stay_text_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cutting, "LARGE", 0)
    path = tmp_path / "table.csv"
    path.write_text("name,code,mass,id\n1e5,07,1,a\nNA,08,2,b\n3.0,07,4,c\n")
    domain = as_domain(path, categorical=["code"], ignore=["id"])
    assert domain.entities == ("1e5", "NA", "3.0")
    assert domain.columns == ("code=07", "code=08", "mass")
    assert as_domain(path, key="mass", ignore=["id"]).entities == ("1", "2", "4")


@settings(max_examples=400)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text('ab,";\t\n\r\0é1=', max_size=80).map(str.encode),
        st.binary(max_size=60).map(lambda end: b"PAR1" + end + b"PAR1"),
        st.binary(max_size=60).map(lambda end: b"ARROW1" + end),
    ),
    st.sampled_from(["table.csv", "table.tsv", "table.parquet", "table"]),
    st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252", "shift-jis"]),
    st.booleans(),
)
def test_any_bytes_give_a_table_or_our_own_error(data, name, encoding, header):
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), data, name)
        with contextlib.suppress(VecfillError):
            assert read_table(path, encoding=encoding, header=header).num_rows > 0


@given(st.integers(0, 3000), st.integers(0, 255))
def test_a_damaged_parquet_file_gives_a_table_or_our_own_error(place, byte):
    sink = io.BytesIO()
    pa_parquet.write_table(pa.table({"a": ["x", "y"], "b": [1.0, 2.0]}), sink)
    data = bytearray(sink.getvalue())
    data[4 + place % (len(data) - 4)] = byte
    for damaged in (bytes(data), bytes(data[: 5 + place % (len(data) - 5)])):
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder), damaged, "table.parquet")
            with contextlib.suppress(VecfillError):
                read_table(path)


def test_names_that_look_like_missing_values_or_numbers_stay_text(tmp_path):
    names = ["NA", "null", "nan", "None", "True", "1e5", "007", "=cmd()"]
    table = read_table(written(tmp_path, "name,x\n" + "".join(f"{name},1\n" for name in names)))
    assert table["name"].to_pylist() == names


@pytest.mark.parametrize(
    "text",
    [
        "a,b\nx,1\ny,2",
        "a,b\r\nx,1\r\ny,2\r\n",
        "a,b\rx,1\ry,2\r",
        "\ufeffa,b\nx,1\n\ny,2\n\n",
        '"a","b"\nx,1\ny,2\n',
        'a,b\n"x","1"\ny,2\n',
    ],
)
def test_marks_line_ends_blank_lines_and_quotes_do_not_matter(tmp_path, text):
    table = read_table(written(tmp_path, text))
    assert table.column_names == ["a", "b"]
    assert rows_of(table) == [("x", "1"), ("y", "2")]


def test_the_separator_follows_the_suffix_then_the_first_line(tmp_path):
    assert read_table(written(tmp_path, "a\tb,c\nx\t1\n", "t.tsv")).column_names == ["a", "b,c"]
    assert read_table(written(tmp_path, "a\tb\nx\t1\n", "t.txt")).column_names == ["a", "b"]
    semicolons = written(tmp_path, "a;b\nx;1,5\n")
    assert rows_of(read_table(semicolons, separator=";")) == [("x", "1,5")]
    with pytest.raises(InputError, match="separator='ab'"):
        read_table(semicolons, separator="ab")


def test_parquet_and_feather_are_known_by_content_and_pandas_index_comes_first(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["iron", "gold"])
    frame.to_parquet(tmp_path / "table.csv")
    assert rows_of(read_table(tmp_path / "table.csv")) == [("iron", 1.0), ("gold", 2.0)]
    pa_feather.write_feather(pa.table({"a": ["x"], "b": [1]}), str(tmp_path / "t.feather"))
    assert rows_of(read_table(tmp_path / "t.feather")) == [("x", 1)]


def test_another_encoding_is_read_when_named(tmp_path):
    path = written(tmp_path, "name,x\nÅlesund,1\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1")["name"].to_pylist() == ["Ålesund"]
    wide = written(tmp_path, "name,x\nÅlesund,1\n".encode("utf-16"), "wide.csv")
    assert read_table(wide, encoding="utf-16")["name"].to_pylist() == ["Ålesund"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "only blank lines"),
        (b"a,b\n", "a header and no rows"),
        (b'"a","b"\n', "a header and no rows"),
        (
            "name,x\nNice,1\nÅlesund,2\n".encode("latin-1"),
            r"line 3, byte offset 14.*0xc5.*encoding=",
        ),
        (b"a,b\nx,1\ny,2,3\n", r"line 3: 3 cells, but the first line has 2.*'y'"),
        (b"a,b\nx,1\ny\n", r"line 3: 1 cells"),
        (b'a,b\n"x\n1",2\ny\n', r"line 4: 1 cells"),
        (b'a,b\nx,1\n"y,2\nz,3\n', r"line 3: unbalanced quote"),
        (b'a,b\nx,1\n"y"z,2\n', r"line 3: unbalanced quote"),
        (b'a,b\nx,1\ny",2\n', r"line 3: unbalanced quote"),
        (b"a,b\nx,1\ny,\x002\n", r"line 3: a NUL byte at character 3"),
        ("a,b\nx,1\n".encode("utf-16"), "mark of UTF-16"),
        (b"\x1f\x8b\x08\x00", "gzip file is cut short"),
        (b"PK\x03\x04....", "zip is damaged"),
        (b"PAR1 cut short", "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_by_place(tmp_path, data, message):
    path = written(tmp_path, data)
    with pytest.raises(FormatError, match=message) as refused:
        read_table(path)
    assert str(path) in str(refused.value)


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(FormatError, match="does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(FormatError, match=r"is a directory\. Give the path of one table file\.$"):
        read_table(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FormatError, match="not a regular file"):
        read_table(tmp_path / "pipe.csv")
    with pytest.raises(FormatError, match="cannot be read"):
        read_table("a\0b.csv")


@pytest.mark.parametrize("encoding", ["utf-9", "hex", "rot13", ""])
def test_an_unknown_encoding_is_refused(tmp_path, encoding):
    with pytest.raises(InputError, match="is not known"):
        read_table(written(tmp_path, "a,b\nx,1\n"), encoding=encoding)


def test_a_bad_byte_beyond_the_first_block_is_found_at_its_offset(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 7)
    data = b"a,b\n" + "é,1\n".encode() * 9
    with pytest.raises(FormatError, match=f"line 11, byte offset {len(data)}:"):
        read_table(written(tmp_path, data + b"\xff,1\n"))


def test_a_table_of_many_rows_is_whole(tmp_path):
    table = pa.table({"name": [f"e{row}" for row in range(30_000)], "x": range(30_000)})
    for style in ("none", "all_valid"):
        path = tmp_path / f"{style}.csv"
        pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style=style))
        read = read_table(path)
        assert read["name"].to_pylist() == table["name"].to_pylist()
        assert read["x"].to_pylist() == [str(x) for x in range(30_000)]


def test_a_long_quoted_cell_used_to_be_called_an_unbalanced_quote(tmp_path):
    text = "a, " * 50_000
    for line_end in ("\n", "\n\n"):
        table = read_table(written(tmp_path, f'name,about{line_end}x,"{text}"{line_end}'))
        assert table["about"].to_pylist() == [text]
    # One column goes through the careful reader.
    table = read_table(written(tmp_path, f'about\n"{text}"\n'))
    assert table["about"].to_pylist() == [text]


def test_pairs_have_two_cells_and_neither_is_empty(tmp_path):
    assert read_pairs(written(tmp_path, "Entity,Word\nA,b\n")) == [("A", "b")]
    assert read_pairs(written(tmp_path, "NA , null\n")) == [("NA", "null")]
    with pytest.raises(FormatError, match="has 3 columns"):
        read_pairs(written(tmp_path, "a,b,c\n"))
    with pytest.raises(FormatError, match="pair 2: 'x', ''"):
        read_pairs(written(tmp_path, "a,b\nx,\n"))


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("packing", ["gz", "zst", "zip"])
def test_packed_tables_are_read_in_place(tmp_path, separator, packing):
    suffix = "csv" if separator == "," else "tsv"
    text = f"name{separator}x\niron{separator}7.9\n".encode()
    path = tmp_path / f"table.{suffix}.{packing}"
    if packing == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"table.{suffix}", text)
    else:
        path.write_bytes(pa.compress(text, {"gz": "gzip", "zst": "zstd"}[packing], asbytes=True))
    assert read_table(path).to_pydict() == {"name": ["iron"], "x": ["7.9"]}


def test_a_workbook_and_a_zip_of_several_files_are_no_tables(tmp_path):
    for members, said in ((["xl/workbook.xml", "a"], "Excel workbook"), (["a", "b"], "2 members")):
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
            for name in members:
                archive.writestr(name, "x")
        with pytest.raises(FormatError, match=said):
            read_table(tmp_path / "t.zip")


def test_empty_space_is_refused_before_it_is_read_into_memory(tmp_path):
    with (tmp_path / "t.csv").open("wb") as file:
        file.truncate(10**13)
    with pytest.raises(
        FormatError, match=r"t\.csv begins with 65,536 NUL bytes, so it is empty space"
    ):
        read_table(tmp_path / "t.csv")


def test_a_table_larger_than_memory_says_so(tmp_path, monkeypatch):
    def full(_: Path) -> bytes:
        raise MemoryError

    (tmp_path / "t.csv").write_bytes(b"name,x\n")
    monkeypatch.setattr(Path, "read_bytes", full)
    with pytest.raises(FormatError, match="7 bytes, and there is not enough memory"):
        read_table(tmp_path / "t.csv")
