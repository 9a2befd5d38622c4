"""What is seen of rows of a dataset, and what hidden rows prove, is what it is in memory."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.distributed import emitting, methods
from vecfill.distributed.methods import SolvedRows, chosen, hidden_places
from vecfill.model.known import KnownRows
from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space
from vecfill.trust.choose.dependence import permutation_p_value
from vecfill.trust.choose.folds import dealt_out, fold_of
from vecfill.trust.choose.scores import Judge
from vecfill.trust.prove import signals as signals_module
from vecfill.trust.prove.hidden import Hidden, hide_and_impute
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.signals import SIGNALS, signals

from .made import Made, made


def assert_same_signals(actual: np.ndarray, expected: np.ndarray) -> None:
    for column, name in enumerate(SIGNALS):
        if name == "concentration":
            # Other random signs are drawn for a dataset.
            assert np.abs(actual[:, column] - expected[:, column]).mean() < 0.3
            continue
        np.testing.assert_allclose(actual[:, column], expected[:, column], atol=1e-4, err_msg=name)


def hidden_in_memory(items: Made, predictor: LatentSemantic) -> Hidden:
    fold = fold_of(items.is_known, hidden_places(int(items.is_known.sum()), 0))
    space, known = Space(items.rows, n_jobs=1), items.vectors[items.is_known]
    return hide_and_impute(space, items.vectors, known, predictor, [fold])


@pytest.mark.parametrize("share", [None, 0.6])
def test_hidden_rows_are_seen_and_scored_as_in_memory(share, tmp_path, monkeypatch):
    predictor, taught = LatentSemantic(ridge=0.1, residual_share=share), []

    def watched(hidden, *arguments, **options):
        taught.append(hidden)
        return learn_confidence(hidden, *arguments, **options)

    monkeypatch.setattr(methods, "learn_confidence", watched)
    items = made(tmp_path, n_rows=800)
    items.imputed("work", method=predictor)
    (hidden,), expected = taught, hidden_in_memory(items, predictor)
    assert hidden.rows.tolist() == expected.rows.tolist()
    assert hidden.fold.tolist() == expected.fold.tolist()
    assert_same_signals(hidden.signals, expected.signals)
    np.testing.assert_allclose(hidden.net, expected.net, atol=1e-5)
    np.testing.assert_allclose(hidden.scores.cosine, expected.scores.cosine, atol=1e-5)


def test_what_is_hidden_decides_nothing_about_hidden_rows(tmp_path, monkeypatch):
    imputed = []

    def watched(rows, predictor):
        imputed.append(SolvedRows.vectors(rows, predictor))
        return imputed[-1]

    class Watched(SolvedRows):
        vectors = watched

    monkeypatch.setattr(methods, "SolvedRows", Watched)
    for name in ("as it is", "changed"):
        items = made(tmp_path / name, n_rows=600)
        if name == "changed":
            known = np.flatnonzero(items.is_known)
            items.vectors[known[hidden_places(known.size, 0)]] += 100.0
            items.write_known()
        items.imputed("work", method=LatentSemantic(ridge=0.1, residual_share=0.6))
    np.testing.assert_array_equal(*imputed)


@pytest.mark.parametrize("share", [None, 0.6])
def test_signals_of_unknown_rows_are_those_in_memory(share, tmp_path, monkeypatch):
    predictor, written = LatentSemantic(ridge=0.1, residual_share=share), []

    def watched(hidden, rows_signals, **options):
        written.append(rows_signals)
        return learn_confidence(hidden, rows_signals, **options)

    monkeypatch.setattr(emitting, "learn_confidence", watched)
    items = made(tmp_path, n_rows=800)
    items.imputed("work", method=predictor)
    space, given = Space(items.rows, n_jobs=1), KnownRows(items.vectors, items.is_known)
    assert_same_signals(np.vstack(written), signals(given, predictor.predict(space, given)))


def test_a_candidate_is_judged_on_rows_that_did_not_choose_it():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(100, 6))
    truth, group = np.arange(50), dealt_out(50)
    noise = rng.normal(size=(50, 6))
    # One is best on all rows for the sake of the first group alone; the others prefer the other.
    lucky = known[truth] + np.where(group == 0, 0.0, 1.0)[:, None] * noise
    steady = known[truth] + np.where(group == 0, 9.0, 0.9)[:, None] * noise
    judge, predictors = Judge(known, np.zeros(6)), (LatentSemantic(), LatentSemantic(ridge=0.1))
    predictions = dict(zip(predictors, (lucky, steady), strict=True))
    choice = chosen(judge, truth, predictions, "cosine")
    assert choice.predictor == predictors[0]
    honest, own = choice.honest.centred_cosine, judge.scored(steady, truth).centred_cosine
    np.testing.assert_array_equal(honest[group == 0], own[group == 0])
    assert honest.mean() < choice.means[0]["centred_cosine"]
    assert choice.p_value > permutation_p_value(lucky, known[truth])


def test_a_new_signal_is_computed_for_datasets_too(tmp_path, monkeypatch):
    sizes = []

    def first(seen):
        sizes.append(len(seen.vectors))
        return seen.vectors[:, 0]

    monkeypatch.setattr(signals_module, "SIGNALS", {**SIGNALS, "first": first})
    data = made(tmp_path, n_rows=600)
    assert data.imputed("work").coverage is not None
    assert sum(sizes) > (~data.is_known).sum()
