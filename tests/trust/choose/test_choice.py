from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from scipy.stats import norm

from vecfill import InputError
from vecfill.machine.lengths import unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, KernelRidge, LatentSemantic, LeafKernel, Sparsemax
from vecfill.model.space import Space
from vecfill.model.stack import Stack
from vecfill.trust.choose import choice as choice_module
from vecfill.trust.choose import trials
from vecfill.trust.choose.candidates import first_round, kernel_ridges, raced, second_round
from vecfill.trust.choose.choice import Choice, FewerDims, choose
from vecfill.trust.choose.dependence import permutation_p_value
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.choose.scores import RowScores


def made(n_rows: int = 150, *, noise: float = 0.1, seed: int = 0):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 3))
    domain = np.tanh(latent @ rng.normal(size=(3, 10))) + noise * rng.normal(size=(n_rows, 10))
    embedding = np.sin(latent @ rng.normal(size=(3, 12)))
    is_known = rng.random(n_rows) < 0.7
    embedding[~is_known] = np.nan
    return domain, embedding, is_known


def test_every_known_row_is_hidden_once_and_never_seen_then():
    is_known = np.random.default_rng(0).random(40) < 0.6
    folds = list(hidden_folds(is_known, n_folds=5, seed=3))
    hidden = np.concatenate([fold.hidden for fold in folds])
    assert sorted(hidden.tolist()) == np.flatnonzero(is_known).tolist()
    for fold in folds:
        assert not fold.is_seen[fold.hidden].any()
        assert (np.flatnonzero(is_known)[fold.truth] == fold.hidden).all()
        assert (np.flatnonzero(~fold.is_seen)[fold.places] == fold.hidden).all()


@pytest.mark.parametrize("n_folds", [1, 50])
def test_folds_that_cannot_be_are_refused(n_folds):
    with pytest.raises(InputError, match="Use from 2 to 10 folds"):
        list(hidden_folds(np.ones(10, bool), n_folds=n_folds, seed=0))


def test_a_signal_is_found_and_a_shuffled_domain_has_none():
    domain, embedding, is_known = made()
    found = choose(Space(domain), embedding, is_known)
    assert found.has_signal
    assert found.honest.centred_cosine.mean() > 0.5
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(domain))
        shuffled = choose(Space(domain[order]), embedding, is_known)
        assert not shuffled.has_signal


def test_the_choice_is_the_same_for_the_same_seed_and_any_number_of_threads():
    domain, embedding, is_known = made()
    first = choose(Space(domain, n_jobs=1), embedding, is_known, seed=4)
    again = choose(Space(domain, n_jobs=3), embedding, is_known, seed=4)
    assert first.predictor == again.predictor
    assert first.means == again.means


def test_hidden_vectors_never_reach_their_own_prediction():
    # Every vector is random, so nothing can predict it but itself.
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(150, 4)), rng.normal(size=(150, 200))
    found = choose(Space(domain), embedding, np.ones(150, bool))
    assert abs(found.honest.centred_cosine.mean()) < 0.02
    assert not found.has_signal


def test_chance_is_even_for_unrelated_directions():
    rng = np.random.default_rng(0)
    # A shared direction is no signal: every prediction is as near to every truth.
    shared = rng.normal(size=30) * 3
    chances = [
        permutation_p_value(
            unit(rng.normal(size=(40, 30)) + shared), unit(rng.normal(size=(40, 30)) + shared)
        )
        for _ in range(300)
    ]
    assert 0.4 < np.mean(chances) < 0.6
    assert np.mean(np.array(chances) < 0.05) < 0.1


def test_chance_is_that_of_all_pairs_of_predictions_and_truths():
    rng = np.random.default_rng(0)
    truth = unit(rng.normal(size=(60, 7)))
    predicted = unit(0.2 * truth + rng.normal(size=(60, 7)))
    cosines = predicted @ truth.T
    centred = cosines - cosines.mean(axis=0) - cosines.mean(axis=1, keepdims=True) + cosines.mean()
    spread = np.sqrt((centred**2).sum() / 59)
    expected = norm.sf((np.trace(cosines) - 60 * cosines.mean()) / spread)
    np.testing.assert_allclose(permutation_p_value(predicted, truth), expected, rtol=1e-10)


def test_equal_predictions_show_nothing():
    truth = unit(np.random.default_rng(0).normal(size=(60, 7)))
    assert permutation_p_value(np.tile(truth[:1], (60, 1)), truth) == 1.0


@pytest.mark.parametrize("seed", [1, 2])
def test_racing_chooses_as_well_as_the_full_comparison(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(260, 3))
    domain = np.exp(latent @ rng.normal(size=(3, 8)))
    embedding = np.tanh(latent @ rng.normal(size=(3, 6))) + 0.2 * rng.normal(size=(260, 6))
    is_known = rng.random(260) < 0.8
    # Far harsher than in use: few rows show who is ahead.
    monkeypatch.setattr(trials, "FEWEST_RACED", 15)
    monkeypatch.setattr(LatentSemantic, "shares_folds", classmethod(lambda *_: False))
    quick = choose(Space(domain), embedding, is_known)
    monkeypatch.setattr(trials, "FEWEST_RACED", np.inf)
    monkeypatch.setattr(choice_module, "other_degrees", second_round)
    monkeypatch.setattr(choice_module, "other_ridges", lambda *_: [])
    full = choose(Space(domain), embedding, is_known)
    assert len(quick.tried) < len(full.tried)
    for measure, noise in (("centred_cosine", 0.01), ("mrr", 0.02)):
        gap = full.honest.of(measure).mean() - quick.honest.of(measure).mean()
        assert gap < noise


@pytest.mark.parametrize(("most_quick", "is_shared"), [(100, True), (100, False), (150, True)])
def test_only_a_large_system_shared_by_all_folds_meets_its_dear_graph_last(
    monkeypatch, most_quick, is_shared
):
    domain, embedding, is_known = made(150)
    monkeypatch.setattr(choice_module, "MOST_QUICK", most_quick)
    monkeypatch.setattr(trials.Trials, "are_shared", lambda *_: is_shared)
    monkeypatch.setattr(trials.Trials, "is_beaten", lambda *_: False)
    degrees = [
        each.min_degree
        for each in choose(Space(domain), embedding, is_known).tried
        if isinstance(each, LatentSemantic)
    ]
    # The graph with more neighbours is the last of all, or comes before the other weights.
    assert (degrees == sorted(degrees)) is (is_shared and most_quick < 150)
    assert set(degrees) == {8, 20}


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 1.0, 2.0, 3.0)])
def test_preparations_with_the_same_distances_are_tried_once(scales):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(150, 4))
    latent /= latent.std(axis=0)
    # A linear map: rows as they are do best, and standardized ones are the same or come second.
    embedding = latent @ rng.normal(size=(4, 9)) + 0.1 * rng.normal(size=(150, 9))
    found = choose(Space(latent * scales), embedding, np.ones(150, bool))
    prepared = {each.preparation for each in found.tried if isinstance(each, LatentSemantic)}
    assert (prepared in ({"as_given"}, {"standardized"})) is (len(scales) == 1)
    kernels = [each.kernel for each in found.tried if isinstance(each, KernelRidge)]
    assert len(kernels) > 1 or len(scales) == 1


def test_only_a_group_that_leads_on_the_first_fold_sees_the_others(monkeypatch):
    monkeypatch.setattr(trials, "FEWEST_RACED", 15)
    monkeypatch.setattr(LatentSemantic, "shares_folds", classmethod(lambda *_: False))
    domain, embedding, is_known = made()
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    good, bad = LatentSemantic(ridge=0.1), LatentSemantic(min_degree=100, ridge=100.0)
    for order, dropped in (([good, bad], [bad]), ([bad, good], [])):
        race = trials.Trials(Space(domain), embedding, is_known, folds, "balanced")
        for each in order:
            race.run([[each]], lambda: None)
        assert race.dropped == dropped
        assert race.best() == good


def test_a_kind_that_is_clearly_beaten_is_not_tuned_further(monkeypatch):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(200, 6))
    embedding, told = np.sin(latent @ rng.normal(size=(6, 12))), []
    is_known = np.ones(200, bool)
    monkeypatch.setattr(trials.Trials, "is_beaten", lambda *_: True)
    found = choose(Space(latent), embedding, is_known, progress=lambda *each: told.append(each))
    degrees = {each.min_degree for each in found.tried if isinstance(each, LatentSemantic)}
    assert degrees == {8}
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize(("bend", "needs_none"), [(0.0, True), (2.0, False)])
def test_no_graph_is_needed_where_neighbors_add_nothing_to_the_trend(bend, needs_none):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(600, 2))
    embedding = rows @ rng.normal(size=(2, 12)) + 0.5 * rng.normal(size=(600, 12))
    embedding += bend * np.sin(6 * rows) @ rng.normal(size=(2, 12))
    space, is_known = Space(rows), rng.random(600) < 0.8
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    race = trials.Trials(space, embedding, is_known, folds, "balanced")
    race.run(first_round(space, ["as_given"]), lambda: None)
    assert race.needs_no_graph() == needs_none


def test_without_need_of_a_graph_none_is_tuned(monkeypatch):
    monkeypatch.setattr(trials.Trials, "is_beaten", lambda *_: False)
    domain, embedding, is_known = made()
    for needs_none, degrees in ((True, {8}), (False, {8, 20})):
        monkeypatch.setattr(trials.Trials, "needs_no_graph", lambda _, value=needs_none: value)
        tried = choose(Space(domain), embedding, is_known).tried
        assert {mix.min_degree for mix in tried if isinstance(mix, LatentSemantic)} == degrees


def test_too_few_known_rows_are_refused_with_the_way_out():
    domain, embedding, _ = made()
    is_known = np.arange(150) < 9
    with pytest.raises(InputError, match=r"Only 9 entities are known.*method=.paper."):
        choose(Space(domain), embedding, is_known)


def test_distances_admit_only_what_needs_no_vectors():
    domain, embedding, is_known = made()
    distances = np.sqrt(((domain[:, None] - domain[None]) ** 2).sum(axis=2))
    found = choose(Space(distances, is_distances=True), embedding, is_known)
    assert found.has_signal
    single = [each for each in found.tried if not isinstance(each, Stack)]
    assert {each.preparation for each in single} == {"as_given"}
    assert all(getattr(each, "residual_share", None) is None for each in single)
    assert {type(each) for each in found.tried} >= {LatentSemantic, KernelRidge}


def test_a_large_embedding_is_compared_in_fewer_dimensions(monkeypatch):
    monkeypatch.setattr(choice_module, "MOST_ENTRIES", 10)
    monkeypatch.setattr(choice_module, "LEAST_DIMS", 4)
    _, embedding, is_known = made()
    fewer = FewerDims.of(embedding, is_known)
    few = fewer.of_known(embedding, is_known)
    assert few.shape == (150, 5)
    # The mean keeps its length beside the four directions in which vectors differ most.
    mean = embedding[is_known].mean(axis=0)
    assert np.linalg.norm(fewer.along(mean)) == pytest.approx(np.linalg.norm(mean))
    assert (np.isnan(few).all(axis=1) == ~is_known).all()


def test_the_paper_is_the_estimator_and_no_residual_leaves_the_trend():
    from vecfill import LatentSemanticImputer

    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    expected = LatentSemanticImputer().fit(domain, embedding).embedding_[~is_known]
    np.testing.assert_array_equal(PAPER.predict(space, given).vectors, expected)
    alone = LatentSemantic(residual_share=0.0).predict(space, given)
    np.testing.assert_allclose(alone.vectors, alone.composition.trend.values[~is_known])


def test_the_second_round_keeps_the_preparation_that_won_the_first(monkeypatch):
    monkeypatch.setattr(trials.Trials, "is_beaten", lambda *_: False)
    domain, embedding, is_known = made()
    domain[:, 0] *= 1e4
    found = choose(Space(domain), embedding, is_known)
    mixes = [each for each in found.tried if isinstance(each, LatentSemantic)]
    later = {each.preparation for each in mixes if each.min_degree == 20}
    assert len(later) == 1
    assert later != {"as_given"}


def test_classic_candidates_are_those_of_before():
    domain, embedding, is_known = made()
    found = choose(Space(domain), embedding, is_known, candidates="classic")
    preparations = ["as_given", "standardized", "unit_rows", "unit_rows_without_first_component"]
    shares = (None, 0.3, 0.6, 1.0)
    first = [
        LatentSemantic(each, 8, 0.1, share) for each in preparations for share in (*shares, 0.0)
    ]
    later = [
        LatentSemantic("as_given", degree, ridge, share)
        for degree in (8, 20)
        for ridge in (0.0, 0.1, 0.3)
        for share in shares
        if (degree, ridge) != (8, 0.1)
    ]
    assert list(found.tried) == first + later
    # Recorded before there were other candidates.
    assert found.predictor == LatentSemantic("as_given", 8, 0.3, 0.6)
    recorded = {
        0: (0.7492830998551393, 0.4147719873376522),
        7: (0.7471375095795302, 0.4210004794045177),
        13: (0.7139503826800269, 0.3803905777144894),
        25: (0.7317304467203233, 0.41342648177354974),
        39: (0.7287607225080551, 0.42177210359567174),
    }
    for number, measures in recorded.items():
        means = found.means[number]
        assert (means["centred_cosine"], means["mrr"]) == pytest.approx(measures, rel=1e-9)
    # The rule of choosing has changed since, and with it which of them judges which fold.
    assert found.honest.centred_cosine.mean() == pytest.approx(0.7531776561388656, abs=0.005)


def test_preparations_and_kernels_enter_the_folds_by_a_race():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(150, 4))
    domain = np.exp(3 * latent)
    found = choose(Space(domain), latent @ rng.normal(size=(4, 9)), np.ones(150, bool))
    mixes = [each for each in found.tried if isinstance(each, LatentSemantic)]
    assert len({each.preparation for each in mixes}) == 2
    assert mixes[0].preparation == "rank_normal"
    assert sum(isinstance(each, KernelRidge) for each in found.tried) == 2
    assert sum(isinstance(each, Stack) for each in found.tried) in (0, 2)


@pytest.mark.parametrize("candidates", ["all", "classic"])
def test_progress_reaches_its_end(candidates):
    domain, embedding, is_known = made()
    told = []

    def tell(*each):
        told.append(each)

    choose(Space(domain), embedding, is_known, candidates=candidates, progress=tell)
    done = [each for each, _ in told]
    assert done == sorted(set(done))
    assert {total for _, total in told} == {done[-1]}


def test_large_spaces_keep_only_what_the_race_has_left(monkeypatch):
    from vecfill.model import space as space_module

    monkeypatch.setattr(space_module, "LARGE", 0)
    monkeypatch.setattr(choice_module, "MOST_FOR_KERNELS", 50)
    domain, embedding, is_known = made()
    space = Space(domain)
    found = choose(space, embedding, is_known)
    assert not any(isinstance(each, KernelRidge) for each in found.tried)
    used = {each.preparation for each in found.tried if isinstance(each, LatentSemantic)}
    kept = {key[1] for key in space._kept if isinstance(key, tuple) and key[0] == "rows"}
    assert kept - {"as_given"} == used - {"as_given"}


def test_no_fold_is_hidden_once_exactly_enough_rows_have_been():
    folds = list(hidden_folds(np.ones(40, bool), n_folds=4, seed=0, enough=20))
    assert [fold.hidden.size for fold in folds] == [10, 10]


def test_vectors_that_point_away_from_the_truth_are_no_signal_however_unlikely():
    away = RowScores(*[np.full(50, -0.5)] * 8)
    near = RowScores(*[np.full(50, 0.5)] * 8)
    assert not Choice(PAPER, (PAPER,), ({},), away, p_value=1e-9).has_signal
    assert Choice(PAPER, (PAPER,), ({},), near, p_value=1e-9).has_signal


def test_vectors_are_compared_where_they_differ_and_not_where_their_mean_lies(monkeypatch):
    monkeypatch.setattr(choice_module, "MOST_ENTRIES", 1)
    monkeypatch.setattr(choice_module, "LEAST_DIMS", 1)
    embedding = np.zeros((40, 3))
    embedding[:, 0] = 100.0
    embedding[:, 1] = np.random.default_rng(0).normal(size=40)
    fewer = FewerDims.of(embedding, np.ones(40, bool))
    step = np.array([[0.0, 1.0, 0.0]])
    assert abs(fewer.along(step)[0, 0]) == pytest.approx(1.0)


def test_the_goal_decides_the_race_as_well(monkeypatch):
    goals = []

    def recorded(space, known_rows, entrants, *, goal):
        goals.append(goal)
        return raced(space, known_rows, entrants, goal=goal)

    monkeypatch.setattr(choice_module, "raced", recorded)
    domain, embedding, is_known = made(60)
    choose(Space(domain), embedding, is_known, goal="rank")
    assert goals == ["rank"]


def test_the_race_does_not_fill_sparse_rows():
    rows = csr_array(random_array((60, 500), density=0.02, rng=np.random.default_rng(0)))
    raced_preparations = {entrant.preparation for entrant in kernel_ridges(Space(rows))}
    assert "unit_rows_without_first_component" not in raced_preparations
    assert "rank_normal" in raced_preparations
    filled = {entrant.preparation for entrant in kernel_ridges(Space(rows.toarray()))}
    assert filled - raced_preparations == {"unit_rows_without_first_component"}


def test_only_for_ranks_are_stacks_whitened_and_sparsemax_tried():
    domain, embedding, is_known = made(60)
    for goal in ("balanced", "cosine", "rank"):
        predictors = choose(Space(domain), embedding, is_known, goal=goal).tried
        assert any(predictor.whitened > 0 for predictor in predictors) == (goal == "rank")
        assert any(isinstance(predictor, Sparsemax) for predictor in predictors) == (goal == "rank")
        assert any(isinstance(predictor, LeafKernel) for predictor in predictors)
        assert len(set(predictors)) == len(predictors)


def test_distances_are_chosen_among_for_ranks_too():
    domain, embedding, is_known = made(60)
    distances = np.linalg.norm(domain[:, None] - domain[None], axis=2)
    choice = choose(Space(distances, is_distances=True), embedding, is_known, goal="rank")
    assert np.isfinite(choice.honest.reciprocal_rank).all()
