"""SIGINT and SIGTERM at any line: the documented status, nothing partial, nothing left over.

Signals are raised at chosen lines instead of chosen times, so a failure comes back in every run;
`benchmarks/interrupts.py` sends them to real processes at random moments.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from tests.shell import World
from tests.test_faults import write_model
from vecfill.cli import main
from vecfill.io import atomic

SIGNALS = [signal.SIGINT, signal.SIGTERM]
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
IMPUTE = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--report", "new.html")
IMPUTE += ("--method", "paper")
CONVERT = ("convert", "base.vec", "new.bin")
ADD = ("add", "towns.model", "more.csv", "-o", "new.vec", "--append-to", "base.vec")
ADD += ("--save", "new.model")
TOKENS = ("tokens", "model", "terms.txt", "--source", "towns.csv", "-o", "new")
TOKENS += ("--report", "new.html", "--method", "paper")
MATCH = ("match", "base.vec", "towns.csv", "-o", "new.csv")


@pytest.fixture
def world(tmp_path, capsys) -> Iterator[World]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield World(tmp_path, capsys)
    for number, handler in before.items():
        signal.signal(number, handler)


def run_with_signal(world: World, words: tuple[str, ...], number: int, line: int) -> int:
    """Run a command, raise a signal at a line of ours, and return how many lines were run."""
    n_lines = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal n_lines
        if "vecfill" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            n_lines += 1
            if n_lines == line:
                signal.raise_signal(number)
        return trace

    previous, place = sys.gettrace(), Path.cwd()
    os.chdir(world.folder)
    try:
        sys.settrace(trace)
        world.status = main(list(words))
    finally:
        sys.settrace(previous)
        os.chdir(place)
    return n_lines


# A file that was being opened is closed by its finaliser, which tells of it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("words", "results", "n_moments"),
    [
        (CONVERT, {"new.bin"}, 20),
        (MATCH, {"new.csv"}, 10),
        (IMPUTE, {"new.vec", "new.vec.manifest.json", "new.html"}, 6),
        (ADD, {"new.vec", "new.model"}, 4),
        (TOKENS, {"new", "new.html"}, 4),
    ],
    ids=["convert", "match", "impute", "add", "tokens"],
)
def test_a_signal_at_any_line_leaves_all_results_or_none(world, number, words, results, n_moments):
    if words in (ADD, TOKENS):
        write_later(world)
    inputs = world.names()
    base = (world.folder / "base.vec").read_bytes()
    # The first run loads modules, so it has more lines than those that follow.
    for _ in range(2):
        clear(world, results)
        n_lines = run_with_signal(world, words, number, 0)
        assert world.status == 0
        assert world.names() == inputs | results
    # The last lines are those that write; a signal there matters most.
    moments = np.r_[np.linspace(30, n_lines - 400, n_moments), n_lines - np.arange(25, 400, 40)]
    for moment in np.unique(moments.astype(int)):
        clear(world, results)
        run_with_signal(world, words, number, int(moment))
        assert world.status == STATUS[number], moment
        assert world.names() - inputs in (set(), results), moment
        err = world.capsys.readouterr().err
        assert err.endswith("vecfill: Interrupted; no partial file is left.\n"), moment
    assert (world.folder / "base.vec").read_bytes() == base


def clear(world: World, results: set[str]) -> None:
    for name in results:
        path = world.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def write_later(world: World) -> None:
    """Write a model, entities that come later, the folder of a language model and terms."""
    assert world.run(*IMPUTE[:5], "--method", "paper", "--save", "towns.model")[0] == 0
    clear(world, {"new.vec", "new.vec.manifest.json"})
    world.write_table("more.csv", ["new1", "new2"], world.places[:2] + 0.1)
    write_model(world)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_an_interrupt_that_gets_lost_is_still_the_status(world, number, monkeypatch):
    def lost(*_args, **_options):
        # As in a finaliser, where Python prints exceptions and goes on.
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)

    monkeypatch.setattr("vecfill.cli.console.note", lost)
    assert world.run(*CONVERT)[0] == STATUS[number]


def test_a_temporary_file_that_nobody_knows_of_is_removed_at_the_end(world, monkeypatch):
    inner = os.open

    def interrupted(path, *args, **options):
        descriptor = inner(path, *args, **options)
        if "vecfill-" in str(path):
            os.close(descriptor)
            signal.raise_signal(signal.SIGTERM)
        return descriptor

    monkeypatch.setattr(atomic.os, "open", interrupted)
    assert world.run(*CONVERT)[0] == 143
    assert world.names() == {"base.vec", "towns.csv"}


def test_handlers_of_the_caller_come_back(world):
    def own(*_: object) -> None:
        """Do nothing."""

    signal.signal(signal.SIGTERM, own)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert world.run(*CONVERT)[0] == 0
    assert signal.getsignal(signal.SIGTERM) is own
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
