"""Whether known vectors depend on their rows: validity on noise, power on weak signals."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from vecfill.machine.lengths import unit
from vecfill.model.known import KnownRows
from vecfill.model.space import Space
from vecfill.trust.choose import choice as choice_module
from vecfill.trust.choose import dependence
from vecfill.trust.choose.candidates import race_sample
from vecfill.trust.choose.choice import CHANCE, choose
from vecfill.trust.choose.dependence import Centred, centred, dependence_p_value, moments
from vecfill.trust.choose.folds import hidden_folds


def normal(n_known, n_features, n_dims, seed, share=0.0):
    """Return rows and vectors; a share of the vectors' variance is linear in the rows."""
    rng = np.random.default_rng([n_known, seed])
    rows, vectors = rng.normal(size=(n_known, n_features)), rng.normal(size=(n_known, n_dims))
    signal = rows @ rng.normal(size=(n_features, n_dims)) / np.sqrt(n_features)
    return rows, np.sqrt(share) * signal + np.sqrt(1.0 - share) * vectors


def heavy(n_known, n_features, n_dims, seed):
    """Return rows and vectors of which a few are much longer than the others."""
    rng = np.random.default_rng([n_known, seed])
    rows = np.exp(2.0 * rng.normal(size=(n_known, n_features)))
    return rows, rng.standard_t(2, size=(n_known, n_dims))


def clustered(n_known, n_features, n_dims, seed):
    """Return rows in clusters and vectors in others, that have nothing to do with each other."""
    rng = np.random.default_rng([n_known, seed])
    rows = 3.0 * rng.normal(size=(4, n_features))[rng.integers(4, size=n_known)]
    vectors = 3.0 * rng.normal(size=(6, n_dims))[rng.integers(6, size=n_known)]
    return rows + rng.normal(size=rows.shape), vectors + rng.normal(size=vectors.shape)


def classes(n_known, n_features, n_dims, seed):
    """Return binary rows, and vectors that stand for one of a few classes."""
    rng = np.random.default_rng([n_known, seed])
    return (rng.normal(size=(n_known, n_features)) > 0) * 1.0, np.eye(n_dims)[
        rng.integers(n_dims, size=n_known)
    ]


def p_value(rows, vectors, **options):
    return dependence_p_value(Space(rows, n_jobs=1, **options), vectors, np.arange(len(rows)))


def test_mean_and_variance_are_those_over_all_permutations():
    rng = np.random.default_rng(0)
    left, right = (centred(part @ part.T) for part in rng.normal(size=(2, 6, 2)))
    sums = [(left * right[np.ix_(order, order)]).sum() for order in permutations(range(6))]
    mean, variance = moments(Centred(left), Centred(right))
    assert mean == pytest.approx(np.mean(sums))
    assert variance == pytest.approx(np.var(sums))


def test_noise_has_small_p_values_as_seldom_as_they_say():
    p_values = np.array([p_value(*normal(30, 5, 8, seed)) for seed in range(100)])
    assert (p_values < 0.05).mean() < 0.11
    assert np.median(p_values) > 0.35
    assert p_values.min() > CHANCE


@pytest.mark.slow
def test_at_most_one_made_set_of_noise_in_500_is_accepted(record_property):
    """An upper bound: of these, `auto` refuses those that come back with a cosine below zero."""
    kinds = [(normal, 50, 5, 8), (normal, 100, 5, 8), (normal, 200, 20, 16), (normal, 50, 30, 8)]
    kinds += [(normal, 20, 3, 4), (heavy, 60, 5, 8), (clustered, 60, 5, 8), (classes, 60, 4, 3)]
    n_sets, n_accepted = 500, 0
    for make, *sizes in kinds:
        p_values = np.array([p_value(*make(*sizes, seed)) for seed in range(n_sets)])
        record_property(f"{make.__name__} {sizes}", f"{(p_values < CHANCE).mean():.2%}")
        n_accepted += int((p_values < CHANCE).sum())
    rate = n_accepted / (n_sets * len(kinds))
    record_property("accepted", f"{rate:.2%} of {n_sets * len(kinds)}")
    print(f"accepted: {n_accepted} of {n_sets * len(kinds)} sets of noise ({rate:.2%})")
    assert rate <= 0.002


def test_weak_signals_are_still_seen():
    """Tenths of the variance: hidden rows alone, held to the same rate of noise, saw 40 %."""
    n_seen = sum(p_value(*normal(50, 5, 8, seed, 0.1)) < CHANCE for seed in range(40))
    assert n_seen > 16


def test_a_signal_is_seen_that_only_near_rows_share(monkeypatch):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(150, 2))
    waves = np.sin(4.0 * rows @ rng.normal(size=(2, 12))) @ rng.normal(size=(12, 8))
    vectors = waves + 4.0 * rng.normal(size=(150, 8))
    assert p_value(rows, vectors) < CHANCE
    monkeypatch.setattr(dependence, "NARROW", 2.0)
    assert p_value(rows, vectors) > CHANCE


def test_an_entity_under_two_names_is_no_signal():
    """A tenth of 150 entities stand there twice; this was accepted at p = 9e-15."""
    rows, vectors = normal(150, 4, 16, 0)
    twin = np.arange(15)
    rows, vectors = np.vstack([rows, rows[twin]]), np.vstack([vectors, vectors[twin]])
    assert p_value(rows, vectors) > 0.01


def test_vectors_that_are_classes_can_be_a_signal():
    rows, vectors = classes(90, 4, 3, 0)
    assert p_value(vectors + 0.3 * rows[:, :3], vectors) < CHANCE
    assert p_value(rows, vectors) > 0.01


def test_distances_show_a_signal_and_shuffled_ones_none():
    rows, vectors = normal(80, 3, 6, 1, share=0.8)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    order = np.random.default_rng(0).permutation(80)
    assert p_value(distances, vectors, is_distances=True) < CHANCE
    assert p_value(distances[np.ix_(order, order)], vectors, is_distances=True) > 0.01


def test_units_change_nothing():
    rows, vectors = normal(60, 4, 6, 2, share=0.05)
    plain = p_value(rows, vectors)
    assert p_value(1e30 * rows, 1e-30 * vectors) == pytest.approx(plain, rel=1e-6)


def test_one_far_vector_neither_makes_nor_hides_a_signal():
    rows, noise = normal(80, 4, 6, 3)
    rows[0], noise[0] = 30.0, 1e6
    assert p_value(rows, noise) > 0.01
    rows, vectors = normal(80, 4, 6, 3, share=0.5)
    vectors[0] = 1e6
    assert p_value(rows, vectors) < CHANCE


def test_rows_or_vectors_that_are_all_equal_show_nothing():
    rows, vectors = normal(30, 3, 4, 4)
    assert p_value(np.ones_like(rows), vectors) > 0.9
    assert p_value(rows, np.ones_like(vectors)) > 0.9


def test_a_test_has_the_same_bits_with_any_number_of_threads():
    rows, vectors = normal(70, 4, 6, 5, share=0.1)
    known = np.arange(70)
    first, again = (dependence_p_value(Space(rows, n_jobs=n), vectors, known) for n in (1, 3))
    assert first == again


def test_where_many_rows_are_known_fresh_rows_of_one_fold_are_asked_too(monkeypatch):
    rows, vectors = normal(450, 3, 5, 6, share=0.5)
    is_known = np.ones(450, bool)
    monkeypatch.setattr(choice_module, "MOST_TESTED", 449)
    tested = []

    def recorded(predicted, truth):
        tested.append(truth)
        return 0.25

    monkeypatch.setattr(choice_module, "permutation_p_value", recorded)
    monkeypatch.setattr(choice_module, "dependence_p_value", lambda *_: 0.75)
    assert choose(Space(rows), vectors, is_known).p_value == 0.5
    first = next(hidden_folds(is_known, n_folds=10, seed=0))
    fresh = first.hidden[~race_sample(KnownRows(vectors, is_known)).is_known[first.hidden]]
    assert 0 < fresh.size < first.hidden.size
    expected = unit(vectors[fresh] - vectors[first.is_seen].mean(axis=0))
    np.testing.assert_allclose(tested[0], expected)


def test_the_p_value_of_a_choice_is_that_of_no_prediction():
    rows, vectors = normal(50, 3, 4, 7, share=0.1)
    choice = choose(Space(rows), vectors, np.ones(50, bool))
    assert choice.p_value == p_value(rows, vectors)


def test_a_clear_signal_is_settled_by_the_first_kernels(monkeypatch):
    rows, vectors = normal(120, 4, 6, seed=0, share=0.9)
    early = dependence_p_value(Space(rows), vectors, np.arange(120))
    monkeypatch.setattr(dependence, "SETTLED", 0.0)
    whole = dependence_p_value(Space(rows), vectors, np.arange(120))
    # What is left out counts as if it said that there is nothing.
    assert whole <= early < 1e-6
