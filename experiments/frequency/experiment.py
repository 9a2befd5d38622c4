"""The heat maps: whether imputation helps where a name is rare in the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import Companies, read_authors, read_companies, read_embeddings
from record import Result
from sectors import sector_accuracy
from vecfill import LatentSemanticImputer
from vecfill.views import plots


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Compare every cell of the authors' two heat maps with ours."""
    companies = read_companies(data)
    embeddings = read_embeddings(data, companies.names)
    thresholds = list(range(0, 100, config["threshold_step"]))
    ours = {"before": _heat(companies, embeddings["self"], config["ks"], thresholds)}
    for min_degree in config["min_degrees"]:
        imputer = LatentSemanticImputer(
            min_degree, random_state=config["seed"], **config["setting"]
        )
        imputed = imputer.fit(companies.affinity, embeddings["self(hf)"]).embedding_
        ours[f"after, min_degree={min_degree}"] = _heat(
            companies, imputed, config["ks"], thresholds
        )
    authors = {
        "before": read_authors(data, "heat").loc[config["ks"], thresholds],
        "after": read_authors(data, "heat_PQ").loc[config["ks"], thresholds],
    }

    rows = []
    for name, heat in ours.items():
        theirs = authors["before" if name == "before" else "after"]
        difference = (heat - theirs).to_numpy()
        rows.append((name, np.abs(difference).max(), np.abs(difference).mean(), difference.mean()))
    agreement = pd.DataFrame(
        rows, columns=["map", "largest difference", "mean difference", "ours less theirs, mean"]
    ).set_index("map")

    shown = f"after, min_degree={config['shown']}"
    at_zero = pd.DataFrame(
        {
            "authors, before": authors["before"][0],
            "ours, before": ours["before"][0],
            "authors, after": authors["after"][0],
            f"ours, {shown}": ours[shown][0],
        }
    ).rename_axis("k")
    tables = {
        "Our heat maps against the authors', over all cells": agreement,
        "Accuracy over all companies that occur in the corpus (threshold 0)": at_zero,
    }
    metrics = {
        "agreement": agreement.reset_index().to_dict("records"),
        "thresholds": thresholds,
        "ours": {name: heat.to_numpy() for name, heat in ours.items()},
    }
    figure = plots.heat_map(
        {
            "before (ours = authors')": ours["before"].to_numpy(),
            "after, authors": authors["after"].to_numpy(),
            "after, ours": ours[shown].to_numpy(),
        },
        rows=config["ks"],
        columns=thresholds,
        row_title="k of the votes",
        column_title="frequency above",
        measure="sector accuracy",
    )
    return Result(metrics, tables, {"frequency": figure})


def _heat(
    companies: Companies, vectors: np.ndarray, ks: list[int], thresholds: list[int]
) -> pd.DataFrame:
    columns = {}
    for threshold in thresholds:
        rows = companies.frequency > threshold
        columns[threshold] = sector_accuracy(vectors[rows], companies.sector[rows], ks)
    return pd.DataFrame(columns, index=ks)
