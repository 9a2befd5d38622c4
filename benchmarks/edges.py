"""CPU time and memory of `match` and `impute` on a made graph of a million edges.

    python benchmarks/edges.py

50,000 nodes lie in 500 blocks, and 60 % of the edges stay inside a block. 15,000 nodes have a
vector of 100 dimensions: that of their block, and noise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
N_NODES, N_EDGES, N_BLOCKS, N_KNOWN, N_DIMS = 50_000, 1_000_000, 500, 15_000, 100


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_graph(folder)
        for words in (["match", "-o", "match.csv"], ["impute", "-o", "new.vec"]):
            command = [words[0], "nodes.vec", "edges.csv", "--kind", "edges", *words[1:]]
            seconds, megabytes, status = measured(folder, command)
            print(f"{words[0]:<8} {seconds:6.1f} CPU s {megabytes:6,.0f} MB  status {status}")


def write_graph(folder: Path) -> None:
    rng = np.random.default_rng(0)
    block = rng.integers(0, N_BLOCKS, N_NODES)
    members = np.argsort(block, kind="stable")
    starts = np.searchsorted(block[members], np.arange(N_BLOCKS + 1))
    source = rng.integers(0, N_NODES, N_EDGES)
    low, high = starts[block[source]], starts[block[source] + 1]
    near = members[(low + rng.random(N_EDGES) * (high - low)).astype(np.int64)]
    target = np.where(rng.random(N_EDGES) < 0.6, near, rng.integers(0, N_NODES, N_EDGES))
    with (folder / "edges.csv").open("w") as file:
        file.write("a,b\n")
        file.writelines(f"n{a},n{b}\n" for a, b in zip(source, target, strict=True))
    known = rng.choice(N_NODES, N_KNOWN, replace=False)
    vectors = rng.normal(size=(N_BLOCKS, N_DIMS))[block[known]]
    vectors += 0.7 * rng.normal(size=vectors.shape)
    with (folder / "nodes.vec").open("w") as file:
        file.write(f"{N_KNOWN} {N_DIMS}\n")
        for node, vector in zip(known, vectors, strict=True):
            file.write(f"n{node} {' '.join(f'{value:.4f}' for value in vector)}\n")


def measured(folder: Path, words: list[str]) -> tuple[float, float, int]:
    """Run a command; return its CPU seconds, its peak memory in MB, and its status."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src"))
    process = subprocess.Popen(
        [sys.executable, "-m", "vecfill", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode


if __name__ == "__main__":
    main()
