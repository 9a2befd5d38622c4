"""The part of the page that says how a result was made."""

from __future__ import annotations

import json

import numpy as np
import pytest

import vecfill as vf
from tests.shell import World
from vecfill.views.made import how_made
from vecfill.views.report import write_report

from .test_report import data_of

RUDE = "<script>alert(1)</script>\u202e\udce9"


@pytest.fixture
def world(tmp_path, capsys):
    return World(tmp_path, capsys)


def imputed(world: World, *words: str):
    """Impute on the command line, with a page; return what the page says of how."""
    asked = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--report", "page.html")
    status, _, err = world.run(*asked, "--method", "paper", *words)
    assert status == 0, err
    return data_of(world.folder / "page.html")["how"]


def test_the_page_shows_what_the_manifest_holds(world):
    how = imputed(world, "--seed", "7", "--exclude", "town3", "--separator", ",")
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    made, options = dict(how["made"]), dict(how["options"])
    assert made["vecfill"] == vf.__version__
    assert made["Made"].replace(" UTC", "Z").replace(" ", "T") == about["made_at"]
    assert (made["Result"], made["Format"]) == ("new.vec", "word2vec-text")
    assert (options["seed"], options["exclude"], options["method"]) == ("7", "town3", "paper")
    assert set(options) == set(about["options"])
    assert dict(how["counts"])["added"] == str(about["counts"]["added"])
    assert dict(how["packages"])["numpy"] == np.__version__
    for role, path, size, digest in how["files"]:
        assert about["inputs"][role] == {"path": path, "bytes": size, "sha256": digest}
    assert [path for _, path, *_ in how["files"]] == ["base.vec", "towns.csv"]


def test_the_page_says_it_all_where_no_manifest_is_written(world):
    how = imputed(world, "--no-manifest")
    assert "new.vec.manifest.json" not in world.names()
    assert [len(digest) for *_, digest in how["files"]] == [64, 64]
    assert dict(how["options"])["seed"] == "0"


def test_a_result_on_standard_output_has_no_passing_place_on_the_page(world):
    status = world.run(
        "impute", "base.vec", "towns.csv", "-o", "-", "--report", "page.html", "--method", "paper"
    )[0]
    assert status == 0
    assert dict(data_of(world.folder / "page.html")["how"]["made"])["Result"] == "standard output"


def test_five_thousand_exclusions_do_not_bloat_the_page(world):
    imputed(world)
    before = (world.folder / "page.html").stat().st_size
    world.write("not.txt", "".join(f"nobody {i} of nowhere\n" for i in range(5000)))
    how = imputed(world, "--exclude", "not.txt", "--overwrite")
    assert dict(how["options"])["exclude"].endswith("nobody 9 of nowhere and 4,990 more")
    assert (world.folder / "page.html").stat().st_size < before + 2000


def test_a_manifest_of_anything_is_bounded_text():
    huge = {
        "made_at": "x" * 10**6,
        "options": {f"option{i}": ["y" * 10**5] * 100 for i in range(1000)},
        "inputs": {f"file{i}": {"path": "z" * 10**5, "bytes": -1.5} for i in range(1000)},
        "counts": [1, 2, 3],
        "packages": {"numpy": float("nan"), "deep": {"a": [{"b": np.zeros(3)}] * 50}},
    }
    assert len(json.dumps(how_made(huge), allow_nan=False)) < 60_000


def test_nothing_known_gives_empty_parts():
    assert how_made({}) == {"made": [], "files": [], "options": [], "counts": [], "packages": []}


def test_what_is_no_manifest_is_refused(small_run, tmp_path):
    with pytest.raises(vf.InputError, match=r"Pass what enrich\(...\).manifest holds"):
        write_report(small_run, tmp_path / "page.html", manifest="new.vec.manifest.json")
    assert not (tmp_path / "page.html").exists()


def test_a_manifest_file_can_be_shown_later(world, small_run):
    imputed(world)
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    write_report(small_run, world.folder / "later.html", manifest=about)
    kept = data_of(world.folder / "page.html")["how"]
    assert data_of(world.folder / "later.html")["how"] == kept


def test_without_files_the_page_says_with_what_it_was_made(small_run, open_page, tmp_path):
    write_report(small_run, tmp_path / "page.html")
    shown = open_page(tmp_path / "page.html")
    text = shown.inner_text("#made")
    assert vf.__version__ in text
    assert "No input files are recorded" in text
    assert shown.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_hashes_and_odd_names_fit_any_screen(small_run, open_page, tmp_path, width):
    path = "/".join(["a-rather-long-folder-name"] * 12) + f"/{RUDE}.vec"
    manifest = {
        "made_at": "2026-01-02T03:04:05Z",
        "output": path,
        "options": {"exclude": [RUDE] * 40, RUDE: "k" * 5000, "separator": "\t"},
        "inputs": {"embedding": {"path": path, "bytes": 3_584_000_512, "sha256": "0f" * 32}},
    }
    write_report(small_run, tmp_path / "page.html", manifest=manifest)
    shown = open_page(tmp_path / "page.html", width=width)
    for summary in shown.locator("#made summary").all():
        summary.click()
    text = shown.inner_text("#made")
    assert "<script>alert(1)</script>" in text
    assert "\\xe9" in text
    assert "3.3 GiB" in text
    assert "0f" * 32 in text
    assert "and 30 more" in text
    assert "'\\t'" in text
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.complaints == []
