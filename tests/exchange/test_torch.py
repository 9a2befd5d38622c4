"""torch: layers and tensors are read in any floating type, and written in a vocabulary's order."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.world import KNOWN, N_DIMS, N_KNOWN, TABLE, UNKNOWN, VECTORS, is_near_truth
from vecfill.inputs.domain import as_domain
from vecfill.inputs.embeddings import as_embedding

pytestmark = pytest.mark.extra
torch = pytest.importorskip("torch")


def layer(dtype=torch.float32):
    weight = torch.from_numpy(VECTORS[:N_KNOWN].copy()).to(dtype)
    return torch.nn.Embedding.from_pretrained(weight, freeze=False)


@pytest.fixture(scope="module")
def result():
    return vf.impute(TABLE, (KNOWN, layer()))


def test_a_layer_a_parameter_and_a_tensor_are_one_embedding():
    base = vf.Embedding(KNOWN, VECTORS[:N_KNOWN])
    for source in (layer(), layer().weight, layer().weight.detach()):
        assert as_embedding((KNOWN, source)).equals(base)
    assert as_domain((KNOWN, layer())).entities == tuple(KNOWN)


def test_a_vocabulary_that_numbers_its_words_says_the_rows():
    numbered = {word: len(KNOWN) - 1 - row for row, word in enumerate(KNOWN)}
    found = as_embedding((numbered, layer()))
    assert found["town0"].tobytes() == VECTORS[N_KNOWN - 1].tobytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_known_rows_come_back_bit_for_bit_in_every_type(dtype):
    old = layer(dtype)
    found = vf.impute(TABLE, (KNOWN, old))
    new = vf.to_torch(found, vocabulary=[*KNOWN, *UNKNOWN], dtype=dtype)
    assert new.weight.dtype == dtype
    assert torch.equal(new.weight[:N_KNOWN], old.weight)
    assert is_near_truth("town50", new.weight[50].detach().double().numpy())


def test_the_vectors_do_not_change_with_the_layer():
    source = layer()
    found = as_embedding((KNOWN, source))
    with torch.no_grad():
        source.weight.zero_()
    assert found.vectors.any()


def test_a_vocabulary_gives_the_order_and_what_has_no_vector_begins_at_random(result):
    words = ["<pad>", "town50", "strange", "town3", "stranger"]
    new = vf.to_torch(result, vocabulary=words, padding="<pad>", std=0.5, seed=3)
    weight = new.weight.detach().numpy()
    assert new.padding_idx == 0
    assert not weight[0].any()
    assert weight[1].tobytes() == result.embedding["town50"].tobytes()
    assert weight[3].tobytes() == VECTORS[3].tobytes()
    expected = np.random.default_rng(3).normal(0.0, 0.5, size=(2, N_DIMS)).astype(np.float32)
    np.testing.assert_array_equal(weight[[2, 4]], expected)


def test_the_padding_row_is_zero_even_if_its_word_has_a_vector(result):
    new = vf.to_torch(result, vocabulary=["town3", "town50"], padding="town3")
    assert not new.weight[0].any()
    assert new.weight[1].all()


def test_random_rows_have_the_deviation_that_was_asked_for(result):
    words = [f"strange{i}" for i in range(3000)]
    weight = vf.to_torch(result, vocabulary=words).weight.detach().numpy()
    assert weight.std() == pytest.approx(0.3, abs=0.01)
    assert vf.to_torch(result, vocabulary=words, seed=1).weight[0, 0] != weight[0, 0]
    zeros = vf.to_torch(result, vocabulary=words, missing="zeros")
    assert not zeros.weight.any()


def test_words_of_the_embedding_that_were_not_in_the_table_come_from_it(result, tmp_path):
    base = vf.Embedding([*KNOWN, "the"], np.vstack([VECTORS[:N_KNOWN], np.ones((1, N_DIMS), "f4")]))
    vf.write_embedding(base, tmp_path / "base.vec")
    for source in (base, tmp_path / "base.vec"):
        new = vf.to_torch(result, ["the", "town50"], base=source, missing="refuse")
        np.testing.assert_array_equal(new.weight[0].detach(), np.ones(N_DIMS))


def test_a_word_under_another_name_in_the_table_has_its_vector():
    base = vf.Embedding([name.upper() for name in KNOWN], VECTORS[:N_KNOWN])
    found = vf.impute(TABLE, base)
    new = vf.to_torch(found, ["TOWN3", "town3"], missing="refuse")
    assert torch.equal(new.weight[0], new.weight[1])


def test_the_layer_can_be_trained_and_the_padding_stays(result):
    new = vf.to_torch(result, ["<pad>", "town50"], padding=0)
    new(torch.tensor([0, 1])).sum().backward()
    assert not new.weight.grad[0].any()
    assert new.weight.grad[1].all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"vocabulary": ["a", "b"], "missing": "refuse"},
            "No vector for 2 words of the vocabulary",
        ),
        ({"vocabulary": ["a", "a"]}, "'a' more than once"),
        ({"vocabulary": []}, "vocabulary is empty"),
        ({"vocabulary": "town3"}, "the one string 'town3'"),
        ({"vocabulary": {"a": 0, "b": 2}}, "do not count from 0"),
        ({"vocabulary": ["a"], "padding": "b"}, "padding='b' is not in the vocabulary"),
        ({"vocabulary": ["a"], "padding": 1}, "padding=1, but the vocabulary has 1 rows"),
        ({"missing": "random"}, "missing='random' is not known"),
        ({"vocabulary": ["a"], "std": -1}, "std=-1 is out of range"),
        ({"base": {"a": [1.0]}}, "vectors of 1 dimensions, the result of 6"),
    ],
)
def test_what_cannot_be_done_is_refused(result, options, words):
    with pytest.raises(vf.InputError, match=words):
        vf.to_torch(result, **options)


def test_a_layer_without_words_is_refused_with_the_form_to_use():
    with pytest.raises(vf.InputError, match=r"no words. Pass both as a pair, \(words, vectors\)"):
        vf.impute(TABLE, layer())
    with pytest.raises(vf.InputError, match="There are 2 words but 45 rows"):
        vf.impute(TABLE, (["a", "b"], layer()))
    with pytest.raises(vf.InputError, match="'a' is at row 45, but there are 45 rows"):
        vf.impute(TABLE, ({"a": 45}, layer()))
    with pytest.raises(vf.InputError, match=r"type Parameter\. Pass a torch\.nn\.Emb"):
        vf.impute(TABLE, (KNOWN, torch.nn.Linear(2, 2).bias))


def test_rows_of_a_mapping_may_be_tensors():
    whole = torch.tensor(VECTORS[:N_KNOWN], requires_grad=True)
    found = as_embedding(dict(zip(KNOWN, whole, strict=True)))
    assert found.equals(vf.Embedding(KNOWN, VECTORS[:N_KNOWN]))
    halves = as_embedding(dict(zip(KNOWN, whole.bfloat16(), strict=True)))
    np.testing.assert_allclose(halves.vectors, VECTORS[:N_KNOWN], rtol=0.01)
    domain = as_domain(dict(zip(KNOWN, whole.bfloat16(), strict=True)))
    assert domain.entities == tuple(KNOWN)


@pytest.mark.parametrize("dtype", [torch.int8, "float32"])
def test_a_type_that_cannot_be_trained_is_refused(result, dtype):
    with pytest.raises(vf.InputError, match="is no floating-point type of torch"):
        vf.to_torch(result, dtype=dtype)


def test_new_entities_of_a_model_may_be_tensors():
    model = vf.impute(
        {name: [float(i), i**0.5] for i, name in enumerate(KNOWN + UNKNOWN)},
        (KNOWN, layer()),
        method="paper",
    ).to_model()
    added = model.add({"new": torch.tensor([3.5, 1.8]).bfloat16()})
    assert added.embedding.words == ("new",)
