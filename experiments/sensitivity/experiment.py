"""The sensitivity curves: how much min_degree and tol matter, and what the authors ran."""

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
    """Draw both families of curves under each reading of the authors' setting."""
    companies = read_companies(data)
    known = read_embeddings(data, companies.names)[config["embedding"]]
    authors = {
        "min_degree": read_authors(data, "ksens").loc[config["min_degrees"], config["ks"]],
        "tol": read_authors(data, "etasens").loc[config["tols"], config["ks"]],
    }
    ours = {
        reading["name"]: {
            "min_degree": _curves(companies, known, reading, config, "min_degree"),
            "tol": _curves(companies, known, reading, config, "tol"),
        }
        for reading in config["readings"]
    }

    rows = []
    for name, families in ours.items():
        row: list[Any] = [name]
        for varied, curves in families.items():
            difference = np.abs(curves.to_numpy() - authors[varied].to_numpy())
            row += [difference.max(), difference.mean()]
        rows.append(row)
    columns = ["reading", "delta: largest", "delta: mean", "eta: largest", "eta: mean"]
    agreement = pd.DataFrame(rows, columns=columns).set_index("reading")

    best = ours[config["best"]]
    tables = {"Difference from the authors' curves, by reading": agreement}
    for varied, symbol in (("min_degree", "delta"), ("tol", "eta")):
        both = pd.concat({"authors": authors[varied], "ours": best[varied]}, names=["source"])
        both = both.swaplevel().sort_index(level=0, sort_remaining=True)
        both.index = pd.MultiIndex.from_tuples(
            [(f"{value:g}", source) for value, source in both.index], names=[symbol, "source"]
        )
        shown = both[[k for k in (1, 3, 5, 8, 10, 15, 20, 30) if k in both.columns]]
        tables[f"{symbol}, authors' beside ours"] = shown.rename(columns=lambda k: f"k={k}")
    metrics = {
        "agreement": agreement.reset_index().to_dict("records"),
        "ours": {
            name: {varied: curves.to_numpy() for varied, curves in families.items()}
            for name, families in ours.items()
        },
    }
    return Result(metrics, tables, {"sensitivity": _figure(best, authors)})


def _curves(
    companies: Companies,
    known: np.ndarray,
    reading: dict[str, Any],
    config: dict[str, Any],
    varied: str,
) -> pd.DataFrame:
    curves = {}
    for value in config["min_degrees" if varied == "min_degree" else "tols"]:
        setting = {"min_degree": 8, "tol": 1e-2, "max_iter": 10_000} | {varied: value}
        found = []
        for start in range(config["n_starts"]):
            imputer = LatentSemanticImputer(
                solver="power",
                random_state=config["seed"] + start,
                **setting,
                **reading["setting"],
            )
            vectors = imputer.fit(companies.affinity, known).embedding_
            found.append(
                sector_accuracy(vectors, companies.sector, config["ks"], votes=reading["votes"])
            )
        curves[value] = np.mean(found, axis=0)
    return pd.DataFrame(curves, index=config["ks"]).T


def _figure(ours: dict[str, pd.DataFrame], authors: dict[str, pd.DataFrame]) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    titles = {"min_degree": "min_degree (delta)", "tol": "tol (eta)"}
    for axes, (varied, curves) in zip(panels, ours.items(), strict=True):
        for number, value in enumerate(curves.index):
            color = f"C{number}"
            axes.plot(curves.columns, curves.loc[value], color=color, label=f"{value:g}")
            axes.plot(curves.columns, authors[varied].loc[value], ":", color=color)
        axes.set(title=f"{titles[varied]}: ours solid, authors' dotted", xlabel="k")
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    panels[0].set(ylabel="sector accuracy")
    return figure
