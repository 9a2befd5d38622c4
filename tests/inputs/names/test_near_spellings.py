"""The words of a vocabulary that are spelled most like a name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vecfill.inputs.names import near_spellings
from vecfill.inputs.names.near_spellings import N_NEAREST, NearSpellings
from vecfill.inputs.names.ngrams import ngrams_of

texts = st.lists(st.text(alphabet="abc", min_size=1, max_size=7), min_size=1, max_size=30)


def cosines_by_hand(names, words):
    """Cosines of weighted n-grams, and all n-grams of a word count, however often it has them."""
    of_words, of_names = (
        [ngrams_of([each]).hashes.tolist() for each in group] for group in (words, names)
    )
    times = {}
    for gram in (gram for grams in of_words for gram in grams):
        times[gram] = times.get(gram, 0) + 1
    square = {gram: (np.log(len(words) / n_times) + 1.0) ** 2 for gram, n_times in times.items()}
    cosines = np.zeros((len(names), len(words)))
    for row, own in enumerate(of_names):
        length = sum(square.get(gram, 0.0) for gram in set(own))
        for column, others in enumerate(of_words):
            shared = sum(square[gram] for gram in set(own) & set(others))
            if shared:
                other_length = sum(square[gram] for gram in others)
                cosines[row, column] = shared / np.sqrt(length * other_length)
    return cosines


@given(texts, texts)
def test_the_nearest_spellings_are_those_of_the_highest_cosines(names, words):
    near = NearSpellings.of(words, np.eye(len(words)))
    places, cosines = near.nearest(names)
    by_hand = cosines_by_hand(names, words)
    width = min(N_NEAREST, len(words))
    highest = -np.sort(-by_hand, axis=1)[:, :width]
    np.testing.assert_allclose(cosines[:, :width], highest, atol=1e-5)
    chosen = np.take_along_axis(by_hand, places.astype(int), axis=1)
    np.testing.assert_allclose(np.where(cosines > 0, chosen, 0.0), cosines, atol=1e-5)
    assert (cosines[:, width:] == 0).all()


def test_of_equal_spellings_the_first_word_counts():
    words = [f"{letter}other" for letter in "abcdefghijklmno"]
    places, _ = NearSpellings.of(words, np.eye(15)).nearest(["zother"])
    assert places.tolist() == [list(range(N_NEAREST))]


def test_blocks_of_words_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 6)) for _ in range(100)]
    names = ["".join(rng.choice(list("abcd"), 6)) for _ in range(20)]
    whole = NearSpellings.of(words, rng.normal(size=(100, 3)))
    expected = whole.steps(names)
    monkeypatch.setattr(near_spellings, "_BLOCK", 7)
    again = NearSpellings(whole.letters, whole.vectors, whole.scale)
    np.testing.assert_array_equal(again.steps(names), expected)


def test_a_name_like_no_word_has_no_step():
    near = NearSpellings.of(["walking", "talking"], np.array([[1.0], [-1.0]]))
    assert near.steps(["xyz", ""]).tolist() == [[0.0], [0.0]]
    assert near.steps([]).shape == (0, 1)
