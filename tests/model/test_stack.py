"""A stack: weighted sum, attention, exact shares."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import vecfill as vf
from tests.model.test_kernel_ridge import made
from vecfill import InputError
from vecfill.model.fitted import fit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import (
    KernelRidge,
    LatentSemantic,
    LeafKernel,
    Mean,
    Nearest,
    Sparsemax,
)
from vecfill.model.space import Space
from vecfill.model.stack import Attention, Stack
from vecfill.model.wanted import Unknown
from vecfill.model.whitening import Whitening
from vecfill.testing import check_predictor
from vecfill.trust.prove.signals import SIGNALS, signals

MEMBERS = (LatentSemantic(min_degree=5), KernelRidge(width=0.7, ridge=0.1), Nearest())
STACK = Stack(MEMBERS, (0.4, 0.5, 0.3))


def test_without_attention_it_is_the_weighted_sum_about_the_mean():
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = Stack(MEMBERS, (0.4, 0.5, 0.3), attention=0.0).predict(space, given).vectors
    mean = given.known.mean(axis=0)
    parts = [each.predict(space, given).vectors - mean for each in MEMBERS]
    np.testing.assert_allclose(found, mean + 0.4 * parts[0] + 0.5 * parts[1] + 0.3 * parts[2])


@pytest.mark.parametrize("attention", [0.0, 0.35, 1.0])
def test_shares_reproduce_the_vectors_and_sum_to_one(attention):
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = Stack(MEMBERS, (0.4, 0.5, 0.3), attention).predict(space, given)
    shares = found.composition.mix.shares(np.arange(14))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ given.known, found.vectors, atol=1e-6)
    values = np.random.default_rng(0).normal(size=(36, 3))
    spread = found.composition.mix.spread(values, tol=1e-10)
    np.testing.assert_allclose(spread, shares @ values, atol=1e-6)
    assert signals(given, found).shape == (14, len(SIGNALS))


def test_attention_keeps_lengths_and_turns_towards_near_known_vectors():
    known = np.array([[1.0, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0]])
    estimates = np.array([[0.5, 0.1, 0, 0]])
    drawn = Attention(estimates, known, 1.0, 20.0).drawn(estimates, known)
    np.testing.assert_allclose(np.linalg.norm(drawn), np.linalg.norm(estimates))
    assert drawn[0, 0] / np.linalg.norm(drawn) > 0.99


def test_some_rows_and_a_pickled_model_give_the_same():
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    every = STACK.predict(space, given).vectors
    some = STACK.predict(space, given, Unknown(np.array([3, 11]))).vectors
    np.testing.assert_allclose(some, every[[3, 11]])
    model = fit(STACK, space, embedding, is_known)
    again = pickle.loads(pickle.dumps(model))
    assert again.shares([2]).tobytes() == model.shares([2]).tobytes()
    assert model.known.tobytes() == embedding[is_known].tobytes()


def test_one_number_a_row_is_imputed_without_attention():
    domain, _, is_known = made()
    given = KnownRows(domain[:, :1], is_known)
    with_it, without = (
        Stack((Nearest(),), (1.0,), share).predict(Space(domain), given).vectors
        for share in (0.35, 0.0)
    )
    np.testing.assert_array_equal(with_it, without)


def test_it_says_what_it_is_made_of():
    told = json.loads(json.dumps(STACK.to_dict()))
    assert [each["predictor"] for each in told["members"]] == [
        "latent_semantic",
        "kernel_ridge",
        "nearest",
    ]
    assert str(STACK).startswith("stack of 0.40 x (as_given, min_degree 5, ridge 0)")
    assert str(STACK).endswith("35 % attention")


@pytest.mark.parametrize(
    ("members", "weights", "words"),
    [
        ((), (), "A stack of 0 members got 0 weights"),
        ((Mean(),), (1.0, 2.0), "A stack of 1 members got 2 weights"),
        ((Mean(),), (-1.0,), "weights=-1.0 is out of range"),
    ],
)
def test_what_cannot_be_is_refused(members, weights, words):
    with pytest.raises(InputError, match=words):
        Stack(members, weights)


def test_a_member_with_a_trend_and_one_that_the_space_does_not_admit_are_refused():
    domain, embedding, is_known = made()
    stack = Stack((LatentSemantic(residual_share=0.5),), (1.0,))
    with pytest.raises(InputError, match="has a linear trend"):
        stack.predict(Space(domain), KnownRows(embedding, is_known))
    with pytest.raises(InputError, match="only distances"):
        STACK.fitted_to(Space(np.ones((50, 50)), is_distances=True))


@pytest.mark.parametrize("whitening", [0.2, 0.5])
def test_a_whitened_stack_is_the_same_mix_of_whitened_known_vectors(whitening):
    domain, embedding, is_known = made()
    space, known_rows = Space(domain), KnownRows(embedding, is_known)
    found = replace(STACK, whitening=whitening).predict(space, known_rows)
    plain = STACK.predict(space, known_rows)
    shares = found.composition.mix.shares(np.arange(14))
    np.testing.assert_array_equal(shares, plain.composition.mix.shares(np.arange(14)))
    mean = known_rows.known.mean(axis=0, dtype=np.float64)
    # Row by row: each is as long as before, so what was done to it is linear but for its length.
    whitened = Whitening.of(known_rows.known).applied(shares @ (known_rows.known - mean), whitening)
    np.testing.assert_allclose(mean + whitened, found.vectors, atol=1e-5)
    lengths = [np.linalg.norm(prediction.vectors - mean, axis=1) for prediction in (found, plain)]
    np.testing.assert_allclose(*lengths, rtol=1e-5)


def test_a_whitened_stack_can_be_used_like_any_other_predictor():
    check_predictor(Stack((LeafKernel(n_trees=3), Sparsemax()), (0.5, 0.5), whitening=0.35))


def test_an_explanation_says_that_the_vector_was_whitened():
    domain, embedding, is_known = made()
    names = [f"entity {row}" for row in range(len(domain))]
    known = {name: embedding[row] for row, name in enumerate(names) if is_known[row]}
    table = dict(zip(names, domain.tolist(), strict=True))
    later = {"later": table.pop(names[-1])}
    stack = Stack((Sparsemax(),), (1.0,), whitening=0.5)
    result = vf.impute(table, known, method=stack, names="off", force=True)
    explanation = result.explain(result.embedding.words[0])
    assert explanation.whitening == explanation.to_dict()["whitening"] == 0.5
    assert "rare directions strengthened" in str(explanation)
    added = result.to_model().add(later)
    assert added.explain("later").whitening == 0.5
    plain = vf.impute(table, known, method=Sparsemax(), names="off", force=True)
    assert plain.explain(plain.embedding.words[0]).whitening == 0.0
