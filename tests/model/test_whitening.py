"""Whitening: what it does to directions and lengths."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.model.whitening import Whitening


def spread_out(n_rows=400):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, 4)) * [4.0, 2.0, 1.0, 0.5] + 7.0


def test_at_a_half_directions_vary_alike_but_for_the_floor():
    known = spread_out()
    steps = known - known.mean(axis=0)
    whitened = Whitening.of(known).applied(steps, 0.5)
    before, after = (rows.std(axis=0) for rows in (steps, whitened))
    assert before.max() / before.min() > 7
    assert after.max() / after.min() < 2.5


@pytest.mark.parametrize("power", [0.0, 0.1, 0.5])
def test_rows_stay_as_long_as_they_were_and_the_mean_stays_the_mean(power):
    known = spread_out()
    steps = np.vstack([known - known.mean(axis=0), np.zeros((1, 4))])
    whitened = Whitening.of(known).applied(steps, power)
    np.testing.assert_allclose(*(np.linalg.norm(rows, axis=1) for rows in (steps, whitened)))


def test_scale_and_equal_vectors_are_no_matter():
    known = spread_out()
    steps = known[:5] - known.mean(axis=0)
    plain, huge = (Whitening.of(scale * known).applied(steps, 0.35) for scale in (1.0, 2.0**600))
    np.testing.assert_allclose(plain, huge)
    np.testing.assert_allclose(Whitening.of(np.ones((9, 4))).applied(steps, 0.35), steps)
