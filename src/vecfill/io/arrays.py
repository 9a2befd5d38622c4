"""What `.npz` and safetensors share: the arrays `vectors`, and `words` with `word_ends`.

`words` is all words in one run of bytes and `word_ends` says where each ends. An `.npz` may hold
`words` as an array of strings instead. Pickles inside are never loaded.
"""

from __future__ import annotations

import math
import tokenize
import zipfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError
from vecfill.io import streams
from vecfill.io.batches import (
    MAX_DIMS,
    Batch,
    Bytes,
    Offsets,
    blank_words,
    encoded,
    finite_rows,
    in_blocks,
    packed,
)
from vecfill.io.codec import Codec, Difference
from vecfill.io.comparing import difference_of_rows
from vecfill.io.sources import Source

_BLOCK_BYTES = 1 << 24
DAMAGE = (
    *streams.DAMAGE, TypeError, AttributeError, OverflowError, SyntaxError, MemoryError,
    zipfile.LargeZipFile, tokenize.TokenError,
)  # fmt: skip
"""What broken files make the libraries raise (found by fuzzing)."""


class ArrayFile(Protocol):
    """Named arrays in a file, each readable from its first byte to its last."""

    kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
    metadata: Mapping[str, str]

    def open(self, name: str) -> BinaryIO:
        """Return the bytes of an array."""
        ...


class Tensor(NamedTuple):
    """An array to be written: its bytes come in blocks, so that it need not be held whole."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Iterable[bytes]


def as_tensor(array: np.ndarray[Any, Any]) -> Tensor:
    """Return an array as one that is written from where it is, without a copy.

    Examples
    --------
    >>> as_tensor(np.arange(3)).shape
    (3,)
    """
    little = array.dtype.newbyteorder("<")
    array = np.ascontiguousarray(array, little)
    raw: Any = array.reshape(-1).view(np.uint8).data if array.size else b""
    return Tensor(little, array.shape, [raw])


class ArrayRows:
    """The rows of an `.npz` or safetensors file."""

    def __init__(self, source: Source, arrays: ArrayFile) -> None:
        self.source = source
        self.arrays = arrays
        self.exchanged: Mapping[int, bytes] = MappingProxyType({})
        self.notes: list[str] = []
        self.provenance = arrays.metadata
        for name in ("vectors", "words"):
            if name not in arrays.kinds:
                present = (
                    ", ".join(repr(array_name) for array_name in list(arrays.kinds)[:8])
                    or "nothing"
                )
                raise source.refuse(
                    f"has no array {name!r}; it holds {present}. Save the arrays 'words' and "
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
                    encoded(string) if isinstance(string, str) else string
                    for string in strings.tolist()
                ]
            except DAMAGE as error:
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
            n_read = 0
            while n_read < n_rows:
                n_bytes = min(n_block, n_rows - n_read) * row_bytes
                data = file.read(n_bytes)
                if len(data) < n_bytes:
                    raise self.source.refuse(
                        f"the array {name!r} is cut short in row "
                        f"{n_read + len(data) // row_bytes}. Fetch the file again."
                    )
                yield data
                n_read += n_block
        except FormatError:
            raise
        except DAMAGE as error:
            raise self.source.refuse(
                f"the array {name!r} is damaged ({error}). Fetch the file again."
            ) from error

    def raw_words(self) -> list[bytes]:
        """Return all words as bytes."""
        text = self.words.tobytes()
        starts = [0, *self.word_ends.tolist()[:-1]]
        return [text[a:b] for a, b in zip(starts, self.word_ends.tolist(), strict=True)]

    def vector_bytes(self) -> Iterator[bytes]:
        """Return the bytes of all vectors, some rows at a time."""
        n_block = max(1, _BLOCK_BYTES // (self.dtype.itemsize * self.n_dims))
        blocks = self._blocks("vectors", n_block, self.n_rows)
        return self._with_exchanged(blocks, n_block) if self.exchanged else blocks

    def _with_exchanged(self, blocks: Iterator[bytes], n_block: int) -> Iterator[bytes]:
        row_bytes = self.dtype.itemsize * self.n_dims
        for number, block in enumerate(blocks):
            changed = bytearray(block)
            for row, content in self.exchanged.items():
                if row // n_block == number:
                    start = row % n_block * row_bytes
                    changed[start : start + row_bytes] = content
            yield bytes(changed)

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the rows."""
        del whole
        first = 0
        starts = np.concatenate([np.zeros(1, dtype=np.int64), self.word_ends[:-1]])
        for data in self.vector_bytes():
            block: FloatArray = np.frombuffer(data, dtype=self.dtype).reshape(-1, self.n_dims)
            rows = slice(first, first + len(block))
            is_finite = finite_rows(block)
            ends = self.word_ends[rows]
            yield Batch(self.words, starts[rows], ends, block.__getitem__, is_finite)
            first += len(block)


class ArrayCodec(Codec[ArrayRows]):
    """What `.npz` and safetensors share: they hold the same arrays in different wrappings."""

    @abstractmethod
    def arrays(self, source: Source) -> ArrayFile:
        """Return the arrays in a file."""

    @abstractmethod
    def store(self, out: Any, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write named arrays to `out`."""

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> ArrayRows:
        """Return the reader of a file's rows, in the type of the file."""
        del dtype
        return ArrayRows(source, self.arrays(source))

    def write(self, embedding: Embedding, out: Any) -> None:
        """Write a whole file to `out`."""
        little = embedding.vectors.dtype.newbyteorder("<")
        blocks = (
            vectors.astype(little, copy=False).tobytes() for _, vectors in in_blocks(embedding)
        )
        vectors = Tensor(little, embedding.vectors.shape, blocks)
        words = [encoded(word) for word in embedding.words]
        self.store(out, _named(words, vectors), embedding.provenance)

    def rewrite(self, rows: ArrayRows, added: Embedding, out: Any) -> None:
        """Write the arrays again, with the same bits and more rows."""
        more = added.vectors.astype(rows.dtype).tobytes()
        shape = (rows.n_rows + len(added), rows.n_dims)
        vectors = Tensor(rows.dtype, shape, chain(rows.vector_bytes(), [more]))
        words = rows.raw_words() + [encoded(word) for word in added.words]
        self.store(out, _named(words, vectors), rows.provenance)

    def exchange(self, rows: ArrayRows, contents: Mapping[int, bytes]) -> None:
        """Let a reader hand out other vectors in some rows."""
        rows.exchanged = contents

    def difference(self, old: ArrayRows, new: ArrayRows) -> Difference | None:
        """Compare words, the bits of their vectors, and the metadata."""
        for name, text in old.provenance.items():
            if new.provenance.get(name) != text:
                return Difference(f"the metadata {name!r} of {old.source} is not the same.")
        return difference_of_rows(old, new)

    def not_compared(self, rows: ArrayRows) -> tuple[str, ...]:
        """Name the arrays that are no part of an embedding."""
        other_names = sorted(rows.arrays.kinds.keys() - {"words", "word_ends", "vectors"})
        return tuple(f"the array {name!r}" for name in other_names)


def _named(words: list[bytes], vectors: Tensor) -> dict[str, Tensor]:
    data, ends = packed(words)
    return {"words": as_tensor(data), "word_ends": as_tensor(ends), "vectors": vectors}
