"""Scaling: what a whole fit costs in time and memory, each size in a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fit_cost import fit_cost
from record import Result, plt


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Fit every size on real returns and on made data."""
    tasks = [("returns", n, data) for n in config["returns_sizes"]]
    tasks += [("made", n, data) for n in config["made_sizes"]]
    rows = []
    for source, n_rows, folder in tasks:
        # Memory is a high-water mark of a process: a fresh one for each size.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            cost = pool.apply(fit_cost, (source, n_rows, str(folder), config))
        rows.append(cost)
        print(f"scaling: {source} {n_rows}: {cost['seconds']:.2f} s", file=sys.stderr)
    table = pd.DataFrame(rows).set_index("data")
    paper = pd.DataFrame(
        [{"data": "paper", "rows": "about 4,000", "features": "", "seconds":
          f"under {config['published_seconds']}", "memory, MB": ""}]
    ).set_index("data")  # fmt: skip
    shown = table.assign(
        seconds=table["seconds"].map("{:.2f}".format),
        **{"memory, MB": table["memory, MB"].map("{:.0f}".format)},
    )
    tables = {"Cost of a whole fit": pd.concat([paper, shown])}
    return Result({"fits": rows}, tables, {"scaling": _figure(table)})


def _figure(table: pd.DataFrame) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    for source, rows in table.groupby(level=0):
        left.loglog(rows["rows"], rows["seconds"].to_numpy(np.float64), "o-", label=source)
        right.loglog(rows["rows"], rows["memory, MB"].to_numpy(np.float64), "o-", label=source)
    left.axhline(60, color="k", ls=":", lw=1, label="a minute")
    left.set(xlabel="rows", ylabel="seconds", title="time of a fit")
    right.set(xlabel="rows", ylabel="MB", title="memory above an idle process")
    for axes in (left, right):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3, which="both")
    return figure
