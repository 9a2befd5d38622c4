"""Parts of the page in a browser: the map, the table's tools, links, proofs, sources and kinds."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from vecfill import Embedding, InputError, evaluate, impute
from vecfill.views.map_data import Groups
from vecfill.views.page_data import page_data
from vecfill.views.report import page, write_report

from .test_report import data_of, report, wait_for_rows  # noqa: F401 - report is a fixture

POINT = """(row) => {
  const data = JSON.parse(document.getElementById('data').textContent).map;
  const canvas = document.getElementById('map');
  canvas.scrollIntoView({behavior: 'instant', block: 'center'});
  const edge = 12, box = canvas.getBoundingClientRect();
  const unit = Math.min((box.width - 2 * edge) / data.width, (box.height - 2 * edge) / data.height);
  const left = (box.width - unit * data.width) / 2, low = (box.height + unit * data.height) / 2;
  const at = data.imputed.findIndex((value, k) => k % 3 === 0 && value === row);
  return [box.left + left + unit * data.imputed[at + 1],
          box.top + low - unit * data.imputed[at + 2]];
}"""


COUNT_LINES = """() => new Promise((done) => {
  const pen = CanvasRenderingContext2D.prototype, line = pen.lineTo;
  let count = 0;
  pen.lineTo = function (x, y) { count += 1; return line.call(this, x, y); };
  document.getElementById('theme').click();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const coast = JSON.parse(document.getElementById('data').textContent).map.coast;
    done(count - coast.reduce((sum, ring) => sum + ring.length / 2 - 1, 0));
  }));
})"""
"""Draws the map again and counts the lines on it that are no coast."""


@pytest.fixture(scope="module")
def cities():
    """A few dozen places on Earth whose vectors follow from where they are."""
    rng = np.random.default_rng(0)
    names = [f"city {i}" for i in range(80)]
    lat, lon = rng.uniform(-50, 70, 80), rng.uniform(-170, 170, 80)
    table = dict(zip(names, np.column_stack([lat, lon]), strict=True))
    vectors = np.column_stack([lat / 50, lon / 100]) @ rng.normal(size=(2, 6))
    result = impute(table, Embedding(names[:60], vectors[:60]))
    columns = {
        "Latitude": dict(zip(names, lat.tolist(), strict=True)),
        "lon": dict(zip(names, lon.tolist(), strict=True)),
        "country": {name: f"land {i % 5}" for i, name in enumerate(names)},
    }
    return result, columns


@pytest.fixture(scope="module")
def earth(cities, tmp_path_factory):
    path = tmp_path_factory.mktemp("earth") / "report.html"
    write_report(cities[0], path, columns=cities[1])
    return path


@pytest.fixture(scope="module")
def fused():
    """Two sources, one of which says nothing, and names of several words that nobody knows."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(140, 3))
    names = [f"place{i}" if i < 120 else f"far place {i}" for i in range(140)]
    vectors = latent @ rng.normal(size=(3, 8))
    sources = {
        "map": dict(zip(names, np.tanh(latent), strict=True)),
        "noise": dict(zip(names[:130], rng.normal(size=(130, 2)), strict=True)),
    }
    return impute(sources, Embedding(names[:100], vectors[:100]), names="off")


def test_latitude_and_longitude_make_a_map_of_the_earth(cities, earth, open_page):
    data = data_of(earth)["map"]
    assert data["kind"] == "earth"
    # The grid can be turned back into degrees, and the coastline is in the same units.
    lon = cities[1]["lon"]
    row, x, _ = data["known"][:3]
    step, start = data["coast_step"], data["coast_from"][0]
    assert (x - start) / step / 10 == pytest.approx(lon[f"city {row}"], abs=0.1)
    shown = open_page(earth)
    assert "Natural Earth" in shown.inner_text("footer")
    assert shown.complaints == []


def test_columns_that_the_map_shows_are_told_beside_the_entity_only(earth, open_page):
    shown = open_page(earth)
    heads = shown.locator("#table thead").inner_text()
    assert "country" in heads
    assert "Latitude" not in heads
    assert "Latitude" in shown.inner_text("#detail")


def test_coordinates_off_the_earth_are_refused(cities, tmp_path):
    places = dict.fromkeys(cities[0].domain.entities, (200.0, 0.0))
    with pytest.raises(InputError, match="longitude and latitude"):
        page_data(cities[0], coordinates=places, geography=True)
    assert page_data(cities[0], coordinates=places)["map"]["kind"] == "given"
    assert page_data(cities[0], columns=cities[1], geography=False)["map"]["kind"] == "groups"


def test_groups_are_named_by_known_entities_at_their_centre():
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(3), 30, axis=0)
    names = [f"{'abc'[i // 30]}{i}" for i in range(90)]
    vectors = 5 * centres + rng.normal(scale=0.1, size=(90, 3))
    table = dict(zip(names, vectors, strict=True))
    groups = Groups(impute(table, Embedding(names[:-3], vectors[:-3]), method="paper"))
    for number, label in enumerate(groups.labels()):
        one, *others = label.split(", ")
        assert all(each[0] == one[0] for each in others)
        of_group = [names[row][0] for row in np.flatnonzero(groups.of_known == number)]
        assert set(of_group) == {one[0]}
    known, _ = groups.points()
    assert np.linalg.norm(known[:30].mean(axis=0) - known[30:60].mean(axis=0)) > 3


def test_a_lasso_on_the_map_filters_the_table(report, open_page):  # noqa: F811
    shown = open_page(report)
    x, y = shown.evaluate(POINT, 0)
    shown.click("#lasso")
    x, y = shown.evaluate(POINT, 0)
    shown.mouse.move(x - 6, y - 6)
    shown.mouse.down()
    for dx, dy in ((6, -6), (6, 6), (-6, 6)):
        shown.mouse.move(x + dx, y + dy)
    shown.mouse.up()
    rows = shown.locator("#table tbody tr").evaluate_all("rows => rows.map(r => r.dataset.row)")
    assert "0" in rows
    assert len(rows) < 17
    assert shown.get_attribute("#lasso", "aria-pressed") == "false"
    shown.click("#clear")
    wait_for_rows(shown, 17)


def test_a_wheel_zooms_with_ctrl_and_hints_without(report, open_page):  # noqa: F811
    shown = open_page(report)
    x, y = shown.evaluate(POINT, 0)
    shown.mouse.move(x, y)
    shown.mouse.wheel(0, 10)
    shown.locator("#map-hint", has_text="Ctrl").wait_for(state="visible")
    box = shown.evaluate(POINT, 0)
    shown.mouse.move(*box)
    before = shown.evaluate("document.getElementById('map').toDataURL().length")
    shown.keyboard.down("Control")
    shown.mouse.wheel(0, -300)
    shown.keyboard.up("Control")
    shown.wait_for_timeout(100)
    assert shown.evaluate("document.getElementById('map').toDataURL().length") != before


def test_a_card_beside_the_pointer_tells_about_an_entity(report, open_page):  # noqa: F811
    shown = open_page(report)
    shown.mouse.move(*shown.evaluate(POINT, 0))
    name = data_of(report)["entities"]["name"][0]
    card = shown.inner_text("#map-tip")
    assert name[:8] in card
    assert "confidence" in card
    assert "made of" in card


def test_a_link_opens_the_page_with_its_entity(report, open_page):  # noqa: F811
    shown = open_page(report)
    shown.click("#table tbody tr:has-text('town 55') button")
    link = shown.evaluate("location.href")
    assert link.endswith("#entity=town%2055")
    again = open_page(report)
    again.goto(link)
    again.reload()
    assert again.inner_text("#detail-title") == "town 55"
    assert again.locator("#table tr.chosen").inner_text().startswith("town 55")
    assert again.complaints == []


def test_a_link_to_an_entity_that_is_not_there_opens_the_page(report, open_page):  # noqa: F811
    shown = open_page(report)
    shown.goto(f"{report.resolve().as_uri()}#entity=nobody%zz")
    shown.reload()
    assert shown.locator("#shares").count() == 1
    assert shown.complaints == []


def test_the_page_opens_with_an_entity_whose_mix_tells_something(report, open_page):  # noqa: F811
    shown = open_page(report)
    told = data_of(report)
    assert shown.inner_text("#detail-title") == told["entities"]["name"][told["telling"]]
    assert shown.evaluate("window.scrollY") == 0


def test_search_looks_into_every_column(report, open_page):  # noqa: F811
    shown = open_page(report)
    kinds = data_of(report)["entities"]["columns"][1]
    shown.fill("#search", "KIND 2")
    wait_for_rows(shown, kinds.count("kind 2"))


def test_the_least_confidence_filters_the_table(report, open_page):  # noqa: F811
    shown = open_page(report)
    values = sorted(data_of(report)["entities"]["confidence"])
    limit = -(-values[8] // 10) * 10
    shown.evaluate(
        "v => { const i = document.getElementById('least'); i.value = v;"
        " i.dispatchEvent(new Event('input')); }",
        limit,
    )
    wait_for_rows(shown, sum(value >= limit for value in values))


def test_exported_rows_are_those_on_show_and_no_formulas(report, open_page, tmp_path):  # noqa: F811
    shown = open_page(report)
    shown.fill("#search", "=cmd")
    wait_for_rows(shown, 1)
    with shown.expect_download() as found:
        shown.click("#export")
    found.value.save_as(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["entity"] == "'=cmd()"
    assert row["'=rude"] == "'=1+1"
    data = data_of(report)["entities"]
    at = data["name"].index("=cmd()")
    assert float(row["confidence"]) == data["confidence"][at] / 1000
    assert row["made_of"].startswith(data_of(report)["known"][data["contributors"][at][0]])


def test_empty_cells_come_last_however_a_column_is_sorted(report, open_page):  # noqa: F811
    shown = open_page(report)
    head = shown.locator("#table th", has_text="kind").get_by_role("button")
    place = [each["name"] for each in data_of(report)["columns"]].index("kind") + 4
    cells = f"[...document.querySelectorAll('#table td:nth-child({place})')].map(c => c.innerText)"
    head.click()
    rising = shown.evaluate(cells)
    head.click()
    falling = shown.evaluate(cells)
    assert rising[-1] == falling[-1] == ""
    assert rising[0] == "kind 0"
    assert falling[0] == "kind 2"


def test_the_comparison_can_show_differences_from_vecfill(report, open_page):  # noqa: F811
    shown = open_page(report)
    shown.get_by_role("button", name="Difference from vecfill").click()
    label = shown.locator("#comparison svg").get_attribute("aria-label")
    assert "difference from vecfill" in label
    methods = {each["name"]: each for each in data_of(report)["heldout"]["methods"]}
    gap = methods["knn"]["centred_cosine"][0] - methods["auto"]["centred_cosine"][0]
    assert methods["knn"]["gap"]["centred_cosine"][0] == pytest.approx(gap, abs=2e-4)
    assert "vecfill (auto)" not in label
    assert "kernel ridge regression" in label
    # A percent sign never begins a line.
    assert "95\u00a0%" in shown.inner_text("#comparison summary")


def test_axes_have_titles_and_the_reliability_diagram_is_square(report, open_page):  # noqa: F811
    shown = open_page(report)
    for card in ("comparison", "histogram", "reliability", "curve"):
        assert shown.locator(f"#{card} .axis-title").count() >= 1
    ends = shown.evaluate(
        "(() => { const d = document.querySelector('#reliability .dash');"
        " return ['x1', 'x2', 'y1', 'y2'].map(n => +d.getAttribute(n)); })()"
    )
    assert ends[1] - ends[0] == pytest.approx(ends[2] - ends[3])


def test_bars_of_shares_are_drawn_to_a_hundred_per_cent(report, open_page):  # noqa: F811
    shown = open_page(report)
    drawn = shown.evaluate(
        "[...document.querySelectorAll('#shares li')].filter(l => l.querySelector('.share'))"
        ".map(l => [parseFloat(l.querySelector('.share').textContent),"
        " parseFloat(l.querySelector('.track i').style.width)])"
    )
    assert drawn
    assert all(told == pytest.approx(wide) for told, wide in drawn)


def test_suspicious_entities_show_the_gap_they_are_sorted_by(report, open_page):  # noqa: F811
    shown = open_page(report)
    head = shown.locator("#suspicions th", has_text="Gap")
    assert head.get_attribute("aria-sort") == "descending"
    rows = data_of(report)["suspicious"]
    assert rows
    gaps = [expected - actual for *_, actual, expected in rows]
    assert gaps == sorted(gaps, reverse=True)


def test_sources_show_weights_and_why_one_was_dropped(fused, open_page, tmp_path):
    write_report(fused, tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    text = shown.inner_text("#sources")
    kept = {each.name: each for each in fused.sources}
    assert kept["map"].is_kept
    assert f"{kept['map'].weight:.2f}" in text
    for each in fused.sources:
        assert each.name in text
        if not each.is_kept:
            assert each.why in text
    assert "Sources" in shown.inner_text("#sections")
    assert shown.complaints == []


def test_kinds_about_which_nothing_is_proved_are_named(fused, open_page, tmp_path):
    write_report(fused, tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    unproved = [each for each in fused.strata if each.n_unknown and not each.is_proved]
    assert unproved
    text = shown.inner_text("#kinds")
    assert "cannot be proved" in text
    assert f"Nothing can be proved about {unproved[0].name}" in text


def test_without_several_sources_there_is_no_such_section(report, open_page):  # noqa: F811
    shown = open_page(report)
    assert shown.locator("#sources").count() == 0
    assert "Sources" not in shown.inner_text("#sections")


def test_both_proofs_are_shown_and_which_one_speaks(small_run, open_page, tmp_path):
    from dataclasses import replace

    scores = small_run.proof.scores["random"]
    proof = replace(small_run.proof, speaks="rarest", scores={"random": scores, "rarest": scores})
    run = replace(small_run, proof=proof)
    write_report(run, tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    first = shown.locator("#proofs tbody tr").first.inner_text()
    assert "rarest third" in first
    assert "like the unknown entities" in first


@pytest.mark.parametrize("width", [390, 320])
def test_on_a_phone_nothing_is_cut_off_and_sections_are_reachable(earth, open_page, width):
    shown = open_page(earth, width=width, height=700)
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    cut = shown.evaluate(
        "[...document.querySelectorAll('#table td, #proofs td, #detail dd')].filter(each => {"
        " const box = each.getBoundingClientRect();"
        " return box.right > innerWidth || each.scrollWidth > each.clientWidth + 1; }).length"
    )
    assert cut == 0
    links = shown.locator("#sections a")
    assert links.count() >= 5
    links.last.click()
    assert shown.locator("#run-title").is_visible()


def test_the_drivers_of_a_trend_are_shown_beside_an_entity(open_page, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    names = [f"thing{i}" for i in range(90)]
    vectors = np.outer(rows[:, 1], rng.normal(size=6)) + 0.01 * rng.normal(size=(90, 6))
    table = dict(zip(names, rows, strict=True))
    run = impute(table, Embedding(names[:80], vectors[:80]), residual_share=0.5)
    drivers = run.explain(names[-1]).drivers
    assert max(drivers, key=lambda name: drivers[name]) == "column 1"
    write_report(run, tmp_path / "report.html")
    shown = open_page(tmp_path / "report.html")
    assert "column 1" in shown.inner_text("#drivers li:first-child")


def test_the_page_says_how_to_compare_if_nothing_was_compared(earth, open_page):
    assert "--evaluate" in open_page(earth).inner_text("#comparison")


def test_what_is_no_table_is_refused_as_columns(small_run):
    with pytest.raises(InputError, match="columns is a list"):
        page_data(small_run, columns=[1, 2])
    with pytest.raises(InputError, match="not all mappings"):
        page_data(small_run, columns={"a": 1})


def test_an_evaluation_of_the_rarest_says_so(open_page, tmp_path):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(90, 3))
    names = [f"thing{i}" for i in range(90)]
    table = dict(zip(names, np.tanh(latent), strict=True))
    base = Embedding(names[:70], (latent @ rng.normal(size=(3, 5)))[:70])
    counts = {name: float(100 - i) for i, name in enumerate(names)}
    found = evaluate(table, base, hide="rarest", counts=counts, folds=2)
    write_report(impute(table, base), tmp_path / "report.html", evaluation=found)
    shown = open_page(tmp_path / "report.html")
    shown.locator("#comparison summary").click()
    assert "the rarest ones" in shown.inner_text("#comparison")


def test_only_contributors_that_matter_are_joined_by_lines(earth, open_page, tmp_path):
    """A share of a tenth of the largest is drawn, a smaller one is not."""
    row = data_of(earth)["telling"]
    drawn = []
    for shares in ([300, 100, 90], [300, 31, 29], [300, 29, 28]):
        data = data_of(earth)
        data["entities"]["shares"][row] = shares
        data["entities"]["contributors"][row] = [*data["entities"]["contributors"][row][:1], 1, 2]
        path = tmp_path / f"{shares[1]}.html"
        path.write_text(page(data), encoding="utf-8")
        shown = open_page(path)
        shown.wait_for_selector("#shares")
        drawn.append(shown.evaluate(COUNT_LINES))
    assert drawn == [3, 2, 1]


def test_the_first_lines_say_the_method_in_short(fused, open_page, tmp_path):
    write_report(fused, tmp_path / "page.html")
    said = open_page(tmp_path / "page.html").inner_text("#numbers")
    assert len(said) < 120
    assert "known ones, by " in said


def test_whole_numbers_of_the_table_are_shown_to_the_last_digit(cities, open_page, tmp_path):
    people = dict.fromkeys(cities[0].embedding.words, 1_008_106)
    since = dict.fromkeys(people, 1874)
    write_report(cities[0], tmp_path / "page.html", columns={"people": people, "since": since})
    shown = open_page(tmp_path / "page.html")
    wait_for_rows(shown, 20)
    assert "1,008,106" in shown.inner_text("#table")
    assert "1874" in shown.inner_text("#table")
