"""Our bounds beside split conformal prediction as crepes does it: none wider at equal coverage."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from tests.trust.prove.test_relation import scattered
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.relation import ranks_among

pytest.importorskip("crepes", reason="pip install crepes")
from crepes import ConformalPredictiveSystem
from crepes.extras import DifficultyEstimator

LEVEL = 0.9
N_SEEDS = 12


def split_conformal(hidden: Hidden, signals: np.ndarray, *, is_normalised: bool) -> np.ndarray:
    """Lower bounds by crepes: a line through half of the hidden rows, residuals of the others."""
    ranks = ranks_among(hidden.signals, hidden.signals)
    half = np.arange(hidden.rows.size) % 2 == 0
    line = LinearRegression().fit(ranks[half], hidden.net[half])
    residuals = hidden.net - line.predict(ranks)
    later = ranks_among(signals, hidden.signals)
    spreads = {}, {}
    if is_normalised:
        difficulty = DifficultyEstimator()
        difficulty.fit(ranks[half], residuals=residuals[half], scaler=True)
        spreads = tuple({"sigmas": difficulty.apply(rows)} for rows in (ranks[~half], later))
    system = ConformalPredictiveSystem()
    system.fit(residuals[~half], seed=0, **spreads[0])
    lowest = 100.0 * (1.0 - LEVEL)
    expected = line.predict(later)
    return system.predict_percentiles(expected, lower_percentiles=lowest, **spreads[1]).ravel()


def moved_to_level(bounds: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Bounds that are all moved alike, so that they hold for exactly the level."""
    return bounds - np.quantile(bounds - truth, LEVEL)


def shares_held(bounds: np.ndarray, truth: np.ndarray, expected: np.ndarray) -> list[float]:
    """The shares of bounds that hold, by tenths of the expectation."""
    order = np.argsort(expected, kind="stable")
    return [float((truth >= bounds)[rows].mean()) for rows in np.array_split(order, 10)]


@pytest.mark.parametrize("scatter", [0.0, 2.0])
@pytest.mark.parametrize("n_hidden", [60, 200, 600])
def test_bounds_are_no_wider_than_those_of_split_conformal_prediction(n_hidden, scatter):
    gains: dict[bool, list[float]] = {False: [], True: []}
    held, lowest = [], []
    for seed in range(N_SEEDS):
        hidden = scattered(n_hidden, scatter, seed=seed)
        later = scattered(2000, scatter, seed=100 + seed)
        confidence = learn_confidence(hidden, later.signals, level=LEVEL)
        held.append(float((later.net >= confidence.lower_bound).mean()))
        ours = moved_to_level(confidence.lower_bound, later.net)
        worst_tenths = [min(shares_held(ours, later.net, confidence.values))]
        for is_normalised, of_kind in gains.items():
            bounds = split_conformal(hidden, later.signals, is_normalised=is_normalised)
            theirs = moved_to_level(bounds, later.net)
            of_kind.append(float(ours.mean() - theirs.mean()))
            worst_tenths.append(min(shares_held(theirs, later.net, confidence.values)))
        lowest.append(worst_tenths)
    assert np.mean(held) == pytest.approx(LEVEL, abs=0.03)
    for of_kind in gains.values():
        error = np.std(of_kind, ddof=1) / np.sqrt(N_SEEDS)
        assert np.mean(of_kind) > -2.0 * error
    ours, plain, normalised = np.mean(lowest, axis=0)
    assert ours > normalised
    # As wide on average, and it holds where confidence is low as well.
    if scatter > 0.0 and n_hidden >= 200:
        assert ours > plain + 0.05
