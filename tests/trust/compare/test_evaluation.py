from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.trust.choose.test_choice import made
from vecfill.inputs.rarity import Rarity
from vecfill.model.known import KnownRows
from vecfill.model.predictors import RIVALS
from vecfill.model.predictors.rivals import sparsemax_rows
from vecfill.model.space import Space
from vecfill.trust.choose.decision import decide
from vecfill.trust.compare import evaluation as evaluation_module
from vecfill.trust.compare import rivals as tuned_rivals
from vecfill.trust.compare.evaluation import Comparing, evaluate_rows


@pytest.fixture(scope="module")
def report():
    domain, embedding, is_known = made(120)
    return evaluate_rows(Space(domain), embedding, is_known, Comparing(n_folds=3))


def test_every_method_is_scored_on_the_same_rows(report):
    assert set(report.scores) == {"auto", "paper", *tuned_rivals.RIVALS}
    assert {scores.reciprocal_rank.size for scores in report.scores.values()} == {report.n_known}


def test_the_report_is_plain_json_with_the_promised_names(report):
    told = json.loads(json.dumps(report.to_dict()))
    assert {"n_known", "n_unknown", "folds", "methods", "chosen", "verdict"} <= set(told)
    assert set(told["methods"]["auto"]) == {
        "centred_cosine",
        "mrr",
        "hits_at_10",
        "cosine",
        "norm_ratio",
        "agreement",
    }
    assert "hidden entities are found among the ten vectors nearest" in told["verdict"]


def test_differences_are_level_for_a_method_and_itself(report):
    assert report.difference("auto", "auto", "mrr") == (0.0, 0.0)
    low, high = report.difference("auto", "mean", "centred_cosine")
    assert 0 < low < high


def test_text_and_html_name_every_method(report):
    for name in report.scores:
        assert report.label(name) in str(report)
        assert report.label(name) in report._repr_html_().replace("&#x27;", "'")
        assert f"{report.methods[name]['mrr']:.3f}" in report._repr_html_()
    assert "kernel_ridge" not in str(report) + report._repr_html_()


def test_without_signal_the_verdict_says_so():
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(60, 4)), rng.normal(size=(60, 40))
    report = evaluate_rows(Space(domain), embedding, np.ones(60, bool), Comparing(n_folds=3))
    assert not report.has_signal
    assert "carries no signal" in report.verdict


@pytest.mark.parametrize("name", list(RIVALS))
def test_rivals_take_sparse_domains_and_give_the_same(name):
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    is_known = np.arange(40) < 30
    known = rng.normal(size=(30, 3))
    given = KnownRows(np.vstack([known, np.full((10, 3), np.nan)]), is_known)
    dense = RIVALS[name].predict(Space(domain), given).vectors
    sparse = RIVALS[name].predict(Space(csr_array(domain)), given).vectors
    assert dense.shape == (10, 3)
    np.testing.assert_allclose(dense, sparse, atol=1e-8)


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    scores = np.array([[0.5, 0.2, -3.0], [9.0, 0.0, 0.0]])
    np.testing.assert_allclose(sparsemax_rows(scores), [[0.65, 0.35, 0.0], [1.0, 0.0, 0.0]])


def test_in_each_fold_auto_is_told_all_options_and_no_rarity_of_hidden_rows(monkeypatch):
    domain, embedding, is_known = made(100)
    rarity = Rarity(np.where(is_known, np.arange(100.0), np.nan), "order")
    words, seen = np.random.default_rng(1).normal(size=(30, 12)), []

    def recorded(space, vectors, mask, *, rarity, **options):
        seen.append((mask.copy(), rarity.values.copy(), options))
        return decide(space, vectors, mask, rarity=rarity, **options)

    monkeypatch.setattr(evaluation_module, "decide", recorded)
    evaluate_rows(
        Space(domain), embedding, is_known,
        Comparing(hide="rarest", goal="rank", candidates="classic", seed=4),
        rarity=rarity, words=words,
    )  # fmt: skip
    *in_folds, (mask_at_the_end, _, _) = seen
    assert (mask_at_the_end == is_known).all()
    assert len(in_folds) == 2
    for mask, values, options in in_folds:
        # A hidden row is an unknown one there, and those have no rarity.
        np.testing.assert_array_equal(np.isfinite(values), mask)
        assert options["words"] is words
        assert {name: options[name] for name in ("goal", "candidates", "seed")} == {
            "goal": "rank", "candidates": "classic", "seed": 5,
        }  # fmt: skip


def drifting(drift):
    """Return rows sorted by rarity that tell a little about it, and vectors that drift with it."""
    rng = np.random.default_rng(0)
    latent, order = rng.normal(size=(200, 4)), np.log(50.0 * np.arange(200) + 1.0)
    domain = np.c_[np.tanh(latent @ rng.normal(size=(4, 8))), 0.5 * order + rng.normal(size=200)]
    embedding = np.sin(latent @ rng.normal(size=(4, 12)))
    embedding += drift / 3.0 * np.outer(order - order.mean(), rng.normal(size=12))
    is_known = np.arange(200) < 140
    rarity = Rarity(np.where(is_known, order, np.nan), "order")
    how = Comparing(hide="rarest", candidates="classic", rivals={})
    return evaluate_rows(Space(domain), embedding, is_known, how, rarity=rarity)


def test_hidden_rare_rows_are_judged_by_the_p_value_of_the_whole_table():
    report = drifting(4.0)
    assert report.p_value == report.decision.choice.p_value < 1e-3
    assert report.has_signal


def test_what_rare_rows_have_in_common_is_not_called_no_better_than_the_mean():
    """The cosine was .95 where the mean has 0, and the verdict "no better than the mean"."""
    report = drifting(10.0)
    assert report.methods["auto"]["centred_cosine"] > 0.4
    assert not report.has_signal
    assert "no better than the mean" not in report.verdict
    assert "what rare entities have in common" in report.verdict
