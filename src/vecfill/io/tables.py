"""Table files -> Arrow tables, read strictly: nothing is guessed, dropped or repaired.

Cells of CSV and TSV stay text, so an entity called `NA`, `null` or `1e5` keeps its name; what
a column means is decided later, in `vecfill.inputs`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Collection, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet

from vecfill.errors import FormatError, InputError
from vecfill.io.plain_tables import header_end, plain_table, text_array
from vecfill.io.sources import ZSTANDARD, Source
from vecfill.io.whole_files import whole_file

_BLOCK_BYTES = 1 << 24
_BATCH_CELLS = 1 << 18
_SEPARATORS = {".tsv": "\t", ".tab": "\t", ".csv": ","}
_BINARY_KINDS = (
    (b"\x1f\x8b", "compressed by gzip twice", "Decompress it first (gunzip)."),
    (b"PK\x03\x04", "a zip file or an Excel workbook", "Save the sheet as CSV (UTF-8)."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV (UTF-8)."),
    (b"\x89HDF", "an HDF5 file", "Save the table as CSV or Parquet."),
    (b"\x80\x04\x95", "a pickle, which is never loaded", "Save the table as CSV or Parquet."),
)


def read_table(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    separator: str | None = None,
    header: bool = True,
    texts: Collection[str] | None = None,
) -> pa.Table:
    r"""Read a CSV, TSV, Parquet or Feather file; the kind is told by content, then by suffix.

    A file inside gzip, zstandard or a zip of its own is unpacked on the way.

    Columns of CSV and TSV files are text, cell by cell as written; those of Parquet and Feather
    files keep their types, and the index that pandas stored comes first. Column names are
    as written, even if empty or doubled. Blank lines are skipped.

    Parameters
    ----------
    path
        The file.
    encoding
        How the text is encoded. A byte-order mark is understood.
    separator
        What stands between cells. By default a tab in `.tsv` and `.tab` files, a comma in
        `.csv` files, and otherwise a tab if the first line has one.
    header
        Whether the first line names the columns; if not, they are called "1", "2" and so on.
    texts
        If given, columns of numbers in large text files may come as numbers (missing ones are
        null), which is quicker; not so the first column and these.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "metals.csv").write_text("name,density\niron,7.9\nNA,1e5\n")
    ...     table = read_table(Path(folder) / "metals.csv")
    >>> table.to_pydict()
    {'name': ['iron', 'NA'], 'density': ['7.9', '1e5']}
    """
    if isinstance(path, TableFile):
        return path.table(encoding=encoding, separator=separator, header=header, texts=texts)
    path = Path(path)
    data, name = _unpacked(path, whole_file(path))
    if separator is None and name != path:
        separator = _SEPARATORS.get(name.suffix.lower())
    if data.startswith((b"PAR1", b"ARROW1", b"FEA1")):
        return _columnar(path, data)
    _refuse_binary(path, data)
    encoding = _known_encoding(encoding)
    _refuse_utf16(path, data, encoding)
    if encoding == "utf-8":
        data = data.removeprefix(codecs.BOM_UTF8)
    if not data[:_BATCH_CELLS].strip() and not data.strip():
        raise FormatError(f"{path} has only blank lines. A table needs a header and rows.")
    table = None
    if encoding == "utf-8" and b"\0" not in data:
        start, end = header_end(data)
        mark = _separator_of(path, data[start:end].decode(errors="replace"), separator)
        table = plain_table(data, mark, header=header, texts=texts)
    if table is None:
        table = _careful_table(path, data, encoding, separator, header)
    if table.num_rows == 0:
        raise FormatError(
            f"{path} has a header and no rows. A table needs one row for each entity."
        )
    return table


class TableFile(PathLike[str]):
    """The path of a table that several readers share: as long as they agree, it is parsed once.

    With `as_text`, columns of numbers come as text even to readers that would take numbers.
    """

    def __init__(self, path: str | PathLike[str], *, as_text: bool) -> None:
        self._path = fspath(path)
        self._as_text = as_text
        self._options: dict[str, object] = {}
        self._table: pa.Table | None = None

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    def table(self, *, texts: Collection[str] | None, **options: Any) -> pa.Table:
        """Return what `read_table` does."""
        asked = {**options, "texts": None if self._as_text or texts is None else {*texts}}
        if self._table is None or self._options != asked:
            self._table, self._options = read_table(self._path, **asked), asked
        return self._table

    def forget(self) -> None:
        """Free the cells; who asks again has the file parsed again."""
        self._table = None


def read_pairs(path: str | PathLike[str], *, second: str = "word") -> list[tuple[str, str]]:
    r"""Read a file of two columns, such as aliases: an entity and the word it stands for.

    A first line that reads `entity,word` is a header; any other first line is a pair.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "aliases.csv").write_text("Facebook,Meta\nIBM Corp,ibm\n")
    ...     read_pairs(Path(folder) / "aliases.csv")
    [('Facebook', 'Meta'), ('IBM Corp', 'ibm')]
    """
    try:
        table = read_table(path, header=False)
    except FormatError as error:
        # The option is about the table, not about files of pairs.
        told = str(error).partition(" If the file is in another encoding")
        raise FormatError(told[0] + (" Save it as UTF-8." if told[1] else "")) from error
    if table.num_columns != 2:
        raise FormatError(
            f"{path} has {table.num_columns} columns, but pairs need two: an entity and its "
            f"{second}."
        )
    left, right = (
        [str(cell if cell is not None else "").strip() for cell in column.to_pylist()]
        for column in table.columns
    )
    pairs = list(zip(left, right, strict=True))
    if (pairs[0][0].lower(), pairs[0][1].lower()) == ("entity", second):
        pairs = pairs[1:]
    for row, (entity, word) in enumerate(pairs, start=1):
        if not entity or not word:
            raise FormatError(
                f"{path}, pair {row}: {entity!r}, {word!r}. Both an entity and a {second} "
                "are needed."
            )
    return pairs


def _unpacked(path: Path, data: bytes) -> tuple[bytes, Path]:
    """Return the content of a packed file and the name it has inside; others as they are."""
    is_zip = data.startswith(b"PK\x03\x04") and b"xl/workbook" not in data
    if not is_zip and not data.startswith((b"\x1f\x8b", ZSTANDARD)):
        return data, path
    with Source(path) as source, source.stream() as stream:
        return stream.readall(), Path(source.name)


def _refuse_binary(path: Path, data: bytes) -> None:
    for magic, what, advice in _BINARY_KINDS:
        if data.startswith(magic):
            raise FormatError(f"{path} is {what}, not a table. {advice}")


def _refuse_utf16(path: Path, data: bytes, encoding: str) -> None:
    if encoding == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError(
            f"{path} begins with the mark of UTF-16, but was to be read as UTF-8. "
            "Give encoding='utf-16', or save it as UTF-8."
        )


def _known_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # a codec such as "hex" is known, but is not one of text
    except (LookupError, ValueError):
        raise InputError(
            f"encoding={encoding!r} is not known. Use one such as 'utf-8', 'latin-1' or 'cp1252'."
        ) from None
    return "utf-8" if name in ("ascii", "utf-8-sig") else name


def _columnar(path: Path, data: bytes) -> pa.Table:
    """Parquet or Feather; the columns that pandas wrote as its index are moved to the front."""
    source = pa.BufferReader(data)
    try:
        if data.startswith(b"PAR1"):
            table = pa_parquet.ParquetFile(source).read()
        else:
            table = pa_feather.read_table(source)
        table.validate(full=True)
    except UnicodeDecodeError as error:
        name = bytes(error.object).decode("utf-8", "backslashreplace")
        raise FormatError(
            f"{path}: the name of the column '{name}' is not UTF-8. Rename it."
        ) from error
    # A damaged file can fail anywhere below us, and not only by an error of Arrow's own.
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError, KeyError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200].rstrip(".")
        raise FormatError(
            f"{path} begins like a Parquet or Feather file but cannot be read: {first_line}. "
            "It may be cut short; copy or write it again."
        ) from error
    if table.num_rows == 0:
        raise FormatError(f"{path} has no rows. A table needs one row for each entity.")
    names = table.column_names
    index = [name for name in _pandas_index(table) if names.count(name) == 1]
    if index:
        table = table.select(index + [name for name in names if name not in index])
    return table


def _pandas_index(table: pa.Table) -> list[str]:
    """Names of the columns that were the index; a plain range has none."""
    written = (table.schema.metadata or {}).get(b"pandas")
    if written is None:
        return []
    try:
        index = json.loads(written)["index_columns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [name for name in index if isinstance(name, str)] if isinstance(index, list) else []


def separator_of(
    path: Path, data: bytes, separator: str | None = None, encoding: str = "utf-8"
) -> str:
    r"""Return what stands between the cells of a text table, as `read_table` takes it.

    Examples
    --------
    >>> separator_of(Path("a.txt"), b"id\tvector\n")
    '\t'
    """
    lines = data.decode(_known_encoding(encoding)).lstrip("\ufeff\r\n").splitlines()
    return _separator_of(path, lines[0] if lines else "", separator)


def _separator_of(path: Path, first_line: str, separator: str | None) -> str:
    if separator is not None:
        if len(separator) != 1 or separator in '"\r\n\0':
            raise InputError(
                f"separator={separator!r} is not one plain character. Use ',', ';' or a tab."
            )
        return separator
    guess = "\t" if "\t" in first_line else ","
    return _SEPARATORS.get(path.suffix.lower(), guess)


def _careful_table(
    path: Path, data: bytes, encoding: str, separator: str | None, header: bool
) -> pa.Table:
    """Line by line; slower, understands quotes, and knows the line of whatever is wrong."""
    _check_decodes(path, data, encoding)
    lines = _Lines(path, data, encoding)
    mark = _separator_of(path, lines.peek(), separator)
    names: list[str] | None = None
    batches: list[list[pa.Array]] = []
    rows: list[list[str]] = []
    for line, cells in _records(path, lines, mark):
        if names is None:
            names = cells if header else [str(number + 1) for number in range(len(cells))]
            if header:
                continue
        if len(cells) != len(names):
            raise FormatError(
                f"{path}, line {line}: {len(cells)} cells, but the first line has {len(names)}. "
                f"The row begins with {cells[0][:40]!r}. Every row needs as many cells as the "
                f"header; put quotes around a cell that contains {mark!r}."
            )
        rows.append(cells)
        if len(rows) * len(names) >= _BATCH_CELLS:
            batches.append(_as_arrays(rows))
            rows = []
    assert names is not None
    if rows:
        batches.append(_as_arrays(rows))
    columns = [
        pa.chunked_array([batch[number] for batch in batches], type=pa.string())
        for number in range(len(names))
    ]
    return pa.Table.from_arrays(columns, names=names)


def _as_arrays(rows: list[list[str]]) -> list[pa.Array]:
    return [text_array(column) for column in zip(*rows, strict=True)]


class _Lines:
    """The lines of a text, counted, with the number of quotes since they were last asked for."""

    def __init__(self, path: Path, data: bytes, encoding: str) -> None:
        self.path = path
        self.number = 0
        self.quotes = 0
        self._text = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, newline="")

    def peek(self) -> str:
        place = self._text.tell()
        first = next((line for line in iter(self._text.readline, "") if line.strip("\r\n")), "")
        self._text.seek(place)
        return first

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.number += 1
            if "\0" in line:
                raise FormatError(
                    f"{self.path}, line {self.number}: a NUL byte at character "
                    f"{line.index(chr(0)) + 1}. This is not a text table, or it is damaged; "
                    "give the right encoding or write the file again."
                )
            self.quotes += line.count('"')
            yield line


def _records(path: Path, lines: _Lines, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of the line on which it begins."""
    reader = csv.reader(lines, delimiter=mark, strict=True)
    while True:
        line = lines.number + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise _quote_error(path, line, str(error)) from error
        if cells is None:
            return
        if lines.quotes % 2:
            raise _quote_error(path, line, "an odd number of quotes")
        lines.quotes = 0
        if cells:
            yield line, cells


def _quote_error(path: Path, line: int, reason: str) -> FormatError:
    return FormatError(
        f"{path}, the row that begins on line {line}: unbalanced quote ({reason}). "
        'A quoted cell ends with " before the next separator, and a quote inside it is doubled '
        '(""); mend that line.'
    )


def _check_decodes(path: Path, data: bytes, encoding: str) -> None:
    """Refuse by offset; a reader that stumbles half-way can only name its own buffer."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=start + _BLOCK_BYTES >= len(data))
        except UnicodeError as error:
            offset = start + (error.start - held if isinstance(error, UnicodeDecodeError) else 0)
            line = data.count(b"\n", 0, offset) + 1
            raise FormatError(
                f"{path}, line {line}, byte offset {offset}: not {encoding.upper()} "
                f"(found byte 0x{data[offset]:02x}). If the file is in another encoding, say "
                "which: encoding='latin-1'."
            ) from error
