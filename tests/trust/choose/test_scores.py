from __future__ import annotations

import numpy as np

from vecfill.trust.choose import scores
from vecfill.trust.choose.scores import score_rows


def test_a_perfect_prediction_has_full_scores():
    known = np.random.default_rng(0).normal(size=(30, 6))
    means = score_rows(known, np.arange(30), known, known.mean(axis=0)).means()
    np.testing.assert_allclose(list(means.values()), 1.0)


def test_the_mean_of_known_rows_has_no_centred_cosine_and_the_last_rank():
    known = np.random.default_rng(0).normal(size=(30, 6)) + 5
    centre = known.mean(axis=0)
    scores = score_rows(np.repeat(centre[None], 30, axis=0), np.arange(30), known, centre)
    assert scores.centred_cosine.tolist() == [0.0] * 30
    assert scores.reciprocal_rank.tolist() == [1 / 30] * 30
    assert scores.cosine.mean() > 0.9


def test_rank_counts_known_rows_that_are_nearer():
    known = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    scores = score_rows(np.array([[1.0, 0.0]]), np.array([1]), known, np.zeros(2))
    assert scores.reciprocal_rank.tolist() == [0.5]


def test_products_in_32_bits_rank_as_those_in_64(monkeypatch):
    rng = np.random.default_rng(0)
    known, truth = rng.normal(size=(400, 20)), np.arange(400)
    predicted = known + rng.normal(size=known.shape)
    exact = score_rows(predicted, truth, known, known.mean(axis=0))
    monkeypatch.setattr(scores, "MANY_PAIRS", 0)
    quick = score_rows(predicted, truth, known, known.mean(axis=0), n_jobs=2)
    assert (exact.reciprocal_rank == quick.reciprocal_rank).all()
    assert (exact.centred_cosine == quick.centred_cosine).all()


def test_a_prediction_equally_near_to_all_has_the_last_rank_in_32_bits_too(monkeypatch):
    monkeypatch.setattr(scores, "MANY_PAIRS", 0)
    known = np.random.default_rng(0).normal(size=(30, 20))
    found = score_rows(np.zeros((1, 20)), np.array([4]), known, np.zeros(20))
    assert found.reciprocal_rank[0] == 1 / 30
