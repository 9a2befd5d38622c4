"""Vectors of words that an embedding lacks, by each source alone and by all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import vecfill as vf


def graph_source(edges: Sequence[tuple[str, str]], words: Sequence[str]) -> Any:
    """Return a graph as a source of `words`; its other nodes serve to connect them only."""
    domain = vf.edges(edges)
    places = {name: place for place, name in enumerate(domain.entities)}
    kept = [word for word in words if word in places]
    vectors = domain.vectors[[places[word] for word in kept]]
    return replace(domain, entities=tuple(kept), vectors=vectors)


def imputed_by_source(
    sources: Mapping[str, Any], base: pd.DataFrame, words: Sequence[str], *, seed: int
) -> tuple[dict[str, dict[str, np.ndarray]], list[str]]:
    """Return vectors of the words that `base` lacks by way of imputing, and what was refused.

    Ways are each source alone, the spelling of names alone, and all of them fused. A word that a
    source does not describe gets the mean of the known vectors.
    """
    embedding = vf.Embedding(base.index.tolist(), base.to_numpy())
    lacking = [word for word in words if word not in embedding]
    mean = base.loc[[word for word in words if word in base.index]].to_numpy().mean(axis=0)
    found = {"mean of known vectors": dict.fromkeys(lacking, mean)}
    asked = {"words": pd.DataFrame(index=list(words))}  # says nothing but which words are asked for
    ways: dict[str, tuple[Any, str]] = {"spelling": (asked, "spelling")}
    ways |= {name: ({name: source}, "off") for name, source in sources.items()}
    ways["all sources"] = (asked | dict(sources), "spelling")
    refused = []
    for name, (given, names) in ways.items():
        try:
            result = vf.impute(given, embedding, match="exact", names=names, seed=seed)
        except vf.NoSignalError as error:
            refused.append(f"{name}: refused. {error}")
            continue
        rows = dict(zip(result.embedding.words, result.embedding.vectors, strict=True))
        found[name] = {word: rows.get(word, mean) for word in lacking}
    return found, refused
