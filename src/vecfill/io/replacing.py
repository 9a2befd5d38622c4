"""Rows of a file exchanged for others, in its own format and precision; all else stays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import FormatError, InputError
from vecfill.io.appending import append_rows
from vecfill.io.batches import WantedWords, check_finite, decoded, encoded
from vecfill.io.codec import Codec, Difference, Spot
from vecfill.io.codecs import codec_of
from vecfill.io.patching import Patch, PatchedSource, RowChange
from vecfill.io.sources import Source
from vecfill.io.streams import sha256_of


def replace_rows(
    original: str | os.PathLike[str],
    target: str | os.PathLike[str],
    vectors: Embedding,
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    overwrite: bool = False,
) -> tuple[RowChange, ...]:
    r"""Write `target`: the file `original` with other vectors in the rows of some words.

    Rows are written in the format, style and precision of the file. Every other byte of word2vec,
    GloVe and CSV files stays; safetensors, `.npz`, Parquet and Arrow files are written anew with
    the same words and bits. Of a word that comes twice only the first row is replaced, because
    readers take that one. The target appears whole or not at all.

    Parameters
    ----------
    original
        The file; it is only read. gzip and zip are unpacked.
    target
        Where to; compressed if the name ends in `.gz`. It may not be the original, by any name.
    vectors
        The words whose rows are replaced, and their new vectors. The file must have all of them.
    format, member
        As in `read_embedding`.
    overwrite
        Whether an existing target may be replaced.

    Returns
    -------
    changes
        The rows that differ now, in the order of the file. A vector that is written as it was
        changes nothing.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "old.vec").write_text("2 2\ncat 0.50 1.00\ndog 0.25 2.00\n")
    >>> new = Embedding(["cat"], [[0.125, 10.0]])
    >>> changes = replace_rows(folder / "old.vec", folder / "new.vec", new)
    >>> print((folder / "new.vec").read_text(), end="")
    2 2
    cat 0.12 10.00
    dog 0.25 2.00
    >>> [(each.word, each.row) for each in changes]
    [('cat', 1)]
    """
    sha256 = sha256_of(Path(original))
    patches = row_patches(original, vectors, format=format, member=member)
    none = Embedding([], np.empty((0, vectors.n_dims), vectors.vectors.dtype))
    append_rows(
        original,
        target,
        none,
        format=format,
        member=member,
        overwrite=overwrite,
        expected_sha256=sha256,
        replaced=patches,
    )
    return tuple(each.change for each in patches)


def row_patches(
    original: str | os.PathLike[str],
    vectors: Embedding,
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
) -> tuple[Patch, ...]:
    r"""Return the first row of each word in a file, and what it becomes with another vector.

    Rows that would be written as they are now are left out.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "old.glove"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> [patch.new for patch in row_patches(path, Embedding(["dog"], [[0.5, 3.0]]))]
    [b'dog 0.5 3']
    """
    if len(vectors) == 0:
        return ()
    with Source(original, member) as source:
        codec = codec_of(source, format)
        codec.refuse_if_read_only(source, "changed")
        rows = codec.reader(source)
        if vectors.n_dims != rows.n_dims:
            raise InputError(
                f"The new vectors have {vectors.n_dims} dimensions, those of {source} have "
                f"{rows.n_dims}. Pass vectors of the same length."
            )
        check_finite(vectors, rows.dtype)
        spots = codec.spots(rows, WantedWords(vectors.words))
        source.check_unchanged()
        _refuse_missing(source, vectors.words, spots)
        words = [decoded(spot.word) for spot in spots]
        contents = codec.new_contents(rows, spots, vectors[words])
    return tuple(
        Patch(word, spot.row + 1, spot.offset, spot.content, content)
        for word, spot, content in zip(words, spots, contents, strict=True)
        if content != spot.content
    )


def _refuse_missing(source: Source, words: Sequence[str], spots: Sequence[Spot]) -> None:
    present = {spot.word for spot in spots}
    missing = [word for word in words if encoded(word) not in present]
    if missing:
        raise InputError(
            f"{source} has no row for '{printable(missing[0])}', and {len(missing)} of the "
            f"{len(words)} words to replace are not in it. Replace only words that it has."
        )


def undone(
    codec: Codec[Any], old: Source, new: Source, words: Iterable[str]
) -> tuple[list[Patch], Difference | None]:
    """Return what turns the rows of `words` in `new` into those of `old`, or why nothing can."""
    wanted = WantedWords(words)
    was, now = (
        {spot.word: spot for spot in codec.spots(codec.reader(each), wanted)} for each in (old, new)
    )
    patches: list[Patch] = []
    for word in wanted.words:
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


def reader_undone(codec: Codec[Any], new: Source, patches: Sequence[Patch]) -> Any:
    """Return a reader of `new` in which replaced rows are what they were.

    The source of the reader is to be closed if it is not `new`.
    """
    if not codec.copies_rows:
        rows = codec.reader(new)
        codec.exchange(rows, {each.row - 1: each.new for each in patches})
        return rows
    return codec.reader(PatchedSource(new.path, patches))


def read_changes(manifest: str | os.PathLike[str]) -> tuple[RowChange, ...]:
    """Return the rows that a manifest lists under "replaced".

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.vec.manifest.json"
    >>> _ = path.write_text('{"replaced": []}')
    >>> read_changes(path)
    ()
    """
    try:
        listed = json.loads(Path(manifest).read_bytes())["replaced"]
        names = ("word", "row", "sha256_before", "sha256_after")
        return tuple(RowChange(*(each[name] for name in names)) for each in listed)
    except OSError as error:
        raise InputError(f"{manifest} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{manifest} is no manifest that lists replaced rows. Pass the file "
            "OUTPUT.manifest.json that was written beside the enriched file."
        ) from error
