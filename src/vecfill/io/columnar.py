"""Parquet, Arrow (Feather) and CSV/TSV: a column of words, and a vector column or one per dim."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from vecfill.embedding import Embedding, FloatArray
from vecfill.io.batches import Batch, blank_words, finite_rows, shown
from vecfill.io.formats import Format
from vecfill.io.numbers import NUMBER_TEXT
from vecfill.io.sources import Source
from vecfill.io.word2vec_binary import MAX_DIMS

WORD, VECTOR = "word", "vector"
_DAMAGE = (
    pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError,
    OverflowError, UnicodeError,
)  # fmt: skip
_BATCH_ROWS = 16384


@dataclass(frozen=True)
class Columns:
    """Which columns hold the words and the numbers."""

    word: str
    numbers: tuple[str, ...]
    is_list: bool


@contextlib.contextmanager
def _refusing(source: Source, kind: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        if type(error).__module__.startswith("vecfill"):
            raise
        said = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise source.refuse(f"cannot be read as {kind}: {said}. Save it again.") from error


class ColumnarRows:
    """The rows of a Parquet, Arrow, CSV or TSV file."""

    def __init__(self, source: Source, kind: Format, dtype: np.dtype[Any] | None = None) -> None:
        self.source = source
        self.format = kind
        self.notes: list[str] = []
        self.provenance: Mapping[str, str] = MappingProxyType({})
        self.is_text = kind in (Format.CSV, Format.TSV)
        with _refusing(source, kind.value):
            self.schema = self._read_schema()
        self.columns = self._choose_columns(self.schema)
        self.dtype: np.dtype[Any] = np.dtype(np.float32) if dtype is None else dtype
        if not self.is_text:
            self.dtype = self._own_dtype()
        self.n_dims = len(self.columns.numbers)
        if self.columns.is_list:
            self.n_dims = self._list_dims()
        if not 0 < self.n_dims <= MAX_DIMS:
            raise source.refuse(f"has vectors of {self.n_dims} dimensions. Save at least one.")

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Hand out the file's own record batches, all columns."""
        with _refusing(self.source, self.format.value):
            file = self.source.file()
            if self.format is Format.PARQUET:
                yield from pq.ParquetFile(file).iter_batches(batch_size=_BATCH_ROWS)
            elif self.format is Format.ARROW:
                with _arrow_reader(file) as reader:
                    if isinstance(reader, pa.ipc.RecordBatchFileReader):
                        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
                    else:
                        yield from reader
            else:
                yield from self._csv_reader(file)

    def _csv_reader(self, file: Any) -> Iterator[pa.RecordBatch]:
        delimiter = "\t" if self.format is Format.TSV else ","
        types = {name: pa.binary() for name in self._header_fields()}
        try:
            with pyarrow.csv.open_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=1 << 22),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types, strings_can_be_null=False, null_values=[]
                ),
            ) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            told = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
            if told is None:
                raise
            row, expected, found = told.groups()
            raise self.source.refuse(
                f"row {row} has {found} fields instead of {expected}. Correct the row."
            ) from error

    def _header_fields(self) -> list[str]:
        head = self.source.head.removeprefix(b"\xef\xbb\xbf")
        line = re.split(rb"\r\n|\n|\r", head.lstrip(b"\r\n"), maxsplit=1)[0]
        delimiter = b"\t" if self.format is Format.TSV else b","
        fields = [field.strip(b'"') for field in line.split(delimiter)]
        return [field.decode("utf-8", "replace") for field in fields]

    def _read_schema(self) -> pa.Schema:
        if self.is_text:
            fields = self._header_fields()
            if len(set(fields)) != len(fields):
                raise self.source.refuse("has two columns of one name. Rename one of them.")
            return pa.schema([(name, pa.binary()) for name in fields])
        file = self.source.file()
        if self.format is Format.PARQUET:
            return pq.ParquetFile(file).schema_arrow
        with _arrow_reader(file) as reader:
            return reader.schema

    def _choose_columns(self, schema: pa.Schema) -> Columns:
        names: list[str] = list(schema.names)
        texts = [field.name for field in schema if _is_text(field.type)]
        word = WORD if WORD in names else ""
        if not word and len(texts) == 1:
            word = texts[0]
        if not word or names.count(word) != 1 or word not in texts:
            raise self.source.refuse(
                f"has no column {WORD!r} of words; its columns are {_listed(names)}. "
                f"Name the column of words {WORD!r}."
            )
        if self.is_text:
            numbers = tuple(name for name in names if name != word)
            if not numbers:
                raise self.source.refuse(
                    f"has no columns of numbers beside {word!r}. Write one column per dimension."
                )
            return Columns(word, numbers, is_list=False)
        lists = [field.name for field in schema if _is_list(field.type)]
        if VECTOR in lists or len(lists) == 1:
            return Columns(word, (VECTOR if VECTOR in lists else lists[0],), is_list=True)
        numbers = tuple(field.name for field in schema if pa.types.is_floating(field.type))
        if not numbers or len(set(numbers)) != len(numbers):
            raise self.source.refuse(
                f"has no column {VECTOR!r} of lists of numbers, nor columns of floating-point "
                f"numbers; its columns are {_listed(names)}. Name the vectors {VECTOR!r}."
            )
        return Columns(word, numbers, is_list=False)

    def _own_dtype(self) -> np.dtype[Any]:
        kind: Any = self.schema.field(self.columns.numbers[0]).type
        kind = kind.value_type if self.columns.is_list else kind
        return np.dtype(kind.to_pandas_dtype())

    def _list_dims(self) -> int:
        kind: Any = self.schema.field(self.columns.numbers[0]).type
        if pa.types.is_fixed_size_list(kind):
            return kind.list_size
        for table in self.tables():
            lengths = pc.list_value_length(table.column(self.columns.numbers[0]))
            for length in lengths.to_pylist():
                if length is not None:
                    return length
        raise self.source.refuse("holds no rows. Pass a file with vectors in it.")

    def batches(self) -> Iterator[Batch]:
        """Hand out the rows."""
        first = 0
        for table in self.tables():
            with _refusing(self.source, self.format.value):
                batch = self._batch(table, first)
            if batch is not None:
                yield batch
            first += table.num_rows
        if first == 0:
            raise self.source.refuse("holds no rows. Pass a file with vectors in it.")

    def _batch(self, table: pa.RecordBatch, first: int) -> Batch | None:
        if table.num_rows == 0:
            return None
        table.validate(full=True)
        column = table.column(self.columns.word)
        if column.null_count:
            row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise self.source.refuse(f"row {row + 1} has no word. Give it a name or drop it.")
        words = pc.cast(column, pa.large_binary())
        _, offset_buffer, data = words.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[words.offset :][: len(words) + 1]
        buffer = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        for row in blank_words(buffer, offsets[:-1], offsets[1:]):
            raise self.source.refuse(
                f"row {first + row + 1}: the word is empty or white space alone. "
                "Give it a name or drop the row."
            )
        if self.columns.is_list:
            vectors = self._from_lists(
                table.column(self.columns.numbers[0]), first, buffer, offsets
            )
        else:
            vectors = self._from_columns(table, first)
        is_finite = finite_rows(vectors)
        return Batch(buffer, offsets[:-1], offsets[1:], vectors.__getitem__, is_finite)

    def _from_lists(self, column: Any, first: int, buffer: Any, offsets: Any) -> FloatArray:
        lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(lengths != self.n_dims)
        if column.null_count:
            wrong = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
        if len(wrong):
            row = int(wrong[0])
            word = shown(buffer[offsets[row] : offsets[row + 1]].tobytes())
            found = f"{lengths[row]} numbers" if lengths[row] >= 0 else "no vector"
            raise self.source.refuse(
                f"row {first + row + 1}, the word {word}, has {found} instead of "
                f"{self.n_dims}. All vectors must be of one length."
            )
        values = column.flatten()
        if values.null_count:
            place = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise self.source.refuse(
                f"row {first + place // self.n_dims + 1} has a missing number in its vector. "
                "Fill it or drop the row."
            )
        return values.to_numpy(zero_copy_only=False).reshape(-1, self.n_dims)

    def _from_columns(self, table: pa.RecordBatch, first: int) -> FloatArray:
        vectors = np.empty((table.num_rows, self.n_dims), dtype=self.dtype)
        for place, name in enumerate(self.columns.numbers):
            column = table.column(name)
            if self.is_text:
                column = self._parsed(column, name, first)
            if column.null_count:
                row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise self.source.refuse(
                    f"row {first + row + 1}, column {name!r}: no number. Fill it or drop the row."
                )
            vectors[:, place] = column.to_numpy(zero_copy_only=False)
        return vectors

    def _parsed(self, column: Any, name: str, first: int) -> Any:
        kind = pa.float32() if self.dtype.itemsize < 8 else pa.float64()
        with contextlib.suppress(pa.ArrowInvalid):
            parsed = pc.cast(pc.cast(column, pa.string()), kind)
            if np.isfinite(parsed.to_numpy(zero_copy_only=False)).all():
                return parsed
        for row, text in enumerate(column.to_pylist()):
            good = NUMBER_TEXT.fullmatch(text) and len(text) < 800
            if not good or not np.isfinite(np.array(float(text)).astype(self.dtype)):
                what = f"{shown(text)} is not a finite number" if text else "no number"
                raise self.source.refuse(
                    f"row {first + row + 1}, column {name!r}: {what}. Numbers are written like "
                    "-0.25 or 1e-3, with a point as decimal mark."
                )
        raise self.source.refuse(f"column {name!r} cannot be read as numbers. Save it again.")


def _arrow_reader(file: Any) -> Any:
    start = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if start == b"ARROW1" else pa.ipc.open_stream(file)


def _is_text(kind: Any) -> bool:
    kinds = pa.types
    return (
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_string_view(kind)
    )


def _is_list(kind: Any) -> bool:
    kinds = pa.types
    is_list = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return is_list and kinds.is_floating(kind.value_type)


def _listed(names: list[str]) -> str:
    more = ", …" if len(names) > 8 else ""
    return ", ".join(repr(name) for name in names[:8]) + more


def embedding_schema(embedding: Embedding, *, with_text: bool) -> pa.Schema:
    """Return the columns in which we write an embedding."""
    kind = pa.from_numpy_dtype(embedding.vectors.dtype)
    text = pa.string() if with_text else pa.binary()
    return pa.schema([(WORD, text), (VECTOR, pa.list_(kind, embedding.n_dims))])


def as_record_batch(
    words: list[bytes], vectors: FloatArray, schema: pa.Schema, columns: Columns
) -> pa.RecordBatch:
    """Return rows in the columns of `schema`; columns that are not ours become null."""
    arrays: list[Any] = []
    for field in schema:
        if field.name == columns.word:
            arrays.append(pc.cast(pa.array(words, pa.binary()), field.type))
        elif columns.is_list and field.name == columns.numbers[0]:
            flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
            lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
            arrays.append(pc.cast(lists, field.type))
        elif field.name in columns.numbers:
            place = columns.numbers.index(field.name)
            column = pa.array(np.ascontiguousarray(vectors[:, place]))
            arrays.append(pc.cast(column, field.type))
        else:
            arrays.append(pa.nulls(len(words), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
