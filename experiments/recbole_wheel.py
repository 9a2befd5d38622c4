"""MovieLens-100k and its knowledge graph, from the wheel of recbole."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd

PACKAGE = "recbole"
_FOLDER = "recbole/dataset_example/ml-100k/ml-100k"


def read_movielens(cache: Path, kind: str) -> pd.DataFrame:
    """Return one of its tables as text: ``inter``, ``item``, ``user``, ``kg`` or ``link``."""
    with zipfile.ZipFile(wheel(cache)) as archive:
        content = io.BytesIO(archive.read(f"{_FOLDER}.{kind}"))
    table = pd.read_csv(content, sep="\t", dtype=str, keep_default_na=False, quoting=3)
    return table.rename(columns=lambda name: name.partition(":")[0])


def wheel(cache: Path) -> Path:
    """Return the wheel that ``VECFILL_RECBOLE_WHEEL`` names, or fetch it once into `cache`."""
    path = os.environ.get("VECFILL_RECBOLE_WHEEL")
    if path:
        return Path(path)
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob(f"{PACKAGE}-*.whl")):
        print(f"Fetching the wheel of {PACKAGE} once, into {cache.name}/", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", PACKAGE]
        subprocess.run(command, cwd=cache, check=True)
    return sorted(cache.glob(f"{PACKAGE}-*.whl"))[-1]
