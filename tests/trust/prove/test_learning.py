"""What hidden rows teach: each quantity has its own bound, and doubt lowers both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vecfill.trust.choose.folds import dealt_out
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.hidden import Cosines, Hidden
from vecfill.trust.prove.learning import Teacher, learn_confidence
from vecfill.trust.prove.relation import ranks_among


def hidden_rows(level: float = 0.5, *, scatter: float = 0.05, plain: float = 0.2) -> Hidden:
    """Hidden rows of one signal; plain cosines lie above those net of the constant."""
    rng = np.random.default_rng(0)
    signals = rng.uniform(size=(200, 1))
    truth = level + 0.2 * signals[:, 0] + scatter * rng.normal(size=200)
    scores = RowScores(truth, truth, truth, truth + plain, *[truth] * 4)
    return Hidden(np.arange(200), dealt_out(200), signals, scores, truth)


def test_equal_signals_share_the_middle_of_their_ranks():
    reference = np.array([[0.0], [0.0], [0.0], [1.0]])
    assert ranks_among(reference, reference).ravel().tolist() == [3 / 8, 3 / 8, 3 / 8, 7 / 8]


def test_plain_cosines_have_a_bound_of_their_own():
    confidence = learn_confidence(hidden_rows(plain=0.2), np.full((3, 1), 0.5))
    np.testing.assert_allclose(confidence.plain_lower_bound, confidence.lower_bound + 0.2)


def test_rows_that_are_carried_elsewhere_get_no_narrower_bounds_than_they_scatter_here():
    hidden, signals = hidden_rows(scatter=0.1), np.full((3, 1), 0.5)
    even = 0.5 + 0.2 * hidden.signals[:, 0]
    carried = replace(hidden, moved=Cosines(even, even))
    narrow = learn_confidence(replace(carried, net=even), signals)
    wide = learn_confidence(carried, signals)
    np.testing.assert_allclose(wide.values, narrow.values)
    # As wide as where the rows were found, whose scatter is 0.1.
    gap = learn_confidence(hidden, signals)
    np.testing.assert_allclose(
        wide.values - wide.lower_bound, gap.values - gap.lower_bound, atol=1e-9
    )
    assert (wide.values - wide.lower_bound > 0.08).all()


def test_bounds_go_no_higher_than_those_of_a_proof_in_doubt():
    signals = np.full((3, 1), 0.5)
    kinds = [np.full(200, "names of one word", dtype=object)]
    of_asked = [kinds[0][:3]]
    sure = Teacher.of(hidden_rows(), kinds, "random").confidence(signals, of_asked, 0.9)
    for doubt in (hidden_rows(0.1), hidden_rows(0.1, plain=-0.4), hidden_rows(0.9, plain=-2.0)):
        teacher = Teacher.of(hidden_rows(), kinds, "random", doubt)
        unsure = teacher.confidence(signals, of_asked, 0.9)
        alone = learn_confidence(doubt, signals)
        for bound in ("lower_bound", "plain_lower_bound"):
            lowest = np.minimum(getattr(sure, bound), getattr(alone, bound))
            np.testing.assert_array_equal(getattr(unsure, bound), lowest)
        np.testing.assert_array_equal(unsure.values, sure.values)


def test_a_teacher_keeps_no_vectors():
    hidden = replace(hidden_rows(), vectors=np.zeros((200, 3)))
    teacher = Teacher.of(hidden, (), "random", hidden)
    assert teacher.told.vectors is None
    assert teacher.other.vectors is None


def test_a_kind_of_which_few_were_hidden_is_expected_to_be_like_the_worst_proved_one():
    hidden = hidden_rows()
    labels = np.repeat(np.array(["good", "bad", "few"], dtype=object), [90, 90, 20])
    worse = replace(hidden, net=hidden.net - 0.3 * (labels == "bad"))
    signals, asked = np.full((3, 1), 0.9), np.array(["good", "bad", "few"], dtype=object)
    confidence = learn_confidence(worse, signals, of_hidden=[labels], of_unknown=[asked])
    good, bad, few = confidence.values
    assert good > bad + 0.2
    assert few == pytest.approx(bad, abs=0.05)
    # No signal raises the bound of such a kind above what the worst proved one reached.
    assert confidence.lower_bound[2] <= np.quantile(worse.net[labels == "bad"], 0.1) + 0.01


def test_rows_about_which_nothing_is_proved_are_raised_by_no_signal():
    hidden = hidden_rows()
    best = np.ones((4, 1))
    confidence = learn_confidence(hidden, best)
    is_unusual = np.array([True, False, True, False])
    cautious = confidence.cautious(is_unusual)
    # Nine tenths of all hidden rows reached it, and rows of the best signal are far above.
    floor = np.quantile(hidden.net, 0.1)
    assert (confidence.lower_bound > floor + 0.05).all()
    np.testing.assert_allclose(cautious.lower_bound[is_unusual], floor, atol=0.02)
    np.testing.assert_array_equal(
        cautious.lower_bound[~is_unusual], confidence.lower_bound[~is_unusual]
    )
    # A threshold on confidence or on the plain bound must not let such rows through either.
    assert (cautious.values[is_unusual] <= hidden.net.mean()).all()
    plain_floor = np.quantile(hidden.scores.cosine, 0.1)
    np.testing.assert_allclose(cautious.plain_lower_bound[is_unusual], plain_floor, atol=0.02)
    np.testing.assert_array_equal(cautious.values[~is_unusual], confidence.values[~is_unusual])
