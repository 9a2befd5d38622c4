"""Scaling: what a whole fit costs in time and memory, each size in a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from fit_cost import fit_cost
from record import Result
from vecfill.views import plots


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
    return Result({"fits": rows}, tables, _figures(table, config["published_seconds"]))


def _figures(table: pd.DataFrame, published_seconds: float) -> dict[str, Any]:
    seconds, memory = (
        {
            source: dict(zip(rows["rows"], rows[column], strict=True))
            for source, rows in table.groupby(level=0)
        }
        for column in ("seconds", "memory, MB")
    )
    ends = int(table["rows"].min()), int(table["rows"].max())
    seconds["the paper's limit"] = dict.fromkeys(ends, published_seconds)
    return {
        "scaling": plots.sensitivity(
            seconds, parameter="rows", measure="seconds of a whole fit", log=True
        ),
        "memory": plots.sensitivity(memory, parameter="rows", measure="memory, MB", log=True),
    }
