"""Convergence: the spectrum of W, the decay of the change, and what is left of the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import read_companies, read_embeddings
from record import Result, plt
from vecfill import LatentSemanticImputer


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Measure on the paper's own matrix."""
    companies = read_companies(data)
    known = read_embeddings(data, companies.names)[config["embedding"]]
    fixed = LatentSemanticImputer(solver="direct", **config["setting"])
    fixed.fit(companies.affinity, known)
    unknown = ~fixed.is_known_
    spectra = _spectra(fixed.weights_.toarray(), unknown)
    changes = {
        "plain": _changes(fixed, config, self_weight=0.0),
        "lazy": _changes(fixed, config, self_weight=0.5),
    }
    starts = _starts(config, companies.affinity, known, fixed)

    authors = pd.read_parquet(data / "finance" / "authors_W.parquet")
    authors_names = authors.index.intersection(companies.names)
    authors_moduli = np.abs(np.linalg.eigvals(authors.loc[authors_names, authors_names].to_numpy()))
    table = pd.DataFrame(
        [
            ("W, ours", len(spectra["W"]), *_facts(spectra["W"])),
            ("W, authors' file", len(authors_moduli), *_facts(np.sort(authors_moduli)[::-1])),
            ("unknown block of W, ours", int(unknown.sum()), *_facts(spectra["unknown block"])),
            ("the same, lazy", int(unknown.sum()), *_facts(spectra["unknown block, lazy"])),
        ],
        columns=["matrix", "rows", "largest modulus", "second", "moduli above 0.9"],
    ).set_index("matrix")
    rate = float(spectra["unknown block"][0])
    tables = {
        "Eigenvalue moduli": table,
        "Random starts: how far apart, relative to the fixed point": starts,
    }
    metrics = {
        "moduli": spectra,
        "changes": changes,
        "starts": starts.reset_index().to_dict("records"),
        "steps to gain one digit": float(np.log(10) / -np.log(rate)),
    }
    remarks = [
        "With the known rows fixed, W has eigenvalue 1 once a known row, and the moduli of the "
        f"unknown block for the rest: the largest is {rate:.4f}, so one more digit costs "
        f"{metrics['steps to gain one digit']:.0f} iterations (twice that for the lazy walk).",
    ]
    return Result(metrics, tables, {"convergence": _figure(spectra, changes)}, remarks)


def _spectra(weights: np.ndarray, unknown: np.ndarray) -> dict[str, np.ndarray]:
    block = weights[np.ix_(unknown, unknown)]
    values = np.linalg.eigvals(block)
    return {
        "W": _descending(np.linalg.eigvals(weights)),
        "unknown block": _descending(values),
        "unknown block, lazy": _descending((values + 1) / 2),
    }


def _descending(values: np.ndarray) -> np.ndarray:
    return np.sort(np.abs(values))[::-1]


def _facts(moduli: np.ndarray) -> tuple[float, float, int]:
    return float(moduli[0]), float(moduli[1]), int((moduli > 0.9).sum())


def _changes(
    fitted: LatentSemanticImputer, config: dict[str, Any], *, self_weight: float
) -> list[float]:
    """Restate the iteration with the fitted weights, to see the change of every step."""
    rng = np.random.default_rng(config["seed"])
    unknown = ~fitted.is_known_
    known = fitted.embedding_[fitted.is_known_]
    vectors = fitted.embedding_.copy()
    shape = (int(unknown.sum()), known.shape[1])
    vectors[unknown] = rng.normal(known.mean(axis=0), known.std(axis=0), size=shape)
    rows = fitted.weights_[np.flatnonzero(unknown)]
    changes = []
    for _ in range(config["n_steps"]):
        old = vectors[unknown]
        new = (1 - self_weight) * (rows @ vectors) + self_weight * old
        changes.append(float(np.abs(new - old).sum() / np.abs(old).sum()))
        vectors[unknown] = new
    return changes


def _starts(
    config: dict[str, Any], domain: np.ndarray, known: np.ndarray, fixed: LatentSemanticImputer
) -> pd.DataFrame:
    unknown = ~fixed.is_known_
    truth = fixed.embedding_[unknown]
    size = np.linalg.norm(truth)
    rows = []
    for tol in (*config["tols"], config["solved_tol"]):
        found, n_iter = [], []
        for start in range(config["n_starts"]):
            imputer = LatentSemanticImputer(
                solver="power",
                tol=tol,
                max_iter=100_000,
                self_weight=0.5,
                random_state=config["seed"] + start,
                **config["setting"],
            )
            found.append(imputer.fit(domain, known).embedding_[unknown])
            n_iter.append(imputer.n_iter_)
        apart = [
            np.linalg.norm(one - other) / size
            for number, one in enumerate(found)
            for other in found[:number]
        ]
        away = [np.linalg.norm(one - truth) / size for one in found]
        rows.append(
            (f"{tol:g}", f"{np.mean(n_iter):.0f}", f"{np.mean(apart):.2g}",
             f"{np.max(apart):.2g}", f"{np.mean(away):.2g}")
        )  # fmt: skip
    columns = ["eta", "iterations", "apart, mean", "apart, most", "from the fixed point, mean"]
    return pd.DataFrame(rows, columns=columns).set_index("eta")


def _figure(spectra: dict[str, np.ndarray], changes: dict[str, list[float]]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    for name, moduli in spectra.items():
        left.plot(np.arange(1, len(moduli) + 1), moduli, label=name)
    left.set(title="eigenvalue moduli", xlabel="number", ylabel="modulus")
    for name, change in changes.items():
        right.semilogy(np.arange(1, len(change) + 1), change, label=name)
    right.axhline(1e-2, color="k", ls=":", lw=1, label="the paper's eta")
    right.set(title="relative change per iteration", xlabel="iteration")
    for axes in (left, right):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    return figure
