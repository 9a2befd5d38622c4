"""spaCy: what was known stays, what is new is found in texts."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.world import KNOWN, N_DIMS, N_KNOWN, TABLE, UNKNOWN, VECTORS, is_near_truth
from vecfill.inputs.domain import as_domain
from vecfill.inputs.embeddings import as_embedding

pytestmark = pytest.mark.extra
spacy = pytest.importorskip("spacy")


def pipeline():
    nlp = spacy.blank("en")
    nlp.vocab.vectors.resize((N_KNOWN, N_DIMS))
    for word, vector in zip(KNOWN, VECTORS, strict=False):
        nlp.vocab.set_vector(word, vector)
    return nlp


@pytest.fixture(scope="module")
def result():
    return vf.impute(TABLE, pipeline())


def test_a_pipeline_a_vocabulary_and_its_vectors_are_one_embedding():
    nlp = pipeline()
    base = vf.Embedding(KNOWN, VECTORS[:N_KNOWN])
    for source in (nlp, nlp.vocab, nlp.vocab.vectors):
        assert as_embedding(source).equals(base)
    assert as_domain(nlp.vocab).entities == tuple(KNOWN)


def test_known_words_keep_their_bits_and_new_ones_are_found(result):
    nlp = pipeline()
    assert vf.to_spacy(nlp, result) is nlp
    for word, vector in zip(KNOWN, VECTORS, strict=False):
        assert nlp.vocab[word].vector.tobytes() == vector.tobytes()
    for word in UNKNOWN:
        assert nlp.vocab[word].has_vector
        assert nlp.vocab[word].vector.tobytes() == result.embedding[word].tobytes()
        assert is_near_truth(word, nlp.vocab[word].vector)
    document = nlp("from town3 to town50")
    assert document[3].has_vector
    assert document[3].vector_norm == pytest.approx(np.linalg.norm(result.embedding["town50"]))


def test_no_row_is_allocated_in_vain(result):
    nlp = vf.to_spacy(pipeline(), result)
    assert nlp.vocab.vectors.shape == (len(KNOWN) + len(UNKNOWN), N_DIMS)


def test_neighbours_are_right(result):
    nlp = vf.to_spacy(pipeline(), result)
    keys, _, cosines = nlp.vocab.vectors.most_similar(np.array(result.embedding[["town50"]]), n=3)
    assert nlp.vocab.strings[keys[0][0]] == "town50"
    near = result.enriched.most_similar("town50", n=2)
    assert [nlp.vocab.strings[key] for key in keys[0][1:]] == [word for word, _ in near]
    np.testing.assert_allclose(cosines[0][1:], [cosine for _, cosine in near], atol=2e-4)


def test_a_second_call_changes_nothing_and_a_vector_that_is_there_stays(result):
    nlp = pipeline()
    nlp.vocab.set_vector("town50", np.ones(N_DIMS, np.float32))
    vf.to_spacy(nlp, result)
    before = nlp.vocab.vectors.data.tobytes()
    vf.to_spacy(nlp, result)
    assert nlp.vocab.vectors.data.tobytes() == before
    np.testing.assert_array_equal(nlp.vocab["town50"].vector, np.ones(N_DIMS))


def test_a_pipeline_without_vectors_gets_the_known_ones_too(result):
    nlp = vf.to_spacy(spacy.blank("en"), result)
    assert as_embedding(nlp).equals(result.enriched)


def test_a_saved_pipeline_has_the_new_vectors(result, tmp_path):
    vf.to_spacy(pipeline(), result).to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert again.vocab["town50"].vector.tobytes() == result.embedding["town50"].tobytes()


def test_words_that_share_a_row_are_read_each_with_it():
    nlp = pipeline()
    nlp.vocab.strings.add("hamlet")
    nlp.vocab.vectors.add("hamlet", row=2)
    found = as_embedding(nlp)
    assert found["hamlet"].tobytes() == found["town2"].tobytes()


def test_floret_vectors_and_empty_ones_are_refused(result):
    from spacy.vectors import Vectors

    nlp = spacy.blank("en")
    with pytest.raises(vf.InputError, match="has no word vectors"):
        vf.impute(TABLE, nlp)
    data = np.ones((10, N_DIMS), np.float32)
    nlp.vocab.vectors = Vectors(
        strings=nlp.vocab.strings, data=data, mode="floret", minn=2, maxn=3, hash_count=1
    )
    with pytest.raises(vf.InputError, match="floret mode"):
        vf.impute(TABLE, nlp)
    with pytest.raises(vf.InputError, match="floret mode"):
        vf.to_spacy(nlp, result)
    with pytest.raises(vf.InputError, match="type str has no spaCy vocabulary"):
        vf.to_spacy("en", result)


def test_words_that_are_not_utf8_are_refused_before_anything_is_added():
    nlp = spacy.blank("en")
    with pytest.raises(vf.InputError, match="is not valid UTF-8"):
        vf.to_spacy(nlp, vf.Embedding(["a", "caf\udce9"], np.eye(2, dtype=np.float32)))
    assert nlp.vocab.vectors.n_keys == 0
