"""Stacks: weights that other folds have learnt, and what is done to the sums."""

from __future__ import annotations

import numpy as np

from vecfill.model.predictors import Mean, Nearest
from vecfill.model.stack import Attention
from vecfill.model.whitening import Whitening
from vecfill.trust.choose.stacking import PLAIN, Blend, Finish, Hidden, blended, stack_weights


def hidden_rows():
    rng = np.random.default_rng(0)
    truth, group = rng.normal(size=(40, 6)), np.repeat([0, 1], 20)
    seen = (rng.normal(size=(20, 6)), 3.0 + rng.normal(size=(20, 6)))
    return Hidden(truth, group, (20, 20), seen)


def test_weights_are_those_of_least_squares_and_never_negative():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(200, 5)) for _ in range(3)]
    weights = stack_weights(parts, 0.5 * parts[0] + 0.2 * parts[1] - 0.3 * parts[2])
    assert weights[2] == 0.0
    assert weights[0] > weights[1] > 0.0


def test_a_row_is_predicted_with_weights_that_other_folds_have_learnt():
    hidden, rng = hidden_rows(), np.random.default_rng(1)
    is_first, noise = hidden.group[:, None] == 0, rng.normal(size=(40, 6))
    right_for_0 = np.where(is_first, hidden.truth, noise)
    right_for_1 = np.where(is_first, noise, hidden.truth)
    blend = blended({Mean(): right_for_0, Nearest(): right_for_1}, hidden)
    assert blend is not None
    assert all(weight > 0.3 for weight in blend.stack(PLAIN).weights)
    # Fold 1 has learnt that the second member is right, which is noise for fold 0.
    steps = blend.vectors(PLAIN)[0] - hidden.centres[0]
    cosines = (steps * hidden.truth[:20]).sum(axis=1) / np.linalg.norm(steps, axis=1)
    assert cosines.mean() < 0.3 * np.linalg.norm(hidden.truth[:20], axis=1).mean()


def test_no_blend_of_one():
    hidden = hidden_rows()
    assert blended({Mean(): hidden.truth, Nearest(): -hidden.truth}, hidden) is None


def test_a_sum_is_drawn_first_and_whitened_then_by_what_its_fold_has_seen():
    hidden = hidden_rows()
    blend = Blend([Mean()], [1.0], hidden.truth, hidden)
    finish = Finish(0.35, 20.0, 0.5)
    stack, vectors = blend.stack(finish), blend.vectors(finish)
    assert (stack.attention, stack.sharpness, stack.whitening) == finish
    centre, known = hidden.centres[1], hidden.seen[1]
    estimates = centre + hidden.truth[20:]
    attended = Attention(estimates, known, 0.35, 20.0).drawn(estimates, known) - centre
    np.testing.assert_allclose(vectors[1], centre + Whitening.of(known).applied(attended, 0.5))
