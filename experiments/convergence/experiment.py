"""Convergence: the spectrum of W, the decay of the change, and what is left of the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from finance import read_authors_weights, read_companies, read_embeddings
from iteration import iterate
from record import Result
from vecfill import LatentSemanticImputer
from vecfill.views import plots


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Measure on the paper's own matrix."""
    companies = read_companies(data)
    known = read_embeddings(data, companies.names)[config["embedding"]]
    fixed = LatentSemanticImputer(solver="direct", **config["setting"])
    fixed.fit(companies.affinity, known)
    unknown = ~fixed.is_known_
    spectra = _spectra(fixed.weights_.toarray(), unknown)
    changes = {
        name: iterate(
            fixed.weights_,
            known,
            tol=0.0,
            max_iter=config["n_steps"],
            noise=noise,
            self_weight=self_weight,
            seed=config["seed"],
        ).changes
        for name, (noise, self_weight) in {
            "start at the mean": (0.0, 0.0),
            "noisy start": (1.0, 0.0),
            "noisy start, lazy": (1.0, 0.5),
        }.items()
    }
    starts = _starts(config, companies.affinity, known, fixed)

    authors = read_authors_weights(data, companies.names)
    authors_moduli = _descending(np.linalg.eigvals(authors))
    table = pd.DataFrame(
        [
            ("W, ours", len(spectra["W"]), *_facts(spectra["W"])),
            ("W, authors' file", len(authors_moduli), *_facts(authors_moduli)),
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
    figures = {
        "convergence": plots.convergence(changes, tol=config["tols"][0]),
        "spectrum": plots.spectrum(
            fixed.weights_, fixed.is_known_, reference=csr_array(authors), reference_name="authors"
        ),
    }
    return Result(metrics, tables, figures, remarks)


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
