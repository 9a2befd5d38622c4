from __future__ import annotations

import numpy as np
import pytest

from vecfill import InputError
from vecfill.model.directions import unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, LatentSemantic
from vecfill.model.space import Space
from vecfill.trust import choice as choice_module
from vecfill.trust.choice import choose, fewer_dims, permutation_p_value
from vecfill.trust.folds import hidden_folds


def made(n_rows: int = 150, *, noise: float = 0.1, seed: int = 0):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 3))
    domain = np.tanh(latent @ rng.normal(size=(3, 10))) + noise * rng.normal(size=(n_rows, 10))
    embedding = np.sin(latent @ rng.normal(size=(3, 12)))
    is_known = rng.random(n_rows) < 0.7
    embedding[~is_known] = np.nan
    return domain, embedding, is_known


def test_every_known_row_is_hidden_once_and_never_seen_then():
    is_known = np.random.default_rng(0).random(40) < 0.6
    folds = list(hidden_folds(is_known, n_folds=5, seed=3))
    hidden = np.concatenate([fold.hidden for fold in folds])
    assert sorted(hidden.tolist()) == np.flatnonzero(is_known).tolist()
    for fold in folds:
        assert not fold.is_seen[fold.hidden].any()
        assert (np.flatnonzero(is_known)[fold.truth] == fold.hidden).all()
        assert (np.flatnonzero(~fold.is_seen)[fold.places] == fold.hidden).all()


@pytest.mark.parametrize("n_folds", [1, 50])
def test_folds_that_cannot_be_are_refused(n_folds):
    with pytest.raises(InputError, match="Use from 2 to 10 folds"):
        list(hidden_folds(np.ones(10, bool), n_folds=n_folds, seed=0))


def test_a_signal_is_found_and_a_shuffled_domain_has_none():
    domain, embedding, is_known = made()
    found = choose(Space(domain), embedding, is_known)
    assert found.has_signal
    assert found.honest.centred_cosine.mean() > 0.5
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(domain))
        shuffled = choose(Space(domain[order]), embedding, is_known)
        assert not shuffled.has_signal


def test_the_choice_is_the_same_for_the_same_seed_and_any_number_of_threads():
    domain, embedding, is_known = made()
    first = choose(Space(domain, n_jobs=1), embedding, is_known, seed=4)
    again = choose(Space(domain, n_jobs=3), embedding, is_known, seed=4)
    assert first.predictor == again.predictor
    assert first.means == again.means


def test_hidden_vectors_never_reach_their_own_prediction():
    # Every vector is random, so nothing can predict it but itself.
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(150, 4)), rng.normal(size=(150, 200))
    found = choose(Space(domain), embedding, np.ones(150, bool))
    assert abs(found.honest.centred_cosine.mean()) < 0.02
    assert not found.has_signal


def test_chance_is_even_for_unrelated_directions():
    rng = np.random.default_rng(0)
    # A shared direction is no signal: every prediction is as near to every truth.
    shared = rng.normal(size=30) * 3
    chances = [
        permutation_p_value(
            unit(rng.normal(size=(40, 30)) + shared), unit(rng.normal(size=(40, 30)) + shared)
        )
        for _ in range(300)
    ]
    assert 0.4 < np.mean(chances) < 0.6
    assert np.mean(np.array(chances) < 0.05) < 0.1


def test_too_few_known_rows_are_refused_with_the_way_out():
    domain, embedding, _ = made()
    is_known = np.arange(150) < 9
    with pytest.raises(InputError, match=r"Only 9 entities are known.*--method paper"):
        choose(Space(domain), embedding, is_known)


def test_distances_admit_only_what_needs_no_vectors():
    domain, embedding, is_known = made()
    distances = np.sqrt(((domain[:, None] - domain[None]) ** 2).sum(axis=2))
    found = choose(Space(distances, is_distances=True), embedding, is_known)
    assert found.has_signal
    assert {each.preparation for each in found.tried} == {"as_given"}
    assert all(each.residual_share is None for each in found.tried)


def test_a_large_embedding_is_compared_in_fewer_dimensions(monkeypatch):
    monkeypatch.setattr(choice_module, "MOST_ENTRIES", 10)
    monkeypatch.setattr(choice_module, "LEAST_DIMS", 4)
    _, embedding, is_known = made()
    few = fewer_dims(embedding, is_known)
    assert few.shape == (150, 4)
    assert (np.isnan(few).all(axis=1) == ~is_known).all()


def test_the_paper_is_the_estimator_and_no_residual_leaves_the_trend():
    from vecfill import LatentSemanticImputer

    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    expected = LatentSemanticImputer().fit(domain, embedding).embedding_[~is_known]
    np.testing.assert_array_equal(PAPER.predict(space, given).vectors, expected)
    alone = LatentSemantic(residual_share=0.0).predict(space, given)
    np.testing.assert_allclose(alone.vectors, alone.composition.trend.values[~is_known])


def test_the_second_round_keeps_the_preparation_that_won_the_first():
    domain, embedding, is_known = made()
    domain[:, 0] *= 1e4
    found = choose(Space(domain), embedding, is_known)
    later = {each.preparation for each in found.tried if each.min_degree == 20}
    assert later == {found.predictor.preparation}
    assert later != {"as_given"}
