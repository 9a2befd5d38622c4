"""Each experiment runs in quick mode and leaves what a reader is promised."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {"self-embedding": ("gensim",), "language-model": ("gensim", "torch")}
NAMES = (
    "classification",
    "frequency",
    "sensitivity",
    "convergence",
    "scaling",
    "self-embedding",
    "language-model",
)
FOLDERS = sorted(path.parent for path in (ROOT / "experiments").glob("*/config.toml"))


@pytest.fixture(scope="module")
def run_quickly(finance, tmp_path_factory):
    """Return a function that runs an experiment once and gives its folder."""
    out = tmp_path_factory.mktemp("results")

    def run(name: str) -> Path:
        for needed in ("matplotlib", *NEEDS.get(name, ())):
            if importlib.util.find_spec(needed) is None:
                pytest.skip(f"{needed} is not installed: pip install 'vecfill[experiments]'")
        if not (out / name).is_dir():
            command = [sys.executable, ROOT / "experiments" / "run.py", name, "--quick"]
            command += ["--data", finance.parent, "--out", out]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        return out / name

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_leaves_metrics_a_table_and_figures(name, run_quickly):
    folder = run_quickly(name)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["experiment"] == name
    assert metrics["quick"] is True
    assert metrics["config"]["seed"] == metrics["seed"]
    assert metrics["version"]
    assert metrics["machine"]["cores"] >= 1
    assert str(folder) not in json.dumps(metrics)
    assert (folder / "table.md").read_text().startswith("### ")
    pictures = {path.suffix for path in folder.iterdir() if path.stem == name}
    assert pictures == {".png", ".svg"}


@pytest.mark.slow
def test_table_1_is_reached_from_five_neighbors_on(run_quickly):
    folder = run_quickly("classification")
    written = json.loads((folder / "metrics.json").read_text())
    rows = next(iter(written["metrics"].values()))
    found = {row["what"]: row for row in rows if row["embedding"] == "GloVe" and row["companies"]}
    published = written["config"]["published"]["GloVe"]
    for k, before, after in zip(
        written["config"]["ks"], published["before"], published["after"], strict=True
    ):
        assert round(found["before"][f"k={k}"], 3) == before
        assert k < 5 or found["after, paper"][f"k={k}"] >= after - 0.03


@pytest.mark.slow
def test_heat_maps_are_the_authors_own(run_quickly):
    folder = run_quickly("frequency")
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    largest = {row["map"]: row["largest difference"] for row in metrics["agreement"]}
    assert largest["before"] < 1e-6
    assert largest["after, min_degree=5"] <= 0.02


@pytest.mark.slow
def test_sensitivity_is_within_a_twentieth_of_the_authors(run_quickly):
    folder = run_quickly("sensitivity")
    written = json.loads((folder / "metrics.json").read_text())
    row = {row["reading"]: row for row in written["metrics"]["agreement"]}[
        written["config"]["best"]
    ]
    assert row["delta: largest"] <= 0.05
    assert row["eta: largest"] <= 0.05


def test_a_missing_data_folder_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'vecfill[experiments]'")
    command = [sys.executable, ROOT / "experiments" / "run.py", "classification"]
    command += ["--data", tmp_path, "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Pass --data DIR" in done.stderr


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_experiment_says_what_was_chosen_and_what_came_out(folder):
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    assert "seed" in config
    assert config["quick"].keys() <= config.keys()
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "**Question.**" in readme
    assert "**Answer.**" in readme
    assert f"{folder.name}.png" in readme


def test_experiments_import_public_names_only():
    for path in (ROOT / "experiments").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "import vecfill." not in line, path.name
            assert "from vecfill." not in line, path.name
