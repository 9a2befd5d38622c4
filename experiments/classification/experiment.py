"""Table 1: how well the vectors tell a company's sector, before and after imputation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold

import vecfill
from finance import Companies, read_companies, read_embeddings
from record import Result, plt
from sectors import sector_accuracy, sector_hits
from vecfill import LatentSemanticImputer, VecfillError

Impute = Callable[[np.ndarray], np.ndarray]


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Measure each embedding in the folder under each setting, the paper's way and honestly."""
    companies = read_companies(data)
    embeddings = read_embeddings(data, companies.names)
    methods = {name: _imputer(companies, s, config) for name, s in config["settings"].items()}
    methods["auto"] = _automatic(companies)

    paper_rows, honest_rows, heldout_rows, refused = [], [], [], []
    for label, known in embeddings.items():
        paper_rows += _published_rows(config, label)
        is_known = ~np.isnan(known[:, 0])
        before = sector_accuracy(known[is_known], companies.sector[is_known], config["ks"])
        paper_rows.append((label, "ours", "before", int(is_known.sum()), *before))
        for name, impute in methods.items():
            try:
                if not is_known.all():
                    hits = sector_hits(impute(known), companies.sector, config["ks"])
                    after = hits.mean(axis=0)
                    paper_rows.append((label, "ours", f"after, {name}", len(known), *after))
                    for group, rows in (("imputed", ~is_known), ("known", is_known)):
                        share = hits[rows].mean(axis=0)
                        honest_rows.append((label, group, name, int(rows.sum()), *share))
                heldout_rows.append((label, name, *_heldout(companies, known, impute, config)))
            except VecfillError as error:
                refused.append(f"`{name}` refused {label}: {error}")
        honest_rows += _domain_rows(companies, label, is_known, config["ks"])
        heldout_rows.append(
            (
                label,
                "mean of nearest",
                *_heldout(companies, known, _rival(companies, config), config),
            )
        )
    tables = _tables(config["ks"], paper_rows, honest_rows, heldout_rows)
    metrics = {heading: t.reset_index().to_dict("records") for heading, t in tables.items()}
    return Result(metrics, tables, {"classification": _figure(config["ks"], tables)}, refused)


def _imputer(companies: Companies, setting: dict[str, Any], config: dict[str, Any]) -> Impute:
    def impute(known: np.ndarray) -> np.ndarray:
        imputer = LatentSemanticImputer(random_state=config["seed"], **setting)
        return imputer.fit(companies.affinity, known).embedding_

    return impute


def _automatic(companies: Companies) -> Impute:
    """`vecfill.impute`, which chooses the method on the known rows."""
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


def _rival(companies: Companies, config: dict[str, Any]) -> Impute:
    distances = cdist(companies.affinity, companies.affinity)

    def impute(known: np.ndarray) -> np.ndarray:
        is_known = ~np.isnan(known[:, 0])
        anchors = np.flatnonzero(is_known)
        imputed = known.copy()
        for row in np.flatnonzero(~is_known):
            nearest = anchors[np.argsort(distances[row, anchors])[: config["n_nearest"]]]
            imputed[row] = known[nearest].mean(axis=0)
        return imputed

    return impute


def _published_rows(config: dict[str, Any], label: str) -> list[tuple]:
    published = config["published"].get(label)
    if published is None:
        missing = [float("nan")] * len(config["ks"])
        return [(label, "paper", "not available to us", "", *missing)]
    return [
        (label, "paper", "before", "", *published["before"]),
        (label, "paper", "after", "", *published["after"]),
    ]


def _domain_rows(
    companies: Companies, label: str, is_known: np.ndarray, ks: list[int]
) -> list[tuple]:
    """What the domain matrix alone says, without any embedding: the yardstick of an imputation."""
    if is_known.all():
        return []
    hits = sector_hits(companies.affinity, companies.sector, ks)
    return [
        (label, group, "domain matrix alone", int(rows.sum()), *hits[rows].mean(axis=0))
        for group, rows in (("imputed", ~is_known), ("known", is_known))
    ]


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
        hits.append(sector_hits(imputed, companies.sector, config["ks"])[anchors[hidden]])
    rank = np.concatenate(ranks)
    accuracy = np.concatenate(hits).mean(axis=0)
    return (
        float(np.concatenate(cosines).mean()),
        float((1 / rank).mean()),
        float((rank <= 10).mean()),
        *accuracy,
    )


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _tables(
    ks: list[int], paper: list[tuple], honest: list[tuple], heldout: list[tuple]
) -> dict[str, pd.DataFrame]:
    at_k = [f"k={k}" for k in ks]
    return {
        "The paper's comparison: before on the known companies, after on all": pd.DataFrame(
            paper, columns=["embedding", "source", "what", "companies", *at_k]
        ).set_index("embedding"),
        "The same votes, counted on imputed and on known companies apart": pd.DataFrame(
            honest, columns=["embedding", "counted on", "setting", "companies", *at_k]
        ).set_index("embedding"),
        "Known companies hidden, imputed and compared with the truth": pd.DataFrame(
            heldout,
            columns=["embedding", "setting", "centred cosine", "MRR", "hits@10", *at_k],
        ).set_index("embedding"),
    }


def _figure(ks: list[int], tables: dict[str, pd.DataFrame]) -> Any:
    paper, honest, _ = tables.values()
    at_k = [f"k={k}" for k in ks]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for _, row in paper.loc[["GloVe"]].iterrows():
        style = "k--" if row["source"] == "paper" else "-"
        left.plot(ks, row[at_k].astype(float), style, marker="o", ms=3,
                  label=f"{row['source']}: {row['what']}")  # fmt: skip
    rows = honest.loc[["GloVe"]]
    for _, row in rows[rows["counted on"] == "imputed"].iterrows():
        right.plot(ks, row[at_k].astype(float), marker="o", ms=3, label=row["setting"])
    left.set(title="GloVe, as in the paper", xlabel="k", ylabel="sector accuracy")
    right.set(title="GloVe, imputed companies alone", xlabel="k")
    for axes in (left, right):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    return figure
