"""The page of all commands and options is that of the code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from vecfill.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "cli-reference.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^## vecfill (\w+)$", PAGE, re.MULTILINE)


def test_the_page_is_what_its_script_makes():
    made = runpy.run_path(str(ROOT / "scripts" / "build_cli_reference.py"))["reference"]()
    assert made == PAGE, "stale: run python scripts/build_cli_reference.py"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_has_the_options_that_help_shows(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}
    section = PAGE.partition(f"## vecfill {command}\n")[2].partition("\n## ")[0]
    rows = "\n".join(line.split(" | ")[0] for line in section.splitlines() if "| " in line)
    assert set(re.findall(r"--[a-z][a-z-]+", rows)) == told


def test_every_argument_and_option_says_what_it_is():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    # A sentence, not a hint: newcomers read it here first.
    short = [row for row in rows if len(row.rsplit(" | ", 1)[1].rstrip(" |").split()) < 4]
    assert short == []
    assert COMMANDS == [
        "impute",
        "evaluate",
        "explain",
        "match",
        "tokens",
        "status",
        "migrate",
        "add",
        "inspect",
        "verify",
        "convert",
        "demo",
    ]
