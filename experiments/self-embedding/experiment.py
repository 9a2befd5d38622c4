"""An embedding trained on the headlines, and what imputation from returns adds to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import correlations, read_returns, read_sector_names
from headlines import read_headlines
from record import Result
from sectors import sector_accuracy, sector_hits
from vecfill import LatentSemanticImputer
from vecfill.views import plots
from word2vec import self_vectors


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Train at each threshold; tell sectors before and after imputation."""
    parts = read_headlines(
        data,
        seed=config["split_seed"],
        train_share=config["train_share"],
        valid_share=config["valid_share"],
    )
    mentioned = {word for line in parts.train for word in line}
    returns = read_returns(data)
    returns = returns[returns.index.isin(mentioned)]
    sector = read_sector_names(data).reindex(returns.index).to_numpy()
    domain = correlations(returns)

    rows, sizes = [], []
    for min_count in config["min_counts"]:
        recipe = config["recipe"] | {"min_count": min_count}
        vectors = self_vectors(parts.train, recipe, seed=config["seed"])
        vectors.astype(np.float32).to_parquet(out / f"self_{min_count}.parquet")
        known = vectors.reindex(returns.index).to_numpy()
        is_known = ~np.isnan(known[:, 0])
        sizes.append((min_count, len(vectors), int(is_known.sum()), int((~is_known).sum())))
        if is_known.sum() <= max(config["ks"]):
            continue
        before = sector_accuracy(known[is_known], sector[is_known], config["ks"])
        rows.append((min_count, "before", "known", int(is_known.sum()), *before))
        imputer = LatentSemanticImputer(random_state=config["seed"], **config["setting"])
        hits = sector_hits(imputer.fit(domain, known).embedding_, sector, config["ks"])
        rows.append((min_count, "after", "all", len(known), *hits.mean(axis=0)))
        rows.append(
            (min_count, "after", "imputed", int((~is_known).sum()), *hits[~is_known].mean(axis=0))
        )
    alone = sector_accuracy(domain.to_numpy(), sector, config["ks"])
    rows.append(("", "domain matrix alone", "all", len(sector), *alone))

    at_k = [f"k={k}" for k in config["ks"]]
    sizes_table = pd.DataFrame(
        sizes, columns=["least count", "words", "companies known", "companies to impute"]
    ).set_index("least count")
    accuracy = pd.DataFrame(
        rows, columns=["least count", "what", "counted on", "companies", *at_k]
    ).set_index("least count")
    tables = {
        "Words with a vector": sizes_table,
        "Sectors of companies in the headlines, by k": accuracy,
    }
    metrics = {name: t.reset_index().to_dict("records") for name, t in tables.items()}
    return Result(metrics, tables, {"self-embedding": _figure(accuracy, config["ks"])})


def _figure(accuracy: pd.DataFrame, ks: list[int]) -> Any:
    curves = {
        f"{min_count}: {row['what']}, {row['counted on']}".removeprefix(": "): {
            k: row[f"k={k}"] for k in ks
        }
        for min_count, row in accuracy.iterrows()
    }
    return plots.sensitivity(curves, parameter="k", measure="sector accuracy, by least count")
