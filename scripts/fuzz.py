"""Fuzz the readers of every format: `make fuzz MINUTES=5`, or run this file.

    python scripts/fuzz.py --minutes 5
    python scripts/fuzz.py --minutes 5 --only glove npz --compiled
    python scripts/fuzz.py --minutes 90 --inputs 1000000 --compiled

Inputs are made by atheris (`pip install 'vecfill[fuzz]'`), which keeps those that reach new lines.
Each format runs in a process of its own for its share of the time, or of the inputs. An input that
fails, takes more than 10 s or more than 1 GB ends that process; its file is put into
`build/fuzz/failed`. Fix the reader, then move the file to `tests/io/corpus/FORMAT`, where
`make test` tries it.

By default Numba's functions run as plain Python: then atheris sees their lines, and an index out of
range is an error instead of a wrong read. `--compiled` runs them as users do.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "fuzz"
SECONDS_PER_INPUT = 10
MEGABYTES = 1024
MAX_BYTES = 2048
COMPILED = ("batches", "fasttext", "numbers", "text_rows", "word2vec_binary")


def main() -> int:
    """Fuzz each format for its share of the time; return 1 if an input failed."""
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    options = _options()
    if options.one:
        _fuzz_one(options.one, options.seconds, options.inputs, options.compiled)
        return 0
    from tests.io.fuzzing import TARGETS  # noqa: PLC0415

    targets = options.only or TARGETS
    seconds = max(5, round(60 * options.minutes * options.processes / len(targets)))
    inputs = -(-options.inputs // len(targets))
    print(f"{'format':<16} {'inputs':>10} {'per s':>8} {'MB':>6}  outcome", flush=True)
    with ThreadPoolExecutor(options.processes) as pool:
        jobs = [pool.submit(_run, name, seconds, inputs, options.compiled) for name in targets]
        found = [job.result() for job in jobs]
    print(f"{'all':<16} {sum(n_inputs for n_inputs, _ in found):>10,}")
    return int(not all(is_good for _, is_good in found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz the readers of every format.")
    parser.add_argument("--minutes", type=float, default=5.0, help="for all formats together")
    parser.add_argument("--inputs", type=int, default=0, help="end after so many, if not earlier")
    parser.add_argument("--processes", type=int, default=1, help="how many formats at a time")
    parser.add_argument("--only", nargs="+", metavar="FORMAT", help="not every format")
    parser.add_argument("--compiled", action="store_true", help="with Numba's compiled functions")
    parser.add_argument("--one", metavar="FORMAT", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(name: str, seconds: int, inputs: int, is_compiled: bool) -> tuple[int, bool]:
    """Fuzz one format in a process of its own; return the number of inputs and whether all held."""
    words = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    words += ["--inputs", str(inputs)]
    environment = dict(
        os.environ, NUMBA_DISABLE_JIT=str(int(not is_compiled)), MALLOC_ARENA_MAX="2"
    )
    start = time.monotonic()
    done = subprocess.run(
        words + ["--compiled"] * is_compiled,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    told = done.stderr
    n_inputs = _last(r"stat::number_of_executed_units:\s*(\d+)", told) or _last(r"#(\d+)\t", told)
    megabytes = _last(r"stat::peak_rss_mb:\s*(\d+)", told) or _last(r"rss: (\d+)Mb", told)
    is_good = done.returncode == 0
    rate = n_inputs / (time.monotonic() - start)
    outcome = "no failure" if is_good else f"FAILED, status {done.returncode}"
    print(f"{name:<16} {n_inputs:>10,} {rate:>8,.0f} {megabytes:>6,}  {outcome}", flush=True)
    if not is_good:
        print(done.stdout[-6000:], told[-2000:], flush=True)
    return n_inputs, is_good


def _last(pattern: str, text: str) -> int:
    return int((re.findall(pattern, text) or ["0"])[-1])


def _fuzz_one(name: str, seconds: int, inputs: int, is_compiled: bool) -> None:
    """Fuzz one format in this process, which ends with it."""
    import atheris  # noqa: PLC0415

    # Numba cannot compile what atheris has instrumented.
    skipped = [f"vecfill.io.{name}" for name in COMPILED]
    with atheris.instrument_imports(
        include=["vecfill.io", "vecfill.embedding"], exclude=skipped if is_compiled else []
    ):
        from vecfill import io  # noqa: F401, PLC0415
        from vecfill.io import appending, codecs, reading, verifying  # noqa: F401, PLC0415

        for each in codecs.CODECS:
            assert each.codec
    from tests.io import fuzzing  # noqa: PLC0415

    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="vecfill-fuzz-"))
    failed = WORK / "failed" / name
    failed.mkdir(parents=True, exist_ok=True)
    corpus = WORK / "corpus" / name
    _write_seeds(corpus, fuzzing.seed_files() | fuzzing.corpus_files(name))
    path = folder / "file.data"

    def one_input(data: bytes) -> None:
        if len(data) < 2:
            return
        content = data if name == fuzzing.MODEL else fuzzing.packed(data[1:], data[0] % 8)
        try:
            fuzzing.check_answers(path, content, name)
        except BaseException:
            shutil.copyfile(path, failed / f"file-{os.getpid()}")
            raise

    # Compiled functions are loaded or compiled at their first call, which is not the input's fault.
    for content in fuzzing.seed_files().values():
        fuzzing.check_answers(path, content, name)
    flags = [
        f"-max_total_time={seconds}", f"-timeout={SECONDS_PER_INPUT}", f"-max_len={MAX_BYTES}",
        f"-rss_limit_mb={MEGABYTES}", "-print_final_stats=1", f"-artifact_prefix={failed}/input-",
        f"-seed={1 + is_compiled}", f"-runs={inputs or -1}",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_seeds(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"seed-{name}").write_bytes(b"\0" + content)
        (folder / f"gzip-{name}").write_bytes(b"\1" + content)


if __name__ == "__main__":
    sys.exit(main())
