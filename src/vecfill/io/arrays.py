"""Files of named arrays, `.npz` and safetensors: `vectors`, and `words` with `word_ends`.

`words` is all words in one run of bytes and `word_ends` says where each ends. An `.npz` may hold
`words` as an array of strings instead. Pickles inside are never loaded.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError
from vecfill.io.batches import Batch, Bytes, Offsets, blank_words, encoded, finite_rows, packed
from vecfill.io.sources import MAX_RATIO, Source
from vecfill.io.word2vec_binary import MAX_DIMS

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1",
}  # fmt: skip
_MAX_HEADER = 100_000_000
_BLOCK_BYTES = 1 << 24
_DAMAGE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, OverflowError,
    EOFError, OSError, struct.error, zipfile.BadZipFile, zlib.error, SyntaxError,
    MemoryError, zipfile.LargeZipFile,
)  # fmt: skip


class ArrayFile(Protocol):
    """Named arrays in a file, each readable from its first byte to its last."""

    kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
    metadata: Mapping[str, str]

    def open(self, name: str) -> BinaryIO:
        """Return the bytes of an array."""
        ...


@dataclass
class SafetensorsFile:
    """A safetensors file; its header is checked against the file before anything is read."""

    source: Source

    def __post_init__(self) -> None:
        self._file = self.source.file()
        size = self._file.seek(0, 2)
        self._file.seek(0)
        start = self._file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > size - 8 or length > _MAX_HEADER:
            raise self.source.refuse(
                f"is a safetensors file whose header claims {length} bytes, but the file has "
                f"{size}. It is cut or damaged: fetch it again."
            )
        try:
            header = json.loads(self._file.read(length))
            metadata = dict(header.pop("__metadata__", None) or {})
            self.kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
            self._places: dict[str, tuple[int, int]] = {}
            for name, entry in header.items():
                first, last = (int(each) for each in entry["data_offsets"])
                shape = tuple(int(each) for each in entry["shape"])
                if entry["dtype"] in _TYPES:
                    self.kinds[name] = (np.dtype(_TYPES[entry["dtype"]]), shape)
                elif name in ("words", "word_ends", "vectors"):
                    raise self.source.refuse(
                        f"the tensor {name!r} is of type {entry['dtype']!r}; "
                        f"{', '.join(_TYPES)} can be read. Convert it."
                    )
                self._places[name] = (8 + length + first, 8 + length + last)
        except FormatError:
            raise
        except (*_DAMAGE, RecursionError) as error:
            raise self.source.refuse(
                f"its safetensors header is not what one should be ({error!r}). Fetch it again."
            ) from error
        self.metadata: Mapping[str, str] = {str(k): str(v) for k, v in metadata.items()}
        self._check_places(8 + length, size)

    def _check_places(self, start: int, size: int) -> None:
        last_end, last_name = start, ""
        for name, (first, last) in sorted(self._places.items(), key=lambda item: item[1]):
            if first < start or last < first or last > size:
                raise self.source.refuse(
                    f"the tensor {name!r} claims bytes {first} to {last}, out of range: data is in "
                    f"bytes {start} to {size}. The file is cut or damaged: fetch it again."
                )
            if first < last_end:
                raise self.source.refuse(
                    f"the tensors {last_name!r} and {name!r} overlap at byte offset {first}. "
                    "The file is damaged: fetch it again."
                )
            last_end, last_name = last, name
        for name, (dtype, shape) in self.kinds.items():
            first, last = self._places[name]
            if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != last - first:
                raise self.source.refuse(
                    f"the tensor {name!r} of shape {shape} and type {dtype} does not take "
                    f"{last - first} bytes. The file is damaged: fetch it again."
                )

    def open(self, name: str) -> BinaryIO:
        """Return the file at the first byte of a tensor."""
        file = self.source.file()
        file.seek(self._places[name][0])
        return file


@dataclass
class NpzFile:
    """An `.npz`: a zip of `.npy` arrays."""

    source: Source

    def __post_init__(self) -> None:
        self.kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self.metadata: Mapping[str, str] = MappingProxyType({})
        try:
            self._archive = zipfile.ZipFile(self.source.file())
            for info in self._archive.infolist():
                if info.file_size > MAX_RATIO * max(info.compress_size, 1):
                    raise self.source.refuse(
                        f"{info.filename} unpacks to more than {MAX_RATIO} times its size, as a "
                        "bomb does. If you trust it, save it again without compression."
                    )
                name = info.filename.removesuffix(".npy")
                with self._archive.open(info) as member:
                    self.kinds[name] = self._kind(member, name)
        except FormatError:
            raise
        except _DAMAGE as error:
            raise self.source.refuse(
                f"is a damaged .npz file ({error}). Save it again with numpy.savez."
            ) from error

    def _kind(self, member: Any, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(member)
        if dtype.hasobject:
            raise self.source.refuse(
                f"the array {name!r} holds pickled objects, which can run code and are never "
                "loaded. Save words as numpy.array(words, dtype=str)."
            )
        if is_fortran and len(shape) > 1 and name in ("words", "vectors"):
            raise self.source.refuse(
                f"the array {name!r} is stored column by column. "
                "Save numpy.ascontiguousarray of it."
            )
        return dtype, shape

    def open(self, name: str) -> BinaryIO:
        """Return the bytes of an array, unpacked as they are read."""
        member: Any = self._archive.open(f"{name}.npy")
        self._kind(member, name)
        return member


class ArrayRows:
    """The rows of an `.npz` or safetensors file."""

    def __init__(self, source: Source, arrays: ArrayFile) -> None:
        self.source = source
        self.arrays = arrays
        self.notes: list[str] = []
        self.provenance = arrays.metadata
        for name in ("vectors", "words"):
            if name not in arrays.kinds:
                held = ", ".join(repr(each) for each in list(arrays.kinds)[:8]) or "nothing"
                raise source.refuse(
                    f"has no array {name!r}; it holds {held}. Save the arrays 'words' and "
                    "'vectors', or let vecfill.write_embedding do it."
                )
        self.dtype, shape = arrays.kinds["vectors"]
        if self.dtype.kind != "f" or len(shape) != 2:
            raise source.refuse(
                f"'vectors' has type {self.dtype} and shape {shape}. Save floating-point "
                "numbers of shape (n_words, n_dims)."
            )
        self.n_rows, self.n_dims = shape
        if not 0 < self.n_dims <= MAX_DIMS:
            raise source.refuse(f"'vectors' has {self.n_dims} dimensions. Save at least one.")
        self.words, self.word_ends = self._read_words()
        if len(self.word_ends) != self.n_rows:
            raise source.refuse(
                f"holds {len(self.word_ends)} words but {self.n_rows} vectors. Save one each."
            )

    def _read_words(self) -> tuple[Bytes, Offsets]:
        dtype, shape = self.arrays.kinds["words"]
        if dtype.kind in "US" and len(shape) == 1:
            strings = np.frombuffer(self._whole("words"), dtype=dtype)
            try:
                raw = [
                    encoded(each) if isinstance(each, str) else each for each in strings.tolist()
                ]
            except _DAMAGE as error:
                raise self.source.refuse(f"'words' holds no valid text ({error}).") from error
            return self._checked(*packed(raw))
        if dtype != np.uint8 or len(shape) != 1:
            raise self.source.refuse(
                f"'words' has type {dtype} and shape {shape}. Save a list of strings."
            )
        kind, form = self.arrays.kinds.get("word_ends", (np.dtype(bool), ()))
        if kind.kind not in "iu" or len(form) != 1:
            raise self.source.refuse(
                "has bytes of words but no whole numbers 'word_ends' that say where each word "
                "ends. Let vecfill.write_embedding save it."
            )
        words = np.frombuffer(self._whole("words"), dtype=np.uint8)
        ends = np.frombuffer(self._whole("word_ends"), dtype=kind).astype(np.int64)
        return self._checked(words, ends)

    def _checked(self, words: Bytes, ends: Offsets) -> tuple[Bytes, Offsets]:
        lengths = np.diff(ends, prepend=0)
        last = int(ends[-1]) if len(ends) else 0
        if last != len(words) or (lengths < 0).any():
            raise self.source.refuse(
                "'word_ends' does not cut 'words' into words: it must rise to "
                f"{len(words)}. The file is damaged."
            )
        for row in blank_words(words, ends - lengths, ends):
            raise self.source.refuse(
                f"the word of row {row + 1} is empty or white space alone. Give it a name."
            )
        return words, ends

    def _whole(self, name: str) -> bytes:
        dtype, shape = self.arrays.kinds[name]
        return b"".join(
            self._blocks(name, max(1, _BLOCK_BYTES // max(dtype.itemsize, 1)), shape[0])
        )

    def _blocks(self, name: str, n_block: int, n_rows: int) -> Iterator[bytes]:
        dtype, shape = self.arrays.kinds[name]
        row_bytes = dtype.itemsize * math.prod(shape[1:])
        try:
            file = self.arrays.open(name)
            done = 0
            while done < n_rows:
                wanted = min(n_block, n_rows - done) * row_bytes
                data = file.read(wanted)
                if len(data) < wanted:
                    raise self.source.refuse(
                        f"the array {name!r} is cut short in row {done + len(data) // row_bytes}. "
                        "Fetch the file again."
                    )
                yield data
                done += n_block
        except FormatError:
            raise
        except _DAMAGE as error:
            raise self.source.refuse(
                f"the array {name!r} is damaged ({error}). Fetch the file again."
            ) from error

    def vector_bytes(self) -> Iterator[bytes]:
        """Return the bytes of all vectors, some rows at a time."""
        n_block = max(1, _BLOCK_BYTES // (self.dtype.itemsize * self.n_dims))
        return self._blocks("vectors", n_block, self.n_rows)

    def batches(self) -> Iterator[Batch]:
        """Hand out the rows."""
        first = 0
        starts = np.concatenate([np.zeros(1, dtype=np.int64), self.word_ends[:-1]])
        for data in self.vector_bytes():
            block: FloatArray = np.frombuffer(data, dtype=self.dtype).reshape(-1, self.n_dims)
            rows = slice(first, first + len(block))
            is_finite = finite_rows(block)
            ends = self.word_ends[rows]
            yield Batch(self.words, starts[rows], ends, block.__getitem__, is_finite)
            first += len(block)
