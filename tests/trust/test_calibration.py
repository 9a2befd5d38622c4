"""Confidence for rows that are rarer than those it is learnt on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import vecfill as vf
from vecfill.inputs.rarity import VocabularyMeans, in_counts
from vecfill.model.offset import Curve
from vecfill.trust.choose.folds import dealt_out
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.hidden import Hidden, Region, _carried
from vecfill.trust.prove.learning import excess_of, learn_confidence
from vecfill.trust.prove.proof import signals_of_unknown
from vecfill.trust.prove.signals import SIGNALS
from vecfill.trust.prove.strata import kinds_by_count, kinds_of_rows


def hidden_block(n_rows: int = 200) -> Hidden:
    """Hidden rows whose first signal tells how good they are."""
    rng = np.random.default_rng(0)
    signals = rng.uniform(size=(n_rows, len(SIGNALS)))
    truth = 0.3 + 0.4 * signals[:, 0] + 0.05 * rng.normal(size=n_rows)
    scores = RowScores(truth, truth, truth, truth - 0.1, *[truth] * 4)
    return Hidden(np.arange(n_rows), dealt_out(n_rows), signals, scores, truth)


def test_signals_do_not_make_unknown_rows_better_as_a_whole_than_the_block():
    block = hidden_block()
    better = np.random.default_rng(1).uniform(0.5, 1.0, size=(2000, len(SIGNALS)))
    believed = learn_confidence(block, better)
    capped = learn_confidence(replace(block, excess=excess_of(block, better)), better)
    mean = block.scores.centred_cosine.mean()
    assert believed.values.mean() > mean + 0.05
    assert capped.values.mean() == pytest.approx(mean, abs=0.002)
    # Rows are still told apart, and bounds go down with the expectation.
    np.testing.assert_array_equal(np.argsort(capped.values), np.argsort(believed.values))
    lowered = believed.values - capped.values
    np.testing.assert_allclose(believed.lower_bound - capped.lower_bound, lowered)
    assert (capped.plain_lower_bound < believed.plain_lower_bound).all()


def test_signals_that_speak_against_unknown_rows_are_believed():
    block = hidden_block()
    worse = np.random.default_rng(1).uniform(0.0, 0.5, size=(2000, len(SIGNALS)))
    assert excess_of(block, worse) == (0.0, 0.0)


def test_a_drift_is_taken_off_unless_signals_say_it_already():
    block, rng = hidden_block(), np.random.default_rng(1)
    mean = block.scores.centred_cosine.mean()
    for seen in (rng.uniform(0.5, 1.0, size=(2000, len(SIGNALS))), block.signals):
        lowered = replace(block, excess=excess_of(block, seen, (0.1, 0.0)))
        found = learn_confidence(lowered, seen).values.mean()
        assert found == pytest.approx(mean - 0.1, abs=0.003)
    worse = rng.uniform(0.0, 0.8, size=(2000, len(SIGNALS)))
    believed = learn_confidence(block, worse).values.mean()
    assert mean - 0.1 < believed < mean - 0.02
    lowered = replace(block, excess=excess_of(block, worse, (0.1, 0.0)))
    assert learn_confidence(lowered, worse).values.mean() == pytest.approx(mean - 0.1, abs=0.003)
    much_worse = rng.uniform(0.0, 0.3, size=(2000, len(SIGNALS)))
    assert excess_of(block, much_worse, (0.1, 0.0)) == (0.0, 0.0)


def test_a_single_good_row_keeps_most_of_its_confidence():
    block = hidden_block()
    best = np.ones((1, len(SIGNALS)))
    alone = learn_confidence(replace(block, excess=excess_of(block, best)), best).values
    believed = learn_confidence(block, best).values
    mean = block.scores.centred_cosine.mean()
    assert alone - mean > 0.9 * (believed - mean)
    assert excess_of(block, best[:0]) == (0.0, 0.0)


def test_what_unknown_rows_look_like_does_not_enter_the_proof_on_hidden_ones():
    block = hidden_block()
    seen = block.signals[:5]
    plain, capped = (
        learn_confidence(each, seen) for each in (block, replace(block, excess=(9, 9)))
    )
    assert not np.array_equal(plain.values, capped.values)
    np.testing.assert_array_equal(plain.expected, capped.expected)
    np.testing.assert_array_equal(plain.is_covered, capped.is_covered)


def a_file_in_order(n_words: int = 3000, n_known: int = 280):
    """A file whose mean vector moves with rank; the unknown entities are rarer words."""
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.choice(n_words, 400, replace=False))
    drift = np.outer(np.log(np.arange(n_words) + 1.0), rng.normal(size=12))
    latent = rng.normal(size=(n_words, 4))
    vectors = drift + np.sin(latent @ rng.normal(size=(4, 12)))
    words = [f"w{i}" for i in range(n_words)]
    table = {words[rank]: np.r_[np.tanh(latent[rank]), rng.normal()] for rank in ranks}
    is_left = np.ones(n_words, np.bool_)
    is_left[ranks[n_known:]] = False
    rows = np.flatnonzero(is_left)
    return table, vf.Embedding([words[row] for row in rows], vectors[rows]), drift


def counts_at(words, *, noise: float = 0.0) -> dict[str, float]:
    rng = np.random.default_rng(2)
    return {word: 1e6 / (int(word[1:]) + 1) ** 0.8 * np.exp(noise * rng.normal()) for word in words}


def test_with_counts_the_whole_vocabulary_still_teaches_the_offset():
    table, base, drift = a_file_in_order()
    result = vf.impute(table, base, names="off", counts=counts_at(table, noise=0.1))
    assert result.to_dict()["rarity"] == "counts"
    assert result.to_dict()["offset"]["learnt_on"] == "the whole vocabulary"
    assert result.decision.rule.uses_own
    # A line from counts to ranks finds each word's own rank, and so its mean vector.
    ranks = [int(word[1:]) for word in result.embedding.words]
    missed = np.linalg.norm(result.model.offsets.unknown - drift[ranks], axis=1)
    assert missed.mean() < 0.2 * np.linalg.norm(drift[ranks] - drift.mean(axis=0), axis=1).mean()


def test_a_hidden_row_with_a_count_has_the_rarity_of_its_count_and_not_of_its_rank():
    table, base, _ = a_file_in_order()
    counts = counts_at(table, noise=0.5)
    found = vf.impute(table, base, names="off", method="paper", counts=counts).alignment.rarity
    assert found.vocabulary is not None
    np.testing.assert_allclose(found.values, -np.log([counts[word] for word in table]))


def test_counts_that_do_not_go_with_ranks_leave_the_vocabulary_aside():
    rng = np.random.default_rng(0)
    words = VocabularyMeans(np.array([2.0, 8.0]), np.eye(2), np.ones(2), n_words=3000)
    log_ranks = rng.uniform(2, 8, size=200)
    assert in_counts(words, log_ranks, rng.normal(size=200)) is None
    assert in_counts(words, log_ranks, -log_ranks) is None
    assert in_counts(words, log_ranks, np.zeros(200)) is None
    # Noise in counts flattens the line: a rare count says less about the rank.
    noisy = in_counts(words, log_ranks, log_ranks + 2 * rng.normal(size=200))
    assert np.ptp(noisy.rarity) > 1.5 * np.ptp(words.rarity)


def test_with_counts_hidden_rows_are_carried_to_the_counts_of_unknown_ones():
    curve = Curve(np.array([0.0, 4.0]), np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([2.0, 1.0]))
    place = Region(curve, np.zeros(2), None, 1.0, np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    rest = np.array([[0.0, 1.0], [0.0, 1.0]])
    rarity = np.array([0.0, 1.0])
    truth = curve.at(rarity) + np.array([[0.0, 4.0], [0.0, 7.0]])
    _, found = _carried(rest, truth, rarity, place)
    # By hand: spreads are 2, 1.75 where rows are and 1.5, 1 where they are carried to.
    assert found[0] == pytest.approx((2 * 2 + 1 * 3) / np.sqrt(5.0 * 13.0))
    assert found[1] == pytest.approx((4 * 4 + 1 * 4) / np.sqrt(17.0 * 32.0))


def test_entities_are_judged_by_their_counts():
    table, base, _ = a_file_in_order()
    result = vf.impute(table, base, names="off", counts=counts_at(table))
    (below,) = (each for each in result.strata if each.name.startswith("counts below"))
    (above,) = (each for each in result.strata if each.name.startswith("counts of"))
    assert below.n_unknown + above.n_unknown == 120
    assert below.n_known + above.n_known == 280
    assert min(below.n_hidden, above.n_hidden) >= 30
    assert below.name in str(result.to_dict()["proof"]["strata"])
    # Too few hidden rows of each kind would prove nothing.
    assert kinds_by_count(-np.log(np.arange(1.0, 50.0)), np.arange(49)) == []


def test_a_kept_model_is_as_sure_as_the_result_it_came_from():
    table, base, _ = a_file_in_order()
    result = vf.impute(table, base, names="off", counts=counts_at(table))
    assert result.confidence.proof == "rarest"
    teachers = result.proof.teachers
    unknown = ~result.alignment.is_known
    rows = teachers.rare.told.rows
    kinds = [each[unknown] for each in kinds_of_rows(result.model, result.alignment, rows)]
    is_rare = np.ones(int(unknown.sum()), np.bool_)
    again = teachers.confidence(signals_of_unknown(result.model), kinds, is_rare)
    np.testing.assert_array_equal(again.values, result.confidence.values)
    # The excess was measured once, on all unknown rows together, and not on those asked for now.
    first = [each[:1] for each in kinds]
    alone = teachers.confidence(signals_of_unknown(result.model)[:1], first, is_rare[:1])
    assert alone.values[0] == result.confidence.values[0]
