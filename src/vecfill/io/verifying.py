"""Proof that an enriched file holds every row of the original unchanged, and what it adds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.io.batches import RowReader, WantedWords, decoded
from vecfill.io.codec import Codec, Difference
from vecfill.io.codecs import codec_of
from vecfill.io.patching import Patch, RowChange
from vecfill.io.replacing import reader_undone, undone
from vecfill.io.sources import Source
from vecfill.io.streams import sha256_of


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
            hashes = [pool.submit(sha256_of, each.path) for each in (old, new)]
            rows = codec.reader(old)
            patches, difference = undone(codec, old, new, replaced)
            difference = difference or _first_difference(codec, rows, new, patches)
            n_known = sum(len(batch) for batch in codec.reader(old).batches())
            added = _words_after(codec.reader(new), n_known)
            difference = difference or _second_rows(codec.reader(old), added)
            sum_old, sum_new = (each.result() for each in hashes)
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
        tuple(_change(each) for each in patches),
    )


def _first_difference(
    codec: Codec[Any], old: RowReader, changed: Source, patches: list[Patch]
) -> Difference | None:
    new = reader_undone(codec, changed, patches) if patches else codec.reader(changed)
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
    wanted = WantedWords(added)
    for batch in old.batches():
        twice += [decoded(word) for word in wanted.found_in(batch)[1]]
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
