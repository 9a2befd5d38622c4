"""A file in any format -> an Embedding, its words alone, or one pass over it; memory is bounded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError, InputError
from vecfill.io.batches import Batch, Offsets, RowReader, WantedWords, decoded, encoded, shown
from vecfill.io.codecs import codec_of
from vecfill.io.sources import Source
from vecfill.io.streams import Sha256
from vecfill.wording import count


def read_embedding(
    path: str | os.PathLike[str],
    words: Iterable[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    dtype: Literal["float32", "float64", "auto"] | None = None,
) -> Embedding:
    r"""Return the words and vectors of a file, or those of `words` alone.

    The file is read once, from start to end, in pieces. With `words`, only their vectors are kept,
    so the file may be larger than memory. The whole file is checked either way. If a word occurs
    more than once, its first row counts. `Embedding.notes` reports duplicates, words that were not
    found, and NaN in rows that were not asked for.

    Parameters
    ----------
    path
        A file of any format in `vecfill.io.FORMAT_NAMES`, also inside gzip or zip.
    words
        The words to read. The result has this order; words that are not in the file are left out.
    format
        A name from `vecfill.io.FORMAT_NAMES`. By default the format is detected.
    member
        Which file inside a zip.
    dtype
        How to hold numbers. By default as the file does, and float32 if it is text; a note says
        so if its first rows have more digits. `"auto"` takes float64 for such a text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> read_embedding(path, words=["dog", "unicorn"])["dog"]
    array([0.25, 2.  ], dtype=float32)
    """
    if dtype not in (None, "float32", "float64", "auto"):
        raise InputError(f"dtype={dtype!r}. Use 'float32', 'float64' or 'auto', or leave it out.")
    with Source(path, member) as source:
        reader, chosen = _reader(source, format, dtype)
        rows = _Rows(source, reader, chosen or reader.dtype)
        try:
            if words is None:
                embedding = _read_all(source, reader, rows)
            else:
                embedding = _read_wanted(source, reader, rows, WantedWords(_checked(words)))
        except FormatError:
            source.check_unchanged()
            raise
        except MemoryError:
            raise InputError(
                f"{source}: not enough memory for {rows.n_rows} rows and more of {reader.n_dims} "
                "dimensions. Pass words= to read only those you need."
            ) from None
        source.check_unchanged()
        return embedding


def _reader(
    source: Source,
    format: str | None,  # noqa: A002
    dtype: str | None,
) -> tuple[RowReader, np.dtype[Any] | None]:
    """Return the reader of a file, and the type in which to hold numbers if not in its own."""
    codec = codec_of(source, format)
    if dtype in ("float32", "float64"):
        return codec.reader(source, np.dtype(dtype)), np.dtype(dtype)
    if not codec.needs_float64(source):
        return codec.reader(source), None
    if dtype == "auto":
        return codec.reader(source, np.dtype(np.float64)), np.dtype(np.float64)
    reader = codec.reader(source)
    reader.notes.append(
        f"{source}: its numbers have more digits than float32 holds, so they were rounded. "
        "Pass dtype='float64' to keep them."
    )
    return reader, None


def iter_words(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
) -> Iterator[list[str]]:
    r"""Return the words of a file, batch by batch in its order, duplicates included.

    No vectors are kept, so that names can be matched with millions of words in little memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> [word for batch in iter_words(path) for word in batch]
    ['cat', 'dog']
    """
    with Source(path, member) as source:
        for batch in codec_of(source, format).reader(source).batches():
            yield batch.words()
        source.check_unchanged()


@dataclass(frozen=True)
class ScannedBatch:
    """Some rows of a file; its vectors are good until the next batch is asked for."""

    words: list[str]
    first_row: int
    """The row in the file of the first word, from 0."""
    batch: Batch
    source: Source

    def vectors(self, places: Sequence[int] | Offsets) -> FloatArray:
        """Return the vectors of some places in this batch; no others are parsed.

        A vector may hold NaN or infinity where the format allows it: see `problem`.
        """
        return self.batch.take(np.asarray(places, dtype=np.int64))

    @property
    def is_finite(self) -> NDArray[np.bool_]:
        """Which rows hold neither NaN nor infinity, as far as that is known without a vector."""
        return self.batch.is_finite

    def problem(self, place: int) -> FormatError:
        """Return the error to raise if the vector at `place` is needed and is not finite."""
        return not_finite(self.source, self.batch, place)


class Scan:
    r"""A pass over a file of vectors, batch by batch, in bounded memory.

    Every row is checked as `read_embedding` checks it. When the last batch is done, `sha256` is
    the hash of the file on disk (of the packed bytes, if it is packed), `n_words` the number of
    rows, `n_odd` the number of those that hold NaN or infinity, and `notes` what there is to tell.

    Parameters
    ----------
    path
        A file of any format in `vecfill.io.FORMAT_NAMES`.
    format, member
        As in `read_embedding`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> with Scan(path) as scan:
    ...     for batch in scan:
    ...         print(batch.first_row, batch.words, batch.vectors([1]).tolist())
    0 ['cat', 'dog'] [[0.25, 2.0]]
    >>> scan.n_words, len(scan.sha256)
    (2, 64)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        member: str | None = None,
    ) -> None:
        self.source = Source(path, member)
        try:
            self.codec = codec_of(self.source, format)
            self.rows = self.codec.reader(self.source)
        except BaseException:
            self.source.close()
            raise
        self.n_words = 0
        self.n_odd = 0
        self.sha256 = ""

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    @property
    def size(self) -> int:
        """The size of the file on disk, in bytes."""
        return self.source.size

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader has to tell so far, in sentences."""
        return tuple(self.rows.notes)

    def __iter__(self) -> Iterator[ScannedBatch]:
        with Sha256(self.source.path, self.source.size) as sha256:
            self.source.watch(on_disk=sha256)
            try:
                for batch in self.rows.batches():
                    yield ScannedBatch(batch.words(), self.n_words, batch, self.source)
                    self.n_words += len(batch)
                    self.n_odd += int(np.count_nonzero(~batch.is_finite))
            except FormatError:
                self.source.check_unchanged()
                raise
            self.source.watch()
            self.sha256 = sha256.result()
        self.source.check_unchanged()


def _checked(words: Iterable[str]) -> list[str]:
    if isinstance(words, str):
        raise InputError(f"words={words!r} is one string. Pass a list: words=[{words!r}].")
    listed = list(words)
    for word in listed:
        if not isinstance(word, str):
            raise InputError(f"{word!r} among words is a {type(word).__name__}, not a string.")
    return listed


class _Rows:
    """Vectors that come in batches, kept in one array that grows without being copied twice."""

    def __init__(self, source: Source, reader: RowReader, dtype: np.dtype[Any]) -> None:
        self._source = source
        self._dtype = dtype.newbyteorder("=")
        self._n_dims = reader.n_dims
        self._vectors: FloatArray = np.empty(0, dtype=self._dtype)
        self.n_rows = 0

    def add(self, vectors: FloatArray) -> None:
        needed = (self.n_rows + len(vectors)) * self._n_dims
        if needed > self._vectors.size:
            self._vectors.resize(max(needed, self._vectors.size * 5 // 4), refcheck=False)
        first = self.n_rows * self._n_dims
        with np.errstate(over="ignore"):
            self._vectors[first:needed] = vectors.reshape(-1)
        if not np.isfinite(self._vectors[first:needed]).all():
            raise InputError(
                f"{self._source}: a number is too large for {self._dtype}. Pass dtype='float64'."
            )
        self.n_rows += len(vectors)

    def array(self) -> FloatArray:
        self._vectors.resize(self.n_rows * self._n_dims, refcheck=False)
        return self._vectors.reshape(self.n_rows, self._n_dims)


def _read_all(source: Source, reader: RowReader, rows: _Rows) -> Embedding:
    place_of: dict[str, None] = {}
    n_twice, twice = 0, ""
    for batch in reader.batches(whole=True):
        first_rows: list[int] = []
        for row, word in enumerate(batch.words()):
            if word not in place_of:
                place_of[word] = None
                first_rows.append(row)
            else:
                n_twice += 1
                twice = twice or word
        rows.add(_finite(source, batch, np.array(first_rows, dtype=np.int64)))
    notes = list(reader.notes)
    if n_twice:
        notes.insert(0, about_repeats(source, n_twice, twice))
    return Embedding(place_of, rows.array(), notes=notes, provenance=reader.provenance)


def _read_wanted(
    source: Source, reader: RowReader, rows: _Rows, wanted_words: WantedWords
) -> Embedding:
    order: dict[bytes, int] = {}
    n_twice, twice, n_odd = 0, "", 0
    for batch in reader.batches():
        hits, words = wanted_words.found_in(batch)
        is_new: list[bool] = []
        for word in words:
            is_new.append(word not in order)
            if is_new[-1]:
                order[word] = len(order)
            else:
                n_twice += 1
                twice = twice or decoded(word)
        first_rows = hits[np.array(is_new, dtype=bool)]
        if len(first_rows):
            rows.add(_finite(source, batch, first_rows))
        n_odd += int(np.count_nonzero(~batch.is_finite))
    notes = list(reader.notes)
    if n_twice:
        notes.append(about_repeats(source, n_twice, twice))
    if n_odd:
        notes.append(about_odd(source, n_odd))
    missing = len(wanted_words.words) - len(order)
    if missing:
        notes.append(
            f"{source}: {missing} of {len(wanted_words.words)} words asked for are not in it."
        )
    ranked = sorted(order, key=lambda word: wanted_words.rank[word])
    vectors = rows.array()[[order[word] for word in ranked]]
    return Embedding(
        [decoded(word) for word in ranked], vectors, notes=notes, provenance=reader.provenance
    )


def _finite(source: Source, batch: Batch, chosen_rows: Any) -> FloatArray:
    vectors = batch.take(chosen_rows)
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        raise not_finite(source, batch, int(chosen_rows[int(np.argmin(is_finite))]))
    return vectors


def not_finite(source: Source, batch: Batch, row: int) -> FormatError:
    """Return the error about a vector that holds NaN or infinity."""
    return source.refuse(
        f"the vector of {shown(batch.word(row))} holds NaN or infinity (the word is at byte offset "
        f"{batch.offset + int(batch.starts[row])}). Leave the word out with words=, or repair "
        "the file."
    )


def about_repeats(source: Source, n_twice: int, word: str) -> str:
    """Return the note about rows that repeat a word."""
    return (
        f"{source}: {count(n_twice, 'row repeats', 'rows repeat')} a word that came before, such "
        f"as {shown(encoded(word))}; the first row of each was taken."
    )


def about_odd(source: Source, n_odd: int) -> str:
    """Return the note about rows that hold no numbers but were not needed."""
    return f"{source}: NaN or infinity in {count(n_odd, 'row')} not asked for."
