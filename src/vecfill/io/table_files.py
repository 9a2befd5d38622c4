"""A table file with some cells changed: Parquet, Feather, CSV and TSV, everything else kept.

Text files are changed in place: every byte outside of the cells named stays. Parquet and Feather
files are written anew from Arrow, with the same schema, metadata and compression.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet

from vecfill.errors import FormatError, InputError
from vecfill.io.cutting import quoted, records_of

_SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "feather": (".feather", ".arrow", ".ipc"),
    "text": (".csv", ".tsv", ".tab", ".txt"),
}


def table_format(path: Path) -> str:
    """Return ``"parquet"``, ``"feather"`` or ``"text"``, told by the first bytes of a file.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = place.write_text("id,v")
    >>> table_format(place)
    'text'
    """
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "feather"
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"FEA1")):
        raise FormatError(
            f"{path} is compressed, or a Feather file of version 1. Its cells can be read but not "
            "filled: unpack it, or save it as Parquet."
        )
    return "text"


def check_suffix(path: Path, target: Path) -> None:
    """Refuse a name for the result that promises another format than that of the table.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = place.write_text("id,v")
    >>> check_suffix(place, Path("b.parquet"))
    Traceback (most recent call last):
    vecfill.errors.InputError: b.parquet: the result has the format of ...
    """
    form = table_format(path)
    suffix = target.suffix.lower()
    promised = {**_SUFFIXES, "vectors": (".vec", ".bin", ".glove", ".npz", ".safetensors")}
    for name, suffixes in promised.items():
        if suffix in suffixes and name != form:
            raise InputError(
                f"{target}: the result has the format of {path}, which is {form}. Use a name that "
                f"ends in {_SUFFIXES[form][0]}."
            )


def rewritten_columns(path: Path, changed: Callable[[pa.Table], pa.Table]) -> bytes:
    """Return a Parquet or Feather file as it is after a change of its table."""
    data = path.read_bytes()
    out = io.BytesIO()
    if table_format(path) == "parquet":
        file = pa_parquet.ParquetFile(pa.BufferReader(data))
        table = changed(file.read())
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        kinds = {file.metadata.row_group(0).column(i).compression for i in range(len(file.schema))}
        compression: Any = kinds.pop() if len(kinds) == 1 else "SNAPPY"
        compression = "NONE" if compression == "UNCOMPRESSED" else compression
        pa_parquet.write_table(table, out, compression=compression, row_group_size=max([1, *sizes]))
    else:
        table = changed(pa_feather.read_table(pa.BufferReader(data)))
        pa_feather.write_feather(table, out)
    return out.getvalue()


@dataclass(frozen=True)
class TextCells:
    """Cells of one column of a text table, by row from 0; a new column comes last."""

    column: str
    cells: Mapping[int, str] = field(repr=False)
    is_new: bool = False


def rewritten_text(
    data: bytes,
    changes: list[TextCells],
    *,
    names: list[str],
    separator: str,
    encoding: str = "utf-8",
    header: bool = True,
) -> bytes:
    r"""Return a CSV or TSV file with other text in some cells; every other byte stays.

    Examples
    --------
    >>> change = TextCells("v", {1: "[1.0, 2.0]"})
    >>> rewritten_text(b'id,v\n7,"[3]"\n8,\n', [change], names=["id", "v"], separator=",")
    b'id,v\n7,"[3]"\n8,"[1.0, 2.0]"\n'
    """
    text = data.decode(encoding)
    if text.encode(encoding) != data:
        raise FormatError(
            f"the bytes of the table cannot be kept in the encoding {encoding}. Save it as UTF-8."
        )
    # In UTF-8 no byte of a letter looks like a separator or a quote.
    content, mark = text.encode("utf-8", "surrogatepass"), separator.encode()
    pieces: list[bytes] = []
    n_copied = 0
    row = -1 if header else 0
    for record in records_of([content], mark):
        if record.cells is None:
            raise FormatError(
                "the table has a quote that is not closed before its end. Mend the last row."
            )
        if len(record.cells) != len(names):
            raise FormatError(
                f"row {row + 1} of the table has {len(record.cells)} cells, but there are "
                f"{len(names)} columns. Quote cells that contain the separator or a line break."
            )
        cells = mark.join(_changed(record.cells, row, changes, names, mark))
        pieces += [content[n_copied : record.offset], cells]
        n_copied = record.offset + len(record.content)
        row += 1
    pieces.append(content[n_copied:])
    return b"".join(pieces).decode("utf-8", "surrogatepass").encode(encoding)


def _changed(
    cells: list[bytes], row: int, changes: list[TextCells], names: list[str], mark: bytes
) -> list[bytes]:
    """Return the cells of a row with other text in some of them, and new ones at the end."""
    for change in changes:
        text = change.column if change.is_new and row < 0 else change.cells.get(row, "")
        new = quoted(text.encode("utf-8", "surrogatepass"), mark)
        if change.is_new:
            cells = [*cells, new]
        elif row in change.cells:
            cells[names.index(change.column)] = new
    return cells
