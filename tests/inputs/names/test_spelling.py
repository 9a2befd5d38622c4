"""What names say about vectors: by their spelling, and by their parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.later_rows import Facts
from vecfill.inputs.names import ngrams as ngrams_module
from vecfill.inputs.names.domains import (
    LETTERS,
    NAMES,
    PARTS,
    SPELLING,
    name_sources,
    parts_domain,
    rows_of_others,
    whole_vectors,
)
from vecfill.inputs.names.ngrams import LONGEST, SHORTEST, columns_of, ngram_rows, ngrams_of
from vecfill.inputs.names.readers import NamesReader
from vecfill.inputs.names.siblings import inflected_siblings
from vecfill.inputs.names.spelling_model import SpellingModel
from vecfill.inputs.names.vocabulary import VocabularySample
from vecfill.io import Scan

SYLLABLES = [f"{a}{b}{c}" for a in "bdfgkl" for b in "aeiou" for c in "mnrs"]


def vocabulary(n_words=2400, n_dims=4, seed=0):
    """Words of three syllables; the vector of a word is the sum of those of its syllables."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(len(SYLLABLES), n_dims))
    chosen = np.unique(rng.integers(0, len(SYLLABLES), (2 * n_words, 3)), axis=0)
    chosen = rng.permutation(chosen)[:n_words]
    words = ["".join(SYLLABLES[each] for each in row) for row in chosen]
    return Embedding(words, meaning[chosen].sum(axis=1).astype(np.float32))


@pytest.fixture(scope="module")
def base():
    return vocabulary()


def spelled(entities, words, base, **options):
    """What is learnt on the spelling of names, without their parts, by the name of the source."""
    sources = name_sources(entities, words, base, **{"reads_parts": False, **options})
    return {source.name: source.variants[0] for source in sources}


def correlation(found, truth):
    centred = [each - each.mean(axis=0) for each in (found, truth)]
    return np.corrcoef(centred[0].ravel(), centred[1].ravel())[0, 1]


@given(st.lists(st.text(alphabet="abcé", min_size=1, max_size=9), max_size=6))
def test_hashes_are_those_of_the_ngrams_of_each_word(names):
    def plain(name):
        word = f"<{name.replace('é', 'e')}>"
        sizes = range(SHORTEST, min(LONGEST, len(word) - 1) + 1)
        return [word[i : i + n] for i in range(len(word)) for n in sizes if i + n <= len(word)]

    found = ngrams_of(names)
    gram_of = {}
    for place, name in enumerate(names):
        hashes = found.hashes[found.starts[place] : found.starts[place + 1]].tolist()
        expected = plain(name)
        assert len(hashes) == len(expected)
        for each, gram in zip(hashes, expected, strict=True):
            assert gram_of.setdefault(each, gram) == gram
    assert len(set(gram_of.values())) == len(gram_of)


def test_names_are_read_as_ever_in_models_of_earlier_versions():
    entities = ("walking", "talking", "walked", "zz")
    keys = np.unique(ngrams_of(entities[:3]).hashes)
    vectors = np.random.default_rng(0).normal(size=(len(keys), 2)).astype(np.float16)
    rows = np.arange(len(keys), dtype=np.int32)
    spelling = SpellingModel(keys, rows, vectors, np.ones(2, np.float32), 3.0)
    guesses, n_grams = spelling.predict(entities)
    own = np.isin(keys, ngrams_of(["walked"]).hashes)
    expected = 1.0 + 3.0 * vectors[own].astype(float).sum(axis=0) / np.sqrt(own.sum())
    np.testing.assert_allclose(guesses[2], expected, rtol=1e-5)
    grams = ngram_rows(entities, n_components=2)
    old = NamesReader(spelling, grams.model, means=np.zeros(7), factors=np.ones(7))
    read = old.read(Facts(entities, {}))
    assert read.entities == entities[:3]
    seen = [[np.log1p(n), len(name), 0] for n, name in zip(n_grams, entities, strict=True)]
    by_hand = np.hstack([guesses, seen, grams.model.rows(entities)[0]])[:3]
    np.testing.assert_allclose(read.rows, by_hand)


def test_a_table_of_hashes_finds_what_binary_search_finds(monkeypatch, base):
    grams = ngrams_of([*base.words, "unheard", "of"])
    keys = np.unique(grams.hashes)[::2]
    # Low bits that clash, and a run that goes on at the first slot.
    keys = np.union1d(keys, np.array([255, 511, 767, 1023], np.uint64) | np.uint64(1 << 40))
    rows = np.arange(len(keys), dtype=np.int32)[::-1].copy()
    expected = columns_of(grams, keys, rows)
    monkeypatch.setattr(ngrams_module, "_MANY", 0)
    for searched, looked_up in zip(expected, columns_of(grams, keys, rows), strict=True):
        np.testing.assert_array_equal(searched, looked_up)


def test_spelling_tells_vectors_of_words_it_has_not_seen(base):
    entities = base.words[:200]
    sources = spelled(entities, dict(zip(entities, entities, strict=True)), base)
    assert list(sources) == [NAMES, LETTERS, SPELLING]
    truth, guess = base.vectors[:200], slice(0, base.n_dims)
    near = slice(base.n_dims + 3, None)
    assert {domain.entities for domain in sources.values()} == {entities}
    assert correlation(sources[NAMES].vectors[:, guess], truth) > 0.8
    assert correlation(sources[NAMES].vectors[:, near], truth) > 0.6
    assert correlation(sources[SPELLING].vectors, truth) > 0.8
    assert sources[SPELLING].is_guess
    np.testing.assert_allclose(sources[SPELLING].vectors.mean(axis=0), 0.0, atol=1e-6)


def test_nothing_that_names_say_has_seen_the_vector_of_an_entity(base):
    both, compound_words = compounds(base)
    entities = [*base.words[:200], *(word.replace("-", " ") for word in compound_words[:100])]
    words = dict(zip(entities, [*base.words[:200], *compound_words[:100]], strict=True))
    honest = spelled(entities, words, both, reads_parts=True)
    assert list(honest) == [NAMES, LETTERS, SPELLING, PARTS]
    vectors = both.vectors.copy()
    rows = [both.row(word) for word in compound_words[:100]]
    vectors[rows] = 1e3 * np.random.default_rng(1).normal(size=(100, both.n_dims))
    changed = spelled(entities, words, Embedding(both.words, vectors), reads_parts=True)
    for name, domain in honest.items():
        np.testing.assert_array_equal(changed[name].vectors, domain.vectors)
    # What is known of single words may say what names of several words mean, and nothing else.
    vectors[:200] = 1e3 * np.random.default_rng(2).normal(size=(200, both.n_dims))
    changed = spelled(entities, words, Embedding(both.words, vectors))
    alone = spelled(entities, words, both)
    for name in (NAMES, LETTERS, SPELLING):
        np.testing.assert_array_equal(changed[name].vectors, alone[name].vectors)


def test_other_spellings_of_an_entity_are_left_out_too():
    words = ["Visa", "VISA", "visa", "vi-sa", "vista"]
    found = rows_of_others(["visa inc"], {"visa inc": "visa"}, Embedding(words, np.eye(5)))
    assert found.tolist() == [4]


def test_known_and_unknown_names_are_treated_alike(base):
    """An entity has the same row whether or not it is told to be known."""
    entities = base.words[:100]
    known = spelled(entities, {name: name for name in entities}, base)
    half = spelled(entities, {name: name for name in entities[:50]}, base)
    for name, domain in known.items():
        np.testing.assert_array_equal(domain.vectors, half[name].vectors)


def test_few_words_teach_nothing_and_the_names_themselves_are_used(base):
    entities = base.words[:300]
    known = Embedding(entities, base[entities])
    (domain,) = spelled(entities, {name: name for name in entities}, known).values()
    assert domain.columns[0] == "n-grams 1"
    assert "0 words besides the entities, too few" in domain.notes[0]
    vectors = Embedding(known.words, known.vectors[::-1])
    (again,) = spelled(entities, {name: name for name in entities}, vectors).values()
    np.testing.assert_array_equal(again.vectors, domain.vectors)


def test_names_of_no_known_ngram_are_absent(base):
    sources = spelled([*base.words[:50], "!!", "xqz"], {}, base)
    assert {domain.entities for domain in sources.values()} == {base.words[:50]}
    assert "2 names have no known n-gram; left out." in sources[NAMES].notes


def test_names_without_letters_in_common_are_refused():
    with pytest.raises(InputError, match="no letters in common"):
        spelled(["ab", "cd"], {}, Embedding(["x"], [[1.0]]))
    with pytest.raises(InputError, match="no entities"):
        spelled([], {}, Embedding(["x"], [[1.0]]))


def compounds(base, n_words=1500, seed=0):
    """The same words, and pairs of them whose vector is a mix of both."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, 300, (n_words, 2)), axis=0)
    words = [f"{base.words[one]}-{base.words[other]}" for one, other in pairs]
    vectors = 0.3 * base.vectors[pairs[:, 0]] - 0.8 * base.vectors[pairs[:, 1]]
    return Embedding([*base.words, *words], np.concatenate([base.vectors, vectors])), words


def test_a_map_from_parts_to_wholes_is_learnt_on_the_vocabulary(base):
    both, words = compounds(base)
    entities = [word.replace("-", " ").title() for word in words[:100]]
    known = dict(zip(entities, words[:100], strict=True))
    domain = parts_domain(entities, known, both)
    assert domain.columns[0] == "whole 1"
    truth = both[words[:100]]
    assert correlation(domain.vectors[:, : both.n_dims], truth) > 0.99
    found, _ = whole_vectors(entities, known, both)
    np.testing.assert_array_equal(found[entities[3]], domain.vectors[3, : both.n_dims])


def test_the_map_of_parts_has_never_seen_an_entity(base):
    both, words = compounds(base)
    entities = [word.replace("-", " ") for word in words[:300]]
    known = dict(zip(entities, words[:300], strict=True))
    honest = parts_domain(entities, known, both)
    vectors = both.vectors.copy()
    vectors[len(base) : len(base) + 300] = 1e3
    changed = parts_domain(entities, known, Embedding(both.words, vectors))
    np.testing.assert_array_equal(changed.vectors, honest.vectors)


def test_names_of_one_word_and_of_unknown_parts_have_no_parts(base):
    first, second = base.words[:2]
    names = [f"{first}_{second}", f"{first}-xx", "xx yy", first]
    domain = parts_domain(names, {first: first}, base)
    assert domain.entities == (f"{first}_{second}", f"{first}-xx")
    n_dims = base.n_dims
    np.testing.assert_array_equal(domain.vectors[0, n_dims : 2 * n_dims], base[first])
    np.testing.assert_array_equal(domain.vectors[0, 2 * n_dims :], base[second])


def test_a_part_that_stands_for_the_whole_name_does_not_count(base):
    word, other = base.words[:2]
    name = f"{word} {other}"
    domain = parts_domain([name], {name: word}, base)
    np.testing.assert_array_equal(domain.vectors[0, : base.n_dims], base[other])


def test_names_of_several_words_are_guessed_from_their_parts(base):
    both, words = compounds(base)
    several = [word.replace("-", " ") for word in words[:100]]
    entities = [*base.words[:200], *several]
    known = {**{name: name for name in base.words[:200]}, **dict(zip(several, words, strict=False))}
    truth = both[words[:100]]
    with_parts, without = (
        spelled(entities, known, both, reads_parts=reads_parts) for reads_parts in (True, False)
    )
    by_name, by_letters = with_parts[NAMES], without[NAMES]
    assert by_name.entities == by_letters.entities == tuple(entities)
    assert by_name.columns == by_letters.columns
    guess = slice(0, both.n_dims)
    assert correlation(by_name.vectors[200:, guess], truth) > 0.98
    assert correlation(by_letters.vectors[200:, guess], truth) < 0.9
    is_several = by_name.vectors[:, by_name.columns.index("several words")] > 0
    assert is_several.tolist() == [False] * 200 + [True] * 100
    # The spelling of several words is a guess only where nobody asks their parts.
    assert with_parts[SPELLING].entities == base.words[:200]
    assert with_parts[PARTS].entities == tuple(several)
    assert without[SPELLING].entities == tuple(entities)


def test_siblings_are_other_forms_of_the_same_stem():
    words = ["the", "hepatitis", "antibodies", "cats", "walked", "Kidneys"]
    found = inflected_siblings(["antibody", "walking", "kidney", "cat", "hepatitis", "a b"], words)
    assert found == {"antibody": "antibodies", "walking": "walked", "kidney": "Kidneys"}


def file_of_words(folder, n_words):
    path = folder / "vectors.txt"
    path.write_text("".join(f"w{row} {row}.0 1.0\n" for row in range(n_words)))
    return path


@pytest.mark.parametrize("n_words", [3, 50, 51, 400, 1000])
def test_a_sample_of_a_long_file_is_even_and_holds_the_parts_of_names(tmp_path, n_words):
    sample = VocabularySample(["W1 w37", "x"], n_most=50)
    with Scan(file_of_words(tmp_path, n_words)) as scan:
        for batch in scan:
            sample.add(batch)
    found = sample.embedding()
    rows = [int(word[1:]) for word in found.words]
    assert rows == sorted(rows)
    assert found.vectors[:, 0].tolist() == rows
    is_part = {1, 37}
    step = 1
    while len({*range(0, n_words, step)} - is_part) > 50:
        step *= 2
    wanted = {*range(0, n_words, step), *(each for each in (1, 37) if each < n_words)}
    assert wanted <= set(rows)
    assert len(rows) <= 53
    assert bool(found.notes) == (step > 1)


def test_rows_that_are_not_finite_or_come_twice_are_left_out(tmp_path):
    path = tmp_path / "vectors.npz"
    vectors = np.array([[1, 1], [np.nan, 1], [2, 2], [3, 3]], np.float32)
    np.savez(path, words=np.array(["a", "b", "a", "c"]), vectors=vectors)
    sample = VocabularySample([])
    with Scan(path) as scan:
        for batch in scan:
            sample.add(batch)
    found = sample.embedding()
    assert found.words == ("a", "c")
    assert found.vectors.tolist() == [[1.0, 1.0], [3.0, 3.0]]


class Rows:
    """A batch of a file, as a scan gives it."""

    def __init__(self, first_row, n_rows):
        self.first_row = first_row
        self.words = [f"w{row}" for row in range(first_row, first_row + n_rows)]

    def vectors(self, places):
        return np.array([[self.first_row + place] for place in places], np.float32)


def test_parts_of_names_are_kept_in_later_batches_of_a_sampled_file():
    sample = VocabularySample(["w301 w503"], n_most=50)
    for first_row in range(0, 600, 100):
        sample.add(Rows(first_row, 100))
    found = sample.embedding()
    expected = sorted({*range(0, 600, 16), 301, 503})
    assert found.words == tuple(f"w{row}" for row in expected)
    assert found.vectors[:, 0].tolist() == expected


def test_names_that_come_later_are_read_as_those_of_the_fit():
    rng = np.random.default_rng(0)
    starts = ["".join(rng.choice(list("bcdfgklmnprst"), 2)) + each for each in "aeiou" * 90]
    ends = ("ing", "ed", "ness", "ly", "-house", "-light")
    words = list(dict.fromkeys(start + end for start in starts for end in ends))
    base = Embedding(words, rng.normal(size=(len(words), 5)).astype(np.float32))
    entities = [f"zu{word}" for word in words[:40]] + ["baing housed", "colight foed"]
    for reads_parts in (True, False):
        for found in spelled(entities, {}, base, reads_parts=reads_parts).values():
            again = found.reader.read(Facts(tuple(entities), {}))
            assert again.entities == found.entities
            np.testing.assert_allclose(again.rows, found.vectors, atol=1e-2)


def test_later_names_of_several_words_are_what_their_parts_make(monkeypatch):
    monkeypatch.setattr("vecfill.inputs.names.parts.FEWEST_COMPOUNDS", 100)
    monkeypatch.setattr("vecfill.inputs.names.domains.FEWEST_WORDS", 500)
    rng = np.random.default_rng(0)
    starts = sorted({"".join(rng.choice(list("bcdfgaeiou"), 5)) for _ in range(400)})
    words = [*starts, *(f"{one}-{other}" for one, other in zip(starts, starts[7:], strict=False))]
    base = Embedding(words, rng.normal(size=(len(words), 5)).astype(np.float32))
    entities = [f"{starts[row]} {starts[-1 - row]}" for row in range(20)] + ["zuzu", "bacafeda"]
    domain = spelled(entities, {}, base, reads_parts=True)[NAMES]
    assert any("are described by the vectors of the parts" in note for note in domain.notes)
    again = domain.reader.read(Facts(tuple(entities), {}))
    assert again.entities == domain.entities
    np.testing.assert_allclose(again.rows, domain.vectors, rtol=1e-2, atol=1e-2)
