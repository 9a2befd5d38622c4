"""Proof that an enriched file holds every row of the original unchanged, and what it adds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from vecfill.errors import InputError
from vecfill.io.aside import sha256_of
from vecfill.io.batches import RowReader, decoded
from vecfill.io.codec import Codec, Difference
from vecfill.io.codecs import codec_of
from vecfill.io.sources import Source


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
    format: str | None = None,  # noqa: A002
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
        codec = codec_of(old, format)
        new_codec = codec_of(new, format)
        if new_codec is not codec:
            raise InputError(
                f"{old} is {codec.name}, but {new} is {new_codec.name}. "
                "Only files of one format can be compared byte for byte."
            )
        with ThreadPoolExecutor(2) as pool:
            hashes = [pool.submit(sha256_of, each.path) for each in (old, new)]
            difference = _first_difference(codec, old, new)
            n_known = sum(len(batch) for batch in codec.reader(old).batches())
            added = _words_after(codec.reader(new), n_known)
            sum_old, sum_new = (each.result() for each in hashes)
        old.check_unchanged()
        new.check_unchanged()
    text, word, offset = difference or (None, None, None)
    is_ok = difference is None
    return Verification(is_ok, n_known, len(added), added, sum_old, sum_new, text, word, offset)


def _first_difference(codec: Codec[Any], old: Source, new: Source) -> Difference | None:
    old_rows, new_rows = codec.reader(old), codec.reader(new)
    if old_rows.n_dims != new_rows.n_dims:
        return Difference(f"{old} has {old_rows.n_dims} dimensions, {new} has {new_rows.n_dims}.")
    return codec.difference(old_rows, new_rows)


def _words_after(reader: RowReader, n_known: int) -> tuple[str, ...]:
    words: list[str] = []
    n_seen = 0
    for batch in reader.batches():
        first = max(0, n_known - n_seen)
        if first < len(batch):
            words += [decoded(word) for word in batch.raw_words(range(first, len(batch)))]
        n_seen += len(batch)
    return tuple(words)
