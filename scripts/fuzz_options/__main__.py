"""Fuzz combinations of options: `make fuzz FUZZ=options`, or as below from the root.

python -m scripts.fuzz_options --runs 5000
python -m scripts.fuzz_options --runs 200 --only match add --seed 7
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

# Threads do not survive a fork, and one run does not need them.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

MEMORY = Path("/dev/shm")


def main() -> int:
    """Run commands with options drawn at random; return 1 if one failed."""
    parser = argparse.ArgumentParser(description="Fuzz combinations of options.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after so many")
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="not every command")
    options = parser.parse_args()
    place = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="vecfill-fuzz-", dir=place) as folder,
        tempfile.TemporaryDirectory() as cache,
    ):
        os.environ["XDG_CACHE_HOME"] = cache
        from scripts.fuzz_options.fuzzer import Fuzzer  # noqa: PLC0415 - one thread was asked for

        return Fuzzer(Path(folder), options.seed, options.only).run(options.runs, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
