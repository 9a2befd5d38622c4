"""The command `vecfill`: what it prints, where, and with which status."""

from __future__ import annotations

import csv
import gzip
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vecfill
from tests.shell import N_KNOWN, N_TOWNS, World, started
from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import MissingExtraError

IMPUTE = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--method", "paper")


@pytest.fixture
def world(tmp_path, capsys):
    return World(tmp_path, capsys)


def test_help_and_version_are_quick_and_load_nothing_heavy():
    script = (
        "import sys; from vecfill.cli import main; main(['--help']); main(['--version']);"
        "sys.exit(bool({'numpy', 'sklearn', 'numba', 'pyarrow', 'rich.progress'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    for command in ("impute", "evaluate", "explain", "match", "verify", "convert", "demo"):
        assert f"  {command} " in done.stdout
    assert done.stdout.endswith(f"vecfill {vecfill.__version__}\n")


def test_impute_writes_an_enriched_file_and_says_what_it_did(world):
    status, out, err = world.run("impute", "base.vec", "towns.csv", "-o", "new.vec")
    assert status == 0
    assert err == ""
    assert f"{N_KNOWN} known (matched: {N_KNOWN} exact), {N_TOWNS - N_KNOWN} unknown" in out
    # The three looks of `result.sanity`, in the words of `repr(result)`.
    assert re.search(r"\nSpread +mean cosine between new vectors -?0\.\d\d \(known entities", out)
    assert re.search(r"\nNearest +\d+ different nearest words for 15 new vectors; '\w+' for", out)
    assert re.search(r"\nExamples +town45: (town\d+|the|of), ", out)
    assert "Warning" not in out
    assert f"new.vec: {N_KNOWN + 2} words unchanged, {N_TOWNS - N_KNOWN} added" in out
    assert world.names() == {"base.vec", "towns.csv", "new.vec", "new.vec.manifest.json"}
    found = read_embedding(world.folder / "new.vec")
    assert found.words == (*world.base.words, *world.towns[N_KNOWN:])


def test_a_collapsed_result_says_so_before_anything_else(world):
    # Smoothed until all other towns have an equal share in each: nearly the mean of the known ones.
    new = [f"new{number}" for number in range(40)]
    places = np.random.default_rng(1).normal(size=(40, 3))
    world.write_table("towns.csv", [*world.towns, *new], [*world.places, *places])
    setting = ("--min-degree", "99", "--ridge", "1000")
    command = ("impute", "base.vec", "towns.csv", "-o", "new.vec", *setting)
    assert "collapsed" in world.refused(*command, status=3)
    status, out, err = world.run(*command, "--force")
    assert status == 0
    assert err.startswith("note: The imputed vectors have collapsed")
    first, second, *_ = out.splitlines()
    assert first == "Warning     The imputed vectors have collapsed: they are nearly one vector."
    assert second.startswith("Entities")
    assert "\nSpread      mean cosine between new vectors 1.00 (known entities" in out


def test_json_of_impute_holds_counts_and_confidence(world):
    found = world.json("impute", "base.vec", "towns.csv", "-o", "new.vec")
    assert found["counts"]["added"] == len(found["added"]) == N_TOWNS - N_KNOWN
    assert found["added"][0]["entity"] == "town45"
    again = vecfill.impute(world.folder / "towns.csv", world.folder / "base.vec")
    for number, added in enumerate(found["added"]):
        assert added["confidence"] == again.confidence.values[number]
        assert added["lower_bound"] == again.confidence.lower_bound[number]
    assert {"predictor", "preparation", "min_degree", "ridge"} <= set(found["method"])


def test_a_single_setting_can_be_asked_for(world):
    asked = ("--min-degree", "5", "--ridge", "0.1", "--preparation", "unit_rows")
    asked += ("--residual-share", "0.6")
    found = world.json("impute", "base.vec", "towns.csv", "-o", "new.vec", *asked)
    wanted = {"preparation": "unit_rows", "min_degree": 5, "ridge": 0.1, "residual_share": 0.6}
    assert {name: found["method"][name] for name in wanted} == wanted
    assert "contradict each other" in world.refused(
        "impute", "base.vec", "towns.csv", "-o", "x.vec", "--method", "paper", "--ridge", "1"
    )


@pytest.mark.parametrize("flag", ["--standardize", "--calibrate-norms"])
def test_a_flag_does_in_the_shell_what_it_does_in_python(world, flag):
    option = {flag[2:].replace("-", "_"): True}
    world.write_table("towns.csv", world.towns, world.places * [1, 1, 1000])
    assert world.run(*IMPUTE, flag)[0] == 0
    table = world.folder / "towns.csv"
    plain = vecfill.impute(table, world.base, method="paper").embedding
    asked = vecfill.impute(table, world.base, method="paper", **option).embedding
    found = read_embedding(world.folder / "new.vec")[list(asked.words)]
    np.testing.assert_allclose(found, asked.vectors, atol=1e-4)
    assert np.abs(found - plain.vectors).max() > 1e-2


def test_the_seed_and_the_level_reach_the_result(world):
    options = ("--seed", "3", "--level", "0.8")
    found = world.json("impute", "base.vec", "towns.csv", "-o", "new.vec", *options)
    again = vecfill.impute(world.folder / "towns.csv", world.base, seed=3, level=0.8)
    bounds = [each["lower_bound"] for each in found["added"]]
    np.testing.assert_allclose(bounds, again.confidence.lower_bound, atol=1e-4)
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())["options"]
    assert (about["seed"], about["level"]) == (3, 0.8)


def test_min_confidence_leaves_out_and_lists(world):
    found = world.json(
        "impute", "base.vec", "towns.csv", "-o", "new.vec", "--min-confidence", "0.99"
    )
    n_added, n_abstained = found["counts"]["added"], len(found["abstained"])
    assert n_added + n_abstained == N_TOWNS - N_KNOWN
    assert n_abstained > 0


def test_evaluate_compares_with_rivals(world):
    found = world.json("evaluate", "base.vec", "towns.csv")
    assert {"auto", "paper", "mean", "knn", "ridge", "omp", "sparsemax"} <= set(found["methods"])
    status, out, _ = world.run("evaluate", "base.vec", "towns.csv")
    assert status == 0
    assert "sparsemax" in out


@pytest.fixture
def sources(world):
    """Half of what makes the vectors in a table, half in another file, and texts of nothing."""
    kinds = ["a flat town", "a steep town", "a town by the sea", "a small town"]
    rows = [f"{name},{place[0]:.4f},{kinds[i % 4]}" for i, (name, place) in enumerate(world.pairs)]
    world.write("facts.csv", "\n".join(["name,x,about", *rows]) + "\n")
    rows = [f"{name},{place[1]:.4f},{place[2]:.4f}" for name, place in world.pairs[5:]]
    world.write("more.csv", "\n".join(["name,y,z", *rows]) + "\n")
    return ("base.vec", "facts.csv", "--source", "more=more.csv", "--text", "about")


def test_several_sources_reach_the_summary_the_json_and_the_manifest(world, sources):
    words = ("impute", *sources, "-o", "new.vec", "--candidates", "classic")
    found = world.json(*words)
    told = {each["name"]: each for each in found["sources"]}
    assert list(told) == ["table", "about", "more"]
    assert told["more"]["is_kept"]
    assert told["more"]["n_known"] == N_KNOWN - 5
    assert not told["about"]["is_kept"]
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    assert about["sources"] == found["sources"]
    assert about["options"]["source"] == ["more=more.csv"]
    assert about["inputs"]["source more"]["path"].endswith("more.csv")
    status, out, _ = world.run(*words, "--overwrite")
    assert status == 0
    (line,) = [each for each in out.splitlines() if each.startswith("Sources")]
    assert all(name in line for name in ("table", "about", "more"))


def test_evaluate_and_explain_fuse_sources_too(world, sources):
    found = world.json("evaluate", *sources, "--folds", "2")
    assert {"auto", "table alone", "more alone", "about + ridge", "knn"} <= set(found["methods"])
    assert found["methods"]["auto"]["mrr"] > found["methods"]["table alone"]["mrr"]
    told = world.json("explain", *sources[:2], "town50", *sources[2:], "--candidates", "classic")
    assert set(told["source_shares"]) == {"table", "more"}
    assert sum(told["source_shares"].values()) == pytest.approx(1.0)


def test_a_file_of_texts_is_a_source(world, sources):
    rows = (world.folder / "facts.csv").read_text().splitlines()
    texts = [",".join(row.split(",")[::2]) for row in rows[:-3]]
    texts += [f"{row.split(',')[0]}," for row in rows[-3:]]
    world.write("texts.csv", "\n".join(texts) + "\n")
    words = (*sources[:4], "--ignore", "about", "--source", "about=texts.csv:text")
    found = world.json("impute", *words, "-o", "new.vec", "--candidates", "classic")
    assert [each["name"] for each in found["sources"]] == ["table", "more", "about"]
    assert "about: 3 entities have no text; left out of this source." in found["notes"]
    assert any(f"about: {N_TOWNS - 3} texts became" in note for note in found["notes"])


def test_an_entity_may_have_an_empty_row_in_one_of_several_sources(world, sources):
    rows = (world.folder / "more.csv").read_text().splitlines()
    rows[3:8] = [f"{row.split(',')[0]},," for row in rows[3:8]]
    world.write("more.csv", "\n".join(rows) + "\n")
    words = (*sources[:4], "--ignore", "about", "-o", "new.vec", "--candidates", "classic")
    found = world.json("impute", *words)
    assert found["counts"]["added"] == N_TOWNS - N_KNOWN
    assert found["sources"][1]["n_known"] == N_KNOWN - 5 - 5
    assert any("5 entities have no value; left out" in note for note in found["notes"])
    assert "remove the row" in world.refused("impute", "base.vec", "more.csv", "-o", "two.vec")


def test_names_are_a_source_if_asked_for(world):
    found = world.json("impute", "base.vec", "towns.csv", "-o", "new.vec", "--names", "spelling")
    assert [each["name"] for each in found["sources"]] == ["table", "names"]
    found = world.json("impute", "base.vec", "towns.csv", "-o", "two.vec", "--names", "off")
    assert found["sources"] == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--source", "more.csv"), "is not NAME=FILE"),
        (("--source", "more=nothing.csv"), "nothing.csv"),
        (("--source", "a=more.csv", "--source", "a=more.csv"), "two sources are called 'a'"),
        (("--text", "nowhere"), "no column 'nowhere'"),
        (("--encoder", "model"), "there is no text"),
        (("--encoder", "model", "--source", "t=facts.csv:text"), "not a folder"),
        (("--source", "t=facts.csv:texts"), "is no kind of source"),
        (("--text", "about", "--encoder", "model"), "not a folder"),
        (("--names", "letters"), "none of auto, off"),
        (("--text", "about", "--method", "paper"), "is for one table"),
    ],
)
def test_sources_that_cannot_be_used_are_refused(world, sources, asked, message):
    said = world.refused("impute", *sources[:2], "-o", "new.vec", *asked)
    assert message in said


def test_explain_refuses_a_misspelt_name_before_it_imputes(world, monkeypatch):
    monkeypatch.setattr("vecfill.run.impute_aligned", None)
    assert "Near it: town50" in world.refused("explain", "base.vec", "towns.csv", "twon50")


def test_explain_shows_shares(world):
    found = world.json("explain", "base.vec", "towns.csv", "town50", "--method", "paper")
    assert found
    status, out, _ = world.run("explain", "base.vec", "towns.csv", "town50", "--method", "paper")
    assert status == 0
    assert re.search(r"\d %  town\d+", out)


def test_explain_needs_no_embedding_if_the_table_has_the_vectors(world):
    vectors = [world.base[town].tolist() if town in world.base else None for town in world.towns]
    columns = {"name": world.towns, "x": world.places[:, 0], "y": world.places[:, 1]}
    pq.write_table(pa.table({**columns, "vec": vectors}), world.folder / "towns.parquet")
    words = ("explain", "towns.parquet", "town50", "--vector", "vec", "--method", "paper")
    status, out, _ = world.run(*words)
    assert status == 0
    assert re.search(r"\d %  town\d+", out)
    assert "WORD" in world.refused("explain", "base.vec", "towns.csv")
    assert "--vector" in world.refused("explain", "towns.parquet", "--method", "paper")


@pytest.mark.parametrize("word", ["town1", "twon50", "zebra"])
def test_explain_of_what_was_not_imputed_is_refused(world, word):
    message = world.refused("explain", "base.vec", "towns.csv", word, "--method", "paper")
    assert word in message


def test_match_prints_every_entity_and_how_it_was_found(world):
    world.write("towns.csv", "name,x\nTown0,1\ntown1,2\nTOWN 2,3\nmissing,4\nof,5\n")
    status, out, err = world.run("match", "base.vec", "towns.csv", "--exclude", "of")
    assert status == 0
    assert [line.split()[-1] for line in out.splitlines()] == [
        "how", "case", "exact", "loose", "none", "excluded",
    ]  # fmt: skip
    assert "3 of 5 entities have a word" in err
    found = world.json("match", "base.vec", "towns.csv", "--match", "exact")
    assert found["counts"] == {"exact": 2, "none": 3}


def test_cells_that_look_like_formulas_are_escaped_in_csv(world):
    world.write("towns.csv", "name,x\n=cmd(),1\n@x,2\n-1+2,3\ntown1,4\n")
    status, _, _ = world.run("match", "base.vec", "towns.csv", "-o", "match.csv")
    assert status == 0
    rows = list(csv.reader((world.folder / "match.csv").read_text().splitlines()))
    assert [row[0] for row in rows] == ["entity", "'=cmd()", "'@x", "'-1+2", "town1"]


def test_a_match_that_leaves_nothing_known_leaves_no_file(world):
    words = ("match", "base.vec", "towns.csv", "--from-rank", "1", "-o", "m.csv")
    assert "No known entity is left" in world.refused(*words)


def test_counts_without_a_least_count_are_refused_where_names_are_only_matched(world):
    world.write("counts.csv", "entity,count\n" + "".join(f"{town},9\n" for town in world.towns))
    words = ("match", "base.vec", "towns.csv", "--counts", "counts.csv")
    assert "--counts 'counts.csv' cannot be used here" in world.refused(*words)
    assert world.run(*words, "--min-count", "10")[0] == 2
    assert world.run(*words, "--min-count", "5")[0] == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("libx.so: failed to map segment from shared object"), "not enough memory"),
        (RuntimeError("can't start new thread"), "not enough memory"),
        (MemoryError(), "not enough memory"),
        (ValueError("Number of threads specified must be > 0."), "NUMBA_NUM_THREADS=0 is no"),
    ],
)
def test_a_fault_of_the_machine_is_no_bug_of_ours(world, monkeypatch, error, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("vecfill.jobs.enrich.enrich", fail)
    # After the import above, which loads Numba.
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    assert words in world.refused(*IMPUTE)


@pytest.mark.parametrize("message", ["install seems to be broken", "Could not find/load shared"])
def test_parts_that_do_not_load_under_a_limit_are_a_lack_of_memory(world, monkeypatch, message):
    def fail(*_, **__):
        raise ImportError(f"{message} object")

    monkeypatch.setattr("vecfill.jobs.enrich.enrich", fail)
    assert world.run(*IMPUTE)[0] == 1
    monkeypatch.setattr("vecfill.cli._address_space", lambda: 1 << 30)
    assert "not enough memory" in world.refused(*IMPUTE)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
@pytest.mark.parametrize("megabytes", [100, 300])
def test_a_tight_limit_of_the_address_space_is_refused_before_libraries_end_us(world, megabytes):
    limited = f'ulimit -v {megabytes << 10} && exec "$0" -m vecfill "$@"'
    run = subprocess.run(
        ["sh", "-c", limited, sys.executable, *IMPUTE], cwd=world.folder, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 2
    assert f"limited to {megabytes} MB (ulimit -v)" in " ".join(run.stderr.split())
    assert "new.vec" not in world.names()


def test_numba_itself_says_what_the_shell_understands(world):
    # The words of Numba, and the place where it says them, may change with its version.
    done = subprocess.run(
        [sys.executable, "-m", "vecfill", *IMPUTE], cwd=world.folder, text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "0"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "NUMBA_NUM_THREADS=0 is no number of threads" in done.stderr


def test_every_row_of_a_match_file_has_as_many_cells_as_its_first(world):
    world.write("odd.vec", "4 1\nTown1 1\ntown1 2\nTOWN1 3\ntown2 4\n")
    assert world.run("match", "odd.vec", "towns.csv", "-o", "match.csv")[0] == 0
    rows = list(csv.reader((world.folder / "match.csv").read_text().splitlines()))
    assert rows[0] == ["entity", "word", "how", "alternative_1", "alternative_2"]
    assert {len(row) for row in rows} == {5}


def test_exclusions_and_aliases_come_from_files(world):
    world.write("not.txt", "town3\n\ntown4\n")
    world.write("also.csv", "entity,word\ntown50,the\n")
    options = ("--exclude", "not.txt", "--exclude", "town5", "--aliases", "also.csv")
    counts = world.json("match", "base.vec", "towns.csv", *options)["counts"]
    assert (counts["excluded"], counts["alias"]) == (3, 1)


def test_verify_passes_and_fails_when_one_byte_of_a_known_row_is_altered(world):
    assert world.run(*IMPUTE)[0] == 0
    status, out, _ = world.run("verify", "base.vec", "new.vec")
    assert status == 0
    assert f"{N_KNOWN + 2} rows unchanged, {N_TOWNS - N_KNOWN} added" in out
    assert "+ town45\n" in out
    assert out.endswith(f"+ {N_TOWNS - N_KNOWN - 10} more; --json lists all\n")
    assert len(re.findall(r"\b[0-9a-f]{64}\b", out)) == 2
    text = bytearray((world.folder / "new.vec").read_bytes())
    place = text.index(b"\ntown7 ") + len(b"\ntown7 ") + 1
    text[place : place + 1] = b"5" if text[place : place + 1] != b"5" else b"6"
    world.write("new.vec", bytes(text))
    status, out, err = world.run("verify", "base.vec", "new.vec")
    assert status == 2
    assert "in the row of 'town7'" in err
    status, out, _ = world.run("verify", "base.vec", "new.vec", "--json")
    assert (status, json.loads(out)["differing_word"]) == (2, "town7")


@pytest.mark.parametrize("name", ["a.bin", "a.glove", "a.safetensors", "a.npz", "a.csv.gz"])
def test_convert_there_and_back_is_bit_identical(world, name):
    assert world.run("convert", "base.vec", name)[0] == 0
    assert world.run("convert", name, "back.vec")[0] == 0
    assert (world.folder / "back.vec").read_bytes() == (world.folder / "base.vec").read_bytes()


def test_gensim_reads_enriched_binary_and_text(world):
    gensim = pytest.importorskip("gensim.models")
    world.run("convert", "base.vec", "base.bin")
    for name, is_binary in (("vec", False), ("bin", True)):
        words = ("impute", f"base.{name}", "towns.csv", "-o", f"new.{name}", "--method", "paper")
        assert world.run(*words)[0] == 0
        path = world.folder / f"new.{name}"
        read = gensim.KeyedVectors.load_word2vec_format(str(path), binary=is_binary)
        assert read.index_to_key == [*world.base.words, *world.towns[N_KNOWN:]]
        assert np.array_equal(read["town7"], world.base["town7"])


# Embedding files that are missing, empty, cut short, malformed or pickled.
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nowhere.vec", None, "does not exist"),
        ("folder", "folder", "is a directory"),
        ("empty.vec", b"", "is empty"),
        ("cut.bin", b"5 2\ncat \0\0\0\0\0\0\0\0", "5"),
        ("huge.bin", b"1000000000000000 300\ncat \0\0\0\0", "huge.bin"),
        ("short.vec", b"2 3\ncat 1 2 3\ndog 1 2\n", "line 3"),
        ("comma.txt", b"cat 1 2\ndog 1,5 2\n", "line 2"),
        ("nan.txt", b"cat 1 2\ndog nan 2\n", "line 2"),
        ("cut.gz", gzip.compress(b"cat 1 2\n" * 999, mtime=0)[:-20], "cut short"),
        ("model.kv", b"\x80\x04\x95abc", "never loaded"),
        ("model.bin", b"\xba\x16\x4f\x2f\x0b\0\0\0", "fastText"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_embedding_is_refused_by_every_command(world, name, content, said):
    if content == "folder":
        (world.folder / name).mkdir()
    elif content is not None:
        world.write(name, content)
    for words in (
        ("impute", name, "towns.csv", "-o", "new.vec"),
        ("match", name, "towns.csv"),
        ("convert", name, "new.bin"),
        ("verify", name, name),
    ):
        assert said in world.refused(*words)


def test_a_zip_with_several_members_needs_one_named(world):
    with zipfile.ZipFile(world.folder / "two.zip", "w") as archive:
        archive.write(world.folder / "base.vec", "a.vec")
        archive.writestr("readme", "hello")
    words = ("impute", "two.zip", "towns.csv", "-o", "new.vec", "--method", "paper")
    assert "2 members" in world.refused(*words)
    assert world.run(*words, "--member", "a.vec")[0] == 0
    assert world.run("verify", "base.vec", "new.vec")[0] == 0


# Tables that are empty, ambiguous, malformed or in another encoding.
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "empty"),
        (b"name,x\n", "no rows"),
        (b"name\na\nb\n", "one column only"),
        (b"name,x\na,1\na ,2\n", "'a' present more than once"),
        (b"name,x\na,1\n,2\n", "row 2"),
        (b"name,x\na,1\nb,2\nc,oops\n", "'oops' is not a number"),
        (b"name,x\na,1\nb,inf\n", "inf"),
        (b'name,x\na,"1,5"\nb,"2,5"\n', "decimal point"),
        (b"name,x\ncaf\xe9,1\nb,2\n", "--encoding"),
        (b"name,x\na,1,3\n", "line 2"),
        (b'name,x\n"a,1\nb,2\n', "quote"),
    ],
)
def test_a_bad_table_is_refused(world, text, said):
    world.write("bad.csv", text)
    for words in (
        ("impute", "base.vec", "bad.csv", "-o", "new.vec"),
        ("match", "base.vec", "bad.csv"),
    ):
        assert said in world.refused(*words)


def test_names_that_look_like_missing_values_stay_names(world):
    names = ["NA", "null", "nan", "None", "True", "1e5"]
    world.write_table("towns.csv", [*world.towns[:N_KNOWN], *names], world.places)
    assert world.run(*IMPUTE)[0] == 0
    assert read_embedding(world.folder / "new.vec").words[-6:] == tuple(names)


def test_edges_and_distances_are_domains_too(world):
    edges = [
        f"town{i},town{(i * 7 + 1) % N_TOWNS}\ntown{i},town{(i + 1) % N_TOWNS}"
        for i in range(N_TOWNS)
    ]
    world.write("edges.csv", "from,to\n" + "\n".join(edges) + "\n")
    apart = np.linalg.norm(world.places[:, None] - world.places[None], axis=2).round(6)
    lines = [",".join(["name", *world.towns])]
    lines += [
        ",".join([town, *map(str, row)]) for town, row in zip(world.towns, apart, strict=True)
    ]
    world.write("apart.csv", "\n".join(lines) + "\n")
    for name, kind in (("edges.csv", "edges"), ("apart.csv", "distances")):
        words = ("impute", "base.vec", name, "-o", f"{kind}.vec", "--kind", kind)
        assert world.run(*words, "--method", "paper")[0] == 0
        assert world.run("verify", "base.vec", f"{kind}.vec")[0] == 0
    world.write("apart.csv", "name,a,b\na,0,1\nb,2,0\n")
    message = world.refused(
        "impute", "base.vec", "apart.csv", "-o", "new.vec", "--kind", "distances"
    )
    assert "symmetric" in message


def test_another_embedding_is_a_domain(world):
    write_embedding(Embedding(world.towns, world.places), world.folder / "other.txt")
    words = ("impute", "base.vec", "other.txt", "-o", "new.vec", "--method", "paper")
    assert world.run(*words)[0] == 0
    assert len(read_embedding(world.folder / "new.vec")) == N_TOWNS + 2


def test_no_match_is_refused_with_near_misses_and_levels(world):
    world.write("other.csv", "name,x\ntown00,1\ntowns,2\n")
    message = world.refused("impute", "base.vec", "other.csv", "-o", "new.vec")
    assert "Nearest misses: " in message
    assert "--match" in message
    status, _, err = world.run("match", "base.vec", "other.csv")
    assert status == 2
    assert "Nearest misses: " in err


def test_a_shuffled_domain_is_refused_with_status_3(world):
    rng = np.random.default_rng(3)
    world.write_table("noise.csv", world.towns, rng.normal(size=(N_TOWNS, 3)))
    words = ("impute", "base.vec", "noise.csv", "-o", "new.vec")
    message = world.refused(*words, status=3)
    assert "no signal" in message
    assert "--force" in message
    assert world.run(*words, "--force")[0] == 0


def test_an_entity_present_twice_through_an_alias_is_refused(world):
    world.write("also.csv", "town50,town1\n")
    assert "present twice" in world.refused(*IMPUTE, "--aliases", "also.csv")


@pytest.mark.parametrize(
    "words",
    [
        ("--frobnicate",),
        ("frobnicate",),
        (*IMPUTE, "--min-degree", "-1"),
        (*IMPUTE, "--min-degree", "many"),
        (*IMPUTE, "--ridge", "-0.5"),
        (*IMPUTE, "--method", "magic"),
        (*IMPUTE, "--tol", "0"),
        (*IMPUTE, "--level", "1.5"),
        (*IMPUTE, "--separator", "ab"),
        (*IMPUTE, "--key", "nope"),
        ("impute", "base.vec", "towns.csv"),
        ("evaluate", "base.vec", "towns.csv", "--folds", "1"),
        ("evaluate", "base.vec", "towns.csv", "--folds", "1000"),
        ("convert", "base.vec", "new.xyz"),
        ("convert", "base.vec", "-"),
        (*IMPUTE[:3], "-o", "-", "--json"),
    ],
)
def test_bad_usage_is_refused(world, words):
    assert world.refused(*words).strip()


def test_an_existing_result_is_refused_unless_told_and_the_input_always(world):
    assert world.run(*IMPUTE)[0] == 0
    assert "new.vec exists already" in world.refused(*IMPUTE)
    assert "--overwrite" in world.refused(*IMPUTE)
    assert world.run(*IMPUTE, "--overwrite")[0] == 0
    (world.folder / "link.vec").symlink_to(world.folder / "base.vec")
    os.link(world.folder / "towns.csv", world.folder / "hard.csv")
    for name in ("base.vec", "link.vec", "towns.csv", "hard.csv"):
        words = ("impute", "base.vec", "towns.csv", "-o", name, "--overwrite")
        assert "is the input" in world.refused(*words)


def test_a_place_that_cannot_be_written_is_refused_before_the_work(world):
    os.mkfifo(world.folder / "pipe")
    for name, said in (
        ("nowhere/new.vec", "there is no folder"),
        (".", "is a directory"),
        ("pipe", "not a plain file"),
        ("/dev/null", "not a plain file"),
    ):
        words = ("impute", "base.vec", "towns.csv", "-o", name, "--overwrite")
        status, out, err = world.run(*words)
        assert (status, out) == (2, "")
        assert said in err


def test_a_full_disk_leaves_nothing_and_the_input_intact(world):
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    before = world.names()
    process = started(world.folder, list(IMPUTE), preexec_fn=limit, env=_no_cache())
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2, err
    assert "the disk is full" in err
    assert world.names() == before


def _no_cache() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_dash_writes_to_stdout_and_a_reader_that_leaves_early_does_no_harm(world, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = f"{sys.executable} -m vecfill impute base.vec towns.csv --method paper"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} -o - | head -1; {command} -o - > all.vec"],
        cwd=world.folder, capture_output=True, text=True, check=False, timeout=100,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == f"{N_TOWNS + 2} 8\n"
    assert "Traceback" not in done.stderr
    assert "Written     standard output" in done.stderr
    assert world.run("verify", "base.vec", "all.vec")[0] == 0
    assert list(scratch.iterdir()) == []


def test_output_larger_than_a_pipe_and_streams_that_are_closed_or_full(world):
    words = [f"w{i}" for i in range(20_000)]
    write_embedding(Embedding(words, np.ones((20_000, 8))), world.folder / "large.vec")
    command = f"{sys.executable} -m vecfill"
    script = (
        f"{command} convert large.vec - --to glove | head -1; echo ${{PIPESTATUS[0]}};"
        f"{command} verify base.vec base.vec >&- 2>&-; echo $?;"
        f"{command} verify base.vec base.vec > /dev/full; echo $?"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=world.folder, capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert done.stdout == "w0 1 1 1 1 1 1 1 1\n0\n0\n2\n"
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(
    "place",
    [
        "vecfill.inputs.files.NameSearch",
        "vecfill.run.impute_aligned",
        "vecfill.io.appending._appended",
    ],
)
def test_an_interrupt_gives_130_one_line_and_nothing_partial(world, place):
    before = world.names()
    process = started(world.folder, list(IMPUTE), pause_in=place)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    if place.endswith("_appended"):
        assert any(name.endswith(".tmp") for name in world.names())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "vecfill: Interrupted; no partial file is left.\n")
    assert world.names() == before


def test_a_killed_run_leaves_nothing_that_the_next_does_not_clean(world):
    before = world.names()
    process = started(world.folder, list(IMPUTE), pause_in="vecfill.io.appending._appended")
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=60)
    assert not {"new.vec", "new.vec.manifest.json"} & world.names()
    assert world.run(*IMPUTE)[0] == 0
    assert world.names() == {*before, "new.vec", "new.vec.manifest.json"}


def test_of_two_runs_at_once_one_wins_whole(world):
    paused = "vecfill.io.appending._appended"
    runs = [started(world.folder, list(IMPUTE), pause_in=paused) for _ in range(2)]
    for each in runs:
        assert each.stderr is not None
        assert each.stderr.readline() == "ready\n"
    for each in runs:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate(timeout=60)[1] for each in runs]
    assert sorted(each.returncode for each in runs) == [0, 2]
    assert sum("meanwhile" in each or "exists already" in each for each in said) == 1
    assert world.run("verify", "base.vec", "new.vec")[0] == 0
    assert json.loads((world.folder / "new.vec.manifest.json").read_text())["counts"]["added"] == 15
    assert not any(name.endswith(".tmp") for name in world.names())


def everything_on(terminal: int) -> bytes:
    """Return what was written to a terminal that nobody writes to any more, and close it."""
    text = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        text += block
    os.close(terminal)
    return text


def test_a_narrow_dumb_and_colourless_terminal_shows_plain_text(world):
    world.write("b\u00e4se.vec", (world.folder / "base.vec").read_bytes())
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "40", "LANG": "C", "LC_ALL": "C"}
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    words = ["-m", "vecfill", "match", "b\u00e4se.vec", "towns.csv"]
    seen, err_seen = pty.openpty()
    done = subprocess.run(
        [sys.executable, *words], cwd=world.folder, stdout=subprocess.PIPE, stderr=err_seen,
        env={**os.environ, **plain, **ascii_only}, check=False, timeout=60,
    )  # fmt: skip
    os.close(err_seen)
    text = everything_on(seen)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + text
    assert b"45 of 60 entities" in text


def test_messages_to_a_terminal_are_broken_between_words(world):
    seen, shown = pty.openpty()
    words = [*IMPUTE[:3], "-o", "new.vec", "--ignore", "population-of-the-town"]
    env = {**os.environ, "TERM": "dumb", "COLUMNS": "40"}
    done = subprocess.run(
        [sys.executable, "-m", "vecfill", *words], cwd=world.folder, stderr=shown, env=env,
        stdout=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    os.close(shown)
    lines = everything_on(seen).decode().splitlines()
    assert done.returncode == 2
    assert len(lines) > 1
    assert max(map(len, lines)) <= 40
    assert any("'population-of-the-town'" in line for line in lines)


def test_a_terminal_sees_progress_and_a_pipe_does_not(world):
    seen, shown = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = started(
        world.folder, list(IMPUTE), pause_in="vecfill.run.impute_aligned", stderr=shown, env=env
    )
    os.close(shown)
    text = b""
    while b"ready" not in text or b"known rows" not in text:
        text += os.read(seen, 4096)
    out, _ = process.communicate("go\n", timeout=60)
    assert process.returncode == 0
    assert "\x1b" not in out
    os.close(seen)


def test_words_that_no_terminal_can_show_are_escaped(world):
    world.write("odd.vec", b"2 1\ncaf\xe9 1\nred\x1b[31m 2\n")
    world.write("odd.csv", "name,x\ncafé,1\nred\x1b[31m,2\n")
    status, out, err = world.run("match", "odd.vec", "odd.csv")
    assert status == 0
    assert "\x1b" not in out + err
    assert "\\x1b[31m" in out


def test_a_missing_extra_gives_the_line_to_type(world, monkeypatch):
    def report(result, **_):
        raise MissingExtraError("Pages need matplotlib: pip install 'vecfill[plot]'")

    monkeypatch.setattr("vecfill.views.report.report_bytes", report)
    assert "pip install 'vecfill[plot]'" in world.refused(*IMPUTE, "--report", "page.html")


def test_a_bug_is_called_one_and_shows_its_trace_only_if_asked(world, monkeypatch):
    monkeypatch.setattr("vecfill.run.impute_aligned", lambda *_, **__: 1 // 0)
    message = world.refused(*IMPUTE, status=1)
    assert "this is a bug in vecfill" in message
    assert "--debug" in message
    status, _, err = world.run("--debug", *IMPUTE)
    assert status == 1
    assert "Traceback" in err


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_every_console_block_of_the_pages_runs(world, page):
    text = Path(__file__).parents[1].joinpath(page).read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    assert blocks
    write_embedding(world.base, world.folder / "glove.txt", format="glove")
    write_embedding(world.base, world.folder / "vectors.bin")
    write_embedding(world.base, world.folder / "glove-animals.safetensors")
    (world.folder / "towns.csv").rename(world.folder / "companies.csv")
    cities = zip(world.towns, world.places, strict=True)
    rows = [f"{town},{x},{y},{number}" for number, (town, (x, y, _)) in enumerate(cities)]
    world.write("cities.csv", "\n".join(["name,latitude,longitude,population", *rows]) + "\n")
    rows = [f"{town},{x},{y},town {x:.1f}" for town, (x, y, _) in zip(world.towns, world.places)]
    world.write("animals.csv", "\n".join(["name,x,y,description", *rows]) + "\n")
    for line in "\n".join(blocks).splitlines():
        if line.startswith("$ vecfill "):
            words = shlex.split(line.removeprefix("$ vecfill ").replace("NewCo", "town50"), True)
            status, out, err = world.run(*words)
            assert status == 0, (line, out, err)


def test_no_command_writes_onto_an_input(world):
    before = (world.folder / "base.vec").read_bytes()
    (world.folder / "link.vec").symlink_to("base.vec")
    for target in ("base.vec", "link.vec"):
        message = world.refused("convert", "base.vec", target, "--overwrite")
        assert "is the input base.vec itself" in message
        options = ("match", "base.vec", "towns.csv", "-o", target, "--overwrite")
        assert "is the input base.vec itself" in world.refused(*options)
    assert "towns.csv itself" in world.refused(
        "match", "base.vec", "towns.csv", "-o", "towns.csv", "--overwrite"
    )
    assert (world.folder / "base.vec").read_bytes() == before


@pytest.mark.parametrize("report", ["new.vec", "./new.vec", "new.vec.manifest.json"])
def test_two_results_do_not_share_a_name(world, report):
    message = world.refused(*IMPUTE, "--report", report, "--overwrite")
    assert "is named for two results" in message
    assert "new.vec" not in world.names()
