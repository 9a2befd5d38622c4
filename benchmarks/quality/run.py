"""One table: auto beside its classic candidates, the paper and every tuned rival, on real sets.

    python benchmarks/quality/run.py [SET ...] [--rows N] [--hide N] [--out FOLDER]
                                     [--against FOLDER] [--alone]

For each set: scores of hidden rows under each goal, with bootstrap intervals of the differences;
what choosing costs in units of one imputation; conformal coverage, and what confidence tells about
the truth; and whether a shuffled domain is refused. ``--alone`` leaves out the rivals, and
``--against`` compares `auto` row by row with an earlier run in another folder.

At most 2,000 entities of a set are sampled. Known entities are dealt into five folds, and folds are
hidden one after the other until at least 400 entities have been hidden. `--rows` and `--hide`
change these numbers (`--rows 0` takes all). Every set has its own file in the folder `--out`;
``tables.py`` prints the tables of the documentation from them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parent))

from comparing import (
    MEASURES,
    above,
    add_sizes,
    compared,
    fewer,
    folds_of,
    interval,
    keep,
    show,
    weighted,
)
from sets import SETS, Set

from vecfill.machine.blas import one_blas_thread
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, Predictor
from vecfill.model.space import Space
from vecfill.trust.choose.choice import choose
from vecfill.trust.choose.folds import Fold, hidden_folds
from vecfill.trust.choose.scores import GOALS
from vecfill.trust.compare.rivals import RIVALS
from vecfill.trust.prove.hidden import hide_and_impute
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.signals import signals

CLASSIC = "auto, classic"

Rows = Mapping[str, np.ndarray]
"""Scores of hidden rows by goal and measure, as in "rank mrr"."""


def chosen(data: Set) -> dict[str, Any]:
    """What is chosen with all known rows in view, and its CPU time over one imputation's."""

    def impute() -> None:
        space = Space(data.domain, min_degrees=(8,))
        PAPER.predict(space, KnownRows(data.embedding, data.is_known))

    impute()  # compiles
    start = time.process_time()
    impute()
    one = time.process_time() - start
    start = time.process_time()
    choice = choose(Space(data.domain), data.embedding, data.is_known)
    cost = (time.process_time() - start) / one
    return {"chosen": str(choice.predictor), "cost_of_choice": cost}


def shuffled(data: Set) -> dict[str, Any]:
    """Whether a domain that tells nothing is refused."""
    domain = data.domain[np.random.default_rng(1).permutation(len(data.domain))]
    choice = choose(Space(domain), data.embedding, data.is_known)
    return {"shuffled_refused": not choice.has_signal, "shuffled_p": choice.p_value}


def trust(
    space: Space, data: Set, folds: list[Fold], predictors: list[Predictor]
) -> dict[str, float]:
    """Coverage of the bound, and what confidence tells, on known rows nothing was learnt from."""
    covered: dict[float, list[np.ndarray]] = {0.8: [], 0.9: []}
    told, true = [], []
    for fold, predictor in zip(folds, predictors, strict=True):
        given = KnownRows(data.embedding, fold.is_seen)
        inner = hidden_folds(fold.is_seen, n_folds=5, seed=0, enough=2000)
        learnt_on = hide_and_impute(space, data.embedding, given.known, predictor, inner)
        found = predictor.predict(space, given)
        seen = signals(given, found)
        vectors = found.vectors[fold.places].astype(float)
        centre = data.embedding[fold.is_seen].mean(axis=0)
        near = cosines(vectors - centre, data.embedding[fold.hidden].astype(float) - centre)
        for level, parts in covered.items():
            confidence = learn_confidence(learnt_on, seen, level=level)
            assert confidence is not None
            parts.append(near >= confidence.lower_bound[fold.places])
        told.append(confidence.values[fold.places])
        true.append(near)
    told, true = np.concatenate(told), np.concatenate(true)
    by_confidence = np.array_split(true[np.argsort(told, kind="stable")], 3)
    return {
        "coverage_80": float(np.concatenate(covered[0.8]).mean()),
        "coverage_90": float(np.concatenate(covered[0.9]).mean()),
        "spearman": float(spearmanr(told, true).statistic),
        "bottom_third": float(by_confidence[0].mean()),
        "top_third": float(by_confidence[2].mean()),
    }


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return (left * right).sum(axis=1) / np.maximum(lengths, 1e-12)


def measure(data: Set, n_hidden: int, *, alone: bool) -> tuple[dict[str, Any], Rows]:
    """What is to be said of a set, and the scores of its hidden rows by goal and measure."""
    start = time.process_time()
    space, folds = Space(data.domain), folds_of(data, n_hidden)
    goals, rows, predictors = {}, {}, []
    # Vectors of this set are no factors of a recommender.
    for goal in (name for name in GOALS if name != "recommend"):
        found = compared(space, data, folds, goal, rivals={} if alone else RIVALS)
        scores = dict(found.scores)
        if goal == "balanced":
            classic = compared(space, data, folds, goal, candidates="classic", rivals={})
            scores[CLASSIC] = classic.scores["auto"]
            predictors = [decision.predictor for decision in found.decisions]
        rows |= {f"{goal} {each}": scores["auto"].of(each) for each in MEASURES}
        goals[goal] = {
            "methods": weighted(scores),
            "differences": above(scores),
            "chosen": [str(decision.predictor) for decision in found.decisions],
        }
    return {
        "set": data.name,
        "n_known": int(data.is_known.sum()),
        "n_unknown": int((~data.is_known).sum()),
        "n_hidden": sum(fold.hidden.size for fold in folds),
        "goals": goals,
        **chosen(data),
        **shuffled(data),
        **trust(space, data, folds, predictors),
        "cpu_seconds": time.process_time() - start,
    }, rows


def report(result: dict[str, Any]) -> None:
    about = f"{result['set']}: {result['n_known']} known, {result['n_unknown']} unknown"
    for goal, found in result["goals"].items():
        title = f'{about}, {result["n_hidden"]} hidden, goal="{goal}"'
        show(title, found["methods"], found["differences"])
        print("\nin each fold:", *found["chosen"], sep="\n- ")
    print(f"\nchosen: {result['chosen']}; choosing cost {result['cost_of_choice']:.1f} imputations")
    print(
        f"coverage {result['coverage_80']:.3f} at 0.8, {result['coverage_90']:.3f} at 0.9; "
        f"Spearman {result['spearman']:.2f}; thirds by confidence {result['bottom_third']:.3f} "
        f"and {result['top_third']:.3f}; shuffled domain refused: {result['shuffled_refused']} "
        f"(p = {result['shuffled_p']:.2g}); {result['cpu_seconds']:.0f} CPU s",
        flush=True,
    )


def report_gains(name: str, rows: Rows, earlier: Rows) -> None:
    """Print what `auto` gained on each row since an earlier run, with intervals."""
    print("\n| set | goal | measure | earlier | now | change | now minus earlier |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for key, values in rows.items():
        goal, measure = key.split()
        before, now = float(earlier[key].mean()), float(values.mean())
        low, high = interval(values - earlier[key])
        gain = f"{before:.3f} | {now:.3f} | {now / before - 1:+.1%} | {low:+.3f} to {high:+.3f}"
        print(f"| {name} | {goal} | {measure} | {gain} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    add_sizes(parser, n_rows=2000)
    parser.add_argument("--alone", action="store_true", help="leave out the rivals")
    parser.add_argument("--against", type=Path, help="compare with the run in this folder")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        data = fewer(SETS[name](), options.rows or None)
        with one_blas_thread():
            result, rows = measure(data, options.hide, alone=options.alone)
        report(result)
        keep(options.out, f"table-{name}", result)
        np.savez(options.out / f"rows-{name}.npz", **rows)
        if options.against:
            report_gains(data.name, rows, np.load(options.against / f"rows-{name}.npz"))


if __name__ == "__main__":
    main()
