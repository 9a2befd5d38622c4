"""Table files -> Arrow tables, read strictly: nothing is guessed, dropped or repaired.

Cells of CSV and TSV stay text, so an entity called `NA`, `null` or `1e5` keeps its name; what
a column means is decided later, in `vecfill.inputs`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from vecfill.errors import FormatError, InputError
from vecfill.io.columnar_tables import columnar_table
from vecfill.io.cutting import (
    Record,
    first_line,
    is_badly_quoted,
    plain_table,
    records_of,
    text_array,
    unquoted,
)
from vecfill.io.ntriples import SUFFIXES, table_of_ntriples
from vecfill.io.sources import ZSTANDARD, Source, refuse_address

_BLOCK_BYTES = 1 << 24
_HEAD = 65_536
"""Bytes that are looked at before the rest is read into memory."""

_BATCH_CELLS = 1 << 18
_SEPARATORS = {".tsv": "\t", ".tab": "\t", ".csv": ","}
_NO_SEPARATOR = "\x1f"
"""What no line of a text has, so that each is one cell."""

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
    data, name = _unpacked(path, _whole_file(path))
    if separator is None and name != path:
        separator = _SEPARATORS.get(name.suffix.lower())
    if data.startswith((b"PAR1", b"ARROW1", b"FEA1")):
        return columnar_table(path, data)
    _refuse_binary(path, data)
    if name.suffix.lower() in SUFFIXES:
        return table_of_ntriples(path, data)
    encoding = _known_encoding(encoding)
    _refuse_utf16(path, data, encoding)
    if encoding == "utf-8":
        data = data.removeprefix(codecs.BOM_UTF8)
    if not data[:_BATCH_CELLS].strip() and not data.strip():
        raise FormatError(f"{path} has only blank lines. A table needs a header and rows.")
    table = None
    if encoding == "utf-8" and b"\0" not in data:
        start, end = first_line(data)
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
        requested = {**options, "texts": None if self._as_text or texts is None else {*texts}}
        if self._table is None or self._options != requested:
            self._table, self._options = read_table(self._path, **requested), requested
        return self._table

    def forget(self) -> None:
        """Free the cells; who asks again has the file parsed again."""
        self._table = None


def _whole_file(path: Path) -> bytes:
    """Return all bytes of a table file; refuse what is no file, or empty, or empty space.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "t.csv"
    >>> path.write_bytes(b"name,x")
    6
    >>> _whole_file(path)
    b'name,x'
    """
    try:
        # Asked before reading: a pipe or a device could be read without end.
        is_other = path.exists() and not path.is_file()
        is_directory = path.is_dir()
        data = b"" if is_other else _read_all(path)
    except FormatError:
        raise
    except FileNotFoundError:
        refuse_address(path)
        raise FormatError(f"{path} does not exist. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"{path} cannot be read ({reason}). Check its permissions.") from error
    except MemoryError:
        raise FormatError(
            f"{path} has {path.stat().st_size} bytes, and there is not enough memory to read it as "
            "a table. Keep only the columns you need."
        ) from None
    if is_other:
        kind = "a directory" if is_directory else "not a regular file"
        raise FormatError(f"{path} is {kind}. Give the path of one table file.")
    if not data:
        raise FormatError(f"{path} is empty. A table needs a header and rows.")
    return data


def _read_all(path: Path) -> bytes:
    """Return all bytes of a file, unless it begins with empty space.

    A file that was preallocated and never written can have any size, and would be read into memory.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if len(head) == _HEAD and not head.strip(b"\0"):
        raise FormatError(
            f"{path} begins with {_HEAD:,} NUL bytes, so it is empty space and no table. Fetch it "
            "again."
        )
    return path.read_bytes()


def _unpacked(path: Path, data: bytes) -> tuple[bytes, Path]:
    """Return the content of a packed file and the name it has inside; others as they are."""
    is_zip = data.startswith(b"PK\x03\x04") and b"xl/workbook" not in data
    if not is_zip and not data.startswith((b"\x1f\x8b", ZSTANDARD)):
        return data, path
    with Source(path) as source, source.stream() as stream:
        return stream.readall(), Path(source.name)


def _refuse_binary(path: Path, data: bytes) -> None:
    for magic, description, advice in _BINARY_KINDS:
        if data.startswith(magic):
            raise FormatError(f"{path} is {description}, not a table. {advice}")


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
    if path.suffix.lower() == ".txt" and guess == "," and "," not in first_line:
        # A plain list of terms: a comma in a later one is no separator.
        return _NO_SEPARATOR
    return _SEPARATORS.get(path.suffix.lower(), guess)


def _careful_table(
    path: Path, data: bytes, encoding: str, separator: str | None, header: bool
) -> pa.Table:
    """Record by record; slower, understands quotes, and knows the line of whatever is wrong."""
    blocks = _as_utf8(path, data, encoding)
    opening = next(blocks)
    start, end = first_line(opening)
    mark = _separator_of(path, opening[start:end].decode(errors="replace"), separator)
    names: list[str] | None = None
    batches: list[list[pa.Array]] = []
    rows: list[list[bytes]] = []
    for record in records_of(chain([opening], blocks), mark.encode()):
        cells = _checked_cells(path, record, mark)
        if names is None:
            names = [str(number + 1) for number in range(len(cells))]
            if header:
                names = [cell.decode() for cell in cells]
                continue
        if len(cells) != len(names):
            raise FormatError(
                f"{path}, line {record.line}: {len(cells)} cells, but the first line has "
                f"{len(names)}. The row begins with {cells[0].decode()[:40]!r}. Every row needs as "
                f"many cells as the header; put quotes around a cell that contains {mark!r}."
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


def _as_arrays(rows: list[list[bytes]]) -> list[pa.Array]:
    return [text_array(column) for column in zip(*rows, strict=True)]


def _checked_cells(path: Path, record: Record, mark: str) -> list[bytes]:
    """Return what the cells of a record mean; refuse what a strict reader of CSV would."""
    content, cells = record.content, record.cells
    place = content.find(b"\0")
    if place >= 0:
        *lines_before, last = re.split(rb"\r\n|\n|\r", content[:place])
        raise FormatError(
            f"{path}, line {record.line + len(lines_before)}: a NUL byte at character "
            f"{len(last.decode()) + 1}. This is not a text table, or it is damaged; give the right "
            "encoding or write the file again."
        )
    n_quotes = content.count(b'"')
    if n_quotes == 0 and cells is not None:
        return cells
    problem = ""
    if cells is None:
        problem = "a quote that is not closed"
    elif n_quotes % 2:
        problem = "an odd number of quotes"
    elif any(is_badly_quoted(cell) for cell in cells if cell[:1] == b'"'):
        problem = f"{mark!r} expected after '\"'"
    if problem or cells is None:
        raise FormatError(
            f"{path}, the row that begins on line {record.line}: unbalanced quote ({problem}). "
            'A quoted cell ends with " before the next separator, and a quote inside it is doubled '
            '(""); mend that line.'
        )
    return [unquoted(cell) if cell[:1] == b'"' else cell for cell in cells]


def _as_utf8(path: Path, data: bytes, encoding: str) -> Iterator[bytes]:
    """Return a text in UTF-8, block by block; refuse by offset what is not in its encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        n_pending = len(decoder.getstate()[0])
        try:
            yield decoder.decode(block, final=start + _BLOCK_BYTES >= len(data)).encode()
        except UnicodeError as error:
            is_inside = isinstance(error, UnicodeDecodeError)
            offset = start + (error.start - n_pending if is_inside else 0)
            line = data.count(b"\n", 0, offset) + 1
            raise FormatError(
                f"{path}, line {line}, byte offset {offset}: not {encoding.upper()} "
                f"(found byte 0x{data[offset]:02x}). If the file is in another encoding, say "
                "which: encoding='latin-1'."
            ) from error
