"""fastText `.bin`, read only: the vector of a word is the mean of its row and its n-grams' rows."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import InputError
from vecfill.io.batches import MAX_DIMS, MAX_WORD, WHITE, Batch, Bytes, Offsets, packed
from vecfill.io.codec import Codec, Difference
from vecfill.io.comparing import difference_of_rows
from vecfill.io.sources import Source
from vecfill.machine.compiled import compiled

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SETTINGS = "<12id"
_SUPERVISED = 3
_ENTRY_TAIL = 9
_BATCH_ROWS = 8192


class FasttextRows:
    """The words of a fastText model, with the vectors that fastText itself gives them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.notes: list[str] = []
        self.provenance: Mapping[str, str] = MappingProxyType({})
        file = source.file()
        size = file.seek(0, 2)
        file.seek(0)
        self._read_settings(file)
        self._words = self._read_words(file, size)
        self._matrix = self._map_matrix(file, size)

    def _read_settings(self, file: BinaryIO) -> None:
        magic, version = self._unpack(file, "<4si")
        self._has_magic = magic == MAGIC
        if not self._has_magic:
            # The first versions begin with the settings at once.
            if not _looks_old(self.source.head):
                raise self.source.refuse("is not a fastText .bin file (its first bytes are not).")
            file.seek(0)
        elif version not in _VERSIONS:
            raise self.source.refuse(
                f"is a fastText .bin of version {version}; versions up to {max(_VERSIONS)} can be "
                "read. Load it with fastText and save its vectors as a .vec file."
            )
        settings = self._unpack(file, _SETTINGS)
        self.n_dims = settings[0]
        self._n_buckets, self._minn, self._maxn = settings[8:11]
        if self._has_magic and version == 11 and settings[7] == _SUPERVISED:
            self._maxn = 0  # such models have no n-grams, whatever their settings say
        if not 0 < self.n_dims <= MAX_DIMS:
            raise self.source.refuse(f"says it has {self.n_dims} dimensions. Fetch it again.")
        if self._n_buckets < 0 or not 0 <= self._minn <= 100 or not 0 <= self._maxn <= 100:
            raise self.source.refuse("has n-gram settings that make no sense. Fetch it again.")

    def _read_words(self, file: BinaryIO, size: int) -> list[bytes]:
        n_entries, n_words, _, _ = self._unpack(file, "<iiiq")
        n_pruned = self._unpack(file, "<q")[0] if self._has_magic else -1
        self._n_words = n_words
        if not 0 < n_words <= n_entries or n_entries * 10 > size:
            raise self.source.refuse(
                f"says it has {n_words} words among {n_entries} entries, which {size} bytes cannot "
                "hold. The fastText .bin is cut short or damaged: fetch it again."
            )
        if n_pruned > 0:
            raise self.source.refuse(
                "is a pruned (quantised) fastText model. Use the full .bin or the .vec file."
            )
        words: list[bytes] = []
        place, entries = file.tell(), b""
        start = 0
        while len(words) < n_entries:
            stop = entries.find(b"\0", start)
            if stop < 0 or stop + _ENTRY_TAIL >= len(entries):
                more = file.read(1 << 22)
                if not more or len(entries) - start > MAX_WORD + _ENTRY_TAIL:
                    raise self.source.refuse(
                        f"is a fastText .bin cut short or damaged: entry {len(words) + 1} of "
                        f"{n_entries} at byte offset {place + start} has no end. Fetch it again."
                    )
                place += start
                entries, start = entries[start:] + more, 0
                continue
            is_word = entries[stop + _ENTRY_TAIL] == 0
            if is_word != (len(words) < n_words):
                raise self.source.refuse(
                    f"entry {len(words) + 1} at byte offset {place + start} is of a wrong kind. "
                    "The fastText .bin is damaged: fetch it again."
                )
            words.append(entries[start:stop])
            start = stop + _ENTRY_TAIL + 1
        file.seek(place + start)
        return words[:n_words]

    def _map_matrix(self, file: BinaryIO, size: int) -> FloatArray:
        if self._has_magic and self._unpack(file, "<B")[0]:
            raise self.source.refuse(
                "is a quantised fastText model (.ftz). Use the full .bin or the .vec file."
            )
        n_rows, n_dims = self._unpack(file, "<qq")
        expected = self._n_words + self._n_buckets
        if n_dims != self.n_dims or n_rows != expected:
            raise self.source.refuse(
                f"holds a matrix of {n_rows} x {n_dims}, but {expected} x {self.n_dims} was "
                "expected. The fastText .bin is damaged: fetch it again."
            )
        start = file.tell()
        if start + 4 * n_rows * n_dims > size:
            raise self.source.refuse(
                f"is a fastText .bin cut short: its matrix needs {4 * n_rows * n_dims} bytes from "
                f"byte offset {start}, but the file ends at {size}. Fetch it again."
            )
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.source}: {size} bytes cannot be mapped ({error}). Raise the limit on "
                "address space (ulimit -v), or use the .vec file."
            ) from error
        return np.frombuffer(mapped, "<f4", n_rows * n_dims, start).reshape(n_rows, n_dims)

    def _unpack(self, file: BinaryIO, form: str) -> tuple[Any, ...]:
        place = file.tell()
        data = file.read(struct.calcsize(form))
        if len(data) < struct.calcsize(form):
            raise self.source.refuse(
                f"is a fastText .bin cut short at byte offset {place + len(data)}. Fetch it again."
            )
        return struct.unpack(form, data)

    def batches(self, *, whole: bool = False) -> Iterator[Batch]:
        """Hand out the words; vectors are put together when they are taken."""
        del whole
        # Models trained on from other vectors may have an entry without a word.
        rows = [row for row, word in enumerate(self._words) if word.strip(WHITE)]
        if len(rows) < len(self._words):
            n_blank = len(self._words) - len(rows)
            self.notes.append(f"{self.source}: {n_blank} entries without a word were left out.")
        for first in range(0, len(rows), _BATCH_ROWS):
            chosen = rows[first : first + _BATCH_ROWS]
            words = [self._words[row] for row in chosen]
            buffer, ends = packed(words)
            starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
            yield self._batch(chosen, words, buffer, starts, ends)

    def _batch(
        self, rows_of: list[int], words: list[bytes], buffer: Bytes, starts: Offsets, ends: Offsets
    ) -> Batch:
        def take(rows: Offsets) -> FloatArray:
            vectors = np.empty((len(rows), self.n_dims), dtype=np.float32)
            for place, row in enumerate(rows.tolist()):
                parts = np.array([rows_of[row]], dtype=np.int64)
                # fastText gives the end of a sentence no n-grams.
                if words[row] != b"</s>" and self._maxn > 0 and self._n_buckets > 0:
                    framed = np.frombuffer(b"<" + words[row] + b">", dtype=np.uint8)
                    buckets = ngram_buckets(framed, self._minn, self._maxn, self._n_buckets)
                    parts = np.concatenate([parts, buckets + self._n_words])
                mean_of_rows(self._matrix, parts, vectors[place])
            return vectors

        return Batch(buffer, starts, ends, take, np.ones(len(words), dtype=np.bool_))


class Fasttext(Codec[FasttextRows]):
    """fastText's own `.bin`, which can be read but not written."""

    read_only = "Use its .vec file, which has the format word2vec-text."

    def detects(self, source: Source) -> bool:
        """Tell by the first bytes; files of the first versions, by settings that make sense."""
        return source.head.startswith(MAGIC) or _looks_old(source.head)

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> FasttextRows:
        """Return the reader of a file's words."""
        del dtype
        return FasttextRows(source)

    def difference(self, old: FasttextRows, new: FasttextRows) -> Difference | None:
        """Compare words and the bits of their vectors."""
        return difference_of_rows(old, new)


def _looks_old(head: bytes) -> bool:
    """Tell whether bytes are the settings with which the first versions of fastText began."""
    if len(head) < struct.calcsize(_SETTINGS):
        return False
    n_dims, window, n_epochs, _, _, n_words, loss, model, n_buckets, minn, maxn, _, threshold = (
        struct.unpack_from(_SETTINGS, head)
    )
    return (
        0 < n_dims <= MAX_DIMS
        and 0 < window < 1000
        and 0 < n_epochs < 1_000_000
        and 0 < n_words < 100
        and loss in (1, 2, 3)
        and model in (1, 2, 3)
        and n_buckets >= 0
        and 0 <= minn <= maxn <= 100
        and 0.0 <= threshold <= 1.0
    )


@compiled
def ngram_buckets(word: Bytes, minn: int, maxn: int, n_buckets: int) -> Offsets:
    """Return the bucket of each n-gram of a word in angle brackets, n counted in characters."""
    buckets = np.empty(len(word) * max(maxn, 1), dtype=np.int64)
    n_grams = 0
    for first in range(len(word)):
        if word[first] & 0xC0 == 0x80:
            continue
        value = np.uint32(2166136261)
        stop = first
        for n in range(1, maxn + 1):
            if stop >= len(word):
                break
            while True:
                # Bytes are signed in fastText, so those above 127 fill the upper bits.
                signed = np.uint32(word[stop])
                if word[stop] > 127:
                    signed = np.uint32(signed | np.uint32(0xFFFFFF00))
                value = np.uint32(np.uint32(value ^ signed) * np.uint32(16777619))
                stop += 1
                if stop >= len(word) or word[stop] & 0xC0 != 0x80:
                    break
            if n >= minn and not (n == 1 and (first == 0 or stop == len(word))):
                buckets[n_grams] = np.int64(value) % n_buckets
                n_grams += 1
    return buckets[:n_grams]


@compiled
def mean_of_rows(matrix: FloatArray, rows: Offsets, mean: FloatArray) -> None:
    """Write the mean of some rows to `mean`, summed in float32 as fastText does."""
    mean[:] = 0.0
    for row in rows:
        for column in range(len(mean)):
            mean[column] += matrix[row, column]
    for column in range(len(mean)):
        mean[column] *= np.float32(1.0 / len(rows))
