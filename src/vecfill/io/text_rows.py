"""The reader of text rows: a word and its numbers on each line, with a header or without.

Numbers are counted from the right, so that a word may hold spaces (GloVe 840B has some). Lines
end in LF, CRLF or CR, also mixed; blank lines are passed over and reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError
from vecfill.io.batches import MAX_DIMS, MAX_WORD, WHITE, Batch, Bytes, Offsets, shown
from vecfill.io.lines import BOM, n_trailing_numbers, parsed_header, sample_lines, text_style
from vecfill.io.numbers import NUMBER_TEXT as NUMBER
from vecfill.io.numbers import POWERS, about_large, check_rows, nearest_float, parse_rows
from vecfill.io.sources import MAX_LINE, Source
from vecfill.io.streams import Window
from vecfill.machine.compiled import compiled
from vecfill.wording import count

_WINDOW = 1 << 22
_NO_PROBLEM = -9


class TextRows:
    """The rows of a text file."""

    def __init__(self, source: Source, *, header: bool, dtype: np.dtype[Any] | None = None) -> None:
        self.source = source
        self.dtype: np.dtype[Any] = np.dtype(np.float32) if dtype is None else dtype
        self.notes: list[str] = []
        self.provenance: Mapping[str, str] = MappingProxyType({})
        self.n_rows: int | None = None
        self.ends_with_newline = True
        lines = sample_lines(source)
        if not lines and source.head.strip(WHITE):
            raise source.endless_line(1)
        if not lines:
            raise source.refuse("holds only blank lines. Pass a file with vectors in it.")
        self.bom = BOM if source.head.startswith(BOM) else b""
        self.body = len(self.bom)
        self.body_line = 1
        if header:
            self.n_rows, self.n_dims = parsed_header(source, lines[0])
            skipped = re.match(
                rb"(?:[ \t]*(?:\r\n|\n|\r))*[^\r\n]*(\r\n|\n|\r|$)", source.head[self.body :]
            )
            assert skipped is not None
            self.body += skipped.end()
            self.body_line += len(re.findall(rb"\r\n|\n|\r", skipped.group()))
            lines = lines[1:]
            if not lines:
                raise source.refuse(
                    f"the header says {self.n_rows} words, but the file holds 0 rows: "
                    "only a header. Fetch it again."
                )
        else:
            self.n_dims = self._most_common_dims(lines)
        self.style = text_style(source.first_lines, lines, self.n_dims)

    def _most_common_dims(self, lines: list[bytes]) -> int:
        counts = Counter(n_trailing_numbers(line) for line in lines)
        n_dims = max(counts, key=lambda count: counts[count])
        if n_dims == 0:
            fields = lines[0].split()
            after_word = shown(fields[1]) if len(fields) > 1 else "nothing"
            raise self.source.refuse(
                f"line 1: {after_word} follows the word {shown(fields[0])}, where numbers were "
                "expected. Rows are a word and its numbers with a space between and a point as "
                "decimal mark; if the file is of another kind, pass format=."
            )
        if n_dims > MAX_DIMS:
            raise self.source.refuse(
                f"line 1 has more than {MAX_DIMS} numbers. The file is damaged, or is no text."
            )
        return n_dims

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the rows; refuse the first bad one by its line number."""
        n_seen, n_blank, line = 0, 0, self.body_line
        with self.source.stream() as stream:
            stream.read(self.body)
            room = min(_WINDOW, self.source.max_size + 1)
            window = Window(stream, max(room, 1 << 12), self.body)
            while True:
                starts, ends, n_used, n_lines, line_numbers = split_lines(
                    window.buffer, window.end, window.at_end
                )
                if n_used == 0 and not window.at_end:
                    if len(window.buffer) >= MAX_LINE:
                        raise self.source.endless_line(line)
                    window.grow()
                    continue
                n_blank += n_lines - len(starts)
                if len(starts):
                    for batch in self._batches_of(window, starts, ends, line + line_numbers, whole):
                        n_seen += len(batch)
                        yield batch
                line += n_lines
                if window.at_end:
                    last = window.buffer[window.end - 1] if window.end else 10
                    self.ends_with_newline = bool(last in (10, 13))
                    break
                window.advance(n_used)
        if n_blank:
            blank = count(n_blank, "blank line was", "blank lines were")
            self.notes.append(f"{self.source}: {blank} skipped.")
        self._check_count(n_seen)

    def _batches_of(
        self, window: Window, starts: Offsets, ends: Offsets, lines: Offsets, whole: bool
    ) -> Iterator[Batch]:
        """Yield the rows of one window: checked and not yet parsed, as far as that will do."""
        n_sure = 0
        if not whole:
            word_ends = np.empty(len(starts), dtype=np.int64)
            n_sure = check_rows(window.buffer, starts, ends, self.n_dims, word_ends, POWERS)
            if n_sure:
                sure = slice(n_sure)
                self._check_words(window, starts[sure], word_ends[sure], lines[sure])
                yield self._checked(window, starts[sure], ends[sure], word_ends[sure], lines[sure])
        while n_sure < len(starts):
            remaining = slice(n_sure, None)
            vectors, word_ends = self._parsed(
                window, starts[remaining], ends[remaining], lines[remaining]
            )
            parsed_rows = slice(n_sure, n_sure + len(vectors))
            self._check_words(window, starts[parsed_rows], word_ends, lines[parsed_rows])
            yield _batch(
                window, starts[parsed_rows], word_ends, ends[parsed_rows], vectors.__getitem__
            )
            n_sure += len(vectors)

    def _checked(
        self, window: Window, starts: Offsets, ends: Offsets, word_ends: Offsets, lines: Offsets
    ) -> Batch:
        def take(rows: Offsets) -> FloatArray:
            vectors_out = np.empty((len(rows), self.n_dims), dtype=self._parsed_dtype)
            n_parsed = 0
            while n_parsed < len(rows):
                remaining_rows = rows[n_parsed:]
                vectors, _ = self._parsed(
                    window, starts[remaining_rows], ends[remaining_rows], lines[remaining_rows]
                )
                vectors_out[n_parsed : n_parsed + len(vectors)] = vectors
                n_parsed += len(vectors)
            return vectors_out

        return _batch(window, starts, word_ends, ends, take)

    @property
    def _parsed_dtype(self) -> type[np.float32] | type[np.float64]:
        return np.float32 if self.dtype.itemsize < 8 else np.float64

    def _parsed(
        self, window: Window, starts: Offsets, ends: Offsets, lines: Offsets
    ) -> tuple[FloatArray, Offsets]:
        """Parse lines, as many of the first as there is room for numbers that need more care."""
        n_most = int((ends - starts).sum()) // (2 * self.n_dims) + 1
        n_rows = min(len(starts), n_most)
        out = np.empty((n_rows, self.n_dims), dtype=self._parsed_dtype)
        word_ends = np.empty(n_rows, dtype=np.int64)
        hard = np.empty((max(4096, self.n_dims), 4), dtype=np.int64)
        single = self.dtype.itemsize < 8
        n_parsed, n_hard, problem = parse_rows(
            window.buffer, starts[:n_rows], ends[:n_rows], out, word_ends, hard, POWERS, single
        )
        if problem != _NO_PROBLEM:
            raw = window.buffer[starts[n_parsed] : ends[n_parsed]].tobytes()
            raise self._bad_line(raw, int(lines[n_parsed]), problem)
        for row, column, start, end in hard[:n_hard].tolist():
            text = window.buffer[start:end].tobytes()
            out[row, column] = nearest_float(text.decode("ascii"), out.dtype)
            if not np.isfinite(out[row, column]):
                problem = about_large(text, self.dtype)
                raise self.source.refuse(f"line {lines[row]}: {problem}")
        return out[:n_parsed], word_ends[:n_parsed]

    def _check_words(
        self, window: Window, starts: Offsets, word_ends: Offsets, lines: Offsets
    ) -> None:
        for row in odd_words(window.buffer, starts, word_ends).tolist():
            word = window.buffer[starts[row] : word_ends[row]].tobytes()
            where = f"line {lines[row]}: "
            if not word.strip(WHITE):
                raise self.source.refuse(
                    f"{where}the word is empty or white space alone. "
                    "Give it a name or drop the line."
                )
            if word[-1] in WHITE:
                raise self.source.refuse(
                    f"{where}an empty field between the word {shown(word.rstrip(WHITE))} and its "
                    f"{self.n_dims} numbers. Put one space between fields."
                )
            if len(word) >= MAX_WORD:
                raise self.source.refuse(
                    f"{where}a word of {len(word)} bytes, {shown(word)}. The file is damaged."
                )
            if NUMBER.fullmatch(re.split(rb"[ \t]", word)[-1]) and re.search(rb"[ \t]", word):
                raise self.source.refuse(
                    f"{where}too many numbers after the word {shown(word.split()[0])}: "
                    f"{n_trailing_numbers(word) + self.n_dims} instead of {self.n_dims}. "
                    "Correct the line; if the number belongs to the word, write '_' for the space."
                )

    def _bad_line(self, raw: bytes, line: int, problem: int) -> FormatError:
        fields = re.split(rb"[ \t]", raw)
        word = shown(fields[0])
        if problem == -2 or (problem == -1 and not fields[0]):
            return self.source.refuse(
                f"line {line}: the word is empty or white space alone. "
                "Give it a name or drop the line."
            )
        if problem >= 0 and len(fields) > self.n_dims:
            field = fields[problem - self.n_dims]
            fault = f"{shown(field)} is not a finite number" if field else "an empty number"
            bad = [field_text for field_text in fields[1:] if not NUMBER.fullmatch(field_text)]
            if not (field and n_trailing_numbers(raw) < self.n_dims and len(bad) > 1):
                return self.source.refuse(
                    f"line {line}: {fault}, in the row of {word}, dimension {problem + 1} of "
                    f"{self.n_dims}. Numbers are written like -0.25 or 1e-3, one space between."
                )
        n_numbers = n_trailing_numbers(raw)
        return self.source.refuse(
            f"line {line}: too few numbers after the word {word}: {n_numbers} instead of "
            f"{self.n_dims}. Correct the line, or fetch the file again."
        )

    def _check_count(self, n_seen: int) -> None:
        if self.n_rows is not None and n_seen != self.n_rows:
            problem = "was cut short" if n_seen < self.n_rows else "holds more than its header says"
            raise self.source.refuse(
                f"the header says {self.n_rows} words of {self.n_dims} dimensions, but the file "
                f"holds {n_seen} rows. It {problem}: fetch it again, or correct its first line "
                "(or pass format='glove' if that line is a word and its number)."
            )


def _batch(
    window: Window,
    starts: Offsets,
    word_ends: Offsets,
    ends: Offsets,
    take: Callable[[Offsets], FloatArray],
) -> Batch:
    is_finite = np.ones(len(starts), dtype=np.bool_)
    return Batch(window.buffer, starts, word_ends, take, is_finite, window.offset, ends)


@compiled
def split_lines(
    buffer: Bytes, end: int, at_end: bool
) -> tuple[Offsets, Offsets, int, int, Offsets]:
    """Return starts and ends of lines that are not blank, bytes used, lines, and line numbers.

    Ends leave out trailing spaces. A CR at the very end of the buffer waits for its LF.
    """
    n_most = 1
    for place in range(end):
        n_most += buffer[place] == 10 or buffer[place] == 13
    starts = np.empty(n_most, dtype=np.int64)
    ends = np.empty(n_most, dtype=np.int64)
    numbers = np.empty(n_most, dtype=np.int64)
    n_kept = 0
    n_lines = 0
    start = 0
    place = 0
    while place <= end:
        # No byte above CR ends a line, and nearly all are above it: this loop is the hot one. An
        # unsigned index spares the test for negative ones.
        while place < end and buffer[np.uintp(place)] > 13:
            place += 1
        if place == end:
            if not at_end or start == end:
                break
        elif buffer[place] != 10 and buffer[place] != 13:
            place += 1
            continue
        elif buffer[place] == 13 and place + 1 == end and not at_end:
            break
        stop = place
        while stop > start and (buffer[stop - 1] == 32 or buffer[stop - 1] == 9):
            stop -= 1
        if stop > start:
            starts[n_kept] = start
            ends[n_kept] = stop
            numbers[n_kept] = n_lines
            n_kept += 1
        n_lines += 1
        if place + 1 < end and buffer[place] == 13 and buffer[place + 1] == 10:
            place += 1
        place += 1
        start = place
    return starts[:n_kept], ends[:n_kept], min(start, end), n_lines, numbers[:n_kept]


@compiled
def odd_words(buffer: Bytes, starts: Offsets, ends: Offsets) -> NDArray[np.int64]:
    """Return the rows whose word holds white space or is very long, to be looked at one by one."""
    odd = np.empty(len(starts), dtype=np.int64)
    n_odd = 0
    for row in range(len(starts)):
        is_odd = ends[row] - starts[row] >= 65536
        for place in range(starts[row], ends[row]):
            if buffer[place] == 32 or 9 <= buffer[place] <= 13:
                is_odd = True
        if is_odd:
            odd[n_odd] = row
            n_odd += 1
    return odd[:n_odd]
