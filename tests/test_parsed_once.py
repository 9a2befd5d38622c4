"""A job parses each table file once and builds each request once."""

from __future__ import annotations

import pytest

import vecfill as vf
from vecfill.io import tables
from vecfill.requests import Reading

TOWNS = [f"town{number}" for number in range(60)]


@pytest.fixture
def counted(monkeypatch):
    """Count how often a text table is parsed, and how often a `Reading` is built."""
    times = {"parsed": 0, "read": 0}
    plain, check = tables.plain_table, Reading.__post_init__

    def parse(*args, **options):
        times["parsed"] += 1
        return plain(*args, **options)

    def build(self):
        times["read"] += 1
        check(self)

    monkeypatch.setattr(tables, "plain_table", parse)
    monkeypatch.setattr(Reading, "__post_init__", build)
    return times


@pytest.fixture
def folder(tmp_path):
    rows = [f"{name},{number},{number % 7},{1000 - number},about {number % 5}"
            for number, name in enumerate(TOWNS)]  # fmt: skip
    text = "name,x,y,people,about\n" + "\n".join(rows) + "\n"
    (tmp_path / "towns.csv").write_text(text)
    vectors = [[float(number), number % 7 + 1.0] for number in range(50)]
    vf.write_embedding(vf.Embedding(TOWNS[:50], vectors), tmp_path / "base.vec")
    cells = [*(f'"{vector}"' for vector in vectors), *[""] * 10]
    lines = [f"{row},{cell}" for row, cell in zip(rows, cells, strict=True)]
    (tmp_path / "one.csv").write_text("name,x,y,people,about,v\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"counts": "people", "report": "page.html"},
        {"text": ["about"], "report": "page.html", "save": "towns.vecfill"},
    ],
)
def test_the_job_on_a_file_parses_its_table_once(folder, counted, options):
    places = {"report", "save"} & options.keys()
    options = {**options, **{name: folder / options[name] for name in places}}
    fixed = {"method": "paper"} if "text" not in options else {"candidates": "classic"}
    vf.enrich(folder / "base.vec", folder / "towns.csv", folder / "new.vec", **options, **fixed)
    assert counted["parsed"] == 1
    # The user's own, how each source is read, and the same without what is not about features.
    assert counted["read"] <= 5


def test_the_job_on_a_table_parses_it_once(folder, counted):
    vf.fill_table(
        folder / "one.csv",
        folder / "filled.csv",
        vector="v",
        ignore="about",
        method="paper",
        counts="people",
        confidence="sure",
        report=folder / "page.html",
    )
    assert counted["parsed"] == 1


def test_imputing_from_a_file_parses_it_once(folder, counted):
    vf.impute(folder / "towns.csv", folder / "base.vec", counts="people", ignore="about")
    assert counted["parsed"] == 1
