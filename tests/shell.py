"""A small made world for stories in a shell: towns, an embedding that lacks some of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vecfill import Embedding, write_embedding
from vecfill.cli import main

N_TOWNS, N_KNOWN = 60, 45


class World:
    """A folder with `base.vec` and `towns.csv`, and ways to run commands in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        self.folder = folder
        self.capsys = capsys
        rng = np.random.default_rng(0)
        self.places = rng.normal(size=(N_TOWNS, 3))
        self.towns = [f"town{i}" for i in range(N_TOWNS)]
        turned = self.places @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(N_TOWNS, 8))
        words = ["the", "of", *self.towns[:N_KNOWN]]
        vectors = np.vstack([rng.normal(size=(2, 8)), turned[:N_KNOWN]]).astype(np.float32)
        self.base = Embedding(words, vectors)
        write_embedding(self.base, folder / "base.vec")
        self.write_table("towns.csv", self.towns, self.places)

    def write_table(self, name: str, entities: list[str], places: Any) -> Path:
        rows = ["name,x,y,z"]
        rows += [
            ",".join([entity, *(f"{value:.4f}" for value in place)])
            for entity, place in zip(entities, places, strict=False)
        ]
        return self.write(name, "\n".join(rows) + "\n")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    @property
    def pairs(self) -> list[tuple[str, np.ndarray]]:
        """Towns and their places."""
        return list(zip(self.towns, self.places, strict=True))

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command in this process, in the folder; return status, stdout and stderr."""
        assert self.capsys is not None
        self.capsys.readouterr()
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            status = main(list(words))
        finally:
            os.chdir(before)
        return (status, *self.capsys.readouterr())

    def json(self, *words: str) -> Any:
        status, out, err = self.run(*words, "--json")
        assert status == 0, err
        return json.loads(out)

    def refused(self, *words: str, status: int = 2) -> str:
        """Run a command that must be refused; return its message."""
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        found, out, err = self.run(*words)
        assert found == status, err
        assert "Traceback" not in err
        after = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        assert after == before, "a refusal leaves everything as it was"
        assert out == ""
        return err


def started(
    folder: Path, words: list[str], *, pause_in: str | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start a command as a process; it says "ready" and waits for a line where it is told to."""
    # Ctrl-C works as at a terminal, also where the test run itself was started to ignore it.
    script = "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from vecfill.cli import main\n"
    if pause_in is not None:
        module, name = pause_in.rsplit(".", 1)
        script += (
            f"import {module}\n"
            f"module = sys.modules[{module!r}]\n"
            f"inner = module.{name}\n"
            "def outer(*args, **options):\n"
            "    print('ready', file=sys.stderr, flush=True)\n"
            "    sys.stdin.readline()\n"
            "    return inner(*args, **options)\n"
            f"module.{name} = outer\n"
        )
    script += f"sys.exit(main({words!r}))\n"
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, text=True, **{**streams, **options}
    )
