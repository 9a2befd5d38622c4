"""Text tables without quotes, read by Arrow at full speed.

Whatever is unusual is left to the careful reader in `vecfill.io.tables`, which knows the line of
what is wrong. It is asked only then, because it goes line by line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.csv as pa_csv
from pyarrow.lib import StringBuilder

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>")
"""How a cell of text says that its value is missing."""

LARGE = 1 << 22
"""Bytes from which numbers are parsed while the file is read; text of small files costs nothing."""

_BLOCK_BYTES = 1 << 20
"""Bytes parsed at a time: what fits in the processor's cache is parsed twice as fast."""

_WIDE_BLOCK_BYTES = 1 << 24
"""The same where rows are so long that they do not fit in a block."""

_SAMPLE = 1 << 18
_MOST_RETRIES = 3


def text_array(texts: Iterable[str]) -> pa.Array:
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


def header_end(data: bytes) -> tuple[int, int]:
    r"""Return where the first line that is not empty begins and ends.

    Examples
    --------
    >>> header_end(b"\na,b\n1,2\n")
    (1, 4)
    """
    # The common case without a copy of everything: the first line is not empty.
    start = 0 if data[:1] not in (b"\r", b"\n") else len(data) - len(data.lstrip(b"\r\n"))
    ends = [end for end in (data.find(b"\n", start), data.find(b"\r", start)) if end >= 0]
    return start, min(ends, default=len(data))


def plain_table(
    data: bytes, mark: str, *, header: bool, texts: Collection[str] | None
) -> pa.Table | None:
    """Return a table without quotes; None if Arrow met anything that it does not take.

    Cells are text. Of large files, columns in which all cells are numbers or missing become numbers
    of 64 bits, unless they are the first or among `texts`, or `texts` is None.
    """
    start, end = header_end(data)
    try:
        first_line = data[start:end].decode()
    except UnicodeDecodeError:
        return None
    if not mark.isascii():
        return None
    if data.find(b'"', end if header else start) >= 0 or first_line.count('"') % 2:
        return None
    try:
        names = next(csv.reader([first_line], delimiter=mark, strict=True))
    except csv.Error:
        return None
    if len(names) < 2:  # with one column a blank line would be a cell; the careful pass decides
        return None
    body = memoryview(data)[end if header else start :]
    if not bytes(body[: 1 << 10]).strip() and not bytes(body).strip():
        empty = pa.array([], pa.string())
        return pa.Table.from_arrays([empty] * len(names), names=names)
    numeric: set[int] = set()
    if texts is not None and header and len(data) >= LARGE:
        asked = {position for position, name in enumerate(names) if name.strip() in texts}
        numeric = _looking_numeric(body, mark, len(names)) - asked
    table = _with_numbers(body, mark, len(names), numeric)
    if table is None:
        return None
    return table.rename_columns(names if header else [str(i + 1) for i in range(len(names))])


def _with_numbers(
    body: memoryview, mark: str, n_columns: int, numeric: set[int]
) -> pa.Table | None:
    """Return the table with some columns as numbers; those that hold something else are text."""
    for _ in range(_MOST_RETRIES):
        if not numeric:
            break
        try:
            return _read(body, mark, n_columns, numeric)
        except pa.ArrowInvalid as error:
            # "In CSV column #3: CSV conversion error to double: ..."
            told = re.match(r"In CSV column #(\d+): CSV conversion error", str(error))
            if told is None:
                break
            numeric = numeric - {int(told.group(1))}
    try:
        return _read(body, mark, n_columns, set())
    except pa.ArrowException:
        return None


def _looking_numeric(body: memoryview, mark: str, n_columns: int) -> set[int]:
    """Return the columns that hold numbers in the first rows."""
    head = bytes(body[:_SAMPLE])
    cut = max(head.rfind(b"\n"), head.rfind(b"\r"))
    head = memoryview(head[: cut + 1] if cut > 0 else head)
    numeric = set(range(1, n_columns))
    while numeric:
        try:
            _read(head, mark, n_columns, numeric)
        except pa.ArrowInvalid as error:
            told = re.match(r"In CSV column #(\d+): CSV conversion error", str(error))
            if told is None:
                return set()
            numeric = numeric - {int(told.group(1))}
        else:
            break
    return numeric


def _read(body: memoryview, mark: str, n_columns: int, numeric: set[int]) -> pa.Table:
    kinds = {
        str(position): pa.float64() if position in numeric else pa.string()
        for position in range(n_columns)
    }

    def parsed(block_bytes: int) -> pa.Table:
        return pa_csv.read_csv(
            pa.BufferReader(body),
            read_options=pa_csv.ReadOptions(column_names=list(kinds), block_size=block_bytes),
            parse_options=pa_csv.ParseOptions(delimiter=mark, quote_char=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=kinds, strings_can_be_null=False, null_values=list(MISSING)
            ),
        )

    try:
        return parsed(_BLOCK_BYTES)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        return parsed(_WIDE_BLOCK_BYTES)
