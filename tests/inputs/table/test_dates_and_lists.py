"""Dates and lists in cells, indexes that pandas wrote, and plain lists of terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vecfill as vf
from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.later_rows import facts_of
from vecfill.inputs.table.dates import years_of_texts


@given(st.lists(st.dates(), min_size=1, max_size=20))
def test_years_come_in_the_order_of_dates(days) -> None:
    years = years_of_texts([f"{day.year:04}-{day.month:02}-{day.day:02}" for day in days])
    assert np.array_equal(np.argsort(years, kind="stable"), np.argsort(days, kind="stable"))
    assert [int(year) for year in years] == [day.year for day in days]


def test_day_and_month_are_told_apart_by_the_whole_column() -> None:
    assert np.array_equal(
        years_of_texts(["1/2/2000", "31/12/2000"]), years_of_texts(["2000-02-01", "2000-12-31"])
    )
    assert np.array_equal(
        years_of_texts(["1/2/2000", "12/31/2000"]), years_of_texts(["2000-01-02", "2000-12-31"])
    )


def born(n: int = 40) -> pd.DataFrame:
    days = pd.date_range("1950-01-01", periods=n, freq="200D")
    return pd.DataFrame({"name": [f"p{k}" for k in range(n)], "born": days})


def test_dates_are_the_year_and_the_season_however_they_are_written(tmp_path: Path) -> None:
    table = born()
    table.to_csv(tmp_path / "born.csv", index=False)
    as_timestamps, as_text = as_domain(table), as_domain(tmp_path / "born.csv")
    assert as_text.columns == ("born (year)", "born (season 1)", "born (season 2)")
    assert np.array_equal(as_text.vectors, as_timestamps.vectors)
    assert as_text.vectors[0, 0] == 1950.0
    assert "holds dates: used as the year and the season." in as_text.notes[0]


def test_later_dates_are_read_as_the_fitted_ones() -> None:
    table = born()
    domain = as_domain(table, standardize=True)
    assert domain.reader is not None
    later = domain.reader.read(facts_of(table))
    assert np.allclose(later.rows, domain.vectors)
    with pytest.raises(InputError, match="held dates when the model was fitted"):
        domain.reader.read(facts_of({"new": {"born": "long ago"}}))
    numbers = as_domain(pd.DataFrame({"name": ["a", "b", "c"], "born": [1.0, 2.0, 3.5]}))
    assert numbers.reader is not None
    with pytest.raises(InputError, match="holds dates"):
        numbers.reader.read(facts_of({"new": {"born": "1950-01-01"}}))


def genres() -> pd.DataFrame:
    cells = ["Drama|Comedy", "Comedy", "Drama", "Drama|Noir", "Noir|Comedy", "Comedy|Drama"] * 3
    return pd.DataFrame({"name": [f"f{k}" for k in range(18)], "genres": cells})


def test_lists_in_cells_are_split_into_indicators() -> None:
    domain = as_domain(genres())
    assert domain.columns == ("genres=Comedy", "genres=Drama", "genres=Noir")
    assert np.array_equal(domain.vectors[0], domain.vectors[5])
    assert domain.vectors.var(axis=0).sum() == pytest.approx(1.0)
    assert "split into 3 indicators ('Comedy', 'Drama', 'Noir')" in domain.notes[0]
    later = domain.reader.read(facts_of({"new": {"genres": "Noir|Western"}}))
    assert (later.rows[0] > 0).tolist() == [False, False, True]
    assert later.unusual[0] == ("genres has 'Western', which no fitted entity had",)
    whole = as_domain(genres(), categorical=["genres"])
    assert "genres=Drama|Comedy" in whole.columns


def test_lists_of_a_table_are_split_as_lists_in_text_are() -> None:
    table = genres()
    table["genres"] = table["genres"].str.split("|")
    assert np.array_equal(as_domain(table).vectors, as_domain(genres()).vectors)


@pytest.mark.parametrize(
    "cells",
    [
        ["Paris, France", "Lyon, France", "Rome, Italy", "Bonn, Germany"] * 5,
        ["red", "green", "blue", "red"] * 5,
    ],
)
def test_names_with_a_comma_and_plain_categories_are_no_lists(cells: list[str]) -> None:
    table = pd.DataFrame({"name": [f"c{k}" for k in range(20)], "place": cells})
    assert f"place={cells[0]}" in as_domain(table).columns


def test_a_nameless_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    table = pd.DataFrame({"name": list("abcd"), "x": [1.0, 2.0, 4.0, 3.0]})
    shuffled, textual = table.iloc[[2, 0, 3, 1]], table.set_index(pd.Index(list("pqrs")))
    shuffled.to_parquet(tmp_path / "numbers.parquet")
    textual.to_parquet(tmp_path / "texts.parquet")
    domain = as_domain(tmp_path / "numbers.parquet")
    assert domain.entities == ("c", "a", "d", "b")
    assert domain.columns == ("x",)
    assert as_domain(tmp_path / "texts.parquet", key="name").columns == ("x",)
    assert as_domain(tmp_path / "texts.parquet", key="name").entities == tuple("abcd")


def test_a_comma_in_a_list_of_terms_is_no_separator(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("term\nheart failure\ndiabetes, type 2\nlung, left, upper\n")
    domain = vf.inputs.domain.as_domain(path, names_suffice=True)
    assert domain.entities == ("heart failure", "diabetes, type 2", "lung, left, upper")
