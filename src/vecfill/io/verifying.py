"""Proof that an enriched file holds every row of the original unchanged, and what it adds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.io.batches import RowReader, WantedWords, decoded, encoded
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.codecs import codec_of
from vecfill.io.comparing import first_other_row, same_bits
from vecfill.io.patching import Patch, PatchedSource, RowChange
from vecfill.io.sources import Source
from vecfill.io.streams import sha256_of
from vecfill.io.tables import read_table


@dataclass(frozen=True)
class Verification:
    """Whether every known row is unchanged, and what was added.

    `difference` says in words where the files first differ, `differing_word` and `offset` (in the
    content of the original; None where rows have no place of their own) say it for programs.
    """

    ok: bool
    n_known: int
    n_added: int
    added: tuple[str, ...]
    sha256_original: str
    sha256_enriched: str
    difference: str | None = None
    differing_word: str | None = None
    offset: int | None = None
    not_compared: tuple[str, ...] = ()
    """What the original holds beside its rows that was not looked at."""
    replaced: tuple[RowChange, ...] = ()
    """The rows that were named as replaced, in the order of their names."""


def verify(
    original: str | os.PathLike[str],
    enriched: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    replaced: Iterable[str] = (),
) -> Verification:
    r"""Compare the known rows of two files byte for byte, in bounded memory.

    Rows of word2vec and GloVe files are compared as bytes; those of CSV and TSV by the text of
    every cell, those of Parquet and Arrow by the bits of every column, and the names of columns
    with them. Of safetensors and `.npz` files words, vectors and metadata are compared;
    `not_compared` names other arrays. An added row must have a word of its own. Both files are
    also checked as `read_embedding` does. The header of word2vec files is read and not compared.

    Parameters
    ----------
    original, enriched
        The file before rows were added or replaced, and the new one.
    format, member
        As in `read_embedding`.
    replaced
        Words whose first rows were replaced. Exactly those rows must differ; everything else is
        compared as above. `Verification.replaced` has the hashes of their bytes before and after.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "old.vec").write_text("1 1\ncat 0.5\n")
    >>> _ = (folder / "new.vec").write_text("2 1\ncat 0.5\ndog 1.5\n")
    >>> found = verify(folder / "old.vec", folder / "new.vec")
    >>> found.ok, found.n_known, found.added
    (True, 1, ('dog',))
    """
    with Source(original, member) as old, Source(enriched) as new:
        codec = codec_of(old, format)
        new_codec = codec_of(new, format)
        if new_codec is not codec:
            raise InputError(
                f"{old} is {codec.name}, but {new} is {new_codec.name}. "
                "Only files of one format can be compared byte for byte."
            )
        with ThreadPoolExecutor(2) as pool:
            hashes = [pool.submit(sha256_of, source.path) for source in (old, new)]
            rows = codec.reader(old)
            patches, difference = _undone(codec, old, new, replaced)
            difference = difference or _first_difference(codec, rows, new, patches)
            n_known = sum(len(batch) for batch in codec.reader(old).batches())
            added = _words_after(codec.reader(new), n_known)
            difference = difference or _second_rows(codec.reader(old), added)
            sum_old, sum_new = (source.result() for source in hashes)
        old.check_unchanged()
        new.check_unchanged()
    text, word, offset = difference or (None, None, None)
    return Verification(
        difference is None,
        n_known,
        len(added),
        added,
        sum_old,
        sum_new,
        text,
        word,
        offset,
        codec.not_compared(rows),
        tuple(_change(source) for source in patches),
    )


def _first_difference(
    codec: Codec[Any], old: RowReader, changed: Source, patches: list[Patch]
) -> Difference | None:
    new = _reader_undone(codec, changed, patches) if patches else codec.reader(changed)
    try:
        return _difference(codec, old, new)
    finally:
        if new.source is not changed:
            new.source.close()


def _difference(codec: Codec[Any], old: RowReader, new: RowReader) -> Difference | None:
    if old.n_dims != new.n_dims:
        return Difference(
            f"{old.source} has {old.n_dims} dimensions, {new.source} has {new.n_dims}."
        )
    return codec.difference(old, new)


def _second_rows(old: RowReader, added: tuple[str, ...]) -> Difference | None:
    """Return an added word that has a row already: readers would keep one row or the other."""
    twice = [word for word, count in Counter(added).items() if count > 1]
    wanted_words = WantedWords(added)
    for batch in old.batches():
        twice += [decoded(word) for word in wanted_words.found_in(batch)[1]]
    if not twice:
        return None
    return Difference(f"'{printable(twice[0])}' is added, but has a row already.", twice[0])


def _words_after(reader: RowReader, n_known: int) -> tuple[str, ...]:
    words: list[str] = []
    n_seen = 0
    for batch in reader.batches():
        first = max(0, n_known - n_seen)
        if first < len(batch):
            words += [decoded(word) for word in batch.raw_words(range(first, len(batch)))]
        n_seen += len(batch)
    return tuple(words)


def _change(undoing: Patch) -> RowChange:
    return replace(undoing, old=undoing.new, new=undoing.old).change


def _undone(
    codec: Codec[Any], old: Source, new: Source, words: Iterable[str]
) -> tuple[list[Patch], Difference | None]:
    """Return what turns the rows of `words` in `new` into those of `old`, or why nothing can."""
    wanted_words = WantedWords(words)
    was, now = (
        {spot.word: spot for spot in codec.spots(codec.reader(source), wanted_words)}
        for source in (old, new)
    )
    patches: list[Patch] = []
    for word in wanted_words.words:
        before, after = was.get(encoded(word)), now.get(encoded(word))
        problem = _problem(before, after)
        if before is None or after is None or problem:
            return [], Difference(f"'{printable(word)}' is named as replaced, but {problem}.", word)
        patches.append(Patch(word, after.row + 1, after.offset, after.content, before.content))
    return patches, None


def _problem(before: Spot | None, after: Spot | None) -> str:
    if before is None:
        return "the original has no such row"
    if after is None or after.row != before.row:
        return "its row is not where it was"
    return "its row is as it was" if after.content == before.content else ""


def _reader_undone(codec: Codec[Any], new: Source, patches: Sequence[Patch]) -> Any:
    """Return a reader of `new` in which replaced rows are what they were.

    The source of the reader is to be closed if it is not `new`.
    """
    if not codec.copies_rows:
        rows = codec.reader(new)
        codec.exchange(rows, {patch.row - 1: patch.new for patch in patches})
        return rows
    return codec.reader(PatchedSource(new.path, patches))


@dataclass(frozen=True)
class TableVerification:
    """What a comparison of two tables has shown."""

    n_rows: int
    """Rows of the original."""
    n_vectors: int
    """Vectors of the original, all of them unchanged."""
    n_filled: int
    """Rows of the original that had no vector and have one now."""
    n_added: int
    """Rows after those of the original."""
    new_columns: tuple[str, ...]
    difference: str | None
    """The first cell that is not the same."""

    @property
    def ok(self) -> bool:
        """Whether every cell of the original is there unchanged."""
        return self.difference is None


def verify_table(
    original: str | os.PathLike[str], enriched: str | os.PathLike[str], *, vector: str
) -> TableVerification:
    r"""Compare two tables with a column of vectors, cell by cell and bit for bit.

    The enriched table may have vectors where the original has none, further rows at its end and
    further columns. Everything else must be the same: columns, their types, the order of rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> place = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (place / "old.csv").write_text("id,v\n7,[1.0]\n8,\n")
    >>> _ = (place / "new.csv").write_text("id,v\n7,[1.0]\n8,[2.0]\n9,[3.0]\n")
    >>> found = verify_table(place / "old.csv", place / "new.csv", vector="v")
    >>> found.ok, found.n_vectors, found.n_filled, found.n_added
    (True, 1, 1, 1)
    """
    old, new = (read_table(table_path).combine_chunks() for table_path in (original, enriched))
    for path, table in ((original, old), (enriched, new)):
        if vector not in table.column_names:
            raise InputError(f"{path} has no column {vector!r} of vectors (vector=).")
    had, has = (_is_there(table, vector) for table in (old, new))
    n_rows = old.num_rows
    return TableVerification(
        n_rows=n_rows,
        n_vectors=int(had.sum()),
        n_filled=int((has[:n_rows] & ~had[: has.size]).sum()) if has.size >= n_rows else 0,
        n_added=max(0, new.num_rows - n_rows),
        new_columns=tuple(name for name in new.column_names if name not in old.column_names),
        difference=_table_difference(old, new, vector, had),
    )


def _table_difference(old: pa.Table, new: pa.Table, vector: str, had: np.ndarray) -> str | None:
    if new.num_rows < old.num_rows:
        return f"it has {new.num_rows} rows, and the original has {old.num_rows}."
    for name in old.column_names:
        if name not in new.column_names:
            return f"it has no column {name!r}."
        rows = np.flatnonzero(had) if name == vector else np.arange(old.num_rows)
        mine, theirs = (_cells(table, name).take(pa.array(rows)) for table in (old, new))
        if mine.type != theirs.type:
            return f"column {name!r} is of type {theirs.type} and was of type {mine.type}."
        if not same_bits(mine, theirs):
            row = int(rows[first_other_row(mine, theirs)])
            return f"row {row + 1}, column {name!r}: the cell is not the same."
    return None


def _cells(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _is_there(table: pa.Table, vector: str) -> np.ndarray:
    """Return which rows have a vector; in text tables a missing one is an empty cell."""
    column = table.column(vector)
    is_there = column.is_valid().to_numpy()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        is_there &= np.array([bool(str(cell).strip()) for cell in column.to_pylist()], np.bool_)
    return is_there
