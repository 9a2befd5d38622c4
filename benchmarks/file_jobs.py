"""Whole commands on files, each in a process of its own: CPU time and peak memory.

    python benchmarks/file_jobs.py table match start          # or: impute cold

`--repeat` takes each several times. `--rows` and `--words` make the files smaller. Run it with
another version of the package on PYTHONPATH to compare: files are made once, in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from data import synthetic_embedding, synthetic_rows

N_FEATURES, N_DIMS, SHARE_KNOWN = 100, 300, 0.3
JOBS = ("table", "match", "start", "cold", "impute")

READ_TABLE = "import sys, vecfill.inputs.domain as d; print(d.as_domain(sys.argv[1]).vectors.dtype)"
STARTUP = "import vecfill.sample as s; print(s.VECTORS, s.CITIES, sep='|')"


def folder() -> Path:
    """Return where the files are made, and kept for the next run."""
    place = Path(tempfile.gettempdir()) / "vecfill-benchmarks"
    place.mkdir(exist_ok=True)
    return place


def made_table(n_rows: int) -> tuple[Path, Path]:
    """Return a CSV file of features and a word2vec file that has vectors of some of its rows."""
    table, vectors = folder() / f"table-{n_rows}.csv", folder() / f"vectors-{n_rows}.bin"
    if not (table.exists() and vectors.exists()):
        rows = synthetic_rows(n_rows, N_FEATURES)
        embedding, is_known = synthetic_embedding(rows, N_DIMS, SHARE_KNOWN)
        with table.open("w") as file:
            file.write(",".join(["name", *(f"f{i}" for i in range(N_FEATURES))]) + "\n")
            for row, values in enumerate(rows):
                file.write(f"entity{row}," + ",".join(map("{:.6g}".format, values.tolist())) + "\n")
        with vectors.open("wb") as file:
            file.write(b"%d %d\n" % (is_known.sum(), N_DIMS))
            for row in np.flatnonzero(is_known):
                file.write(b"entity%d " % row + embedding[row].astype("<f4").tobytes() + b"\n")
    return table, vectors


def made_names(n_words: int, n_entities: int) -> tuple[Path, Path]:
    """Return a vocabulary as a word2vec file and a table of names, half of which are in it."""
    table, vectors = folder() / f"names-{n_entities}.csv", folder() / f"words-{n_words}.bin"
    if not (table.exists() and vectors.exists()):
        rng = np.random.default_rng(0)
        starts = [f"{a}{b}{c}" for a in "bcdfglmnprst" for b in "aeiou" for c in "klmnrst"]
        ends = [f"{a}{b}" for a in ("an", "or", "ix", "ely", "um") for b in ("", "s", "ia", "berg")]
        parts = rng.integers(0, (len(starts), len(starts), len(ends)), (n_words, 3)).tolist()
        words = [f"{starts[i]}{starts[j]}{ends[k]}{n % 97}" for n, (i, j, k) in enumerate(parts)]
        for place in range(0, n_words, 5):
            words[place] = words[place].title().replace("a", "_", 1)
        for place in range(0, n_words, 50):
            words[place] += "_Inc."
        for place in range(0, n_words, 30):
            words[place] = words[place].replace("e", "é")
        vector = np.zeros(10, "<f4")
        with vectors.open("wb") as file:
            file.write(b"%d 10\n" % n_words)
            for row, word in enumerate(words):
                vector[row % 10] = row
                file.write(word.encode() + b" " + vector.tobytes() + b"\n")
        chosen = rng.choice(n_words, n_entities, replace=False)
        names = [words[place] if row % 2 else f"Acme{row} Ltd" for row, place in enumerate(chosen)]
        names = list(dict.fromkeys(name.replace("_", " ") for name in names))
        with table.open("w") as file:
            file.write("name,size\n")
            file.writelines(f"{name},{row % 1000}\n" for row, name in enumerate(names))
    return table, vectors


def measured(command: list[str], **environment: str) -> dict[str, float]:
    """Run a command; return its CPU seconds and its peak of memory in MB."""
    code = (
        "import json, resource, subprocess, sys; "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))"
    )
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=env, capture_output=True, text=True, check=True
    )
    status, cpu, kilobytes = json.loads(done.stdout)
    if status:
        raise SystemExit(f"{command} ended with {status}: {done.stderr}")
    return {"cpu_s": cpu, "peak_mb": kilobytes / 1024}


def sample() -> list[str]:
    """Return the bundled vectors and table."""
    done = subprocess.run(
        [sys.executable, "-c", STARTUP], capture_output=True, text=True, check=True
    )
    return done.stdout.strip().split("|")


def job(name: str, options: argparse.Namespace) -> dict[str, float]:
    """Run one of the jobs."""
    shell = [sys.executable, "-m", "vecfill"]
    with tempfile.TemporaryDirectory(dir=folder()) as out:
        if name == "table":
            return measured([sys.executable, "-c", READ_TABLE, str(made_table(options.rows)[0])])
        if name == "match":
            table, vectors = made_names(options.words, options.words // 5)
            return measured([*shell, "match", str(vectors), str(table)])
        if name == "start":
            return measured([*shell, "match", *sample()])
        if name == "cold":
            command = [*shell, "impute", *sample(), "-o", f"{out}/out.bin"]
            return measured(command, NUMBA_CACHE_DIR=f"{out}/compiled")
        table, vectors = made_table(options.rows)
        return measured([*shell, "impute", str(vectors), str(table), "-o", f"{out}/out.bin"])


def file_jobs(names: list[str], options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Run jobs one after the other, and print each."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in names:
        for _ in range(options.repeat):
            found.setdefault(name, []).append(job(name, options))
        cpu = statistics.median(each["cpu_s"] for each in found[name])
        peak = max(each["peak_mb"] for each in found[name])
        print(f"  {name:8s} CPU {cpu:8.2f} s   peak {peak:7.0f} MB", flush=True)
    return found


def sizes(*, is_full: bool) -> tuple[list[str], argparse.Namespace]:
    """Return what `make bench` runs: all jobs at full size, or the quick ones at a tenth."""
    names = list(JOBS) if is_full else ["table", "match", "start"]
    n_rows, n_words = (200_000, 1_000_000) if is_full else (20_000, 100_000)
    return names, argparse.Namespace(rows=n_rows, words=n_words, repeat=1)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+", choices=JOBS)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    asked = parsed()
    file_jobs(asked.jobs, asked)
