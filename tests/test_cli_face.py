"""How the command line looks: help, summaries, suggestions, completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.shell import N_KNOWN, N_TOWNS, World
from tests.views.test_report import data_of
from vecfill.cli import main
from vecfill.cli.commands import EXAMPLES, PANELS, command

IMPUTE = ("impute", "base.vec", "towns.csv", "-o", "new.vec")


@pytest.fixture
def world(tmp_path, capsys):
    return World(tmp_path, capsys)


def help_of(name, capsys):
    assert main([name, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_help_fits_the_terminal(name, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = help_of(name, capsys)
    body = text.partition("Examples:")[0]
    # Choices of an option stand in one word, which cannot be broken.
    long = [line for line in body.splitlines() if len(line) > width and "|" not in line]
    assert long == []
    assert max(map(len, text.splitlines())) <= max(width, 80)


def test_options_are_grouped_in_one_order(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = help_of("impute", capsys)
    found = [line[:-1] for line in text.splitlines() if line[:-1] in PANELS]
    assert found == [panel for panel in PANELS if panel in found] == list(PANELS)
    names = text.partition("\nNames:")[2].partition("\nMethod:")[0]
    assert "--aliases" in names
    assert "--ridge" not in names


def test_every_option_is_under_a_heading_that_exists():
    for name, each in command().commands.items():
        for option in each.params:
            panel = getattr(option, "rich_help_panel", None)
            assert panel is None or panel in PANELS, (name, option.name, panel)


def test_help_leaves_out_what_only_python_can_do():
    for each in command().commands.values():
        texts = [option.help for option in each.params if getattr(option, "help", None)]
        assert [text for text in texts if "In Python" in text] == []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_are_commands_that_can_be_parsed(name):
    import shlex

    for line in EXAMPLES[name].strip().splitlines():
        program, verb, *words = shlex.split(line.strip())
        assert (program, verb) == ("vecfill", name)
        flags = {flag for one in command().commands[name].params for flag in one.opts}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= flags


def test_help_has_no_escape_codes_unless_it_goes_to_a_terminal(capsys):
    assert "\x1b" not in help_of("impute", capsys)


def test_a_summary_says_what_to_do_next(world):
    status, out, _ = world.run(*IMPUTE, "--match", "exact", "--exclude", "town3")
    assert status == 0
    assert len(out.splitlines()) <= 24
    assert "vecfill verify base.vec new.vec" in out
    explain = re.search(r"vecfill (explain .*)", out)[1]
    assert "--match exact --exclude town3" in explain
    status, told, _ = world.run(*explain.split())
    assert status == 0
    assert explain.split()[3] in told


def test_the_setting_is_told_in_words_and_exactly_if_asked(world):
    _, out, _ = world.run(*IMPUTE, "--min-degree", "5", "--ridge", "0.01")
    assert "5 neighbours, light smoothing" in out
    assert "min_degree 5" not in out
    _, out, _ = world.run(*IMPUTE, "--min-degree", "5", "--verbose", "--overwrite")
    assert "exactly: as_given, min_degree 5, ridge 0" in out


def test_evaluate_gives_the_whole_page_and_changes_no_vector(world):
    assert world.run(*IMPUTE)[0] == 0
    plain = (world.folder / "new.vec").read_bytes()
    status, out, err = world.run(*IMPUTE, "--overwrite", "--report", "page.html", "--evaluate")
    assert status == 0, err
    assert (world.folder / "new.vec").read_bytes() == plain
    data = data_of(world.folder / "page.html")
    assert data["heldout"]["n_hidden"] == N_KNOWN
    assert [each["name"] for each in data["columns"]] == ["x", "y", "z"]
    assert len(data["entities"]["columns"][0]) == N_TOWNS - N_KNOWN
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    assert about["evaluation"]["verdict"] == data["verdict"]["text"]
    assert "Compared    " in out
    assert "page.html in a browser" in out


def test_evaluate_is_refused_where_nothing_is_chosen(world):
    said = world.refused(*IMPUTE, "--evaluate", "--method", "paper")
    assert "--evaluate" in said
    assert "new.vec" not in world.names()


def test_a_table_of_vectors_can_be_evaluated_too(world):
    rows = ["id,x,y,z,v"]
    for number, (town, place) in enumerate(zip(world.towns, world.places, strict=True)):
        vector = world.base[town].tolist() if number < N_KNOWN else ""
        cells = ",".join(f"{value:.4f}" for value in place)
        rows.append(f'{town},{cells},"{vector}"')
    world.write("items.csv", "\n".join(rows) + "\n")
    asked = ("impute", "items.csv", "--vector", "v", "-o", "out.csv", "--report", "p.html")
    status, _, err = world.run(*asked, "--evaluate")
    assert status == 0, err
    data = data_of(world.folder / "p.html")
    assert data["heldout"] is not None
    assert [each["name"] for each in data["columns"]] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("imput",), "Did you mean 'impute'?"),
        ((*IMPUTE, "--standardise"), "Did you mean '--standardize'?"),
        ((*IMPUTE, "--key", "nme"), "Did you mean 'name'?"),
        ((*IMPUTE, "--ignore", "X"), "Did you mean 'x'?"),
        (("impute", "towns.csv", "base.vec", "-o", "new.vec"), "did you swap EMBEDDING and TABLE?"),
        (("explain", "base.vec", "towns.csv", "twon50"), "town50"),
    ],
)
def test_misspelt_words_are_answered_with_the_nearest(world, words, said):
    assert said in world.refused(*words)


def test_a_long_list_of_notes_is_cut_but_not_in_the_manifest(world):
    lines = ["entity,word", *(f"town{number},no-word-{number}" for number in range(45, 55))]
    world.write("aliases.csv", "\n".join(lines) + "\n")
    command = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--aliases", "aliases.csv")
    status, _, err = world.run(*command)
    assert status == 0, err
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    assert len(about["notes"]) >= 10
    assert err.count("note: ") == 7
    assert f"note: {len(about['notes']) - 6} more notes are in the manifest" in err


def test_many_words_with_several_entities_share_one_note(world):
    doubled = [f"Town{number}" for number in range(10)]
    world.write_table("many.csv", [*world.towns, *doubled], [*world.places, *world.places])
    found = world.json("match", "base.vec", "many.csv")
    said = [note for note in found["notes"] if "more than one entity" in note]
    assert said == [
        "10 words were matched by more than one entity: 'town0' (town0, Town0), "
        "'town1' (town1, Town1), 'town2' (town2, Town2) and 7 more."
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    script = "from vecfill.cli import main; raise SystemExit(main())"
    asked = {
        "_VECFILL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "vecfill ev",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "vecfill ev",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "evaluate" in done.stdout
    assert "convert" not in done.stdout
