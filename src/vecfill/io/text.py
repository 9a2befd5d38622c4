"""word2vec text and GloVe: a word and its numbers on each line, with a header or without."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import InputError
from vecfill.io.batches import MAX_WORD, WHITE, encoded, in_blocks, shown
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.comparing import difference_of_bytes
from vecfill.io.lines import TextStyle, has_header, header, needs_float64, new_header, sample_lines
from vecfill.io.numbers import NUMBER_TEXT as NUMBER
from vecfill.io.numbers import shortest_texts
from vecfill.io.sources import Source
from vecfill.io.text_rows import TextRows


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


class _Text(Codec[TextRows]):
    """What the two formats of text share; they differ in the header."""

    copies_rows = True
    has_header: ClassVar[bool]

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> TextRows:
        """Return the reader of a file's rows."""
        return TextRows(source, header=self.has_header, dtype=dtype)

    def may_be_features(self, source: Source) -> bool:
        """Tell whether the first line holds tabs or commas, or no number, as that of a table."""
        first, end, _ = source.head.partition(b"\n")
        if b"\t" in first or b"," in first:
            return True
        return bool(end) and not any(map(_is_number, first.split()[1:]))

    def needs_float64(self, source: Source) -> bool:
        """Tell whether the first rows hold more digits than float32 does."""
        return needs_float64(sample_lines(source))

    def notes_on_adding(self, rows: TextRows) -> tuple[str, ...]:
        """Tell that new rows have more digits than a file of coarse numbers."""
        if not rows.style.is_coarse:
            return ()
        return (
            f"{rows.source}: its numbers have one or two digits; rows that are added have as many "
            "as float32 needs.",
        )

    def word_of(self, entity: str) -> str:
        """Return the name with `_` for white space, which would end the word elsewhere."""
        return "_".join(entity.split())

    def check_words(self, words: Iterable[str]) -> None:
        """Refuse words that a text file cannot hold."""
        check_words(words)

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        if self.has_header:
            out.write(header(len(embedding), embedding.n_dims))
        out.writelines(rows_as_text(embedding, TextStyle()))

    def new_start(self, rows: TextRows, n_added: int) -> tuple[bytes, int]:
        """Return the header with the new count; without a header rows begin at once."""
        if rows.n_rows is None:
            return b"", 0
        return new_header(rows.source.head[: rows.body], rows.n_rows + n_added), rows.body

    def skim(self, rows: TextRows) -> None:
        """Learn whether the last line ends."""
        rows.ends_with_newline = rows.source.read_through() in (b"\n", b"\r")

    def added_rows(self, rows: TextRows, added: Embedding) -> Iterator[bytes]:
        """Return rows in the style of the file, after the end of a line that has none."""
        if not rows.ends_with_newline:
            yield rows.style.newline
        yield from rows_as_text(added, rows.style)

    def new_contents(
        self, rows: TextRows, spots: Sequence[Spot], vectors: FloatArray
    ) -> list[bytes]:
        """Return lines in the style of the file; white space at their ends stays as it is."""
        texts = _numbers_as_text(vectors, rows.style)
        return [
            spot.content[: len(spot.word) + 1] + text
            for spot, text in zip(spots, texts, strict=True)
        ]

    def difference(self, old: TextRows, new: TextRows) -> Difference | None:
        """Compare the bytes of the rows."""
        return difference_of_bytes(old, new, lines=True)


class Word2vecText(_Text):
    """word2vec text and fastText `.vec`: a line with count and dims, then the rows."""

    has_header = True

    def detects(self, source: Source) -> bool:
        """Tell whether the first line is a header."""
        return has_header(sample_lines(source))


class Glove(_Text):
    """GloVe: rows alone. Any file that no other format claims is read as this one."""

    has_header = False


def rows_as_text(added: Embedding, style: TextStyle) -> Iterator[bytes]:
    """Return rows as they stand in the file, some at a time."""
    check_words(added.words)
    separator = style.separator
    for words, vectors in in_blocks(added):
        yield b"".join(
            encoded(word) + separator + numbers + style.trailing + style.newline
            for word, numbers in zip(words, _numbers_as_text(vectors, style), strict=True)
        )


def _numbers_as_text(vectors: FloatArray, style: TextStyle) -> Iterable[bytes]:
    separator = style.separator.decode("ascii")
    if style.decimals is None and style.significant is None:
        texts = shortest_texts(vectors)
        if separator != " ":
            texts = pc.replace_substring(texts, " ", separator)
        return pc.cast(texts, pa.binary()).to_pylist()
    number_format = f"%.{style.decimals}f" if style.decimals else f"%.{style.significant}g"
    pattern = separator.join([number_format] * vectors.shape[1])
    return [(pattern % tuple(vector)).encode("ascii") for vector in vectors.tolist()]


def check_words(words: Iterable[str]) -> None:
    """Refuse words that a text file cannot hold."""
    for word in words:
        raw = encoded(word)
        last = re.split(rb"[ \t]", raw)[-1]
        if (
            not raw
            or b"\0" in raw
            or b"\n" in raw
            or b"\r" in raw
            or raw[0] in WHITE
            or raw[-1] in WHITE
            or len(raw) >= MAX_WORD
            or (len(last) < len(raw) and NUMBER.fullmatch(last))
        ):
            raise InputError(
                f"The word {shown(raw)} cannot stand in a text file: it is empty or too long, "
                "starts or ends with white space, holds a NUL or the end of a line, or ends in a "
                "space and a number. Write '_' for spaces, or choose another format, such as "
                "safetensors."
            )
