"""What users do by mistake, and the message that helps them."""

from __future__ import annotations

import os
import pty
from typing import Any

import numpy as np
import pytest

import vecfill
from tests.shell import World, started
from vecfill import Embedding, LatentSemanticImputer
from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain
from vecfill.io.names import read_names


@pytest.fixture
def world(tmp_path, capsys):
    return World(tmp_path, capsys)


def test_swapped_arguments_are_recognised(world):
    for words in (("match",), ("impute", "-o", "new.vec"), ("evaluate",)):
        message = world.refused(words[0], "towns.csv", "base.vec", *words[1:])
        assert "base.vec does hold word vectors: did you swap EMBEDDING and TABLE?" in message
    assert "swap" not in world.refused("match", "towns.csv", "towns.csv")


def test_excluding_every_known_entity_is_said_to_be_the_reason(world):
    world.write("names.txt", "\n".join(world.towns))
    options = ("base.vec", "towns.csv", "-o", "new.vec", "--exclude", "names.txt")
    message = world.refused("impute", *options)
    assert "No known entity is left to learn from: 60 excluded" in message
    assert "Exclude fewer (--exclude)" in message


def test_messages_of_commands_name_their_own_options(world):
    world.write("new.vec", "old")
    message = world.refused("convert", "base.vec", "new.vec")
    assert "Allow overwriting it (--overwrite), or choose" in message
    assert "or pass --to" in world.refused("convert", "base.vec", "new.xyz")
    world.write("edges.csv", "a,b,c,d\nx,y,z,1\n")
    message = world.refused("match", "base.vec", "edges.csv", "--kind", "edges")
    assert "name them (--edge-columns)" in message
    assert "--ridge inf is not a finite number" in world.refused(
        "impute", "base.vec", "towns.csv", "-o", "x.vec", "--ridge", "inf"
    )


def test_columns_of_an_edge_list_can_be_named_in_a_shell(world):
    world.write("edges.csv", "id,one,other\n1,town1,town2\n2,town2,town50\n")
    options = ("--kind", "edges", "--edge-columns", "one", "--edge-columns", "other")
    found = world.json("match", "base.vec", "edges.csv", *options)
    assert [each["entity"] for each in found["matches"]] == ["town1", "town2", "town50"]


def test_a_terminal_gets_no_control_characters_from_csv(world):
    world.write("odd.vec", b"2 1\nblue 3\nred\x1b[31m 2\n")
    world.write("odd.csv", "name,x\nred\x1b[31m,2\nblue,3\n")
    words = ["match", "odd.vec", "odd.csv", "-o", "-"]
    seen, shown = pty.openpty()
    process = started(world.folder, words, stdout=shown)
    os.close(shown)
    text = b""
    while True:
        try:
            piece = os.read(seen, 4096)
        except OSError:  # what Linux says when the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(seen)
    _, err = process.communicate()
    assert process.returncode == 0, err
    # Numba ends by resetting colours if colorama happens to be installed.
    assert b"\x1b" not in text.removesuffix(b"\x1b[0m")
    assert b"\\x1b[31m" in text
    # A pipe or a file gets the name as it is.
    assert "red\x1b[31m" in world.run(*words)[1]


MASKED = np.ma.masked_array(np.arange(12.0).reshape(4, 3), mask=np.eye(4, 3, dtype=bool))


def test_masked_values_are_never_taken_for_known_ones():
    whole = np.arange(12.0).reshape(4, 3)
    for rows, vectors in ((MASKED, whole), (whole, MASKED)):
        with pytest.raises(InputError, match="masked array, and 3 of its values are masked"):
            LatentSemanticImputer(min_degree=2).fit(rows, vectors)
    with pytest.raises(InputError, match="some values are masked"):
        Embedding(list("abcd"), MASKED)
    with pytest.raises(InputError, match="some values are masked"):
        vecfill.impute({"a": [1.0], "b": [2.0]}, dict(zip("abcd", MASKED, strict=True)))
    # In a mapping of features, as in an array of them, masked means missing.
    domain = as_domain(dict(zip("abcd", MASKED, strict=True)))
    assert any("missing" in note for note in domain.notes)
    # A mask that hides nothing is no obstacle.
    open_mask = np.ma.masked_array(whole, mask=False)
    assert len(Embedding(list("abcd"), open_mask)) == 4


def test_an_absurd_floor_of_weights_is_refused():
    with pytest.raises(InputError, match=r"weight_floor=1e\+308 is out of range.*at most 1e\+06"):
        vecfill.LatentSemantic(weight_floor=1e308)


IMPUTE = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--method", "paper")


@pytest.mark.parametrize("option", ["--output", "--report", "--save"])
def test_a_list_of_names_is_an_input_like_any_other(world, option):
    world.write("names.txt", "town3\n")
    words = (*IMPUTE, "--exclude", "names.txt", option, "names.txt", "--overwrite")
    assert "names.txt is the input names.txt itself" in world.refused(*words)


def test_a_saved_model_may_be_no_input_and_no_other_result(world):
    world.write("counts.csv", "town1,3\n")
    options = ("--counts", "counts.csv", "--report", "new.html", "--overwrite")
    for place in ("base.vec", "towns.csv", "counts.csv"):
        message = world.refused(*IMPUTE, *options, "--save", place)
        assert f"{place} is the input {place} itself" in message
    for place in ("new.vec", "new.html", "new.vec.manifest.json"):
        message = world.refused(*IMPUTE, *options, "--save", place)
        assert "is named for two results" in message
    words = ("impute", "base.vec", "towns.csv", "-o", "new", "--work", "work", "--save", "m")
    assert "--save cannot be used with --work" in world.refused(*words)


def test_no_source_takes_the_place_of_another_of_the_same_name(world):
    rows = [f"{name},{place[0]:.3f},a town" for name, place in world.pairs]
    for column in ("about", "table"):
        world.write(f"{column}.csv", "\n".join([f"name,x,{column}", *rows]) + "\n")
    words = ("impute", "base.vec", "about.csv", "-o", "new.vec", "--text", "about")
    message = world.refused(*words, "--source", "about=towns.csv")
    assert "two sources are called 'about'" in message
    words = ("impute", "base.vec", "table.csv", "-o", "new.vec", "--text", "table")
    assert "two sources are called 'table'" in world.refused(*words)


def test_sources_and_texts_that_cannot_be_read_are_refused_by_their_own_option(world):
    words = ("impute", "base.vec", "towns.csv", "-o", "new.vec")
    message = world.refused(*words, "--source", "f=towns.csv:edgez")
    assert "'edgez' is no kind of source. Kinds are features" in message
    message = world.refused(*words, "--text", "x", "--kind", "edges")
    assert "--text 'x' names a column of a table of features, and this one holds edges" in message
    message = world.refused(*words, "--encoder", ".")
    assert "Name its column with --text, or pass the texts" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"town1,3\ntown1,900\n", "counts 'town1' twice, as 3 and as 900"),
        (b'town1,"1,000"\ntown2,3\n', "the count of 'town1' is '1,000'"),
        (b"town1\n", "pairs need two: an entity and its count."),
        ("towné,1\n".encode("latin-1"), "byte 0xe9). Save it as UTF-8."),
    ],
    ids=["twice", "thousands", "one column", "not UTF-8"],
)
def test_counts_that_could_be_misread_are_refused(world, content, words):
    world.write("counts.csv", content)
    assert words in world.refused(*IMPUTE, "--counts", "counts.csv")


def test_messages_about_tables_with_vectors_speak_of_shell_options(world):
    cells = ["[1.0, 2.0]", "[" * 100_000, ""]
    rows = [f'a{number},{number},"{cell}"' for number, cell in enumerate(cells)]
    world.write("items.csv", "\n".join(["name,x,v", *rows]) + "\n")
    words = ("impute", "items.csv", "--vector", "v", "-o", "new.csv")
    assert "is '[[[[" in world.refused(*words)
    assert "--source 'f=towns.csv' cannot be used" in world.refused(
        *words, "--source", "f=towns.csv"
    )
    message = world.refused(*words, "--confidence-column", "v")
    assert "--confidence-column 'v' is the column of names or of vectors" in message
    assert "is no name for a column" in world.refused(*words, "--confidence-column", "")


def test_a_job_in_pieces_writes_into_no_input_and_no_results_into_its_work_folder(world):
    for name in ("items", "vectors"):
        (world.folder / name).mkdir()
        world.write(f"{name}/part-00000.parquet", b"PAR1")
    for out, work in (
        ("items", "w"),
        ("vectors/new", "w"),
        ("w", "w"),
        ("w/out", "w"),
        ("o", "items"),
    ):
        words = ("impute", "vectors", "items", "-o", out, "--work", work, "--overwrite")
        assert "is an input or the work folder" in world.refused(*words)


def test_a_folder_of_a_model_is_an_input_like_any_other(world):
    world.write("terms.txt", "town50\n")
    (world.folder / "model").mkdir()
    words = ("tokens", "model", "terms.txt", "--source", "towns.csv", "-o")
    for more in (("model/new",), ("new", "--report", "model/page.html")):
        assert "lies in model, which is never written to" in world.refused(*words, *more)
    message = world.refused(*words, "new", "--report", "base.vec")
    assert "base.vec exists already. Choose another name." in message


def test_lists_of_names_are_read_line_by_line(world):
    world.write("names.txt", "a\u2028b\r\n\ufeffc\n\n".encode())
    assert read_names(world.folder / "names.txt") == ["a\u2028b", "\ufeffc"]
    with pytest.raises(InputError, match=r"none.txt: cannot be read: No such file"):
        read_names(world.folder / "none.txt")
    world.write("names.txt", b"\xff")
    with pytest.raises(InputError, match=r"Save it as UTF-8\."):
        read_names(world.folder / "names.txt")


def test_a_loop_of_links_is_refused_wherever_a_path_is_given(world):
    (world.folder / "loop").symlink_to("loop")
    words = ("--method", "paper")
    assert "cannot be read" in world.refused("convert", "loop", "new.bin")
    assert "cannot be read" in world.refused("match", "base.vec", "loop")
    assert "cannot be written" in world.refused("convert", "base.vec", "loop", "--to", "glove")
    for option in ("--output", "--report", "--save"):
        message = world.refused("impute", "base.vec", "towns.csv", "-o", "x.vec", option, "loop")
        assert "loop: cannot be written" in message
    pieces = ("impute", "base.vec", "towns.csv", *words, "--engine", "serial")
    assert "loop" in world.refused(*pieces, "--work", "loop", "-o", "out")


def test_what_is_no_path_is_refused_as_such(world):
    no_path: list[Any] = [None, 7, b"new.vec"]
    wrong: Any = world.base
    for call in (
        lambda: vecfill.read_embedding(no_path[0]),
        lambda: vecfill.load(no_path[1]),
        lambda: vecfill.write_embedding(world.base, no_path[2]),
        lambda: vecfill.enrich("base.vec", "towns.csv", no_path[0]),
    ):
        with pytest.raises(InputError, match=r"is not the name of a file. Pass a string"):
            call()
    with pytest.raises(InputError, match="cannot be read"):
        vecfill.enrich("no\0name", "towns.csv", world.folder / "new.vec")
    with pytest.raises(InputError, match="of type Embedding is no result"):
        vecfill.write_report(wrong, "page.html")


def test_a_goal_is_refused_where_nothing_is_chosen(world):
    for setting in (("--method", "paper"), ("--min-degree", "4")):
        message = world.refused(*IMPUTE[:5], *setting, "--goal", "rank")
        assert "--goal 'rank' is about how auto chooses, and here nothing is chosen" in message


def test_half_a_character_in_a_name_is_shown_escaped_and_written_to_no_file(world, tmp_path):
    table = dict(zip([*world.towns[:59], "\ud800x"], world.places, strict=True))
    result = vecfill.impute(table, world.base, method="paper")
    vecfill.write_report(result, tmp_path / "page.html")
    assert "\\\\ud800x" in (tmp_path / "page.html").read_text()
    assert result.to_arrow()["entity"][-1].as_py() == "\\ud800x"
    for suffix in ("vec", "bin", "csv", "npz", "parquet", "safetensors"):
        with pytest.raises(InputError, match=r"holds '.ud800', half of a character"):
            vecfill.write_embedding(result.embedding, tmp_path / f"new.{suffix}")
    assert not list(tmp_path.glob("new.*"))


def test_new_vectors_have_as_many_numbers_as_those_of_the_fit(world):
    constant = np.column_stack([world.places[:, :2], np.ones(60), world.places[:, 2]])
    for places in (world.places, constant):
        result = vecfill.impute(
            dict(zip(world.towns, places, strict=True)), world.base, method="paper"
        )
        model = result.to_model()
        assert len(model.add({"new": places[50]}).embedding) == 1
        for values in (places[50][:-1], np.append(places[50], 1.0)):
            with pytest.raises(InputError, match=r"fitted to vectors of \d numbers. Pass as many"):
                model.add({"new": values})
        number: Any = 3
        for found in (result, model):
            with pytest.raises(InputError, match="not"):
                found.explain(number)


def test_a_filled_table_is_not_named_like_word_vectors(world):
    rows = [f"{name},1,{index}" for index, name in enumerate(world.towns)]
    world.write("items.csv", "\n".join(["name,x,v", *rows]) + "\n")
    message = world.refused("impute", "items.csv", "--vector", "v", "-o", "new.vec")
    assert "new.vec: the result has the format of items.csv" in message


def test_a_date_for_builds_that_is_no_number_used_to_be_a_bug_of_ours(world, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "abc")
    assert "SOURCE_DATE_EPOCH is 'abc', but it must be a whole" in world.refused(*IMPUTE)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert "SOURCE_DATE_EPOCH" not in world.refused(*IMPUTE, "--ridge", "inf")
