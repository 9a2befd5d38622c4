"""One pass over a file: its words in order, the vectors asked for, and the hash of its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError
from vecfill.io.aside import Sha256
from vecfill.io.batches import Batch, Offsets
from vecfill.io.codecs import codec_of
from vecfill.io.reading import not_finite
from vecfill.io.sources import Source


@dataclass(frozen=True)
class ScannedBatch:
    """Some rows of a file; its vectors are good until the next batch is asked for."""

    words: list[str]
    first_row: int
    """The row in the file of the first word, from 0."""
    batch: Batch
    source: Source

    def vectors(self, places: Sequence[int] | Offsets) -> FloatArray:
        """Return the vectors of some places in this batch; no others are parsed.

        A vector may hold NaN or infinity where the format allows it: see `problem`.
        """
        return self.batch.take(np.asarray(places, dtype=np.int64))

    @property
    def is_finite(self) -> NDArray[np.bool_]:
        """Which rows hold neither NaN nor infinity, as far as that is known without a vector."""
        return self.batch.is_finite

    def problem(self, place: int) -> FormatError:
        """Return the error to raise if the vector at `place` is needed and is not finite."""
        return not_finite(self.source, self.batch, place)


class Scan:
    r"""A pass over a file of vectors, batch by batch, in bounded memory.

    Every row is checked as `read_embedding` checks it. When the last batch is done, `sha256` is
    the hash of the file on disk (of the packed bytes, if it is packed), `n_words` the number of
    rows, `n_odd` the number of those that hold NaN or infinity, and `notes` what there is to tell.

    Parameters
    ----------
    path
        A file of any format in `vecfill.io.FORMAT_NAMES`.
    format, member
        As in `read_embedding`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("cat 0.5 1\ndog 0.25 2\n")
    >>> with Scan(path) as scan:
    ...     for batch in scan:
    ...         print(batch.first_row, batch.words, batch.vectors([1]).tolist())
    0 ['cat', 'dog'] [[0.25, 2.0]]
    >>> scan.n_words, len(scan.sha256)
    (2, 64)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        member: str | None = None,
    ) -> None:
        self.source = Source(path, member)
        try:
            self.codec = codec_of(self.source, format)
            self.rows = self.codec.reader(self.source)
        except BaseException:
            self.source.close()
            raise
        self.n_words = 0
        self.n_odd = 0
        self.sha256 = ""

    def __enter__(self) -> Scan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.source.close()

    @property
    def size(self) -> int:
        """The size of the file on disk, in bytes."""
        return self.source.size

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader has to tell so far, in sentences."""
        return tuple(self.rows.notes)

    def __iter__(self) -> Iterator[ScannedBatch]:
        with Sha256(self.source.path, self.source.size) as sha256:
            self.source.watch(on_disk=sha256)
            try:
                for batch in self.rows.batches():
                    yield ScannedBatch(batch.words(), self.n_words, batch, self.source)
                    self.n_words += len(batch)
                    self.n_odd += int(np.count_nonzero(~batch.is_finite))
            except FormatError:
                self.source.check_unchanged()
                raise
            self.source.watch()
            self.sha256 = sha256.result()
        self.source.check_unchanged()
