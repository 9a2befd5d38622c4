"""A stack: weighted sum, attention, exact shares."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from tests.model.test_kernel_ridge import made
from vecfill import InputError
from vecfill.model.fitted import fit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic, Mean, Nearest
from vecfill.model.space import Space
from vecfill.model.stack import Attention, Stack
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.trials import stack_weights, stacked
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


def test_weights_are_those_of_least_squares_and_never_negative():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(200, 5)) for _ in range(3)]
    weights = stack_weights(parts, 0.5 * parts[0] + 0.2 * parts[1] - 0.3 * parts[2])
    assert weights[2] == 0.0
    assert weights[0] > weights[1] > 0.0


def test_a_row_is_predicted_with_weights_that_other_folds_have_learnt():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, 6))
    group = np.repeat([0, 1], 20)
    right_for_0 = np.where(group[:, None] == 0, truth, rng.normal(size=truth.shape))
    right_for_1 = np.where(group[:, None] == 1, truth, rng.normal(size=truth.shape))
    from vecfill.trust.choose.folds import hidden_folds

    folds = list(hidden_folds(np.ones(40, bool), n_folds=2, seed=0))
    seen = [(fold, rng.normal(size=(20, 6))) for fold in folds]
    members = [Mean(), Nearest()]
    found = stacked(members, [right_for_0, right_for_1], truth, group, seen)
    assert [stack.attention for stack, _ in found] == [0.0, 0.35]
    stack, predictions = found[1]
    assert all(weight > 0.3 for weight in stack.weights)
    # Fold 1 has learnt that the second member is right, which is noise for fold 0.
    steps = predictions[0] - seen[0][1].mean(axis=0)
    cosines = (steps * truth[:20]).sum(axis=1) / np.linalg.norm(steps, axis=1)
    assert cosines.mean() < 0.3 * np.linalg.norm(truth[:20], axis=1).mean()


def test_no_stack_of_one():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, 6))
    assert stacked([Mean(), Nearest()], [truth, -truth], truth, np.arange(40) % 2, []) == []
