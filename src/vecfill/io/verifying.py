"""Proof that an enriched file holds every row of the original unchanged, and what it adds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.io.batches import Batch, RowReader, decoded
from vecfill.io.formats import Format, detected_format, named_format
from vecfill.io.reading import row_reader
from vecfill.io.sources import Source
from vecfill.io.text import TextRows
from vecfill.io.word2vec_binary import Word2vecBinary

_BLOCK = 1 << 22


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


def verify(
    original: str | os.PathLike[str],
    enriched: str | os.PathLike[str],
    *,
    format: str | Format | None = None,  # noqa: A002
    member: str | None = None,
) -> Verification:
    r"""Compare the known rows of two files byte for byte, in bounded memory.

    Rows of word2vec and GloVe files are compared as bytes; those of safetensors, `.npz`, Parquet,
    Arrow, CSV and TSV by word and by the bits of the vectors they are read as. Both files
    are also checked as `read_embedding` does.

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
        kind = detected_format(old) if format is None else named_format(format)
        new_kind = detected_format(new) if format is None else kind
        if new_kind is not kind:
            raise InputError(
                f"{old} is {kind.value}, but {new} is {new_kind.value}. "
                "Only files of one format can be compared byte for byte."
            )
        with ThreadPoolExecutor(2) as pool:
            hashes = [pool.submit(_sha256, each.path) for each in (old, new)]
            readers = row_reader(old, kind), row_reader(new, kind)
            difference = _first_difference(old, new, *readers)
            n_known = sum(len(batch) for batch in row_reader(old, kind).batches())
            added = _words_after(row_reader(new, kind), n_known)
            sum_old, sum_new = (each.result() for each in hashes)
        old.check_unchanged()
        new.check_unchanged()
    text, word, offset = difference or (None, None, None)
    is_ok = difference is None
    return Verification(is_ok, n_known, len(added), added, sum_old, sum_new, text, word, offset)


Difference = tuple[str, str | None, int | None]


def _first_difference(
    old: Source, new: Source, old_rows: RowReader, new_rows: RowReader
) -> Difference | None:
    if old_rows.n_dims != new_rows.n_dims:
        said = f"{old} has {old_rows.n_dims} dimensions, {new} has {new_rows.n_dims}."
        return said, None, None
    as_bytes = isinstance(old_rows, Word2vecBinary | TextRows)
    if not as_bytes:
        return _rows_differ(old_rows, new_rows)
    start_old, start_new = (
        each.body if isinstance(each, Word2vecBinary | TextRows) else 0
        for each in (old_rows, new_rows)
    )
    offset = _bytes_differ(old, start_old, new, start_new)
    if offset is None:
        return None
    word = _word_at(old_rows, offset)
    said = f"byte offset {offset} of {old}, in the row of '{printable(word)}', is not so in {new}."
    return said, word, offset


def _bytes_differ(old: Source, start_old: int, new: Source, start_new: int) -> int | None:
    """Return the offset in the original of the first byte that the enriched file has not."""
    with old.stream() as one, new.stream() as other:
        one.read(start_old)
        other.read(start_new)
        place = start_old
        while block := one.read(_BLOCK):
            same = other.read(len(block))
            if same != block:
                n_shared = min(len(same), len(block))
                left = np.frombuffer(block, np.uint8)[:n_shared]
                differs = left != np.frombuffer(same, np.uint8)[:n_shared]
                return place + (int(np.argmax(differs)) if differs.any() else n_shared)
            place += len(block)
    return None


def _word_at(reader: RowReader, offset: int) -> str:
    word = ""
    for batch in reader.batches():
        row = int(np.searchsorted(batch.starts + batch.offset, offset, side="right")) - 1
        if row >= 0:
            word = decoded(batch.raw_words([row])[0])
        if len(batch) and batch.offset + int(batch.starts[-1]) > offset:
            break
    return word


def _rows_differ(old_rows: RowReader, new_rows: RowReader) -> Difference | None:
    others = _single_rows(new_rows.batches())
    for n_rows, (word, vector) in enumerate(_single_rows(old_rows.batches()), start=1):
        other, theirs = next(others, (None, b""))
        if other != word or theirs != vector:
            name = decoded(word)
            what = "its vector" if other == word else "its place"
            return f"row {n_rows}, '{printable(name)}': {what} is not the same.", name, None
    return None


def _single_rows(batches: Iterator[Batch]) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches:
        vectors = batch.take(np.arange(len(batch), dtype=np.int64))
        for word, vector in zip(batch.raw_words(), vectors, strict=True):
            yield word, vector.tobytes()


def _words_after(reader: RowReader, n_known: int) -> tuple[str, ...]:
    words: list[str] = []
    n_seen = 0
    for batch in reader.batches():
        first = max(0, n_known - n_seen)
        if first < len(batch):
            words += [decoded(word) for word in batch.raw_words(range(first, len(batch)))]
        n_seen += len(batch)
    return tuple(words)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
