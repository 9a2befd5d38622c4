"""Models in files from the shell: impute --save, add, inspect."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import vecfill as vf
from vecfill.cli import main

N = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of vectors, a table of entities, and tables of entities that come later."""
    place = tmp_path_factory.mktemp("shell")
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N + 12, 3))
    vectors = np.tanh(latent @ rng.normal(size=(3, 6)))
    lines = [f"t{n} " + " ".join(f"{x:.5f}" for x in vectors[n]) for n in range(90)]
    (place / "base.vec").write_text("90 6\n" + "\n".join(lines) + "\n")
    rows = [f"t{n}," + ",".join(f"{x:.5f}" for x in latent[n]) for n in range(N + 12)]
    (place / "table.csv").write_text("name,a,b,c\n" + "\n".join(rows[:N]) + "\n")
    (place / "later.csv").write_text("name,a,b,c\n" + "\n".join(rows[N - 2 : N + 6]) + "\n")
    (place / "last.csv").write_text("name,a,b,c\n" + "\n".join(rows[N + 6 :]) + "\n")
    command = ["impute", "base.vec", "table.csv", "-o", "enriched.vec", "--save", "m.vecfill"]
    words = [str(place / each) if "." in each else each for each in command]
    assert main(words) == 0
    return place


def run(folder, *words: str) -> int:
    return main([str(folder / each) if "." in each and each != "-" else each for each in words])


def test_entities_are_added_to_a_saved_model_in_the_format_of_the_original(folder, capsys):
    assert run(folder, "add", "m.vecfill", "later.csv", "-o", "new.vec", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["entity"] for each in told["added"]] == [f"t{n}" for n in range(N, N + 6)]
    assert told["already_imputed"] == ["t118", "t119"]
    new = vf.read_embedding(folder / "new.vec")
    assert new.words == tuple(f"t{n}" for n in range(N, N + 6))
    assert (folder / "new.vec").read_text().startswith("6 6\n")


def test_added_rows_follow_an_enriched_file_whose_bytes_stay(folder, capsys):
    words = ("add", "m.vecfill", "last.csv", "-o", "more.vec", "--append-to", "enriched.vec")
    assert run(folder, *words) == 0
    assert run(folder, "verify", "enriched.vec", "more.vec") == 0
    before, after = (folder / "enriched.vec").read_bytes(), (folder / "more.vec").read_bytes()
    assert after.split(b"\n", 1)[1].startswith(before.split(b"\n", 1)[1])
    assert len(vf.read_embedding(folder / "more.vec")) == N + 6
    capsys.readouterr()


def test_rows_added_to_one_table_keep_their_facts_and_the_key_stays_the_key(tmp_path, capsys):
    """They were written into the one column of text, here the country."""
    rng = np.random.default_rng(0)
    facts = rng.normal(size=(N + 3, 3))
    vectors = np.tanh(facts @ rng.normal(size=(3, 6)))
    columns = {"a": facts[:, 0], "b": facts[:, 1], "land": ["x", "y", "z"] * (N // 3 + 1)}
    cells = [None if row % 4 == 0 else vectors[row].tolist() for row in range(N)]
    items = pa.table({"id": range(7000, 7000 + N + 3), **columns, "note": ["."] * (N + 3)})
    pq.write_table(items[:N].append_column("v", pa.array(cells)), tmp_path / "items.parquet")
    csv.write_csv(items[N - 1 :].drop_columns("note"), tmp_path / "new.csv")
    told = ("--confidence-column", "sure")
    words = ("impute", "items.parquet", "--vector", "v", "--key", "id", "--ignore", "note")
    assert run(tmp_path, *words, "-o", "full.parquet", "--save", "m.vecfill", *told) == 0
    words = ("add", "m.vecfill", "new.csv", "-o", "more.parquet", "--append-to", "full.parquet")
    assert run(tmp_path, *words, *told) == 0
    before, after = (pq.read_table(tmp_path / f"{each}.parquet") for each in ("full", "more"))
    assert after.schema == before.schema
    assert after[:N].equals(before)
    for files in (("items.parquet", "full.parquet"), ("full.parquet", "more.parquet")):
        assert run(tmp_path, "verify", *files, "--vector", "v") == 0
    found = after[N:].to_pydict()
    assert found["id"] == items["id"].to_pylist()[N:]
    assert found["land"] == items["land"].to_pylist()[N:]
    np.testing.assert_allclose(found["a"], facts[N:, 0])
    assert found["note"] == [None] * 3
    assert all(0 < each <= 1 for each in found["sure"])
    added = vf.load(tmp_path / "m.vecfill").add(tmp_path / "new.csv").embedding
    np.testing.assert_array_equal(np.array(found["v"]), added.vectors)
    for column in ("id", "v", "a"):
        assert run(tmp_path, *words, "--overwrite", "--confidence-column", column) == 2
        assert f"--confidence-column '{column}' is a column of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("enriched", "says"), [("text.csv", "text table"), ("other.parquet", "has no column 'id'")]
)
def test_rows_are_added_only_to_the_table_of_the_model(tmp_path, capsys, enriched, says):
    rng = np.random.default_rng(0)
    facts = rng.normal(size=(N, 3))
    cells = [None if row % 4 == 0 else facts[row].tolist() for row in range(N)]
    table = pa.table({"id": range(N), "a": facts[:, 0], "b": facts[:, 1], "v": cells})
    pq.write_table(table, tmp_path / "items.parquet")
    pq.write_table(table.drop_columns("id"), tmp_path / "other.parquet")
    (tmp_path / "text.csv").write_text("id,a,b,v\n1,2,3,[1.0]\n")
    (tmp_path / "new.csv").write_text("id,a,b\n900,0.5,0.5\n")
    words = ("impute", "items.parquet", "--vector", "v", "--key", "id", "-o", "full.parquet")
    assert run(tmp_path, *words, "--save", "m.vecfill") == 0
    words = ("add", "m.vecfill", "new.csv", "-o", f"more.{enriched.split('.')[1]}")
    assert run(tmp_path, *words, "--append-to", enriched) == 2
    assert says in capsys.readouterr().err
    assert run(tmp_path, *words[:-1], "new.vec", "--confidence-column", "sure") == 2
    assert "--confidence-column" in capsys.readouterr().err


def test_inspect_says_what_a_model_is(folder, capsys):
    assert run(folder, "inspect", "m.vecfill", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["n_known"], told["n_imputed"], told["n_dims"]) == (90, 30, 6)
    assert told["format"] == "word2vec-text"
    assert run(folder, "inspect", "m.vecfill") == 0
    assert "120 entities, 90 of them known" in capsys.readouterr().out
    assert run(folder, "inspect", "table.csv") == 2
    assert "is not a vecfill model" in capsys.readouterr().err


def test_kept_entities_are_in_the_model_that_is_saved_again(folder, capsys):
    words = ("add", "m.vecfill", "later.csv", "-o", "kept.vec", "--save", "m2.vecfill")
    assert run(folder, *words) == 0
    assert "t121" in vf.load(folder / "m2.vecfill").embedding
    assert run(folder, *words) == 2
    assert "exists" in capsys.readouterr().err


def test_a_model_is_replaced_by_itself_only_if_that_is_allowed(folder, capsys):
    (folder / "own.vecfill").write_bytes((folder / "m.vecfill").read_bytes())
    before = (folder / "own.vecfill").read_bytes()
    words = ("add", "own.vecfill", "later.csv", "-o", "own.vec", "--save", "own.vecfill")
    assert run(folder, *words) == 2
    assert (
        "own.vecfill exists already. Allow overwriting it (--overwrite)" in capsys.readouterr().err
    )
    assert (folder / "own.vecfill").read_bytes() == before
    assert not (folder / "own.vec").exists()
    assert run(folder, *words, "--overwrite") == 0
    assert "t121" in vf.load(folder / "own.vecfill").embedding


def changed_by_hand(path, part, value):
    """Change a part of a model, and every digest with it."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    about = json.loads(header["__metadata__"]["about"])
    about["parts"][part] = value
    text = json.dumps(about)
    digest = hashlib.sha256(text.encode()).hexdigest()
    header["__metadata__"] |= {"about": text, "about_sha256": digest}
    changed = json.dumps(header).encode()
    changed += b" " * (-len(changed) % 8)
    path.write_bytes(struct.pack("<Q", len(changed)) + changed + raw[8 + size :])


PARTS = ["names", "embedding", "is_known", "sources", "strata", "layout", "space 0 size"]


@pytest.mark.parametrize("part", PARTS)
def test_a_model_that_was_changed_by_hand_is_refused_by_part(folder, capsys, part):
    whole, path = (folder / "m.vecfill").read_bytes(), folder / "changed.vecfill"
    for value in (None, "x", 7, [], {}):
        path.write_bytes(whole)
        changed_by_hand(path, part, value)
        assert run(folder, "inspect", "changed.vecfill") == 2
        assert f"the part {part!r} is not of the kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ("x,1e300,2,3", (), "a of 'x' is 1e+300, and those of known entities are"),
        ("x,,,", (), "says nothing about 'x': every cell that the model uses is empty"),
        ("t1,1,2,3", (), "has no entity that is new to the model"),
        ("x,1,2,3", ("--key", "id"), "'id'"),
    ],
    ids=["absurd", "empty", "nothing new", "no such key"],
)
def test_what_cannot_be_added_is_refused_by_what_it_is(folder, capsys, row, options, words):
    (folder / "odd.csv").write_text(f"name,a,b,c\n{row}\n")
    assert run(folder, "add", "m.vecfill", "odd.csv", "-o", "odd.vec", *options) == 2
    assert words in capsys.readouterr().err
    assert not (folder / "odd.vec").exists()
