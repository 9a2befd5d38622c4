"""Named arrays in one safetensors file, opened by memory map and checked before they are used.

Every array has a digest. It is compared when the array is first asked for, so that opening a large
file stays quick and no number of a damaged file gets out.

The file is opened once and stays open. Who replaces it puts another file under its name, and does
not touch what is read here.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vecfill.errors import FormatError
from vecfill.io.arrays import as_tensor
from vecfill.io.atomic import atomic_output
from vecfill.io.safetensors import TensorFile, write_tensors
from vecfill.io.sources import Source

BLOCK = 1 << 22
"""Bytes that are looked at together."""

_LANE = 64
_PLACES = np.arange(1, BLOCK // (8 * _LANE) + 1, dtype=np.uint64)


def digest_of(array: np.ndarray) -> str:
    """Return a digest of the bytes of an array, at the speed of memory.

    SHA-256 of the sums of all 64-bit words, lane by lane and block by block, plain and weighted by
    their place: any damage to a word changes a sum, and so do sectors that changed places. A
    cryptographic hash of the bytes themselves would take seconds where this takes
    tenths, and protects against nothing that happens to files by accident.

    Examples
    --------
    >>> digest_of(np.zeros(3)) == digest_of(np.zeros(4)), len(digest_of(np.zeros(3)))
    (False, 64)
    """
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(str(flat.size).encode())
    for first in range(0, flat.size, BLOCK):
        part = flat[first : first + BLOCK]
        n_whole = part.size - part.size % (8 * _LANE)
        words = part[:n_whole].view(np.uint64).reshape(-1, _LANE)
        digest.update(words.sum(axis=0, dtype=np.uint64).tobytes())
        digest.update(np.einsum("i,ij->j", _PLACES[: len(words)], words).tobytes())
        digest.update(part[n_whole:].tobytes())
    return digest.hexdigest()


def write_mapped(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    about: Mapping[str, Any],
    *,
    kind: str,
    version: int,
    overwrite: bool = False,
) -> None:
    """Write named arrays and JSON `about` them as one file, whole or not at all."""
    text = json.dumps({**about, "digests": {name: digest_of(arrays[name]) for name in arrays}})
    metadata = {
        "format": kind,
        "version": str(version),
        "about": text,
        "about_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    tensors = {name: as_tensor(array) for name, array in arrays.items()}
    with atomic_output(path, overwrite=overwrite) as file:
        write_tensors(file, tensors, metadata)


class MappedArrays:
    """The arrays of a file that `write_mapped` wrote.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.bin"
    >>> write_mapped(path, {"x": np.arange(3.0)}, {"made": "here"}, kind="example", version=1)
    >>> found = MappedArrays(path, kind="example", versions=[1])
    >>> found.about["made"], found["x"]
    ('here', array([0., 1., 2.]))
    """

    def __init__(self, path: str | os.PathLike[str], *, kind: str, versions: Sequence[int]) -> None:
        with Source(path) as source:
            self.path = source.path
            is_plain = source.container == "plain"
            if not is_plain or source.head[8:9] != b"{":
                raise FormatError(
                    f"{path} is not a {kind}: it is no safetensors file. Pass a file that was "
                    f"written by save."
                )
            file = TensorFile(source)
            self._places, self._kinds = file.places, file.kinds
            metadata = file.metadata
            self._opened = _OpenFile(self.path, source.file())
        self.about = _about(self.path, metadata, kind, versions)
        self.version = int(metadata["version"])
        digests = self.about.get("digests")
        if not isinstance(digests, dict) or set(digests) != set(self._kinds):
            raise FormatError(
                f"{path}: the arrays in the file are not those that it lists. It is damaged: "
                "save the model again."
            )
        self._digests: dict[str, Any] = digests
        self._checked: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an array, checked; it cannot be written to."""
        if name not in self._checked:
            self._checked[name] = self._mapped(name)
        return self._checked[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all arrays."""
        return tuple(self._kinds)

    def check(self) -> None:
        """Check every array now."""
        for name in self._kinds:
            _ = self[name]

    def _mapped(self, name: str) -> np.ndarray:
        dtype, shape = self._kinds[name]
        place = self._places[name]
        array = np.empty(shape, dtype)
        self._opened.refuse_changed()
        if array.size:
            array = np.frombuffer(self._opened.content, dtype, array.size, place.first)
            array = array.reshape(shape)
        if digest_of(array) != self._digests[name]:
            self._opened.refuse_changed()
            raise FormatError(
                f"{self.path}: the array {name!r} (bytes {place.first} to {place.last}) is not "
                "what was written. The file is damaged: save the model again, or restore a copy."
            )
        if dtype.kind == "f":
            self._refuse_infinite(array, name)
        return array

    def _refuse_infinite(self, array: np.ndarray, name: str) -> None:
        flat = array.reshape(-1)
        step = BLOCK // array.dtype.itemsize
        for first in range(0, flat.size, step):
            if not np.isfinite(flat[first : first + step]).all():
                raise FormatError(
                    f"{self.path}: the array {name!r} holds numbers that are not finite. The file "
                    "was not written by save: save the model again."
                )


class _OpenFile:
    """A file that stays open, and what it was when it was opened."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        # The map has a descriptor of its own, and closes it when the last array is gone.
        self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self._written = self._last_written()

    def refuse_changed(self) -> None:
        """Refuse a file that somebody has written into; a part that is gone must not be read."""
        if self._last_written() != self._written:
            raise FormatError(
                f"{self.path} was written into after it was opened. Load it again, and let others "
                "replace it as a whole, as save(overwrite=True) does."
            )

    def _last_written(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


def _about(
    path: Path, metadata: Mapping[str, str], kind: str, versions: Sequence[int]
) -> dict[str, Any]:
    if metadata.get("format") != kind:
        raise FormatError(
            f"{path} is not a {kind}: its format is {metadata.get('format')!r}. Pass a file that "
            "was written by save."
        )
    if metadata.get("version") not in [str(version) for version in versions]:
        raise FormatError(
            f"{path} has version {metadata.get('version')!r} of the file format, and this vecfill "
            f"reads versions up to {max(versions)}. Load it with the vecfill that wrote it, or "
            "impute and save again."
        )
    text = metadata.get("about", "")
    if hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != metadata.get(
        "about_sha256"
    ):
        raise FormatError(
            f"{path}: its description is not what was written. The file is damaged: save the "
            "model again, or restore a copy."
        )
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: its description is not JSON ({error}).") from error
    if not isinstance(about, dict):
        raise FormatError(f"{path}: its description is not a JSON object. Save the model again.")
    return about
