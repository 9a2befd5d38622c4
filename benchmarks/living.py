"""Entities added to a model later, against a full run that had them from the start.

    python benchmarks/living.py movies cities headings     quality: cosine, confidence, coverage
    python benchmarks/living.py --size 200000              cost of load, add, update

Hidden entities are taken out of the domain, added to the fitted model, and compared with the truth;
the full run has them in its domain as unknown ones. The figures go to standard output.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import vecfill as vf

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "quality"))

N_HIDDEN = 400
MOST_KNOWN = 2000
MOST_UNKNOWN = 1000


def quality(name: str) -> None:
    """Print how near hidden entities come when added later, and in a full run."""
    import datasets

    data = datasets.SETS[name]()
    rng = np.random.default_rng(0)
    known = np.flatnonzero(data.is_known)
    known = np.sort(rng.permutation(known)[:MOST_KNOWN])
    unknown = np.flatnonzero(~data.is_known)
    unknown = np.sort(rng.permutation(unknown)[:MOST_UNKNOWN])
    hidden = np.sort(rng.permutation(known)[: min(N_HIDDEN, known.size // 5)])
    seen = np.setdiff1d(known, hidden)
    truth = data.embedding[hidden].astype(np.float64)
    vectors = {data.entities[row]: data.embedding[row] for row in seen}
    options = {"names": "off", "seed": 0}

    def domain(rows: np.ndarray) -> object:
        return vf.as_domain(data.domain[rows], names=[data.entities[row] for row in rows])

    fitted = vf.impute(domain(np.sort(np.concatenate([seen, unknown]))), vectors, **options)
    added = fitted.to_model().add(data.domain[hidden], names=[data.entities[r] for r in hidden])
    full = vf.impute(domain(np.sort(np.concatenate([known, unknown]))), vectors, **options)
    names = [data.entities[row] for row in hidden]
    centre = data.embedding[seen].mean(axis=0, dtype=np.float64)
    later = _cosines(added.embedding[names], truth, centre)
    before = _cosines(full.embedding[names], truth, centre)
    rows = [full.embedding.row(each) for each in names]
    print(f"{name}: {seen.size} known, {unknown.size} unknown, {hidden.size} hidden")
    print(f"  method            {fitted.predictor}")
    print(f"  centred cosine    added {later.mean():.4f}   full run {before.mean():.4f}")
    print(
        f"  confidence        added {added.confidence.values.mean():.4f}   full run "
        f"{full.confidence.values[rows].mean():.4f}"
    )
    covered = (later >= added.confidence.lower_bound).mean()
    covered_before = (before >= full.confidence.lower_bound[rows]).mean()
    print(f"  90 % bound holds  added {covered:.3f}   full run {covered_before:.3f}")


def _cosines(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> np.ndarray:
    one, other = found - centre, truth - centre
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / lengths


def size(n_rows: int) -> None:
    """Print what load, add and update cost."""
    from data import synthetic_embedding, synthetic_rows

    rows = synthetic_rows(n_rows + 10_000, 100)
    embedding, is_known = synthetic_embedding(rows, 100, 0.3)
    names = [f"e{number}" for number in range(len(rows))]
    known = {names[row]: embedding[row] for row in np.flatnonzero(is_known[:n_rows])}
    method = vf.LatentSemantic()
    result = vf.impute(
        vf.as_domain(rows[:n_rows], names=names[:n_rows]), known, method=method, names="off"
    )
    del known
    unknown = np.flatnonzero(~is_known[:n_rows])[:1000]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.vecfill"
        took = _seconds(partial(result.save, path))
        print(f"{n_rows} x 100 rows: {path.stat().st_size / 1e9:.2f} GB saved in {took:.1f} CPU s")
        del result
        anonymous, start, wall = _anonymous(), time.process_time(), time.perf_counter()
        model = vf.load(path)
        used = _anonymous() - anonymous
        took, wall = time.process_time() - start, time.perf_counter() - wall
        print(f"  load              {took:.3f} CPU s, {wall:.3f} s, {used / 1e6:.0f} MB private")
        for n_new in (50, 50, 10_000):
            new = rows[n_rows : n_rows + n_new]
            took = _seconds(lambda new=new: model.add(new, names=names[n_rows : n_rows + len(new)]))
            print(f"  add of {n_new:<6}     {took:.2f} CPU s")
        from vecfill.model.fitted import fit

        vectors, mask = np.array(model._embedding), np.array(model.is_known)
        one = _seconds(lambda: fit(model.predictor, model.space, vectors, mask))
        update = {names[row]: embedding[row] for row in unknown}
        took = _seconds(lambda: model.update(known=update))
        print(f"  update of 1,000   {took:.2f} CPU s; one propagation {one:.2f}")
    print(f"  peak memory       {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


def _seconds(work: object) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _anonymous() -> int:
    """Return the bytes of memory that belong to this process and to no file."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if "RssAnon" in line).split()[1]) * 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--size", type=int, action="append", default=[])
    asked = parser.parse_args()
    for each in asked.sets:
        quality(each)
    for each in asked.size:
        size(each)
