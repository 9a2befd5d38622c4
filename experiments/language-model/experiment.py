"""Table 2: test perplexity of a small LSTM by where its embedding layer starts."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from headlines import as_numbers, read_headlines, vocabulary
from lstm import Task, train
from record import Result, plt
from start_vectors import start_vectors


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Train every start from every seed; trainings already in `out` are not repeated."""
    parts = read_headlines(
        data,
        seed=config["split_seed"],
        train_share=config["train_share"],
        valid_share=config["valid_share"],
    )
    lines = parts.train[: config["max_train_lines"]]
    words = vocabulary(lines, min_count=config["min_count"])
    starts = start_vectors(config, words, lines, data, out.parent / "cache")
    others = [part[: config["max_other_lines"]] for part in (parts.valid, parts.test)]
    streams = [as_numbers(part, words) for part in (lines, *others)]
    tasks = [
        Task(start, config["seed"] + number, vectors, *streams, config["recipe"])
        for number in range(config["n_seeds"])
        for start, vectors in starts.items()
    ]
    runs = sorted(_trained(tasks, config, out), key=lambda r: (r["start"], r["seed"]))

    table = _table(config, runs, starts)
    corpus = pd.DataFrame(
        [(len(words), *(len(stream) for stream in streams))],
        columns=["words", "training tokens", "validation tokens", "test tokens"],
    ).set_index("words")
    spent = [epoch["processor seconds"] for one in runs for epoch in one["epochs"]]
    metrics = {
        "perplexity": table.reset_index().to_dict("records"),
        "runs": runs,
        "processor seconds an epoch": float(np.mean(spent)),
    }
    remarks = [
        "Standard errors are over seeds; the headlines are split once. The paper's own "
        "perplexities are not available to us, and were measured on other headlines.",
    ]
    tables = {"Test perplexity by start of the embedding layer": table, "The headlines": corpus}
    return Result(metrics, tables, {"language-model": _figure(config, runs)}, remarks)


def _trained(tasks: list[Task], config: dict[str, Any], out: Path) -> Iterator[dict[str, Any]]:
    chosen = json.dumps(config, sort_keys=True)
    kept = out / "runs"
    kept.mkdir(exist_ok=True)
    waiting = []
    for task in tasks:
        path = _path(kept, task.start, task.seed)
        saved = json.loads(path.read_text()) if path.is_file() else {}
        if saved.get("chosen") == chosen:
            yield saved["run"]
        else:
            waiting.append(task)
    if not waiting:
        return
    with multiprocessing.get_context("spawn").Pool(config["n_processes"]) as pool:
        for number, one in enumerate(pool.imap_unordered(train, waiting), start=1):
            text = json.dumps({"chosen": chosen, "run": one})
            _path(kept, one["start"], one["seed"]).write_text(text)
            print(
                f"language-model: {number} of {len(waiting)}: {one['start']}, seed {one['seed']}: "
                f"test perplexity {one['test']:.2f} after {len(one['epochs'])} epochs",
                file=sys.stderr,
            )
            yield one


def _path(folder: Path, start: str, seed: int) -> Path:
    return folder / f"{start.replace(' + ', '_')}-{seed}.json"


def _table(
    config: dict[str, Any], runs: list[dict[str, Any]], starts: dict[str, np.ndarray]
) -> pd.DataFrame:
    by_start = {
        start: np.array([one["test"] for one in runs if one["start"] == start])
        for start in config["starts"]
    }
    own = by_start["self"]
    rows = []
    for start, found in by_start.items():
        # Seeds are paired: a seed gives the same noise and the same other weights to every start.
        decrease = 100 * (1 - found / own)
        with_vector = ~np.isnan(starts[start][:, 0])
        std = starts[start][with_vector].std() if with_vector.any() else float("nan")
        rows.append(
            (
                start,
                int(with_vector.sum()),
                f"{std:.2f}" if with_vector.any() else "",
                len(found),
                f"{found.mean():.2f}",
                f"{_standard_error(found):.2f}",
                f"{decrease.mean():.2f}",
                f"{_standard_error(decrease):.2f}",
            )
        )
    columns = [
        "start", "words with a vector", "their std", "seeds", "test perplexity",
        "standard error", "decrease against self, %", "its standard error",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).set_index("start")


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _figure(config: dict[str, Any], runs: list[dict[str, Any]]) -> Any:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for number, start in enumerate(config["starts"]):
        curves = [one["epochs"] for one in runs if one["start"] == start]
        n_epochs = min(len(epochs) for epochs in curves)
        for axes, part in zip(panels, ("train", "valid"), strict=True):
            mean = np.mean([[e[part] for e in epochs[:n_epochs]] for epochs in curves], axis=0)
            axes.semilogy(range(1, n_epochs + 1), mean, "o-", ms=3, color=f"C{number}", label=start)
    for axes, title in zip(panels, ("training", "validation"), strict=True):
        axes.set(title=f"{title} perplexity, mean over seeds", xlabel="epoch")
        axes.grid(alpha=0.3, which="both")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(ScalarFormatter())
    panels[1].legend(fontsize=7)
    return figure
