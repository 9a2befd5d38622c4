"""Vectors kept on disk by the hash of what they were made from."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vecfill.errors import InputError, VecfillError
from vecfill.io.arrays import DAMAGE, as_tensor
from vecfill.io.atomic import atomic_output
from vecfill.io.safetensors import TensorFile, write_tensors
from vecfill.io.sources import Source

_KEY_BYTES = 32
_TOLERANCE = 1e-5


def user_cache() -> Path:
    """Return the folder in which this system keeps what programs can make again.

    Examples
    --------
    >>> user_cache().name
    'vecfill'
    """
    if cache_home := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache_home) / "vecfill"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "vecfill"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vecfill"
    return Path.home() / ".cache" / "vecfill"


class VectorCache:
    """A folder of vectors, each found by the SHA-256 of a text.

    Files are only added, each written atomically and named by the hash of what is in it, so several
    programs may use a folder at once. A file that is damaged is ignored: what it held is made
    and written again.

    Examples
    --------
    >>> import tempfile
    >>> cache = VectorCache(Path(tempfile.mkdtemp()) / "texts")
    >>> cache.add(["soft metal"], np.ones((1, 3), np.float32))
    True
    >>> sorted(cache.load(3))[0] == VectorCache.key("soft metal")
    True
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_probes(cls, root: Path, texts: Sequence[str], vectors: np.ndarray) -> VectorCache:
        """Return the cache of whatever makes these vectors of these texts, a new one if need be.

        Vectors may differ in their last digits, as those of a model on other threads do.
        """
        keys = [cls.key(text) for text in texts]
        tolerance = _TOLERANCE * float(np.abs(vectors).max(initial=0.0))
        for path in _files(root):
            known, cached_vectors = _read(path) or ([], vectors[:0])
            is_same = known == keys and cached_vectors.shape == vectors.shape
            if is_same and np.allclose(cached_vectors, vectors, rtol=0.0, atol=tolerance):
                return cls(root / path.stem)
        rows = np.ascontiguousarray(vectors, np.float32)
        cls(root).add(texts, rows)
        return cls(root / _digest(_packed(texts), rows))

    @staticmethod
    def key(text: str) -> bytes:
        """Return the hash by which the vector of a text is found."""
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def load(self, n_dims: int) -> dict[bytes, np.ndarray]:
        """Return all vectors of this length that are in whole files."""
        vector_of: dict[bytes, np.ndarray] = {}
        for path in _files(self._folder):
            if part := _read(path):
                keys, vectors = part
                if vectors.shape[1] == n_dims:
                    vector_of.update(zip(keys, vectors, strict=True))
        return vector_of

    def add(self, texts: Sequence[str], vectors: np.ndarray) -> bool:
        """Keep the vectors of some texts; False if the folder cannot be written to."""
        keys = _packed(texts)
        vectors = np.ascontiguousarray(vectors, np.float32)
        target = self._folder / f"{_digest(keys, vectors)}.safetensors"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_output(target, overwrite=True, waits=False) as file:
                tensors = {"keys": as_tensor(keys), "vectors": as_tensor(vectors)}
                write_tensors(file, tensors, {"made_by": "vecfill"})
        except (OSError, InputError):
            return False
        return True


def _packed(texts: Sequence[str]) -> np.ndarray:
    keys = b"".join(VectorCache.key(text) for text in texts)
    return np.frombuffer(keys, np.uint8).reshape(-1, _KEY_BYTES)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.safetensors"))
    except OSError:
        return []


def _digest(keys: np.ndarray, vectors: np.ndarray) -> str:
    digest = hashlib.sha256(keys.tobytes())
    digest.update(vectors.tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[list[bytes], np.ndarray] | None:
    """Return keys and vectors of a file; None if it is not whole, or not ours."""
    try:
        with Source(path) as source:
            file = TensorFile(source)
            keys, vectors = file.read("keys"), file.read("vectors")
        if keys.shape != (len(vectors), _KEY_BYTES) or vectors.ndim != 2:
            return None
        is_whole = _digest(keys, vectors) == path.name.partition(".")[0]
    except (VecfillError, *DAMAGE):
        return None
    return ([key.tobytes() for key in keys], vectors) if is_whole else None
