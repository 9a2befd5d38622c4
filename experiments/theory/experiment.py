"""The theory as measurements: reach, spectral radius, and independence of the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from finance import read_companies, read_embeddings, read_returns
from iteration import iterate
from neighbor_weights import cut_off, neighbor_weights, spectral_radius
from record import Result
from vecfill import LatentSemanticImputer
from vecfill.views import plots

SPANNING = "spanning, min_degree=8"


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Measure the paper's graph beside plain k-NN graphs of the same rows."""
    companies = read_companies(data)
    known = read_embeddings(data, companies.names)[config["embedding"]]
    rows = [
        (name, *_facts(weights, known, config))
        for name, weights in _graphs(companies.affinity, known, config).items()
    ]
    columns = [
        "graph", "rows without a path", "radius of W_qq", "iterations",
        "starts apart: with a path", "starts apart: without",
    ]  # fmt: skip
    lemma = pd.DataFrame(rows, columns=columns).set_index("graph")
    often = _how_often(config, data)
    tables = {
        f"487 companies, {config['embedding']} knows {int((~np.isnan(known[:, 0])).sum())}": lemma,
        f"How often it fails: 3,529 companies, {config['n_draws']} draws of known ones": often,
    }
    metrics = {
        "lemma": lemma.reset_index().to_dict("records"),
        "often": often.reset_index().to_dict("records"),
    }
    return Result(metrics, tables, {"theory": _figure(config, often)})


def _figure(config: dict[str, Any], often: pd.DataFrame) -> Any:
    lost = often["rows without a path, mean"].astype(float)
    curves = {
        f"{n_known} known": {k: lost[n_known, f"k-NN, k={k}"] for k in config["n_neighbors"]}
        for n_known in config["few_known"]
    }
    # The paper's graph has no k; the most that it lost with any number of known rows is a line.
    spanning = float(lost.xs(SPANNING, level="graph").max())
    curves |= {f"{SPANNING}, most": dict.fromkeys(config["n_neighbors"], spanning)}
    return plots.sensitivity(
        curves, parameter="k of a plain k-NN graph", measure="companies without a path, of 3,529"
    )


def _graphs(domain: np.ndarray, known: np.ndarray, config: dict[str, Any]) -> dict[str, csr_array]:
    found = {}
    for floor in (0.1, 0.0):
        for min_degree in config["min_degrees"]:
            fitted = LatentSemanticImputer(min_degree, weight_rule="nnls", weight_floor=floor)
            name = f"spanning, min_degree={min_degree}, floor {floor:g}"
            found[name] = fitted.fit(domain, known).weights_
    for k in config["n_neighbors"]:
        found[f"k-NN, k={k}"] = neighbor_weights(domain, k)
    return found


def _facts(weights: csr_array, known: np.ndarray, config: dict[str, Any]) -> tuple[Any, ...]:
    """Return reach, radius, and how far apart two random starts end, relative to the mean."""
    unknown = np.isnan(known[:, 0])
    lost = cut_off(weights, ~unknown)
    ends = [
        iterate(weights, known, tol=config["tol"], noise=1.0, seed=seed,
                max_iter=config["max_iter"])
        for seed in (config["seed"], config["seed"] + 1)
    ]  # fmt: skip
    apart = np.linalg.norm(ends[0].vectors - ends[1].vectors, axis=1)
    apart /= np.linalg.norm(known[~unknown], axis=1).mean()
    reached = unknown & ~lost
    return (
        int(lost.sum()),
        f"{spectral_radius(weights, unknown):.6f}",
        len(ends[0].changes),
        f"{apart[reached].max():.1e}",
        f"{apart[lost].mean():.2f}" if lost.any() else "",
    )


def _how_often(config: dict[str, Any], data: Path) -> pd.DataFrame:
    domain = np.corrcoef(read_returns(data).to_numpy(dtype=np.float64))
    fitted = LatentSemanticImputer(8, weight_rule="nnls")
    any_known = np.full((len(domain), 1), np.nan)
    any_known[0] = 1.0
    graphs = {SPANNING: fitted.fit(domain, any_known).weights_}
    graphs |= {f"k-NN, k={k}": neighbor_weights(domain, k) for k in config["n_neighbors"]}
    rng = np.random.default_rng(config["seed"])
    rows = []
    for n_known in config["few_known"]:
        draws = [rng.choice(len(domain), n_known, replace=False) for _ in range(config["n_draws"])]
        for name, weights in graphs.items():
            lost = []
            for chosen in draws:
                is_known = np.zeros(len(domain), bool)
                is_known[chosen] = True
                lost.append(int(cut_off(weights, is_known).sum()))
            rows.append(
                (n_known, name, np.mean(np.array(lost) > 0), f"{np.mean(lost):.0f}", max(lost))
            )
    columns = ["known", "graph", "draws that fail", "rows without a path, mean", "most"]
    return pd.DataFrame(rows, columns=columns).set_index(["known", "graph"])
