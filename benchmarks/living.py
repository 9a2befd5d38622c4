"""A model that goes on: what it costs, and what entities are given that come after the fit.

    python benchmarks/living.py movies cities headings     quality: cosine, confidence, coverage
    python benchmarks/living.py movies --fixed             the same predictor in both runs
    python benchmarks/living.py --size 200000              cost of load, add, update

For the quality, known entities are hidden and taken out of the domain. They are added to the
fitted model later and compared with the truth. The full run has them in its domain as unknown ones
from the start. Known vectors are passed in random order, so that the order says nothing about how
rare an entity is: the hidden entities are like the known ones. The two runs may choose different
predictors. "Same choice" is a full run with the choice of the first fit: added later minus same
choice is what serving loses, same choice minus full run is what the other choice is worth. With
``--fixed`` nothing is chosen, and only the serving differs.

For the cost, the model is made in one process and used in another.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import vecfill as vf

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "quality"))

N_HIDDEN = 400
MOST_KNOWN = 2000
MOST_UNKNOWN = 500
N_LATER = 10_000
N_UPDATED = 1000

FIXED = {"method": vf.LatentSemantic(min_degree=20, ridge=0.3, residual_share=0.6), "names": "off"}


def quality(
    name: str, seed: int, n_most: int, **options: object
) -> dict[str, tuple[float, float, float]]:
    """Return cosine, confidence and coverage of hidden entities, added later and in a full run."""
    import sets

    data, rng = sets.SETS[name](), np.random.default_rng(seed)
    known = np.sort(rng.permutation(np.flatnonzero(data.is_known))[:n_most])
    unknown = np.sort(rng.permutation(np.flatnonzero(~data.is_known))[:MOST_UNKNOWN])
    hidden = np.sort(rng.permutation(known)[: min(N_HIDDEN, known.size // 5)])
    seen = np.setdiff1d(known, hidden)
    vectors = {data.entities[row]: data.embedding[row] for row in rng.permutation(seen)}
    names = [data.entities[row] for row in hidden]

    def described(rows: np.ndarray) -> object:
        rows = np.sort(rows)
        if data.table is not None:
            return data.table.iloc[rows].rename_axis("entity").reset_index()
        return dict(zip([data.entities[row] for row in rows], data.domain[rows], strict=True))

    fitted = vf.impute(described(np.concatenate([seen, unknown])), vectors, **options)
    found = {"added later": fitted.to_model().add(described(hidden))}
    everyone = described(np.concatenate([known, unknown]))
    if "method" not in options:
        found["same choice"] = vf.impute(everyone, vectors, method=fitted.decision, **options)
    found["full run"] = vf.impute(everyone, vectors, **options)
    centre = data.embedding[seen].mean(axis=0, dtype=np.float64)
    print(f"{name}, seed {seed}: {seen.size} known, {unknown.size} unknown, {hidden.size} hidden")
    told = {}
    for label, each in found.items():
        cosines = _cosines(each.embedding[names], data.embedding[hidden], centre)
        sure = each.confidence.rows(np.array([each.embedding.row(name) for name in names]))
        covered = float((cosines >= sure.lower_bound).mean())
        told[label] = float(cosines.mean()), float(sure.values.mean()), covered
        print(
            f"  {label:12} centred cosine {told[label][0]:.4f}   confidence {told[label][1]:.4f}"
            f"   90 % bound holds for {100 * covered:.1f} %",
            flush=True,
        )
    return told


def _cosines(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> np.ndarray:
    one, other = found - centre, truth - centre
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / lengths


def summary(name: str, seeds: list[int], n_most: int, **options: object) -> None:
    """Print the means over several seeds."""
    told = [quality(name, seed, n_most, **options) for seed in seeds]
    means = {label: np.mean([each[label] for each in told], axis=0) for label in told[0]}
    later = means["added later"][0]
    print(f"{name}, mean over seeds {', '.join(map(str, seeds))}")
    for label, (cosine, confidence, covered) in means.items():
        gap = "" if label == "added later" else f"; added later {100 * (later / cosine - 1):+.1f} %"
        print(
            f"  {label:12} centred cosine {cosine:.4f}   confidence - truth "
            f"{confidence - cosine:+.3f}   90 % bound holds for {100 * covered:.1f} %{gap}",
            flush=True,
        )


def made_rows(n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return rows, vectors, which of them are known, and names; the last rows come later."""
    from data import synthetic_embedding, synthetic_rows

    rows = synthetic_rows(n_rows + N_LATER, 100)
    embedding, is_known = synthetic_embedding(rows, 100, 0.3)
    return rows, embedding, is_known, [f"e{number}" for number in range(len(rows))]


def make(n_rows: int, path: Path) -> None:
    """Fit a model and save it."""
    rows, embedding, is_known, names = made_rows(n_rows)
    known = {names[row]: embedding[row] for row in np.flatnonzero(is_known[:n_rows])}
    domain = vf.as_domain(rows[:n_rows], names=names[:n_rows])
    result = vf.impute(domain, known, method=vf.LatentSemantic(min_degree=8), names="off")
    start = time.process_time()
    result.save(path, overwrite=True)
    print(f"saved in {time.process_time() - start:.1f} CPU s", flush=True)


def use(n_rows: int, path: Path) -> dict[str, float]:
    """Return what load, add and update cost, in CPU seconds and MB."""
    rows, embedding, is_known, names = made_rows(n_rows)
    new, later = rows[n_rows:], names[n_rows:]
    vf.impute({"a": [0.0], "b": [1.0], "c": [2.0]}, {"a": [0.0], "b": [1.0]}, method="paper")
    private, start = _private(), time.process_time()
    model = vf.load(path)
    told = {"load_s": time.process_time() - start, "load_mb": (_private() - private) / 1e6}
    for label, n_new in (("first_50", 50), ("add_50", 50), ("add_10000", N_LATER)):
        start = time.process_time()
        model.add(new[:n_new], names=later[:n_new])
        told[f"{label}_s"] = time.process_time() - start
    told["serving_mb"] = (_private() - private) / 1e6
    unknown = np.flatnonzero(~is_known[:n_rows])
    halves = unknown[:N_UPDATED], unknown[N_UPDATED : 2 * N_UPDATED]
    updates = [{names[row]: embedding[row] for row in each} for each in halves]
    model.update(known=updates[0])  # so that what is read from the file is there for both
    start = time.process_time()
    model.update(known=updates[1])
    told["update_1000_s"] = time.process_time() - start
    told["propagation_s"] = _propagation(model)
    told["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return told


def _propagation(model: vf.LivingModel) -> float:
    """Return the CPU seconds of one propagation over the graph of a model."""
    from vecfill.model.known import KnownRows

    given = KnownRows(np.array(model._embedding), np.array(model.is_known))
    start = time.process_time()
    model.predictor.predict(model.space, given)
    return time.process_time() - start


def _private() -> int:
    """Return the bytes of memory that belong to this process and to no file."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if "RssAnon" in line).split()[1]) * 1024


def sizes(n_rows: list[int], folder: Path | None = None) -> list[dict]:
    """Print and return the cost of models of several sizes, each in processes of its own."""
    records = []
    for n in n_rows:
        with tempfile.TemporaryDirectory() as temporary:
            path = (folder or Path(temporary)) / f"model-{n}.vecfill"
            if not path.exists():
                _alone("--make", n, path)
            told = json.loads(_alone("--use", n, path).splitlines()[-1])
            told |= {"n_rows": n, "file_gb": path.stat().st_size / 1e9}
        print(
            f"\na model of {n:,} x 100 rows, {told['file_gb']:.2f} GB\n"
            f"  load             {told['load_s']:.3f} CPU s, {told['load_mb']:.0f} MB private\n"
            f"  add of 50        {told['first_50_s']:.2f} CPU s the first time, "
            f"{told['add_50_s']:.2f} again\n"
            f"  add of 10,000    {told['add_10000_s']:.2f} CPU s; by then "
            f"{told['serving_mb']:.0f} MB private\n"
            f"  update of 1,000  {told['update_1000_s']:.2f} CPU s; one propagation "
            f"{told['propagation_s']:.2f}",
            flush=True,
        )
        records.append(told)
    return records


def _alone(*words: object) -> str:
    command = [sys.executable, __file__, *map(str, words)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--known", type=int, default=MOST_KNOWN, help="known and hidden, at most")
    parser.add_argument("--fixed", action="store_true", help="choose nothing: one predictor")
    parser.add_argument("--size", type=int, action="append", default=[])
    parser.add_argument("--folder", type=Path, help="where models are kept and found again")
    parser.add_argument("--make", nargs=2, metavar=("N", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--use", nargs=2, metavar=("N", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:
        make(int(asked.make[0]), Path(asked.make[1]))
    if asked.use:
        print(json.dumps(use(int(asked.use[0]), Path(asked.use[1]))))
    for each in asked.sets:
        summary(each, asked.seeds, asked.known, **(FIXED if asked.fixed else {}))
    sizes(asked.size, asked.folder)


if __name__ == "__main__":
    main()
