"""Table 1: how well the vectors tell a company's sector, before and after imputation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import (
    Companies,
    read_authors_weights,
    read_companies,
    read_embeddings,
    read_table1,
)
from honest import Impute, automatic, heldout_rows, mean_of_nearest, same_votes_rows
from iteration import iterate
from readings import accuracy, agreement
from record import Result
from sectors import sector_accuracy
from vecfill import LatentSemanticImputer, NoSignalError
from vecfill.views import plots


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Put our figures beside the paper's, then count imputed and hidden companies honestly."""
    companies = read_companies(data)
    embeddings = read_embeddings(data, companies.names)
    published = read_table1(data)[config["ks"]]
    lacking = {label: known for label, known in embeddings.items() if np.isnan(known).any()}
    weights = {
        "authors' weights": read_authors_weights(data, companies.names),
        "our weights": _weights(companies, lacking, config),
    }
    methods = _methods(companies, weights["our weights"], config)
    imputed, refused = _imputed(methods, lacking)

    ours = _ours(config, companies, embeddings, weights, imputed)
    table1 = _beside(published, ours)
    tables = {
        "Table 1: the paper's figures and ours": _shown(table1, config["ks"]),
        "What the authors may have run: difference from the paper's four imputed rows": agreement(
            config, companies, lacking, weights, published
        ),
        "Equal votes for all: imputed and known companies apart": same_votes_rows(
            companies, lacking, imputed, config["shown_ks"]
        ),
        "Known companies hidden, imputed and compared with the truth": heldout_rows(
            companies,
            embeddings,
            methods | {"mean of nearest": mean_of_nearest(companies, config["n_nearest"])},
            config,
        ),
    }
    metrics = {
        "table1": table1.reset_index().to_dict("records"),
        "from authors' weights": _from_authors(ours),
    } | {name: table.reset_index().to_dict("records") for name, table in tables.items()}
    return Result(metrics, tables, {"classification": _figure(table1, config["ks"])}, refused)


def _weights(
    companies: Companies, lacking: dict[str, np.ndarray], config: dict[str, Any]
) -> np.ndarray:
    """Return our weights; they depend on the domain alone, so any embedding will do."""
    known = next(iter(lacking.values()))
    fitted = LatentSemanticImputer(**config["weights"]).fit(companies.affinity, known)
    return fitted.weights_.toarray()


def _methods(
    companies: Companies, weights: np.ndarray, config: dict[str, Any]
) -> dict[str, Impute]:
    def to_the_letter(known: np.ndarray) -> np.ndarray:
        how = {name: config["table1"][name] for name in ("tol", "noise", "self_weight")}
        return iterate(weights, known, **how).vectors

    def solved(known: np.ndarray) -> np.ndarray:
        fitted = LatentSemanticImputer(solver="direct", **config["weights"])
        return fitted.fit(companies.affinity, known).embedding_

    return {"to the letter": to_the_letter, "solved": solved, "auto": automatic(companies)}


def _imputed(
    methods: dict[str, Impute], lacking: dict[str, np.ndarray]
) -> tuple[dict[str, dict[str, np.ndarray]], list[str]]:
    """Return the vectors by embedding and method, and what was refused."""
    imputed: dict[str, dict[str, np.ndarray]] = {}
    refused = []
    for label, known in lacking.items():
        imputed[label] = {}
        for name, impute in methods.items():
            try:
                imputed[label][name] = impute(known)
            except NoSignalError as error:
                refused.append(f"`{name}` refused {label}: {error}")
    return imputed, refused


def _ours(
    config: dict[str, Any],
    companies: Companies,
    embeddings: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    imputed: dict[str, dict[str, np.ndarray]],
) -> dict[tuple[str, str], np.ndarray]:
    """Return our accuracies by row of Table 1 and by what they are of."""
    ks, votes = config["ks"], config["table1"]["votes"]
    found = {}
    for label, known in embeddings.items():
        is_known = ~np.isnan(known[:, 0])
        found[label, "ours"] = sector_accuracy(known[is_known], companies.sector[is_known], ks)
        if is_known.all():
            continue
        row = f"{label}+aff"
        found[row, "authors' own weights"] = accuracy(
            weights["authors' weights"], known, companies, ks, **config["table1"]
        )
        for name, vectors in imputed[label].items():
            found[row, f"ours, {name}"] = sector_accuracy(
                vectors, companies.sector, ks, votes=votes
            )
        for source, matrix in weights.items():
            found[row, f"{source}, as the published scripts"] = accuracy(
                matrix, known, companies, ks, **config["scripts"]
            )
    return found


def _beside(published: pd.DataFrame, ours: dict[tuple[str, str], np.ndarray]) -> pd.DataFrame:
    rows = []
    for name, theirs in published.iterrows():
        rows.append((name, "paper", *theirs, np.nan, np.nan))
        for (row, what), found in ours.items():
            if row == name:
                difference = np.abs(found - theirs.to_numpy())
                rows.append((name, what, *found, difference.max(), difference.mean()))
    columns = ["row", "source", *published.columns, "largest difference", "mean difference"]
    return pd.DataFrame(rows, columns=columns).set_index("row")


def _shown(table1: pd.DataFrame, ks: list[int]) -> pd.DataFrame:
    return table1.rename(columns={k: f"k={k}" for k in ks})


def _from_authors(ours: dict[tuple[str, str], np.ndarray]) -> dict[str, float]:
    """Return how far our weights lead from the authors' own, the largest over k, by row."""
    return {
        row: float(np.abs(found - ours[row, "ours, to the letter"]).max())
        for (row, what), found in ours.items()
        if what == "authors' own weights"
    }


def _figure(table1: pd.DataFrame, ks: list[int]) -> Any:
    rows = [name for name in table1.index.unique() if name.endswith("+aff")]

    def curves(source: str) -> dict[str, dict[float, float]]:
        chosen = table1[table1["source"] == source]
        return {name: {k: chosen.loc[name, k] for k in ks} for name in rows}

    return plots.sensitivity(
        curves("ours, to the letter"),
        parameter="k of the votes",
        measure="sector accuracy",
        reference=curves("paper"),
        reference_name="paper",
    )
