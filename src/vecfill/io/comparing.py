"""Where two files first differ: by the bytes of their rows, or by words and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.embedding import printable
from vecfill.io.batches import Batch, RowReader, decoded
from vecfill.io.codec import Difference

_BLOCK = 1 << 22


class BodyReader(RowReader, Protocol):
    """A reader of rows that begin at the offset `body` of the content."""

    body: int


def difference_of_bytes(
    old: BodyReader, new: BodyReader, *, lines: bool = False
) -> Difference | None:
    """Return the first byte of the original's rows that the other file does not have.

    With `lines`, a last line without an end must end where it did: digits that follow would be
    part of its last number.
    """
    offset = _first_other_byte(old, new, lines)
    if offset is None:
        return None
    word = _word_at(old, offset)
    return Difference(
        f"byte offset {offset} of {old.source}, in the row of '{printable(word)}', is not so in "
        f"{new.source}.",
        word,
        offset,
    )


def _first_other_byte(old: BodyReader, new: BodyReader, lines: bool) -> int | None:
    """Return the offset in the original of the first byte that the enriched file has not."""
    with old.source.stream() as old_stream, new.source.stream() as new_stream:
        old_stream.read(old.body)
        new_stream.read(new.body)
        place, last = old.body, b"\n"
        while block := old_stream.read(_BLOCK):
            new_block = new_stream.read(len(block))
            if new_block != block:
                n_shared = min(len(new_block), len(block))
                old_bytes = np.frombuffer(block, np.uint8)[:n_shared]
                differs = old_bytes != np.frombuffer(new_block, np.uint8)[:n_shared]
                return place + (int(np.argmax(differs)) if differs.any() else n_shared)
            place, last = place + len(block), block[-1:]
        if lines and last not in b"\r\n" and new_stream.read(1) not in (b"", b"\r", b"\n"):
            return place
    return None


def _word_at(reader: RowReader, offset: int) -> str:
    word = ""
    for batch in reader.batches():
        row = int(np.searchsorted(batch.starts + batch.offset, offset, side="right")) - 1
        if row >= 0:
            word = decoded(batch.raw_words([row])[0])
        if len(batch) and batch.offset + int(batch.starts[-1]) > offset:
            break
    return word


def difference_of_rows(old: RowReader, new: RowReader) -> Difference | None:
    """Return the first row of the original whose word or vector the other file does not have."""
    new_rows = _single_rows(new.batches(whole=True))
    for n_rows, (word, vector) in enumerate(_single_rows(old.batches(whole=True)), start=1):
        new_word, new_vector = next(new_rows, (None, b""))
        if new_word != word or new_vector != vector:
            name = decoded(word)
            changed_part = "its vector" if new_word == word else "its place"
            return Difference(
                f"row {n_rows}, '{printable(name)}': {changed_part} is not the same.", name
            )
    return None


def _single_rows(batches: Iterator[Batch]) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches:
        vectors = batch.take(np.arange(len(batch), dtype=np.int64))
        for word, vector in zip(batch.raw_words(), vectors, strict=True):
            yield word, vector.tobytes()


class TableReader(RowReader, Protocol):
    """A reader of rows that are columns of record batches."""

    schema: pa.Schema

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Hand out the record batches, all columns."""
        ...

    def words_of(self, table: pa.RecordBatch) -> list[bytes]:
        """Return the words of some rows."""
        ...


def difference_of_tables(old: TableReader, new: TableReader) -> Difference | None:
    """Return the first row of the original of which any column is not the same."""
    if not old.schema.equals(new.schema):
        return Difference(f"the columns of {old.source} are not those of {new.source}.")
    new_pieces = _Pieces(new)
    first = 1
    for table in old.tables():
        table.validate(full=True)
        piece = new_pieces.take(table.num_rows)
        n_shared = min(table.num_rows, piece.num_rows)
        for place, name in enumerate(old.schema.names):
            mine = table.column(place).slice(0, n_shared)
            theirs = piece.column(place).slice(0, n_shared)
            if not same_bits(mine, theirs):
                row = first_other_row(mine, theirs)
                word = decoded(old.words_of(table.slice(row, 1))[0])
                return Difference(
                    f"row {first + row}, '{printable(word)}': {name!r} is not the same.", word
                )
        if n_shared < table.num_rows:
            word = decoded(old.words_of(table.slice(n_shared, 1))[0])
            return Difference(f"row {first + n_shared}, '{printable(word)}', is not there.", word)
        first += table.num_rows
    return None


class _Pieces:
    """Rows in the sizes asked for, whatever the sizes in which they come."""

    def __init__(self, rows: TableReader) -> None:
        self._tables = rows.tables()
        self._held = pa.RecordBatch.from_pylist([], schema=rows.schema)

    def take(self, n_rows: int) -> pa.RecordBatch:
        """Return the next rows, fewer at the end."""
        parts = [self._held]
        while sum(part.num_rows for part in parts) < n_rows:
            table = next(self._tables, None)
            if table is None:
                break
            table.validate(full=True)
            parts.append(table)
        rows = pa.concat_batches(parts)
        self._held = rows.slice(n_rows)
        return rows.slice(0, n_rows)


def first_other_row(old: Any, new: Any) -> int:
    """Return the first row in which two columns differ, by halving."""
    low, high = 0, len(old)
    while high - low > 1:
        middle = (low + high) // 2
        if same_bits(old.slice(low, middle - low), new.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def same_bits(old: Any, new: Any) -> bool:
    """Tell whether two Arrow arrays are equal bit for bit: NaN is NaN, and -0 is not 0.

    Examples
    --------
    >>> same_bits(pa.array([0.0, None]), pa.array([0.0, None]))
    True
    >>> same_bits(pa.array([0.0]), pa.array([-0.0]))
    False
    """
    kinds = pa.types
    kind = old.type
    if kind != new.type or len(old) != len(new):
        return False
    if kinds.is_floating(kind):
        whole = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        return old.view(whole).equals(new.view(whole))
    if kinds.is_dictionary(kind):
        return same_bits(old.dictionary_decode(), new.dictionary_decode())
    if not (kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)):
        return old.equals(new)
    lengths = (pc.list_value_length(column) for column in (old, new))
    return next(lengths).equals(next(lengths)) and same_bits(old.flatten(), new.flatten())
