"""A benchmark whose knowledge graph is about other films: refused, and kept when joined rightly."""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from implicit.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import vecfill as vf
from recbole_wheel import read_movielens
from record import Result, plt

SHIPPED, RIGHT = "as shipped", "joined by the right ids"
GENRES = ("Drama", "Comedy", "Action", "Romance", "Thriller")
CHANCE = 1e-3


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Impute the vectors of films from either graph, and see what is refused."""
    wheels = out.parent / "wheels"
    items, ratings, triples, links = (
        read_movielens(wheels, kind) for kind in ("item", "inter", "kg", "link")
    )
    joins = {SHIPPED: _shipped(links, items), RIGHT: _right(links, items, data)}
    rows, genres = [], []
    for name, item_of in joins.items():
        facts = _facts(triples, item_of, config["fewest_films"])
        genres.append({"graph": name, "films": len(facts.index), **_genre_auc(facts, items)})
        svd = TruncatedSVD(config["n_components"], random_state=0)
        table = pd.DataFrame(
            svd.fit_transform(TfidfTransformer().fit_transform(facts)), facts.index
        )
        table.columns = [f"facts {column}" for column in table.columns]
        for seed in range(config["seed"], config["seed"] + config["n_seeds"]):
            rows.append({"graph": name, "seed": seed, **_tried(table, ratings, config, seed)})
            print(f"{name}, seed {seed}: {rows[-1]}", file=sys.stderr)
    outcome = pd.DataFrame(rows)
    counts = outcome.groupby("graph", sort=False).agg(
        refused=("is_refused", "sum"), runs=("seed", "size"), p_smallest=("p", "min"),
        p_largest=("p", "max"), centred_cosine=("centred_cosine", "mean"),
    )  # fmt: skip
    message = next((row["message"] for row in rows if row["is_refused"]), "")
    return Result(
        {"runs": rows, "genres": genres},
        {
            "What vecfill said of each graph": counts,
            "Does a film's genre in the graph predict its genre in the data? AUC, cross-validated":
                pd.DataFrame(genres).set_index("graph"),
        },
        {"broken-benchmark": _figure(outcome)},
        [f"As shipped, it says: {message}"],
    )  # fmt: skip


def _figure(outcome: pd.DataFrame) -> Any:
    figure, axis = plt.subplots(figsize=(6, 2.4))
    rng = np.random.default_rng(0)
    for place, (name, colour) in enumerate([(RIGHT, "#27ae60"), (SHIPPED, "#c0392b")]):
        p_values = outcome.loc[outcome["graph"] == name, "p"].to_numpy(float)
        heights = place + 0.25 * (rng.random(len(p_values)) - 0.5)
        axis.scatter(np.maximum(p_values, 1e-30), heights, color=colour, s=18)
    axis.axvline(CHANCE, color="black", linewidth=1)
    axis.set_xscale("log")
    axis.set_yticks([0, 1], [RIGHT, SHIPPED])
    axis.set_ylim(-0.5, 1.5)
    axis.set_xlabel("chance of such a tie between facts and vectors; right of the line: refused")
    return figure


def _tried(
    table: pd.DataFrame, ratings: pd.DataFrame, config: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Impute a tenth of the films, and return whether that was refused, and why."""
    times = ratings["item_id"].value_counts()
    vectors = _factors(
        ratings[ratings["item_id"].map(times) >= config["fewest_ratings"]], config, seed
    )
    table = table.loc[[name for name in table.index if name in vectors]]
    hidden = set(np.random.default_rng(seed).permutation(table.index)[: len(table) // 10])
    known = {name: vectors[name] for name in table.index if name not in hidden}
    options: dict[str, Any] = {"names": "off", "seed": seed}
    message = ""
    try:
        result = vf.impute(table, known, **options)
    except vf.NoSignalError as error:
        message = str(error)
        result = vf.impute(table, known, force=True, **options)
    choice = result.decision.choice
    assert choice is not None
    cosine = float(choice.honest.centred_cosine.mean())
    return {"is_refused": bool(message), "p": choice.p_value, "centred_cosine": cosine,
            "message": message}  # fmt: skip


def _factors(ratings: pd.DataFrame, config: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Return factors of the films by alternating least squares on a sample of the ratings."""
    sample = ratings.sample(frac=config["share_of_ratings"], random_state=seed)
    user, _ = pd.factorize(sample["user_id"])
    item, names = pd.factorize(sample["item_id"])
    model = AlternatingLeastSquares(config["n_factors"], random_state=seed, num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit advises on threads of BLAS
        model.fit(csr_matrix((np.ones(len(user)), (user, item))), show_progress=False)
    return dict(zip(names, np.asarray(model.item_factors, float), strict=True))


def _shipped(links: pd.DataFrame, items: pd.DataFrame) -> dict[str, str]:
    """Return the film of each node, by the ids of the file as they stand."""
    names = set(items["item_id"])
    pairs = zip(links["entity_id"], links["item_id"], strict=True)
    return {node: item for node, item in pairs if item in names}


def _right(links: pd.DataFrame, items: pd.DataFrame, data: Path) -> dict[str, str]:
    """Return the same if the ids are those of ml-latest, whose films have titles."""
    latest = pd.read_csv(data / "movies" / "movies.csv", dtype={"movieId": str})
    parts = latest["title"].str.extract(r"^(.*) \((\d{4})\)\s*$")
    titles = dict(
        zip(latest["movieId"], zip(parts[0].map(_plain), parts[1], strict=True), strict=True)
    )
    pairs = zip(items["movie_title"].map(_plain), items["release_year"], strict=True)
    item_of = dict(zip(pairs, items["item_id"], strict=True))
    linked = zip(links["entity_id"], links["item_id"], strict=True)
    return {node: item_of[titles[movie]] for node, movie in linked if titles.get(movie) in item_of}


def _plain(title: Any) -> str:
    """Return a title as both lists write it: articles first, nothing in brackets."""
    text = unicodedata.normalize("NFKD", str(title)).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"\(.*?\)", "", text).strip()
    moved = re.fullmatch(r"(.*), (the|a|an|le|la|les|il|das|der|die)", text)
    text = f"{moved[2]} {moved[1]}" if moved else text
    return re.sub(r"[^a-z0-9]+", " ", text).strip()


def _facts(triples: pd.DataFrame, item_of: dict[str, str], fewest: int) -> pd.DataFrame:
    """Return which film has which fact: a relation, and who or what is at its other end."""
    parts = []
    for film, other in (("head_id", "tail_id"), ("tail_id", "head_id")):
        fact = triples["relation_id"] + " " + triples[other]
        parts.append(pd.DataFrame({"item": triples[film].map(item_of), "fact": fact}))
    both = pd.concat(parts)
    both = both.dropna().drop_duplicates()
    times = both["fact"].map(both["fact"].value_counts())
    facts = pd.crosstab(both["item"], both["fact"].where(times >= fewest))
    return facts.loc[:, facts.sum() >= fewest].clip(upper=1)


def _genre_auc(facts: pd.DataFrame, items: pd.DataFrame) -> dict[str, float]:
    """Return how well genres of the graph tell those of the data."""
    columns = facts.loc[:, facts.columns.str.contains("film_genre")].to_numpy(float)
    own = items.set_index("item_id")["class"].reindex(facts.index).str.get_dummies(" ")
    model = LogisticRegression(max_iter=500)
    return {
        genre: roc_auc_score(
            own[genre],
            cross_val_predict(model, columns, own[genre], cv=5, method="decision_function"),
        )
        for genre in GENRES
    }
