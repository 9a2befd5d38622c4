"""What a person sees: the whole job on a whole GloVe file, with defaults and no options.

    python benchmarks/quality/whole_file.py [cities] [headings] [companies] [--json FILE]

Imputes the bundled cities, 1,500 Medical Subject Headings (graph vectors and names) and the S&P 500
companies (returns and names) from all 341,479 words of GloVe 6B, and looks at the answers: how
alike the new vectors are, how many share their nearest word in the whole file, what Fort Worth is
near, how far the nearest known city lies, at which rank the best part of a name stands, and how far
confidence and bounds of each kind of entity hold on hidden known ones. The file is made once in the
cache folder of `downloads.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from downloads import cache, wink_glove
from sets import SHARED

import vecfill as vf
from vecfill.sample import CITIES

N_HEADINGS = 1500
N_RANKED = 400
"""Names of several words whose parts are ranked in the whole file."""

US_NEARBY = {
    "arlington", "dallas", "austin", "houston", "richmond", "baltimore", "pasadena", "glendale",
    "lakewood", "lauderdale", "omaha", "louisville", "portland", "lubbock", "jacksonville",
    "fresno", "tulsa", "minneapolis", "cincinnati", "columbus", "miami", "springfield",
    "pittsburgh", "charlottesville", "danville", "plano", "irving", "denver", "sacramento",
    "philadelphia", "memphis", "nashville", "atlanta", "phoenix", "tucson", "orlando", "tampa",
    "wilmington", "rochester", "bloomington",
}  # fmt: skip
"""Words of GloVe that are cities of the United States, enough to judge what Fort Worth is near."""


def glove_file() -> Path:
    """Return the whole file as text, as people have it."""
    path = cache() / "wink-glove.txt"
    if not path.exists():
        index, vectors = wink_glove()
        partial = path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            for word, row in index.items():
                file.write(f"{word} {' '.join(map(repr, vectors[row].tolist()))}\n")
        partial.replace(path)
    return path


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


class Glove:
    """All words, to look around in."""

    def __init__(self) -> None:
        self.row_of, vectors = wink_glove()
        self.words = list(self.row_of)
        self.directions = unit(np.asarray(vectors))

    def nearest(self, vectors: np.ndarray, n: int) -> list[list[str]]:
        """Return the words nearest to each vector, the nearest first."""
        lists = []
        for row in unit(vectors.astype(np.float32)):
            nearness = self.directions @ row
            some = np.argpartition(-nearness, n)[:n]
            lists.append([self.words[place] for place in some[np.argsort(-nearness[some])]])
        return lists

    def rank(self, vector: np.ndarray, words: list[str]) -> int:
        """Return the rank of the best of some words around a vector."""
        nearness = self.directions @ unit(vector[None].astype(np.float32))[0]
        return min(int((nearness > nearness[self.row_of[word]]).sum()) + 1 for word in words)


def panel(result: vf.Result, glove: Glove) -> dict[str, object]:
    """Return what any set is judged by."""
    nearest = [words[0] for words in glove.nearest(result.embedding.vectors, 2)]
    names, counts = np.unique(nearest, return_counts=True)
    measured: dict[str, object] = {
        "imputed": len(nearest),
        "mean cosine": spread(result.embedding.vectors),
        "mean cosine of known": spread(result.known.vectors),
        "distinct nearest": len(names),
        "largest hub": f"{names[counts.argmax()]} {counts.max() / len(nearest):.3f}",
        "verdict": None if result.sanity is None else result.sanity.verdict,
    }
    assert result.confidence is not None
    measured["mean confidence"] = round(float(result.confidence.values.mean()), 3)
    measured["strata"] = [str(stratum) for stratum in result.strata if stratum.n_unknown]
    return measured


def spread(vectors: np.ndarray) -> float:
    rows = unit(np.asarray(vectors, np.float64))
    total = rows.sum(axis=0)
    return round(float((total @ total - len(rows)) / (len(rows) * (len(rows) - 1))), 3)


def cities(glove: Glove) -> dict[str, object]:
    """The demo's own job."""
    result = vf.impute(CITIES, glove_file(), ignore="population")
    measured = panel(result, glove)
    near = glove.nearest(result.embedding.vectors[[result.embedding.row("Fort Worth")]], 10)[0]
    measured["Fort Worth"] = ", ".join(near)
    measured["of these, in the United States"] = len(US_NEARBY.intersection(near))
    places = pd.read_csv(CITIES).set_index("name")[["latitude", "longitude"]]
    new, known = (
        places.loc[list(part.words)].to_numpy() for part in (result.embedding, result.known)
    )
    nearness = unit(result.embedding.vectors) @ unit(result.known.vectors).T
    apart = kilometres(new, known[nearness.argmax(axis=1)])
    measured["median km to the nearest known city"] = round(float(np.median(apart)), 1)
    own = unit(result.known.vectors) @ unit(result.known.vectors).T
    np.fill_diagonal(own, -1.0)
    apart = kilometres(known, known[own.argmax(axis=1)])
    measured["the same for true vectors"] = round(float(np.median(apart)), 1)
    return measured


def kilometres(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the great-circle distances of pairs of latitudes and longitudes."""
    one, other = np.radians(one), np.radians(other)
    half = (one - other) / 2
    cosines = np.cos(one[:, 0]) * np.cos(other[:, 0])
    square = np.sin(half[:, 0]) ** 2 + cosines * np.sin(half[:, 1]) ** 2
    return 12742.0 * np.arcsin(np.sqrt(square.clip(0.0, 1.0)))


def headings(glove: Glove) -> dict[str, object]:
    """Medical Subject Headings by their graph and their names, most of several words."""
    graph = np.load(SHARED / "medicine" / "mesh_graph_netmf128.npz")
    names = [str(name).lower().replace("-", " ") for name in graph["names"]]
    rows = np.sort(np.random.default_rng(0).permutation(len(names))[:N_HEADINGS])
    table = {names[row]: graph["X"][row].astype(np.float64) for row in rows}
    result = vf.impute(table, glove_file())
    measured = panel(result, glove)
    ranks = []
    for name, vector in zip(result.embedding.words, result.embedding.vectors, strict=True):
        parts = [part for part in name.split() if part in glove.row_of and len(part) > 2]
        if len(name.split()) > 1 and parts and len(ranks) < N_RANKED:
            ranks.append(glove.rank(vector, parts))
    measured["median rank of the best own part"] = float(np.median(ranks))
    some = np.arange(0, len(result.embedding), len(result.embedding) // 8)
    lists = glove.nearest(result.embedding.vectors[some], 6)
    words = [result.embedding.words[row] for row in some]
    measured["examples"] = [
        f"{word}: {', '.join(near)}" for word, near in zip(words, lists, strict=True)
    ]
    return measured


def companies(glove: Glove) -> dict[str, object]:
    """Companies by their daily returns and their names."""
    returns = pd.read_parquet(SHARED / "finance" / "sp500_returns_487x505.parquet")
    table = returns.fillna(0.0)
    table.index = [str(name).replace("_", " ").lower() for name in table.index]
    result = vf.impute(table.loc[~table.index.duplicated()], glove_file(), force=True)
    return panel(result, glove)


SETS = {"cities": cities, "headings": headings, "companies": companies}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/whole_file.json"))
    options = parser.parse_args()
    glove, measured = Glove(), {}
    for name in options.sets:
        begun = time.process_time()
        measured[name] = SETS[name](glove)
        measured[name]["cpu_seconds"] = round(time.process_time() - begun, 1)
        print(f"\n{name}")
        for label, value in measured[name].items():
            lines = value if isinstance(value, list) else [value]
            for line in lines:
                print(f"  {label:38}{line}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
