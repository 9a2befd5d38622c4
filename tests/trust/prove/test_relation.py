"""Signals -> expectation and spread, each followed only as far as hidden rows bear it out."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.trust.choose.folds import dealt_out
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.bounds import margin_of
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import Teacher, learn_confidence
from vecfill.trust.prove.relation import Relation, believed_share


def scattered(n_rows: int, scatter: float, *, seed: int = 0) -> Hidden:
    """Hidden rows whose one signal tells how near they come, and how widely they scatter.

    By how much the lowest signal scatters more than the highest is exp(`scatter`).
    """
    rng = np.random.default_rng(seed)
    signals = rng.uniform(size=(n_rows, 1))
    noise = 0.1 * np.exp(scatter * (0.5 - signals[:, 0])) * rng.normal(size=n_rows)
    truth = 0.4 + 0.4 * signals[:, 0] + noise
    scores = RowScores(*[truth] * 8)
    return Hidden(np.arange(n_rows), dealt_out(n_rows), signals, scores, truth)


def test_bounds_hold_for_every_tenth_of_confidence_where_some_scatter_more():
    hidden, others = scattered(800, 2.0), scattered(4000, 2.0, seed=1)
    confidence = learn_confidence(hidden, others.signals)
    order = np.argsort(confidence.values, kind="stable")
    is_covered = others.net >= confidence.lower_bound
    tenths = [is_covered[rows].mean() for rows in np.array_split(order, 10)]
    assert min(tenths) > 0.82
    assert is_covered.mean() == pytest.approx(0.9, abs=0.03)
    # One margin for all, the quantile of all shortfalls, fails where they scatter most.
    plain = Relation(hidden.signals, hidden.net, hidden.fold)
    margin = margin_of(plain.expected - hidden.net, 0.9)
    is_above = others.net >= confidence.values - margin
    assert is_above[order[:400]].mean() < 0.82


def test_rows_that_scatter_alike_have_one_margin():
    confidence = learn_confidence(scattered(400, 0.0), scattered(200, 0.0, seed=1).signals)
    widths = confidence.values - confidence.lower_bound
    np.testing.assert_allclose(widths, widths[0])


def test_a_relation_that_is_chance_is_left_out_nine_times_in_ten():
    rng = np.random.default_rng(0)
    shares = [believed_share(*rng.normal(size=(2, 60))) for _ in range(400)]
    assert np.mean(np.array(shares) == 0.0) == pytest.approx(0.92, abs=0.04)


def test_few_hidden_rows_may_learn_no_spread():
    confidence = learn_confidence(scattered(20, 0.0), np.linspace(0, 1, 5)[:, None])
    widths = confidence.values - confidence.lower_bound
    np.testing.assert_allclose(widths, widths[0])


def flattening(n_rows: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Signals, and cosines that rise with them and flatten towards 1."""
    rng = np.random.default_rng(seed)
    signals = rng.uniform(size=(n_rows, 1))
    return signals, 1.0 - np.exp(-2.5 * signals[:, 0]) + 0.03 * rng.normal(size=n_rows)


def test_expectations_flatten_where_cosines_do():
    signals, truth = flattening(400)
    relation = Relation(signals, truth, dealt_out(400))
    ends = np.array([[0.02], [0.98]])
    bent, straight = relation.expected_at(ends), relation.line.at(ends)
    expected = 1.0 - np.exp(-2.5 * ends[:, 0])
    assert (np.abs(bent - expected) < 0.7 * np.abs(straight - expected)).all()


def test_a_bend_never_calls_a_row_worse_that_signals_call_better():
    rng = np.random.default_rng(0)
    places = np.linspace(0.0, 1.0, 201)[:, None]
    for _ in range(20):
        signals = rng.uniform(size=(60, 1))
        # Best in the middle: a cubic would rise and fall again.
        truth = 0.3 * signals[:, 0] - 2.0 * (signals[:, 0] - 0.6) ** 2 + 0.1 * rng.normal(size=60)
        relation = Relation(signals, truth, dealt_out(60))
        expected = relation.expected_at(places)
        if relation.line.slopes[0] > 0:
            assert (np.diff(expected) >= -1e-9).all()


def test_groups_by_confidence_say_where_bounds_hold():
    confidence = learn_confidence(scattered(400, 2.0), np.empty((0, 1)))
    groups = confidence.groups()
    assert [group["n"] for group in groups] == [40] * 10
    assert np.mean([group["coverage"] for group in groups]) == pytest.approx(confidence.coverage)
    assert (np.diff([group["expected"] for group in groups]) > 0).all()
    assert all(group["low"] < group["actual"] < group["high"] for group in groups)
    assert len(confidence.groups(3)) == 3


def test_the_margin_of_a_small_block_takes_its_shape_from_random_rows():
    rng = np.random.default_rng(0)
    shape = 0.1 * rng.exponential(size=1000)
    of_block, with_shape = [], []
    for _ in range(300):
        shortfall = 0.3 + 0.2 * rng.exponential(size=40)
        of_block.append(margin_of(shortfall, 0.9, is_block=True))
        with_shape.append(margin_of(shortfall, 0.9, is_block=True, shape=shape))
    # One standard error above the level, as without, but with less chance in it.
    assert np.std(with_shape) < 0.75 * np.std(of_block)
    held = 1.0 - np.exp(-(np.mean(with_shape) - 0.3) / 0.2)
    assert held == pytest.approx(0.9 + np.sqrt(0.09 / 40), abs=0.015)


def test_a_block_that_is_larger_than_the_random_rows_has_its_own_margin():
    shortfall = np.linspace(0.0, 1.0, 50)
    own_margin = margin_of(shortfall, 0.9, is_block=True)
    assert margin_of(shortfall, 0.9, is_block=True, shape=shortfall[:40]) == own_margin


def test_random_rows_help_a_block_and_nothing_else():
    hidden, random = scattered(40, 0.0), scattered(400, 0.0, seed=1)
    kinds = [np.full(rows, "names of one word", dtype=object) for rows in (40, 400)]
    block, of_random = (
        Teacher.of(rows, [labels], proof)
        for rows, labels, proof in ((hidden, kinds[0], "rarest"), (random, kinds[1], "random"))
    )
    signals, of_asked = np.linspace(0, 1, 5)[:, None], [kinds[0][:5]]
    for teacher, is_helped in ((block, True), (of_random, False)):
        alone = teacher.confidence(signals, of_asked, 0.9)
        helped = teacher.confidence(signals, of_asked, 0.9, random)
        np.testing.assert_array_equal(alone.values, helped.values)
        assert (alone.lower_bound != helped.lower_bound).any() == is_helped
        # A row must not help to judge the bound that it is compared with.
        assert (alone.is_covered == helped.is_covered).all() or is_helped
