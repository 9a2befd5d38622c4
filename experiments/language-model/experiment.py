"""Table 2: test perplexity of a small LSTM by where its embedding layer starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from finance import read_table2
from headlines import Lines, as_numbers, read_headlines, vocabulary
from imputed_tokens import (
    SHUFFLED,
    compared,
    compared_by_count,
    counted,
    decreases_after_names,
    token_groups,
)
from lstm import Task
from record import Result
from start_vectors import start_vectors
from trainings import kept_starts, trained
from vecfill.views import plots


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Train every start from every seed; trainings already in `out` are not repeated."""
    _refuse_claims(config)
    parts = read_headlines(
        data,
        seed=config["split_seed"],
        train_share=config["train_share"],
        valid_share=config["valid_share"],
    )
    lines = parts.train[: config["max_train_lines"]]
    words = vocabulary(lines, min_count=config["min_count"])
    valid = as_numbers(parts.valid[: config["max_valid_lines"]], words)
    test = as_numbers(parts.test[: config["max_test_lines"]], words)
    tasks: list[Task] = []
    starts: dict[str, dict[str, np.ndarray]] = {}
    groups = {}
    config = config | {"sizes": [s for s in config["sizes"] if config["n_seeds"][s["name"]]]}
    for size in config["sizes"]:
        name = size["name"]
        fewer = lines[: round(size["share"] * len(lines))]
        stream = as_numbers(fewer, words)
        starts[name] = kept_starts(
            config,
            size,
            out,
            partial(_made, config, size, words, fewer, data, out.parent / "cache"),
        )
        counts = np.bincount(stream, minlength=len(words))
        groups[name] = token_groups(config, starts[name], counts, test)
        tasks += [
            Task(start, config["seed"] + number, vectors, stream, valid, test,
                 config["recipe"] | size.get("recipe", {}), groups[name], name)
            for number in range(config["n_seeds"][name])
            for start, vectors in starts[name].items()
        ]  # fmt: skip
    runs = sorted(trained(tasks, config, out), key=lambda r: (r["size"], r["start"], r["seed"]))
    tokens = {"Test tokens that are imputed names": counted(config, groups, len(test))}
    remarks = [
        f"{len(words):,} words in the vocabulary; {len(valid):,} validation and {len(test):,} test "
        "tokens. Standard errors are over seeds; the headlines are split once. The paper's "
        "perplexities were measured on other headlines.",
    ]
    if not runs:
        return Result({}, tokens, remarks=remarks)

    published = read_table2(data)
    tables = {
        f"Test perplexity, {_lines(size)}": _table(
            config, [one for one in runs if one["size"] == size], given, published
        )
        for size, given in starts.items()
    }
    tables["Where the gain is: perplexity without and with imputed names"] = compared(config, runs)
    tables |= tokens
    spent = [epoch["processor seconds"] for one in runs for epoch in one["epochs"]]
    # A hundred rows, which nobody reads on a page.
    by_count = {"By how often training shows the name": compared_by_count(config, runs)}
    all_tables = tables | by_count
    metrics = {name: table.reset_index().to_dict("records") for name, table in all_tables.items()}
    metrics |= {"runs": runs, "processor seconds an epoch": float(np.mean(spent))}
    figures = {"language-model": _figure(config, runs, published)}
    return Result(metrics, tables, figures, remarks)


def _made(
    config: dict[str, Any],
    size: dict[str, Any],
    words: list[str],
    lines: Lines,
    data: Path,
    cache: Path,
    starts: list[str],
) -> Iterator[tuple[str, np.ndarray]]:
    word2vec = config["word2vec"] | {"min_count": size["self_min_count"]}
    chosen = config | {"starts": starts, "word2vec": word2vec}
    return start_vectors(chosen, words, lines, data, cache)


def _refuse_claims(config: dict[str, Any]) -> None:
    absent = {start for claim in config["claims"] for start in claim} - set(config["starts"])
    if absent:
        raise SystemExit(
            f"claims compare {sorted(absent)[0]!r}, which is not among the starts. Add it to the "
            "starts, or leave the claim out."
        )


def _lines(size: str) -> str:
    return {"all": "all training headlines"}.get(size, f"{size} of the training headlines")


def _table(
    config: dict[str, Any],
    runs: list[dict[str, Any]],
    starts: dict[str, np.ndarray],
    published: pd.DataFrame,
) -> pd.DataFrame:
    rows = []
    for start, (found, decrease) in _paired(config, runs).items():
        theirs = published.reindex([start])
        several = len(found) > 1
        rows.append(
            (
                start,
                int((~np.isnan(starts[start][:, 0])).sum()),
                len(found),
                f"{found.mean():.2f}",
                f"{_standard_error(found):.2f}" if several else "",
                f"{decrease.mean():.2f}"
                + (f" ± {_standard_error(decrease):.2f}" if several else ""),
                *(f"{theirs[name].item():.2f}" if theirs[name].notna().item() else ""
                  for name in ("test_perplexity", "decrease")),
            )
        )  # fmt: skip
    columns = [
        "start", "words with a vector", "seeds", "perplexity", "standard error",
        "decrease against self, %", "paper: perplexity", "paper: decrease, %",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).set_index("start")


def _paired(
    config: dict[str, Any], runs: list[dict[str, Any]]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return test perplexities of each start and their decrease against `self`, seed by seed.

    Starts that have not been trained are left out. A seed gives the same noise and the same other
    weights to every start.
    """
    by_start = {
        start: {one["seed"]: one["test"] for one in runs if one["start"] == start}
        for start in config["starts"]
    }
    found = {}
    for start, by_seed in by_start.items():
        seeds = sorted(by_seed.keys() & by_start["self"].keys())
        if not seeds:
            continue
        ours, own = (np.array([each[n] for n in seeds]) for each in (by_seed, by_start["self"]))
        found[start] = ours, 100 * (1 - ours / own)
    return found


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _figure(config: dict[str, Any], runs: list[dict[str, Any]], published: pd.DataFrame) -> Any:
    """Draw decreases with one standard error: against `self`, after names, and the paper's."""
    panels: dict[str, dict[str, Any]] = {}
    for size in config["sizes"]:
        of_size = [one for one in runs if one["size"] == size["name"]]
        panels[f"{size['name']}: % below self"] = {
            start: (mean := decrease.mean(), mean - error, mean + error)
            for start, (_, decrease) in _paired(config, of_size).items()
            for error in [_standard_error(decrease)]
        }
        after = decreases_after_names(config, of_size, size["name"])
        if after:
            panels[f"{size['name']}: % lower after imputed names"] = after
    theirs = published["decrease"].reindex(config["starts"]).dropna()
    panels["the paper: % below self"] = theirs.to_dict()
    accent = [s for s in config["starts"] if "returns" in s and not s.endswith(SHUFFLED)]
    return plots.intervals(panels, accent=accent)
