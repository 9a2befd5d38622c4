"""Options drawn at random, as `make fuzz FUZZ=options` does; and what that found."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.shell import World


@pytest.fixture
def world(tmp_path, capsys) -> World:
    return World(tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_no_combination_of_options_fails_or_is_ignored_in_silence(tmp_path):
    from scripts.fuzz_options.fuzzer import Fuzzer

    fuzzer = Fuzzer(tmp_path, seed=1, only=["impute", "match", "add", "explain"])
    assert fuzzer.run(60, minutes=30) == 0
    assert sum(fuzzer.n_accepted.values()) >= 30


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (lambda _: 1, "status 1"),
        (lambda _: 2, "without a reason"),
        (lambda _: Path("left").touch() or print("no", file=sys.stderr) or 2, "it left"),
        (lambda _: Path("towns.csv").write_text("x") and 0, "inputs changed"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: os.kill(os.getpid(), signal.SIGKILL), "status -9"),
        (lambda _: time.sleep(60), "status -14"),
        (lambda _: 0, "made no difference"),
    ],
    ids=["bug", "silent", "left", "changed", "crash", "signal", "hang", "ignored"],
)
def test_the_fuzzer_sees_what_is_wrong(command, failure, tmp_path, monkeypatch, capsys):
    from scripts.fuzz_options import fuzzer as fuzzing
    from scripts.fuzz_options import runs

    def write_inputs(folder):
        (folder / "towns.csv").write_text("name,x\noslo,1\n")

    monkeypatch.setattr(runs, "write_inputs", write_inputs)
    monkeypatch.setattr(runs, "run_command", command)
    monkeypatch.setattr(runs.Runs, "warm_up", lambda *_: None)  # it would end this process
    monkeypatch.setattr(runs, "PATIENCE", 5.0 if failure != "status -14" else 0.2)
    fuzzer = fuzzing.Fuzzer(tmp_path, seed=0, only=["match"])
    assert fuzzer.run(8, minutes=1) == 1
    assert failure in capsys.readouterr().out
    assert (tmp_path / "towns.csv").read_text().startswith("name")


def test_texts_beside_one_method_are_refused_for_a_reason(world):
    lines = (world.folder / "towns.csv").read_text().splitlines()
    texts = ["about", *["an old port"] * (len(lines) - 1)]
    world.write("towns.csv", "".join(f"{a},{b}\n" for a, b in zip(lines, texts, strict=True)))
    words = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--method", "paper")
    err = world.refused(*words, "--text", "about")
    assert "is for one table, and the sources here are: table, about" in " ".join(err.split())


def test_counts_that_no_explanation_uses_are_refused(world):
    world.write_table("counts.csv", world.towns, [[row + 1.0] for row in range(len(world.towns))])
    words = ("explain", "base.vec", "towns.csv", "town50", "--method", "paper")
    assert "--counts has no effect" in world.refused(*words, "--counts", "counts.csv")


def test_counts_that_are_too_few_to_tell_anything_are_said_to_make_no_difference(world):
    counts = "".join(f"{town},{row + 1}\n" for row, town in enumerate(world.towns))
    world.write("counts.csv", "entity,count\n" + counts)
    words = ("evaluate", "base.vec", "towns.csv", "--ignore", "z")
    status, out, _ = world.run(*words, "--counts", "counts.csv")
    assert status == 0
    assert "The counts make no difference: 36 known entities are left" in " ".join(out.split())
    assert "no difference" not in world.run(*words)[1]
