"""Messages in the shell name options of the shell, and none that does not exist there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import vecfill
from vecfill.cli.commands import command
from vecfill.cli.console import flags_of, in_shell_words
from vecfill.trust.prove.strata import Stratum

SOURCES = sorted(Path(vecfill.__file__).parent.rglob("*.py"))
ASSIGNED = re.compile(r"(?<![\w-])([a-z_]+)=(?!=)")
NOT_OPTIONS = {
    # Values that messages show, arguments of other libraries, and those of functions that
    # no command calls: of the estimator, of predictors, of reports.
    "level", "n", "name", "title", "coordinates", "manifest", "evaluation", "solver", "metric",
    "weight_rule", "weight_floor", "weights", "max_iter", "tol", "neighbors", "random_state",
    "n_neighbors", "n_components", "temperature", "alpha", "encoding", "p", "x", "y", "key",
}  # fmt: skip


def messages() -> set[tuple[str, str]]:
    """Return the strings of the library that speak of an argument, with their modules."""
    found = set()
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in docs and ASSIGNED.search(node.value):
                found.add((path.name, node.value))
    return found


def test_every_argument_that_a_message_names_is_translated_or_left_out():
    for module, text in messages():
        if " " not in text.strip():
            continue
        left = [name for name in ASSIGNED.findall(in_shell_words(text)) if name not in NOT_OPTIONS]
        kept = [name for name in left if name in flags_of("impute")]
        assert not kept, (module, text)


def test_flags_are_options_of_some_command():
    program = command()
    flags = {flag for each in program.commands.values() for one in each.params for flag in one.opts}
    for name in program.commands:
        assert set(flags_of(name).values()) <= flags
    assert "--from" in {flag for one in program.commands["convert"].params for flag in one.opts}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Allow it (overwrite=True), or not.", "Allow it (--overwrite), or not."),
        ("min_degree=0 is out of range.", "--min-degree 0 is out of range."),
        ("Say kind='edges'.", "Say --kind 'edges'."),
        ("It failed. Pass words= to read some. Or not.", "It failed. Or not."),
        ("Pass words= to read some.", "Pass words= to read some."),
        ("a.vec: x=1 is odd.", "a.vec: x=1 is odd."),
    ],
)
def test_options_are_spelled_as_in_the_shell(message, expected):
    assert in_shell_words(message) == expected


def test_shares_are_written_with_a_space_before_the_sign():
    root = Path(__file__).parent.parent
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("e*/**/README.md")]
    tight = re.compile(r"\d%(?![0-9A-F]{2})")
    for path in pages:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if tight.search(line)], path
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        specs = [node.format_spec for node in nodes if isinstance(node, ast.FormattedValue)]
        assert not [each for each in specs if each is not None and "%" in ast.unparse(each)], path


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_kind_that_cannot_be_proved_is_counted_in_words_that_fit(n):
    told = str(Stratum("names of several words", n, n, 0, None, None, None))
    who = "1 unknown entity has" if n == 1 else f"{n} unknown entities have"
    known = "1 known one does" if n == 1 else f"{n} known ones do"
    assert told == f"Cannot be proved: {who} names of several words, and only {known}"


def test_no_message_of_the_library_names_a_flag():
    for path in SOURCES:
        if "cli" in path.parts or path.name in ("groups.py", "demo.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = [
            node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]  # fmt: skip
        docs = [ast.get_docstring(node, clean=False) for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]  # fmt: skip
        flags = [text for text in texts if re.search(r"(?<!\w)--[a-z]", text) and text not in docs]
        assert not flags, (path, flags)
