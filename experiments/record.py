"""What an experiment found -> metrics.json, a Markdown page, figures, and a place in the docs."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
mpl.rcParams.update({"figure.dpi": 100, "font.size": 9, "svg.hashsalt": "vecfill"})

from matplotlib import pyplot as plt  # noqa: E402  (the backend must be chosen first)
from matplotlib.figure import Figure  # noqa: E402

__all__ = ["Result", "fill_page", "is_done", "markdown_table", "plt", "write"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "gensim", "torch")


@dataclass(frozen=True)
class Result:
    """Numbers, tables by heading, figures by name, and sentences to stand under them."""

    metrics: dict[str, Any]
    tables: dict[str, pd.DataFrame]
    figures: dict[str, Figure] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def markdown_table(table: pd.DataFrame) -> str:
    """Return `table` in Markdown, its index as the first columns, numbers with three digits."""
    flat = table.reset_index()
    head = [str(name) for name in flat.columns]
    rows = [[_cell(value) for value in row] for row in flat.itertuples(index=False)]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.3f}"
    return str(value)


def write(result: Result, out: Path, *, name: str, config: dict[str, Any], seconds: float) -> None:
    """Write ``metrics.json``, ``table.md`` and each figure as PNG and SVG into `out`."""
    metrics = {
        "experiment": name,
        "version": version("vecfill"),
        "seed": config.get("seed"),
        "quick": config["quick"],
        "seconds": round(seconds, 1),
        "machine": machine(),
        "config": config,
        "metrics": result.metrics,
    }
    parts = [f"### {heading}\n\n{markdown_table(t)}" for heading, t in result.tables.items()]
    parts += [f"- {remark}" for remark in result.remarks]
    (out / "table.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    for figure_name, figure in result.figures.items():
        for kind in ("png", "svg"):
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(out / f"{figure_name}.{kind}", bbox_inches="tight", metadata=metadata)
        plt.close(figure)
    # Last, because its presence says that the experiment has ended.
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2, default=_plain) + "\n")


def is_done(out: Path, config: dict[str, Any]) -> bool:
    """Tell whether an experiment ended with these values and this version of the package."""
    try:
        found = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return False
    return found["config"] == json.loads(json.dumps(config)) and found["version"] == version(
        "vecfill"
    )


def machine() -> dict[str, Any]:
    """Return what matters of the machine, without names or paths."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _installed(name))},
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found.group(1) if found else platform.processor()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in metrics.json")


def fill_page(page: Path, name: str, results: Path, figures: Path, *, quick: bool) -> None:
    """Put the tables of an experiment at its marked place in `page`, its pictures in `figures`.

    The place is between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``.
    """
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if begin not in text or end not in text:
        raise SystemExit(f"{page} has no place for {name}. Add {begin} and {end}.")
    figures.mkdir(exist_ok=True)
    parts = ["**From a quick run: shortened, not for quoting.**"] if quick else []
    parts.append((results / "table.md").read_text(encoding="utf-8").strip())
    for picture in sorted(results.glob("*.png")):
        copied = f"{name}-{picture.name}" if picture.stem != name else picture.name
        shutil.copyfile(picture, figures / copied)
        link = Path(os.path.relpath(figures / copied, page.parent)).as_posix()
        parts.append(f"![{picture.stem}]({link})")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    page.write_text(before + begin + "\n" + "\n\n".join(parts) + "\n" + after, encoding="utf-8")
