"""Send SIGINT and SIGTERM to real runs of `vecfill impute` at random moments; see what they leave.

    python benchmarks/interrupts.py --tries 50

Each run writes vectors, a manifest, a page and a model. With `--forked`, runs are forked from a
process that has loaded everything: they are quick, and every moment falls into the command itself.

Moments are spread over the time that a run takes, from the first line of our own code on, with
more of them near the end, where files are written. A try is good if the status is 130 or 143 and
the folder holds either none of the results or all of them, and no temporary file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

_loaded: list[object] = []
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
RESULTS = {"new.vec", "new.vec.manifest.json", "new.html", "new.model"}
WORDS = ["impute", "base.vec", "towns.csv", "-o", "new.vec", "--report", "new.html"]
WORDS += ["--save", "new.model", "--method", "paper"]
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv.pop(1))
from vecfill.cli import main
print("ready", flush=True)
sys.exit(main())
"""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tries", type=int, default=50, help="for each signal")
    options.add_argument("--signal", choices=[each.name for each in STATUS], help="only this one")
    options.add_argument("--forked", action="store_true", help="load everything once")
    asked = options.parse_args()
    run = _fork if asked.forked else _run
    numbers = [each for each in STATUS if asked.signal in (None, each.name)]
    from tests.shell import World

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        World(folder)
        inputs = {path.name for path in folder.iterdir()}
        longest = min(run(folder, None, 0.0)[1] for _ in range(3))
        n_bad = 0
        for number in numbers:
            outcomes: Counter[str] = Counter()
            rng = random.Random(int(number))
            for _ in range(asked.tries):
                _clear(folder)
                wait = longest * (1 - rng.random() ** 2)
                status, _ = run(folder, number, wait)
                left = {path.name for path in folder.iterdir()} - inputs
                outcomes[_outcome(number, status, left)] += 1
            n_bad += sum(n for outcome, n in outcomes.items() if outcome.startswith("BAD"))
            print(number.name, dict(outcomes), flush=True)
    return int(n_bad > 0)


def _run(folder: Path, number: signal.Signals | None, wait: float) -> tuple[int, float]:
    """Run the job, send a signal after some time, and return its status and how long it took."""
    _clear(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(ROOT / "src"), *WORDS],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    start = time.monotonic()
    if number is not None:
        time.sleep(wait)
        process.send_signal(number)
    process.communicate()
    return process.returncode, time.monotonic() - start


def _fork(folder: Path, number: signal.Signals | None, wait: float) -> tuple[int, float]:
    """Do what `_run` does in a child of this process, which has done the job once itself."""
    from vecfill.cli import main as command

    _clear(folder)
    if _fork not in _loaded:
        os.chdir(folder)
        command(WORDS)
        _loaded.append(_fork)
        # Before the command has its own handler, a signal ends the child and not a copy of us.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _clear(folder)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os._exit(command(WORDS))
    if number is not None:
        time.sleep(wait)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - start


def _clear(folder: Path) -> None:
    for name in RESULTS:
        (folder / name).unlink(missing_ok=True)


def _outcome(number: signal.Signals, status: int, left: set[str]) -> str:
    if left not in (set(), RESULTS):
        return f"BAD: left {sorted(left)}, status {status}"
    if status == 0 and left == RESULTS:
        return "done before the signal came"
    # A process that has already given up its handlers dies of the signal itself.
    if status not in (STATUS[number], -number):
        return f"BAD: status {status}"
    return "all results, whole" if left else "no result"


if __name__ == "__main__":
    sys.exit(main())
