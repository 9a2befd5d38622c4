"""The words of a whole embedding file and their vectors, or an even sample of a larger one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from vecfill.embedding import Embedding
from vecfill.inputs.names.folding import folded
from vecfill.io.reading import ScannedBatch

MOST_WORDS = 400_000
"""Words kept. More would take memory and time, and teach little about spelling."""

FEW_WORDS = 20_000
"""Frequent words, and as many others, that are kept of a file whose names are not read: enough to
see what imputed vectors lie near."""

N_BESIDES = 4000
"""Words of the file among which hidden entities are ranked. More would cost more, and the order of
candidates is the same."""


class VocabularySample:
    r"""Gathers words and vectors of a file while it is read from front to back.

    All words are kept while there are at most `n_most`. Then every second row of the file is, then
    every fourth, and so on, so that the sample is even whatever the length of the file. Words that
    are parts of entity names are always kept, and so are the `n_frequent` first ones. Rows that are
    not finite are left out, and of a word that comes twice the first row counts.

    Examples
    --------
    >>> from vecfill.io import Scan
    >>> import tempfile, pathlib
    >>> from vecfill.io import Scan
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("".join(f"word{row} {row} 1\n" for row in range(10)))
    >>> sample = VocabularySample(["Word9 Inc"], n_most=4)
    >>> with Scan(path) as scan:
    ...     for batch in scan:
    ...         sample.add(batch)
    >>> sample.embedding()
    Embedding(4 words, 2 dims, float32: 'word0', 'word4', 'word8', 'word9')
    """

    def __init__(
        self, entities: Iterable[str], *, n_most: int = MOST_WORDS, n_frequent: int = 0
    ) -> None:
        self._parts = {part for name in folded(list(entities)) for part in name.split("_")}
        self._n_most = n_most
        self._n_frequent = n_frequent
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
        is_part |= rows < self._n_frequent
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
        while (
            len(self._words)
            - sum(int(is_part_of_batch.sum()) for is_part_of_batch in self._is_part)
            > self._n_most
        ):
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
        n_rows = sum(len(piece_vectors) for piece_vectors in self._vectors)
        n_dims = self._vectors[0].shape[1] if self._vectors else 1
        vectors = np.empty((n_rows, n_dims), np.float32)
        end = n_rows
        while self._vectors:
            piece = self._vectors.pop()
            vectors[end - len(piece) : end] = piece
            end -= len(piece)
        return vectors

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


def frequent_and_even(n_words: int, *, n_frequent: int, n_even: int) -> np.ndarray:
    """Return places in a vocabulary: the first ones, and as many again spread over the rest.

    Examples
    --------
    >>> frequent_and_even(10, n_frequent=3, n_even=2)
    array([0, 1, 2, 3, 7])
    """
    first = np.arange(min(n_frequent, n_words))
    step = max(1, -(-(n_words - first.size) // max(n_even, 1)))
    return np.concatenate([first, np.arange(first.size, n_words, step)])


def words_besides(vocabulary: Embedding, entity_words: Collection[str]) -> np.ndarray:
    """Return vectors of a fixed sample of words that are not taken, frequent and rare ones.

    Hidden entities are ranked among them, since users look for neighbors in the whole file.

    Examples
    --------
    >>> words_besides(Embedding(["Oslo", "fjord"], np.eye(2)), {"Oslo"})
    array([[0., 1.]])
    """
    half = N_BESIDES // 2
    sample = frequent_and_even(len(vocabulary), n_frequent=half, n_even=half)
    names = set(entity_words)
    places = [place for place in sample.tolist() if vocabulary.words[place] not in names]
    vectors = vocabulary.vectors[places]
    return vectors[np.isfinite(vectors).all(axis=1)]
