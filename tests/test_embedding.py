from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from vecfill import Embedding
from vecfill.errors import InputError


@pytest.fixture
def animals() -> Embedding:
    return Embedding(["cat", "dog", "car"], [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])


def test_words_are_found_by_name_and_by_list(animals):
    assert animals["dog"].tolist() == [0.8, 0.6]
    assert animals[["car", "cat"]].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert "cat" in animals
    assert "cow" not in animals
    assert list(animals) == ["cat", "dog", "car"]
    assert (len(animals), animals.n_dims, animals.row("car")) == (3, 2, 2)


def test_vectors_cannot_be_written_to_but_the_callers_array_still_can():
    own = np.ones((1, 2))
    embedding = Embedding(["a"], own)
    with pytest.raises(ValueError, match="read-only"):
        embedding.vectors[0, 0] = 2.0
    own[0, 0] = 3.0


def test_an_unknown_word_is_refused_by_name(animals):
    with pytest.raises(InputError, match="'cow' is not among the 3 words"):
        animals["cow"]
    with pytest.raises(InputError, match="'cow' is not among"):
        Embedding(["cat", "cow"], animals[["cat", "cow"]])


def test_duplicates_are_refused_with_examples():
    with pytest.raises(InputError, match="2 words occur more than once, such as 'a', 'b'"):
        Embedding(["a", "b", "a", "b", "c"], np.ones((5, 1)))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="1 words but 2 rows"):
        Embedding(["a"], np.ones((2, 2)))
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        Embedding(["a", "b"], np.ones(2))
    with pytest.raises(InputError, match="different lengths"):
        Embedding(["a", "b"], [[1.0], [1.0, 2.0]])
    with pytest.raises(InputError, match="no dimensions"):
        Embedding(["a"], np.ones((1, 0)))
    with pytest.raises(InputError, match="floating-point"):
        Embedding(["a"], [["x"]])
    with pytest.raises(InputError, match="one string 'ab'"):
        Embedding("ab", np.ones((2, 1)))
    with pytest.raises(InputError, match="a word is a string"):
        Embedding([1], np.ones((1, 1)))  # pyright: ignore[reportArgumentType]


def test_the_nearest_word_by_cosine_comes_first_and_is_never_the_word_itself(animals):
    found = animals.most_similar("cat")
    assert [word for word, _ in found] == ["dog", "car"]
    np.testing.assert_allclose([cosine for _, cosine in found], [0.8, 0.0])
    assert animals.most_similar([0.0, 2.0], n=1) == [("car", 1.0)]


def test_cosines_agree_with_the_formula_on_random_vectors():
    vectors = np.random.default_rng(0).normal(size=(200, 8))
    embedding = Embedding(map(str, range(200)), vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.argsort(-(unit @ unit[5]))[1:4]
    assert [word for word, _ in embedding.most_similar("5", n=3)] == [str(i) for i in expected]


def test_a_zero_vector_is_similar_to_nothing():
    embedding = Embedding(["a", "b"], [[0.0, 0.0], [1.0, 0.0]])
    assert embedding.most_similar("a") == [("b", 0.0)]


def test_bad_queries_are_refused(animals):
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        animals.most_similar([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="n=0"):
        animals.most_similar("cat", n=0)


def test_names_are_shown_as_text_in_pages():
    page = Embedding(["<script>", "caf\udce9"], np.ones((2, 9)))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "caf\\xe9" in page
    assert page.encode("utf-8")


def test_the_repr_can_be_printed_whatever_the_words():
    assert repr(Embedding(["caf\udce9"], np.ones((1, 2)))).encode("utf-8")
    assert "..." in repr(Embedding(map(str, range(9)), np.ones((9, 2))))
    assert repr(Embedding([], np.ones((0, 2)))) == "Embedding(0 words, 2 dims, float64)"


def test_equality_is_of_words_type_and_bits(animals):
    assert animals.equals(Embedding(animals.words, animals.vectors))
    assert not animals.equals(Embedding(animals.words, animals.vectors.astype(np.float32)))
    assert not animals.equals(Embedding(["dog", "cat", "car"], animals[["dog", "cat", "car"]]))


def test_an_embedding_can_be_pickled_and_copied():
    given = Embedding(
        ["a", "caf\udce9"], np.eye(2, dtype=np.float32), notes=["n"], provenance={"x": "y"}
    )
    for again in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given), copy.copy(given)):
        assert again.equals(given)
        assert (again.notes, dict(again.provenance)) == (("n",), {"x": "y"})
        assert not again.vectors.flags.writeable
