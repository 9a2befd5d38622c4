from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from vecfill import InputError
from vecfill.model.fitted import fit
from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule
from vecfill.model.predictors import (
    PAPER,
    RIVALS,
    LatentSemantic,
    LinearRidge,
    MatchingPursuit,
    Nearest,
)
from vecfill.model.space import Space
from vecfill.model.stretch import Stretch
from vecfill.model.wanted import Unknown
from vecfill.trust.prove.signals import SIGNALS, signals


def made(n_rows: int = 60, n_known: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    domain = rng.normal(size=(n_rows, 5))
    embedding = np.sin(domain @ rng.normal(size=(5, 7)))
    is_known = np.arange(n_rows) < n_known
    embedding[~is_known] = np.nan
    return domain, embedding, is_known


EVERY = {**RIVALS, "paper": PAPER, "trend": LatentSemantic(residual_share=0.6)}


@pytest.mark.parametrize("name", EVERY)
def test_any_predictor_gives_vectors_shares_and_signals(name):
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = EVERY[name].predict(space, given)
    assert found.vectors.shape == (20, 7)
    assert np.isfinite(found.vectors).all()
    shares = found.composition.mix.shares(np.arange(20))
    assert shares.shape == (20, 40)
    if found.composition.trend is None and name != "omp":
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    if found.composition.trend is None:
        np.testing.assert_allclose(shares @ given.known, found.vectors, atol=1e-6)
    assert signals(given, found).shape == (20, len(SIGNALS))


@pytest.mark.parametrize("name", EVERY)
def test_asking_for_some_rows_gives_the_same_vectors(name):
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    places = np.array([3, 11, 19])
    some = EVERY[name].predict(space, given, Unknown(places)).vectors
    # Ridge scales its strengths by the rows that it is shown, so it is alike and not equal.
    np.testing.assert_allclose(some, EVERY[name].predict(space, given).vectors[places], rtol=0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": -5}, "ridge=-5 is out of range"),
        ({"min_degree": 0}, "min_degree=0 is not a whole number of at least 1"),
        ({"residual_share": 1.5}, "residual_share=1.5 is out of range"),
        ({"preparation": "unitrows"}, "Did you mean 'unit_rows'"),
        ({"weight_floor": np.inf}, "weight_floor=inf is not a finite number"),
    ],
)
def test_a_predictor_refuses_what_cannot_be(options, words):
    with pytest.raises(InputError, match=words):
        LatentSemantic(**options)


def test_every_part_of_a_setting_changes_the_vectors():
    domain, embedding, is_known = made()
    domain[:, 0] *= 50
    space, given = Space(domain), KnownRows(embedding, is_known)
    settings = [
        LatentSemantic(),
        LatentSemantic(ridge=0.3),
        LatentSemantic(preparation="standardized"),
        LatentSemantic(min_degree=12),
        LatentSemantic(residual_share=0.0),
        LatentSemantic(residual_share=0.5),
        LatentSemantic(weight_rule="nnls"),
        LatentSemantic(weight_floor=0.9),
        LatentSemantic(solver="power", tol=0.5),
    ]
    found = [setting.predict(space, given).vectors for setting in settings]
    for number, one in enumerate(found):
        for other in found[:number]:
            assert np.abs(one - other).max() > 1e-6


def test_predictors_that_are_kin_agree_with_themselves_alone():
    domain, embedding, is_known = made()
    kin = [LatentSemantic(residual_share=share) for share in (None, 0.3, 1.0, 0.0)]
    together = LatentSemantic.predict_together(kin, Space(domain), KnownRows(embedding, is_known))
    for each, found in zip(kin, together, strict=True):
        alone = each.predict(Space(domain), KnownRows(embedding, is_known))
        np.testing.assert_allclose(found.vectors, alone.vectors, atol=1e-9)


def test_a_vector_that_the_trend_explains_has_a_trend_share_of_one():
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(60, 5))
    is_known = np.arange(60) < 40
    linear = fit(LatentSemantic(residual_share=1.0), Space(domain), domain @ np.eye(5, 3), is_known)
    assert linear.trend_shares().min() > 0.95
    noise = fit(
        LatentSemantic(residual_share=1.0), Space(domain), rng.normal(size=(60, 3)), is_known
    )
    assert noise.trend_shares().max() < 0.8
    assert fit(PAPER, Space(domain), domain, is_known).trend_shares().tolist() == [0.0] * 20


def test_a_space_of_distances_refuses_what_needs_vectors():
    distances = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    space = Space(distances, is_distances=True)
    for predictor in (LinearRidge(), MatchingPursuit(), LatentSemantic(residual_share=0.3)):
        with pytest.raises(InputError, match="only distances"):
            predictor.fitted_to(space)
    with pytest.raises(InputError, match="preparation='unit_rows' needs domain vectors"):
        LatentSemantic("unit_rows").fitted_to(space)


def test_a_model_can_be_pickled_and_copied():
    domain, embedding, is_known = made()
    model = fit(LatentSemantic(residual_share=0.6), Space(domain), embedding, is_known)
    shares = model.shares([0, 7])
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.embedding.tobytes() == model.embedding.tobytes()
        assert again.shares([0, 7]).tobytes() == shares.tobytes()


def test_known_rows_of_a_model_are_the_bits_given():
    domain, embedding, is_known = made()
    for predictor in EVERY.values():
        model = fit(predictor, Space(domain), embedding, is_known)
        assert model.known.tobytes() == embedding[is_known].tobytes()


def test_nearest_rows_can_count_by_distance():
    space = Space(np.array([[0.0], [4.0], [1.0], [4.0]]))
    given = KnownRows(np.array([[0.0], [8.0], [np.nan], [np.nan]]), np.arange(4) < 2)
    plain, weighted = (
        Nearest(n_neighbors=2, by_distance=flag).predict(space, given).vectors.ravel()
        for flag in (False, True)
    )
    assert plain.tolist() == [4.0, 4.0]
    np.testing.assert_allclose(weighted, [2.0, 8.0])


def test_what_is_seen_of_a_mix_is_what_it_says():
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    mix = PAPER.predict(space, given).composition.mix
    weights = space.weights(PAPER.weights_key).toarray()[~is_known]
    np.testing.assert_allclose(mix.tightness(), weights.max(axis=1))
    np.testing.assert_allclose(mix.straight(), weights[:, is_known].sum(axis=1))


def test_contributors_that_point_in_one_direction_agree():
    domain = np.array([[0.0], [1.0], [10.0], [11.0], [0.5], [10.5], [30.0]])
    vectors = [[1.0, 0], [1, 0.1], [-1, 3], [2, -3], [0, 0], [0, 0], [-9, 0]]
    embedding, is_known = np.array(vectors, float), np.array([1, 1, 1, 1, 0, 0, 1], bool)
    given = KnownRows(embedding, is_known)
    told = signals(given, LatentSemantic(min_degree=2).predict(Space(domain), given))
    agreement = told[:, list(SIGNALS).index("agreement")]
    assert agreement[0] > agreement[1] + 0.2


def test_shares_of_a_regression_on_few_rows_reproduce_its_vectors():
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(12, 30)), rng.normal(size=(12, 4))
    found = LinearRidge().predict(Space(domain), KnownRows(embedding, np.arange(12) < 8))
    shares = found.composition.mix.shares(np.arange(4))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ embedding[:8], found.vectors, atol=1e-8)


@pytest.mark.parametrize("has_offset", [False, True])
def test_imputed_rows_are_stretched_and_known_rows_keep_their_bits(has_offset):
    domain, embedding, is_known = made()
    space, offsets = Space(domain), None
    if has_offset:
        curve = Curve(np.array([0.0, 9.0]), np.vstack([np.zeros(7), np.ones(7)]))
        rarity = np.where(is_known, np.arange(60) / 10, np.nan)
        spared = np.arange(60) % 2 == 0
        given = KnownRows(embedding, is_known)
        offsets = OffsetRule(1.0, curve=curve).offsets(rarity, given, spared)
    plain, long = (
        fit(PAPER, space, embedding, is_known, offsets=offsets, stretch=stretch)
        for stretch in (None, Stretch(2.0, 3.0))
    )
    assert long.embedding[is_known].tobytes() == embedding[is_known].tobytes()
    known, moved = embedding[is_known], np.zeros((20, 7))
    if long.offsets is not None:
        known, moved = known - long.offsets.known, long.offsets.unknown
    mean, factors = known.mean(axis=0), np.full(20, 2.0)
    if has_offset:
        factors[1::2] = 3.0
    steps = plain.embedding[~is_known] - moved - mean
    expected = mean + factors[:, None] * steps + moved
    np.testing.assert_allclose(long.embedding[~is_known], expected, atol=1e-10)
    np.testing.assert_allclose(
        long.as_predicted().embedding, plain.as_predicted().embedding, atol=1e-10
    )
