"""Options drawn at random, as `make fuzz FUZZ=options` does; and what that found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.shell import World


@pytest.fixture
def world(tmp_path, capsys) -> World:
    return World(tmp_path, capsys)


@pytest.mark.slow
def test_no_combination_of_options_fails_or_is_ignored_in_silence(tmp_path, monkeypatch):
    path = Path(__file__).parents[1] / "scripts" / "fuzz_options.py"
    spec = importlib.util.spec_from_file_location("fuzz_options", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_options", script)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(script)
    fuzzer = script.Fuzzer(tmp_path, seed=1, only=["impute", "match", "add", "explain"])
    assert fuzzer.run(60, minutes=30) == 0
    assert sum(fuzzer.n_accepted.values()) >= 30


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
