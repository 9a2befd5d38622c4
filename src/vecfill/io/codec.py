"""What every file format can be asked: is this file one of yours, read it, write it, compare it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import InputError
from vecfill.io.batches import RowReader, WantedWords
from vecfill.io.sources import Source

Rows = TypeVar("Rows", bound=RowReader)


class Difference(NamedTuple):
    """Where two files first differ: in words, by word, and by offset in the original if known."""

    text: str
    word: str | None = None
    offset: int | None = None


class Spot(NamedTuple):
    """Where the first row of a word stands: its number from 0, its place, its bytes."""

    word: bytes
    row: int
    offset: int
    content: bytes


@dataclass(frozen=True)
class Codec(ABC, Generic[Rows]):
    """One file format. `Rows` is the class that reads its rows.

    A format must say which files are its own, read their rows and compare two of them. One that
    can be written overrides `write`. One that can be extended either copies the original's bytes
    (`copies_rows`, `new_start`, `added_rows`) or writes the file again (`rewrite`).
    """

    name: str
    suffixes: tuple[str, ...]

    read_only: ClassVar[str] = ""
    """What to use instead, if files of this format can be neither written nor extended."""
    is_table: ClassVar[bool] = False
    """Whether an embedding looks like any other table: columns with names."""
    copies_rows: ClassVar[bool] = False
    """Whether rows are added behind a copy of the original's bytes; else it is written anew."""

    def detects(self, source: Source) -> bool:
        """Tell whether a file is in this format.

        It begins as all files of the format do, and formats earlier in the list have declined it.
        """
        del source
        return True

    @abstractmethod
    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> Rows:
        """Return the reader of a file's rows; `dtype` matters to formats of text."""

    @abstractmethod
    def difference(self, old: Rows, new: Rows) -> Difference | None:
        """Return where the known rows of `new` first differ from the rows of `old`."""

    def not_compared(self, rows: Rows) -> tuple[str, ...]:
        """Name what a file holds beside rows that `difference` does not look at."""
        del rows
        return ()

    def may_be_features(self, source: Source) -> bool:
        """Tell whether a file may be a table of features rather than an embedding."""
        del source
        return self.is_table

    def needs_float64(self, source: Source) -> bool:
        """Tell whether a file of text holds more digits than float32 does, by its first rows."""
        del source
        return False

    def notes_on_adding(self, rows: Rows) -> tuple[str, ...]:
        """Return what is to be told about rows that are added to a file."""
        del rows
        return ()

    def word_of(self, entity: str) -> str:
        """Return an entity's name as a file of this format can hold it."""
        return entity

    def check_words(self, words: Iterable[str]) -> None:
        """Refuse words that this format cannot hold."""

    def dtype_of(self, embedding: Embedding) -> np.dtype[Any]:
        """Return the type in which the numbers of an embedding are stored."""
        return embedding.vectors.dtype

    def refuse_if_read_only(self, path: object, deed: str) -> None:
        """Refuse to write or extend a file of a format that can only be read."""
        if self.read_only:
            raise InputError(
                f"{path}: a file of the format {self.name} can be read but not {deed}. "
                f"{self.read_only}"
            )

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        raise NotImplementedError

    def new_start(self, rows: Rows, n_added: int) -> tuple[bytes, int]:
        """Return what stands before the rows of the result, and its length in the original."""
        del rows, n_added
        return b"", 0

    def skim(self, rows: Rows) -> None:
        """Learn what `added_rows` must know of a file that was checked before."""

    def added_rows(self, rows: Rows, added: Embedding) -> Iterator[bytes]:
        """Return the bytes to append to a copy of the original's rows."""
        raise NotImplementedError

    def rewrite(self, rows: Rows, added: Embedding, out: Any) -> None:
        """Write the rows of the original and then those of `added`."""
        raise NotImplementedError

    def spots(self, rows: Rows, wanted_words: WantedWords) -> list[Spot]:
        """Return the first row of each wanted word that the file has, in its order."""
        spots: dict[bytes, Spot] = {}
        n_rows = 0
        for batch in rows.batches():
            places, words = wanted_words.found_in(batch)
            for place, word in zip(places.tolist(), words, strict=True):
                if word not in spots:
                    offset = batch.offset + int(batch.starts[place])
                    spots[word] = Spot(word, n_rows + place, offset, batch.row(place))
            n_rows += len(batch)
        return list(spots.values())

    def new_contents(self, rows: Rows, spots: Sequence[Spot], vectors: FloatArray) -> list[bytes]:
        """Return the bytes of some rows with other vectors, in the file's own precision."""
        del spots
        return [vector.tobytes() for vector in vectors.astype(rows.dtype)]

    def exchange(self, rows: Rows, contents: Mapping[int, bytes]) -> None:
        """Let a reader hand out other vectors in some rows; for formats that are written anew."""
        raise NotImplementedError
