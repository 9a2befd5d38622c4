"""A path -> its bytes, plain, gzip or inside a zip, checked before and after."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from vecfill.errors import FormatError, InputError
from vecfill.io.aside import Aside

MAX_RATIO = 1000
"""A packed file that grows more than this is taken for a bomb."""

HEAD_BYTES = 1 << 16
_MAX_SAMPLE = 1 << 27

_DAMAGE = (
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


class Source:
    """One file to read from, open until closed; `member` picks a file inside a zip."""

    def __init__(self, path: str | os.PathLike[str], member: str | None = None) -> None:
        self.path = Path(path)
        self._file = _opened(self.path)
        self._spool: BinaryIO | None = None
        self.container: Literal["plain", "gzip", "zip"] = "plain"
        self.member = member
        self._on_disk: Aside | None = None
        self._content: Aside | None = None
        try:
            status = os.fstat(self._file.fileno())
            self.size = status.st_size
            self._fingerprint = (status.st_size, status.st_mtime_ns)
            if self.size == 0:
                raise FormatError(f"{self.path} is empty: 0 bytes. Pass a file with vectors in it.")
            self._tell_container()
            self.head = self.read_head()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and forget what was unpacked."""
        self._file.close()
        if self._spool is not None:
            self._spool.close()

    def __str__(self) -> str:
        return f"{self.path} ({self.member})" if self.container == "zip" else str(self.path)

    @property
    def max_size(self) -> int:
        """No more bytes than this can come out."""
        return self.size if self.container == "plain" else self.size * MAX_RATIO + HEAD_BYTES

    @property
    def name(self) -> str:
        """The name whose suffix speaks of the content: without `.gz`, or the member's."""
        if self.container == "zip" and self.member:
            return PurePosixPath(self.member).name
        if self.container == "gzip" and self.path.suffix.lower() == ".gz":
            return self.path.stem
        return self.path.name

    @property
    def suffix(self) -> str:
        """The suffix of `name`, in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    def refuse(self, problem: str) -> FormatError:
        """Return an error that names this file."""
        return FormatError(f"{self}: {problem}")

    def watch(self, *, on_disk: Aside | None = None, content: Aside | None = None) -> None:
        """Let the next stream show what it reads: the file's bytes, and those unpacked from it.

        Formats that need random access open no stream, and zip files skip other members: ask
        `n_bytes` of what was passed whether it saw everything.
        """
        self._on_disk, self._content = on_disk, content

    def read_through(self) -> bytes:
        """Read the content once, for those who watch, and return its last byte."""
        buffer = bytearray(1 << 22)
        last = b""
        with self.stream() as stream:
            while got := stream.readinto(buffer):
                last = buffer[got - 1 : got]
        return bytes(last)

    @property
    def is_watched(self) -> bool:
        """Whether nobody has opened a stream since `watch`."""
        return self._content is not None

    def stream(self) -> ByteStream:
        """Return the content from its beginning, to be read once, in order."""
        on_disk, content = self._on_disk, self._content
        self._on_disk = self._content = None
        if self.container == "plain":
            file = open(self.path, "rb", buffering=0)  # noqa: PTH123, SIM115
            return ByteStream(self, file, watchers=(on_disk, content))
        if self.container == "gzip":
            file = open(self.path, "rb", buffering=0)  # noqa: PTH123, SIM115
            packed = _Watched(file, on_disk)
            unpacked = gzip.GzipFile(fileobj=io.BufferedReader(packed, 1 << 20))
            return ByteStream(self, unpacked, packed, watchers=(content,))
        try:
            archive = zipfile.ZipFile(self.path)
            assert self.member is not None
            member = cast(_Readable, archive.open(self.member))
            return ByteStream(self, member, archive, watchers=(content,))
        except _DAMAGE as error:
            raise self.refuse(
                f"the zip is damaged or locked: {error}. Unpack it yourself."
            ) from error

    def file(self) -> BinaryIO:
        """Return the content as a file with random access.

        What is packed is unpacked once into a temporary file that has no name.
        """
        if self.container == "plain":
            self._file.seek(0)
            return self._file
        if self._spool is None:
            spool = tempfile.TemporaryFile()  # noqa: SIM115
            try:
                with self.stream() as stream:
                    shutil.copyfileobj(stream, spool, 1 << 20)
            except OSError as error:
                spool.close()
                raise InputError(
                    f"{self}: cannot be unpacked: {error}. Unpack it yourself first."
                ) from error
            except BaseException:
                spool.close()
                raise
            self._spool = spool
        self._spool.seek(0)
        return self._spool

    def read_head(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first bytes of the content."""
        with self.stream() as stream:
            return stream.read(size)

    def first_lines(self) -> bytes:
        """Return the head, and as much more as three lines take: wide vectors make long lines.

        A line that is cut by the end of the sample is left out.
        """
        size = HEAD_BYTES
        sample = self.head
        while len(sample) == size and size < _MAX_SAMPLE and _n_line_ends(sample) < 3:
            size *= 8
            sample = self.read_head(size)
        if len(sample) == size:
            sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b"\r")) + 1]
        return sample

    def check_unchanged(self) -> None:
        """Refuse if the file is not the one that was opened."""
        try:
            status = self.path.stat()
            now = (status.st_size, status.st_mtime_ns)
        except OSError:
            now = None
        if now != self._fingerprint:
            raise FormatError(
                f"{self.path} changed while it was being read (its size or time of change is not "
                "what it was). Wait until nobody writes to it, then run again."
            )

    def _tell_container(self) -> None:
        start = self._file.read(4)
        if start.startswith(b"\x1f\x8b"):
            self.container = "gzip"
        elif start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            self._tell_member()
        if self.member is not None and self.container != "zip":
            raise InputError(
                f"member={self.member!r}, but {self.path} is not a zip. Leave member out."
            )

    def _tell_member(self) -> None:
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [info for info in archive.infolist() if not info.is_dir()]
        except _DAMAGE as error:
            raise FormatError(
                f"{self.path}: the zip is damaged: {error}. Fetch it again."
            ) from error
        names = [info.filename for info in members]
        for name in names:
            if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts:
                raise FormatError(
                    f"{self.path}: the zip holds a member named {name!r}, which points outside "
                    "of it. Such a zip is not to be trusted; unpack it yourself if you must."
                )
        if any(name.endswith((".pkl", ".pickle")) for name in names) and self.member is None:
            raise FormatError(
                f"{self.path} is a PyTorch file or other zip of a pickle. Pickles can run code and "
                "are never loaded. Load it with the program that wrote it, then use "
                "vecfill.write_embedding(vecfill.Embedding(words, vectors), 'vectors.safetensors')."
            )
        if self.member is None and names and all(name.endswith(".npy") for name in names):
            return  # an .npz, which is a format and not a container
        if self.member is None and len(names) != 1:
            shown = ", ".join(repr(name) for name in names[:5]) or "none"
            raise FormatError(
                f"{self.path}: the zip holds {len(names)} members ({shown}). "
                "Say which one to read with member=."
            )
        self.member = self.member or names[0]
        self.container = "zip"
        chosen = [info for info in members if info.filename == self.member]
        if len(chosen) != 1:
            shown = ", ".join(repr(name) for name in names[:5])
            raise InputError(
                f"member={self.member!r} is {len(chosen)} times in the zip {self.path}. "
                f"It holds {shown}."
            )
        if chosen[0].flag_bits & 1:
            raise FormatError(f"{self}: this member is encrypted. Unpack it yourself.")
        if chosen[0].file_size > MAX_RATIO * max(chosen[0].compress_size, 1):
            raise _bomb(self)


class _Readable(Protocol):
    def readinto(self, buffer: Any, /) -> int | None: ...
    def close(self) -> None: ...


class _Closable(Protocol):
    def close(self) -> None: ...


class _Watched(io.RawIOBase):
    """A file whose bytes are shown to somebody as they are read."""

    def __init__(self, file: io.FileIO, watcher: Aside | None) -> None:
        super().__init__()
        self._file = file
        self._watcher = watcher

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        got = self._file.readinto(buffer) or 0
        if self._watcher is not None and got:
            self._watcher.offer(memoryview(buffer).cast("B")[:got])
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


class ByteStream(io.RawIOBase):
    """Content read in order, counting what came out; damage comes out as a `FormatError`."""

    def __init__(
        self,
        source: Source,
        file: _Readable,
        container: _Closable | None = None,
        watchers: tuple[Aside | None, ...] = (),
    ) -> None:
        super().__init__()
        self._source = source
        self._file = file
        self._container = container
        self._watchers = [each for each in watchers if each is not None]
        self.n_read = 0

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer` as far as the content goes."""
        view = memoryview(buffer).cast("B")
        filled = 0
        try:
            while filled < len(view):
                got = self._file.readinto(view[filled:])
                if not got:
                    break
                filled += got
                if self.n_read + filled > self._source.max_size:
                    raise _bomb(self._source)
        except FormatError:
            raise
        except _DAMAGE as error:
            raise self._source.refuse(
                f"the {self._source.container} file is damaged or cut short after "
                f"{self.n_read + filled} bytes of content ({error}). Fetch it again."
            ) from error
        self.n_read += filled
        for watcher in self._watchers:
            watcher.offer(view[:filled])
        return filled

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

    def advance(self, used: int) -> None:
        """Drop the first `used` bytes and read on."""
        rest = self.end - used
        self.buffer[:rest] = self.buffer[used : self.end].copy()
        self.end = rest
        self.offset += used
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
        got = self._stream.readinto(room)
        self.end += got
        self.at_end = got < len(room)


def _opened(path: Path) -> BinaryIO:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a directory. Name a file in it.")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is a pipe or a device. Save it as a plain file first.")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist. Check the spelling and the folder.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read (permission denied). Ask its owner.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read: {error}.") from error


def _n_line_ends(sample: bytes) -> int:
    return max(sample.count(b"\n"), sample.count(b"\r"))


def _bomb(source: Source) -> FormatError:
    return source.refuse(
        f"unpacks to more than {MAX_RATIO} times its size, as a bomb does. "
        "If you trust it, unpack it yourself first."
    )
