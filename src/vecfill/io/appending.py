"""The enriching writer: the original's bytes as they are, then rows that follow its style."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.io.arrays import ArrayRows
from vecfill.io.atomic import OutputFile, atomic_outputs, naming
from vecfill.io.batches import RowReader, WantedWords, check_finite, encoded, shown
from vecfill.io.columnar import ColumnarRows, as_record_batch
from vecfill.io.formats import Format, detected_format, named_format
from vecfill.io.reading import row_reader
from vecfill.io.sources import Source
from vecfill.io.text import BOM, TextRows, check_words, rows_as_text
from vecfill.io.word2vec_binary import Word2vecBinary, rows_as_bytes
from vecfill.io.word2vec_binary import check_words as check_binary_words
from vecfill.io.writing import (
    Content,
    compressing,
    rows_as_csv,
    write_npz,
    write_safetensors,
    write_tables,
)

_COPY_BYTES = 1 << 26


def append_rows(
    original: str | os.PathLike[str],
    target: str | os.PathLike[str],
    added: Embedding,
    *,
    format: str | Format | None = None,  # noqa: A002
    member: str | None = None,
    overwrite: bool = False,
    beside: Mapping[Path, bytes] | None = None,
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
        kind = detected_format(source) if format is None else named_format(format)
        reader = row_reader(source, kind)
        _check_added(source, reader, added)
        more = beside or {}
        with atomic_outputs([target, *more], overwrite=overwrite) as (file, *others):
            for other, content in zip(others, more.values(), strict=True):
                other.write(content)
            if isinstance(reader, Word2vecBinary | TextRows) or kind in (Format.CSV, Format.TSV):
                _copy_and_append(source, reader, added, file, target)
            else:
                _scan(source, reader, added)
                with compressing(file, target) as out:
                    _rewrite(source, reader, added, out)
            source.check_unchanged()


def _refuse_same_file(original: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        if target.samefile(original):
            raise InputError(
                f"{target} is the original {original} itself, which is never written to. "
                "Choose another name for the result."
            )


def _check_added(source: Source, reader: RowReader, added: Embedding) -> None:
    if isinstance(reader, Word2vecBinary):
        check_binary_words(added.words)
    elif isinstance(reader, TextRows):
        check_words(added.words)
    elif not isinstance(reader, ArrayRows | ColumnarRows):
        raise InputError(
            f"{source}: fastText's own .bin can be read but not extended. Use its .vec file."
        )
    if len(added) and added.n_dims != reader.n_dims:
        raise InputError(
            f"The rows to add have {added.n_dims} dimensions, those of {source} have "
            f"{reader.n_dims}. Add rows of the same length."
        )
    check_finite(added, reader.dtype)


def _scan(source: Source, reader: RowReader, added: Embedding) -> int:
    """Check every row of the original, and that none of the words to add is in it."""
    wanted = WantedWords(added.words)
    n_rows = 0
    for batch in reader.batches():
        _, words = wanted.found_in(batch)
        if words:
            raise InputError(
                f"{source} has a row for {shown(words[0])} already, and {len(words)} of the words "
                "to add in the same piece of the file. Add only words that it lacks."
            )
        n_rows += len(batch)
    return n_rows


def _copy_and_append(
    source: Source,
    reader: RowReader,
    added: Embedding,
    file: OutputFile,
    target: str | os.PathLike[str],
) -> None:
    n_known = getattr(reader, "n_rows", None)
    body = getattr(reader, "body", 0)
    with compressing(file, target) as out:
        if n_known is not None:
            out.write(_new_header(source.head[:body], n_known + len(added)))
        else:
            body = 0
        out.flush()
        plain = source.container == "plain" and Path(target).suffix.lower() != ".gz"
        # Copying and checking are both bound by memory and disk, and neither needs the lock.
        with ThreadPoolExecutor(1) as pool:
            stop = threading.Event()
            copying = pool.submit(_copy_body, source, body, file if plain else out, plain, stop)
            try:
                _scan(source, reader, added)
            except BaseException:
                stop.set()  # an interrupt need not wait for the rest of a large file
                raise
            copying.result()
        out.writelines(_appended(source, reader, added))


def _new_header(old: bytes, n_rows: int) -> bytes:
    """Return the header with another count, and with the BOM and line ending it had."""
    counted = re.sub(rb"[0-9]+", str(n_rows).encode("ascii"), old.removeprefix(BOM), count=1)
    return (BOM if old.startswith(BOM) else b"") + counted.replace(b"+", b"")


def _copy_body(source: Source, body: int, out: Any, plain: bool, stop: threading.Event) -> None:
    if not plain:
        with source.stream() as stream:
            stream.read(body)
            while not stop.is_set() and (block := stream.read(1 << 22)):
                out.write(block)
        return
    with source.path.open("rb", buffering=0) as original:
        _copy_inside_kernel(original.fileno(), body, out, source.size, stop)


def _copy_inside_kernel(
    original: int, start: int, out: OutputFile, size: int, stop: threading.Event
) -> None:
    place = start
    copy = getattr(os, "copy_file_range", None)
    while place < size and copy is not None and not stop.is_set():
        try:
            n_copied = copy(original, out.fileno(), min(_COPY_BYTES, size - place), place)
        except OSError as error:
            if error.errno in _NOT_HERE:
                break
            with naming(out.target):
                raise
        if n_copied == 0:
            break
        place += n_copied
        out.start_writing_back()
    while place < size and not stop.is_set():
        block = os.pread(original, min(1 << 22, size - place), place)
        if not block:
            break  # the file shrank; the check for changes will say so
        out.write(block)
        place += len(block)


_NOT_HERE = (1, 18, 22, 25, 38, 95)
"""EPERM, EXDEV, EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP: file systems between which it cannot copy."""


def _appended(source: Source, reader: RowReader, added: Embedding) -> Iterator[bytes]:
    if not len(added):
        return
    if isinstance(reader, Word2vecBinary):
        if reader.has_newlines and not reader.ends_with_newline:
            yield b"\n"
        yield from rows_as_bytes(added, newlines=reader.has_newlines)
    elif isinstance(reader, TextRows):
        if not reader.ends_with_newline:
            yield reader.style.newline
        yield from rows_as_text(added, reader.style)
    else:
        assert isinstance(reader, ColumnarRows)
        yield from _after_csv(source, reader, added)


def _after_csv(source: Source, reader: ColumnarRows, added: Embedding) -> Iterator[bytes]:
    ending = re.search(rb"\r\n|\n|\r", source.head)
    newline = ending.group() if ending else b"\n"
    file = source.file()
    file.seek(-1, os.SEEK_END)
    if file.read(1) not in b"\r\n":
        yield newline
    delimiter = b"\t" if reader.format is Format.TSV else b","
    if reader.schema.names[0] != reader.columns.word:
        raise InputError(
            f"{source}: rows can be added only where the words are the first column; here that is "
            f"{reader.schema.names[0]!r}. Move {reader.columns.word!r} to the front."
        )
    yield from rows_as_csv(added, delimiter, newline)


def _rewrite(source: Source, reader: RowReader, added: Embedding, out: Any) -> None:
    words = [encoded(word) for word in added.words]
    if isinstance(reader, ArrayRows):
        vectors = added.vectors.astype(reader.dtype)
        starts = np.concatenate([np.zeros(1, np.int64), reader.word_ends[:-1]])
        text = reader.words.tobytes()
        spans = zip(starts.tolist(), reader.word_ends.tolist(), strict=True)
        known = [text[start:end] for start, end in spans]
        is_npz = source.head.startswith(b"PK")
        store = write_npz if is_npz else write_safetensors
        blocks = chain(reader.vector_bytes(), [vectors.tobytes()])
        shape = (reader.n_rows + len(added), reader.n_dims)
        store(out, Content(known + words, blocks, shape, reader.dtype, reader.provenance))
        return
    assert isinstance(reader, ColumnarRows)
    vectors = added.vectors.astype(reader.dtype)
    more = as_record_batch(words, vectors, reader.schema, reader.columns)
    write_tables(out, chain(reader.tables(), [more]), reader.schema, reader.format)
