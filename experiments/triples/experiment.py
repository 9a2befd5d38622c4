"""Typed triples beside the same triples without types, and ridge regression on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import SplineTransformer

import vecfill as vf
from movielens import Films, factors, ndcg, read_films
from record import Result

ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0)
RIDGE, RIDGE_ALL = "ridge on (relation, object)", "the same with genres and year"


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Hide films, restore their vectors from the table, edges or triples, and recommend them."""
    films = read_films(data, out.parent / "cache", n_least=config["n_least"])
    by_method: dict[str, list[np.ndarray]] = {}
    rows = []
    edges = _edges(films)
    for seed in range(config["n_seeds"]):
        scores = _of_seed(films, edges, seed, config)
        for method, values in scores.items():
            by_method.setdefault(method, []).append(values)
            rows.append({"seed": seed, "method": method, "ndcg": float(np.nanmean(values))})
    table = pd.DataFrame(rows).pivot_table(index="method", columns="seed", values="ndcg")
    table["mean"] = table.mean(axis=1)
    table = table.loc[list(by_method)]
    remarks = [
        _difference(by_method, *pair, config)
        for pair in (
            ("triples", RIDGE), ("triples", "edges"), ("table + triples", "table + edges"),
            ("table + triples", RIDGE_ALL), ("table + triples", RIDGE),
        )
    ]  # fmt: skip
    headings = {f"NDCG@{config['n_best']} of hidden films, by seed": table}
    return Result({"rows": rows, "remarks": remarks}, headings, remarks=remarks)


def _of_seed(films: Films, edges: Any, seed: int, config: dict[str, Any]) -> dict[str, np.ndarray]:
    n_films = len(films.names)
    order = np.random.default_rng(seed).permutation(n_films)
    cold = np.sort(order[: int(config["share_cold"] * n_films)])
    warm = np.setdiff1d(np.arange(n_films), cold)
    how = {name: config[name] for name in ("n_dims", "weight", "ridge", "n_rounds")}
    users, items = factors(csr_array(films.watched[:, warm]), **how)
    watched = films.watched[:, cold].toarray()

    def score(vectors: np.ndarray) -> np.ndarray:
        return ndcg(users @ vectors.T, watched, n_best=config["n_best"])

    typed, beside = _features(films)
    both = csr_array(hstack([typed, beside]))
    known = vf.Embedding([films.names[row] for row in warm], items.astype(np.float32))
    columns = dict(zip(films.genre_names, films.genres.T, strict=True))
    table = pd.DataFrame({"film": films.names, "year": films.years} | columns)
    triples = vf.triples(films.triples, entities=films.names)
    sources: dict[str, Any] = {
        "table": table,
        "edges": edges,
        "table + edges": {"table": table, "edges": edges},
        "triples": triples,
        "table + triples": {"table": table, "triples": triples},
    }
    scores = {"mean vector": score(np.tile(items.mean(axis=0), (len(cold), 1)))}
    # In hindsight: no way of tuning it would do better.
    scores[RIDGE] = _best_ridge(typed, warm, cold, items, score)
    scores[RIDGE_ALL] = _best_ridge(both, warm, cold, items, score)
    for name, source in sources.items():
        result = vf.impute(source, known, names="off", force=True)
        scores[name] = score(np.array([result.embedding[films.names[row]] for row in cold]))
        print(seed, name, round(float(np.nanmean(scores[name])), 4), flush=True)
    return scores


def _edges(films: Films) -> Any:
    """Return what the graph without types says of films: all others would only cost time."""
    whole = vf.edges([(head, tail) for head, _, tail in films.triples if head != tail])
    row_of = {name: row for row, name in enumerate(whole.entities)}
    rows = [row_of[name] for name in films.names]
    return vf.as_domain(whole.vectors[rows], names=films.names)


def _features(films: Films) -> tuple[csr_array, csr_array]:
    """Return TF-IDF of (relation, object), and genres with a spline of the year."""
    place = {name: row for row, name in enumerate(films.names)}
    documents: list[list[str]] = [[] for _ in films.names]
    for head, relation, tail in films.triples:
        if head in place:
            documents[place[head]].append(f"{relation} {tail}")
        if tail in place:
            documents[place[tail]].append(f"inverse {relation} {head}")
    typed = TfidfVectorizer(analyzer=list, min_df=2).fit_transform(documents)
    spline = SplineTransformer(8).fit_transform(films.years[:, None])
    beside = np.hstack([films.genres, spline])
    return csr_array(typed), csr_array(0.3 * beside)


def _best_ridge(
    rows: csr_array,
    warm: np.ndarray,
    cold: np.ndarray,
    items: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    scores = [score(Ridge(alpha).fit(rows[warm], items).predict(rows[cold])) for alpha in ALPHAS]
    return max(scores, key=lambda values: float(np.nanmean(values)))


def _difference(
    by_method: dict[str, list[np.ndarray]], ours: str, theirs: str, config: dict[str, Any]
) -> str:
    """Return the relative lead, with an interval over users of all seeds."""
    rng = np.random.default_rng(config["seed"])
    one, other = (np.array(by_method[name]) for name in (ours, theirs))
    draws = rng.integers(one.shape[1], size=(config["n_draws"], one.shape[1]))
    lead = np.nanmean(one) / np.nanmean(other) - 1
    leads = [np.nanmean(one[:, users]) / np.nanmean(other[:, users]) - 1 for users in draws]
    low, high = np.quantile(leads, [0.025, 0.975])
    counts = Counter(np.nanmean(one, axis=1) > np.nanmean(other, axis=1))
    return (
        f"{ours} against {theirs}: {lead:+.1%} ({low:+.1%} to {high:+.1%}), "
        f"ahead in {counts[True]} of {len(one)} seeds"
    )
