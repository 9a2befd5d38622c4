"""Vectors judged by what they recommend."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import vecfill as vf
from vecfill.inputs.interactions import Tastes
from vecfill.model.space import Space
from vecfill.trust.choose.choice import choose
from vecfill.trust.choose.folds import fold_of
from vecfill.trust.choose.recommending import (
    Audience,
    Recommend,
    Setting,
    of_rows,
    solved,
    tastes_of,
)
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.choose.stacking import stack_weights
from vecfill.trust.choose.trials import standing

rng = np.random.default_rng(0)
N_USERS, N_ITEMS = 60, 90
latent = rng.normal(size=(N_ITEMS, 3)) + np.array([1.0, 0.0, 0.0])
people = rng.normal(size=(N_USERS, 3)) + np.array([0.5, 0.0, 0.0])
chances = 1 / (1 + np.exp(2.0 - people @ latent.T))
taken = csr_array((rng.random((N_USERS, N_ITEMS)) < chances).astype(float))
vectors = latent @ rng.normal(size=(3, 5))
every = np.ones(N_ITEMS, bool)


def ndcg_by_hand(scores, relevant, n_shown=20):
    values = []
    for row, liked in zip(scores, relevant, strict=True):
        if not liked.any():
            continue
        hits = liked[np.argsort(-row, kind="stable")[:n_shown]]
        discounts = 1 / np.log2(np.arange(2, n_shown + 2))
        best = discounts[: min(int(liked.sum()), n_shown)].sum()
        values.append((hits * discounts[: hits.size]).sum() / best)
    return np.mean(values)


@pytest.fixture
def fold():
    return fold_of(every, np.arange(30))


def test_what_items_add_to_ndcg_sums_to_the_mean_over_users(fold):
    audience = Audience.of(Tastes(taken), vectors, [fold])
    imputed = vectors[fold.hidden] + rng.normal(size=(30, 5))
    (panel,) = audience.panels
    relevant = taken[:, fold.hidden].toarray()
    gains = audience.gains(imputed)
    assert gains[:, 0].mean() == pytest.approx(
        ndcg_by_hand(panel.vectors @ imputed.T, relevant), rel=1e-9
    )
    top = np.argsort(-(panel.vectors @ imputed.T), axis=1)[:, :20]
    has_liked = relevant.any(axis=1)
    hits = np.take_along_axis(relevant, top, axis=1).sum(axis=1)
    recall = hits[has_liked] / np.minimum(relevant.sum(axis=1), 20)[has_liked]
    assert gains[:, 1].mean() == pytest.approx(recall.mean())
    assert gains[:, 2].mean() == np.unique(top[has_liked]).size / 30


def test_new_users_are_recommended_items_by_the_same_measure():
    fold = fold_of(np.ones(N_USERS, bool), np.arange(20))
    tastes = Tastes(csr_array(taken.T), are_users=True)
    user_vectors = people @ rng.normal(size=(3, 5))
    audience = Audience.of(tastes, user_vectors, [fold])
    (panel,) = audience.panels
    imputed = user_vectors[:20]
    gains = audience.gains(imputed)
    by_hand = ndcg_by_hand(imputed @ panel.vectors.T, taken[:20].toarray())
    assert gains[:, 0].mean() == pytest.approx(by_hand)


def test_one_vector_for_all_items_is_worth_nothing(fold):
    audience = Audience.of(Tastes(taken), vectors, [fold])
    assert not audience.gains(np.ones((30, 5)))[:, :2].any()


def test_what_is_hidden_is_not_heard_of(fold):
    # Users are solved from what is seen; other vectors and other clicks there change nothing.
    tastes = taken.toarray()
    tastes[:, fold.hidden] = 1.0 - tastes[:, fold.hidden]
    blind = vectors.copy()
    blind[fold.hidden] = np.nan
    first = Audience.of(Tastes(taken), vectors, [fold]).panels[0].vectors
    second = Audience.of(Tastes(csr_array(tastes)), blind, [fold]).panels[0].vectors
    np.testing.assert_array_equal(first, second)


def test_users_are_the_ridge_regression_of_their_items():
    setting = Setting(0.1, 4.0)
    user = solved(taken, vectors, setting, is_rated=False)[0]
    of_user = taken[[0]].toarray().ravel()
    weights = 1.0 + 4.0 * of_user
    strength = 0.1 * np.square(vectors).sum() / 5
    system = (vectors.T * weights) @ vectors + strength * np.eye(5)
    np.testing.assert_allclose(
        user, np.linalg.solve(system, vectors.T @ (weights * of_user)), rtol=1e-6
    )


def test_vectors_that_are_passed_are_used_as_they_are(fold):
    users = rng.normal(size=(N_USERS, 5))
    (panel,) = Audience.of(Tastes(taken, vectors=users), vectors, [fold]).panels
    assert panel.vectors is users


def test_long_vectors_count_more_where_scores_do():
    # Half of one long vector, and all of nine short ones.
    truth = np.array([[100.0]] + [[1.0]] * 9)
    part = truth * np.array([[0.5]] + [[1.0]] * 9)
    assert stack_weights([part], truth, np.eye(1))[0] == pytest.approx(2.0, abs=0.02)
    assert stack_weights([part], truth)[0] == pytest.approx(1.03, abs=0.01)


def test_the_goal_keeps_its_tastes_in_a_source_that_has_some_of_the_rows():
    goal = Recommend.of(Tastes(taken))
    part = tastes_of(of_rows(goal, np.array([4, 2])))
    assert part is not None
    np.testing.assert_array_equal(part.taken.toarray(), taken[:, [4, 2]].toarray())
    assert of_rows("rank", np.array([1])) == "rank"


def test_the_choice_is_level_with_the_best_by_ndcg_on_hidden_items():
    noisy = latent + 0.3 * rng.normal(size=latent.shape)
    features = np.column_stack([noisy, rng.normal(size=N_ITEMS)])
    choice = choose(Space(features), vectors, every, goal=Recommend.of(Tastes(taken)))
    values = {
        str(predictor): means["ndcg"]
        for predictor, means in zip(choice.tried, choice.means, strict=True)
    }
    assert values[str(choice.predictor)] > 0.97 * max(values.values())


def test_a_lead_in_ndcg_within_chance_is_no_lead():
    gains = rng.random((100, 1)) * np.ones((1, 3))

    def scored(cosine, ndcg):
        even = np.ones(100)
        return RowScores(cosine * even, *[even] * 5, crowding=0 * even, hubs=0 * even, gains=ndcg)

    level = scored(0.5, gains + 0.01 * rng.normal(size=(100, 3)) - 0.0005)
    worse = scored(0.9, 0.8 * gains)
    rows = np.arange(100)
    assert standing([scored(0.4, gains), level, worse], rows, "recommend").argmax() == 1


def _shop():
    names = [f"item {number}" for number in range(N_ITEMS)]
    table = {name: latent[number] for number, name in enumerate(names)}
    base = {name: vectors[number] for number, name in enumerate(names[:70])}
    pairs = [(f"user {user}", names[item]) for user, item in zip(*taken.nonzero(), strict=True)]
    return table, base, [(user, item) for user, item in pairs if item in base]


def test_a_shop_is_evaluated_and_imputed_by_its_recommendations(tmp_path):
    table, base, pairs = _shop()
    report = vf.evaluate(table, base, interactions=pairs, names="off")
    means = report.methods
    assert means["auto"]["ndcg"] > means["popularity"]["ndcg"] > means["mean"]["ndcg"]
    assert "that a user took" in report.verdict
    assert "NDCG@20" in str(report)
    assert "recall@20" in report._repr_html_()
    assert report.to_dict()["intervals"]["auto"]["ndcg"][0] > 0
    result = vf.impute(table, base, goal="recommend", interactions=pairs, names="off")
    result.save(tmp_path / "shop.vecfill")
    assert len(vf.load(tmp_path / "shop.vecfill").add({"new": latent[0]}).embedding) == 1


def test_interactions_are_used_or_refused():
    table, base, pairs = _shop()
    with pytest.raises(vf.OptionError, match="goal='balanced' does not look at that"):
        vf.impute(table, base, interactions=pairs, names="off")
    with pytest.raises(vf.OptionError, match="needs to know who took what"):
        vf.impute(table, base, goal="recommend", names="off")
    with pytest.raises(vf.OptionError, match="needs to know who took what"):
        vf.evaluate(table, base, goal="recommend", names="off")
