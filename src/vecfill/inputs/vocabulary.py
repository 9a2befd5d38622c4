"""The words of a whole embedding file and their vectors, or an even sample of a larger one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np

from vecfill.embedding import Embedding
from vecfill.inputs.folding import folded
from vecfill.io import Scan
from vecfill.io.scanning import ScannedBatch

MOST_WORDS = 400_000
"""Words kept. More would take memory and time, and teach little about spelling."""


class VocabularySample:
    r"""Gathers words and vectors of a file while it is read from front to back.

    All words are kept while there are at most `most`. Then every second row of the file is, then
    every fourth, and so on, so that the sample is even whatever the length of the file. Words that
    are parts of entity names are always kept. Rows that are not finite are left out, and of a word
    that comes twice the first row counts.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("".join(f"word{row} {row} 1\n" for row in range(10)))
    >>> sample = VocabularySample(["Word9 Inc"], most=4)
    >>> with Scan(path) as scan:
    ...     for batch in scan:
    ...         sample.add(batch)
    >>> sample.embedding()
    Embedding(4 words, 2 dims, float32: 'word0', 'word4', 'word8', 'word9')
    """

    def __init__(self, entities: Iterable[str], *, most: int = MOST_WORDS) -> None:
        self._parts = {part for name in folded(list(entities)) for part in name.split("_")}
        self._most = most
        self._step = 1
        self._n_read = 0
        self._words: list[str] = []
        self._rows: list[np.ndarray] = []
        self._vectors: list[np.ndarray] = []
        self._is_part: list[np.ndarray] = []

    def add(self, batch: ScannedBatch) -> None:
        """Keep what is wanted of the next rows."""
        rows = batch.first_row + np.arange(len(batch.words))
        is_part = np.array([word in self._parts for word in folded(batch.words)], np.bool_)
        places = np.flatnonzero((rows % self._step == 0) | is_part)
        if len(places):
            vectors = batch.vectors(places)
            is_finite = np.isfinite(vectors).all(axis=1)
            places = places[is_finite]
            self._words += [batch.words[place] for place in places.tolist()]
            self._rows.append(rows[places])
            self._is_part.append(is_part[places])
            # A copy in any case: the batch reuses its memory.
            self._vectors.append(np.array(vectors[is_finite], np.float32))
        self._n_read = batch.first_row + len(batch.words)
        while len(self._words) - sum(int(each.sum()) for each in self._is_part) > self._most:
            self._thin_out()

    def _thin_out(self) -> None:
        self._step *= 2
        first = 0
        words: list[str] = []
        for number, rows in enumerate(self._rows):
            is_kept = (rows % self._step == 0) | self._is_part[number]
            words += [self._words[first + place] for place in np.flatnonzero(is_kept).tolist()]
            first += len(rows)
            self._rows[number] = rows[is_kept]
            self._is_part[number] = self._is_part[number][is_kept]
            self._vectors[number] = self._vectors[number][is_kept]
        self._words = words

    def _joined(self) -> np.ndarray:
        """Return all vectors as one array; each piece is freed when it has been copied."""
        n_rows = sum(len(each) for each in self._vectors)
        n_dims = self._vectors[0].shape[1] if self._vectors else 1
        found = np.empty((n_rows, n_dims), np.float32)
        end = n_rows
        while self._vectors:
            piece = self._vectors.pop()
            found[end - len(piece) : end] = piece
            end -= len(piece)
        return found

    def embedding(self) -> Embedding:
        """Return the words and vectors, in the order of the file; they are handed over."""
        first_places = list(
            {word: place for place, word in reversed([*enumerate(self._words)])}.values()
        )
        places = np.sort(np.array(first_places, np.int64))
        vectors = self._joined()
        notes = ()
        if self._step > 1:
            notes = (f"Of {self._n_read:,} words in the file, one in {self._step} was kept.",)
        chosen = [self._words[place] for place in places.tolist()]
        return Embedding(
            chosen, vectors[places] if len(chosen) < len(vectors) else vectors, notes=notes
        )


def read_vocabulary(
    path: str | os.PathLike[str],
    entities: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
) -> Embedding:
    r"""Return the words and vectors of a file in one pass, or a sample of a very large file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> read_vocabulary(path, ["cat"])
    Embedding(2 words, 2 dims, float32: 'cat', 'dog')
    """
    sample = VocabularySample(entities)
    with Scan(path, format=format, member=member) as scan:
        for batch in scan:
            sample.add(batch)
    return sample.embedding()
