"""The page of a run, in a real browser that has no network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from vecfill import Embedding, InputError, evaluate, impute
from vecfill.views.page_data import page_data
from vecfill.views.report import page, write_report

from .conftest import STRANGE

AXE = Path(__file__).parent / "axe" / "axe.min.js"


@pytest.fixture(scope="module")
def report(small_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    evaluation = evaluate(
        small_run.domain,
        Embedding(small_run.known.words, small_run.known.vectors),
        match="exact",
        folds=2,
    )
    rng = np.random.default_rng(1)
    columns = {
        "size": {name: float(rng.integers(100)) for name in small_run.domain.entities},
        "kind": {name: f"kind {len(name) % 3}" for name in small_run.domain.entities[:-1]},
        "=rude": dict.fromkeys(small_run.domain.entities, "=1+1"),
    }
    title = "Towns & <b>others</b>"
    write_report(small_run, path, evaluation=evaluation, columns=columns, title=title)
    return path


def data_of(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def wait_for_rows(shown, n_rows):
    """Wait until the table shows so many rows; the page's policy keeps Playwright from polling."""
    for _ in range(200):
        if shown.locator("#table tbody tr").count() == n_rows:
            return
        shown.wait_for_timeout(20)
    pytest.fail(f"the table never showed {n_rows} rows")


def test_the_page_needs_no_network_and_says_nothing_to_the_console(report, open_page):
    shown = open_page(report)
    assert shown.inner_text("h1") == "Imputation works well on this data"
    assert "17 vectors imputed from 50 known" in shown.inner_text("#numbers")
    assert shown.inner_text("#title") == "Towns & <b>others</b>"
    assert shown.complaints == []
    assert report.stat().st_size < 5_000_000
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", report.read_text(encoding="utf-8"))


def test_searching_leaves_the_entities_that_match(report, open_page):
    shown = open_page(report)
    shown.fill("#search", "TOWN 50")
    entities = data_of(report)["entities"]
    known = data_of(report)["known"]
    near = [{known[k] for k in (*a[:3], *b[:3])} for a, b in
            zip(entities["nearest"], entities["contributors"], strict=True)]  # fmt: skip
    n_found = sum(
        "town 50" in name or any("town 50" in each for each in names)
        for name, names in zip(entities["name"], near, strict=True)
    )
    wait_for_rows(shown, n_found)
    # Names come first; what is near such a name, after them.
    assert shown.inner_text("#table tbody tr:first-child").startswith("town 50")
    assert (
        shown.inner_text("#table-status")
        == f"{n_found} entit{'y' if n_found == 1 else 'ies'} found"
    )
    shown.fill("#search", "no such thing")
    shown.locator("#table td", has_text="Nothing matches").wait_for()
    assert shown.complaints == []


def test_sorting_orders_the_whole_table_both_ways(report, open_page):
    shown = open_page(report)
    header = shown.locator("#table th", has_text="Confidence")
    cells = "[...document.querySelectorAll('#table tbody td:nth-child(2)')].map(c => +c.innerText)"
    falling = shown.evaluate(cells)
    assert header.get_attribute("aria-sort") == "descending"
    assert falling == sorted(falling, reverse=True)
    header.get_by_role("button").press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert shown.evaluate(cells) == sorted(falling)


def test_an_entity_shows_contributions_that_sum_to_the_whole(report, open_page, small_run):
    shown = open_page(report)
    shown.click("#table tbody tr:has-text('town 55')")
    assert shown.inner_text("#detail-title") == "town 55"
    shares = shown.evaluate(
        "[...document.querySelectorAll('#shares .share')].map(s => parseFloat(s.textContent))"
    )
    assert sum(shares) == pytest.approx(100, abs=1e-6)
    told = small_run.explain("town 55", n=1)
    assert shares[0] == pytest.approx(100 * told.shares[0], abs=0.06)
    assert told.contributors[0] in shown.inner_text("#shares li:first-child")


def test_the_keyboard_alone_opens_and_closes_an_entity(report, open_page):
    shown = open_page(report)
    shown.focus("#table tbody tr:nth-child(2) button")
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "detail"
    assert shown.locator("#shares").count() == 1
    shown.keyboard.press("Escape")
    assert shown.locator("#shares").count() == 0
    assert shown.evaluate("document.activeElement.className") == "name"


def test_the_map_and_the_table_choose_together(report, open_page):
    shown = open_page(report)
    x, y, row = shown.evaluate(
        """() => {
          const data = JSON.parse(document.getElementById('data').textContent).map;
          const canvas = document.getElementById('map');
          canvas.scrollIntoView({behavior: 'instant', block: 'center'});
          const edge = 12, box = canvas.getBoundingClientRect();
          const unit = Math.min((box.width - 2 * edge) / data.width,
                                (box.height - 2 * edge) / data.height);
          const left = (box.width - unit * data.width) / 2;
          const low = (box.height + unit * data.height) / 2;
          return [box.left + left + unit * data.imputed[1],
                  box.top + low - unit * data.imputed[2], data.imputed[0]];
        }"""
    )
    shown.mouse.click(x, y)
    wanted = data_of(report)["entities"]["name"][row]
    assert shown.inner_text("#detail-title")[:20] == wanted[:20]
    assert shown.locator("#table tr.chosen").get_attribute("data-row") == str(row)


def test_dark_mode_follows_the_system_and_the_button(report, open_page):
    ground = "getComputedStyle(document.body).backgroundColor"
    shown = open_page(report)
    light = shown.evaluate(ground)
    shown.click("#theme")
    dark = shown.evaluate(ground)
    assert dark != light
    assert shown.get_attribute("#theme", "aria-pressed") == "true"
    assert open_page(report, scheme="dark").evaluate(ground) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_problem_is_found(report, open_page, scheme):
    shown = open_page(report, scheme=scheme)
    shown.click("#table tbody tr:nth-child(1)")
    for summary in shown.locator("details:not(.menu) > summary").all():
        summary.click()
    shown.evaluate(
        "document.querySelectorAll('details.menu').forEach((menu) => { menu.open = true; })"
    )
    # The page's own policy admits no foreign script element; evaluation goes past it.
    shown.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.evaluate("axe.run().then(result => result.violations)")
    serious = [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_phone_needs_no_sideways_scrolling(report, open_page):
    shown = open_page(report, width=390, height=844)
    shown.click("#table tbody tr:nth-child(1) button")
    assert shown.evaluate("document.documentElement.scrollWidth") == 390


def test_strange_names_are_shown_as_text(report, open_page):
    shown = open_page(report)
    for name in STRANGE.values():
        shown.fill("#search", name[:20])
        wait_for_rows(shown, 1)
        button = shown.locator("#table tbody button", has_text=name[:8])
        button.wait_for()
        assert button.text_content()[:8] == name[:8]
        assert len(button.text_content()) <= 60
        if len(name) > 60:
            assert button.get_attribute("title") == name
        button.click()
        assert shown.locator("#detail-title").text_content()[:8] == name[:8]
    assert shown.complaints == []


def test_a_run_with_nothing_imputed_has_a_page(open_page, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"town {i}" for i in range(30)]
    run = impute(
        dict(zip(names, rng.normal(size=(30, 2)), strict=True)),
        Embedding(names, rng.normal(size=(30, 4))),
    )
    write_report(run, tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    assert shown.inner_text("h1") == "Nothing was imputed"
    assert "None." in shown.inner_text("#table")
    assert shown.complaints == []


def test_entities_left_out_are_listed(small_run, open_page, tmp_path):
    rng = np.random.default_rng(0)
    values = np.sort(small_run.confidence.values)
    run = impute(
        small_run.domain,
        Embedding(small_run.known.words, small_run.known.vectors),
        match="exact",
        min_confidence=float(values[5]),
    )
    write_report(run, tmp_path / "report.html", coordinates=rng.normal(size=(67, 2)))
    shown = open_page(tmp_path / "report.html")
    assert "5 left out" in shown.inner_text("#facts")
    data = data_of(tmp_path / "report.html")
    assert (
        data["entities"]["contributors"][0]
        == [
            run.known.row(name)
            for name in run.explain(data["entities"]["name"][0], n=8).contributors
        ][: len(data["entities"]["contributors"][0])]
    )


def test_twenty_thousand_entities_open_with_a_bounded_page(fake_run, open_page, tmp_path):
    # How long it takes is measured by benchmarks/bench_page.py.
    write_report(fake_run(20_000), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    shown = open_page(tmp_path / "report.html")
    shown.wait_for_selector("#table tbody tr:nth-child(25)")
    assert shown.locator("*").count() < 5000
    shown.get_by_role("button", name="Last").first.click()
    assert "20,000 of 20,000" in shown.inner_text("#table .pager")
    assert "2,000 entities of highest confidence" in shown.inner_text("#table-card")
    assert shown.complaints == []


@pytest.mark.slow
def test_two_hundred_thousand_entities_open(fake_run, open_page, tmp_path):
    write_report(fake_run(200_000), tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    shown.wait_for_selector("#table tbody tr:nth-child(25)")
    assert shown.complaints == []


def test_shares_in_thousandths_never_exceed_the_whole(fake_run):
    data = page_data(fake_run(300))
    assert all(sum(shares) <= 1000 for shares in data["entities"]["shares"])
    assert all(share >= 0 for shares in data["entities"]["shares"] for share in shares)


def test_an_existing_page_is_kept_unless_told(small_run, tmp_path):
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"report\.html"):
        write_report(small_run, tmp_path / "report.html")
    write_report(small_run, tmp_path / "report.html", overwrite=True)
    assert "vecfill" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_coordinates_of_another_table_are_refused(small_run, tmp_path):
    with pytest.raises(InputError, match=r"Pass shape \(67, 2\)"):
        write_report(small_run, tmp_path / "report.html", coordinates=np.zeros((3, 2)))


def test_nothing_in_the_data_can_leave_its_element():
    text = page({"title": "</script><script>alert(1)</script>", "known": ["<!--", "/*SCRIPTS*/"]})
    assert text.count("</script>") == 2
    assert "<!--" not in text.partition('id="data">')[2].partition("</script>")[0]


def test_entities_come_by_confidence_with_their_own_numbers(small_run):
    shown = page_data(small_run)["entities"]
    row = [small_run.embedding.row(name) for name in small_run.embedding.words]
    of = {name: place for place, name in enumerate(shown["name"])}
    values, bounds = small_run.confidence.values, small_run.confidence.lower_bound
    assert shown["confidence"] == sorted(shown["confidence"], reverse=True)
    for number, name in zip(row, small_run.embedding.words, strict=True):
        if name in of:
            assert shown["confidence"][of[name]] == round(values[number] * 1000)
            assert shown["lower"][of[name]] == round(bounds[number] * 1000)
