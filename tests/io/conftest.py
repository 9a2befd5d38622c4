from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vecfill import Embedding, write_embedding


@pytest.fixture
def made() -> Embedding:
    """Twelve words, some of them awkward, in seven dimensions."""
    words = ["the", "of", "zürich", "中文", "caf\udce9", "a-b", "400000", "x", "'", '"', ",", "#"]
    vectors = np.random.default_rng(0).normal(size=(len(words), 7)).astype(np.float32)
    return Embedding(words, vectors)


@pytest.fixture
def save(tmp_path: Path, made: Embedding) -> Callable[[str], Path]:
    """Write the made embedding under a name and return its path."""

    def write(name: str) -> Path:
        path = tmp_path / name
        write_embedding(made, path)
        return path

    return write


def fasttext_bytes(
    words: list[bytes], *, n_dims: int = 5, bucket: int = 50, minn: int = 2, maxn: int = 4
) -> bytes:
    """A fastText model of version 12 as fastText lays it out, with random numbers."""
    rng = np.random.default_rng(0)
    parts = [struct.pack("<ii", 793712314, 12)]
    parts.append(struct.pack("<12id", n_dims, 5, 5, 1, 5, 1, 2, 2, bucket, minn, maxn, 100, 1e-4))
    parts.append(struct.pack("<iiiqq", len(words), len(words), 0, 1000, -1))
    parts.extend(word + b"\0" + struct.pack("<qb", 10, 0) for word in words)
    rows = rng.normal(size=(len(words) + bucket, n_dims)).astype("<f4")
    parts.append(struct.pack("<?qq", False, *rows.shape) + rows.tobytes())
    output = rng.normal(size=(len(words), n_dims)).astype("<f4")
    parts.append(struct.pack("<?qq", False, *output.shape) + output.tobytes())
    return b"".join(parts)
