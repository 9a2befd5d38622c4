"""The words of a vocabulary that are spelled most like a name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vecfill.inputs.names import near_spellings
from vecfill.inputs.names.near_spellings import N_TAUGHT, RIDGE, NearSpellings
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
    width = min(N_TAUGHT, len(words))
    highest = -np.sort(-by_hand, axis=1)[:, :width]
    np.testing.assert_allclose(cosines[:, :width], highest, atol=1e-5)
    chosen = np.take_along_axis(by_hand, places.astype(int), axis=1)
    np.testing.assert_allclose(np.where(cosines > 0, chosen, 0.0), cosines, atol=1e-5)
    assert (cosines[:, width:] == 0).all()


def test_of_equal_spellings_the_first_word_counts(monkeypatch):
    monkeypatch.setattr(near_spellings, "N_TAUGHT", 10)
    words = [f"{letter}other" for letter in "abcdefghijklmno"]
    places, _ = NearSpellings.of(words, np.eye(15)).nearest(["zother"])
    assert places.tolist() == [list(range(10))]


def test_the_guess_of_a_name_is_kernel_ridge_regression_on_its_nearest_words():
    words, name = ["walking", "walked", "talking", "stalk", "oslo"], "walks"
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    near = NearSpellings.of(words, vectors)
    of_words = {word: set(ngrams_of([word]).hashes.tolist()) for word in (*words, name)}
    times = {
        gram: sum(gram in of_words[word] for word in words)
        for gram in set.union(*of_words.values())
    }
    square = {gram: (np.log(5 / n_words) + 1.0) ** 2 for gram, n_words in times.items() if n_words}

    def cosine(one, other):
        shared = sum(square.get(gram, 0.0) for gram in of_words[one] & of_words[other])
        lengths = [sum(square.get(gram, 0.0) for gram in of_words[word]) for word in (one, other)]
        return shared / np.sqrt(lengths[0] * lengths[1])

    related = words[:4]
    kernel = np.array([[cosine(one, other) for other in related] for one in related])
    shares = np.linalg.solve(kernel + RIDGE * np.eye(4), [cosine(name, word) for word in related])
    expected = vectors.mean(axis=0) + shares @ (vectors[:4] - vectors.mean(axis=0))
    said = near.suggestions([name, "xyz"])
    np.testing.assert_allclose(said.guesses[0], expected, atol=1e-2)
    np.testing.assert_allclose(said.guesses[1], vectors.mean(axis=0))
    assert said.means[1].tolist() == [0.0, 0.0, 0.0]
    assert said.n_grams.tolist() == [1, 0]  # Only "alk" is in three words.


def test_what_is_said_of_a_name_depends_on_no_other_name(monkeypatch):
    rng = np.random.default_rng(0)
    words, names = (["".join(rng.choice(list("abcd"), 6)) for _ in range(n)] for n in (300, 20))
    near = NearSpellings.of(words, rng.normal(size=(300, 3)))
    together = near.suggestions(names)
    for number, name in enumerate(names):
        for part, of_one in zip(together, near.suggestions([name]), strict=True):
            np.testing.assert_array_equal(part[number], of_one[0])
    monkeypatch.setattr(near_spellings, "_BLOCK", 7)
    monkeypatch.setattr(near_spellings, "_NAMES_AT_ONCE", 3)
    in_blocks = NearSpellings(near.letters, near.vectors, near.mean, near.scale).suggestions(names)
    for part, of_blocks in zip(together, in_blocks, strict=True):
        np.testing.assert_array_equal(part, of_blocks)


def test_no_names_are_no_rows():
    near = NearSpellings.of(["walking", "talking"], np.array([[1.0], [-1.0]]))
    assert [part.shape[0] for part in near.suggestions([])] == [0, 0, 0]
