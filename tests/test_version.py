"""One place holds the version, and the changelog has it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import vecfill

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_read_from_the_package_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/vecfill/__init__.py"


def test_the_changelog_has_a_section_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert titles[0] == "Unreleased"
    assert vecfill.__version__ in titles
