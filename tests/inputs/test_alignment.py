"""A table and an embedding brought together: known rows, rarity from counts, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from vecfill.inputs.alignment import align
from vecfill.requests import Reading

KNOWN = ["Oslo", "Rome", "Bern", "Pau"]
TABLE = {name: [float(row)] for row, name in enumerate([*KNOWN, "Ghent"])}
BASE = vf.Embedding([name.lower() for name in reversed(KNOWN)], np.arange(8.0).reshape(4, 2))


def counted(**counts):
    return align(TABLE, BASE, Reading(counts=counts))


def test_rows_keep_the_order_of_the_table_and_unknown_ones_are_empty():
    alignment = align(TABLE, BASE, Reading())
    assert alignment.known == tuple(KNOWN)
    assert alignment.unknown == ("Ghent",)
    np.testing.assert_array_equal(alignment.embedding[:4], BASE.vectors[::-1])
    assert np.isnan(alignment.embedding[4]).all()


def test_a_known_entity_without_a_count_is_as_rare_as_the_median():
    alignment = counted(Oslo=100, Rome=10, Bern=1, Ghent=5)
    assert alignment.rarity.basis == "counts"
    np.testing.assert_allclose(alignment.rarity.values, -np.log([100, 10, 1, 10, 5]))
    assert "1 known entity has no count; the median was taken." in alignment.notes


def test_an_unknown_entity_without_a_count_has_no_rarity():
    rarity = counted(Oslo=100, Rome=10, Bern=1, Pau=3).rarity.values
    assert np.isnan(rarity).tolist() == [False, False, False, False, True]


def test_counts_of_fewer_than_half_of_the_known_entities_are_refused():
    assert counted(Oslo=9, Rome=3).rarity is not None
    with pytest.raises(vf.InputError, match="counts name 1 of the 4 known entities"):
        counted(Oslo=9, Ghent=4)


def test_entities_below_a_count_are_treated_as_unknown():
    reading = Reading(counts={"Oslo": 9, "Rome": 2, "Bern": 5, "Pau": 7}, min_count=5)
    alignment = align(TABLE, BASE, reading)
    assert alignment.known == ("Oslo", "Bern", "Pau")
    assert dict(alignment.matches.set_aside) == {"Rome": "rome"}


def test_a_known_vector_that_is_not_finite_is_refused_by_its_word():
    vectors = BASE.vectors.copy()
    vectors[1, 0] = np.inf
    base = vf.Embedding(BASE.words, vectors)
    with pytest.raises(vf.InputError, match="vector of 'bern' holds NaN or infinity"):
        align(TABLE, base, Reading())
    assert align({"Oslo": [1.0], "Ghent": [2.0]}, base, Reading()).known == ("Oslo",)
