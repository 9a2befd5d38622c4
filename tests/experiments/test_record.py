"""What an experiment found reaches the page, at its place and nowhere else."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pip install 'vecfill[experiments]'")

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_table_has_three_digits_and_blanks_for_what_is_not_known():
    record = importlib.import_module("record")
    table = pd.DataFrame({"a": [0.12345, np.nan]}, index=pd.Index(["x", "y"], name="row"))
    assert record.markdown_table(table).splitlines() == [
        "| row | a |",
        "| --- | --- |",
        "| x | 0.123 |",
        "| y |  |",
    ]


def test_only_the_marked_place_of_a_page_changes(tmp_path):
    record = importlib.import_module("record")
    results = tmp_path / "results"
    results.mkdir()
    (results / "table.md").write_text("new table\n")
    (results / "one.png").write_bytes(b"picture")
    page = tmp_path / "page.md"
    page.write_text("head\n<!-- one: begin -->\nold\n<!-- one: end -->\ntail\n")
    record.fill_page(page, "one", results, tmp_path / "figures", quick=True)
    text = page.read_text()
    assert text.startswith("head\n<!-- one: begin -->\n**From a quick run")
    assert text.endswith("<!-- one: end -->\ntail\n")
    assert "old" not in text
    assert "new table" in text
    assert "![one](figures/one.png)" in text
    assert (tmp_path / "figures" / "one.png").read_bytes() == b"picture"


def test_a_page_without_the_place_is_refused(tmp_path):
    record = importlib.import_module("record")
    page = tmp_path / "page.md"
    page.write_text("head\n")
    with pytest.raises(SystemExit, match="has no place for one"):
        record.fill_page(page, "one", tmp_path, tmp_path, quick=False)


def test_an_experiment_is_done_only_with_the_same_values(tmp_path):
    record = importlib.import_module("record")
    config = {"quick": True, "seed": 0, "ks": [2, 5], "tol": 1e-2}
    assert not record.is_done(tmp_path, config)
    record.write(record.Result({}, {}), tmp_path, name="one", config=config, seconds=1.0)
    assert record.is_done(tmp_path, config)
    assert not record.is_done(tmp_path, config | {"ks": [2]})
    (tmp_path / "metrics.json").write_text("{")
    assert not record.is_done(tmp_path, config)


def test_figures_of_the_docs_are_small():
    for picture in (DOCS / "figures").iterdir():
        assert picture.stat().st_size < 150_000, picture.name
