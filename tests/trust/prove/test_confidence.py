from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.trust.choose.test_choice import made
from vecfill.model.known import KnownRows
from vecfill.model.prediction import misfit_of
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space, WeightsKey
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.prove.bounds import margin_of
from vecfill.trust.prove.hidden import hide_and_impute
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.proof import suspicious_rows
from vecfill.trust.prove.signals import signals


def hidden_by_paper(space, embedding, is_known):
    """Hide known rows in five folds and impute them as the paper does."""
    folds = hidden_folds(is_known, n_folds=5, seed=0)
    return hide_and_impute(space, embedding, embedding[is_known], PAPER, folds)


def uneven(n_rows: int, seed: int = 0):
    """Rows of which one half has a noisy domain, so that some vectors come back better."""
    domain, embedding, _ = made(n_rows, noise=0.0, seed=seed)
    rng = np.random.default_rng(seed)
    embedding = np.sin(domain @ rng.normal(size=(10, 12)))
    is_noisy = np.arange(n_rows) % 2 == 1
    domain[is_noisy] += rng.normal(size=(is_noisy.sum(), 10))
    return domain, embedding, is_noisy


def test_confidence_tells_good_rows_from_bad_ones():
    domain, embedding, is_noisy = uneven(600)
    is_known = np.random.default_rng(1).random(600) < 0.7
    space = Space(domain)
    hidden = hidden_by_paper(space, embedding, is_known)
    given = KnownRows(embedding, is_known)
    found = PAPER.predict(space, given)
    confidence = learn_confidence(hidden, signals(given, found))
    assert (
        confidence.values[~is_noisy[~is_known]].mean()
        > confidence.values[is_noisy[~is_known]].mean()
    )
    assert spearmanr(confidence.expected, confidence.actual).statistic > 0.3
    # Calibrated: what is expected is what comes, on average and in either half.
    is_low = confidence.expected < np.median(confidence.expected)
    for half in (is_low, ~is_low):
        assert confidence.expected[half].mean() == pytest.approx(
            confidence.actual[half].mean(), abs=0.08
        )


def cosines(left, right):
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return (left * right).sum(axis=1) / lengths


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_the_bound_holds_as_often_as_it_says(level):
    covered = []
    for seed in range(4):
        domain, embedding, _ = uneven(500, seed)
        is_known = np.random.default_rng(seed).random(500) < 0.6
        space = Space(domain)
        hidden = hidden_by_paper(space, embedding, is_known)
        given = KnownRows(embedding, is_known)
        found = PAPER.predict(space, given)
        told = learn_confidence(hidden, signals(given, found), level=level)
        truth, centre = embedding[~is_known], given.known.mean(axis=0)
        covered.append(
            [
                cosines(found.vectors - centre, truth - centre) >= told.lower_bound,
                cosines(found.vectors, truth) >= told.plain_lower_bound,
            ]
        )
    for quantity in np.concatenate(covered, axis=1):
        assert quantity.mean() == pytest.approx(level, abs=0.04)


def test_the_margin_is_the_conformal_quantile():
    assert margin_of(np.arange(1.0, 10.0), 0.9) == 9.0
    assert margin_of(np.arange(1.0, 9.0), 0.9) == np.inf


def test_the_margin_of_a_block_is_wider_the_fewer_rows_it_has():
    for n_rows, place in ((40, 39), (400, 367), (9, 9)):
        values = np.arange(1.0, n_rows + 1)
        assert margin_of(values, 0.9, is_block=True) == place
    assert margin_of(np.arange(1.0, 9.0), 0.9, is_block=True) == np.inf


def test_bounds_that_a_block_teaches_are_wider():
    domain, embedding, _ = made(200)
    is_known = np.arange(200) < 150
    space, given = Space(domain), KnownRows(embedding, is_known)
    hidden = hidden_by_paper(space, np.nan_to_num(embedding), is_known)
    seen = signals(given, PAPER.predict(space, given))
    usual, block = (learn_confidence(hidden, seen, proof=proof) for proof in ("random", "rarest"))
    assert (block.values == usual.values).all()
    assert (block.lower_bound < usual.lower_bound).all()
    assert block.coverage >= usual.coverage


def test_too_few_hidden_rows_teach_nothing():
    domain, embedding, _ = made(40)
    is_known = np.arange(40) < 12
    embedding = np.nan_to_num(embedding)
    space = Space(domain)
    hidden = hidden_by_paper(space, embedding, is_known)
    given = KnownRows(embedding, is_known)
    found = PAPER.predict(space, given)
    assert learn_confidence(hidden, signals(given, found)) is None
    assert suspicious_rows(hidden).size == 0


def test_the_number_of_contributors_is_told_by_random_signs():
    domain, embedding, is_known = made(200)
    space = Space(domain)
    given = KnownRows(embedding, is_known)
    found = PAPER.predict(space, given)
    told = signals(given, found)[:, 1]
    shares = found.composition.mix.shares(np.arange((~is_known).sum()))
    true = np.log((shares**2).sum(axis=1))
    assert np.corrcoef(told, true)[0, 1] > 0.8


def test_misfit_is_zero_inside_the_neighbors_and_one_far_outside():
    domain = np.array([[0.0, 0], [1, 0], [0, 1], [0.3, 0.3], [100, 100]])
    weights = Space(domain).weights(WeightsKey(min_degree=3, weight_floor=0.0))
    misfit = misfit_of(domain, weights)
    assert misfit[3] < 1e-6
    assert misfit[4] > 0.9


def test_a_known_row_with_another_ones_vector_is_suspicious():
    domain, embedding, _ = made(200, noise=0.01)
    embedding = np.sin(domain @ np.random.default_rng(0).normal(size=(10, 12)))
    embedding[17] = -embedding[17]
    hidden = hidden_by_paper(Space(domain), embedding, np.ones(200, bool))
    assert hidden.rows[suspicious_rows(hidden)[0]] == 17
