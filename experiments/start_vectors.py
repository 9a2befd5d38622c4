"""Where an embedding layer may start: vectors trained, fetched, or imputed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import correlations, read_returns
from glove import read_glove
from headlines import Lines
from vecfill import LatentSemanticImputer
from word2vec import self_vectors


def start_vectors(
    config: dict[str, Any], words: list[str], train: Lines, data: Path, cache: Path
) -> dict[str, np.ndarray]:
    """Return for each start a row a word, NaN where it has no vector.

    ``"A + B"`` is A, with the words that A lacks and B describes imputed from B.
    """
    sources = {part for start in config["starts"] for part in start.split(" + ")}
    found: dict[str, pd.DataFrame] = {}
    if "self" in sources:
        found["self"] = self_vectors(train, config["word2vec"], seed=config["seed"])
    if "GloVe" in sources:
        found["GloVe"] = read_glove(words, cache)
    if "returns" in sources:
        found["returns"] = correlations(read_returns(data))

    starts = {}
    for start in config["starts"]:
        base, _, domain = start.partition(" + ")
        if base == "random":
            starts[start] = np.full((len(words), config["word2vec"]["vector_size"]), np.nan)
            continue
        vectors = found[base]
        if domain:
            vectors = _imputed(vectors, found[domain], config)
        starts[start] = vectors.reindex(words).to_numpy()
    return starts


def _imputed(vectors: pd.DataFrame, domain: pd.DataFrame, config: dict[str, Any]) -> pd.DataFrame:
    known = vectors.reindex(domain.index)
    imputer = LatentSemanticImputer(random_state=config["seed"], **config["setting"])
    embedding = imputer.fit(domain.to_numpy(), known.to_numpy()).embedding_
    new = ~imputer.is_known_
    added = pd.DataFrame(embedding[new], index=domain.index[new], columns=vectors.columns)
    return pd.concat([vectors, added])
