"""An Embedding -> a file in any format that can be written."""

from __future__ import annotations

import os

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.io.atomic import atomic_output
from vecfill.io.batches import check_finite
from vecfill.io.codecs import codec_for_writing, codec_named
from vecfill.io.sources import file_name
from vecfill.io.streams import compressing


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
