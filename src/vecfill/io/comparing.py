"""Where two files first differ: by the bytes of their rows, or by words and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from vecfill.embedding import printable
from vecfill.io.batches import Batch, RowReader, decoded
from vecfill.io.codec import Difference
from vecfill.io.sources import Source

_BLOCK = 1 << 22


class BodyReader(RowReader, Protocol):
    """A reader of rows that begin at the offset `body` of the content."""

    body: int


def difference_of_bytes(old: BodyReader, new: BodyReader) -> Difference | None:
    """Return the first byte of the original's rows that the other file does not have."""
    offset = _first_other_byte(old.source, old.body, new.source, new.body)
    if offset is None:
        return None
    word = _word_at(old, offset)
    return Difference(
        f"byte offset {offset} of {old.source}, in the row of '{printable(word)}', is not so in "
        f"{new.source}.",
        word,
        offset,
    )


def _first_other_byte(old: Source, start_old: int, new: Source, start_new: int) -> int | None:
    """Return the offset in the original of the first byte that the enriched file has not."""
    with old.stream() as one, new.stream() as other:
        one.read(start_old)
        other.read(start_new)
        place = start_old
        while block := one.read(_BLOCK):
            same = other.read(len(block))
            if same != block:
                n_shared = min(len(same), len(block))
                left = np.frombuffer(block, np.uint8)[:n_shared]
                differs = left != np.frombuffer(same, np.uint8)[:n_shared]
                return place + (int(np.argmax(differs)) if differs.any() else n_shared)
            place += len(block)
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
    others = _single_rows(new.batches(whole=True))
    for n_rows, (word, vector) in enumerate(_single_rows(old.batches(whole=True)), start=1):
        other, theirs = next(others, (None, b""))
        if other != word or theirs != vector:
            name = decoded(word)
            what = "its vector" if other == word else "its place"
            return Difference(f"row {n_rows}, '{printable(name)}': {what} is not the same.", name)
    return None


def _single_rows(batches: Iterator[Batch]) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches:
        vectors = batch.take(np.arange(len(batch), dtype=np.int64))
        for word, vector in zip(batch.raw_words(), vectors, strict=True):
            yield word, vector.tobytes()
