"""The whole job on files, called from Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from tests.shell import N_KNOWN, N_TOWNS, World
from vecfill.io import verify
from vecfill.io.provenance import Fingerprint


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def enriched(world: World, name: str = "base.vec", table: object = "towns.csv", **options):
    path = world.folder / table if isinstance(table, str) else table
    output = world.folder / f"new{os.path.splitext(name)[1]}"  # noqa: PTH122
    return vf.enrich(world.folder / name, path, output, **{"method": "paper", **options})


def test_rows_are_those_that_impute_gives(world):
    done = enriched(world)
    run = vf.impute(world.folder / "towns.csv", world.base, method="paper")
    read = vf.read_embedding(world.folder / "new.vec")
    assert np.allclose(read[list(run.embedding.words)], run.embedding.vectors, atol=1e-5)
    assert done.counts == {
        "entities": N_TOWNS,
        "known": N_KNOWN,
        "unknown": 15,
        "imputed": 15,
        "abstained": 0,
        "added": 15,
        "replaced": 0,
        "words_before": N_KNOWN + 2,
        "words_after": N_TOWNS + 2,
    }


@pytest.mark.parametrize(
    "name", ["b.bin", "b.vec", "b.glove", "b.safetensors", "b.npz", "b.parquet", "b.csv"]
)
def test_every_format_is_enriched_in_its_own_way(world, name):
    vf.write_embedding(world.base, world.folder / name)
    done = enriched(world, name)
    proof = verify(world.folder / name, done.output)
    assert proof.ok
    assert proof.added == tuple(done.added.values())


def test_a_table_in_memory_will_do(world):
    table = pd.DataFrame(world.places, index=world.towns, columns=list("xyz"))
    assert enriched(world, table=table).counts["added"] == 15


def test_the_manifest_says_how_the_result_was_made(world):
    done = enriched(world, seed=7)
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    assert about == json.loads(json.dumps(done.manifest))
    assert about["vecfill"] == vf.__version__
    assert set(about["packages"]) >= {"numpy", "scipy", "scikit-learn"}
    assert about["options"]["seed"] == 7
    with Fingerprint(world.folder / "base.vec") as each:
        assert about["inputs"]["embedding"] == each.result()
    assert about["counts"]["added"] == 15
    assert about["matched"] == {"exact": N_KNOWN, "none": 15}
    assert about["words"]["town3"] == "town3"
    stages = list(about["seconds"])
    assert stages.index("Choosing the method") < stages.index("Imputing")
    assert all(spent >= 0 for spent in about["seconds"].values())
    enriched(world, manifest=False, overwrite=True)


@pytest.mark.parametrize("seconds", [-1e10, 0.0, 1e18, 253402300800.0])
def test_an_odd_clock_still_gives_a_valid_manifest(world, monkeypatch, seconds):
    monkeypatch.setenv("TZ", "Nowhere/Odd+99")
    time.tzset()
    monkeypatch.setattr("vecfill.io.provenance.time.time", lambda: seconds)
    enriched(world)
    assert json.loads((world.folder / "new.vec.manifest.json").read_text())["made_at"]
    monkeypatch.undo()
    time.tzset()


def test_when_every_entity_is_known_the_file_is_copied_unchanged(world):
    world.write_table("towns.csv", world.towns[:N_KNOWN], world.places)
    page = world.folder / "page.html"
    done = enriched(world, method="auto", report=page, min_confidence=0.5)
    assert done.result is None
    assert (world.folder / "new.vec").read_bytes() == (world.folder / "base.vec").read_bytes()
    assert "Every entity has a row already; the file was copied unchanged." in done.notes
    assert "No page was written, because there is no imputation to report on." in done.notes
    assert not page.exists()


@pytest.mark.parametrize("n_known", [1, 2])
def test_very_few_known_entities_need_the_paper_or_force(world, n_known):
    table = world.write_table("few.csv", [*world.towns[:n_known], "x", "y", "z"], world.places)
    with pytest.raises(vf.InputError, match=r"method=.paper."):
        enriched(world, table=table, method="auto")
    assert enriched(world, table=table, method="auto", force=True).counts["added"] == 3
    assert enriched(world, table=table, overwrite=True).counts["added"] == 3


def test_fewer_entities_than_min_degree_is_reported(world):
    table = world.write_table("few.csv", [*world.towns[:4], "x"], world.places)
    done = enriched(world, table=table)
    assert any("min_degree" in note for note in done.notes)


def test_one_entity_in_all_is_refused_and_twins_are_alike(world):
    one = world.write("one.csv", "name,x,y\ntown1,1,2\n")
    with pytest.raises(vf.InputError, match="constant"):
        enriched(world, table=one)
    twins = world.write("twins.csv", "name,x,y\ntown1,1,2\ntwin,1,2\ntown2,5,6\n")
    enriched(world, table=twins)
    read = vf.read_embedding(world.folder / "new.vec")
    assert read.most_similar("twin", n=1)[0][0] == "town1"


def test_two_entities_of_one_word_are_both_reported(world):
    world.write_table("towns.csv", ["Town1", "TOWN1", *world.towns[2:]], world.places)
    done = enriched(world)
    assert any("'town1' was matched by 2 entities" in note for note in done.notes)
    assert {"Town1", "TOWN1"} <= set(done.matches.words)


def test_white_space_becomes_an_underscore_where_it_would_end_a_word(world):
    table = world.write_table("towns.csv", [*world.towns[:20], "New  Town"], world.places)
    assert enriched(world, table=table).added == {"New  Town": "New_Town"}
    vf.write_embedding(world.base, world.folder / "b.npz")
    assert enriched(world, "b.npz", table).added == {"New  Town": "New  Town"}
    twice = world.write_table("two.csv", [*world.towns[:20], "a b", "a_b"], world.places)
    with pytest.raises(vf.InputError, match="both be written as 'a_b'"):
        enriched(world, table=twice, overwrite=True)


def test_an_excluded_entity_whose_name_is_a_word_is_not_written_twice(world):
    done = enriched(world, exclude=["town3"])
    assert done.left_out == ("town3",)
    assert "town3" in done.result.embedding
    assert verify(world.folder / "base.vec", world.folder / "new.vec").n_added == 15
    assert any("a row of the same name: 'town3'" in note for note in done.notes)


def test_a_file_that_changes_meanwhile_is_refused(world, monkeypatch):
    inner = vf.run.impute_aligned

    def outer(*args, **options):
        with (world.folder / "base.vec").open("a") as file:
            file.write("more 1 2 3 4 5 6 7 8\n")
        return inner(*args, **options)

    monkeypatch.setattr("vecfill.run.impute_aligned", outer)
    with pytest.raises(vf.InputError, match="changed while"):
        enriched(world)
    assert "new.vec" not in world.names()


def test_an_existing_manifest_is_refused_before_the_work(world):
    world.write("new.vec.manifest.json", "{}")
    with pytest.raises(vf.InputError, match=r"manifest.json exists already"):
        enriched(world)
    assert "new.vec" not in world.names()


def test_a_page_appears_with_its_result_or_not_at_all(world, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    before = world.names()
    monkeypatch.setattr("vecfill.io.atomic._publish", fail)
    with pytest.raises(vf.InputError, match="cannot be written"):
        enriched(world, report=world.folder / "page.html")
    assert world.names() == before
    monkeypatch.undo()
    enriched(world, report=world.folder / "page.html")
    assert world.names() == before | {"page.html", "new.vec", "new.vec.manifest.json"}


def test_the_same_call_gives_the_same_bytes_at_any_number_of_jobs(world):
    enriched(world, method="auto", n_jobs=1)
    first = (world.folder / "new.vec").read_bytes()
    enriched(world, method="auto", n_jobs=2, overwrite=True)
    assert (world.folder / "new.vec").read_bytes() == first


def test_the_public_names_are_loaded_when_asked_for():
    script = (
        "import sys, vecfill as vf; assert 'numpy' not in sys.modules;"
        "from vecfill.jobs.job import Enrichment; assert callable(vf.enrich);"
        "assert all(hasattr(vf, name) for name in vf.__all__); vf.io.append_rows;"
        "assert not hasattr(vf, 'nonsense'); assert {'impute', 'io'} <= set(dir(vf))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
