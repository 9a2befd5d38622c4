"""Measure a job on datasets: CPU time of all processes, peak memory of all processes, by stage.

    python benchmarks/beyond_memory.py 200000 --engine processes --workers 2 --memory 4GB

Rows are synthetic (100 features, 100 dims, 30 % known), written to Parquet first. The peak is that
of the sum of the proportional set sizes of this process and its children, sampled each half second,
so that pages they share count once. Memory maps of files that the system can drop count too.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from data import real_rows, synthetic_embedding, synthetic_rows
from vecfill.distributed.job import impute_dataset
from vecfill.model.known import KnownRows
from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space

PREDICTOR = LatentSemantic(ridge=0.1)


class Peak:
    """The largest memory of this process and its children together."""

    def __init__(self) -> None:
        self.total, self.private = 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.5):
            total = private = 0
            for each in [me, *me.children(recursive=True)]:
                try:
                    found = each.memory_full_info()
                except psutil.Error:
                    continue
                total, private = total + found.pss, private + found.uss
            self.total, self.private = max(self.total, total), max(self.private, private)


class Stages:
    """Wall time of each stage, and the CPU time of children that have ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since = "", time.perf_counter()

    def __call__(self, stage: str, n_done: int, n_tasks: int) -> None:
        del n_done, n_tasks
        now = time.perf_counter()
        if stage != self._stage:
            if self._stage:
                self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
            print(f"  {stage} at {now - START:.0f} s", flush=True)
            self._stage, self._since = stage, now


START = time.perf_counter()


def cpu_seconds() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def write_dataset(folder: Path, rows: np.ndarray, vectors: np.ndarray, known: np.ndarray) -> None:
    """Write features and known vectors as Parquet parts of a quarter million rows."""
    for role in ("features", "vectors"):
        (folder / role).mkdir()
    for number, first in enumerate(range(0, len(rows), 250_000)):
        part = slice(first, first + 250_000)
        names = np.char.add("item ", np.arange(first, first + len(rows[part])).astype(str))
        lists = pa.FixedSizeListArray.from_arrays(pa.array(rows[part].ravel()), rows.shape[1])
        table = pa.table({"entity": names, "features": lists})
        pq.write_table(table, folder / "features" / f"{number:04d}.parquet", row_group_size=65536)
        is_known = known[part]
        flat = pa.array(vectors[part][is_known].ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        table = pa.table({"entity": names[is_known], "vector": lists})
        pq.write_table(table, folder / "vectors" / f"{number:04d}.parquet")


def made(n_rows: int, data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if data == "words":
        # Words described by one half of their vector, to be given the other half.
        rows = real_rows(n_rows)
        assert rows is not None, "npm is needed to fetch the word vectors"
        half = rows.shape[1] // 2
        known = np.random.default_rng(1).random(len(rows)) < 0.3
        return np.ascontiguousarray(rows[:, :half]), np.ascontiguousarray(rows[:, half:]), known
    rows = synthetic_rows(n_rows, 100)
    embedding, known = synthetic_embedding(rows, 100, 0.3)
    return rows, embedding.astype(np.float32), known


def in_memory(rows: np.ndarray, vectors: np.ndarray, known: np.ndarray) -> dict:
    """Time the same predictor in memory, on one thread."""
    vectors = np.where(known[:, None], vectors, np.nan).astype(np.float32)
    start = time.process_time()
    space = Space(rows, min_degrees=(PREDICTOR.min_degree,), n_jobs=1)
    found = PREDICTOR.predict(space, KnownRows(vectors, known)).vectors
    recall = space.graph("as_given", PREDICTOR.min_degree).recall
    return {"cpu_s": time.process_time() - start, "recall": recall, "vectors": found}


def centred_cosine(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    found, truth = found - centre, truth - centre
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(truth, axis=1)
    return float((np.einsum("ij,ij->i", found, truth) / lengths).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--engine", default="processes")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--recall", type=float, default=None)
    parser.add_argument("--data", choices=("synthetic", "words"), default="synthetic")
    parser.add_argument("--in-memory", action="store_true", help="time that path as well")
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    rows, vectors, known = made(options.rows, options.data)
    write_dataset(folder, rows, vectors, known)
    about: dict = {**vars(options), "rows": len(rows), "in_memory": {}}
    if options.in_memory:
        about["in_memory"] = in_memory(rows, vectors, known)
    kept = about["in_memory"].pop("vectors", None)
    truth, centre = vectors[~known][:200_000], vectors[known].mean(axis=0)
    del rows, vectors
    stages, before = Stages(), cpu_seconds()
    with Peak() as peak:
        result = impute_dataset(
            folder / "features", folder / "vectors", folder / "out", work=folder / "work",
            engine=options.engine, workers=options.workers, memory=options.memory,
            recall=options.recall, method=PREDICTOR, progress=stages,
        )  # fmt: skip
    about["cpu_s"] = cpu_seconds() - before
    about["peak_gb"] = {"shared_once": peak.total / 1e9, "private": peak.private / 1e9}
    about["recall_found"], about["coverage"] = result.recall, result.coverage
    table = pq.read_table(folder / "out", columns=["vector"]).slice(0, len(truth))
    column = table["vector"].combine_chunks()
    found = column.flatten().to_numpy().reshape(len(truth), -1)
    about["centred_cosine"] = centred_cosine(found, truth, centre)
    if kept is not None:
        about["in_memory"]["centred_cosine"] = centred_cosine(kept[: len(truth)], truth, centre)
        about["largest_difference"] = float(np.abs(found - kept[: len(truth)]).max())
    about["stages_wall_s"] = stages.seconds
    about["work_gb"] = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e9
    print(json.dumps(about, indent=1))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
