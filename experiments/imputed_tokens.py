"""Where imputed names stand in the test headlines, and what the model gains there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

ALL = "all tokens"
NAMES = "imputed names"
AFTER = "tokens after an imputed name"
REST = "all other tokens"


def token_groups(
    config: dict[str, Any], starts: dict[str, np.ndarray], counts: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return masks over the test stream by kind of token, for each claim.

    A claim is a list of starts; its names are the words with a vector in the second start that
    the first lacks. All starts after the first are judged on these same names.
    `counts` says how often each word is in the training lines.
    """
    groups = {}
    for base, enriched, *_ in config["claims"]:
        is_name = np.isnan(starts[base][:, 0]) & ~np.isnan(starts[enriched][:, 0])
        target = is_name[test]
        before = np.concatenate([[False], target[:-1]])
        count_before = np.concatenate([[0], counts[test[:-1]]])
        found = {NAMES: target, AFTER: before & ~target, REST: ~target & ~before}
        for title, (low, high) in _bins(config).items():
            found[f"{NAMES}, seen {title}"] = target & _between(counts[test], low, high)
            found[f"{AFTER}, seen {title}"] = found[AFTER] & _between(count_before, low, high)
        groups |= {f"{enriched}: {name}": mask for name, mask in found.items()}
    return groups | {ALL: np.ones(len(test), bool)}


def _bins(config: dict[str, Any]) -> dict[str, tuple[float, float]]:
    edges = [*config["count_bins"], float("inf")]
    titles = {}
    for low, high in pairwise(edges):
        if high == float("inf"):
            titles[f"{low} times or more"] = (low, high)
        else:
            titles[f"{low} times" if high == low + 1 else f"{low} to {high - 1} times"] = (
                low,
                high,
            )
    return titles


def _between(counts: np.ndarray, low: float, high: float) -> np.ndarray:
    return (counts >= low) & (counts < high)


def counted(
    config: dict[str, Any], groups: dict[str, dict[str, np.ndarray]], n_tokens: int
) -> pd.DataFrame:
    """Return how many test tokens are imputed names or come after one, by size and claim.

    The names are also counted by how often they are in the training lines.
    """
    rows = []
    seen = [f"seen {title}" for title in _bins(config)]
    for size, found in groups.items():
        for _, enriched, *_ in config["claims"]:
            n_names, n_after, *by_count = (
                int(found[f"{enriched}: {kind}"].sum())
                for kind in (NAMES, AFTER, *(f"{NAMES}, {title}" for title in seen))
            )
            share = f"{100 * n_names / n_tokens:.1f}"
            rows.append((size, enriched, n_names, share, *by_count, n_after))
    columns = ["training lines", "start", NAMES, "% of test tokens", *seen, AFTER]
    return pd.DataFrame(rows, columns=columns).set_index("training lines")


def compared(config: dict[str, Any], runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Return perplexity without and with imputed names and its decrease, by kind of token."""
    rows = []
    for size in config["sizes"]:
        of_size = [one for one in runs if one["size"] == size["name"]]
        for base, *enriched in config["claims"]:
            kinds = (g for g in of_size[0]["groups"] if g.startswith(f"{enriched[0]}: "))
            for group in (ALL, *kinds):
                kind = group.removeprefix(f"{enriched[0]}: ")
                rows += [
                    (size["name"], start, kind, *cells)
                    for start in enriched
                    if (cells := _decrease(of_size, base, start, group))
                ]
    columns = ["training lines", "start", "tokens", "number", "without", "with", "decrease, %"]
    return pd.DataFrame(rows, columns=columns).set_index("training lines")


def _decrease(
    runs: list[dict[str, Any]], base: str, enriched: str, group: str
) -> tuple[int, str, str, str] | None:
    """Return tokens of the group, perplexity from both starts, and its decrease, paired by seed."""
    without, with_them = (
        {one["seed"]: one["groups"][group] for one in runs if one["start"] == start}
        for start in (base, enriched)
    )
    n_tokens = next(iter(without.values()))[1]
    if not n_tokens:
        return None
    seeds = sorted(without.keys() & with_them.keys())
    before, after = (
        np.exp([found[seed][0] / n_tokens for seed in seeds]) for found in (without, with_them)
    )
    decrease = 100 * (1 - after / before)
    shown = f"{decrease.mean():.2f}"
    if len(decrease) > 1:
        shown += f" ± {decrease.std(ddof=1) / np.sqrt(len(decrease)):.2f}"
    return n_tokens, f"{before.mean():.2f}", f"{after.mean():.2f}", shown
