"""The weights of a model folder: which tensor is in which file, and its rows as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError, InputError
from vecfill.io.safetensors import TensorFile
from vecfill.io.sources import Source
from vecfill.wording import count

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Types of numbers that tables of vectors may have."""
_CODES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_BLOCK = 1 << 24


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a model: its type and shape, and its bytes in a file."""

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]
    first: int = field(repr=False)
    last: int = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """How many bytes it takes."""
        return self.last - self.first

    @property
    def row_bytes(self) -> int:
        """How many bytes one of its rows takes; a bias is a column, whatever its shape."""
        return self.n_bytes // self.n_rows

    @property
    def n_rows(self) -> int:
        """How many tokens it has a row for, if it is a table or a bias."""
        return self.shape[-1] if self.is_bias else self.shape[0]

    @property
    def is_bias(self) -> bool:
        """Whether it has one number a row: shape (n,) or (1, n)."""
        return len(self.shape) == 1 or (len(self.shape) == 2 and self.shape[0] == 1)

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Return the bytes of the tensor, or those in a range, in pieces."""
        n_left = (self.n_bytes if last is None else last) - first
        with self.file.open("rb") as file:
            file.seek(self.first + first)
            while n_left > 0:
                data = file.read(min(n_left, _BLOCK))
                if not data:
                    raise FormatError(f"{self.file}: the tensor {self.name!r} is cut short.")
                n_left -= len(data)
                yield data

    def rows(self, places: Sequence[int] | np.ndarray) -> FloatArray:
        """Return some rows as numbers; bfloat16 becomes float32, which holds it exactly."""
        code = "<u2" if self.dtype == "BF16" else _CODES[self.dtype]
        n_rows = self.n_rows
        shape = (n_rows, math.prod(self.shape) // n_rows)
        raw = np.memmap(self.file, code, "r", self.first, shape)
        return from_stored(np.asarray(raw[np.asarray(places, np.int64)]), self.dtype)

    def equals(self, stored: StoredTensor) -> bool:
        """Tell whether two tensors have the same type, shape and bytes."""
        if (self.dtype, self.shape) != (stored.dtype, stored.shape):
            return False
        pairs = zip(self.blocks(), stored.blocks(), strict=True)
        return all(block == other_block for block, other_block in pairs)


@dataclass(frozen=True)
class GrownTensor:
    """A tensor with new rows: over rows past the vocabulary first, then after the last one."""

    tensor: StoredTensor
    first: int
    """The row of the first new token."""
    content: bytes
    """The new rows."""

    @property
    def n_rows(self) -> int:
        """How many rows there are afterwards."""
        return max(self.tensor.n_rows, self.first + len(self.content) // self.tensor.row_bytes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The new shape."""
        old = self.tensor.shape
        return (*old[:-1], self.n_rows) if self.tensor.is_bias else (self.n_rows, *old[1:])

    @property
    def n_bytes(self) -> int:
        """How many bytes it takes."""
        return self.n_rows * self.tensor.row_bytes

    def blocks(self) -> Iterator[bytes]:
        """Return its bytes in pieces: old rows, new rows, and what is left of the padding."""
        start = self.first * self.tensor.row_bytes
        yield from self.tensor.blocks(0, start)
        yield self.content
        yield from self.tensor.blocks(start + len(self.content))


Grown = Mapping[str, GrownTensor]


def from_stored(raw: np.ndarray[Any, Any], dtype: str) -> FloatArray:
    """Return numbers as NumPy holds them.

    Examples
    --------
    >>> from_stored(np.array([0x3F80], np.uint16), "BF16")
    array([1.], dtype=float32)
    """
    if dtype == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(raw.dtype.newbyteorder("="), copy=False)


def to_stored(numbers: FloatArray, dtype: str, label: str) -> bytes:
    """Return numbers as a file holds them, rounded to the nearest; refuse those out of range.

    Examples
    --------
    >>> to_stored(np.array([1.0]), "BF16", "row").hex(), to_stored(np.array([1.0]), "F16", "").hex()
    ('803f', '003c')
    >>> to_stored(np.array([1e6]), "F16", "The row of 'thulium'")
    Traceback (most recent call last):
    vecfill.errors.InputError: The row of 'thulium' is not finite as F16, ...
    """
    if dtype == "BF16":
        with np.errstate(over="ignore"):
            bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
        # Half of the last bit kept, so that ties go to the even neighbour, as in torch.
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        stored: np.ndarray[Any, Any] = rounded
    else:
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(numbers, _CODES[dtype])
    if not (np.isfinite(numbers).all() and np.isfinite(from_stored(stored, dtype)).all()):
        raise InputError(
            f"{label} is not finite as {dtype}, the type of the model's tensor. Impute it again, "
            "or pass a vector of ordinary size."
        )
    return stored.tobytes()


class Weights:
    """All tensors of a model, in one file or in shards."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.index = _read_index(home / INDEX)
        names = sorted(set(self.index["weight_map"].values())) if self.index else [SINGLE]
        self.files = tuple(home / name for name in names)
        self.metadata: dict[str, Mapping[str, str]] = {}
        self.tensors: dict[str, StoredTensor] = {}
        for file in self.files:
            self._add(file)
        self._check_index()

    def _add(self, file: Path) -> None:
        with Source(file) as source:
            stored_file = TensorFile(source)
        self.metadata[file.name] = stored_file.metadata
        for name, place in stored_file.places.items():
            if name in self.tensors:
                raise FormatError(
                    f"{file} and {self.tensors[name].file} both have the tensor {name!r}, so one "
                    "of the two would be lost. Save the model again."
                )
            self.tensors[name] = StoredTensor(name, file, *place)
            size = ITEM_BYTES.get(place.dtype)
            if size and size * math.prod(place.shape) != place.last - place.first:
                raise FormatError(
                    f"{file}: the tensor {name!r} of shape {place.shape} and type {place.dtype} "
                    f"does not take {place.last - place.first} bytes. Fetch the file again."
                )

    def _check_index(self) -> None:
        if self.index is None:
            return
        file_of = self.index["weight_map"]
        wrong = [
            name
            for name in {*file_of, *self.tensors}
            if name not in self.tensors or self.tensors[name].file.name != file_of.get(name)
        ]
        if wrong:
            raise FormatError(
                f"{self.home / INDEX} disagrees with the files on {count(len(wrong), 'tensor')}, "
                f"such as {min(wrong)!r}. Fetch the folder again."
            )

    @cached_property
    def n_bytes(self) -> int:
        """The bytes of all tensors together, which an index calls its total size."""
        return sum(tensor.n_bytes for tensor in self.tensors.values())


def _read_index(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    index = read_json(path, dict)
    places = index.get("weight_map")
    if not isinstance(places, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in places.values()
    ):
        raise FormatError(f"{path} has no weight_map from tensors to files. Fetch it again.")
    return index


def read_json(path: Path, kind: type) -> Any:
    """Return the object (`dict`) or list that a JSON file holds; refuse anything else.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "config.json"
    >>> _ = path.write_text('{"vocab_size": 5}')
    >>> read_json(path, dict)
    {'vocab_size': 5}
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist. Check the spelling and the folder.") from None
    except (OSError, UnicodeError, ValueError, RecursionError) as error:
        raise FormatError(f"{path}: cannot be read as JSON: {error}. Fetch it again.") from error
    if not isinstance(content, kind):
        raise FormatError(f"{path} holds no JSON {kind.__name__}. Fetch it again.")
    return content
