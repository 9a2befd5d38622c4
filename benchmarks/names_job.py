"""A few hundred terms against a large file of word vectors: the commonest job there is.

    python benchmarks/names_job.py [--terms 500]

Terms are words of the GloVe text file (341,479 words, 100 dimensions) and compounds of them, which
the file lacks; a table gives each two numbers. `vecfill impute` runs in a process of its
own: the first time, when the file has never been read; again with another table; with names off;
and beside them reading and hashing the file, the floor in which times are given as well. CPU
seconds and peak memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "quality"))

import numpy as np
from whole_file import glove_file  # pyright: ignore[reportMissingImports]

from file_jobs import measured

HASH = "import hashlib, sys; print(hashlib.file_digest(open(sys.argv[1], 'rb'), 'md5').hexdigest())"


def terms(n_terms: int, seed: int, folder: Path) -> Path:
    """Return a table of words of the file, and of as many compounds that it lacks."""
    rng = np.random.default_rng(seed)
    with glove_file().open(encoding="utf-8") as file:
        words = [word for word in (line.split(" ", 1)[0] for line in file) if word.isalpha()]
    chosen = [words[place] for place in rng.choice(60_000, n_terms, replace=False)]
    half = n_terms // 2
    names = [
        *chosen[:half],
        *(f"{word}{words[100 + row]}" for row, word in enumerate(chosen[half:])),
    ]
    table = folder / f"terms-{seed}.csv"
    with table.open("w", encoding="utf-8") as file:
        file.write("name,size,kind\n")
        file.writelines(f"{name},{rng.normal():.3f},{len(name)}\n" for name in names)
    return table


def names_job(n_terms: int = 500) -> list[dict]:
    """Return CPU seconds and memory of the job, of the next one on the same file, and the floor."""
    shell = [sys.executable, "-m", "vecfill", "impute"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = (terms(n_terms, seed, folder) for seed in (0, 1))
        cache = {"XDG_CACHE_HOME": str(folder / "cache")}
        words = str(glove_file())
        jobs = {
            "names, the first time": (first, []),
            "names, another table": (second, []),
            "names, that table again": (second, []),
            "names off": (first, ["--names", "off"]),
        }
        results = []
        for number, (label, (table, options)) in enumerate(jobs.items()):
            command = [*shell, words, str(table), "-o", str(folder / f"{number}.txt"), *options]
            results.append({"job": label} | measured(command, **cache))
        floor = measured([sys.executable, "-c", HASH, words])
        results.append({"job": "md5 of the file"} | floor)
        for result in results:
            result["floors"] = round(result["cpu_s"] / floor["cpu_s"], 1)
            print(json.dumps(result), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--terms", type=int, default=500)
    names_job(parser.parse_args().terms)


if __name__ == "__main__":
    main()
