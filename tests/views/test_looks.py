"""What the page says about the look of new vectors, and about an offset beside confidence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from vecfill.model.offset import OffsetRule
from vecfill.trust.prove.sanity import Example, Look, Sanity
from vecfill.views.page_data import page_data
from vecfill.views.report import page, write_report

from .conftest import STRANGE

SPREAD_OUT = Look(40, 0.21, 30, 0.05, "omsk")
ALIKE = Look(40, 0.96, 2, 0.9, STRANGE["script"])
TRUE = Look(50, 0.2, 45, 0.04, "suqian")
EXAMPLES = tuple(
    Example(entity, ("near", STRANGE["quotes"])) for entity in ("one", "two", STRANGE["script"])
)


def looked(imputed, **changes):
    return replace(Sanity(imputed, SPREAD_OUT, TRUE, None, EXAMPLES, EXAMPLES, True), **changes)


@pytest.fixture
def open_looks(small_run, open_page, tmp_path):
    """Return a function that opens the page of a result that looks in some way."""

    def opened(sanity, **how):
        write_report(replace(small_run, sanity=sanity), tmp_path / "page.html", overwrite=True)
        return open_page(tmp_path / "page.html", **how)

    return opened


def test_the_page_gets_the_looks_and_examples_of_a_result(small_run):
    data = page_data(replace(small_run, sanity=looked(SPREAD_OUT)))["sanity"]
    assert [look["of"] for look in data["looks"]] == ["new", "hidden", "true"]
    assert data["looks"][2] == {
        "of": "true",
        "n_vectors": 50,
        "spread": 0.2,
        "n_nearest": 45,
        "hub": "suqian",
        "largest_hub": 0.04,
    }
    assert data["warning"] is None
    assert data["examples"][0] == ["one", ["near", STRANGE["quotes"]]]
    assert page_data(replace(small_run, sanity=None))["sanity"] is None


def test_a_result_of_its_own_shows_what_its_vectors_look_like(small_run, open_page, tmp_path):
    write_report(small_run, tmp_path / "page.html")
    shown = open_page(tmp_path / "page.html")
    # The section stands between the verdict and the proof.
    assert shown.locator("main > section").nth(1).get_attribute("id") == "vectors"
    sanity, table = small_run.sanity, shown.inner_text("#looks")
    assert str(sanity.imputed.n_nearest) in table
    assert f"{sanity.true.spread:.2f}".replace("-", "\N{MINUS SIGN}") in table
    assert shown.locator("#examples tbody tr").count() == len(sanity.examples) + len(
        sanity.hidden_examples
    )
    assert sanity.examples[0].entity in shown.inner_text("#examples")
    assert shown.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_collapse_is_said_first_and_strange_words_stay_text(open_looks, width, scheme):
    sanity = looked(ALIKE)
    assert sanity.verdict == "collapsed"
    shown = open_looks(sanity, width=width, scheme=scheme)
    assert "collapsed" in shown.inner_text("#looks > :first-child")
    assert shown.inner_text("h1") == "Look at the vectors before you use them"
    assert STRANGE["script"][:20] in shown.locator("#looks table").text_content()
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.complaints == []


def test_without_a_look_there_is_no_such_section(open_looks):
    shown = open_looks(None)
    assert shown.locator("#vectors").count() == 0
    assert "Vectors" not in shown.inner_text("#sections")


def test_without_hidden_entities_only_the_new_vectors_are_shown(open_looks):
    shown = open_looks(looked(SPREAD_OUT, hidden=None, true=None, hidden_examples=()))
    assert shown.locator("#looks tbody tr").count() == 1
    assert shown.locator("#examples .card").count() == 1
    assert shown.complaints == []


def test_confidence_says_what_the_offset_alone_would_score(small_run, open_page, tmp_path):
    assert page_data(small_run)["offset_scores"] is None
    on_block = {
        name: {"centred_cosine": cosine}
        for name, cosine in (("none", 0.32), ("offset", 0.48), ("offset_alone", 0.47))
    }
    decision = replace(small_run.decision, rule=OffsetRule(1.0), on_block=on_block)
    data = json.loads(json.dumps(page_data(replace(small_run, decision=decision))))
    assert data["offset_scores"] == {"none": 0.32, "offset": 0.48, "alone": 0.47}
    (tmp_path / "page.html").write_text(page({**data, "title": "offset"}), encoding="utf-8")
    said = open_page(tmp_path / "page.html").inner_text("#offset-alone")
    assert "offset alone has a centred cosine of 0.47" in said
