"""An Embedding -> a file in any format that can be written."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path
from typing import Any

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.io.atomic import OutputFile, atomic_output
from vecfill.io.batches import check_finite
from vecfill.io.codecs import codec_for_writing, codec_named
from vecfill.io.targets import file_name


def write_embedding(
    embedding: Embedding,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    overwrite: bool = False,
) -> None:
    """Write `embedding` to `path`, whole or not at all.

    Numbers in text have as few digits as give the same bits when they are read. word2vec binary
    holds float32 only: float64 is rounded. What a format cannot hold, such as a space in a
    word of word2vec binary, is refused before anything is written.

    Parameters
    ----------
    embedding
        What to write.
    path
        Where to; a name that ends in `.gz` is compressed.
    format
        A name from `vecfill.io.FORMAT_NAMES`. By default the suffix decides.
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
    codec = codec_for_writing(os.fspath(file_name(path))) if format is None else codec_named(format)
    codec.refuse_if_read_only(path, "written")
    if len(embedding) == 0:
        raise InputError(f"{path}: there are no words to write. Pass at least one row.")
    check_finite(embedding, codec.dtype_of(embedding))
    with atomic_output(path, overwrite=overwrite) as file, compressing(file, path) as out:
        codec.write(embedding, out)


def compressing(file: OutputFile, path: str | os.PathLike[str]) -> Any:
    """Return a file that compresses what goes to `file` if the name of `path` says so."""
    if Path(path).suffix.lower() == ".gz":
        return io.BufferedWriter(_Compressed(file), 1 << 20)
    return io.BufferedWriter(_Unclosed(file), 1 << 20)


class _Compressed(io.RawIOBase):
    """Passes writes on in gzip's format, with no name and no time inside.

    `gzip.GzipFile` that meets a full disk tries to write again when it is collected, and by then
    the descriptor may belong to another file.
    """

    def __init__(self, file: OutputFile) -> None:
        super().__init__()
        self._file = file
        self._compressor = zlib.compressobj(6, wbits=16 + zlib.MAX_WBITS)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._file.write(self._compressor.compress(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            try:
                self._file.write(self._compressor.flush())
            finally:
                super().close()


class _Unclosed(io.FileIO):
    """Passes writes on; closing it leaves the file open for its owner to sync."""

    def __init__(self, file: OutputFile) -> None:
        super().__init__(file.fileno(), "w", closefd=False)
        self._file = file

    def write(self, data: Any, /) -> int:
        return self._file.write(data)
