"""safetensors: a JSON header that names tensors and their places, then their bytes.

`write_tensors` and `TensorFile` serve any named tensors, not only embeddings.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from vecfill.errors import FormatError
from vecfill.io.arrays import DAMAGE, ArrayCodec, Tensor
from vecfill.io.sources import Source

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_MAX_HEADER = 100_000_000


class Safetensors(ArrayCodec):
    """safetensors, with provenance as its metadata."""

    def detects(self, source: Source) -> bool:
        """Tell by the suffix, or by a length and the brace that opens the header."""
        length = int.from_bytes(source.head[:8], "little")
        is_header = source.head[8:9] == b"{" and length < 1 << 40
        return source.suffix == ".safetensors" or is_header

    def arrays(self, source: Source) -> TensorFile:
        """Return the tensors in a file."""
        return TensorFile(source)

    def store(self, out: Any, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write named tensors to `out`."""
        write_tensors(out, tensors, {"format": "vecfill", **metadata})


def write_tensors(out: Any, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors and metadata (names and texts) as a safetensors file to `out`.

    The same tensors give the same bytes. Blocks are written as they come, so that a tensor need
    not fit into memory.

    Examples
    --------
    >>> import io
    >>> from vecfill.io.arrays import as_tensor
    >>> file = io.BytesIO()
    >>> write_tensors(file, {"x": as_tensor(np.zeros(2, np.float32))}, {"made": "by hand"})
    >>> file.getvalue()[8:50]
    b'{"__metadata__": {"made": "by hand"}, "x":'
    """
    # Largest items first, so that each tensor starts at a multiple of its item size.
    order = sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    header = [
        (name, _NAMES[dtype.newbyteorder("<")], shape, math.prod(shape) * dtype.itemsize)
        for name, (dtype, shape, _) in order
    ]
    write_header(out, header, metadata)
    for _, tensor in order:
        out.writelines(tensor.blocks)


def write_header(
    out: Any,
    tensors: Iterable[tuple[str, str, tuple[int, ...], int]],
    metadata: Mapping[str, str],
) -> None:
    """Write what stands before the bytes of tensors: their names, types, shapes and sizes."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, kind, shape, n_bytes in tensors:
        span = [place, place + n_bytes]
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": span}
        place += n_bytes
    text = json.dumps(entries).encode("utf-8")
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)


class TensorPlace(NamedTuple):
    """Where a tensor stands in its file, whatever its type: first byte, and byte after the last."""

    dtype: str
    shape: tuple[int, ...]
    first: int
    last: int


@dataclass
class TensorFile:
    """A safetensors file; its header is checked against the file before anything is read.

    `kinds` has the tensors that NumPy can hold, `places` has all of them.
    """

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
            header = json.loads(self._file.read(length), object_pairs_hook=self._once)
            metadata = dict(header.pop("__metadata__", None) or {})
            self.kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
            self.places: dict[str, TensorPlace] = {}
            for name, entry in header.items():
                first, last = (int(number) for number in entry["data_offsets"])
                shape = tuple(int(number) for number in entry["shape"])
                if entry["dtype"] in _TYPES:
                    self.kinds[name] = (np.dtype(_TYPES[entry["dtype"]]), shape)
                elif name in ("words", "word_ends", "vectors"):
                    raise self.source.refuse(
                        f"the tensor {name!r} is of type {entry['dtype']!r}; "
                        f"{', '.join(_TYPES)} can be read. Convert it."
                    )
                self.places[name] = TensorPlace(
                    str(entry["dtype"]), shape, 8 + length + first, 8 + length + last
                )
        except FormatError:
            raise
        except (*DAMAGE, RecursionError) as error:
            raise self.source.refuse(
                f"its safetensors header is not what one should be ({error!r}). Fetch it again."
            ) from error
        self.metadata: Mapping[str, str] = {str(k): str(v) for k, v in metadata.items()}
        self._check_places(8 + length, size)

    def _check_places(self, start: int, size: int) -> None:
        last_end, last_name = start, ""
        in_order = sorted(self.places.items(), key=lambda item: item[1][2:])
        for name, (_, _, first, last) in in_order:
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
            if first > last_end:
                raise self.source.refuse(
                    f"no tensor has the bytes {last_end} to {first}, before the tensor {name!r}. "
                    "The file is damaged: fetch it again."
                )
            last_end, last_name = last, name
        if last_end != size:
            raise self.source.refuse(
                f"its last tensor ends at byte {last_end}, but the file has {size} bytes. "
                "The file is damaged: fetch it again."
            )
        for name, (dtype, shape) in self.kinds.items():
            _, _, first, last = self.places[name]
            if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != last - first:
                raise self.source.refuse(
                    f"the tensor {name!r} of shape {shape} and type {dtype} does not take "
                    f"{last - first} bytes. The file is damaged: fetch it again."
                )

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return a JSON object; refuse a name that comes twice, where JSON keeps the last."""
        members = dict(pairs)
        if len(members) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise self.source.refuse(
                f"its header names {twice!r} twice, so one of the two would be lost. "
                "Save the file again."
            )
        return members

    def open(self, name: str) -> BinaryIO:
        """Return the file at the first byte of a tensor."""
        file = self.source.file()
        file.seek(self.places[name].first)
        return file

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """Return a tensor as an array of its own."""
        dtype, shape = self.kinds[name]
        _, _, first, last = self.places[name]
        data = bytearray(last - first)
        if self.open(name).readinto(data) != len(data):  # pyright: ignore[reportAttributeAccessIssue]
            raise self.source.refuse(f"the tensor {name!r} is cut short. Fetch the file again.")
        return np.frombuffer(data, dtype).reshape(shape)
