"""Quality on real data, every method beside every rival in one run.

    python benchmarks/quality/run.py [SET ...] [--json FILE]

For each set: held-out scores of auto, its classic candidates, the paper's setting and the tuned
rivals, with bootstrap intervals of the differences; what choosing costs in units of one imputation;
conformal coverage, and what confidence tells about the truth; and whether a shuffled domain is
refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parent))

import candidates
from datasets import SETS, Set

from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.trust.choice import choose
from vecfill.trust.confidence import learn_confidence
from vecfill.trust.evaluation import evaluate_rows
from vecfill.trust.folds import hidden_folds
from vecfill.trust.hidden import hide_and_impute
from vecfill.trust.rivals import RIVALS
from vecfill.trust.signals import signals


def cost_of_choice(data: Set) -> float:
    """CPU time of choosing a predictor over that of one imputation by the paper's."""

    def impute() -> None:
        space = Space(data.domain, min_degrees=(8,))
        PAPER.predict(space, KnownRows(data.embedding, data.is_known))

    impute()
    start = time.process_time()
    impute()
    one = time.process_time() - start
    start = time.process_time()
    choose(Space(data.domain), data.embedding, data.is_known)
    return (time.process_time() - start) / one


def trust(data: Set) -> dict[str, float]:
    """Coverage of the bound, and what confidence tells, on known rows nothing was learnt from."""
    known = np.flatnonzero(data.is_known)
    order = np.random.default_rng(7).permutation(known)
    covered: dict[float, list[np.ndarray]] = {0.8: [], 0.9: []}
    told, true = [], []
    for part in range(5):
        hidden = np.sort(order[part::5])
        is_seen = data.is_known.copy()
        is_seen[hidden] = False
        space = Space(data.domain)
        predictor = choose(space, data.embedding, is_seen).predictor
        given = KnownRows(data.embedding, is_seen)
        folds = hidden_folds(is_seen, n_folds=5, seed=0, enough=2000)
        learnt_on = hide_and_impute(space, data.embedding, given.known, predictor, folds)
        found = predictor.predict(space, given)
        seen = signals(given, found)
        places = np.searchsorted(np.flatnonzero(~is_seen), hidden)
        vectors, truth = found.vectors[places].astype(float), data.embedding[hidden].astype(float)
        centre = data.embedding[is_seen].mean(axis=0)
        for level, parts in covered.items():
            confidence = learn_confidence(learnt_on, seen, level=level)
            assert confidence is not None
            parts.append(
                cosines(vectors - centre, truth - centre) >= confidence.lower_bound[places]
            )
        told.append(confidence.values[places])
        true.append(cosines(vectors - centre, truth - centre))
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


def measure(data: Set) -> dict:
    report = evaluate_rows(Space(data.domain), data.embedding, data.is_known)
    report = candidates.with_classic(data, report)
    shuffled = data.domain[np.random.default_rng(1).permutation(len(data.domain))]
    refused = choose(Space(shuffled), data.embedding, data.is_known)
    means = report.methods
    result = {
        "set": data.name,
        "n_known": report.n_known,
        "n_unknown": report.n_unknown,
        "methods": means,
        "differences": candidates.differences(report),
        "tuned": report.to_dict()["tuned"],
        "chosen": str(report.chosen),
        "cost_of_choice": cost_of_choice(data),
        "shuffled_refused": not refused.has_signal,
        "shuffled_p": refused.p_value,
        **trust(data),
    }
    for key in ("mrr", "hits_at_10"):
        best = max(RIVALS, key=lambda name: means[name][key])
        result[f"best_rival_{key}"] = best
        result[f"over_best_rival_{key}"] = means["auto"][key] / means[best][key]
        result[f"over_paper_{key}"] = means["auto"][key] / means["paper"][key]
        result[f"difference_{key}"] = report.difference("auto", best, key)
    return result


def show(result: dict) -> None:
    print(f"\n## {result['set']}: {result['n_known']} known, {result['n_unknown']} unknown\n")
    candidates.show(result["set"], result["methods"], result["differences"])
    print(f"\nchosen: {result['chosen']}; choosing cost {result['cost_of_choice']:.1f} imputations")
    for key in ("mrr", "hits_at_10"):
        low, high = result[f"difference_{key}"]
        print(
            f"{key}: {result[f'over_best_rival_{key}']:.2f} x best rival "
            f"({result[f'best_rival_{key}']}, difference {low:+.3f} to {high:+.3f}), "
            f"{result[f'over_paper_{key}']:.2f} x paper"
        )
    print(
        f"coverage {result['coverage_80']:.3f} at 0.8, {result['coverage_90']:.3f} at 0.9; "
        f"Spearman {result['spearman']:.2f}; thirds by confidence {result['bottom_third']:.3f} "
        f"and {result['top_third']:.3f}; shuffled domain refused: {result['shuffled_refused']} "
        f"(p = {result['shuffled_p']:.2g})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/quality.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for name in options.sets:
        results.append(measure(SETS[name]()))
        show(results[-1])
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))
    for key in ("mrr", "hits_at_10"):
        over = np.mean([result[f"over_paper_{key}"] for result in results])
        print(f"\nauto over paper, mean of sets, {key}: {over:.2f}")


if __name__ == "__main__":
    main()
