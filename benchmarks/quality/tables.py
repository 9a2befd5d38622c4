"""The tables of docs/quality.md, from what run.py and sources.py have measured.

python benchmarks/quality/tables.py [FOLDER]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from comparing import MEASURES, cells

RIVALS = ("kernel_ridge", "extra_trees", "ridge", "knn", "sparsemax", "omp")
ONE_TABLE = ("auto", "auto, classic", "paper", *RIVALS)
LABELS = {
    "auto": "**auto**",
    "auto, classic": "classic",
    "kernel_ridge": "kernel ridge",
    "knn": "k-NN",
    "omp": "OMP",
    "extra_trees": "trees",
    "centred_cosine": "centred cosine",
    "mrr": "MRR",
    "hits_at_10": "hits@10",
}


def label(name: str) -> str:
    return LABELS.get(name, name)


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def interval(gap: Sequence[float]) -> str:
    """An interval without leading zeros: -.004 to +.012."""
    return " to ".join(f"{end:+.3f}".replace("0.", ".") for end in gap)


def best_of(means: Mapping[str, Any], methods: Sequence[str], measure: str) -> str:
    return max((each for each in methods if each in means), key=lambda each: means[each][measure])


def against_best(of_goal: Mapping[str, Any], measure: str) -> str:
    """The best tuned rival by a measure, and how far auto is above it."""
    means, gaps = of_goal["methods"], of_goal["differences"]
    best = best_of(means, RIVALS, measure)
    return f"{label(best)}: {interval(gaps[best][measure])}"


def one_table(results: Sequence[Mapping[str, Any]]) -> None:
    table(
        ["set", "known", "unknown", "hidden", *map(label, ONE_TABLE)],
        (
            [found["set"], *(f"{found[f'n_{what}']:,}" for what in ("known", "unknown", "hidden"))]
            + [cells(balanced[each]) if each in balanced else "" for each in ONE_TABLE]
            for found in results
            for balanced in [found["goals"]["balanced"]["methods"]]
        ),
    )
    goals = ("balanced", "cosine", "rank")
    table(
        ["set", *(f'`goal="{goal}"`' for goal in goals)],
        (
            [found["set"], *(cells(found["goals"][goal]["methods"]["auto"]) for goal in goals)]
            for found in results
        ),
    )
    table(
        ["set", "MRR", "hits@10", "cosine, goal cosine", "MRR, goal rank", "hits@10, goal rank"],
        (
            [
                found["set"],
                against_best(goals["balanced"], "mrr"),
                against_best(goals["balanced"], "hits_at_10"),
                against_best(goals["cosine"], "centred_cosine"),
                against_best(goals["rank"], "mrr"),
                against_best(goals["rank"], "hits_at_10"),
            ]
            for found in results
            for goals in [found["goals"]]
        ),
    )
    table(
        [
            "set",
            "chosen",
            "choosing costs",
            "coverage at 80 %, 90 %",
            "Spearman",
            "thirds",
            "shuffled",
        ],
        (
            [
                found["set"],
                found["chosen"],
                f"{found['cost_of_choice']:.0f}",
                f"{100 * found['coverage_80']:.1f} %, {100 * found['coverage_90']:.1f} %",
                f"{found['spearman']:.2f}",
                f"{found['bottom_third']:.3f}, {found['top_third']:.3f}",
                f"{'refused' if found['shuffled_refused'] else 'NOT REFUSED'} "
                f"(p = {found['shuffled_p']:.2g})",
            ]
            for found in results
        ),
    )


def alone_and_regressed(means: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The methods of one source each, and those that encode a text and regress."""
    return (
        [each for each in means if each.endswith(" alone")],
        [each for each in means if each.endswith(" + ridge")],
    )


def sources(results: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Tables of all hidden rows (`methods`), or of those like the unknown (`like_unknown`)."""
    gaps_of = "differences" if kind == "methods" else f"{kind}_differences"

    def row(found: Mapping[str, Any]) -> list[str]:
        means = found[kind]
        alone, regressed = alone_and_regressed(means)
        single, encoded = (best_of(means, each, "mrr") for each in (alone, regressed))
        told = [
            f"{cells(means[each])} ({each.split(' alone')[0].split(' + ')[0]})"
            for each in (single, encoded)
        ]
        return [
            found["set"],
            f"{found['n_hidden']}",
            cells(means[found["first_source"]]),
            *told,
            f"**{cells(means['auto'])}**",
        ]

    table(
        ["set", "hidden", "one table", "best single source", "encode and regress", "all sources"],
        map(row, results),
    )

    def gains(found: Mapping[str, Any]) -> list[str]:
        told = []
        for group in alone_and_regressed(found[kind]):
            best = {measure: best_of(found[kind], group, measure) for measure in MEASURES}
            told.append(", ".join(interval(found[gaps_of][best[each]][each]) for each in MEASURES))
        return [found["set"], *told]

    table(["set", "over the best single source", "over encode and regress"], map(gains, results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = Path("benchmarks/results/quality")
    parser.add_argument("folder", nargs="?", type=Path, default=folder)
    folder = parser.parse_args().folder
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    print("One table: centred cosine / MRR / hits@10, then auto minus the best tuned rival.")
    one_table([each for name, each in found.items() if name.startswith("table-")])
    several = [each for name, each in found.items() if name.startswith("sources-")]
    print("\nSeveral sources: hidden at random, then weighted like the unknown entities.")
    sources(several, "methods")
    sources(several, "like_unknown")


if __name__ == "__main__":
    main()
