"""word2vec binary: a line with count and dims, then each word, a space, and float32 numbers.

The C program writes a newline after each row, gensim does not; both are read, and rows are
appended in the file's own way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError, InputError
from vecfill.io.batches import MAX_WORD, WHITE, Batch, Bytes, Offsets, encoded, in_blocks, shown
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.comparing import difference_of_bytes
from vecfill.io.lines import header, n_trailing_numbers, new_header, parsed_header
from vecfill.io.sources import Source
from vecfill.io.streams import Window
from vecfill.machine.compiled import compiled, compiled_part

SINGLE = np.dtype("<f4")
_WINDOW = 1 << 21
_FEW_ROWS, _FEW_BYTES = 20_000, 1 << 21
"""Files up to here are scanned without Numba, which takes longer to load than they to read."""

_SAMPLE, _N_LINES = 4096, 3
"""Bytes and lines that must be those of a text for a file with NUL bytes to be taken for one."""

MORE, FULL, ENDLESS, EMPTY = 0, 1, 2, 3
"""Why a scan ends: more bytes are needed, all places are taken, a word has no end or no letter."""

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1b]")


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
            views = [
                np.frombuffer(window.buffer, np.int32, (len(window.buffer) - shift) // 4, shift)
                for shift in range(4)
            ]
            is_small = self.n_rows <= _FEW_ROWS and self.source.max_size <= _FEW_BYTES
            scanned: Callable[..., tuple[int, int, int]] = scan_few_rows if is_small else scan_rows
            while True:
                n_rows, n_used, status = scanned(
                    window.buffer, window.end, *views, self.n_dims, starts, ends, places, is_finite
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
                    raise self._bad_word(status, window.offset + n_used, n_seen)
                if window.at_end:
                    break
                window.advance(n_used)
            tail = window.buffer[n_used : window.end].tobytes()
            self.ends_with_newline = tail.endswith(b"\n")
            self._check_count(n_seen, tail, window.offset + n_used)

    def _batch(
        self, window: Window, lines: Offsets, is_finite: NDArray[np.bool_], *, is_small: bool
    ) -> Batch:
        starts, ends, places = (line.copy() for line in lines)

        def take(rows: Offsets) -> FloatArray:
            if is_small:
                rows_out = window.buffer[places[rows, None] + np.arange(4 * self.n_dims)]
            else:
                rows_out = np.empty((len(rows), 4 * self.n_dims), dtype=np.uint8)
                gather(window.buffer, places[rows], rows_out)
            return rows_out.view(SINGLE)

        row_ends = places + 4 * self.n_dims
        return Batch(window.buffer, starts, ends, take, is_finite, window.offset, row_ends)

    def _bad_word(self, status: int, offset: int, row: int) -> FormatError:
        problem = (
            f"a word without end: no space in the {MAX_WORD} bytes"
            if status == ENDLESS
            else "an empty word, or one of white space alone,"
        )
        return self.source.refuse(
            f"{problem} from byte offset {offset} on (row {row + 1} of {self.n_rows}). The file is "
            f"damaged, or its rows do not have {self.n_dims} dimensions. Fetch it again."
        )

    def _check_count(self, n_seen: int, tail: bytes, offset: int) -> None:
        if n_seen == self.n_rows and not tail.strip(WHITE):
            return
        cut = ""
        if tail.strip(WHITE):
            word, space, _ = tail.removeprefix(b"\n").partition(b" ")
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
    if lines and all(
        len(text_line.split()) > 1 and n_trailing_numbers(text_line) for text_line in lines
    ):
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


def scan_few_rows(
    buffer: Bytes,
    end: int,
    *views_and_dims: Any,
) -> tuple[int, int, int]:
    """Do what `scan_rows` does, in plain Python."""
    n_dims, starts, ends, places, is_finite = views_and_dims[4:]
    content = buffer[:end].tobytes()
    place = 0
    for row in range(len(starts)):
        start = place + (content[place : place + 1] == b"\n")
        limit = min(end, start + MAX_WORD)
        stop = content.find(b" ", start, limit)
        if stop < 0:
            return row, place, ENDLESS if limit == start + MAX_WORD else MORE
        if not content[start:stop].strip(WHITE):
            return row, place, EMPTY
        first = stop + 1
        if first + 4 * n_dims > end:
            return row, place, MORE
        vector = np.frombuffer(content, SINGLE, n_dims, first)
        is_finite[row] = np.isfinite(vector).all()
        starts[row], ends[row], places[row] = start, stop, first
        place = first + 4 * n_dims
    return len(starts), place, FULL


@compiled
def scan_rows(
    buffer: Bytes,
    end: int,
    view0: NDArray[np.int32],
    view1: NDArray[np.int32],
    view2: NDArray[np.int32],
    view3: NDArray[np.int32],
    n_dims: int,
    starts: Offsets,
    ends: Offsets,
    places: Offsets,
    is_finite: NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Find the whole rows in `buffer[:end]`; return their number, the bytes used and a status.

    Rows start at any byte, so the numbers are looked at through the one of four shifted views
    that fits.
    """
    place = 0
    n_rows = 0
    while n_rows < len(starts):
        start = place
        if start < end and buffer[start] == 10:
            start += 1
        stop = start
        limit = min(end, start + 65536)
        is_white = True
        while stop < limit and buffer[stop] != 32:
            if not (9 <= buffer[stop] <= 13):
                is_white = False
            stop += 1
        if stop == limit:
            return n_rows, place, 2 if limit == start + 65536 else 0
        if is_white:
            return n_rows, place, 3
        first = stop + 1
        if first + 4 * n_dims > end:
            return n_rows, place, 0
        shift = first & 3
        if shift == 0:
            is_finite[n_rows] = all_finite(view0, first >> 2, n_dims)
        elif shift == 1:
            is_finite[n_rows] = all_finite(view1, first >> 2, n_dims)
        elif shift == 2:
            is_finite[n_rows] = all_finite(view2, first >> 2, n_dims)
        else:
            is_finite[n_rows] = all_finite(view3, first >> 2, n_dims)
        starts[n_rows] = start
        ends[n_rows] = stop
        places[n_rows] = first
        n_rows += 1
        place = first + 4 * n_dims
    return n_rows, place, 1


@compiled_part
def all_finite(view: NDArray[np.int32], first: int, n: int) -> bool:
    """Tell whether no exponent is all ones; written without a branch, so that it is vectorised."""
    n_bad = 0
    for place in range(first, first + n):
        n_bad += (view[place] & 0x7F800000) == 0x7F800000
    return n_bad == 0


@compiled
def gather(buffer: Bytes, places: Offsets, out: Bytes) -> None:
    """Copy the bytes of vectors to the rows of `taken`."""
    for row in range(len(places)):
        out[row, :] = buffer[places[row] : places[row] + out.shape[1]]
