"""The heat maps: whether imputation helps where a name is rare in the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import Companies, read_authors, read_companies, read_embeddings
from record import Result, plt
from sectors import sector_accuracy
from vecfill import LatentSemanticImputer


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
    figure = _figure(
        {
            "before (ours = authors')": ours["before"],
            "after, authors": authors["after"],
            "after, ours": ours[shown],
        }
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


def _figure(heats: dict[str, pd.DataFrame]) -> Any:
    figure, panels = plt.subplots(1, len(heats), figsize=(9, 3), sharey=True)
    for axes, (title, heat) in zip(panels, heats.items(), strict=True):
        image = axes.imshow(heat, aspect="auto", vmin=0.1, vmax=0.6, interpolation="nearest")
        axes.set(title=title, xlabel="frequency above")
        ticks = np.linspace(0, heat.shape[1] - 1, 4).astype(int)
        axes.set_xticks(ticks, [str(heat.columns[tick]) for tick in ticks])
    panels[0].set(ylabel="k")
    panels[0].set_yticks(range(len(heat.index)), heat.index)
    figure.colorbar(image, ax=panels, label="sector accuracy")
    return figure
