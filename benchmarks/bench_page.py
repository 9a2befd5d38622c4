"""How long a page of 50,000 imputed entities takes to open: ``python benchmarks/bench_page.py``.

The page is opened from disk in headless Chromium with networking off, several times; the time
counts from the call to the first rows of the table on the screen.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import vecfill
from data import synthetic_rows

N_KNOWN = 2000


def write_page(path: Path, n_imputed: int) -> None:
    rows = synthetic_rows(N_KNOWN + n_imputed, 10)
    names = [f"entity {number}" for number in range(len(rows))]
    mixing = np.random.default_rng(0).normal(size=(10, 50))
    known = vecfill.Embedding(names[:N_KNOWN], rows[:N_KNOWN] @ mixing)
    table = dict(zip(names, rows, strict=True))
    vecfill.write_report(vecfill.impute(table, known, method=vecfill.LatentSemantic()), path)


def seconds_to_open(path: Path, repeats: int) -> list[float]:
    found = []
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        for _ in range(repeats):
            page = browser.new_context(offline=True).new_page()
            started = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("#table tbody tr:nth-child(25)")
            found.append(time.perf_counter() - started)
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_page(path, asked.entities)
        seconds = seconds_to_open(path, asked.repeats)
        print(
            f"{asked.entities:,} imputed entities, {path.stat().st_size / 1e6:.1f} MB: opens in "
            f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
        )


if __name__ == "__main__":
    main()
