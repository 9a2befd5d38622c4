"""Where the records and cells of a CSV or TSV file stand; quoted cells may hold line ends.

All that changes such files cuts them here. Readers of numbers and of whole tables have Arrow do it,
and `vecfill.io.tables` reads what Arrow does not take, line by line, to say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import BinaryIO, NamedTuple

_BLOCK = 1 << 22


class Record(NamedTuple):
    """The bytes of a record without its line end, and where in the content they begin."""

    offset: int
    content: bytes


def records_of(stream: BinaryIO, delimiter: bytes, n_header_lines: int) -> Iterator[Record]:
    r"""Return the records after the header; blank lines are none.

    Examples
    --------
    >>> import io
    >>> list(records_of(io.BytesIO(b'word,x\n"a\nb",1\n\nc,2'), b",", 1))
    [Record(offset=7, content=b'"a\nb",1'), Record(offset=16, content=b'c,2')]
    """
    lines = _lines(stream)
    offset = sum(len(line) for line in islice(lines, n_header_lines))
    held = b""
    for line in lines:
        held += line
        content = held.rstrip(b"\r\n")
        if b'"' in held and fields_of(held, delimiter) is None:
            continue
        if content:
            yield Record(offset, content)
        offset += len(held)
        held = b""


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Return lines with their ends: LF, CRLF or CR."""
    held = b""
    while block := stream.read(_BLOCK):
        parts = (held + block).splitlines(keepends=True)
        # It may be cut here, and a CR may wait for its LF.
        held = parts.pop()
        yield from parts
    if held:
        yield held


def fields_of(record: bytes, delimiter: bytes) -> list[bytes] | None:
    """Return the cells of a record as they are written, or None if it ends inside quotes.

    Examples
    --------
    >>> fields_of(b'"a,b",1', b","), fields_of(b'"a', b",")
    ([b'"a,b"', b'1'], None)
    """
    cell = _cell(delimiter)
    fields: list[bytes] = []
    place = 0
    while True:
        cell_match = cell.match(record, place)
        assert cell_match is not None
        if cell_match[0].startswith(b'"') and cell_match[1] is None:
            return None
        fields.append(cell_match[0])
        place = cell_match.end() + len(delimiter)
        if record[cell_match.end() : place] != delimiter:
            return fields


@cache
def _cell(delimiter: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a cell; the delimiter is one character, of one byte or more."""
    mark = re.escape(delimiter)
    plain = rb"[^%b\r\n]*" if len(delimiter) == 1 else rb"(?:(?!%b)[^\r\n])*"
    # Possessive, so that two quotes inside a cell are never taken for its end and a new one.
    return re.compile(rb'("(?:[^"]|"")*+")?+' + plain % mark)


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
    in_quotes = re.match(rb'"((?:[^"]|"")*+)"', cell)
    return (
        cell if in_quotes is None else in_quotes[1].replace(b'""', b'"') + cell[in_quotes.end() :]
    )
