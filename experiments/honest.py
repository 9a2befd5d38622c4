"""Honest counts for Table 1: imputed companies alone, and known companies hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold

import vecfill
from finance import Companies
from sectors import sector_hits

Impute = Callable[[np.ndarray], np.ndarray]


def automatic(companies: Companies) -> Impute:
    """Return `vecfill.impute`, which chooses the method on the known rows."""
    table = pd.DataFrame(companies.affinity, index=companies.names)

    def impute(known: np.ndarray) -> np.ndarray:
        is_known = ~np.isnan(known[:, 0])
        base = vecfill.Embedding(companies.names[is_known].tolist(), known[is_known])
        found = vecfill.impute(table, base, match="exact").embedding
        imputed = known.copy()
        for row in np.flatnonzero(~is_known):
            imputed[row] = found[companies.names[row]]
        return imputed

    return impute


def mean_of_nearest(companies: Companies, n_nearest: int) -> Impute:
    """Return the plain rival: the mean of the nearest known rows."""
    distances = cdist(companies.affinity, companies.affinity)

    def impute(known: np.ndarray) -> np.ndarray:
        is_known = ~np.isnan(known[:, 0])
        anchors = np.flatnonzero(is_known)
        imputed = known.copy()
        for row in np.flatnonzero(~is_known):
            nearest = anchors[np.argsort(distances[row, anchors])[:n_nearest]]
            imputed[row] = known[nearest].mean(axis=0)
        return imputed

    return impute


def same_votes_rows(
    companies: Companies,
    embeddings: Mapping[str, np.ndarray],
    imputed: Mapping[str, Mapping[str, np.ndarray]],
    ks: list[int],
) -> pd.DataFrame:
    """Return accuracies with equal votes, before and after, known and imputed companies apart."""
    rows = []
    alone = sector_hits(companies.affinity, companies.sector, ks)
    for label, known in embeddings.items():
        is_known = ~np.isnan(known[:, 0])
        before = sector_hits(known[is_known], companies.sector[is_known], ks)
        rows.append((label, "known", "before", int(is_known.sum()), *before.mean(axis=0)))
        after = {
            name: sector_hits(vectors, companies.sector, ks)
            for name, vectors in imputed[label].items()
        }
        for name, hits in (after | {"domain matrix alone": alone}).items():
            for group, chosen in (("known", is_known), ("imputed", ~is_known)):
                rows.append((label, group, name, int(chosen.sum()), *hits[chosen].mean(axis=0)))
    columns = ["embedding", "counted on", "vectors", "companies", *(f"k={k}" for k in ks)]
    table = pd.DataFrame(rows, columns=columns)
    order = table.sort_values(["embedding", "counted on"], kind="stable", key=_first_seen)
    return order.set_index("embedding")


def _first_seen(column: pd.Series) -> np.ndarray:
    return pd.factorize(column)[0]


def heldout_rows(
    companies: Companies,
    embeddings: Mapping[str, np.ndarray],
    methods: Mapping[str, Impute],
    config: dict[str, Any],
) -> pd.DataFrame:
    """Return how well hidden known vectors come back, by embedding and method."""
    rows = []
    for label, known in embeddings.items():
        for name, impute in methods.items():
            try:
                rows.append((label, name, *_heldout(companies, known, impute, config)))
            except vecfill.NoSignalError:
                blank = [np.nan] * (3 + len(config["shown_ks"]))
                rows.append((label, f"{name}: refused, no signal", *blank))
    at_k = [f"k={k}" for k in config["shown_ks"]]
    columns = ["embedding", "method", "centred cosine", "MRR", "hits@10", *at_k]
    return pd.DataFrame(rows, columns=columns).set_index("embedding")


def _heldout(
    companies: Companies, known: np.ndarray, impute: Impute, config: dict[str, Any]
) -> tuple[float, ...]:
    """Hide known rows fold by fold; return cosine, reciprocal rank, hits at 10 and accuracies."""
    anchors = np.flatnonzero(~np.isnan(known[:, 0]))
    folds = KFold(config["n_folds"], shuffle=True, random_state=config["seed"])
    cosines, ranks, hits = [], [], []
    for kept, hidden in folds.split(anchors):
        fewer = known.copy()
        fewer[anchors[hidden]] = np.nan
        imputed = impute(fewer)
        mean = known[anchors[kept]].mean(axis=0)
        truth = _unit(known[anchors] - mean)
        guess = _unit(imputed[anchors[hidden]] - mean)
        similar = guess @ truth.T
        own = similar[np.arange(len(hidden)), hidden]
        cosines.append(own)
        ranks.append((similar > own[:, None]).sum(axis=1) + 1)
        hits.append(sector_hits(imputed, companies.sector, config["shown_ks"])[anchors[hidden]])
    rank = np.concatenate(ranks)
    return (
        float(np.concatenate(cosines).mean()),
        float((1 / rank).mean()),
        float((rank <= 10).mean()),
        *np.concatenate(hits).mean(axis=0),
    )


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
