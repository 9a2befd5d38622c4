"""An Embedding -> a file in any format but fastText's own."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.io.atomic import OutputFile, atomic_output
from vecfill.io.batches import ROWS_PER_BLOCK, check_finite, encoded, in_blocks, packed
from vecfill.io.columnar import VECTOR, WORD, Columns, as_record_batch, embedding_schema
from vecfill.io.formats import Format, format_for_writing, named_format
from vecfill.io.numbers import shortest_texts
from vecfill.io.text import TextStyle, rows_as_text
from vecfill.io.word2vec_binary import header, rows_as_bytes

_TENSOR_TYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i8": "I64", "u1": "U8"}


def write_embedding(
    embedding: Embedding,
    path: str | os.PathLike[str],
    *,
    format: str | Format | None = None,  # noqa: A002
    overwrite: bool = False,
) -> None:
    """Write `embedding` to `path`, whole or not at all.

    Numbers in text are as short as reads back the same bits. word2vec binary holds float32 only:
    float64 is rounded. What a format cannot hold (a space in a word of word2vec binary, say) is
    refused before anything is written.

    Parameters
    ----------
    embedding
        What to write.
    path
        Where to; a name that ends in `.gz` is compressed.
    format
        A name from `Format`; by default the suffix tells.
    overwrite
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.vec"
    >>> write_embedding(Embedding(["cat"], [[0.5, 1.0]]), path)
    >>> print(path.read_text(), end="")
    1 2
    cat 0.5 1
    """
    kind = format_for_writing(os.fspath(path)) if format is None else named_format(format)
    if kind is Format.FASTTEXT:
        raise InputError(
            f"{path}: fastText's own .bin can be read but not written. Use format='word2vec-text' "
            "(.vec), which fastText users can load."
        )
    if len(embedding) == 0:
        raise InputError(f"{path}: there are no words to write. Pass at least one row.")
    is_single = kind is Format.WORD2VEC_BINARY
    check_finite(embedding, np.dtype(np.float32) if is_single else embedding.vectors.dtype)
    with atomic_output(path, overwrite=overwrite) as file, compressing(file, path) as out:
        _write(embedding, out, kind)


def compressing(file: OutputFile, path: str | os.PathLike[str]) -> Any:
    """Return a file that compresses what goes to `file` if the name of `path` says so."""
    if Path(path).suffix.lower() == ".gz":
        # No name and no time inside, so that the same content gives the same bytes.
        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    return io.BufferedWriter(_Unclosed(file), 1 << 20)


class _Unclosed(io.RawIOBase):
    """Passes writes on; closing it leaves the file open for its owner to sync."""

    def __init__(self, file: OutputFile) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._file.write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class _Forward:
    """Passes writes on and cannot go back, which gzip claims to do and cannot."""

    def __init__(self, file: Any) -> None:
        self.write = file.write
        self.flush = file.flush


def _write(embedding: Embedding, out: Any, kind: Format) -> None:
    words = [encoded(word) for word in embedding.words]
    match kind:
        case Format.WORD2VEC_BINARY:
            out.write(header(len(embedding), embedding.n_dims))
            out.writelines(rows_as_bytes(embedding, newlines=False))
        case Format.WORD2VEC_TEXT | Format.GLOVE:
            if kind is Format.WORD2VEC_TEXT:
                out.write(header(len(embedding), embedding.n_dims))
            out.writelines(rows_as_text(embedding, TextStyle()))
        case Format.SAFETENSORS | Format.NPZ:
            store = write_safetensors if kind is Format.SAFETENSORS else write_npz
            vectors, blocks = embedding.vectors, _vector_blocks(embedding)
            store(out, Content(words, blocks, vectors.shape, vectors.dtype, embedding.provenance))
        case Format.PARQUET | Format.ARROW:
            is_text = all(_is_utf8(word) for word in words)
            schema = embedding_schema(embedding, with_text=is_text)
            columns = Columns(WORD, (VECTOR,), is_list=True)
            blocks = (
                as_record_batch(
                    words[first : first + ROWS_PER_BLOCK],
                    embedding.vectors[first : first + ROWS_PER_BLOCK],
                    schema,
                    columns,
                )
                for first in range(0, len(words), ROWS_PER_BLOCK)
            )
            write_tables(out, blocks, schema, kind)
        case _:
            delimiter = b"\t" if kind is Format.TSV else b","
            names = (f"d{dim}".encode("ascii") for dim in range(embedding.n_dims))
            out.write(delimiter.join([WORD.encode("ascii"), *names]) + b"\n")
            out.writelines(rows_as_csv(embedding, delimiter, b"\n"))


def _vector_blocks(embedding: Embedding) -> Iterator[bytes]:
    little = embedding.vectors.dtype.newbyteorder("<")
    for _, vectors in in_blocks(embedding):
        yield vectors.astype(little, copy=False).tobytes()


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Content(NamedTuple):
    """What a file of arrays holds: words, and vectors in blocks of bytes."""

    words: list[bytes]
    blocks: Iterable[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    provenance: Mapping[str, str]


def write_safetensors(out: Any, content: Content) -> None:
    """Write words and vectors as a safetensors file."""
    data, ends = packed(content.words)
    entries: dict[str, Any] = {"__metadata__": {"format": "vecfill", **content.provenance}}
    place = 0
    # Largest items first, so that each tensor starts at a multiple of its item size.
    sizes = {"word_ends": ends.dtype, "vectors": content.dtype, "words": data.dtype}
    for name in sorted(sizes, key=lambda each: -sizes[each].itemsize):
        form = {"word_ends": ends.shape, "vectors": content.shape, "words": data.shape}[name]
        n_bytes = int(np.prod(form, dtype=np.int64)) * sizes[name].itemsize
        kind = _TENSOR_TYPES[sizes[name].str[1:]]
        entries[name] = {
            "dtype": kind,
            "shape": list(form),
            "data_offsets": [place, place + n_bytes],
        }
        place += n_bytes
    text = json.dumps(entries).encode("utf-8")
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)
    for name in list(entries)[1:]:
        if name == "vectors":
            out.writelines(content.blocks)
        else:
            out.write((ends.astype("<i8") if name == "word_ends" else data).tobytes())


def write_npz(out: Any, content: Content) -> None:
    """Write words and vectors as an uncompressed `.npz`, which has no place for provenance."""
    data, ends = packed(content.words)
    parts: list[tuple[str, tuple[int, ...], np.dtype[Any], Iterable[bytes]]] = [
        ("words", data.shape, data.dtype, [data.tobytes()]),
        ("word_ends", ends.shape, np.dtype("<i8"), [ends.astype("<i8").tobytes()]),
        ("vectors", content.shape, content.dtype.newbyteorder("<"), content.blocks),
    ]
    place = _Forward(out) if isinstance(out, gzip.GzipFile) else out
    with zipfile.ZipFile(cast(Any, place), "w", zipfile.ZIP_STORED) as archive:
        for name, form, kind, blocks in parts:
            # A fixed date, so that the same content gives the same bytes.
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=True) as member:
                about = {"descr": kind.str, "fortran_order": False, "shape": form}
                np.lib.format.write_array_header_1_0(member, about)
                for block in blocks:
                    member.write(block)


def write_tables(
    out: Any, blocks: Iterable[pa.RecordBatch], schema: pa.Schema, kind: Format
) -> None:
    """Write record batches as Parquet or Arrow."""
    if kind is Format.PARQUET:
        with pq.ParquetWriter(out, schema) as writer:
            for block in blocks:
                writer.write_batch(block)
    else:
        with pa.ipc.new_file(out, schema) as writer:
            for block in blocks:
                writer.write_batch(block)


def rows_as_csv(added: Embedding, delimiter: bytes, newline: bytes) -> Iterator[bytes]:
    """Return rows of CSV or TSV, some at a time; words are quoted where they must be."""
    for word in added.words:
        if not word.strip() or "\0" in word:
            raise InputError(f"The word {word!r} is blank or holds a NUL. Give it a name.")
    for words, vectors in in_blocks(added):
        texts = shortest_texts(vectors).to_pylist()
        yield b"".join(
            _quoted(encoded(word), delimiter)
            + delimiter
            + numbers.encode("ascii").replace(b" ", delimiter)
            + newline
            for word, numbers in zip(words, texts, strict=True)
        )


def _quoted(word: bytes, delimiter: bytes) -> bytes:
    if any(each in word for each in (delimiter, b'"', b"\n", b"\r")):
        return b'"' + word.replace(b'"', b'""') + b'"'
    return word
