"""How predictors stand on hidden rows, and the weights of a stack of them."""

from __future__ import annotations

import numpy as np

from vecfill.trust.choose.scores import RowScores
from vecfill.trust.choose.stacking import stack_weights
from vecfill.trust.choose.trials import standing


def scores_with(**measures) -> RowScores:
    names = (
        "centred_cosine", "reciprocal_rank", "hits_at_10", "cosine", "norm_ratio", "agreement",
        "crowding", "hubs",
    )  # fmt: skip
    return RowScores(**{name: np.full(100, measures.get(name, 0.0)) for name in names})


def test_for_ranks_what_ranks_worse_than_the_best_beyond_chance_is_out():
    rng = np.random.default_rng(0)
    best, lucky = scores_with(hits_at_10=0.2), scores_with(hits_at_10=0.9)
    best.reciprocal_rank[:] = 0.5 + 0.01 * rng.normal(size=100)
    lucky.reciprocal_rank[:] = 0.4 + 0.01 * rng.normal(size=100)
    # By the sum of both measures the second one leads.
    total = standing([best, lucky], np.arange(100), "rank")
    assert np.isfinite(total[0])
    assert total[1] == -np.inf
    level = standing([best, best], np.arange(100), "rank")
    assert np.isfinite(level).all()


def test_for_ranks_the_better_cosine_decides_among_what_is_level():
    near, far = (scores_with(hits_at_10=0.2, centred_cosine=cosine) for cosine in (0.5, 0.1))
    far.hits_at_10[:10] = 0.3
    total = standing([far, near], np.arange(100), "rank")
    assert np.isfinite(total).all()
    assert total.argmax() == 1


def test_by_default_a_lower_cosine_is_out_if_that_is_not_chance():
    rng = np.random.default_rng(0)
    best, ranked = scores_with(), scores_with(reciprocal_rank=0.9)
    best.centred_cosine[:] = 0.5
    for spread, is_out in ((0.01, True), (1.0, False)):
        noise = rng.normal(size=100)
        ranked.centred_cosine[:] = 0.46 + spread * (noise - noise.mean())
        total = standing([best, ranked], np.arange(100), "balanced")
        assert (total[1] == -np.inf) == is_out


def test_weights_of_a_stack_are_not_rounded():
    first, second = np.random.default_rng(0).normal(size=(2, 500, 3))
    weights = stack_weights([first, second], 0.37 * first + 0.14 * second)
    np.testing.assert_allclose(weights, [0.37, 0.14], atol=2e-3)
