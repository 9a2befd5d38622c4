from __future__ import annotations

import numpy as np

from vecfill.trust.scores import score_rows


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
