"""Files beside gensim and cp: word lookup, enriching, GloVe parsing.

    python benchmarks/bench_io.py --rows 3000000

Each measurement is a process of its own, so that peaks of private memory (anonymous pages: what
the program holds, not what the system caches) do not mix. The file is made in a temporary folder.
Both sides find the file in the page cache: it is read once before each measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

N_DIMS = 300
N_WORDS = 2000
ENRICH = "vecfill-enrich"


def private_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


class Peak:
    """The peak of private memory while a block runs, looked at every 5 ms."""

    def __enter__(self) -> Peak:
        self.bytes = private_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        self._start = time.perf_counter()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.bytes = max(self.bytes, private_bytes())

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.bytes = max(self.bytes, private_bytes())
        self._stop.set()
        self._thread.join()


def make_binary(path: Path, n_rows: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    pool = rng.normal(size=(5000, N_DIMS)).astype("<f4")
    with path.open("wb") as file:
        file.write(b"%d %d\n" % (n_rows, N_DIMS))
        for first in range(0, n_rows, 5000):
            rows = range(first, min(first + 5000, n_rows))
            file.write(b"".join(b"word_%d " % i + pool[i - first].tobytes() for i in rows))


def make_glove(path: Path, n_rows: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    pool = [" ".join(f"{x:.5g}" for x in row) for row in rng.normal(scale=0.4, size=(500, N_DIMS))]
    with path.open("w") as file:
        file.writelines(f"word_{i} {pool[i % 500]}\n" for i in range(n_rows))


def wanted(n_rows: int) -> list[str]:
    import numpy as np

    rows = np.random.default_rng(1).choice(n_rows, size=min(N_WORDS, n_rows), replace=False)
    return [f"word_{i}" for i in rows]


def added():
    import numpy as np

    from vecfill import Embedding

    vectors = np.random.default_rng(2).normal(size=(N_WORDS, N_DIMS)).astype(np.float32)
    return Embedding([f"new_{i}" for i in range(N_WORDS)], vectors)


def measure(task: str, path: Path, n_rows: int) -> dict[str, float]:
    out = path.with_name("out" + path.suffix)
    out.unlink(missing_ok=True)
    if task.startswith("vecfill"):
        import vecfill.io  # noqa: F401  (imports are not part of the time, on either side)
    elif task.startswith("gensim"):
        from gensim.models import KeyedVectors
    with Peak() as peak:
        if task == "vecfill-lookup":
            from vecfill import read_embedding

            assert len(read_embedding(path, wanted(n_rows))) == min(N_WORDS, n_rows)
        elif task == "gensim-lookup":
            vectors = KeyedVectors.load_word2vec_format(str(path), binary=True)
            assert vectors[wanted(n_rows)].shape[1] == N_DIMS
        elif task == "vecfill-enrich":
            from vecfill.io import append_rows

            append_rows(path, out, added())
        elif task == "cp":
            subprocess.run(["cp", path, out], check=True)
        elif task == "cp-sync":
            subprocess.run(["cp", path, out], check=True)
            subprocess.run(["sync", out], check=True)
        elif task == "vecfill-verify":
            from vecfill.io import verify

            assert verify(path, path).ok
        elif task == "vecfill-glove":
            from vecfill import read_embedding

            assert len(read_embedding(path, format="glove")) == n_rows
        elif task == "gensim-glove":
            vectors = KeyedVectors.load_word2vec_format(str(path), binary=False, no_header=True)
            assert len(vectors) == n_rows
    out.unlink(missing_ok=True)
    return {"seconds": peak.seconds, "private_mb": peak.bytes / 1e6}


def in_own_process(task: str, path: Path, n_rows: int, repeats: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(repeats):
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
        os.sync()
        command = [sys.executable, __file__, "--task", task, "--path", path, "--rows", str(n_rows)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        if not best or found["seconds"] < best["seconds"]:
            best = found
    print(f"{task:16} {best['seconds']:8.2f} s {best['private_mb']:10.0f} MB", flush=True)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--glove-rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--task")
    parser.add_argument("--path", type=Path)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(measure(options.task, options.path, options.rows)))
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-io-", dir=options.folder))
    needed = options.rows * (4 * N_DIMS + 16) * 2.2 + options.glove_rows * N_DIMS * 10
    if shutil.disk_usage(folder).free < needed:
        sys.exit(f"{needed / 1e9:.0f} GB are needed in {folder}; pass --folder or fewer --rows.")
    try:
        report = compare(folder, options.rows, options.glove_rows, options.repeats)
    finally:
        shutil.rmtree(folder)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / f"io-{options.rows}.json").write_text(json.dumps(report, indent=2) + "\n")


def compare(folder: Path, n_rows: int, n_glove: int, repeats: int) -> dict[str, object]:
    binary, glove = folder / "made.bin", folder / "made.txt"
    make_binary(binary, n_rows)
    make_glove(glove, n_glove)
    small = folder / "small.bin"
    make_binary(small, 1000)
    for task, path, size in (
        ("vecfill-lookup", small, 1000),
        ("vecfill-glove", glove, n_glove),
    ):
        measure(task, path, size)  # compiles once; the cache on disk serves the processes below
    times = {
        task: in_own_process(task, binary, n_rows, 1 if task == "gensim-lookup" else repeats)
        for task in ("vecfill-lookup", "gensim-lookup", "vecfill-verify")
    }
    # In turns, because what else the disk does changes from minute to minute.
    turns = [
        {task: in_own_process(task, binary, n_rows, 1) for task in ("cp", "cp-sync", ENRICH)}
        for _ in range(repeats)
    ]
    for task in ("cp", "cp-sync", ENRICH):
        times[task] = min((turn[task] for turn in turns), key=lambda each: each["seconds"])
    for task in ("vecfill-glove", "gensim-glove"):
        times[task] = in_own_process(task, glove, n_glove, 1 if "gensim" in task else repeats)
    ratios = {
        "lookup_times_faster": _ratio(times, "gensim-lookup", "vecfill-lookup", "seconds"),
        "lookup_memory_share": _ratio(times, "vecfill-lookup", "gensim-lookup", "private_mb"),
        "enrich_over_cp": _ratio(times, "vecfill-enrich", "cp", "seconds"),
        "enrich_over_cp_sync": _ratio(times, "vecfill-enrich", "cp-sync", "seconds"),
        "glove_times_faster": _ratio(times, "gensim-glove", "vecfill-glove", "seconds"),
    }
    for name, ratio in ratios.items():
        print(f"{name:24} {ratio:.2f}")
    return {
        "rows": n_rows, "glove_rows": n_glove, "n_dims": N_DIMS, "n_words": N_WORDS,
        "cores": os.cpu_count(), "python": platform.python_version(), "times": times,
        "ratios": ratios, "glove_mb_per_s": glove.stat().st_size / 1e6
        / times["vecfill-glove"]["seconds"],
    }  # fmt: skip


def _ratio(times: dict[str, dict[str, float]], one: str, other: str, field: str) -> float:
    return times[one][field] / times[other][field]


if __name__ == "__main__":
    main()
