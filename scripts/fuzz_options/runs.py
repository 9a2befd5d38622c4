"""One command in a process of its own, and all that a user sees of it.

Python starts and vecfill is imported once: each run is a fork of this process, so it takes as long
as the command itself, and leaves nothing behind in memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from scripts.fuzz_options.inputs import write_inputs

from vecfill.cli import main as run_command

PATIENCE = 120.0
"""Seconds until a command counts as hanging; a guess: the slowest takes five."""

CRASHED = 1
HANGING = -signal.SIGALRM


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: int
    out: str
    err: str
    files: dict[str, bytes]
    """Files that it wrote, by name."""
    changed: tuple[str, ...] = ()
    """Inputs that are not what they were."""

    def is_same(self, outcome: Outcome) -> bool:
        """Tell whether nothing a user could see differs, but for what only records the options."""
        return self._visible() == outcome._visible()

    def _visible(self) -> tuple[object, ...]:
        files = {name: b"" if _is_record(name) else data for name, data in self.files.items()}
        return self.status, _timeless(self.out), _timeless(self.err), files


def _is_record(name: str) -> bool:
    """Tell whether a file lists the options of the run, so that it differs with each."""
    return name.endswith((".json", ".html", ".model")) or name.startswith("new-work/")


def _timeless(text: str) -> str:
    return re.sub(r"\d[\d.,]* (s|ms|MB)\b", "TIME", re.sub(r"\x1b\[[0-9;]*m", "", text))


class Runs:
    """Runs commands in a folder of inputs, and leaves the folder as it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_inputs(folder)
        self.inputs = contents(folder)

    def warm_up(self, lines: list[list[str]]) -> None:
        """Run commands in this process, so that forks find loaded what these load."""
        with contextlib.chdir(self.folder):
            for line in lines:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                    run_command(line)
        self._clear(is_damaged=contents(self.folder) != self.inputs)

    def outcome(self, line: list[str]) -> Outcome:
        """Run a command."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            status = self._status(line, out.fileno(), err.fileno())
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        after = contents(self.folder)
        files = {name: data for name, data in after.items() if self.inputs.get(name) != data}
        changed = tuple(name for name in self.inputs if name in files or name not in after)
        self._clear(is_damaged=bool(changed))
        return Outcome(status, texts[0], texts[1], files, changed)

    def _status(self, line: list[str], out: int, err: int) -> int:
        with warnings.catch_warnings():
            # Newer Pythons warn of forks beside threads; those of BLAS and Arrow are made for it.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            self._be(line, out, err)
        end = time.monotonic() + PATIENCE
        while True:
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(code)
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return HANGING
            time.sleep(0.005)

    def _be(self, line: list[str], out: int, err: int) -> None:
        """Become the command: this process ends with its status."""
        status = CRASHED
        try:
            os.dup2(out, 1)
            os.dup2(err, 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            os.chdir(self.folder)
            status = run_command(line)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else CRASHED
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status)

    def _clear(self, *, is_damaged: bool) -> None:
        """Remove what a run wrote; write the inputs again if it changed one."""
        if is_damaged:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            for name, data in self.inputs.items():
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        input_names = {name.partition("/")[0] for name in self.inputs}
        for path in self.folder.iterdir():
            if path.name not in input_names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file in a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
