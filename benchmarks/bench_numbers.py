"""Decimal text -> float32: our parser beside NumPy's, Arrow's and pandas', in time and exactness.

    python benchmarks/bench_numbers.py --rows 20000

Each reader gets the same rows: GloVe's five decimals, shortest float32 texts, and hard ones, whose
decimals lie near the middle between two float32, where rounding twice goes wrong. A number is
wrong if it is not the float32 nearest to its decimal text (`fractions`, exact).
"""

from __future__ import annotations

import argparse
import atexit
import io
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

N_DIMS = 100
N_PROVED = 20_000


def texts(kind: str, n_rows: int) -> list[str]:
    rng = np.random.default_rng(0)
    values = rng.normal(scale=0.4, size=(n_rows, N_DIMS))
    if kind == "five decimals":
        return [" ".join(f"{each:.5f}" for each in row) for row in values.tolist()]
    single = values.astype(np.float32)
    if kind == "shortest":
        return [" ".join(str(each) for each in row) for row in single]
    above = np.nextafter(single, np.float32(np.inf))
    middle = (single.astype(np.float64) + above.astype(np.float64)) / 2
    # A little off the middle, in a digit that float64 cannot hold.
    ends = rng.choice(["01", "0001"], size=middle.shape)
    return [
        " ".join(f"{each:.60f}".rstrip("0") + end for each, end in zip(row, more, strict=True))
        for row, more in zip(middle.tolist(), ends.tolist(), strict=True)
    ]


def ours(data: bytes, whole: bool = True) -> np.ndarray:
    from vecfill.io.codecs import codec_named
    from vecfill.io.sources import Source

    path = Path(tempfile.gettempdir()) / f"bench-numbers-{os.getpid()}-{len(data)}.txt"
    if not path.exists():
        path.write_bytes(b"w " + data.replace(b"\n", b"\nw ").removesuffix(b"w "))
        atexit.register(path.unlink)
    with Source(path) as source:
        batches = codec_named("glove").reader(source).batches(whole=whole)
        rows = slice(None) if whole else slice(2)
        return np.concatenate([batch.take(np.arange(len(batch))[rows]) for batch in batches])


def ours_checked(data: bytes) -> np.ndarray:
    """Check every number, but parse only two rows of each piece, as a scan for words does."""
    return ours(data, whole=False)


def numpy_fromstring(data: bytes) -> np.ndarray:
    return np.fromstring(data.decode(), dtype=np.float32, sep=" ").reshape(-1, N_DIMS)


def numpy_loadtxt(data: bytes) -> np.ndarray:
    return np.loadtxt(io.BytesIO(data), dtype=np.float32, delimiter=" ", comments=None)


def arrow_csv(data: bytes) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.csv

    names = [str(dim) for dim in range(N_DIMS)]
    table = pyarrow.csv.read_csv(
        io.BytesIO(data),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32())),
    )
    return np.column_stack([column.to_numpy() for column in table.columns])


def pandas_csv(data: bytes) -> np.ndarray:
    import pandas as pd

    return pd.read_csv(io.BytesIO(data), sep=" ", header=None, dtype=np.float32).to_numpy()


READERS: tuple[Callable[[bytes], np.ndarray], ...] = (
    ours_checked, ours, numpy_fromstring, numpy_loadtxt, arrow_csv, pandas_csv,
)  # fmt: skip


def n_wrong(found: np.ndarray, lines: list[str]) -> int:
    """Count the first numbers that are not the nearest float32, by exact arithmetic."""
    words = " ".join(lines[: N_PROVED // N_DIMS]).split()
    wrong = 0
    for text, value in zip(words, found.reshape(-1), strict=False):
        exact = Fraction(text)
        around = (np.nextafter(value, np.float32(-np.inf)), np.nextafter(value, np.float32(np.inf)))
        miss = abs(Fraction(float(value)) - exact)
        wrong += any(abs(Fraction(float(each)) - exact) < miss for each in around)
    return wrong


def measured(
    reader: Callable[[bytes], np.ndarray], data: bytes, lines: list[str]
) -> dict[str, Any]:
    times = []
    for _ in range(3):
        start = time.process_time()
        found = reader(data)
        times.append(time.process_time() - start)
    is_whole = len(found) == len(lines)
    return {"cpu_seconds": min(times), "wrong": n_wrong(found, lines) if is_whole else None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    report: dict[str, object] = {"rows": options.rows, "n_dims": N_DIMS, "n_proved": N_PROVED}
    report["python"] = platform.python_version()
    for kind in ("five decimals", "shortest", "near the middle"):
        lines = texts(kind, options.rows if kind == "five decimals" else options.rows // 10)
        data = "\n".join(lines).encode() + b"\n"
        for reader in READERS:
            found = measured(reader, data, lines)
            speed = len(data) / 1e6 / found["cpu_seconds"]
            report[f"{kind}: {reader.__name__}"] = {**found, "mb_per_cpu_second": speed}
            print(f"{kind:16} {reader.__name__:18} {speed:7.0f} MB/s {found['wrong']!s:>7} wrong")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "numbers.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
