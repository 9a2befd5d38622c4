"""Scores that nothing may flatter: each test fails if a row is judged by what has seen it."""

from __future__ import annotations

import numpy as np

from tests.trust.choose.test_choice import made
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.trust.choose import decision as decision_module
from vecfill.trust.choose.choice import choose, honest_scores
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.compare.evaluation import Comparing, evaluate_rows
from vecfill.trust.prove.hidden import Hidden, hide_and_impute
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.relation import cross_fitted


def scores_of(values):
    values = np.asarray(values, float)
    return RowScores(*[values] * 6, crowding=0 * values, hubs=0 * values)


def test_a_row_is_scored_by_the_predictor_that_other_rows_choose():
    group = np.repeat([0, 1], 10)
    good_at_0, good_at_1 = scores_of(group == 0), scores_of(group == 1)
    directions = [np.zeros((20, 1)), np.ones((20, 1))]
    honest, found = honest_scores([good_at_0, good_at_1], directions, group)
    # Group 1 prefers the second predictor, so group 0 is scored by it, and the other way round.
    assert honest.cosine.tolist() == [0.0] * 20
    assert found.ravel().tolist() == [1.0] * 10 + [0.0] * 10


def test_an_expectation_is_learnt_without_the_fold_it_is_for():
    rng = np.random.default_rng(0)
    ranks, noise, group = rng.random((60, 25)), rng.normal(size=60), np.arange(60) % 5
    expected = cross_fitted(ranks, noise, group)
    # In sample, so many columns explain noise with a correlation of 0.6.
    assert np.corrcoef(expected, noise)[0, 1] < 0.3


def hidden_with(cosines, fold):
    n_rows = len(cosines)
    return Hidden(np.arange(n_rows), fold, np.zeros((n_rows, 2)), scores_of(cosines), cosines)


def test_coverage_of_a_fold_is_measured_with_the_margin_of_the_others():
    fold = np.repeat([0, 1], 30)
    found = learn_confidence(hidden_with(np.where(fold == 0, 0.9, 0.1), fold), np.zeros((1, 2)))
    # By the others, every row of fold 0 is above its bound and every row of fold 1 below.
    assert found.coverage == 0.5


def test_in_each_fold_the_method_is_chosen_without_the_hidden_rows(monkeypatch):
    domain, embedding, is_known = made(80)
    seen = []

    def recorded(space, vectors, mask, **options):
        seen.append(mask.copy())
        return choose(space, vectors, mask, **options)

    monkeypatch.setattr(decision_module, "choose", recorded)
    evaluate_rows(Space(domain), embedding, is_known, Comparing(n_folds=3))
    *in_folds, at_the_end = seen
    assert (at_the_end == is_known).all()
    hidden = [is_known & ~mask for mask in in_folds]
    assert (np.sum(hidden, axis=0) == is_known).all()
    assert all(mask.any() for mask in hidden)


def test_hidden_rows_are_imputed_from_the_others_alone():
    # Random vectors: whatever predicts them has seen them.
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(120, 4)), rng.normal(size=(120, 300))
    folds = hidden_folds(np.ones(120, bool), n_folds=5, seed=0)
    hidden = hide_and_impute(Space(domain), embedding, embedding, PAPER, folds)
    assert abs(hidden.scores.centred_cosine.mean()) < 0.02
    assert sorted(hidden.rows.tolist()) == list(range(120))


def test_the_seed_decides_which_rows_are_hidden():
    domain, embedding, is_known = made(80)
    one, other = (list(hidden_folds(is_known, n_folds=5, seed=seed)) for seed in (0, 1))
    assert one[0].hidden.tolist() != other[0].hidden.tolist()
    assert choose(Space(domain), embedding, is_known, seed=0).means != (
        choose(Space(domain), embedding, is_known, seed=1).means
    )


def test_a_higher_level_gives_lower_bounds():
    domain, embedding, is_known = made(120)
    folds = hidden_folds(is_known, n_folds=5, seed=0)
    hidden = hide_and_impute(Space(domain), embedding, embedding[is_known], PAPER, folds)
    seen = hidden.signals[:5]
    low, high = (learn_confidence(hidden, seen, level=level).lower_bound for level in (0.5, 0.95))
    assert (high < low).all()
