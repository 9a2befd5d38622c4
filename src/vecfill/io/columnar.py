"""What Parquet, Arrow and CSV share: a column of words, and a vector column or one per dim."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError
from vecfill.io.batches import (
    MAX_DIMS,
    ROWS_PER_BLOCK,
    Batch,
    blank_words,
    encoded,
    finite_rows,
    shown,
)
from vecfill.io.codec import Codec, Difference
from vecfill.io.comparing import difference_of_tables
from vecfill.io.sources import Source

WORD, VECTOR = "word", "vector"
_DAMAGE = (
    pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError,
    OverflowError, UnicodeError,
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Which columns hold the words and the numbers."""

    word: str
    numbers: tuple[str, ...]
    is_list: bool


@contextlib.contextmanager
def refusing(source: Source, kind: str) -> Iterator[None]:
    """Turn what Arrow raises on broken files into an error that names the file."""
    try:
        yield
    except _DAMAGE as error:
        if type(error).__module__.startswith("vecfill"):
            raise
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise source.refuse(f"cannot be read as {kind}: {reason}. Save it again.") from error


def check_names(source: object, schema: pa.Schema) -> None:
    """Refuse names of columns that are not UTF-8, which Arrow can hold and Python cannot."""
    try:
        _ = schema.names
    except UnicodeDecodeError as error:
        name = bytes(error.object).decode("utf-8", "backslashreplace")
        raise FormatError(
            f"{source}: the name of the column '{name}' is not UTF-8. Rename it."
        ) from error


class ColumnarRows(ABC):
    """The rows of a file that holds columns."""

    kind: ClassVar[str]

    def __init__(self, source: Source, dtype: np.dtype[Any] | None = None) -> None:
        self.source = source
        self.notes: list[str] = []
        self.exchanged: Mapping[int, bytes] = MappingProxyType({})
        self.provenance: Mapping[str, str] = MappingProxyType({})
        with refusing(source, self.kind):
            self.schema = self._read_schema()
            check_names(source, self.schema)
        self.columns = self._choose_columns(self.schema)
        self.dtype: np.dtype[Any] = self._own_dtype(dtype)
        self.n_dims = len(self.columns.numbers)
        if self.columns.is_list:
            self.n_dims = self._list_dims()
        if not 0 < self.n_dims <= MAX_DIMS:
            raise source.refuse(f"has vectors of {self.n_dims} dimensions. Save at least one.")

    @abstractmethod
    def _read_schema(self) -> pa.Schema:
        """Return the columns of the file."""

    @abstractmethod
    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        """Hand out the file's own record batches, all columns."""

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Hand out the file's own record batches, all columns."""
        with refusing(self.source, self.kind):
            first = 0
            for table in self._record_batches():
                yield with_exchanged(self, table, first) if self.exchanged else table
                first += table.num_rows

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
        return Columns(word, *self._choose_numbers(schema, word))

    def _choose_numbers(self, schema: pa.Schema, word: str) -> tuple[tuple[str, ...], bool]:
        """Return the columns of numbers, and whether it is one column of lists."""
        del word
        names: list[str] = list(schema.names)
        lists = [field.name for field in schema if is_list_of_floats(field.type)]
        if VECTOR in lists or len(lists) == 1:
            return (VECTOR if VECTOR in lists else lists[0],), True
        numbers = tuple(field.name for field in schema if pa.types.is_floating(field.type))
        if not numbers or len(set(numbers)) != len(numbers):
            raise self.source.refuse(
                f"has no column {VECTOR!r} of lists of numbers, nor columns of floating-point "
                f"numbers; its columns are {_listed(names)}. Name the vectors {VECTOR!r}."
            )
        whole = [field.name for field in schema if _is_whole(field.type)]
        if whole:
            raise self.source.refuse(
                f"has {len(numbers)} columns of floating-point numbers beside "
                f"{_listed(whole)}, which hold whole or decimal numbers: they may be dimensions or "
                "something else. Save dimensions as floating-point numbers, and drop other numbers."
            )
        return numbers, False

    def _own_dtype(self, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
        del dtype
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

    def words_of(self, table: pa.RecordBatch) -> list[bytes]:
        """Return the words of some rows."""
        return pc.cast(table.column(self.columns.word), pa.binary()).to_pylist()

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the rows."""
        del whole
        first = 0
        for table in self.tables():
            with refusing(self.source, self.kind):
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
            length = f"{lengths[row]} numbers" if lengths[row] >= 0 else "no vector"
            raise self.source.refuse(
                f"row {first + row + 1}, the word {word}, has {length} instead of "
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
            column = self._numbers(table.column(name), name, first)
            if column.null_count:
                row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise self.source.refuse(
                    f"row {first + row + 1}, column {name!r}: no number. Fill it or drop the row."
                )
            vectors[:, place] = column.to_numpy(zero_copy_only=False)
        return vectors

    def _numbers(self, column: Any, name: str, first: int) -> Any:
        """Return a column of numbers; formats of text parse it here."""
        del name, first
        return column


class ColumnarCodec(Codec[ColumnarRows]):
    """What Parquet and Arrow share: they are written anew from record batches."""

    is_table = True

    @abstractmethod
    def write_tables(self, out: Any, blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write record batches to `out`."""

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        words = [encoded(word) for word in embedding.words]
        schema = embedding_schema(embedding, with_text=all(_is_utf8(word) for word in words))
        columns = Columns(WORD, (VECTOR,), is_list=True)
        blocks = (
            as_record_batch(
                words[first : first + ROWS_PER_BLOCK],
                embedding.vectors[first : first + ROWS_PER_BLOCK],
                schema,
                columns,
            )
            for first in range(0, len(words), ROWS_PER_BLOCK)
        )
        self.write_tables(out, blocks, schema)

    def rewrite(self, rows: ColumnarRows, added: Embedding, out: Any) -> None:
        """Write the record batches again, all columns, and then the rows to add."""
        self.write_tables(out, _with_more(rows, added), rows.schema)

    def exchange(self, rows: ColumnarRows, contents: Mapping[int, bytes]) -> None:
        """Let a reader hand out other vectors in some rows."""
        rows.exchanged = contents

    def difference(self, old: ColumnarRows, new: ColumnarRows) -> Difference | None:
        """Compare all columns, bit for bit."""
        with refusing(new.source, self.name):
            return difference_of_tables(old, new)


def _with_more(rows: ColumnarRows, added: Embedding) -> Iterator[pa.RecordBatch]:
    last = None
    for last in rows.tables():
        yield last
    words = [encoded(word) for word in added.words]
    vectors = added.vectors.astype(rows.dtype)
    yield as_record_batch(words, vectors, rows.schema, rows.columns, last)


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_text(kind: Any) -> bool:
    kinds = pa.types
    return (
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_string_view(kind)
    )


def _is_whole(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_decimal(kind)


def is_list_of_floats(kind: Any) -> bool:
    """Tell whether a column holds vectors."""
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
    words: list[bytes],
    vectors: FloatArray,
    schema: pa.Schema,
    columns: Columns,
    before: pa.RecordBatch | None = None,
) -> pa.RecordBatch:
    """Return rows in the columns of `schema`; columns that are not ours become null.

    An Arrow file has one dictionary for each column, so nulls take that of the rows `before`.
    """
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
            nulls: Any = pa.nulls(len(words), field.type)
            if before is not None and pa.types.is_dictionary(field.type):
                values: Any = before.column(schema.get_field_index(field.name))
                nulls = pa.DictionaryArray.from_arrays(nulls.indices, values.dictionary)
            arrays.append(nulls)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def with_exchanged(rows: ColumnarRows, table: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Return a record batch with other vectors in some rows; every other cell keeps its bits."""
    exchanged_rows = [row for row in rows.exchanged if first <= row < first + table.num_rows]
    if not exchanged_rows:
        return table
    contents = b"".join(rows.exchanged[row] for row in exchanged_rows)
    vectors = np.frombuffer(contents, rows.dtype).reshape(-1, rows.n_dims)
    more = as_record_batch([b""] * len(exchanged_rows), vectors, rows.schema, rows.columns, table)
    order = np.arange(table.num_rows)
    order[np.array(exchanged_rows) - first] = table.num_rows + np.arange(len(exchanged_rows))
    columns: list[Any] = []
    for name, column, new_column in zip(
        rows.schema.names, table.columns, more.columns, strict=True
    ):
        is_ours = name in rows.columns.numbers
        columns.append(pa.concat_arrays([column, new_column]).take(order) if is_ours else column)
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
