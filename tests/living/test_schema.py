"""What a saved model expects of a table, and what it says of one that differs."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from tests.trust.prove.lacking import N_ALL, N_FITTED, Shop
from vecfill.cli import main
from vecfill.errors import InputError, OptionError


@pytest.fixture(scope="module")
def shop():
    return Shop()


@pytest.fixture(scope="module")
def model(shop):
    return shop.imputed().to_model()


def test_the_schema_says_what_the_columns_were_like(shop, model, tmp_path):
    columns = model.schema["table"]
    assert list(columns) == ["price", "size", "age", "city"]
    fitted = shop.table[:N_FITTED]
    assert columns["price"] == {
        "type": "number",
        "missing": 0.0,
        "low": fitted.price.min(),
        "high": fitted.price.max(),
    }
    assert columns["city"]["type"] == "category"
    assert sorted(columns["city"]["categories"]) == sorted(set(fitted.city))
    model.save(tmp_path / "m.vecfill")
    assert vf.load(tmp_path / "m.vecfill").schema == model.schema


def test_a_table_that_lacks_columns_is_refused_with_the_nearest_names(shop, model):
    with pytest.raises(InputError, match=r"lacks 'price'.*Did you mean 'Price'\?.*missing='allow'"):
        model.add(shop.later.rename(columns={"price": "Price"}))
    with pytest.raises(InputError, match=r"lacks 'price', 'city'.*For 'city': Did you mean 'citty"):
        model.add(shop.later.drop(columns="price").rename(columns={"city": "citty"}))


def test_columns_may_lack_if_that_is_allowed_and_are_then_null(shop, model):
    absent = model.add(shop.later.drop(columns="price"), missing="allow")
    null = model.add(shop.later.assign(price=np.nan))
    np.testing.assert_array_equal(absent.confidence.values, null.confidence.values)
    np.testing.assert_array_equal(absent.embedding.vectors, null.embedding.vectors)


def test_an_entity_that_lacks_a_key_beside_others_that_have_it_has_a_null_cell(shop, model):
    first, second = shop.later.index[:2]
    facts = {word: dict(shop.later.loc[word]) for word in (first, second)}
    del facts[first]["price"]
    added = model.add(facts)
    assert list(added.unusual) == [first]


def test_a_rule_that_does_not_exist_is_refused(shop, model):
    with pytest.raises((InputError, OptionError), match="missing"):
        model.add(shop.later, missing="perhaps")


def test_a_column_in_another_unit_is_named_and_has_no_bounds(shop, model):
    added = model.add(shop.later.assign(price=8 * shop.later.price))
    assert any(note.startswith("price is ") and "times what it was" in note for note in added.notes)
    assert set(added.unusual) == set(added.embedding.words)
    assert (added.confidence.lower_bound == -1).all()
    few = model.add(shop.later[:1].assign(price=8 * shop.later.price[:1]))
    assert (few.confidence.lower_bound == -1).all()
    assert "far beyond the known entities" in few.unusual["item320"][0]


def test_a_column_that_is_shifted_as_a_whole_is_named_though_no_value_is_far(shop, model):
    added = model.add(shop.later.assign(price=shop.later.price + 30))
    assert any("spreads higher than it was" in note for note in added.notes)
    assert (added.confidence.lower_bound == -1).all()
    assert (added.confidence.values == 0).all()
    usual = model.add(shop.later)
    assert usual.notes == ()
    assert (usual.confidence.lower_bound > -1).all()


def test_facts_that_are_missing_far_more_often_than_at_the_fit_are_named(shop, model):
    city = shop.later.city.astype(object)
    city.iloc[::2] = None
    added = model.add(shop.later.assign(city=city))
    share = "city is missing or unknown for 50 % of the new entities, and was for 0 %"
    assert any(note.startswith(share) for note in added.notes)
    assert len(added.unusual) == (N_ALL - N_FITTED) / 2


def test_the_shell_refuses_and_allows_alike(shop, tmp_path, capsys):
    shop.imputed().save(tmp_path / "m.vecfill")
    shop.later.drop(columns="price").to_csv(tmp_path / "new.csv")
    words = ["add", str(tmp_path / "m.vecfill"), str(tmp_path / "new.csv"), "-o"]
    assert main([*words, str(tmp_path / "new.npz")]) == 2
    told = capsys.readouterr().err
    assert "--missing" in told, told
    assert main([*words, str(tmp_path / "new.txt"), "--missing", "allow"]) == 0
    assert len(vf.read_embedding(tmp_path / "new.txt")) == N_ALL - N_FITTED


def test_entities_that_are_kept_keep_how_they_were_judged(shop):
    model = shop.imputed().to_model()
    added = model.add(shop.later.assign(city=None), keep=True)
    model.update({"item250": shop.vectors[250]})
    words = list(model.embedding.words)
    rows = [words.index(word) for word in added.embedding.words]
    after = model.confidence.values[rows]
    assert after.mean() == pytest.approx(added.confidence.values.mean(), abs=0.05)
