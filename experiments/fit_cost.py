"""Seconds and memory of one fit, to be asked in a process of its own."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from finance import read_returns
from vecfill import LatentSemanticImputer


def fit_cost(source: str, n_rows: int, data: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return what a fit of `n_rows` rows costs, the second time: the first may compile."""
    rng = np.random.default_rng(config["seed"])
    if source == "returns":
        domain = read_returns(Path(data)).to_numpy(dtype=np.float64)[:n_rows]
    else:
        domain = _made(rng, n_rows, config["made_features"], config["n_clusters"])
    embedding = rng.normal(size=(n_rows, config["n_dims"]))
    embedding[rng.random(n_rows) > config["known_share"]] = np.nan
    imputer = LatentSemanticImputer(**config["setting"])
    imputer.fit(domain[:200], embedding[:200])

    idle = _peak_megabytes(reset=True)
    imputer.fit(domain, embedding)
    start = time.perf_counter()
    imputer.fit(domain, embedding)
    seconds = time.perf_counter() - start
    return {
        "data": source,
        "rows": n_rows,
        "features": domain.shape[1],
        "seconds": seconds,
        "memory, MB": _peak_megabytes() - idle,
    }


def _made(rng: np.random.Generator, n_rows: int, n_features: int, n_clusters: int) -> np.ndarray:
    centres = rng.normal(size=(n_clusters, n_features))
    return centres[rng.integers(n_clusters, size=n_rows)] + rng.normal(size=(n_rows, n_features))


def _peak_megabytes(*, reset: bool = False) -> float:
    """Return the most memory held so far, after a `reset` what is held now.

    Where the system cannot reset its mark, a small fit may stay below that of the imports.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
    return float(line.split()[1]) / 1024
