"""One whole fit in a process of its own, so that its peak memory is its own: time and memory.

``python benchmarks/one_fit.py auto synthetic 50000 300 300 0.5`` fits synthetic rows, 50,000 x 300,
with vectors of 300 numbers, half of them known; ``words`` instead of ``synthetic`` takes real word
vectors, ``variants`` and ``sums`` as many as wanted; ``exact`` and ``approximate`` instead of
``auto`` say how neighbours are searched.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from data import real_rows, sum_rows, synthetic_embedding, synthetic_rows, variant_rows
from vecfill import LatentSemanticImputer

ROWS: dict[str, Callable[[int, int], np.ndarray | None]] = {
    "synthetic": synthetic_rows,
    "words": lambda n_rows, _: real_rows(n_rows),
    "variants": lambda n_rows, _: variant_rows(n_rows),
    "sums": lambda n_rows, _: sum_rows(n_rows),
}


def fit(neighbors: str, rows: np.ndarray, embedding: np.ndarray) -> LatentSemanticImputer:
    return LatentSemanticImputer(neighbors=neighbors).fit(rows, embedding)


def hidden_in_part(rows: np.ndarray, n_dims: int, share: float) -> np.ndarray:
    """Return a synthetic embedding of these rows of which a share is known."""
    embedding, is_known = synthetic_embedding(rows, n_dims, share)
    embedding[~is_known] = np.nan
    return embedding


def measured(
    neighbors: str, kind: str, n_rows: int, n_features: int, n_dims: int, share: float
) -> dict:
    """Fit in a process of its own and return its figures."""
    words = [neighbors, kind, *map(str, (n_rows, n_features, n_dims, share))]
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"one_fit.py {' '.join(words)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_mb(*, forget: bool = False) -> float:
    """Return the most memory this process has had, since it was last told to forget that."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if forget:
        # Making the rows takes more than fitting them.
        Path("/proc/self/clear_refs").write_text("5")
    line = next(s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("neighbors", choices=("auto", "exact", "approximate"))
    parser.add_argument("kind", choices=tuple(ROWS))
    parser.add_argument("n_rows", type=int)
    parser.add_argument("n_features", type=int)
    parser.add_argument("n_dims", type=int)
    parser.add_argument("share", type=float)
    asked = parser.parse_args()

    for n_rows in (7000, 2000):  # compiles, or reads what was compiled before
        warm = synthetic_rows(n_rows, asked.n_features)
        fit(asked.neighbors, warm, hidden_in_part(warm, 16, 0.5))
    del warm
    empty = peak_mb(forget=True)
    rows = ROWS[asked.kind](asked.n_rows, asked.n_features)
    assert rows is not None, "word vectors come from an npm package, and npm is not here"
    assert rows.shape == (asked.n_rows, asked.n_features)
    embedding = hidden_in_part(rows, asked.n_dims, asked.share)
    begun = peak_mb(forget=True)
    cpu, wall = time.process_time(), time.perf_counter()
    found = fit(asked.neighbors, rows, embedding)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(
        json.dumps(
            {
                "n_rows": asked.n_rows,
                "cpu_s": cpu,
                "wall_s": wall,
                "peak_mb": peak_mb(),
                "with_input_mb": peak_mb() - empty,
                "fit_mb": peak_mb() - begun,
                "recall": found.neighbor_recall_,
            }
        )
    )


if __name__ == "__main__":
    main()
