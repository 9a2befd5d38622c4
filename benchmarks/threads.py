"""`vf.impute` with `auto` on one thread and on two, in turns: by the clock, in CPU time, same bits.

python benchmarks/threads.py [--rows 20000] [--dims 100] [--known 0.3] [--data words]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import vecfill as vf
from default_path import Made, made, warm_up

N_THREADS = (1, 2)


def run(data: Made, n_jobs: int) -> tuple[np.ndarray, float, float]:
    """Return the new vectors, the seconds by the clock and those of CPU."""
    table, known = data.table(), data.known()
    clock, cpu = time.perf_counter(), time.process_time()
    vectors = vf.impute(table, known, n_jobs=n_jobs).embedding[data.asked]
    return vectors, time.perf_counter() - clock, time.process_time() - cpu


def compared(data: Made, n_turns: int) -> float:
    """Print each run; return how many times faster two threads are, in the middle."""
    gains, first = [], None
    for _ in range(n_turns):
        clocks = []
        for n_jobs in N_THREADS:
            vectors, clock, cpu = run(data, n_jobs)
            first = vectors if first is None else first
            assert vectors.tobytes() == first.tobytes(), "threads changed the bits"
            print(f"  threads {n_jobs}: clock {clock:6.2f} s  CPU {cpu:6.2f} s", flush=True)
            clocks.append(clock)
        gains.append(clocks[0] / clocks[1])
    return statistics.median(gains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dims", type=int, default=100)
    parser.add_argument("--known", type=float, default=0.3)
    parser.add_argument("--data", choices=("synthetic", "words"), default="synthetic")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    warm_up()
    data = made(options.rows, 100, options.dims, options.known, options.data)
    print(f"{options.rows:,} x 100, {options.dims} dims, {options.known:.0%} known, {options.data}")
    print(f"  two threads are {compared(data, options.turns):.2f} times faster")


if __name__ == "__main__":
    main()
