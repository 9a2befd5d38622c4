"""Names of several words, described by the vectors of these words."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill import Embedding
from vecfill.inputs.names.domains import parts_domain, parts_guess
from vecfill.inputs.names.parts import PartsModel, means_of_parts, rows_of_parts

WORDS = ["the", "fort", "worth", "new", "york", "shares", "oslo"]
NAMES = ["Worth Shares", "Fort Worth", "New York", "Oslo"]


def base(scale: float = 1.0) -> Embedding:
    """Return words with random vectors; that of "worth" is of another size."""
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    vectors[WORDS.index("worth")] *= scale
    return Embedding(WORDS, vectors)


@pytest.mark.parametrize("way", [parts_domain, parts_guess])
def test_an_entity_s_own_word_is_none_of_its_parts(way):
    """A known company "Worth Shares" that is called "worth" would describe itself by its vector."""
    words = {"Worth Shares": "worth", "Oslo": "oslo"}
    names = ["Worth Shares", "New York", "Oslo"]
    found = [way(names, words, base(scale)) for scale in (1.0, 50.0)]
    assert found[0].entities == ("Worth Shares", "New York")
    np.testing.assert_array_equal(found[0].vectors, found[1].vectors)
    # To others it is a word like any other.
    found = [way(NAMES, words, base(scale)) for scale in (1.0, 50.0)]
    assert found[0].entities == tuple(NAMES[:3])
    assert not np.allclose(found[0].vectors[1], found[1].vectors[1])


def test_steps_of_parts_are_those_of_the_means_of_parts():
    vocabulary = base()
    rows = rows_of_parts(NAMES, vocabulary.words)
    vectors = vocabulary[[vocabulary.words[row] for row in rows.values()]]
    means = means_of_parts(NAMES, PartsModel(tuple(rows), np.array(list(rows.values())), vectors))
    assert list(means) == NAMES[:3]
    steps = np.stack(list(means.values()))
    found = parts_guess(NAMES, {}, vocabulary)
    assert found is not None
    np.testing.assert_allclose(found.vectors, 0.27 * (steps - steps.mean(axis=0)))


def test_a_name_needs_all_its_parts_for_a_mean():
    model = PartsModel(("fort", "worth"), np.array([1, 2]), np.eye(2))
    assert list(means_of_parts(["Fort Worth", "Fort Knox", "fort"], model)) == ["Fort Worth"]
    assert means_of_parts([], model) == {}
