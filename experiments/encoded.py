"""Texts -> vectors of MiniLM and mpnet, kept in a cache folder because encoding is slow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from minilm import SentenceEncoder, minilm_folder
from mpnet import mpnet_folder

FOLDERS = {"MiniLM": lambda _cache: minilm_folder(), "mpnet": mpnet_folder}


def encoded(model: str, texts: Sequence[str], cache: Path) -> np.ndarray:
    """Return one vector of length 1 for each text."""
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    path = cache / f"{model.lower()}-{digest}.npy"
    if not path.exists():
        encoder = SentenceEncoder(FOLDERS[model](cache))
        # No text here is longer than a paragraph; both models read at least 128 tokens.
        vectors = encoder.encode([encoder.ids(text)[:128] for text in texts])
        partial = path.with_name(f"{path.stem}-{os.getpid()}.partial.npy")
        np.save(partial, vectors)
        partial.replace(path)
    return np.load(path)
