"""The enriching writer: the original's bytes, with some rows exchanged, then rows in its style."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import FormatError, InputError
from vecfill.io.atomic import OutputFile, atomic_outputs
from vecfill.io.batches import RowReader, WantedWords, check_finite, decoded, encoded, shown
from vecfill.io.codec import Codec, Spot
from vecfill.io.codecs import codec_of
from vecfill.io.patching import Patch, Patching, RowChange
from vecfill.io.sources import ZIP, Source
from vecfill.io.streams import Aside, Sha256, compressing, sha256_of
from vecfill.io.targets import refuse_input


def append_rows(
    original: str | os.PathLike[str],
    target: str | os.PathLike[str],
    added: Embedding,
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    overwrite: bool = False,
    beside: Mapping[Path, bytes] | None = None,
    expected_sha256: str | None = None,
    replaced: Sequence[Patch] = (),
) -> None:
    r"""Write `target`: the rows of `original`, bytes unchanged, followed by the rows of `added`.

    Format, line endings, separators and precision are the original's own; only the count in a
    header changes. word2vec, GloVe and CSV rows are copied as bytes; safetensors, `.npz`, Parquet
    and Arrow are written anew with the same words and bits. The original is checked on the way,
    and a word it has already is refused. Memory stays small whatever its size.

    Parameters
    ----------
    original
        The file to enrich; it is only read. gzip and zip are unpacked.
    target
        Where to; compressed if the name ends in `.gz`. It may not be the original, by any name.
    added
        The rows to add; there may be none.
    format, member
        As in `read_embedding`.
    overwrite
        Whether an existing target may be replaced.
    beside
        Small files, by path, that appear together with the target or not at all.
    expected_sha256
        The hash that a `Scan` of the original found, which saw none of the words to add. Then the
        rows are not checked again; a file that has another hash by now is refused.
    replaced
        Rows of the original that are exchanged for others on the way: what
        `row_patches` found. By default no row changes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "old.vec").write_text("1 2\ncat 0.50 1.00\n")
    >>> append_rows(folder / "old.vec", folder / "new.vec", Embedding(["dog"], [[0.25, 2.0]]))
    >>> print((folder / "new.vec").read_text(), end="")
    2 2
    cat 0.50 1.00
    dog 0.25 2.00
    """
    with Source(original, member) as source:
        refuse_input(Path(target), source.path, kind="original")
        codec = codec_of(source, format)
        rows = codec.reader(source)
        _check_added(codec, rows, added)
        contents = beside or {}
        with atomic_outputs([target, *contents], overwrite=overwrite) as (file, *small_files):
            for small_file, content in zip(small_files, contents.values(), strict=True):
                small_file.write(content)
            with compressing(file, target) as out:
                _write(codec, rows, added, replaced, (file, out), expected_sha256)
            source.check_unchanged()


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
    return tuple(patch.change for patch in patches)


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
        return tuple(RowChange(*(entry[name] for name in names)) for entry in listed)
    except OSError as error:
        raise InputError(f"{manifest} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{manifest} is no manifest that lists replaced rows. Pass the file "
            "OUTPUT.manifest.json that was written beside the enriched file."
        ) from error


def _write(
    codec: Codec[Any],
    rows: RowReader,
    added: Embedding,
    replaced: Sequence[Patch],
    outputs: tuple[OutputFile, Any],
    expected_sha256: str | None,
) -> None:
    source, (file, out) = rows.source, outputs
    with Sha256(source.path, source.size) as sha256:
        # What was checked in an earlier pass is only hashed and copied in this one.
        on_disk = None if expected_sha256 is None else sha256
        if codec.copies_rows:
            _copy_and_append(codec, rows, added, file, out, on_disk, replaced)
        else:
            if expected_sha256 is None:
                _scan(rows, added)
            if replaced:
                codec.exchange(rows, {patch.row - 1: patch.new for patch in replaced})
            codec.rewrite(rows, added, out)
        if expected_sha256 is not None:
            _refuse_other_content(source, sha256.result(), expected_sha256)


def _refuse_other_content(source: Source, actual: str, expected: str) -> None:
    if actual != expected:
        raise FormatError(
            f"{source.path} changed since its words were read: its SHA-256 was {expected} and is "
            f"now {actual}. Wait until nobody writes to it, then run again."
        )


def _check_added(codec: Codec[Any], rows: RowReader, added: Embedding) -> None:
    codec.refuse_if_read_only(rows.source, "extended")
    if codec.copies_rows and rows.source.container != "plain" and rows.source.head.startswith(ZIP):
        raise InputError(
            f"{rows.source} begins with the bytes of a zip, so the result would be taken for one. "
            "Rename its first word."
        )
    codec.check_words(added.words)
    if len(added) and added.n_dims != rows.n_dims:
        raise InputError(
            f"The rows to add have {added.n_dims} dimensions, those of {rows.source} have "
            f"{rows.n_dims}. Add rows of the same length."
        )
    check_finite(added, rows.dtype)


def _scan(rows: RowReader, added: Embedding) -> None:
    """Check every row of the original, and that none of the words to add is in it."""
    wanted_words = WantedWords(added.words)
    for batch in rows.batches():
        _, words = wanted_words.found_in(batch)
        if words:
            raise InputError(
                f"{rows.source} has a row for {shown(words[0])} already, and {len(words)} of the "
                "words to add in the same piece of the file. Add only words that it lacks."
            )


def _copy_and_append(
    codec: Codec[Any],
    rows: RowReader,
    added: Embedding,
    file: OutputFile,
    out: Any,
    on_disk: Aside | None,
    replaced: Sequence[Patch],
) -> None:
    """Copy rows while they are checked, in one pass over the original, and add rows after them."""
    start, n_skipped = codec.new_start(rows, len(added))
    out.write(start)
    to_skip = n_skipped
    patching = Patching(replaced)

    def copy(block: memoryview) -> None:
        nonlocal to_skip
        for piece in patching.pieces(block):
            out.write(piece[to_skip:])
            to_skip -= min(to_skip, len(piece))
        file.start_writing_back()

    with Aside(copy) as copying:
        rows.source.watch(on_disk=on_disk, content=copying)
        if on_disk is None:
            _scan(rows, added)
        else:
            codec.skim(rows)
        if rows.source.is_watched:
            rows.source.read_through()
        copying.finish()
    out.writelines(_appended(codec, rows, added))


def _appended(codec: Codec[Any], rows: RowReader, added: Embedding) -> Iterator[bytes]:
    return codec.added_rows(rows, added) if len(added) else iter(())
