"""Rivals are tuned, and only on what they may see."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.trust.choose.test_choice import made
from vecfill.model.known import KnownRows
from vecfill.model.predictors import RIVALS as PLAIN
from vecfill.model.predictors import LinearRidge, Mean, Nearest, Sparsemax
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose import candidates as candidates_module
from vecfill.trust.choose.candidates import kernel_ridges, raced
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.choose.scores import score_rows
from vecfill.trust.compare import rivals as rivals_module
from vecfill.trust.compare.evaluation import Comparing, evaluate_rows
from vecfill.trust.compare.rivals import RIVALS, Rival, by_hidden_rows


def skewed(n_rows: int = 160, seed: int = 0):
    """A domain whose columns are skewed, beside one that is large and says nothing."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 4))
    domain = np.hstack([np.exp(2 * latent), 1e4 * rng.normal(size=(n_rows, 1))])
    return domain, latent @ rng.normal(size=(4, 9))


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_is_tuned_without_the_hidden_rows(name):
    domain, embedding, is_known = made(100)
    vectors = np.nan_to_num(embedding)
    fold = next(iter(hidden_folds(is_known, n_folds=5, seed=0)))
    other = vectors.copy()
    other[~fold.is_seen] = np.random.default_rng(1).normal(size=other[~fold.is_seen].shape) * 50
    found = []
    for each in (vectors, other):
        space, given = Space(domain), KnownRows(each, fold.is_seen)
        predictor = RIVALS[name].tuned(space, given, seed=3)
        vectors = predictor.predict(space, given, Unknown(fold.places)).vectors
        found.append((predictor, vectors))
    assert found[0][0] == found[1][0]
    assert found[0][1].tobytes() == found[1][1].tobytes()


def test_a_rival_that_looks_at_hidden_rows_finds_nothing_there():
    domain, embedding, is_known = made(80)
    seen = []

    def cheat(space, given, goal, seed):
        seen.append(given)
        return Mean()

    evaluate_rows(
        Space(domain),
        embedding,
        is_known,
        Comparing(n_folds=3, rivals={"cheat": Rival("a cheat", cheat)}),
    )
    hidden = [is_known & ~given.is_known for given in seen]
    assert (np.sum(hidden, axis=0) == is_known).all()
    for given in seen:
        assert np.isnan(given.embedding[~given.is_known]).all()


def test_noise_is_noise_to_every_tuned_rival():
    # Every vector is random, so whoever predicts it has seen it.
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(120, 4)), rng.normal(size=(120, 200))
    report = evaluate_rows(Space(domain), embedding, np.ones(120, bool), Comparing(n_folds=4))
    for name in RIVALS:
        assert abs(report.methods[name]["centred_cosine"]) < 0.03


@pytest.mark.parametrize("name", ["knn", "ridge", "sparsemax"])
def test_tuning_helps_where_the_domain_needs_preparation(name):
    domain, embedding = skewed()
    fold = next(iter(hidden_folds(np.ones(160, bool), n_folds=4, seed=0)))
    space, given = Space(domain), KnownRows(embedding, fold.is_seen)
    predictor = RIVALS[name].tuned(space, given)
    centre = given.known.mean(axis=0)

    def cosine(each):
        vectors = each.predict(space, given, Unknown(fold.places)).vectors
        return score_rows(vectors, fold.truth, embedding, centre).centred_cosine.mean()

    assert predictor.preparation.startswith("rank_normal")
    assert cosine(predictor) > cosine(PLAIN[name]) + 0.1


def test_every_parameter_of_the_grid_can_be_chosen():
    # Vectors that change along a curve so quickly that only near rows tell anything.
    line = np.linspace(0, 3, 160)[:, None]
    circle = np.hstack([np.cos(line), np.sin(line), 0.2 * np.ones_like(line)])
    embedding = np.hstack([np.sin(line * rate) for rate in (10, 13, 17, 19, 23)])
    space, given = Space(circle), KnownRows(embedding, np.ones(160, bool))
    near = by_hidden_rows(Nearest(), ("as_given",), n_neighbors=(80, 5))
    assert near(space, given, "balanced", 0) == Nearest("as_given", n_neighbors=5)
    sharp = by_hidden_rows(Sparsemax(), ("as_given",), scale=(1e-3, 30.0))
    assert sharp(space, given, "balanced", 0).scale == 30.0


def test_a_source_can_add_a_rival_with_a_space_of_its_own():
    domain, embedding, is_known = made(100)
    useless = Space(np.random.default_rng(0).normal(size=domain.shape))
    own = Rival("encode and ridge", lambda *_: LinearRidge(), space=Space(domain))
    report = evaluate_rows(
        useless,
        embedding,
        is_known,
        Comparing(n_folds=3, rivals={**RIVALS, "encode_ridge": own}),
    )
    assert report.methods["encode_ridge"]["centred_cosine"] > 0.5
    assert report.methods["ridge"]["centred_cosine"] < 0.3
    assert report.labels["encode_ridge"] == "encode and ridge"
    assert len(report.tuned["encode_ridge"]) == 3
    assert "LinearRidge" in report.to_dict()["tuned"]["encode_ridge"][0]
    assert pickle.loads(pickle.dumps(report)).methods == report.methods


def test_rivals_that_need_vectors_step_aside_for_distances():
    domain, embedding, is_known = made(80)
    distances = np.sqrt(((domain[:, None] - domain[None]) ** 2).sum(axis=2))
    report = evaluate_rows(
        Space(distances, is_distances=True), embedding, is_known, Comparing(n_folds=3)
    )
    assert set(report.scores) == {"auto", "paper", "mean", "kernel_ridge"}


def test_tuning_looks_at_a_bounded_number_of_rows(monkeypatch):
    sizes = []

    class Watched(Nearest):
        def predict(self, space, given, wanted, **options):
            sizes.append((given.n_known, wanted.places.size))
            return super().predict(space, given, wanted, **options)

    monkeypatch.setattr(rivals_module, "MOST_TUNED_ON", 60)
    domain, embedding = skewed(300)
    given = KnownRows(embedding, np.ones(300, bool))
    by_hidden_rows(Watched(), ("as_given",), enough=20)(Space(domain), given, "balanced", 0)
    assert sizes
    assert max(n_known + n_hidden for n_known, n_hidden in sizes) == 60
    assert sum(n_hidden for _, n_hidden in sizes) < 60


def test_the_race_is_won_by_what_leave_one_out_prefers(monkeypatch):
    domain, embedding = skewed()
    space, given = Space(domain), KnownRows(embedding, np.ones(160, bool))
    order = raced(space, given, kernel_ridges(space))
    assert len(order) == len(set(order)) == len(kernel_ridges(space))
    assert order[0].preparation.startswith("rank_normal")
    monkeypatch.setattr(candidates_module, "MOST_RACED", 50)
    assert raced(space, given, kernel_ridges(space))[0].preparation.startswith("rank_normal")


def test_fingerprints_enter_the_race_by_tanimoto():
    bits = (np.random.default_rng(0).random((40, 20)) < 0.3).astype(float)
    assert "tanimoto" in {each.kernel for each in kernel_ridges(Space(bits))}


def test_the_candidates_asked_for_reach_the_choice():
    import vecfill as vf
    from vecfill.model.predictors import LatentSemantic

    rng = np.random.default_rng(0)
    places = {f"town{i}": rng.normal(size=3) for i in range(70)}
    known = {name: np.sin(place @ np.ones((3, 6))) for name, place in list(places.items())[:60]}
    classic = vf.impute(places, known, candidates="classic")
    assert {type(each) for each in classic.choice.tried} == {LatentSemantic}
    assert len({type(each) for each in vf.impute(places, known).choice.tried}) > 1
    report = vf.evaluate(places, known, folds=2, candidates="classic")
    assert isinstance(report.chosen, LatentSemantic)
    with pytest.raises(vf.InputError, match="candidates='new' is not known"):
        vf.evaluate(places, known, candidates="new")


def test_rivals_are_tuned_on_every_row_of_a_small_set():
    n_hidden = []

    class Watched(Nearest):
        def predict(self, space, given, wanted, **options):
            n_hidden.append(wanted.places.size)
            return super().predict(space, given, wanted, **options)

    domain, embedding = skewed(100)
    given = KnownRows(embedding, np.ones(100, bool))
    by_hidden_rows(Watched(), ("as_given",))(Space(domain), given, "balanced", 0)
    assert n_hidden == [20] * 5
