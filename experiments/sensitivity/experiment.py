"""The sensitivity curves: how much min_degree and tol matter, and what the authors ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import Companies, read_authors, read_companies, read_embeddings
from iteration import iterate
from record import Result
from sectors import sector_accuracy
from vecfill import LatentSemanticImputer
from vecfill.views import plots


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
    figures = {
        "sensitivity": _figure("delta", best["min_degree"], authors["min_degree"]),
        "eta": _figure("eta", best["tol"], authors["tol"]),
    }
    return Result(metrics, tables, figures)


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
        found = [
            sector_accuracy(vectors, companies.sector, config["ks"], votes=reading["votes"])
            for vectors in _imputed(companies, known, reading, setting, config)
        ]
        curves[value] = np.mean(found, axis=0)
    return pd.DataFrame(curves, index=config["ks"]).T


def _imputed(
    companies: Companies,
    known: np.ndarray,
    reading: dict[str, Any],
    setting: dict[str, Any],
    config: dict[str, Any],
) -> Iterator[np.ndarray]:
    """Give the vectors of each start; there is one start at the mean, and many at random."""
    if reading.get("start") == "mean":
        imputer = LatentSemanticImputer(setting["min_degree"], **reading["setting"])
        weights = imputer.fit(companies.affinity, known).weights_
        yield iterate(weights, known, tol=setting["tol"], max_iter=setting["max_iter"]).vectors
        return
    for start in range(config["n_starts"]):
        imputer = LatentSemanticImputer(
            solver="power", random_state=config["seed"] + start, **setting, **reading["setting"]
        )
        yield imputer.fit(companies.affinity, known).embedding_


def _figure(symbol: str, ours: pd.DataFrame, authors: pd.DataFrame) -> Any:
    def curves(table: pd.DataFrame) -> dict[str, dict[float, float]]:
        return {f"{symbol} {value:g}": row.to_dict() for value, row in table.iterrows()}

    return plots.sensitivity(
        curves(ours),
        parameter="k of the votes",
        measure="sector accuracy",
        reference=curves(authors),
        reference_name="authors",
    )
