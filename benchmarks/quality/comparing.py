"""Methods compared on the same hidden rows: who sees what, means, and intervals of differences.

Known entities are dealt into five folds, and folds are hidden one after the other until enough
entities have been hidden. Every method is chosen or tuned inside the training folds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from quality_set import Set

from vecfill.model.known import KnownRows
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.decision import Decision, decide
from vecfill.trust.choose.folds import Fold, hidden_folds
from vecfill.trust.choose.scores import RowScores, joined, score_rows
from vecfill.trust.compare.rivals import RIVALS, Competitors, Rival
from vecfill.trust.prove.hidden import HIDDEN_TOL

MEASURES = ("centred_cosine", "mrr", "hits_at_10")
N_BOOTSTRAPS = 1000

Scores = dict[str, RowScores]
Means = Mapping[str, Mapping[str, float]]
Gaps = Mapping[str, Mapping[str, tuple[float, float]]]


def fewer(data: Set, n_rows: int | None) -> Set:
    """The set, or an even sample of its entities."""
    if n_rows is None or len(data.entities) <= n_rows:
        return data
    kept = np.linspace(0, len(data.entities) - 1, n_rows).astype(int)
    return replace(
        data,
        name=f"{data.name} ({n_rows:,} rows)",
        entities=[data.entities[row] for row in kept],
        domain=data.domain[kept],
        embedding=data.embedding[kept],
        words=[data.words[row] for row in kept],
        texts={kind: [each[row] for row in kept] for kind, each in data.texts.items()},
        ranks=None,
        counts=None,
        table=None,
    )


def folds_of(data: Set, n_hidden: int) -> list[Fold]:
    """Folds that hide at least so many known rows, or all of them in turn if there are fewer."""
    return list(hidden_folds(data.is_known, n_folds=5, seed=0, enough=n_hidden))


@dataclass(frozen=True)
class Compared:
    """Scores of every method on the hidden rows, and what `auto` decided in each fold."""

    scores: Scores
    decisions: list[Decision]


def compared(
    space: Space,
    data: Set,
    folds: list[Fold],
    goal: str,
    *,
    candidates: str = "all",
    rivals: Mapping[str, Rival] = RIVALS,
) -> Compared:
    """Every method on the hidden rows of some folds, as `vecfill.evaluate` has them."""
    embedding = data.embedding.astype(np.float64)
    known = embedding[data.is_known]
    parts: dict[str, list[RowScores]] = {}
    decisions = []
    for fold in folds:
        # What is hidden is not there at all, so that no method can be tuned on it by mistake.
        blind = np.where(fold.is_seen[:, None], embedding, np.nan)
        given = KnownRows(blind, fold.is_seen)
        decision = decide(space, blind, fold.is_seen, goal=goal, candidates=candidates, seed=1)
        others = Competitors(space, given, decision, rivals, goal=goal, seed=1)
        own = decision.predictor.predict(space, given, Unknown(fold.places), tol=HIDDEN_TOL).vectors
        found = {"auto": own}
        found |= {name: predict(fold.places) for name, predict in others.predict.items()}
        centre = given.known.mean(axis=0)
        for name, vectors in found.items():
            parts.setdefault(name, []).append(score_rows(vectors, fold.truth, known, centre))
        decisions.append(decision)
    return Compared({name: joined(each) for name, each in parts.items()}, decisions)


def weighted(scores: Scores, weights: np.ndarray | None = None) -> dict[str, dict[str, float]]:
    """Mean measures of every method, with a weight for each hidden row."""
    return {
        name: {
            measure: float(np.average(each.of(measure), weights=weights)) for measure in MEASURES
        }
        for name, each in scores.items()
    }


def interval(gap: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """A 95 % bootstrap interval of a weighted mean."""
    rng = np.random.default_rng(0)
    weights = np.ones(gap.size) if weights is None else weights
    means = []
    for _ in range(N_BOOTSTRAPS):
        rows = rng.integers(0, gap.size, gap.size)
        means.append(float((weights[rows] * gap[rows]).sum() / weights[rows].sum()))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def above(
    scores: Scores, weights: np.ndarray | None = None, one: str = "auto"
) -> dict[str, dict[str, tuple[float, float]]]:
    """Intervals of how far one method is above each other one, by measure."""
    own = scores[one]
    return {
        name: {
            measure: interval(own.of(measure) - each.of(measure), weights) for measure in MEASURES
        }
        for name, each in scores.items()
        if name != one
    }


def show(title: str, means: Means, gaps: Gaps, one: str = "auto") -> None:
    """Print a table of means, and of how far one method is above the others."""
    print(f"\n### {title}\n")
    print(f"| method | centred cosine / MRR / hits@10 | {one} minus it: cosine | MRR | hits@10 |")
    print("| --- | --- | --- | --- | --- |")
    for method in sorted(means, key=lambda each: -means[each]["mrr"]):
        told = [
            "{:+.3f} to {:+.3f}".format(*gaps[method][each]) if method in gaps else ""
            for each in MEASURES
        ]
        print(f"| {method} | {cells(means[method])} | {' | '.join(told)} |", flush=True)


def cells(means: Mapping[str, float]) -> str:
    """The three measures as tables have them: .543/.236/.766."""
    return "/".join(f"{means[measure]:.3f}".removeprefix("0") for measure in MEASURES)


def add_sizes(parser: argparse.ArgumentParser, *, n_rows: int) -> None:
    """Add what both benchmarks have in common."""
    parser.add_argument(
        "--rows", type=int, default=n_rows, help="at most so many entities (0: all)"
    )
    parser.add_argument("--hide", type=int, default=400, help="hide at least so many")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/quality"))


def keep(folder: Path, name: str, result: dict[str, Any]) -> None:
    """Write what was measured on a set to a file of its own, so that sets can run apart."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1))
