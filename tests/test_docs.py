"""Pages of the documentation: their links and pictures lead somewhere."""

from __future__ import annotations

import doctest
import inspect
import re
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import vecfill

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for folder in (ROOT, *(ROOT / name for name in ("docs", "examples", "experiments")))
    for path in (folder.glob("*.md") if folder == ROOT else folder.rglob("*.md"))
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")


def without_blocks(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(path: Path) -> list[str]:
    return LINK.findall(re.sub(r"`[^`\n]*`", "", without_blocks(path)))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ +(.*)$", without_blocks(path), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def broken(path: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for target in links(path):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        is_there = file.exists() and (not anchor or file.suffix != ".md" or anchor in anchors(file))
        found += [] if is_there else [target]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(path):
    assert broken(path) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n[a](#a-title) [b](#no-title) ![c](no.png) `[d](code)`\n")
    assert broken(page) == ["#no-title", "no.png"]


def test_every_picture_of_the_docs_is_shown_on_a_page():
    shown = {Path(target).name for path in PAGES for target in links(path)}
    pictures = {path.name for path in (ROOT / "docs" / "figures").iterdir()}
    assert pictures <= shown


def test_the_api_pages_describe_every_public_name():
    text = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r":: vecfill\.(\w+)$", text, re.M)) | set(dir(vecfill.errors))
    modules = {name for name in vecfill.__all__ if isinstance(getattr(vecfill, name), ModuleType)}
    assert set(vecfill.__all__) - modules - described == set()


def only_assertions(path: Path) -> list[str]:
    """Return the examples of a page that print nothing but True or False."""
    examples = doctest.DocTestParser().get_examples(path.read_text(encoding="utf-8"))
    return [
        each.source for each in examples if re.fullmatch(r"[(\s]*(True|False)[\s,)]*", each.want)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_show_results_and_not_assertions(path):
    assert only_assertions(path) == []


def test_an_example_that_prints_only_true_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(">>> 2 > 1\nTrue\n>>> 1 + 1\n2\n>>> True, 3\n(True, 3)\n")
    assert only_assertions(page) == ["2 > 1\n"]


def undescribed(function: FunctionType) -> list[str]:
    """Return the arguments of a function that its docstring does not describe."""
    text = (inspect.getdoc(function) or "").partition("\nExamples\n---")[0]
    described = re.findall(r"^([a-z_0-9, ]+)(?:=.*)?$\n    ", text, re.M)
    names = {name for line in described for name in line.split(", ")}
    return [each for each in inspect.signature(function).parameters if each not in names]


@pytest.mark.parametrize("name", [*vecfill.__all__, "io.verify", "io.append_rows"])
def test_public_functions_describe_every_argument(name):
    found = attrgetter(name)(vecfill)
    assert not isinstance(found, FunctionType) or undescribed(found) == []
