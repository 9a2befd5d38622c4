"""Batches of rows, the one shape in which every format hands out its content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import Embedding, FloatArray, printable
from vecfill.errors import InputError
from vecfill.io.sources import Source
from vecfill.machine.compiled import compiled, compiled_part

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

WHITE = b" \t\n\r\v\f"
"""White space in files is ASCII's: other code points occur as words in real vocabularies."""

MAX_WORD = 1 << 16
"""Bytes of a word from which on a file is taken for damaged. A guess: words are far shorter."""

MAX_DIMS = 1_000_000
"""Most dimensions; a header that says more is taken for damaged. A guess with ample room."""

ROWS_PER_BLOCK = 4096
"""Rows of an embedding that are turned into bytes at a time."""


def in_blocks(embedding: Embedding) -> Iterator[tuple[tuple[str, ...], FloatArray]]:
    """Yield words and vectors, some rows at a time.

    Examples
    --------
    >>> [words for words, _ in in_blocks(Embedding(["cat", "dog"], [[1.0], [2.0]]))]
    [('cat', 'dog')]
    """
    for first in range(0, len(embedding), ROWS_PER_BLOCK):
        rows = slice(first, first + ROWS_PER_BLOCK)
        yield embedding.words[rows], embedding.vectors[rows]


@dataclass(frozen=True)
class Batch:
    """Some rows of a file, in its order; good until the next batch is asked for.

    The word of row `i` is `buffer[starts[i]:ends[i]]`. `take(rows)` copies out the vectors of the
    given rows. `offset` is where in the content `buffer` begins, for messages.
    """

    buffer: Bytes
    starts: Offsets
    ends: Offsets
    take: Callable[[Offsets], FloatArray]
    is_finite: NDArray[np.bool_]
    offset: int = 0
    row_ends: Offsets | None = None
    """Where rows end in `buffer`, in formats whose rows are words and numbers in one run."""

    def __len__(self) -> int:
        return len(self.starts)

    def raw_words(self, rows: Iterable[int] | None = None) -> list[bytes]:
        """Return the words of the given rows, or of all, as bytes."""
        chosen = range(len(self)) if rows is None else rows
        if len(self) == 0:
            return []
        first, last = int(self.starts[0]), int(self.ends[-1])
        text = self.buffer[first:last].tobytes()
        starts, ends = (self.starts - first).tolist(), (self.ends - first).tolist()
        return [text[starts[row] : ends[row]] for row in chosen]

    def word(self, row: int) -> bytes:
        """Return the word of one row, as bytes."""
        return self.buffer[self.starts[row] : self.ends[row]].tobytes()

    def row(self, row: int) -> bytes:
        """Return the bytes of a row: word and numbers as they stand, or else its vector."""
        if self.row_ends is not None:
            return self.buffer[self.starts[row] : self.row_ends[row]].tobytes()
        return self.take(np.array([row], dtype=np.int64)).tobytes()

    def words(self) -> list[str]:
        """Return all words as strings."""
        raw = self.raw_words()
        # One call for all of them, unless a word holds the newline that is put between.
        words = decoded(b"\n".join(raw)).split("\n") if raw else []
        return words if len(words) == len(raw) else [decoded(word) for word in raw]


class RowReader(Protocol):
    """What a module of a format makes of a source."""

    source: Source
    n_dims: int
    dtype: np.dtype[Any]
    notes: list[str]
    provenance: Mapping[str, str]

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the rows from the first to the last, and check each of them.

        `whole` says that every vector will be taken, so that text is best parsed at once; without
        it numbers are checked, and parsed only where `Batch.take` asks for them.
        """
        ...


def decoded(word: bytes) -> str:
    """Return a word of a file as a string that can be turned back."""
    return word.decode("utf-8", "surrogateescape")


def encoded(word: str) -> bytes:
    """Return the bytes of a word in a file."""
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(
            f"The word {word!r} holds {word[error.start]!r}, half of a character, which no file "
            "can hold. Correct the name."
        ) from error


def shown(word: bytes) -> str:
    """Return a word of a file as it appears in a message: quoted, escaped, not endless."""
    text = printable(decoded(word[:200]))
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"


def blank_words(buffer: Bytes, starts: Offsets, ends: Offsets) -> list[int]:
    """Return the rows whose word is empty or white space alone."""
    maybe = ends == starts
    has_bytes = np.flatnonzero(~maybe)
    maybe[has_bytes] = buffer[starts[has_bytes]] <= 32
    return [
        row
        for row in np.flatnonzero(maybe).tolist()
        if not buffer[starts[row] : ends[row]].tobytes().strip(WHITE)
    ]


def finite_rows(vectors: FloatArray) -> NDArray[np.bool_]:
    """Tell which rows hold neither NaN nor infinity."""
    return np.asarray(np.isfinite(vectors).all(axis=1), dtype=np.bool_)


def check_finite(embedding: Embedding, dtype: np.dtype[Any]) -> None:
    """Refuse vectors that hold NaN or infinity, or would once they are of `dtype`."""
    for first in range(0, len(embedding), 65536):
        block = embedding.vectors[first : first + 65536]
        with np.errstate(over="ignore"):
            is_finite = finite_rows(block.astype(dtype, copy=False))
        if not is_finite.all():
            row = int(np.argmin(is_finite))
            problem = "NaN or infinity"
            if np.isfinite(block[row]).all():
                problem = f"a number too large for {dtype}"
            raise InputError(
                f"The vector of {shown(encoded(embedding.words[first + row]))} holds {problem}. "
                "Leave the word out, or repair its vector."
            )


def packed(words: Iterable[bytes]) -> tuple[Bytes, Offsets]:
    """Return words as one run of bytes and the end of each in it."""
    listed = list(words)
    ends = np.cumsum([len(word) for word in listed], dtype=np.int64)
    return np.frombuffer(b"".join(listed), dtype=np.uint8), ends


class WantedWords:
    """Words to look for; most others are told apart by a compiled hash, without making objects."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))
        self.rank = {encoded(word): rank for rank, word in enumerate(self.words)}
        buffer, ends = packed(self.rank)
        size = 16
        while size < 8 * len(ends):
            size *= 2
        self._table = np.zeros(size, dtype=np.uint64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
        fill_table(buffer, starts, ends, self._table)

    def found_in(self, batch: Batch) -> tuple[Offsets, list[bytes]]:
        """Return which rows of `batch` are wanted, and their words."""
        maybe = np.empty(len(batch), dtype=np.int64)
        n_maybe = look_up(batch.buffer, batch.starts, batch.ends, self._table, maybe)
        rows: list[int] = []
        words: list[bytes] = []
        for row in maybe[:n_maybe].tolist():
            word = batch.word(row)
            if word in self.rank:
                rows.append(row)
                words.append(word)
        return np.array(rows, dtype=np.int64), words


@compiled_part
def hash_word(buffer: Bytes, start: int, end: int) -> np.uint64:
    """Return the 64-bit FNV-1a hash of some bytes, never 0."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(start, end):
        value = (value ^ np.uint64(buffer[place])) * np.uint64(0x100000001B3)
    return value | np.uint64(1)


@compiled
def fill_table(buffer: Bytes, starts: Offsets, ends: Offsets, table: NDArray[np.uint64]) -> None:
    """Put the hash of each word in an open-addressing table."""
    mask = np.uint64(len(table) - 1)
    for row in range(len(starts)):
        value = hash_word(buffer, starts[row], ends[row])
        slot = (value >> np.uint64(20)) & mask
        while table[slot] != 0 and table[slot] != value:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = value


@compiled
def look_up(
    buffer: Bytes, starts: Offsets, ends: Offsets, table: NDArray[np.uint64], hits: Offsets
) -> int:
    """Write the rows whose hash is in the table to `found`, and return how many there are."""
    mask = np.uint64(len(table) - 1)
    n_hits = 0
    for row in range(len(starts)):
        value = hash_word(buffer, starts[row], ends[row])
        slot = (value >> np.uint64(20)) & mask
        while table[slot] != 0 and table[slot] != value:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == value:
            hits[n_hits] = row
            n_hits += 1
    return n_hits
