"""CSV and TSV: a line of names, a column `word` and one column per dimension."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import InputError
from vecfill.io.batches import MAX_DIMS, WantedWords, encoded, in_blocks, shown
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.columnar import WORD, ColumnarRows, refusing
from vecfill.io.comparing import difference_of_tables
from vecfill.io.cutting import Record, arrow_options, cells_of, quoted, records_of, unquoted
from vecfill.io.lines import needs_float64, sample_lines
from vecfill.io.numbers import MAX_NUMBER, about_large, nearest_float, shortest_texts
from vecfill.io.numbers import NUMBER_TEXT as NUMBER
from vecfill.io.sources import Source

_BLOCK_BYTES = 1 << 22


class DelimitedRows(ColumnarRows):
    """The rows of a CSV or TSV file; cells are bytes until they are parsed as numbers."""

    delimiter: ClassVar[bytes]
    _n_header_lines = 1

    def _own_dtype(self, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
        return np.dtype(np.float32) if dtype is None else dtype

    def _read_schema(self) -> pa.Schema:
        fields = self._header_fields()
        if len(set(fields)) != len(fields):
            raise self.source.refuse("has two columns of one name. Rename one of them.")
        return pa.schema([(name, pa.binary()) for name in fields])

    def _choose_numbers(self, schema: pa.Schema, word: str) -> tuple[tuple[str, ...], bool]:
        numbers = tuple(name for name in schema.names if name != word)
        if not numbers:
            raise self.source.refuse(
                f"has no columns of numbers beside {word!r}. Write one column per dimension."
            )
        return numbers, False

    def _header_fields(self) -> list[str]:
        """Return the names of columns, and count the lines that they and blank ones take."""
        record = next(self._records([self.source.first_lines]), None)
        if record is None:
            return []
        if record.cells is None:
            raise self.source.refuse(
                "its line of names cannot be read: a quote is not closed. Correct it."
            )
        self._n_header_lines = record.line + len(re.findall(rb"\r\n|\n|\r", record.content))
        return [unquoted(cell).decode("utf-8", "replace") for cell in record.cells]

    def _records(self, blocks: Iterable[bytes]) -> Iterator[Record]:
        return records_of(blocks, self.delimiter)

    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        # Columns go by number: names may hold what Arrow's reader would split them at.
        kinds = {str(place): pa.binary() for place in range(len(self.schema.names))}
        options = arrow_options(
            kinds,
            self.delimiter.decode("ascii"),
            quotes=True,
            block_bytes=_BLOCK_BYTES,
            n_header_lines=self._n_header_lines,
        )
        try:
            with pa_csv.open_csv(self.source.file(), **options) as reader:
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        except pa.ArrowInvalid as error:
            ragged_row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
            if ragged_row is None:
                raise
            row, expected, n_fields = ragged_row.groups()
            raise self.source.refuse(
                f"row {row} has {n_fields} fields instead of {expected}. Correct the row."
            ) from error

    def _numbers(self, column: Any, name: str, first: int) -> Any:
        kind = pa.float32() if self.dtype.itemsize < 8 else pa.float64()
        with contextlib.suppress(pa.ArrowInvalid):
            parsed = pc.cast(pc.cast(column, pa.string()), kind)
            if np.isfinite(parsed.to_numpy(zero_copy_only=False)).all():
                return parsed
        for row, text in enumerate(column.to_pylist()):
            where = f"row {first + row + 1}, column {name!r}: "
            if not NUMBER.fullmatch(text) or len(text) > MAX_NUMBER:
                problem = f"{shown(text)} is not a finite number" if text else "no number"
                raise self.source.refuse(
                    f"{where}{problem}. Numbers are written like -0.25 or 1e-3, with a point as "
                    "decimal mark."
                )
            if not np.isfinite(nearest_float(text.decode("ascii"), self.dtype)):
                raise self.source.refuse(where + about_large(text, self.dtype))
        raise self.source.refuse(f"column {name!r} cannot be read as numbers. Save it again.")

    @property
    def place_of_word(self) -> int:
        """Which column holds the words, from 0; all others hold numbers."""
        return self.schema.names.index(self.columns.word)

    def records(self, stream: Any) -> Iterator[Record]:
        """Return the records of the content, without the header, and their places."""
        return islice(self._records(iter(lambda: stream.read(_BLOCK_BYTES), b"")), 1, None)

    def checked(self, cells: list[bytes] | None, record: bytes) -> list[bytes]:
        """Return the cells of a record if there is one for each column."""
        if cells is None or len(cells) != len(self.schema.names):
            raise self.source.refuse(
                f"the record {shown(record)} cannot be cut into {len(self.schema.names)} cells. "
                "Correct its quotes."
            )
        return cells


class CsvRows(DelimitedRows):
    """The rows of a CSV file."""

    kind = "csv"
    delimiter = b","


class TsvRows(DelimitedRows):
    """The rows of a TSV file."""

    kind = "tsv"
    delimiter = b"\t"


class _Delimited(Codec[DelimitedRows]):
    """What CSV and TSV share; they differ in the delimiter."""

    is_table = True
    copies_rows = True
    rows: ClassVar[type[DelimitedRows]]

    def detects(self, source: Source) -> bool:
        """Tell by the suffix, or by a line of names and then one of numbers."""
        if source.suffix in (".csv", ".tsv"):
            return source.suffix in self.suffixes
        return _is_table(sample_lines(source), self.rows.delimiter)

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> DelimitedRows:
        """Return the reader of a file's rows."""
        return self.rows(source, dtype)

    def needs_float64(self, source: Source) -> bool:
        """Tell whether the first rows hold more digits than float32 does."""
        return needs_float64(sample_lines(source))

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        names = (f"d{dim}".encode("ascii") for dim in range(embedding.n_dims))
        delimiter = self.rows.delimiter
        out.write(delimiter.join([WORD.encode("ascii"), *names]) + b"\n")
        out.writelines(_rows_as_csv(embedding, delimiter, b"\n"))

    def added_rows(self, rows: DelimitedRows, added: Embedding) -> Iterator[bytes]:
        """Return rows with the line ending of the file, where words are the first column."""
        ending = re.search(rb"\r\n|\n|\r", rows.source.head)
        newline = ending.group() if ending else b"\n"
        file = rows.source.file()
        file.seek(-1, os.SEEK_END)
        if file.read(1) not in b"\r\n":
            yield newline
        first = rows.schema.names[0]
        if first != rows.columns.word:
            raise InputError(
                f"{rows.source}: rows can be added only where the words are the first column; here "
                f"that is {first!r}. Move {rows.columns.word!r} to the front."
            )
        yield from _rows_as_csv(added, rows.delimiter, newline)

    def spots(self, rows: DelimitedRows, wanted_words: WantedWords) -> list[Spot]:
        """Return the first records of words; Arrow parses them but does not tell their places."""
        spot_of = {spot.row: spot for spot in super().spots(rows, wanted_words)}
        spots: list[Spot] = []
        with rows.source.stream() as stream:
            for row, record in enumerate(rows.records(stream)):
                if row in spot_of:
                    word = spot_of[row].word
                    cells = rows.checked(record.cells, record.content)
                    if unquoted(cells[rows.place_of_word]) != word:
                        raise rows.source.refuse(
                            f"it cannot be told where row {row + 1}, {shown(word)}, stands. "
                            "Put quotes around cells that hold quotes, and save it again."
                        )
                    spots.append(Spot(word, row, record.offset, record.content))
        return spots

    def new_contents(
        self, rows: DelimitedRows, spots: Sequence[Spot], vectors: FloatArray
    ) -> list[bytes]:
        """Return records with other numbers; the cell of the word stays as it is written."""
        contents: list[bytes] = []
        for spot, text in zip(spots, shortest_texts(vectors).to_pylist(), strict=True):
            cells = text.encode("ascii").split(b" ")
            before = rows.checked(cells_of(spot.content, rows.delimiter), spot.content)
            cells.insert(rows.place_of_word, before[rows.place_of_word])
            contents.append(rows.delimiter.join(cells))
        return contents

    def difference(self, old: DelimitedRows, new: DelimitedRows) -> Difference | None:
        """Compare the names of columns and the text of all cells."""
        with refusing(new.source, self.name):
            return difference_of_tables(old, new)


class Csv(_Delimited):
    """CSV files."""

    rows = CsvRows


class Tsv(_Delimited):
    """TSV files."""

    rows = TsvRows


def _is_table(lines: list[bytes], delimiter: bytes) -> bool:
    if len(lines) < 2:
        return False
    if lines[0].count(delimiter) > MAX_DIMS:
        return False
    names, row = lines[0].split(delimiter), lines[1].rsplit(delimiter, lines[0].count(delimiter))
    return (
        len(names) > 1
        and len(names) == len(row)
        and all(NUMBER.fullmatch(field) for field in row[1:])
        and not any(NUMBER.fullmatch(field) for field in names[1:])
    )


def _rows_as_csv(added: Embedding, delimiter: bytes, newline: bytes) -> Iterator[bytes]:
    """Return rows of CSV or TSV, some at a time; words are quoted where they must be."""
    for word in added.words:
        if not word.strip() or "\0" in word:
            raise InputError(f"The word {word!r} is blank or holds a NUL. Give it a name.")
    for words, vectors in in_blocks(added):
        texts = shortest_texts(vectors).to_pylist()
        yield b"".join(
            quoted(encoded(word), delimiter)
            + delimiter
            + numbers.encode("ascii").replace(b" ", delimiter)
            + newline
            for word, numbers in zip(words, texts, strict=True)
        )
