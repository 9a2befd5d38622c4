"""`vecfill tokens` from terms to a new folder, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.model_folders import HEAD, INPUT, N_DIMS, stored, word_piece, write_folder
from tests.exchange.model_folders import write_safetensors as write_weights
from tests.shell import World
from vecfill.errors import InputError, MissingExtraError, OptionError
from vecfill.exchange.huggingface.imputing import read_terms

N_WORDS, N_NEW = 60, 4


@pytest.fixture
def world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> World:
    """Return a folder with a model of sixty words, and vectors of those and of four new ones."""
    world = World(tmp_path, capsys)
    spec = word_piece()
    words = [f"word{i}" for i in range(N_WORDS)]
    tokens = ["[PAD]", "[UNK]", *words]
    spec["model"]["vocab"] = {token: row for row, token in enumerate(tokens)}
    folder = write_folder(tmp_path / "model", spec)
    rng = np.random.default_rng(3)
    places = rng.normal(size=(N_WORDS + N_NEW, 3))
    table = np.vstack([np.zeros((2, N_DIMS)), places[:N_WORDS] @ rng.normal(size=(3, N_DIMS))])
    write_weights(folder / "model.safetensors", {INPUT: stored(table, "F32")})
    names = [*words, "white_gold", "Radium", "tin-foil", "nobody"]
    vf.write_embedding(vf.Embedding(names, places), tmp_path / "other.vec")
    world.write_table("facts.csv", names, places)
    world.write("terms.txt", "white gold\nradium\ntin-foil\nword3\nabsent\n")
    return world


def test_verify_names_the_folder_that_is_no_model(world: World):
    assert "new does not exist" in world.refused("verify", "model", "new")
    assert "other.vec is not the folder" in world.refused("verify", "other.vec", "model")


def test_terms_become_tokens(world: World):
    done = world.json(
        "tokens", "model", "terms.txt", "--source", "other.vec", "-o", "new", "--report", "p.html"
    )
    assert done["ids"] == {"white gold": 62, "radium": 63, "tin-foil": 64}
    assert done["skipped"] == {
        "word3": "is one token already",
        "absent": "is not described by any source",
    }
    confidence = done["result"]["confidence"]["entities"]
    assert confidence.keys() == done["ids"].keys()
    assert done["result"]["n_known"] == N_WORDS
    assert "white gold" in (world.folder / "p.html").read_text()
    status, out, err = world.run("verify", "model", "new")
    assert (status, err) == (0, "")
    assert "0 tensors unchanged, 1 with rows added" in out
    assert "+ white gold (62)" in out
    found = world.json("verify", "model", "new")
    assert found["added"] == done["ids"]


def test_a_term_of_several_words_is_described_by_the_mean_of_its_parts(world: World):
    model, path = world.folder / "model", world.folder / "other.vec"
    source = vf.read_embedding(path)
    world.write("terms.txt", "Word3 word50\nradium\nword3 nowhere\n")
    done = world.json("tokens", "model", "terms.txt", "--source", "other.vec", "-o", "new")
    assert list(done["ids"]) == ["Word3 word50", "radium"]
    why = "is not described by any source, nor has its part 'nowhere' a vector"
    assert done["skipped"] == {"word3 nowhere": why}
    assert any("the mean of the parts: 'Word3 word50'." in note for note in done["result"]["notes"])
    # Rare parts count more, by the logarithm of the rank in the whole file.
    weights = np.log(np.array([3, 50]) + 2.0)
    mean = weights / weights.sum() @ source[["word3", "word50"]]
    told = vf.Embedding([*source.words, "Word3 word50"], np.vstack([source.vectors, mean]))
    new = vf.read_model(world.folder / "new")
    for described in (source, told):
        found = vf.impute_tokens(model, ["Word3 word50", "radium"], described).result.embedding
        np.testing.assert_allclose(new["Word3 word50"], found["Word3 word50"], rtol=1e-4)


def test_a_term_that_a_source_has_whole_is_not_put_together(world: World):
    source = vf.read_embedding(world.folder / "other.vec")
    vectors = np.vstack([source.vectors, np.eye(3, dtype=source.vectors.dtype)[:2]])
    both = vf.Embedding([*source.words, "white", "gold"], vectors)
    alone, beside = (
        vf.impute_tokens(world.folder / "model", ["white gold"], each).result.embedding
        for each in (source, both)
    )
    np.testing.assert_allclose(beside["white gold"], alone["white gold"], rtol=1e-5)


def test_a_table_of_facts_has_no_mean_of_parts(world: World):
    """The mean of two towns' facts says nothing about a town that has both their names."""
    found = vf.impute_tokens(
        world.folder / "model", ["word3 word50", "radium"], world.folder / "facts.csv"
    )
    assert found.skipped == {"word3 word50": "is not described by any source"}


def test_the_summary_lists_every_term_that_was_skipped(world: World):
    world.write("terms.txt", "radium\n" + "".join(f"absent{i}\n" for i in range(5)))
    status, out, _ = world.run("tokens", "model", "terms.txt", "--source", "other.vec", "-o", "new")
    assert status == 0
    assert "absent0, absent1, absent2, absent3, absent4: is not described by any source" in out
    world.write("terms.txt", "".join(f"absent{i}\n" for i in range(7)))
    message = world.refused("tokens", "model", "terms.txt", "--source", "other.vec", "-o", "other")
    assert "'absent0' is not described" in message
    assert "and 2 more" in message


def test_the_page_of_tokens_can_compare_methods(world: World):
    page = ("-o", "new", "--report", "p.html", "--evaluate")
    done = world.json("tokens", "model", "terms.txt", "--source", "other.vec", *page)
    assert {"auto", "paper", "ridge"} <= set(done["evaluation"]["methods"])
    assert "kernel ridge regression" in (world.folder / "p.html").read_text()
    arguments = ("tokens", "model", "terms.txt", "--source", "other.vec", "-o", "other")
    assert "--evaluate" in world.refused(*arguments, "--method", "paper", "--evaluate")


def test_rows_are_those_of_the_same_imputation_in_python(world: World):
    world.json("tokens", "model", "terms.txt", "--source", "facts.csv", "-o", "new", "--seed", "3")
    terms = read_terms(world.folder / "terms.txt")
    found = vf.impute_tokens(world.folder / "model", terms, world.folder / "facts.csv", seed=3)
    new = vf.read_model(world.folder / "new")
    for term in ("white gold", "radium", "tin-foil"):
        np.testing.assert_array_equal(new[term], found.result.embedding[term])


def test_the_summary_says_what_was_done(world: World):
    status, out, err = world.run(
        "tokens", "model", "terms.txt", "--source", "other.vec", "-o", "new"
    )
    assert status == 0, err
    for part in ("Terms       5", "Skipped     2", "word3: is one token already", "3 tokens added"):
        assert part in out
    assert f"{INPUT}: as given" in out


def test_options_reach_the_method(world: World):
    done = world.json(
        "tokens", "model", "terms.txt", "--source", "facts.csv", "-o", "new",
        "--method", "paper", "--match", "exact",
    )  # fmt: skip
    assert done["result"]["method"]["min_degree"] == 8
    # Without loose matching neither "white gold" nor "radium" is spelled as in the table.
    assert list(done["ids"]) == ["tin-foil"]


def test_terms_may_be_a_table_or_have_aliases(world: World):
    world.write("terms.csv", "term,why\nwhite gold,a\nabsent,b\n")
    world.write("aliases.csv", "entity,word\nabsent,nobody\n")
    done = world.json(
        "tokens", "model", "terms.csv", "--source", "other.vec", "-o", "new",
        "--aliases", "aliases.csv",
    )  # fmt: skip
    assert list(done["ids"]) == ["white gold", "absent"]


REFUSED = [
    (("--source", "other.vec", "-o", "model"), "model exists already"),
    (("--source", "nothing.vec", "-o", "new"), "does not exist"),
    (("--source", "other.vec", "-o", "new", "--head", "mean"), "no output table"),
    (("--source", "other.vec", "-o", "new", "--key", "name"), "is a file of word vectors"),
    (("--source", "facts.csv", "-o", "new", "--member", "x"), "not a file of word vectors"),
    (("--source", "pieces", "-o", "new", "--key", "name"), "word pieces are not read from a file"),
    (("--source", "facts.csv", "-o", "new", "--tensor", "x"), "has no table 'x'"),
    (("--source", "facts.csv", "--source", "facts.csv", "-o", "new"), "the same source twice"),
    (("--source", "facts.csv", "-o", "new", "--report", "facts.csv"), "is the input facts.csv"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_bad_requests_are_refused_before_anything_is_written(
    world: World, words: tuple[str, ...], message: str
):
    assert message in world.refused("tokens", "model", "terms.txt", *words)
    assert not (world.folder / "new").exists()


def test_several_sources_are_fused(world: World):
    words = [f"word{i}" for i in range(N_WORDS)]
    rng = np.random.default_rng(5)
    world.write_table("noise.csv", [*words, "white gold", "absent"], rng.normal(size=(62, 3)))
    done = world.json(
        "tokens", "model", "terms.txt", "-o", "new",
        "--source", "facts.csv", "--source", "noise.csv",
    )  # fmt: skip
    assert list(done["ids"]) == ["white gold", "radium", "tin-foil"]
    assert done["skipped"]["absent"] == "is described only by sources that were dropped"
    told = {each["name"]: each["is_kept"] for each in done["result"]["sources"]}
    assert told == {"facts": True, "noise": False}


def test_sources_fill_each_other_s_gaps(world: World):
    """Either source alone does as well on hidden words, but each has a term the other lacks."""
    facts = (world.folder / "facts.csv").read_text()
    world.write("one.csv", "".join(each for each in facts.splitlines(True) if "Radium" not in each))
    found = vf.read_embedding(
        world.folder / "other.vec", words=[*(f"word{i}" for i in range(N_WORDS)), "Radium"]
    )
    vf.write_embedding(found, world.folder / "two.vec")
    done = world.json(
        "tokens", "model", "terms.txt", "-o", "new",
        "--source", "one.csv", "--source", "two.vec", "--key", "name", "--format", "word2vec-text",
    )  # fmt: skip
    assert done["ids"].keys() == {"white gold", "radium", "tin-foil"}
    alone = vf.impute_tokens(world.folder / "model", ["radium"], world.folder / "other.vec")
    new = vf.read_model(world.folder / "new")
    cosine = new["radium"] @ alone.result.embedding["radium"]
    cosine /= np.linalg.norm(new["radium"]) * np.linalg.norm(alone.result.embedding["radium"])
    assert cosine > 0.99


def test_a_term_without_a_row_in_the_head_is_skipped(world: World):
    """The head follows another table than the input table, and that one lacks radium."""
    rng = np.random.default_rng(4)
    model, words = world.folder / "model", [f"word{i}" for i in range(N_WORDS)]
    old = vf.read_model(model)
    places = rng.normal(size=(N_WORDS + 2, 3))
    tables = {INPUT: old[words], HEAD: places[:N_WORDS] @ rng.normal(size=(3, N_DIMS))}
    special = np.zeros((2, N_DIMS))
    tables = {name: stored(np.vstack([special, rows]), "F32") for name, rows in tables.items()}
    write_weights(model / "model.safetensors", tables)
    world.write_table("more.csv", [*words, "white gold", "tin-foil"], places)
    sources = ("--source", "facts.csv", "--source", "more.csv")
    done = world.json("tokens", "model", "terms.txt", "-o", "new", *sources)
    assert list(done["ids"]) == ["white gold", "tin-foil"]
    why = "is described by no source that helps the output table"
    assert done["skipped"]["radium"] == why
    assert world.json("verify", "model", "new")["ok"]


def test_terms_that_cannot_be_tokens_are_refused(world: World):
    world.write("known.txt", "word3\nWORD4\n")
    message = world.refused("tokens", "model", "known.txt", "--source", "other.vec", "-o", "new")
    assert "No term can be given a token" in message


def test_folders_are_verified_and_not_read_as_files(world: World):
    world.json("tokens", "model", "terms.txt", "--source", "other.vec", "-o", "new")
    assert "--format cannot" in world.refused("verify", "model", "new", "--format", "glove")
    config = world.folder / "new" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_size": 1}))
    assert "config.json differs by more than added tokens" in world.refused(
        "verify", "model", "new"
    )


def test_pieces_say_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vecfill\[hf\]'"):
        vf.word_pieces(world.folder / "model", ["radium"])


def test_options_that_tokens_cannot_use_are_refused(world: World):
    with pytest.raises(OptionError, match="min_count=3"):
        vf.impute_tokens(
            world.folder / "model", ["radium"], world.folder / "facts.csv", min_count=3
        )
    with pytest.raises(InputError, match="head"):
        vf.impute_tokens(world.folder / "model", ["radium"], world.folder / "facts.csv", head="all")


def test_two_spellings_of_one_term_give_one_token(world: World):
    found = vf.impute_tokens(
        world.folder / "model", ["radium", "RADIUM"], world.folder / "facts.csv"
    )
    assert found.result.embedding.words == ("radium",)
    assert found.skipped == {"RADIUM": "is the same to the tokenizer as 'radium'"}


def test_a_term_that_looks_like_a_token_is_still_new(world: World):
    """Names are matched loosely elsewhere; here "word-3" would be taken for the token "word3"."""
    table = {f"word{i}": [float(i), float(i % 7)] for i in range(N_WORDS)} | {"word-3": [3.5, 3.0]}
    found = vf.impute_tokens(world.folder / "model", ["word-3"], table, force=True)
    assert found.result.embedding.words == ("word-3",)
