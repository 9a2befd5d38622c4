"""gensim: what was known stays, what is new is found by gensim's own lookup."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.world import KNOWN, N_DIMS, N_KNOWN, TABLE, UNKNOWN, VECTORS, is_near_truth
from vecfill.inputs.domain import as_domain
from vecfill.inputs.embeddings import as_embedding

pytestmark = pytest.mark.extra
pytest.importorskip("gensim")


def keyed_vectors(dtype=np.float32):
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(N_DIMS, dtype=dtype)
    keyed.add_vectors(KNOWN, VECTORS[:N_KNOWN].astype(dtype))
    keyed.fill_norms()
    return keyed


def nearest(vectors, words, query, n):
    """Return the nearest words by hand."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[words.index(query)]
    order = np.argsort(-cosines)
    return [words[row] for row in order if words[row] != query][:n]


@pytest.fixture(scope="module")
def result():
    return vf.impute(TABLE, keyed_vectors())


def test_keyed_vectors_are_an_embedding_bit_for_bit():
    found = as_embedding(keyed_vectors())
    assert found.equals(vf.Embedding(KNOWN, VECTORS[:N_KNOWN]))


def test_keyed_vectors_give_what_an_embedding_gives(result):
    other = vf.impute(TABLE, vf.Embedding(KNOWN, VECTORS[:N_KNOWN]))
    assert result.embedding.equals(other.embedding)
    assert result.embedding.words == tuple(UNKNOWN)


def test_keyed_vectors_describe_entities_too():
    assert as_domain(keyed_vectors()).entities == tuple(KNOWN)


def test_known_keys_keep_their_bits_and_new_ones_are_found(result):
    keyed = keyed_vectors()
    assert vf.to_gensim(result, into=keyed) is keyed
    assert keyed.index_to_key == [*KNOWN, *UNKNOWN]
    assert keyed.vectors[:N_KNOWN].tobytes() == VECTORS[:N_KNOWN].tobytes()
    for word in UNKNOWN:
        assert keyed[word].tobytes() == result.embedding[word].tobytes()
        assert is_near_truth(word, keyed[word])


def test_neighbours_are_right_though_norms_had_been_filled(result):
    keyed = vf.to_gensim(result, into=keyed_vectors())
    np.testing.assert_array_equal(keyed.norms, np.linalg.norm(keyed.vectors, axis=1))
    for word in ("town50", "town3"):
        found = [name for name, _ in keyed.most_similar(word, topn=5)]
        assert found == nearest(keyed.vectors, keyed.index_to_key, word, 5)
    assert any(name in UNKNOWN for name, _ in keyed.most_similar("town3", topn=20))


def test_a_second_call_changes_nothing(result):
    keyed = vf.to_gensim(result, into=keyed_vectors())
    before = keyed.vectors.tobytes()
    vf.to_gensim(result, into=keyed)
    assert keyed.vectors.tobytes() == before
    assert len(keyed) == len(KNOWN) + len(UNKNOWN)


def test_a_key_that_is_there_is_untouched(result):
    keyed = keyed_vectors()
    keyed.add_vectors(["town50"], np.ones((1, N_DIMS), np.float32))
    vf.to_gensim(result, into=keyed)
    np.testing.assert_array_equal(keyed["town50"], np.ones(N_DIMS))


def test_new_vectors_take_the_type_of_the_keyed_vectors(result):
    assert vf.to_gensim(result, into=keyed_vectors(np.float64)).vectors.dtype == np.float64


def test_without_a_place_to_go_known_and_imputed_are_returned(result):
    keyed = vf.to_gensim(result)
    assert keyed.index_to_key == [*KNOWN, *UNKNOWN]
    assert keyed.vectors.tobytes() == result.enriched.vectors.tobytes()


def test_memory_mapped_vectors_can_be_added_to(result, tmp_path):
    from gensim.models import KeyedVectors

    keyed_vectors().save(str(tmp_path / "old.kv"), sep_limit=1)
    mapped = KeyedVectors.load(str(tmp_path / "old.kv"), mmap="r")
    assert not mapped.vectors.flags.writeable
    assert vf.impute(TABLE, mapped).embedding.equals(result.embedding)
    assert vf.to_gensim(result, into=mapped).most_similar("town50")


def test_what_gensim_saves_is_read_by_us(result, tmp_path):
    keyed = keyed_vectors()
    for place, word in enumerate(KNOWN):
        keyed.set_vecattr(word, "count", 1000 - place)
    vf.to_gensim(result, into=keyed)
    assert keyed.get_vecattr("town50", "count") == 0
    keyed.save_word2vec_format(str(tmp_path / "all.bin"), binary=True)
    found = vf.read_embedding(tmp_path / "all.bin")
    assert found.equals(vf.Embedding(keyed.index_to_key, keyed.vectors))


def test_words_of_a_trained_model_come_by_count():
    from gensim.models import Word2Vec

    texts = [["rare"], *[["often", "seldom", "often"]] * 5]
    model = Word2Vec(texts, vector_size=4, min_count=1, sorted_vocab=0, workers=1)
    assert model.wv.index_to_key[0] == "rare"
    found = as_embedding(model)
    assert found.words == ("often", "seldom", "rare")
    assert found["rare"].tobytes() == model.wv["rare"].tobytes()


def test_what_cannot_take_vectors_is_refused(result):
    from gensim.models import FastText, Word2Vec

    texts = [["one", "two", "three"]] * 5
    model = FastText(texts, vector_size=N_DIMS, min_count=1, bucket=50, workers=1)
    with pytest.raises(vf.InputError, match="fastText vectors"):
        vf.to_gensim(result, into=model.wv)
    with pytest.raises(vf.InputError, match=r"Pass its vectors, model\.wv"):
        vf.to_gensim(result, into=Word2Vec(texts, vector_size=N_DIMS, min_count=1, workers=1))
    small = Word2Vec(texts, vector_size=3, min_count=1, workers=1).wv
    with pytest.raises(vf.InputError, match="have 6 dimensions, but those of these KeyedVectors"):
        vf.to_gensim(result, into=small)
    with pytest.raises(vf.InputError, match="type list holds no imputed vectors"):
        vf.to_gensim([1, 2])


def test_slots_that_were_allocated_and_not_used_are_no_words():
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(N_DIMS, count=3)
    keyed.add_vector("town0", VECTORS[0])
    assert as_embedding(keyed).words == ("town0",)


def test_empty_keyed_vectors_are_refused():
    from gensim.models import KeyedVectors

    with pytest.raises(vf.InputError, match="hold no words"):
        vf.impute(TABLE, KeyedVectors(3))


def test_what_a_model_gives_to_later_entities_goes_into_keyed_vectors(result):
    model = result.to_model()
    added = model.add({"newtown": {"x": 0.1, "y": 0.2, "z": 0.3}})
    keyed = vf.to_gensim(added, into=vf.to_gensim(model))
    assert keyed.index_to_key == [*KNOWN, *UNKNOWN, "newtown"]
    assert keyed["newtown"].tobytes() == added.embedding["newtown"].tobytes()
    assert keyed[UNKNOWN[0]].tobytes() == result.embedding[UNKNOWN[0]].tobytes()
