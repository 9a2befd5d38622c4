"""Rows far from the known ones: what a block of hidden rows teaches of them, and where it ends."""

from __future__ import annotations

import numpy as np

import vecfill as vf
from tests.trust.prove.lacking import N_FITTED, Shop
from vecfill.model.predictors import KernelRidge

N_KNOWN, N = 200, 320


def imputed(shift: float, seed: int = 0, **options: object):
    """Return a result, and the true cosines, of unknown rows that are shifted from the known."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, 4))
    rows[N_KNOWN:] += shift
    vectors = np.sin(rows) @ rng.normal(size=(4, 8)) + 0.4 * rng.normal(size=(N, 8))
    names = [f"e{row:03d}" for row in range(N)]
    known = dict(zip(names[:N_KNOWN], vectors, strict=False))
    table = dict(zip(names, rows, strict=True))
    method = KernelRidge(preparation="standardized")
    result = vf.impute(table, known, names="off", method=method, force=True, **options)
    if result.abstained:
        return result, np.empty(0)
    centre = vectors[:N_KNOWN].mean(axis=0)
    left, right = result.embedding.vectors - centre, vectors[N_KNOWN:] - centre
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return result, (left * right).sum(axis=1) / lengths


def test_rows_like_the_known_ones_are_judged_as_random_hidden_rows_are():
    result, _ = imputed(0.0)
    assert result.unusual == {}
    assert (result.confidence.lower_bound > -1).all()


def test_a_cluster_that_no_known_row_is_in_has_no_bound_and_is_named():
    result, _ = imputed(8.0)
    assert len(result.unusual) == N - N_KNOWN
    assert (result.confidence.lower_bound == -1).all()
    assert (result.confidence.plain_lower_bound == -1).all()
    assert any("120 unknown entities have no bound" in note for note in result.notes)
    assert "at most that for 120 without a bound" in repr(result.confidence)


def test_a_least_confidence_keeps_nothing_that_has_no_bound():
    result, _ = imputed(8.0)
    least = float(result.confidence.values.min()) - 0.1
    assert len(imputed(8.0, min_confidence=least)[0].abstained) == N - N_KNOWN
    assert imputed(0.0, min_confidence=-1.0)[0].abstained == ()


def test_rows_that_are_shifted_a_little_get_bounds_from_the_block_that_is_most_like_them():
    shares, gaps = [], []
    for seed in range(3):
        result, truth = imputed(1.0, seed)
        has_bound = result.confidence.lower_bound > -1
        assert 0.2 < has_bound.mean() < 1
        shares.append((truth >= result.confidence.lower_bound)[has_bound].mean())
        gaps.append((result.confidence.values - truth)[has_bound].mean())
    assert 0.8 < np.mean(shares) < 0.98
    assert np.mean(gaps) < 0.05


def test_one_row_far_away_has_no_bound_and_the_others_keep_theirs():
    shop = Shop()
    table = shop.table[:N_FITTED].copy()
    word = table.index[-1]
    table.loc[word, "price"] = 400.0
    result, usual = shop.imputed(table), shop.imputed()
    assert list(result.unusual) == [word]
    assert result.confidence.lower_bound[-1] == -1
    assert result.confidence.values[-1] <= result.proof.lessons.reach
    assert (result.confidence.lower_bound[:-1] > -1).all()
    assert usual.unusual == {}


def test_rows_without_a_bound_keep_none_when_the_model_learns_more():
    result, _ = imputed(8.0)
    model = result.to_model()
    model.update({result.embedding.words[0]: np.ones(8)})
    assert (model.confidence.lower_bound == -1).all()
    assert model.confidence.values.max() <= result.proof.lessons.reach + 1e-12
