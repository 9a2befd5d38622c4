"""Bytes read in order: unpacked, counted, shown to who watches, and seen through a window."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vecfill.errors import FormatError

if TYPE_CHECKING:
    from vecfill.io.atomic import OutputFile
    from vecfill.io.sources import Source

MAX_RATIO = 1000
"""A packed file that grows more than this is taken for a bomb."""

_MAX_WAITING = 2

DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    IndexError,
    KeyError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
)
"""What the standard library raises on broken gzip and zip files (found by fuzzing)."""


class Aside:
    """Calls `action` with each block in order on one other thread, at most two blocks behind.

    Blocks are copied, because readers reuse their buffers; so are the copies, after `action`
    returns. What it raises comes out of a later `offer` or of `finish`.

    Examples
    --------
    >>> seen = []
    >>> with Aside(lambda block: seen.append(bytes(block))) as aside:
    ...     aside.offer(memoryview(b"cat"))
    ...     aside.finish()
    >>> seen
    [b'cat']
    """

    def __init__(self, action: Callable[[memoryview], Any]) -> None:
        self._action = action
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[Any]] = deque()
        self._free: deque[bytearray] = deque()
        self.n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def offer(self, block: memoryview) -> None:
        """Hand over a block; wait if too many are waiting already."""
        self.n_bytes += len(block)
        # A fresh buffer for each block would cost more than copying: its pages must be cleared.
        buffer = self._free.popleft() if self._free else bytearray()
        if len(buffer) < len(block):
            buffer = bytearray(len(block))
        memoryview(buffer)[: len(block)] = block
        self._waiting.append(self._pool.submit(self._act, buffer, len(block)))
        if len(self._waiting) > _MAX_WAITING:
            self._waiting.popleft().result()

    def _act(self, buffer: bytearray, size: int) -> None:
        self._action(memoryview(buffer)[:size])
        self._free.append(buffer)

    def finish(self) -> None:
        """Wait until all blocks are done."""
        while self._waiting:
            self._waiting.popleft().result()


class Sha256(Aside):
    """The SHA-256 of a file, computed from the blocks that a reader reads anyway."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._digest = hashlib.sha256()
        super().__init__(self._digest.update)

    def result(self) -> str:
        """Return the hash; what was not read in one go (a member of a zip, say) is read now."""
        self.finish()
        if self.n_bytes == self._size:
            return self._digest.hexdigest()
        return sha256_of(self._path)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Readable(Protocol):
    """What bytes can be read from in order."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill some of `buffer`."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class Closable(Protocol):
    """What is to be closed with a stream."""

    def close(self) -> None:
        """Close it."""
        ...


class Watched(io.FileIO):
    """A file whose bytes are shown to somebody as they are read."""

    def __init__(self, path: Path, watcher: Aside | None) -> None:
        super().__init__(path)
        self._watcher = watcher

    def readinto(self, buffer: Any, /) -> int:
        """Fill some of `buffer`, and show it."""
        n_read = super().readinto(buffer) or 0
        if self._watcher is not None and n_read:
            self._watcher.offer(memoryview(buffer).cast("B")[:n_read])
        return n_read


class ByteStream(io.RawIOBase):
    """Content read in order, counting what came out; damage comes out as a `FormatError`."""

    def __init__(
        self,
        source: Source,
        file: Readable,
        container: Closable | None = None,
        watchers: tuple[Aside | None, ...] = (),
    ) -> None:
        super().__init__()
        self._source = source
        self._file = file
        self._container = container
        self._watchers = [watcher for watcher in watchers if watcher is not None]
        self.n_read = 0

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer` as far as the content goes."""
        view = memoryview(buffer).cast("B")
        n_filled = 0
        try:
            while n_filled < len(view):
                n_more = self._file.readinto(view[n_filled:])
                if not n_more:
                    break
                n_filled += n_more
                if self.n_read + n_filled > self._source.max_size:
                    raise bomb(self._source)
        except FormatError:
            raise
        except EOFError as error:
            raise self._source.refuse(
                f"the {self._source.container} file is cut short: it ends before its compressed "
                "data does. Fetch it again."
            ) from error
        except DAMAGE as error:
            raise self._source.refuse(
                f"the {self._source.container} file is damaged or cut short after "
                f"{self.n_read + n_filled} bytes of content ({error}). Fetch it again."
            ) from error
        self.n_read += n_filled
        for watcher in self._watchers:
            watcher.offer(view[:n_filled])
        return n_filled

    def close(self) -> None:
        """Close what was opened."""
        if not self.closed:
            self._file.close()
            if self._container is not None:
                self._container.close()
        super().close()


class Window:
    """A piece of a stream in one buffer: what is used leaves in front, more comes in behind.

    Reading in pieces instead of mapping the file keeps the address space small, so that a file of
    several GB can be scanned under a limit of one, and a file cut short while we read is an error
    and not a bus fault.
    """

    def __init__(self, stream: ByteStream, capacity: int, offset: int = 0) -> None:
        self._stream = stream
        self.buffer: NDArray[np.uint8] = np.empty(capacity, dtype=np.uint8)
        self.end = 0
        self.offset = offset
        self.at_end = False
        self._fill()

    def advance(self, n_used: int) -> None:
        """Drop the first `used` bytes and read on."""
        n_unused = self.end - n_used
        self.buffer[:n_unused] = self.buffer[n_used : self.end].copy()
        self.end = n_unused
        self.offset += n_used
        self._fill()

    def grow(self) -> None:
        """Double the buffer and read on."""
        larger = np.empty(2 * len(self.buffer), dtype=np.uint8)
        larger[: self.end] = self.buffer[: self.end]
        self.buffer = larger
        self._fill()

    def _fill(self) -> None:
        if self.at_end:
            return
        room = self.buffer[self.end :].data
        n_read = self._stream.readinto(room)
        self.end += n_read
        self.at_end = n_read < len(room)


def bomb(source: Source) -> FormatError:
    """Return the error about a packed file that grows too much."""
    return source.refuse(
        f"unpacks to more than {MAX_RATIO} times its size, as a bomb does. "
        "If you trust it, unpack it yourself first."
    )


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
