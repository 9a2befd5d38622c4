"""What users run by default, measured in plain fits of the same data, beside what they would write.

    python benchmarks/default_path.py [--rows 4000 20000] [--dims 300] [--known 0.05] [--data words]
    python benchmarks/default_path.py --growth
    python benchmarks/default_path.py --kernel-ridge --rows 2000 5000 10000

For each size: CPU seconds of one plain fit, of `impute` with `auto` from arrays, from files and
from two sources, of `add`, of `evaluate`, and of scikit-learn's regressors tuned by
cross-validation, with the centred cosine that each reaches on rows whose truth was kept aside.
Everything runs in one process, one after the other, after a small warm-up. ``--growth`` runs `auto`
at several sizes, each in a process of its own, and tells the exponents of time and memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

import vecfill as vf
from data import real_rows, synthetic_embedding, synthetic_rows
from vecfill import LatentSemanticImputer

MOST_FOR_KERNELS = 6000
"""Known rows beyond which scikit-learn's kernel ridge regression is left out: it takes minutes."""

WARM_UP = 1500

N_ADDED = 50
"""Rows that are added to a fitted model."""

MOST_EVALUATED = 5000
"""Rows beyond which `evaluate` is left out: it chooses six times over, and tunes every rival."""

AUTO = "impute, auto"

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"

GROWTH = [5000, 10_000, 20_000, 50_000]


def regressors(n_known: int) -> dict[str, object]:
    """What a user would write with scikit-learn, each tuned on the known rows."""
    found: dict[str, object] = {
        "RidgeCV": RidgeCV(np.logspace(-3, 3, 13)),
        "KNeighborsRegressor, tuned": GridSearchCV(
            KNeighborsRegressor(), {"n_neighbors": [3, 5, 10, 20], "weights": ["distance"]}, cv=5
        ),
    }
    if n_known <= MOST_FOR_KERNELS:
        grid = {"alpha": [0.01, 0.1, 1.0], "gamma": [0.001, 0.003, 0.01, 0.03]}
        found["KernelRidge, tuned"] = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
    return found


def centred_cosine(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    found, truth = found - centre, truth - centre
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(truth, axis=1)
    return float(((found * truth).sum(axis=1) / np.maximum(lengths, 1e-12)).mean())


def timed(function: Callable[[], object]) -> tuple[object, float]:
    start = time.process_time()
    found = function()
    return found, time.process_time() - start


@dataclass
class Made:
    """One made set: all rows, and an embedding of which some rows are shown."""

    rows: np.ndarray
    embedding: np.ndarray
    is_known: np.ndarray

    @property
    def names(self) -> np.ndarray:
        return np.array([f"row{number}" for number in range(len(self.rows))])

    @property
    def asked(self) -> list[str]:
        return list(self.names[~self.is_known])

    def table(self, columns: slice = slice(None)) -> pd.DataFrame:
        """The rows, or some of their columns, keyed by name."""
        found = self.rows[:, columns]
        return pd.DataFrame(found, self.names, [f"c{each}" for each in range(found.shape[1])])

    def known(self) -> vf.Embedding:
        return vf.Embedding(list(self.names[self.is_known]), self.embedding[self.is_known])

    def plain(self) -> np.ndarray:
        """Unknown rows by one plain fit."""
        hidden = np.where(self.is_known[:, None], self.embedding, np.float32(np.nan))
        return LatentSemanticImputer(min_degree=8).fit(self.rows, hidden).embedding_[~self.is_known]

    def auto(self) -> np.ndarray:
        return vf.impute(self.table(), self.known()).embedding[self.asked]

    def from_files(self, folder: Path) -> np.ndarray:
        """The same from a CSV file and a word2vec file, which the caller has written."""
        result = vf.impute(folder / "table.csv", folder / "known.bin")
        return result.embedding[self.asked]

    def fused(self) -> np.ndarray:
        """The same from two sources, each with half of the columns."""
        half = self.rows.shape[1] // 2
        sources = {"left": self.table(slice(half)), "right": self.table(slice(half, None))}
        return vf.impute(sources, self.known()).embedding[self.asked]

    def added(self, model: object) -> np.ndarray:
        """The last unknown rows, added to a model that was fitted without them."""
        later = self.later
        return model.add(self.table().iloc[later], names=list(self.names[later])).embedding[
            list(self.names[later])
        ]

    @property
    def later(self) -> np.ndarray:
        return np.flatnonzero(~self.is_known)[-N_ADDED:]

    def model(self) -> object:
        """A living model of all rows but those that come later."""
        return vf.impute(self.table().drop(self.names[self.later]), self.known()).to_model()


def halves(n_rows: int) -> Made:
    """Frequent words by the first half of their vectors; the second half is known of 30 %."""
    words = real_rows(n_rows)
    if words is None:
        raise SystemExit("The word vectors are in an npm package, and npm is not there.")
    middle = words.shape[1] // 2
    is_known = np.random.default_rng(1).random(n_rows) < 0.3
    return Made(words[:, :middle].copy(), words[:, middle:].copy(), is_known)


def beside_kernel_ridge(sizes: list[int], n_runs: int = 3) -> list[dict]:
    """`auto` beside a plain fit and kernel ridge regression by grid search, on real words.

    CPU seconds are the least of a few runs; the grid search is run once.
    """
    warm_up()
    records = []
    for n_rows in sizes:
        data = halves(n_rows)
        truth, centre = data.embedding[~data.is_known], data.embedding[data.is_known].mean(axis=0)
        scaler = StandardScaler().fit(data.rows)
        known, asked = (
            scaler.transform(data.rows[part]) for part in (data.is_known, ~data.is_known)
        )
        ridge = regressors(len(known))["KernelRidge, tuned"]
        ways = {
            "plain fit": (data.plain, n_runs),
            AUTO: (data.auto, n_runs),
            "KernelRidge, tuned": (
                lambda ridge=ridge, known=known, asked=asked, data=data: ridge.fit(
                    known, data.embedding[data.is_known]
                ).predict(asked),
                1,
            ),
        }
        record: dict = {"rows": n_rows}
        for name, (way, n_times) in ways.items():
            runs = [timed(way) for _ in range(n_times)]
            seconds = min(spent for _, spent in runs)
            cosine = centred_cosine(runs[0][0], truth, centre)
            record[name] = {"cpu_s": seconds, "cosine": cosine}
            ratio = seconds / record["plain fit"]["cpu_s"]
            print(f"  {n_rows:6,} {name:20s} CPU {seconds:7.2f} s {ratio:6.1f}x  {cosine:.3f}")
        records.append(record)
    return records


def made(n_rows: int, n_features: int, n_dims: int, share: float, kind: str = "synthetic") -> Made:
    """A set of made rows, or of word vectors, with an embedding that the rows explain."""
    rows = real_rows(n_rows) if kind == "words" else synthetic_rows(n_rows, n_features)
    if rows is None:
        raise SystemExit("The word vectors are in an npm package, and npm is not there.")
    return Made(rows, *synthetic_embedding(rows, n_dims, share))


def measure(
    n_rows: int,
    n_features: int,
    n_dims: int,
    share: float,
    kind: str = "synthetic",
    *,
    is_whole: bool = True,
) -> dict:
    """CPU seconds and held-out quality of each way, on one made set.

    Without `is_whole`: the plain fit and `auto` only.
    """
    data = made(n_rows, n_features, n_dims, share, kind)
    truth, centre = data.embedding[~data.is_known], data.embedding[data.is_known].mean(axis=0)
    record = {"rows": n_rows, "features": n_features, "dims": n_dims, "known": share, "data": kind}
    record["ways"] = {}

    def tell(name: str, function: Callable[[], np.ndarray | None]) -> None:
        found, seconds = timed(function)
        plain = record["ways"].get("plain fit", {"cpu_s": seconds})["cpu_s"]
        told = {"cpu_s": seconds, "ratio": seconds / plain, "peak_mb": peak_mb()}
        if found is not None:
            told["cosine"] = centred_cosine(found, truth[-len(found) :], centre)
        record["ways"][name] = told
        print(
            f"  {name:28s} CPU {seconds:8.2f} s  {seconds / plain:6.1f}x  "
            f"{told.get('cosine', np.nan):.3f}  {told['peak_mb']:6.0f} MB",
            flush=True,
        )

    print(f"\n{n_rows:,} x {n_features}, {n_dims} dims, {100 * share:.0f} % known, {kind} rows")
    print("  (ratio to the plain fit, centred cosine of unknown rows, peak memory so far)")
    tell("plain fit", data.plain)
    tell("impute, auto", data.auto)
    if not is_whole:
        return record
    with tempfile.TemporaryDirectory() as folder:
        data.table().to_csv(Path(folder) / "table.csv", index_label="name")
        vf.write_embedding(data.known(), Path(folder) / "known.bin")
        tell("impute, auto, from files", lambda: data.from_files(Path(folder)))
    tell("impute, two sources", data.fused)
    model = data.model()
    tell(f"add {N_ADDED}", lambda: data.added(model))
    if n_rows <= MOST_EVALUATED:
        tell("evaluate", lambda: print(vf.evaluate(data.table(), data.known())))
    scaler = StandardScaler().fit(data.rows)
    known, asked = (scaler.transform(data.rows[each]) for each in (data.is_known, ~data.is_known))
    for name, model in regressors(int(data.is_known.sum())).items():
        tell(
            name, lambda model=model: model.fit(known, data.embedding[data.is_known]).predict(asked)
        )
    return record


def peak_mb() -> float:
    """The largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth(sizes: list[int]) -> dict:
    """Time and memory of `auto` against the number of rows, each size in a process of its own."""
    found = []
    for n_rows in sizes:
        command = [sys.executable, __file__, "--rows", str(n_rows), "--dims", "100"]
        command += ["--known", "0.3", "--alone"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(json.loads(told.splitlines()[-1]))
        print(f"\n{n_rows:,} rows", *told.splitlines()[-3:-1], sep="\n", flush=True)
    rows = np.log([each["rows"] for each in found])
    exponents = {
        name: float(np.polyfit(rows, np.log([each["ways"][AUTO][name] for each in found]), 1)[0])
        for name in ("cpu_s", "peak_mb")
    }
    print(
        f"\nauto: CPU time grows as n to the {exponents['cpu_s']:.2f}, "
        f"memory as n to the {exponents['peak_mb']:.2f}"
    )
    if sizes == GROWTH:  # A quick run has too few sizes for the figure of the documentation.
        draw(found, FIGURES / "default_path.png")
    return {"sizes": found, "exponents": exponents}


def draw(found: list[dict], path: Path) -> None:
    """CPU seconds and memory against the number of rows, on logarithmic axes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(7, 3), layout="constrained")
    for axes, (name, label) in zip(
        figure.subplots(1, 2),
        (("cpu_s", "CPU seconds"), ("peak_mb", "peak memory, MB")),
        strict=True,
    ):
        for way in ("plain fit", AUTO):
            values = [each["ways"][way][name] for each in found]
            axes.loglog([each["rows"] for each in found], values, marker="o", label=way)
        sizes = [each["rows"] for each in found]
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="rows", ylabel=label)
        low, high = axes.get_ylim()
        axes.set_ylim(0.7 * low, 1.3 * high)
        axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def warm_up() -> None:
    """Compile everything once, so that no way pays for it."""
    warnings.simplefilter("ignore")
    measure(WARM_UP, 20, 16, 0.5, is_whole=False)


def default_path(sizes: list[tuple]) -> list[dict]:
    """Measure several sizes: rows, features, dims, share of known rows, and kind of rows."""
    warm_up()
    return [measure(*size) for size in sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[4000])
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--dims", type=int, default=300)
    parser.add_argument("--known", type=float, default=0.05)
    parser.add_argument("--data", choices=("synthetic", "words"), default="synthetic")
    parser.add_argument("--alone", action="store_true", help="plain fit and auto; JSON at the end")
    parser.add_argument("--growth", action="store_true", help="exponents of time and memory")
    parser.add_argument("--kernel-ridge", action="store_true", help="beside a grid search")
    asked = parser.parse_args()
    if asked.kernel_ridge:
        beside_kernel_ridge(asked.rows)
        return
    if asked.growth:
        growth(GROWTH)
        return
    sizes = [(n, asked.features, asked.dims, asked.known, asked.data) for n in asked.rows]
    if not asked.alone:
        default_path(sizes)
        return
    warm_up()
    for size in sizes:
        print(json.dumps(measure(*size, is_whole=False)))


if __name__ == "__main__":
    main()
