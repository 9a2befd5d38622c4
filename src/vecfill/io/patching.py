"""Content in which some rows stand for others: a file with its rows exchanged, byte for byte."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vecfill.errors import FormatError
from vecfill.io.sources import Source
from vecfill.io.streams import ByteStream

_BLOCK = 1 << 20


@dataclass(frozen=True)
class RowChange:
    """A row that was replaced: its word, its number from 1, and hashes of its bytes.

    The bytes of a row are its line, or its word and numbers in word2vec binary. In safetensors,
    `.npz`, Parquet and Arrow files they are the numbers of its vector as the file stores them.
    """

    word: str
    row: int
    sha256_before: str
    sha256_after: str


@dataclass(frozen=True)
class Patch:
    """A row of a file, and the bytes that are to stand in its place.

    Examples
    --------
    >>> Patch("cat", 1, 4, b"cat 0.5", b"cat 0.25").change.row
    1
    """

    word: str
    row: int
    """From 1; headers do not count."""
    offset: int
    """Where in the content the row begins; formats that are written anew do not need it."""
    old: bytes = field(repr=False)
    new: bytes = field(repr=False)

    @property
    def change(self) -> RowChange:
        """What is to be recorded of it."""
        before, after = (hashlib.sha256(content).hexdigest() for content in (self.old, self.new))
        return RowChange(self.word, self.row, before, after)


class Patching:
    r"""Exchanges runs of bytes in content that comes by in blocks.

    Examples
    --------
    >>> patching = Patching([Patch("cat", 1, 4, b"cat 0.5", b"cat 0.25")])
    >>> blocks = [b"1 1\ncat", b" 0.5\n"]
    >>> b"".join(bytes(piece) for each in blocks for piece in patching.pieces(memoryview(each)))
    b'1 1\ncat 0.25\n'
    """

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._left = deque(sorted(patches, key=lambda patch: patch.offset))
        self._place = 0

    def pieces(self, block: memoryview) -> Iterator[memoryview]:
        """Return what the next block becomes; refuse it if an old row is not what it was."""
        first, place = self._place, self._place
        end = self._place = first + len(block)
        while self._left and self._left[0].offset < end:
            patch = self._left[0]
            if place < patch.offset:
                yield block[place - first : patch.offset - first]
                place = patch.offset
            last = patch.offset + len(patch.old)
            stop = min(end, last)
            if (
                block[place - first : stop - first]
                != patch.old[place - patch.offset :][: stop - place]
            ):
                raise FormatError(
                    f"The row of {patch.word!r} is not what it was when it was found. Wait until "
                    "nobody writes to the file, then run again."
                )
            place = stop
            if stop < last:
                return  # the rest of the row comes with the next block
            self._left.popleft()
            yield memoryview(patch.new)
        if place < end:
            yield block[place - first :]


class PatchedSource(Source):
    """A file read as if some of its rows were others."""

    def __init__(
        self, path: str | os.PathLike[str], patches: Iterable[Patch], member: str | None = None
    ) -> None:
        self._patches = tuple(patches)
        super().__init__(path, member)

    @property
    def max_size(self) -> int:
        """No more bytes than this can come out."""
        return super().max_size + sum(len(patch.new) for patch in self._patches)

    @property
    def _is_made(self) -> bool:
        return True

    def stream(self) -> ByteStream:
        """Return the content with its rows exchanged, to be read once, in order."""
        return ByteStream(self, _PatchedFile(super().stream(), self._patches))


class _PatchedFile:
    """What `ByteStream` reads from: the blocks of another stream, with rows exchanged."""

    def __init__(self, file: ByteStream, patches: Iterable[Patch]) -> None:
        self._file = file
        self._patching = Patching(patches)
        self._block = bytearray(_BLOCK)
        self._held = memoryview(b"")

    def readinto(self, buffer: Any, /) -> int:
        """Fill as much of `buffer` as is at hand; 0 at the end."""
        while not self._held:
            n_read = self._file.readinto(self._block)
            if not n_read:
                return 0
            pieces = self._patching.pieces(memoryview(self._block)[:n_read])
            self._held = memoryview(b"".join(pieces))
        n_bytes = min(len(buffer), len(self._held))
        buffer[:n_bytes] = self._held[:n_bytes]
        self._held = self._held[n_bytes:]
        return n_bytes

    def close(self) -> None:
        """Close the stream beneath."""
        self._file.close()
