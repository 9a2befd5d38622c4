"""The enriching writer: the original's bytes as they are, then rows that follow its style."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vecfill.embedding import Embedding
from vecfill.errors import FormatError, InputError
from vecfill.io.atomic import OutputFile, atomic_outputs
from vecfill.io.batches import RowReader, WantedWords, check_finite, shown
from vecfill.io.codec import Codec
from vecfill.io.codecs import codec_of
from vecfill.io.patching import Patch, Patching
from vecfill.io.sources import ZIP, Source
from vecfill.io.streams import Aside, Sha256
from vecfill.io.writing import compressing


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
        `vecfill.io.replacing.row_patches` found. By default no row changes.

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
        _refuse_same_file(source.path, Path(target))
        codec = codec_of(source, format)
        rows = codec.reader(source)
        _check_added(codec, rows, added)
        more = beside or {}
        with atomic_outputs([target, *more], overwrite=overwrite) as (file, *others):
            for other, content in zip(others, more.values(), strict=True):
                other.write(content)
            with compressing(file, target) as out:
                _write(codec, rows, added, replaced, (file, out), expected_sha256)
            source.check_unchanged()


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
                codec.exchange(rows, {each.row - 1: each.new for each in replaced})
            codec.rewrite(rows, added, out)
        if expected_sha256 is not None:
            _refuse_other_content(source, sha256.result(), expected_sha256)


def _refuse_same_file(original: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        if target.samefile(original):
            raise InputError(
                f"{target} is the original {original} itself, which is never written to. "
                "Choose another name for the result."
            )


def _refuse_other_content(source: Source, found: str, expected: str) -> None:
    if found != expected:
        raise FormatError(
            f"{source.path} changed since its words were read: its SHA-256 was {expected} and is "
            f"now {found}. Wait until nobody writes to it, then run again."
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
    wanted = WantedWords(added.words)
    for batch in rows.batches():
        _, words = wanted.found_in(batch)
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
