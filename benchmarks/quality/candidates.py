"""Everything that auto tries, beside its classic candidates and every tuned rival, on one set.

    python benchmarks/quality/candidates.py [SET ...] [--rows N] [--json FILE]

All see the same folds; preparations and parameters are chosen inside the training folds.
Differences are auto minus the other, with a 95 % bootstrap interval over the hidden rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from datasets import SETS, Set

from vecfill._blas import one_blas_thread
from vecfill.model.space import Space
from vecfill.trust.evaluation import Evaluation, evaluate_rows
from vecfill.trust.rivals import RIVALS

MEASURES = ("centred_cosine", "mrr", "hits_at_10")
CLASSIC = "auto, classic"


def with_classic(data: Set, report: Evaluation, **options: object) -> Evaluation:
    """The report with the classic candidates of auto as one more method, on the same folds."""
    space = Space(data.domain)
    classic = evaluate_rows(
        space, data.embedding, data.is_known, candidates="classic", rivals={}, **options
    )
    return replace(report, scores={**report.scores, CLASSIC: classic.scores["auto"]})


def differences(report: Evaluation) -> dict[str, dict[str, tuple[float, float]]]:
    """Intervals of how far auto is above each other method, by measure."""
    others = [name for name in report.scores if name != "auto"]
    return {
        name: {measure: report.difference("auto", name, measure) for measure in MEASURES}
        for name in others
    }


def show(
    name: str,
    means: Mapping[str, Mapping[str, float]],
    above: Mapping[str, Mapping[str, tuple[float, float]]],
) -> None:
    print(f"\n### {name}: auto beside its classic candidates and tuned rivals\n")
    print("| method | centred cosine / MRR / hits@10 | auto minus it: cosine | MRR | hits@10 |")
    print("| --- | --- | --- | --- | --- |")
    for method in sorted(means, key=lambda each: -means[each]["mrr"]):
        cells = " / ".join(f"{means[method][measure]:.3f}" for measure in MEASURES)
        gaps = [
            "{:+.3f} to {:+.3f}".format(*above[method][measure]) if method in above else ""
            for measure in MEASURES
        ]
        print(f"| {method} | {cells} | {' | '.join(gaps)} |", flush=True)


def fewer(data: Set, n_rows: int | None) -> Set:
    """The set, or an even sample of its entities."""
    if n_rows is None or len(data.entities) <= n_rows:
        return data
    kept = np.linspace(0, len(data.entities) - 1, n_rows).astype(int)
    return Set(
        f"{data.name} ({n_rows:,} rows)",
        [data.entities[row] for row in kept],
        data.domain[kept],
        data.embedding[kept],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--rows", type=int, help="at most so many entities of a set")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/candidates.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for name in options.sets:
        data = fewer(SETS[name](), options.rows)
        start = time.process_time()
        with one_blas_thread():
            report = evaluate_rows(Space(data.domain), data.embedding, data.is_known, rivals=RIVALS)
            seconds = time.process_time() - start
            report = with_classic(data, report)
        above = differences(report)
        show(data.name, report.methods, above)
        print(f"\nchosen: {report.chosen}; evaluate took {seconds:.0f} CPU s", flush=True)
        told = {"set": data.name, "methods": report.methods, "differences": above}
        results.append({**told, "tuned": report.to_dict()["tuned"], "cpu_seconds": seconds})
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
