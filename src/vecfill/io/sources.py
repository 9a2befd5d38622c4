"""A path -> its bytes, plain, gzip or inside a zip, checked before and after."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import zipfile
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

from vecfill.errors import FormatError, InputError
from vecfill.io.streams import DAMAGE, MAX_RATIO, Aside, ByteStream, Readable, Watched, bomb

GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
ZSTANDARD = b"\x28\xb5\x2f\xfd"
HEAD_BYTES = 1 << 16
MAX_LINE = 1 << 25
"""Bytes of a line from which on a text is taken for damaged: more than the 25 that a float64 takes
with its sign, exponent and separator, for each of `vecfill.io.batches.MAX_DIMS` numbers."""

_MAX_SAMPLE = 2 * MAX_LINE

_HOW_TO_CONVERT = (
    "Pickles can run code and are never loaded. Convert it with the program that wrote it; "
    "for gensim: KeyedVectors.load('FILE').save_word2vec_format('vectors.bin', binary=True)"
)

_PICKLE_SUFFIXES = (".kv", ".pkl", ".pickle", ".pt", ".pth", ".joblib", ".model")

_OTHERS = {
    b"\xfd7zXZ": "an xz archive. Unpack it first",
    b"BZh": "a bzip2 archive. Unpack it first",
    ZSTANDARD: "a zstandard archive inside another. Unpack it first",
    b"7z\xbc\xaf": "a 7-zip archive. Unpack it first",
    b"\x89HDF": "an HDF5 file. Save its vectors as safetensors or .npz",
    b"FEA1": "a Feather file of version 1. Save it again as Parquet",
    b"\x1f\x8b": "gzip inside gzip. Unpack it first",
    b"%PDF": "a PDF",
    b"PK\x05\x06": "an empty zip",
}


class Source:
    """One file to read from, open until closed; `member` picks a file inside a zip."""

    def __init__(self, path: str | os.PathLike[str], member: str | None = None) -> None:
        self.path = Path(file_name(path))
        self._file = _opened(self.path)
        self._spool: BinaryIO | None = None
        self.container: Literal["plain", "gzip", "zip", "zstandard"] = "plain"
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
            self._refuse_packed_twice()
        except BaseException:
            self.close()
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
        """The name whose suffix speaks of the content: without `.gz` or `.zst`, or the member's."""
        if self.container == "zip" and self.member:
            return PurePosixPath(self.member).name
        packed = {"gzip": (".gz",), "zstandard": (".zst", ".zstd")}.get(self.container, ())
        if self.path.suffix.lower() in packed:
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
            while n_read := stream.readinto(buffer):
                last = buffer[n_read - 1 : n_read]
        return bytes(last)

    @property
    def is_watched(self) -> bool:
        """Whether nobody has opened a stream since `watch`."""
        return self._content is not None

    @property
    def _is_made(self) -> bool:
        """Whether the content is not that of the file on disk."""
        return self.container != "plain"

    def stream(self) -> ByteStream:
        """Return the content from its beginning, to be read once, in order."""
        on_disk, content = self._on_disk, self._content
        self._on_disk = self._content = None
        if self.container == "plain":
            file = open(self.path, "rb", buffering=0)  # noqa: PTH123, SIM115
            return ByteStream(self, file, watchers=(on_disk, content))
        if self.container in ("gzip", "zstandard"):
            packed = Watched(self.path, on_disk)
            buffered = io.BufferedReader(packed, 1 << 20)
            if self.container == "gzip":
                unpacked: Any = gzip.GzipFile(fileobj=buffered)
            else:
                unpacked = pa.CompressedInputStream(pa.PythonFile(buffered, mode="r"), "zstd")
            return ByteStream(self, unpacked, packed, watchers=(content,))
        try:
            archive = zipfile.ZipFile(self.path)
            assert self.member is not None
            member = cast(Readable, archive.open(self.member))
            return ByteStream(self, member, archive, watchers=(content,))
        except DAMAGE as error:
            raise self.refuse(
                f"the zip is damaged or locked: {error}. Unpack it yourself."
            ) from error

    def file(self) -> BinaryIO:
        """Return the content as a file with random access.

        What is packed is unpacked once into a temporary file that has no name.
        """
        if not self._is_made:
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

    @cached_property
    def first_lines(self) -> bytes:
        """The head, and as much more as three lines take: wide vectors make long lines.

        A line that is cut by the end of the sample is left out. A first line without end is
        refused here, before anybody splits it into millions of fields.
        """
        size = HEAD_BYTES
        sample = self.head
        while len(sample) == size and size < _MAX_SAMPLE and _n_line_ends(sample) < 3:
            if size >= MAX_LINE and not _n_line_ends(sample):
                raise self.endless_line(1)
            size = min(8 * size, MAX_LINE if size < MAX_LINE else _MAX_SAMPLE)
            sample = self.read_head(size)
        if len(sample) == size:
            sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b"\r")) + 1]
        return sample

    def endless_line(self, line: int) -> FormatError:
        """Return the error about a line that is too long to be one of numbers."""
        return self.refuse(
            f"line {line} has no end in {MAX_LINE} bytes. The file is damaged, or is no text."
        )

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
        if start.startswith(GZIP):
            self.container = "gzip"
        elif start == ZSTANDARD:
            self.container = "zstandard"
        elif start.startswith(ZIP):
            self._tell_member()
        if self.member is not None and self.container != "zip":
            raise InputError(
                f"member={self.member!r}, but {self.path} is not a zip. Leave member out."
            )

    def _refuse_packed_twice(self) -> None:
        if self.container != "plain" and self.head.startswith((GZIP, ZSTANDARD)):
            raise self.refuse(
                f"this {self.container} file holds another packed file. Unpack it once, and pass "
                "what comes out."
            )

    def _tell_member(self) -> None:
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [info for info in archive.infolist() if not info.is_dir()]
        except DAMAGE as error:
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
            listed = ", ".join(repr(name) for name in names[:5]) or "none"
            raise FormatError(
                f"{self.path}: the zip holds {len(names)} members ({listed}). "
                "Say which one to read with member=."
            )
        self.member = self.member or names[0]
        self.container = "zip"
        chosen = [info for info in members if info.filename == self.member]
        if len(chosen) != 1:
            listed = ", ".join(repr(name) for name in names[:5])
            raise InputError(
                f"member={self.member!r} is {len(chosen)} times in the zip {self.path}. "
                f"It holds {listed}."
            )
        if chosen[0].flag_bits & 1:
            raise FormatError(f"{self}: this member is encrypted. Unpack it yourself.")
        if chosen[0].file_size > MAX_RATIO * max(chosen[0].compress_size, 1):
            raise bomb(self)


def file_name(value: Any) -> str | os.PathLike[str]:
    """Return `value` if it can be the name of a file.

    Examples
    --------
    >>> file_name("vectors.bin")
    'vectors.bin'
    """
    if isinstance(value, str) or (
        hasattr(value, "__fspath__") and isinstance(os.fspath(value), str)
    ):
        return value
    raise InputError(f"{value!r} is not the name of a file. Pass a string or a pathlib.Path.")


def _opened(path: Path) -> BinaryIO:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a directory. Name a file in it.")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is a pipe or a device. Save it as a plain file first.")
        return path.open("rb")
    except FileNotFoundError:
        refuse_address(path)
        raise InputError(f"{path} does not exist. Check the spelling and the folder.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read (permission denied). Ask its owner.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read: {error}.") from error


def refuse_address(path: Path) -> None:
    """Refuse a path that does not exist because it is an address on a network."""
    address = re.match(r"(https?|ftp|s3|gs|hdfs):/+(.*)", str(path))
    if address:
        raise InputError(
            f"{address[1]}://{address[2]} is an address. vecfill does not fetch files: download "
            "it, and pass the file."
        )


def _n_line_ends(sample: bytes) -> int:
    return max(sample.count(b"\n"), sample.count(b"\r"))


def refuse_foreign(source: Source) -> None:
    """Refuse pickles, archives and other files that no codec reads."""
    head, suffix = source.head, source.suffix
    if head.startswith(b"\x93NUMPY"):
        raise source.refuse(
            "is an .npy file, which holds one array and no words (pickled objects in it are never "
            "loaded). Save both with numpy.savez('vectors.npz', words=numpy.array(words, "
            "dtype=str), vectors=vectors)."
        )
    is_pickle = re.match(rb"\x80[\x01-\x05]", head) is not None and head[1:9] != b"\0" * 8
    if suffix in _PICKLE_SUFFIXES or (is_pickle and head[8:9] != b"{"):
        kind = {".kv": "gensim KeyedVectors file", ".pt": "PyTorch file"}.get(suffix, "file")
        raise FormatError(f"{source} is a pickled {kind}. {_HOW_TO_CONVERT}.")
    for start, description in _OTHERS.items():
        if head.startswith(start):
            raise source.refuse(f"is {description}.")
