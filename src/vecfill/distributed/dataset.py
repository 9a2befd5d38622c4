"""Parquet datasets: a file or a folder of parts, read a range of rows at a time.

Rows are numbered through all parts in the order of their names. Paths are local, or anything that
`fsspec` opens, such as ``s3://bucket/items`` (the extra `fsspec`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vecfill.errors import FormatError, InputError, MissingExtraError
from vecfill.io.columnar import is_list_of_floats

_BATCH_BYTES = 1 << 24
_NAMES = ("entity", "word", "name", "id")


@dataclass(frozen=True)
class Part:
    """One Parquet file of a dataset."""

    path: str
    row_groups: tuple[int, ...]
    """Rows of each row group."""

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return sum(self.row_groups)


@dataclass(frozen=True)
class Dataset:
    """What is read from a Parquet file or a folder of them."""

    path: str
    parts: tuple[Part, ...]
    key: str
    numbers: tuple[str, ...]
    """Columns of numbers, or the one column of lists."""
    is_list: bool
    n_columns: int
    dtype: str

    @property
    def n_rows(self) -> int:
        """How many rows there are in all parts."""
        return sum(part.n_rows for part in self.parts)

    def row_groups(self) -> list[tuple[int, int]]:
        """Return the first and last row of each row group, counted through all parts."""
        sizes = [size for part in self.parts for size in part.row_groups]
        ends = list(accumulate(sizes))
        return [(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def batches(self, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Hand out the rows from `first` to before `last`, with the number of each first row."""
        start = 0
        row_bytes = max(1, self.n_columns * np.dtype(self.dtype).itemsize)
        n_at_once = max(64, _BATCH_BYTES // row_bytes)
        columns = [self.key, *self.numbers]
        for part in self.parts:
            edges = list(accumulate(part.row_groups, initial=start))
            spans = enumerate(pairwise(edges))
            groups = [group for group, (low, high) in spans if low < last and high > first]
            start = edges[-1]
            if not groups:
                continue
            place = edges[groups[0]]
            with _opened(part.path) as file, refusing(part.path):
                reader = pq.ParquetFile(file)
                for batch in reader.iter_batches(n_at_once, row_groups=groups, columns=columns):
                    low, high = max(first, place), min(last, place + batch.num_rows)
                    if low < high:
                        yield low, batch.slice(low - place, high - low)
                    place += batch.num_rows

    def names_of(self, batch: pa.RecordBatch, first: int) -> pa.Array:
        """Return the names of some rows as text; refuse a row without one."""
        column = batch.column(batch.schema.get_field_index(self.key))
        names = pc.cast(column, pa.large_string())
        is_bad = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(names), ""), True)
        if pc.any(is_bad).as_py():
            row = first + int(np.argmax(is_bad.to_numpy(zero_copy_only=False)))
            raise FormatError(
                f"{self.path}: row {row + 1} has no {self.key}. Name the entity or drop the row."
            )
        return names

    def numbers_of(self, batch: pa.RecordBatch, numbered: np.ndarray) -> np.ndarray:
        """Return the numbers of some rows, `numbered` so; refuse one missing or not finite."""
        values = np.empty((batch.num_rows, self.n_columns), self.dtype)
        if self.is_list:
            column = batch.column(batch.schema.get_field_index(self.numbers[0]))
            self._refuse_lengths(column, numbered)
            flat: Any = column.flatten()
            values[:] = _as_floats(flat).reshape(values.shape)
        else:
            for place, name in enumerate(self.numbers):
                column = batch.column(batch.schema.get_field_index(name))
                values[:, place] = _as_floats(column)
        is_fine = np.isfinite(values).all(axis=1)
        if not is_fine.all():
            row = int(np.argmin(is_fine))
            column = int(np.argmin(np.isfinite(values[row])))
            name = self.numbers[0 if self.is_list else column]
            raise FormatError(
                f"{self.path}: row {numbered[row] + 1}, column {name!r}: a number is missing or "
                "not finite. Fill it or drop the row."
            )
        return values

    def _refuse_lengths(self, column: Any, numbered: np.ndarray) -> None:
        lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(lengths != self.n_columns)
        if wrong.size:
            length = "no vector" if lengths[wrong[0]] < 0 else f"{lengths[wrong[0]]} numbers"
            raise FormatError(
                f"{self.path}: row {numbered[wrong[0]] + 1} has {length} instead of "
                f"{self.n_columns}. All vectors must be of one length."
            )


def lists_of(vectors: np.ndarray) -> pa.Array:
    """Return vectors as a column of lists of one length."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _as_floats(column: Any) -> np.ndarray:
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
    # A missing number becomes NaN, which is refused with its place.
    return column.to_numpy(zero_copy_only=False)


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn what Arrow raises on broken files into an error that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise FormatError(f"{path}: cannot be read as Parquet: {reason}. Save it again.") from error


def filesystem(path: str) -> tuple[Any, str]:
    """Return the store that fsspec opens for a path, and the path within it."""
    try:
        core = import_module("fsspec.core")
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is not a local path; to use it fsspec is needed: pip install 'vecfill[fsspec]'"
        ) from error
    return core.url_to_fs(path)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if "://" not in path:
        yield path
        return
    files, inner = filesystem(path)
    with files.open(inner, "rb") as file:
        yield file


def files_of(path: str) -> list[str]:
    """Return the Parquet files of a dataset, sorted by name; hidden ones are not of it."""
    if "://" in path:
        files, inner = filesystem(path)
        inside = files.find(inner) if files.isdir(inner) else [inner]
        names = [files.unstrip_protocol(name) for name in inside]
    else:
        place = Path(path)
        if not place.exists():
            raise InputError(f"{path} does not exist. Name a Parquet file or a folder of parts.")
        names = list(map(str, place.rglob("*"))) if place.is_dir() else [str(place)]
    if names == [path]:
        return names
    parts = [name for name in names if name.endswith((".parquet", ".pq"))]
    parts = sorted(name for name in parts if not Path(name).name.startswith((".", "_")))
    if not parts:
        raise InputError(f"{path} holds no Parquet file. Name a folder of .parquet files.")
    return parts


def hash_of(path: str) -> dict[str, Any]:
    """Return the size and SHA-256 of a file, wherever it is."""
    digest, size = hashlib.sha256(), 0
    with refusing(path), _opened(path) as opened:
        file = Path(opened).open("rb") if isinstance(opened, str) else opened  # noqa: SIM115
        with file:
            while block := file.read(1 << 22):
                digest.update(block)
                size += len(block)
    return {"path": path, "bytes": size, "sha256": digest.hexdigest()}


def open_dataset(
    path: str, *, key: str | None = None, ignore: Collection[str] = (), vector: str | None = None
) -> Dataset:
    """Return a dataset after a look at the footers of its parts.

    Its numbers are one column of lists (`vector`, or the only one), or all columns of numbers. A
    column that is neither is refused, unless it is ignored.
    """
    parts, schema = [], None
    for name in files_of(path):
        with _opened(name) as file, refusing(name):
            reader = pq.ParquetFile(file)
            own_schema, about = reader.schema_arrow, reader.metadata
            sizes = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        schema = own_schema if schema is None else schema
        if not schema.equals(own_schema, check_metadata=False):
            raise FormatError(
                f"{name}: its columns are not those of {parts[0].path}. All parts of a dataset "
                "must have the same columns of the same types."
            )
        parts.append(Part(name, tuple(sizes)))
    assert schema is not None
    if not sum(part.n_rows for part in parts):
        raise FormatError(f"{path} holds no rows.")
    absent = [name for name in ignore if name not in schema.names]
    if absent:
        raise InputError(f"ignore= names {absent[0]!r}, which is not a column of {path}.")
    name = _key_of(path, schema, key)
    numbers, is_list = _numbers_of(path, schema, name, ignore, vector)
    n_columns = _list_length(path, parts, schema, numbers[0]) if is_list else len(numbers)
    return Dataset(path, tuple(parts), name, numbers, is_list, n_columns, _dtype(schema, numbers))


def _key_of(path: str, schema: pa.Schema, key: str | None) -> str:
    names = list(schema.names)
    key = key or next((name for name in _NAMES if name in names), None) or names[0]
    if key not in names:
        raise InputError(f"{path} has no column {key!r}; its columns are {', '.join(names[:9])}.")
    kind = schema.field(key).type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_string_view(kind)):
        raise InputError(
            f"{path}: column {key!r} holds {kind}, not names. Name the column of entities with "
            "key=."
        )
    return key


def _numbers_of(
    path: str, schema: pa.Schema, key: str, ignore: Collection[str], vector: str | None
) -> tuple[tuple[str, ...], bool]:
    fields = [field for field in schema if field.name != key and field.name not in ignore]
    lists = [field.name for field in fields if is_list_of_floats(field.type)]
    if vector is not None and vector not in lists:
        raise InputError(f"{path}: {vector!r} is not a column of lists of numbers.")
    if vector is not None or (len(lists) == 1 and len(fields) == 1):
        return (vector or lists[0],), True
    odd = [field.name for field in fields if not _is_number(field.type)]
    if odd or not fields:
        lack = f"column {odd[0]!r} does not hold" if odd else "there is no column of"
        raise InputError(
            f"{path}: {lack} numbers. Turn text into numbers first, or leave a column out with "
            "ignore=."
        )
    return tuple(field.name for field in fields), False


def _is_number(kind: Any) -> bool:
    types = pa.types
    is_real = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return is_real or types.is_boolean(kind)


def _list_length(path: str, parts: list[Part], schema: pa.Schema, name: str) -> int:
    kind: Any = schema.field(name).type
    if pa.types.is_fixed_size_list(kind):
        return kind.list_size
    for part in parts:
        with _opened(part.path) as file, refusing(part.path):
            for batch in pq.ParquetFile(file).iter_batches(1024, columns=[name]):
                for length in pc.list_value_length(batch.column(0)).to_pylist():
                    if length is not None:
                        return length
    raise FormatError(f"{path}: column {name!r} holds no vector at all.")


def _dtype(schema: pa.Schema, numbers: tuple[str, ...]) -> str:
    """Return float32 if that holds every number exactly, else float64."""
    exact = (pa.float16(), pa.float32(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.bool_())
    kinds: list[Any] = [schema.field(name).type for name in numbers]
    kinds = [kind.value_type if is_list_of_floats(kind) else kind for kind in kinds]
    return "float32" if all(kind in exact for kind in kinds) else "float64"
