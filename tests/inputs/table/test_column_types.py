"""Columns of text and of very many categories become a few dense columns."""

import numpy as np
import pandas as pd
import pytest

from vecfill.inputs.domain import as_domain
from vecfill.inputs.table import column_types
from vecfill.inputs.table.column_type import AS_THEY_ARE
from vecfill.inputs.table.column_types import (
    MOST_INDICATORS,
    N_SIGNS,
    N_TEXT_COMPONENTS,
    CategoryColumn,
    SignsColumn,
    block_of,
)
from vecfill.inputs.table.columns import Categories

KINDS = ("lamp", "chair", "table", "shelf")
EXTRAS = ("wood", "steel", "glass", "small", "large", "round", "old", "new")


def products(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(KINDS), n_rows)
    texts = [f"A {KINDS[kind]} of {' and '.join(rng.choice(EXTRAS, 4))}" for kind in kinds]
    return pd.DataFrame(
        {
            "name": [f"product {row}" for row in range(n_rows)],
            "price": rng.normal(size=n_rows),
            "about": texts,
        }
    ), kinds


def brands(n_rows=2000, n_brands=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"product {row}" for row in range(n_rows)],
            "brand": [f"brand{number}" for number in rng.integers(0, n_brands, n_rows)],
        }
    )


def test_a_column_of_text_becomes_few_columns_with_a_note():
    table, kinds = products()
    domain = as_domain(table)
    assert domain.columns[:2] == ("price", "about (text) 1")
    assert len(domain.columns) <= 1 + N_TEXT_COMPONENTS
    assert any("Column 'about' holds text" in note for note in domain.notes)
    rows = domain.vectors[:, 1:] - domain.vectors[:, 1:].mean(axis=0)
    cosines = rows @ rows.T
    is_same = kinds[:, None] == kinds
    assert cosines[is_same].mean() > 0 > cosines[~is_same].mean()


def test_a_block_of_text_or_signs_weighs_as_much_as_one_category():
    table, _ = products()
    table["brand"] = [f"b{row % 90} x{row % 2}" for row in range(200)]
    for weight in (1.0, 3.0):
        domain = as_domain(table, categorical_weight=weight)
        for start in ("about (text)", "brand="):
            columns = [at for at, name in enumerate(domain.columns) if name.startswith(start)]
            variance = domain.vectors[:, columns].var(axis=0).sum()
            assert variance == pytest.approx(weight**2)
    domain = as_domain(brands(), categorical_weight=2.0)
    assert domain.vectors.var(axis=0).sum() == pytest.approx(4.0)


def test_a_text_column_can_be_had_as_categories():
    table, _ = products(60)
    table.loc[1, "about"] = table.loc[0, "about"]
    domain = as_domain(table, categorical=["about"])
    assert f"about={table.loc[0, 'about']}" in domain.columns
    as_type = as_domain(table.astype({"about": "category"}))
    assert as_type.columns == domain.columns


def test_identifiers_stay_identifiers():
    table, _ = products(40)
    table["key"] = [f"k{row} l{row} m{row}" for row in range(40)]
    table["title"] = [f"title {row}" for row in range(40)]
    notes = " ".join(as_domain(table).notes)
    assert "('key', 'title'): another value in every row" in notes


def test_a_text_that_is_missing_is_no_text():
    table, _ = products()
    table.loc[3, "about"] = None
    domain = as_domain(table)
    assert (domain.vectors[3, 1:] == 0).all()
    assert any("('about') with 1 missing value: in no category" in note for note in domain.notes)


def test_very_many_categories_become_a_fixed_number_of_columns():
    domain = as_domain(brands())
    assert domain.vectors.shape == (2000, N_SIGNS)
    assert any("has 5" in note and "categories" in note for note in domain.notes)


def test_categories_are_told_apart_and_nearly_equally_far():
    table = brands()
    domain = as_domain(table)
    rows = pd.DataFrame(domain.vectors).groupby(table["brand"]).first().to_numpy()
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths, lengths[0])
    cosines = (rows @ rows.T / lengths[0] ** 2)[np.triu_indices(len(rows), 1)]
    times = table["brand"].value_counts()
    is_shared = cosines < 0.999  # all brands of one product are taken as one
    assert is_shared.mean() > 0.9
    assert np.abs(cosines[is_shared]).max() < 0.6
    assert (times == 1).sum() > 5


def test_categories_of_one_row_are_pooled():
    codes = np.concatenate([np.repeat(np.arange(300), 2), [300, 301]])
    column = Categories("brand", codes, tuple(f"b{number}" for number in range(302)))
    block = block_of(column, AS_THEY_ARE)
    values = np.zeros((len(codes), len(block.names)))
    block.write(values)
    assert (values[-1] == values[-2]).all()
    assert (values[0] == values[1]).all()
    assert (values[0] != values[2]).any()
    assert "2 that occur once are taken as one" in block.note


def test_the_code_of_a_category_does_not_depend_on_the_others():
    table = brands()
    one, other = as_domain(table), as_domain(table[::-1])
    np.testing.assert_allclose(one.vectors, other.vectors[::-1])


def test_up_to_the_limit_each_category_has_its_indicator(monkeypatch):
    codes = np.repeat(np.arange(MOST_INDICATORS), 2)
    labels = tuple(f"b{number:03}" for number in range(MOST_INDICATORS))
    column = Categories("brand", codes, labels)
    assert isinstance(block_of(column, AS_THEY_ARE).encoder, CategoryColumn)
    monkeypatch.setattr(column_types, "MOST_INDICATORS", MOST_INDICATORS - 1)
    assert isinstance(block_of(column, AS_THEY_ARE).encoder, SignsColumn)
