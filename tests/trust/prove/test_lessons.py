"""Confidence of rows that lack facts: learnt on hidden rows without the same facts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trust.prove.lacking import METHOD, N_FITTED, N_KNOWN, Shop
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.model.wanted import New
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.prove import limits
from vecfill.trust.prove.gaps import FittedRows
from vecfill.trust.prove.hidden import Asked, hide_and_impute
from vecfill.trust.prove.lessons import MOST_FACTS, _groups


@pytest.fixture(scope="module")
def shop():
    return Shop()


@pytest.fixture(scope="module")
def model(shop):
    return shop.imputed().to_model()


def test_hidden_rows_that_are_asked_for_as_later_rows_come_back_as_they_do(shop):
    """One path for rows of the fit and later ones: blanking nothing changes nothing."""
    domain = shop.imputed().domain
    rows, known = domain.vectors[:N_KNOWN], shop.vectors[:N_KNOWN]
    space, is_known = Space(rows), np.ones(N_KNOWN, bool)
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))

    def same(fold):
        return Asked(New(rows[fold.hidden], fold.hidden), np.arange(fold.hidden.size))

    as_they_are = hide_and_impute(space, known, known, METHOD, folds)
    as_later = hide_and_impute(space, known, known, METHOD, folds, asked=same)
    np.testing.assert_array_equal(as_later.rows, as_they_are.rows)
    np.testing.assert_array_equal(as_later.fold, as_they_are.fold)
    np.testing.assert_allclose(as_later.net, as_they_are.net, atol=1e-5)
    np.testing.assert_allclose(as_later.signals, as_they_are.signals, atol=1e-4)


def test_a_row_made_from_a_hidden_one_does_not_rest_on_it():
    rows = np.arange(6.0)[:, None]
    known_rows = KnownRows(np.arange(6.0)[:, None], np.array([1, 1, 0, 1, 1, 1], bool))
    wanted = New(np.array([[2.1]]), np.array([2]))
    mix = PAPER.predict(Space(rows), known_rows, wanted).composition.mix
    assert 2 not in mix.mixes.indices
    assert 2 in PAPER.predict(Space(rows), known_rows, New(wanted.rows)).composition.mix.used


def test_unknown_rows_without_a_fact_are_promised_what_they_reach(shop):
    table = shop.table.astype({"city": object})
    blank = table.index[N_KNOWN::2]
    table.loc[blank, "city"] = None
    result = shop.imputed(table)
    words = result.embedding.words
    truth = shop.truth(words, result.embedding.vectors)
    is_blank = np.isin(words, blank)
    sure = result.confidence
    for rows in (is_blank, ~is_blank):
        assert sure.values[rows].mean() == pytest.approx(truth[rows].mean(), abs=0.05)
        assert 0.82 < (truth >= sure.lower_bound)[rows].mean() < 0.97
    assert sure.values[is_blank].mean() < sure.values[~is_blank].mean() - 0.1


def test_complete_rows_are_judged_as_if_no_row_lacked_a_fact(shop):
    """Only rows that lack facts are judged by those that lack them."""
    complete = shop.imputed()
    taught = complete.proof.teachers.plain.told.signals.shape[1]
    lessons = complete.proof.lessons
    assert {teacher.told.signals.shape[1] for teacher in lessons.teachers} == {taught + 1}
    gaps = np.zeros((3, 4), bool)
    sure = complete.confidence.rows(np.arange(3))
    assert lessons.applied(sure, complete.proof.teachers, np.zeros((3, 7)), [], gaps) is sure


def test_lessons_for_rows_to_come_are_learnt_when_first_asked_for(shop, monkeypatch):
    learnt, learn = [], limits.learn_lessons

    def counted(*args, **options):
        learnt.append(learn(*args, **options))
        return learnt[-1]

    monkeypatch.setattr(limits, "learn_lessons", counted)
    complete = shop.imputed()
    assert complete.unusual == {}
    assert not learnt
    assert complete.to_model().confidence is not None
    assert len(learnt) == 1
    assert complete.proof.lessons is complete.proof.lessons
    assert len(learnt) == 1


def test_a_later_row_without_a_fact_is_promised_what_it_reaches_and_listed(shop, model):
    usual = model.add(shop.later)
    assert usual.unusual == {}
    new = shop.later.assign(city=None)
    added = model.add(new)
    truth = shop.truth(added.embedding.words, added.embedding.vectors)
    assert added.confidence.values.mean() == pytest.approx(truth.mean(), abs=0.05)
    assert 0.82 < (truth >= added.confidence.lower_bound).mean() < 0.97
    assert added.confidence.values.mean() < usual.confidence.values.mean() - 0.1
    why = ("city is missing, which no fitted entity lacked",)
    assert set(added.unusual.values()) == {why}


def test_a_category_that_no_fitted_row_had_counts_as_missing(shop, model):
    missing = model.add(shop.later.assign(city=None)).confidence
    unseen = model.add(shop.later.assign(city="atlantis"))
    np.testing.assert_array_equal(unseen.confidence.values, missing.values)
    np.testing.assert_array_equal(unseen.confidence.lower_bound, missing.lower_bound)
    assert "'atlantis', which no fitted entity had" in unseen.unusual["item400"][0]


def test_a_category_that_only_unknown_rows_have_counts_as_missing(shop):
    table = shop.table[:N_FITTED].copy()
    table.loc[table.index[-20:], "city"] = "atlantis"
    gaps = shop.imputed(table).proof.gaps
    assert gaps[-20:, 3].all()
    assert gaps.sum() == 20


def test_facts_that_are_missing_together_and_were_not_tried_have_no_bound(shop, model):
    added = model.add(shop.later.assign(city=None, price=np.nan))
    sure = added.confidence
    assert (sure.lower_bound == -1).all()
    assert (sure.plain_lower_bound == -1).all()
    truth = shop.truth(added.embedding.words, added.embedding.vectors)
    assert sure.values.mean() < truth.mean() + 0.05
    alone = model.add(shop.later.assign(city=None)).confidence
    assert (sure.values <= alone.values.max()).all()
    assert "lacks price and city together, which was not tested" in added.unusual["item400"]


def test_a_row_is_judged_alike_alone_and_among_others(shop, model):
    new = shop.later[:10].assign(city=None)
    together, alone = model.add(new).confidence, model.add(new[:1]).confidence
    np.testing.assert_allclose(together.lower_bound[0], alone.lower_bound[0], atol=1e-9)
    np.testing.assert_allclose(together.values[0], alone.values[0], atol=1e-9)


def test_a_saved_model_judges_rows_without_facts_alike(shop, model, tmp_path):
    import vecfill as vf

    model.save(tmp_path / "m.vecfill")
    new = shop.later.assign(price=np.nan)
    kept, loaded = (each.add(new) for each in (model, vf.load(tmp_path / "m.vecfill")))
    np.testing.assert_array_equal(kept.confidence.lower_bound, loaded.confidence.lower_bound)
    assert kept.unusual == loaded.unusual


def test_rows_that_lack_facts_stay_judged_so_when_a_model_learns_more(shop):
    table = shop.table[:N_FITTED].astype({"city": object})
    table.loc[table.index[N_KNOWN:], "city"] = None
    result = shop.imputed(table)
    model = result.to_model()
    word = result.embedding.words[0]
    model.update({word: shop.vectors[N_KNOWN]})
    before, after = result.confidence.values[1:], model.confidence.values
    assert np.abs(before - after).mean() < 0.05
    assert after.mean() < shop.imputed().confidence.values.mean() - 0.1


def test_hidden_rows_that_lack_more_than_a_pattern_teach_only_if_others_are_few(shop):
    table = shop.table[:N_FITTED].astype({"city": object})
    table.loc[table.index[:60], "price"] = np.nan
    table.loc[table.index[N_KNOWN:], "city"] = None
    result = shop.imputed(table)
    lessons, gaps = result.proof.lessons, result.proof.gaps
    (place,) = (at for at, pattern in enumerate(lessons.patterns) if pattern == (3,))
    told = lessons.teachers[lessons.teacher_of[place]].told
    assert not gaps[told.rows, 0].any()
    assert told.rows.size == N_KNOWN - 60


def test_patterns_that_are_seldom_are_learnt_together():
    seldom = [(at, at + 1) for at in range(20)]
    groups = _groups([(0, 3)] * 60 + seldom + [()] * 100, 20)
    assert groups[0] == [(0, 3)]
    assert groups[1] == seldom
    assert groups[2 : 2 + MOST_FACTS] == [[(at,)] for at in range(MOST_FACTS)]
    assert groups[-1] == [(at,) for at in range(MOST_FACTS, 20)]


def test_a_source_that_does_not_describe_a_row_is_a_missing_fact(shop):
    facts = {"numbers": shop.table[["price", "size"]], "more": shop.table[["age", "city"]]}
    import vecfill as vf

    fitted = {name: table[:N_FITTED] for name, table in facts.items()}
    result = vf.impute(fitted, shop.known, names="off", candidates="classic")
    fact_list = FittedRows.of(
        result.domain, result.predictor, result.model.space, result.model.is_known
    ).fact_list
    assert "source 'more'" in fact_list.names
    assert "more: city" in fact_list.names
    model = result.to_model()
    whole = model.add({name: table[N_FITTED:] for name, table in facts.items()})
    half = model.add({"numbers": facts["numbers"][N_FITTED:]})
    truth = shop.truth(half.embedding.words, half.embedding.vectors)
    assert half.confidence.values.mean() == pytest.approx(truth.mean(), abs=0.08)
    assert half.confidence.values.mean() < whole.confidence.values.mean()
    assert "no fitted entity had exactly these sources" in half.unusual["item400"]
