"""word2vec binary: a line with count and dims, then each word, a space, and float32 numbers.

The C program writes a newline after each row, gensim does not; both are read, and rows are
appended in the file's own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError, InputError
from vecfill.io.batches import WHITE, Batch, Offsets, encoded, in_blocks, shown
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.comparing import difference_of_bytes
from vecfill.io.lines import BOM, n_trailing_numbers
from vecfill.io.sources import Source
from vecfill.io.streams import Window
from vecfill.io.word2vec_scan import (
    EMPTY,
    ENDLESS,
    MAX_WORD,
    SINGLE,
    gather,
    scan_few_rows,
    scan_rows,
)

MAX_DIMS = 1_000_000
_WINDOW = 1 << 21
_FEW_ROWS, _FEW_BYTES = 20_000, 1 << 21
"""Files up to here are scanned without Numba, which takes longer to load than they to read."""

_SAMPLE, _N_LINES = 4096, 3
"""Bytes and lines that must be those of a text for a file with NUL bytes to be taken for one."""

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1b]")


def parsed_header(source: Source, line: bytes) -> tuple[int, int]:
    """Return count and dims of a word2vec header, refused before anything is allocated."""
    fields = line.split()
    if len(fields) != 2 or not all(re.fullmatch(rb"[+-]?[0-9]+", field) for field in fields):
        raise source.refuse(
            f"line 1 is {shown(line)}, but a word2vec file starts with two whole numbers, "
            "the count of words and of dimensions. Check what kind of file it is, and pass format=."
        )
    if max(len(field) for field in fields) > 18:
        raise source.refuse(
            f"the header {shown(line)} holds a number that is far too large. Fetch it again."
        )
    n_rows, n_dims = int(fields[0]), int(fields[1])
    if n_rows < 1 or n_dims < 1:
        raise source.refuse(
            f"the header says {n_rows} words of {n_dims} dimensions; both must be at least 1. "
            "Fetch the file again, or correct its first line."
        )
    if n_dims > MAX_DIMS:
        raise source.refuse(
            f"the header says {n_dims} dimensions, but vectors have at most {MAX_DIMS} here. "
            "Fetch the file again, or correct its first line."
        )
    return n_rows, n_dims


class BinaryRows:
    """The rows of a word2vec binary file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        line, newline, _ = source.head[:1000].partition(b"\n")
        _refuse_text_with_nul(source, line)
        if not newline:
            raise source.refuse(
                "has no header line in its first 1000 bytes. Check what kind of file it is, "
                "and pass format=."
            )
        self.n_rows, self.n_dims = parsed_header(source, line)
        self.body = len(line) + 1
        self.dtype: np.dtype[Any] = SINGLE
        self.notes: list[str] = []
        self.provenance: Mapping[str, str] = MappingProxyType({})
        self.has_newlines = False
        self.ends_with_newline = False
        if self.body + 4 * self.n_dims > source.max_size:
            raise source.refuse(
                f"the header says {self.n_rows} words of {self.n_dims} dimensions, but not even "
                f"one row of {4 * self.n_dims} bytes fits in {source.size} bytes: 0 rows are "
                "present. Fetch the file again."
            )

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the rows, and refuse a count that is not the header's."""
        del whole
        row_bytes = 4 * self.n_dims
        n_seen = 0
        with self.source.stream() as stream:
            stream.read(self.body)
            room = min(_WINDOW, self.source.max_size)
            window = Window(stream, max(room, 2 * (MAX_WORD + row_bytes)), self.body)
            starts, ends, places = lines = np.empty(
                (3, len(window.buffer) // (row_bytes + 2) + 1), dtype=np.int64
            )
            is_finite = np.empty(len(starts), dtype=np.bool_)
            view0, view1, view2, view3 = (
                np.frombuffer(window.buffer, np.int32, (len(window.buffer) - shift) // 4, shift)
                for shift in range(4)
            )
            is_small = self.n_rows <= _FEW_ROWS and self.source.max_size <= _FEW_BYTES
            scanned = scan_few_rows if is_small else scan_rows
            while True:
                n_rows, used, status = scanned(
                    window.buffer,
                    window.end,
                    view0,
                    view1,
                    view2,
                    view3,
                    self.n_dims,
                    starts,
                    ends,
                    places,
                    is_finite,
                )
                if n_rows:
                    if n_seen == 0:
                        after = int(lines[2, 0]) + row_bytes
                        self.has_newlines = after < window.end and window.buffer[after] == 10
                    n_seen += n_rows
                    # Past the header's count rows are only counted, to name both counts below.
                    if n_seen <= self.n_rows:
                        yield self._batch(
                            window, lines[:, :n_rows], is_finite[:n_rows].copy(), is_small=is_small
                        )
                if status in (ENDLESS, EMPTY):
                    raise self._bad_word(status, window.offset + used, n_seen)
                if window.at_end:
                    break
                window.advance(used)
            rest = window.buffer[used : window.end].tobytes()
            self.ends_with_newline = rest.endswith(b"\n")
            self._check_count(n_seen, rest, window.offset + used)

    def _batch(
        self, window: Window, lines: Offsets, is_finite: NDArray[np.bool_], *, is_small: bool
    ) -> Batch:
        starts, ends, places = (line.copy() for line in lines)

        def take(rows: Offsets) -> FloatArray:
            if is_small:
                taken = window.buffer[places[rows, None] + np.arange(4 * self.n_dims)]
            else:
                taken = np.empty((len(rows), 4 * self.n_dims), dtype=np.uint8)
                gather(window.buffer, places[rows], taken)
            return taken.view(SINGLE)

        row_ends = places + 4 * self.n_dims
        return Batch(window.buffer, starts, ends, take, is_finite, window.offset, row_ends)

    def _bad_word(self, status: int, offset: int, row: int) -> FormatError:
        what = (
            f"a word without end: no space in the {MAX_WORD} bytes"
            if status == ENDLESS
            else "an empty word, or one of white space alone,"
        )
        return self.source.refuse(
            f"{what} from byte offset {offset} on (row {row + 1} of {self.n_rows}). The file is "
            f"damaged, or its rows do not have {self.n_dims} dimensions. Fetch it again."
        )

    def _check_count(self, n_seen: int, rest: bytes, offset: int) -> None:
        if n_seen == self.n_rows and not rest.strip(WHITE):
            return
        cut = ""
        if rest.strip(WHITE):
            word, space, _ = rest.removeprefix(b"\n").partition(b" ")
            where = f"vector of {shown(word)}" if space else f"word {shown(word)}"
            cut = f" and then ends in the middle of the {where}, in the row at byte offset {offset}"
        problem = "was cut short" if n_seen < self.n_rows else "holds more than its header says"
        raise self.source.refuse(
            f"the header says {self.n_rows} words of {self.n_dims} dimensions, but the file holds "
            f"{n_seen} whole rows{cut}. It {problem}: fetch it again, or correct its first line."
        )


def _refuse_text_with_nul(source: Source, line: bytes) -> None:
    """Refuse a text that a NUL byte makes look like a binary file."""
    place = source.head.find(b"\0")
    if place < 0:
        return
    is_header = len(line.split()) == 2
    lines = source.head[:_SAMPLE].replace(b"\0", b"").splitlines()[is_header:][:_N_LINES]
    if lines and all(len(each.split()) > 1 and n_trailing_numbers(each) for each in lines):
        number = source.head.count(b"\n", 0, place) + 1
        raise source.refuse(
            f"line {number} holds a NUL byte, at byte offset {place}, which no text has. "
            "Remove it, or fetch the file again."
        )


class Word2vecBinary(Codec[BinaryRows]):
    """word2vec binary, as the C program and gensim write it."""

    copies_rows = True

    def detects(self, source: Source) -> bool:
        """Tell whether bytes stand where a text would have numbers."""
        head, suffix = source.head, source.suffix
        line, _, body = head.partition(b"\n")
        fields = line.split()
        if len(fields) == 2 and fields[1].isdigit() and len(fields[1]) < 8:
            payload = body[: body.find(b" ") + 1 + 4 * int(fields[1])]
            if _CONTROL.search(payload):
                return True
            if n_trailing_numbers(re.split(rb"[\r\n]", body, maxsplit=1)[0]):
                return False
            return not payload.isascii() or (suffix == ".bin" and body.strip() != b"")
        return b"\0" in head or (suffix == ".bin" and _CONTROL.search(head) is not None)

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> BinaryRows:
        """Return the reader of a file's rows, which are float32."""
        del dtype
        return BinaryRows(source)

    def word_of(self, entity: str) -> str:
        """Return the name with `_` for white space, which would end the word."""
        return "_".join(entity.split())

    def check_words(self, words: Iterable[str]) -> None:
        """Refuse words that word2vec binary cannot hold."""
        check_words(words)

    def dtype_of(self, embedding: Embedding) -> np.dtype[Any]:
        """Return float32, the one type there is."""
        del embedding
        return SINGLE

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        out.write(header(len(embedding), embedding.n_dims))
        out.writelines(rows_as_bytes(embedding, newlines=False))

    def new_start(self, rows: BinaryRows, n_added: int) -> tuple[bytes, int]:
        """Return the header with the new count."""
        return new_header(rows.source.head[: rows.body], rows.n_rows + n_added), rows.body

    def skim(self, rows: BinaryRows) -> None:
        """Learn whether rows end in newlines; only a pass over all of them can tell."""
        for _ in rows.batches():
            pass

    def added_rows(self, rows: BinaryRows, added: Embedding) -> Iterator[bytes]:
        """Return rows with a newline after each if the file has them."""
        if rows.has_newlines and not rows.ends_with_newline:
            yield b"\n"
        yield from rows_as_bytes(added, newlines=rows.has_newlines)

    def new_contents(
        self, rows: BinaryRows, spots: Sequence[Spot], vectors: FloatArray
    ) -> list[bytes]:
        """Return words and numbers, in the length they had."""
        del rows
        single = np.ascontiguousarray(vectors, dtype=SINGLE)
        return [
            spot.word + b" " + vector.tobytes() for spot, vector in zip(spots, single, strict=True)
        ]

    def difference(self, old: BinaryRows, new: BinaryRows) -> Difference | None:
        """Compare the bytes of the rows."""
        return difference_of_bytes(old, new)


def header(n_rows: int, n_dims: int) -> bytes:
    """Return the first line of a word2vec file."""
    return b"%d %d\n" % (n_rows, n_dims)


def new_header(old: bytes, n_rows: int) -> bytes:
    """Return the header with another count, and with the BOM and line ending it had."""
    counted = re.sub(rb"[0-9]+", str(n_rows).encode("ascii"), old.removeprefix(BOM), count=1)
    return (BOM if old.startswith(BOM) else b"") + counted.replace(b"+", b"")


def rows_as_bytes(added: Embedding, *, newlines: bool) -> Iterator[bytes]:
    """Return rows as they stand in the file, some at a time."""
    ending = b"\n" if newlines else b""
    check_words(added.words)
    for words, vectors in in_blocks(added):
        single = np.ascontiguousarray(vectors, dtype=SINGLE)
        yield b"".join(
            encoded(word) + b" " + vector.tobytes() + ending
            for word, vector in zip(words, single, strict=True)
        )


def check_words(words: Iterable[str]) -> None:
    """Refuse words that word2vec binary cannot hold."""
    for word in words:
        raw = encoded(word)
        if not raw or any(byte in raw for byte in WHITE) or len(raw) >= MAX_WORD:
            raise InputError(
                f"The word {shown(raw)} is empty, too long or holds white space, which ends a word "
                "in a word2vec binary file. Write '_' for spaces, or choose another format."
            )
