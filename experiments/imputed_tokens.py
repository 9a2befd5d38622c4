"""Where imputed names stand in the test headlines, and what the model gains there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

ALL = "all tokens"
NAMES = "imputed names"
AFTER = "tokens after an imputed name"
REST = "all other tokens"
SHUFFLED = " (shuffled)"
"""Ends the name of a start whose imputed vectors are dealt out to the imputed names at random."""


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
    """Return perplexity without and with imputed names, and its decrease, by kind of token."""
    kinds = (ALL, NAMES, AFTER, REST)
    rows = [
        (size, start, base, n_seeds, *map(_shown, cells))
        for size, base, enriched, start, of_size in _compared_starts(config, runs)
        if (n_seeds := len(_seeds(of_size, base, start)))
        for cells in [[_decrease(of_size, base, start, _group(enriched, k)) for k in kinds]]
    ]
    columns = ["training lines", "start", "against", "seeds", *kinds]
    return pd.DataFrame(rows, columns=columns).set_index("training lines")


def compared_by_count(config: dict[str, Any], runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the same on names and after them, by how often training shows the name."""
    rows = []
    for size, base, enriched, start, of_size in _compared_starts(config, runs):
        for title in _bins(config):
            found = [
                _decrease(of_size, base, start, _group(enriched, f"{kind}, seen {title}"))
                for kind in (NAMES, AFTER)
            ]
            if found[0]:
                rows.append((size, start, base, title, found[0].n_tokens, *map(_shown, found)))
    columns = ["training lines", "start", "against", "name seen", "test tokens", NAMES, AFTER]
    return pd.DataFrame(rows, columns=columns).set_index("training lines")


def decreases_after_names(
    config: dict[str, Any], runs: list[dict[str, Any]], size: str
) -> dict[str, tuple[float, float, float]]:
    """Return for each start its mean decrease after imputed names in %, and one error around it."""
    found = {}
    for name, base, enriched, start, of_size in _compared_starts(config, runs):
        after = name == size and _decrease(of_size, base, start, _group(enriched, AFTER))
        if after:
            mean, error = after.percent
            found.setdefault(start, (mean, mean - error, mean + error))
    return found


@dataclass(frozen=True)
class Decrease:
    """Perplexity of some tokens from two starts, a value a seed."""

    n_tokens: int
    without: np.ndarray
    with_them: np.ndarray

    @property
    def percent(self) -> tuple[float, float]:
        """Mean decrease in percent, paired by seed, and its standard error (0 for one seed)."""
        found = 100 * (1 - self.with_them / self.without)
        error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
        return float(found.mean()), float(error)


def _compared_starts(
    config: dict[str, Any], runs: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str, str, list[dict[str, Any]]]]:
    """Give each size, first start, start that names the tokens, and compared start, with runs."""
    for size in config["sizes"]:
        of_size = [one for one in runs if one["size"] == size["name"]]
        for base, *enriched in config["claims"]:
            for start in enriched:
                yield size["name"], base, enriched[0], start, of_size
                # Against its control, a start gains what its vectors say of the single names.
                if (control := start + SHUFFLED) in enriched:
                    yield size["name"], control, enriched[0], start, of_size


def _group(enriched: str, kind: str) -> str:
    return kind if kind == ALL else f"{enriched}: {kind}"


def _seeds(runs: list[dict[str, Any]], *starts: str) -> list[int]:
    """Return the seeds from which every one of `starts` has been trained."""
    return sorted(
        set.intersection(*({one["seed"] for one in runs if one["start"] == s} for s in starts))
    )


def _decrease(
    runs: list[dict[str, Any]], base: str, enriched: str, group: str
) -> Decrease | None:  # fmt: skip
    """Return perplexities of a group of tokens from both starts; None if there is no such token."""
    found = {(one["start"], one["seed"]): one["groups"][group] for one in runs}
    seeds = _seeds(runs, base, enriched)
    n_tokens = found[base, seeds[0]][1] if seeds else 0
    if not n_tokens:
        return None
    without, with_them = (
        np.exp([found[start, seed][0] / n_tokens for seed in seeds]) for start in (base, enriched)
    )
    return Decrease(n_tokens, without, with_them)


def _shown(found: Decrease | None) -> str:
    """Return ``before to after (decrease ± its standard error %)``, paired by seed."""
    if found is None:
        return ""
    mean, error = found.percent
    spread = f" ± {error:.2f}" if len(found.without) > 1 else ""
    digits = 2 if found.without.mean() < 1000 else 0
    ends = (f"{each.mean():.{digits}f}" for each in (found.without, found.with_them))
    return f"{' to '.join(ends)} ({mean:.2f}{spread} %)"
