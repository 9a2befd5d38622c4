"""What readers of a page choose: columns, sections, colours, and where an entity is shown."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from tests.views.test_report import data_of
from vecfill import InputError, write_report
from vecfill.views import report as report_module
from vecfill.views.report import SECTIONS

DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
)
"""Linear sRGB as people without green cones see it; Machado, Oliveira and Fernandes, 2009."""


@pytest.fixture
def animals(small_run, tmp_path):
    """The page of a run whose table has a class of four letters and a long text."""
    names = small_run.embedding.words
    columns = {
        "class": {name: "abcd"[place % 4] for place, name in enumerate(names)},
        "text": dict.fromkeys(names, "words " * 30),
    }
    write_report(small_run, tmp_path / "page.html", columns=columns)
    return tmp_path / "page.html"


def test_a_column_can_be_left_out_and_shown_again(animals, open_page):
    page = open_page(animals)
    page.wait_for_selector("#table tbody tr")
    heads = "[...document.querySelectorAll('#table th')].filter((th) => !th.hidden).length"
    cells = (
        "[...document.querySelector('#table tbody tr').children].filter((td) => !td.hidden).length"
    )
    before = page.evaluate(heads)
    page.click("#columns-menu summary")
    page.get_by_label("text", exact=True).uncheck()
    assert page.evaluate(heads) == page.evaluate(cells) == before - 1
    page.get_by_label("text", exact=True).check()
    assert page.evaluate(heads) == page.evaluate(cells) == before
    assert page.complaints == []


def test_cells_of_the_table_have_one_line(animals, open_page):
    page = open_page(animals)
    page.wait_for_selector("#table tbody tr")
    heights = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].map((tr) => tr.offsetHeight)"
    )
    assert max(heights) < 45


def test_an_entity_of_the_table_opens_beside_it_and_one_of_the_map_beside_the_map(
    animals, open_page
):
    page = open_page(animals)
    page.wait_for_selector("#table tbody tr")
    assert not page.evaluate("document.getElementById('detail').classList.contains('drawer')")
    page.locator("#table tbody tr").nth(2).click()
    assert page.evaluate("document.getElementById('detail').classList.contains('drawer')")
    box = page.locator("#detail").bounding_box()
    assert box["y"] < 60
    card = page.locator("#table-card").bounding_box()
    assert card["x"] + card["width"] <= box["x"]
    page.click("#detail button")
    assert not page.evaluate("document.getElementById('detail').classList.contains('drawer')")


def test_points_can_have_the_colours_of_a_category(animals, open_page):
    page = open_page(animals)
    page.wait_for_selector("#table tbody tr")
    buttons = page.locator("#map-colours button")
    assert "class" in buttons.all_inner_texts()
    assert "text" not in buttons.all_inner_texts()  # one text for all tells nobody apart
    page.locator("#map-colours button", has_text="class").click()
    assert sorted(page.inner_text("#map-legend").split()) == ["a", "b", "c", "d", "known"]
    assert page.complaints == []


def test_a_short_page_shows_the_sections_asked_for_and_can_show_the_others(
    small_run, open_page, tmp_path
):
    write_report(small_run, tmp_path / "page.html", sections=["entities"])
    page = open_page(tmp_path / "page.html")
    page.wait_for_selector("#table tbody tr")
    assert page.is_visible("#entities")
    assert not page.is_visible("#names")
    assert page.locator("#sections a:visible").all_inner_texts() == ["Entities"]
    page.click("#section-menu summary")
    page.locator("#section-choice").get_by_label("Names").check()
    assert page.is_visible("#names")
    assert page.complaints == []


def test_a_section_that_is_not_there_is_refused(small_run, tmp_path):
    with pytest.raises(InputError, match="vectors, proof, sources"):
        write_report(small_run, tmp_path / "page.html", sections=["prof"])
    assert not (tmp_path / "page.html").exists()


def test_every_section_of_the_page_can_be_asked_for(animals):
    text = animals.read_text(encoding="utf-8")
    assert tuple(re.findall(r'<section id="(\w+)" data-nav', text)) == SECTIONS
    assert data_of(animals)["shown"] is None


def test_colours_of_groups_are_told_apart_without_green_cones():
    assets = report_module.files("vecfill.views") / "assets"
    line = next(
        line
        for line in (assets / "map.js").read_text(encoding="utf-8").splitlines()
        if line.startswith("const GROUP_COLOURS")
    )
    colours = [_as_seen(colour) for colour in re.findall(r"#([0-9a-f]{6})", line)]
    assert len(colours) == 10
    nearest = min(
        float(np.linalg.norm(one - other)) for one, other in itertools.combinations(colours, 2)
    )
    assert nearest > 9.0  # CIE 1976 distance; 2.3 is just noticeable


def _as_seen(colour: str) -> np.ndarray:
    """Return L*, a*, b* of a colour as people without green cones see it."""
    encoded = np.array([int(colour[place : place + 2], 16) for place in (0, 2, 4)]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    colours = np.clip(DEUTERANOPIA @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ratio = np.array(to_xyz) @ colours / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
