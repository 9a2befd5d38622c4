"""Parquet and Feather -> Arrow tables, with what pandas wrote as its index put in its place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet

from vecfill.errors import FormatError


def columnar_table(path: Path, data: bytes) -> pa.Table:
    """Return a Parquet or Feather file; the index that pandas wrote by name comes first."""
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
    # A number that pandas gave to rows, without a name of its own, describes nobody.
    counts = [name for name in index if _is_row_number(table, name)]
    if counts and len(counts) < len(names):
        table, names = table.drop_columns(counts), [n for n in names if n not in counts]
        index = [name for name in index if name not in counts]
    if index:
        table = table.select(index + [name for name in names if name not in index])
    return table


def _is_row_number(table: pa.Table, name: str) -> bool:
    return is_nameless_index(name) and pa.types.is_integer(table.schema.field(name).type)


def is_nameless_index(name: str) -> bool:
    """Tell whether a column is an index that pandas wrote for want of a name.

    Examples
    --------
    >>> is_nameless_index("__index_level_0__"), is_nameless_index("index")
    (True, False)
    """
    return re.fullmatch(r"__index_level_\d+__", name) is not None


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
