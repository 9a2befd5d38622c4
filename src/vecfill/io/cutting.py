"""CSV and TSV cut into records and cells: by Arrow as whole columns, or here with their places.

`records_of` is the one reader that knows where a record stands and what is wrong with it. Arrow is
asked first where neither matters, because it reads many times faster.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
from pyarrow.lib import StringBuilder

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>")
"""How a cell of text says that its value is missing."""

LARGE = 1 << 22
"""Bytes from which numbers are parsed while the file is read; text of small files costs nothing."""

BOM = b"\xef\xbb\xbf"

_BLOCK_BYTES = 1 << 20
"""Bytes parsed at a time: what fits in the processor's cache is parsed twice as fast."""

_WIDE_BLOCK_BYTES = 1 << 24
"""The same where rows are so long that they do not fit in a block."""

_SAMPLE = 1 << 18
_MOST_TRIES = 3

# Possessive, so that two quotes inside a cell are never taken for its end and a new one.
_QUOTED = re.compile(rb'"((?:[^"]|"")*+)"')


class Record(NamedTuple):
    """The bytes of a record without its line end, and where they begin: line from 1, and offset."""

    offset: int
    line: int
    content: bytes
    cells: list[bytes] | None
    """As they are written; None if the content ends inside quotes."""


def records_of(blocks: Iterable[bytes], delimiter: bytes) -> Iterator[Record]:
    r"""Return the records of content that comes in blocks; blank lines are none.

    Examples
    --------
    >>> for record in records_of([b'word,x\n"a\n', b'b",1\n\nc,2'], b","):
    ...     print(record.offset, record.line, record.cells)
    0 1 [b'word', b'x']
    7 2 [b'"a\nb"', b'1']
    16 5 [b'c', b'2']
    """
    lines = _lines(blocks)
    opening = next(lines, b"")
    offset = len(BOM) if opening.startswith(BOM) else 0
    line_number, open_lines = 0, list[bytes]()
    for line in chain([opening[offset:]], lines):
        line_number += 1
        # A quote that was opened on an earlier line is as good as one at the start of this.
        cells = cells_of(b'"' + line if open_lines else line, delimiter)
        if cells is None:
            open_lines.append(line)
            continue
        whole = line
        if open_lines:
            whole = b"".join([*open_lines, line])
            cells = cells_of(whole, delimiter)
        if content := whole.rstrip(b"\r\n"):
            yield Record(offset, line_number - len(open_lines), content, cells)
        offset += len(whole)
        open_lines = []
    if open_lines:
        yield Record(offset, line_number - len(open_lines) + 1, b"".join(open_lines), None)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Return lines with their ends: LF, CRLF or CR."""
    unfinished = b""
    for block in blocks:
        lines = (unfinished + block).splitlines(keepends=True)
        # It may be cut here, and a CR may wait for its LF.
        unfinished = lines.pop() if lines else b""
        yield from lines
    if unfinished:
        yield unfinished


def cells_of(record: bytes, delimiter: bytes) -> list[bytes] | None:
    """Return the cells of a record as they are written, or None if it ends inside quotes.

    Examples
    --------
    >>> cells_of(b'"a,b",1', b","), cells_of(b'"a', b",")
    ([b'"a,b"', b'1'], None)
    """
    record = record.rstrip(b"\r\n")
    last_quote = record.rfind(b'"')
    if last_quote < 0:
        return record.split(delimiter)
    # Cells behind the last quote are plain, and most are.
    plain_start = record.find(delimiter, last_quote)
    head = record if plain_start < 0 else record[:plain_start]
    cells: list[bytes] = []
    open_pieces: list[bytes] = []
    for piece in head.split(delimiter):
        # Only a search tells a closing quote from a doubled one; few pieces need it.
        if open_pieces:
            open_pieces.append(piece)
            if b'"' in piece and _QUOTED.match(b'"' + piece):
                cells.append(delimiter.join(open_pieces))
                open_pieces = []
        elif piece[:1] == b'"' and not _QUOTED.match(piece):
            open_pieces.append(piece)
        else:
            cells.append(piece)
    if open_pieces:
        return None
    return cells if plain_start < 0 else cells + record[plain_start:].split(delimiter)[1:]


def quoted(cell: bytes, delimiter: bytes) -> bytes:
    """Return text as a cell, in quotes where it must be.

    Examples
    --------
    >>> quoted(b'a "b, c', b","), quoted(b"d", b",")
    (b'"a ""b, c"', b'd')
    """
    if any(mark in cell for mark in (delimiter, b'"', b"\n", b"\r")):
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def unquoted(cell: bytes) -> bytes:
    """Return what a cell means.

    Examples
    --------
    >>> unquoted(b'"a ""b, c"'), unquoted(b"d")
    (b'a "b, c', b'd')
    """
    if cell[:1] != b'"':
        return cell
    if cell.count(b'"') == 2 and cell[-1:] == b'"':
        return cell[1:-1]
    in_quotes = _QUOTED.match(cell)
    if in_quotes is None:
        return cell
    return in_quotes[1].replace(b'""', b'"') + cell[in_quotes.end() :]


def is_badly_quoted(cell: bytes) -> bool:
    """Tell whether a cell begins with a quote that does not end where the cell ends.

    Examples
    --------
    >>> is_badly_quoted(b'"a"'), is_badly_quoted(b'"a"b')
    (False, True)
    """
    is_quoted = cell[:1] == b'"'
    return is_quoted and (cell[-1:] != b'"' or _QUOTED.fullmatch(cell) is None)


def text_array(texts: Iterable[str | bytes]) -> pa.Array:
    """Return texts as an Arrow array.

    Arrow's own `array` would load pandas, if it is there, to see whether this is a series.

    Examples
    --------
    >>> text_array(["iron", ""]).to_pylist()
    ['iron', '']
    """
    builder = StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def first_line(data: bytes) -> tuple[int, int]:
    r"""Return where the first line that is not empty begins and ends.

    Examples
    --------
    >>> first_line(b"\na,b\n1,2\n")
    (1, 4)
    """
    # The common case without a copy of everything: the first line is not empty.
    start = 0 if data[:1] not in (b"\r", b"\n") else len(data) - len(data.lstrip(b"\r\n"))
    ends = [end for end in (data.find(b"\n", start), data.find(b"\r", start)) if end >= 0]
    return start, min(ends, default=len(data))


def arrow_options(
    kinds: Mapping[str, pa.DataType],
    delimiter: str,
    *,
    quotes: bool,
    block_bytes: int,
    n_header_lines: int = 0,
) -> dict[str, Any]:
    """Return options for Arrow's readers of CSV; columns go by the names in `kinds`.

    Without `quotes` no cell holds the end of a line, so that Arrow may cut and parse in threads.
    """
    return {
        "read_options": pa_csv.ReadOptions(
            use_threads=not quotes,
            column_names=list(kinds),
            block_size=block_bytes,
            skip_rows=n_header_lines,
        ),
        "parse_options": pa_csv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quotes else False, newlines_in_values=quotes
        ),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict(kinds), strings_can_be_null=False, null_values=list(MISSING)
        ),
    }


def plain_table(
    data: bytes, mark: str, *, header: bool, texts: Collection[str] | None
) -> pa.Table | None:
    """Return a table, or None if Arrow met anything that it does not take.

    Cells are text. Of large files without quotes, columns in which all cells are numbers or missing
    become numbers of 64 bits, unless they are the first or among `texts`, or `texts` is None.
    """
    start, end = first_line(data)
    body_start = end if header else start
    cells = cells_of(data[start:end], mark.encode())
    has_quotes = data.find(b'"', start) >= 0
    if cells is None or not mark.isascii() or (has_quotes and not _is_well_quoted(data, mark)):
        return None
    try:
        names = [unquoted(cell).decode() for cell in cells]
    except UnicodeDecodeError:
        return None
    if len(names) < 2:  # with one column a blank line would be a cell; the careful pass decides
        return None
    body = memoryview(data)[body_start:]
    if not bytes(body[: 1 << 10]).strip() and not bytes(body).strip():
        empty = pa.array([], pa.string())
        return pa.Table.from_arrays([empty] * len(names), names=names)
    numeric: set[int] = set()
    try:
        if texts is not None and header and len(data) >= LARGE and not has_quotes:
            numeric = {place for place, name in enumerate(names) if name.strip() not in texts} - {0}
            # What is no number in the first rows is not tried on all of them.
            numeric = _parsed(_sample(body), mark, len(names), numeric, len(names))[1]
            table, _ = _parsed(body, mark, len(names), numeric, _MOST_TRIES)
        else:
            table = _read(body, mark, len(names), set(), quotes=has_quotes)
    except pa.ArrowException:
        return None
    return table.rename_columns(names if header else [str(i + 1) for i in range(len(names))])


def _is_well_quoted(data: bytes, mark: str) -> bool:
    r"""Tell whether quotes open at the start of cells and close at their ends, in one fast pass.

    Readers of CSV agree on such files alone.

    Examples
    --------
    >>> _is_well_quoted(b'"a ""b"", c",1\n', ","), _is_well_quoted(b'a "b",1\n', ",")
    (True, False)
    """
    edge = re.escape(mark.encode()) + rb"\r\n"
    cell = rb'(?<![^%b])"(?:[^"]++|"")*+"(?![^%b])' % (edge, edge)
    return re.fullmatch(rb'(?:[^"]*+%b)*+[^"]*+' % cell, data) is not None


def _sample(body: memoryview) -> memoryview:
    """Return the first rows."""
    head = bytes(body[:_SAMPLE])
    cut = max(head.rfind(b"\n"), head.rfind(b"\r"))
    return memoryview(head[: cut + 1] if cut > 0 else head)


def _parsed(
    body: memoryview, mark: str, n_columns: int, numeric: set[int], most_tries: int
) -> tuple[pa.Table, set[int]]:
    """Return the table, and which columns came as numbers; those that hold something else do not.

    After too many tries all columns are text.
    """
    for _ in range(most_tries if numeric else 0):
        try:
            return _read(body, mark, n_columns, numeric), numeric
        except pa.ArrowInvalid as error:
            # "In CSV column #3: CSV conversion error to double: ..."
            column = re.match(r"In CSV column #(\d+): CSV conversion error", str(error))
            if column is None:
                break
            numeric = numeric - {int(column.group(1))}
    return _read(body, mark, n_columns, set()), set()


def _read(
    body: memoryview, mark: str, n_columns: int, numeric: set[int], *, quotes: bool = False
) -> pa.Table:
    kinds = {
        str(place): pa.float64() if place in numeric else pa.string() for place in range(n_columns)
    }

    def parsed(block_bytes: int) -> pa.Table:
        options = arrow_options(kinds, mark, quotes=quotes, block_bytes=block_bytes)
        return pa_csv.read_csv(pa.BufferReader(body), **options)

    try:
        return parsed(_BLOCK_BYTES)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        return parsed(_WIDE_BLOCK_BYTES)
