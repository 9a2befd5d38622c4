"""Kernel ridge regression: closed forms against brute force, shares, Nystrom, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill import InputError
from vecfill.model.fitted import fit
from vecfill.model.kernels import Kernel, is_binary
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, kernel_mix, kernel_systems
from vecfill.model.predictors import kernel_ridge as module
from vecfill.model.predictors.kernel_systems import Approximate, Factors, FromLandmarks, factorised
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.prove.signals import SIGNALS, signals

EVERY = [
    KernelRidge(width=0.7, ridge=0.1),
    KernelRidge("standardized", "laplacian", ridge=0.3),
    KernelRidge("rank_normal", "rbf"),
    KernelRidge(kernel="linear", ridge=0.03),
]


def made(n_rows: int = 50, n_known: int = 36, seed: int = 0):
    rng = np.random.default_rng(seed)
    domain = rng.normal(size=(n_rows, 5))
    embedding = 3.0 + np.sin(domain @ rng.normal(size=(5, 7)))
    is_known = np.arange(n_rows) < n_known
    embedding[~is_known] = np.nan
    return domain, embedding, is_known


def binary(n_rows: int = 50):
    domain = (np.random.default_rng(0).random((n_rows, 12)) < 0.4).astype(float)
    domain[3] = 0.0
    return domain


@pytest.mark.parametrize("predictor", EVERY, ids=str)
def test_leave_one_out_is_what_fits_without_the_row_would_give(predictor):
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    fixed = predictor.tuned(space, given)
    left_out = fixed.left_out(space, given)
    for row in range(36):
        is_seen = is_known.copy()
        is_seen[row] = False
        again = KnownRows(embedding, is_seen)
        found = fixed.predict(space, again, Unknown(np.array([0]))).vectors[0]
        steps = found - again.known.mean(axis=0)
        # Bounded kernels are inverted in 32 bits.
        np.testing.assert_allclose(left_out[row], steps, atol=1e-5)


@pytest.mark.parametrize("predictor", EVERY, ids=str)
def test_shares_reproduce_the_vectors_and_sum_to_one(predictor):
    domain, embedding, is_known = made()
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = predictor.predict(space, given)
    shares = found.composition.mix.shares(np.arange(14))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ given.known, found.vectors, atol=1e-10)
    assert signals(given, found).shape == (14, len(SIGNALS))
    assert np.isfinite(signals(given, found)).all()


def test_the_mean_comes_out_where_the_regression_knows_nothing():
    domain, embedding, is_known = made()
    domain[-1] = 1e6
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = KernelRidge(width=0.7, ridge=0.1).predict(space, given)
    np.testing.assert_allclose(found.vectors[-1], given.known.mean(axis=0))
    misfit = found.composition.mix.misfit()
    assert misfit[-1] == 1.0
    assert misfit[:-1].max() < 1.0


@pytest.mark.parametrize("order", [1, -1])
def test_all_known_rows_as_landmarks_give_the_exact_regression(monkeypatch, order):
    domain, embedding, is_known = made()
    predictor = KernelRidge(width=0.7, ridge=0.1)
    given = KnownRows(embedding, is_known)
    exact = predictor.predict(Space(domain), given)
    monkeypatch.setattr(module, "MOST_EXACT", 0)
    # In another order they are not taken for the known rows, so the long way is gone.
    monkeypatch.setattr(module, "landmarks_of", lambda known: known[::order])
    again = predictor.predict(Space(domain), given)
    np.testing.assert_allclose(again.vectors, exact.vectors, atol=1e-7)
    for mix in ("misfit", "tightness"):
        told, expected = (getattr(each.composition.mix, mix)() for each in (again, exact))
        np.testing.assert_allclose(told, expected, atol=1e-5)


def test_products_of_landmark_coordinates_give_what_the_factors_give():
    domain, embedding, is_known = made(200, 150)
    known, rest = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    kernel = Kernel(Space(domain), "as_given", "rbf", 1.4)
    landmarks, centred = known[::3], embedding[known] - embedding[known].mean(axis=0)
    one = FromLandmarks(kernel, known, landmarks, 0.1)
    other = Approximate(factorised(kernel, known, landmarks), 0.1)
    alike = kernel.between(rest, landmarks)
    expected = alike @ other.slopes(centred)
    np.testing.assert_allclose(alike @ one.slopes(centred), expected, atol=1e-6)
    np.testing.assert_allclose(one.onto_known(alike) @ centred, expected, atol=1e-6)
    np.testing.assert_allclose(one.told(alike), other.told(alike), atol=1e-6)


def test_few_landmarks_come_near_and_their_shares_and_leave_one_out_stay_exact(monkeypatch):
    domain, embedding, is_known = made(200, 150)
    predictor = KernelRidge(width=1.4, ridge=0.1)
    exact = predictor.predict(Space(domain), KnownRows(embedding, is_known)).vectors
    monkeypatch.setattr(module, "MOST_LANDMARKS", 60)
    monkeypatch.setattr(module, "MOST_EXACT", 60)
    space, given = Space(domain), KnownRows(embedding, is_known)
    found = predictor.predict(space, given)
    assert np.abs(found.vectors - exact).max() < 0.5 * np.abs(exact - exact.mean(axis=0)).max()
    shares = found.composition.mix.shares([0, 9])
    np.testing.assert_allclose(shares @ given.known, found.vectors[[0, 9]], atol=1e-10)
    # Ridge regression on the coordinates that the landmarks give, without row 0.
    solved = found.composition.mix.solved
    assert solved.landmarks.size == 60
    factors = factorised(solved.kernel, solved.known, solved.landmarks)
    rows, others = factors.vectors * np.sqrt(factors.values), np.arange(1, 150)
    mean = given.known[others].mean(axis=0)
    gram = rows[others].T @ rows[others] + 0.1 * np.eye(rows.shape[1])
    slopes = np.linalg.solve(gram, rows[others].T @ (given.known[others] - mean))
    np.testing.assert_allclose(predictor.left_out(space, given)[0], rows[0] @ slopes, atol=1e-8)


def test_tuning_never_sees_what_is_hidden():
    domain, embedding, is_known = made()
    other = np.where(is_known[:, None], embedding, 1e9)
    one, two = (
        KernelRidge().predict(Space(domain), KnownRows(vectors, is_known)).vectors
        for vectors in (embedding, other)
    )
    assert one.tobytes() == two.tobytes()


def test_width_and_ridge_are_tuned_to_the_data():
    rng = np.random.default_rng(0)
    line = np.linspace(0, 1, 80)[:, None]
    waves = np.hstack([np.sin(line * f) for f in (20, 25, 30, 35)])
    noise = rng.normal(size=(80, 4))
    is_known = np.arange(80) % 4 > 0
    clear, noisy = (
        KernelRidge().tuned(Space(line), KnownRows(vectors, is_known))
        for vectors in (waves, 0.3 * waves + noise)
    )
    assert clear.width == min(module.WIDTHS)
    assert clear.ridge < noisy.ridge


@pytest.mark.parametrize("is_large", [False, True])
def test_the_same_bits_for_any_number_of_threads(monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr(module, "MOST_EXACT", 10)
        monkeypatch.setattr(module, "MOST_LANDMARKS", 20)
        monkeypatch.setattr(kernel_mix, "ROWS_PER_BLOCK", 7)
        monkeypatch.setattr(kernel_systems, "ROWS_PER_BLOCK", 7)
    domain, embedding, is_known = made()
    one, three = (
        KernelRidge().predict(Space(domain, n_jobs=jobs), KnownRows(embedding, is_known)).vectors
        for jobs in (1, 3)
    )
    assert one.tobytes() == three.tobytes()


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_thirty_two_bits_do_for_a_choice(size):
    domain, embedding, is_known = made()
    embedding = size * embedding
    space, known_rows = Space(domain), KnownRows(embedding, is_known)
    for predictor in EVERY:
        fine, coarse = (
            predictor.predict(space, known_rows, tol=tol).vectors for tol in (1e-10, 1e-4)
        )
        assert coarse.dtype == fine.dtype
        np.testing.assert_allclose(coarse, fine, rtol=1e-3, atol=1e-3 * size)
    assert (coarse != fine).any() == (predictor.kernel != "linear")


def test_values_may_be_mixed_before_or_after_the_system_was_factored(monkeypatch):
    monkeypatch.setattr(module, "MOST_EXACT", 10)
    monkeypatch.setattr(module, "MOST_LANDMARKS", 20)
    domain, embedding, is_known = made()
    given = KnownRows(embedding, is_known)
    fresh, factored = (KernelRidge(ridge=0.1, width=1.0).solved(Space(domain), given) for _ in "ab")
    factored.told(factored.kernel.between(factored.landmarks, factored.landmarks))
    # Which comes first depends on threads, so the bits must not depend on it.
    assert fresh.slopes(given.known).tobytes() == factored.slopes(given.known).tobytes()


def test_tanimoto_counts_shared_features():
    domain = binary()
    kernel = Kernel(Space(domain), "as_given", "tanimoto").between([0, 3], [1, 3])
    both, either = (domain[0] * domain[1]).sum(), np.maximum(domain[0], domain[1]).sum()
    np.testing.assert_allclose(kernel, [[both / either, 0.0], [0.0, 1.0]])
    assert is_binary(Space(domain))
    assert not is_binary(Space(domain * 2))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "tanimoto"])
def test_sparse_rows_give_the_same(kernel):
    domain, (_, embedding, is_known) = binary(), made()
    predictor, given = KernelRidge(kernel=kernel, ridge=0.1), KnownRows(embedding, is_known)
    dense = predictor.predict(Space(domain), given).vectors
    sparse = predictor.predict(Space(csr_array(domain)), KnownRows(embedding, is_known)).vectors
    np.testing.assert_allclose(dense, sparse, atol=1e-9)


def test_distances_are_enough_for_kernels_of_distances():
    domain, embedding, is_known = made()
    distances = np.sqrt(((domain[:, None] - domain[None]) ** 2).sum(axis=2))
    predictor = KernelRidge(width=0.7, ridge=0.1)
    by_rows = predictor.predict(Space(domain), KnownRows(embedding, is_known)).vectors
    space = Space(distances, is_distances=True)
    found = predictor.fitted_to(space).predict(space, KnownRows(embedding, is_known)).vectors
    np.testing.assert_allclose(found, by_rows, atol=1e-8)
    for kernel in ("linear", "tanimoto"):
        with pytest.raises(InputError, match="only distances"):
            KernelRidge(kernel=kernel).fitted_to(space)


def test_distances_that_no_vectors_have_still_give_numbers():
    rng = np.random.default_rng(0)
    distances = rng.random((30, 30))
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    given = KnownRows(rng.normal(size=(30, 6)), np.arange(30) < 20)
    found = KernelRidge().predict(Space(distances, is_distances=True), given)
    assert np.abs(found.vectors).max() < 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "rfb"}, "Did you mean 'rbf'"),
        ({"width": 0}, "width=0 is out of range"),
        ({"ridge": -1}, "ridge=-1 is out of range"),
        ({"kernel": "linear", "width": 2.0}, "which has no width"),
        ({"kernel": "tanimoto", "preparation": "unit_rows"}, "gives them other values"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        KernelRidge(**options)


def test_tanimoto_on_other_features_is_refused():
    with pytest.raises(InputError, match=r"features that are 0 or 1.*Use kernel='rbf'"):
        KernelRidge(kernel="tanimoto").fitted_to(Space(made()[0]))


def test_rows_of_any_size_and_rows_that_are_all_equal_give_numbers():
    domain, embedding, is_known = made()
    for size in (1e-300, 1e200):
        found = KernelRidge().predict(Space(domain * size), KnownRows(embedding, is_known))
        assert np.isfinite(found.vectors).all()
    equal = KernelRidge().predict(Space(np.ones((50, 3))), KnownRows(embedding, is_known))
    np.testing.assert_allclose(equal.vectors, embedding[:36].mean(axis=0)[None].repeat(14, axis=0))


def test_a_model_of_it_explains_and_can_be_pickled():
    domain, embedding, is_known = made()
    model = fit(KernelRidge(), Space(domain), embedding, is_known)
    again = pickle.loads(pickle.dumps(model))
    assert again.shares([2]).tobytes() == model.shares([2]).tobytes()
    np.testing.assert_allclose(model.shares([2]) @ model.known, model.embedding[[38]], atol=1e-10)


def test_factors_are_the_kernel():
    space = Space(made()[0])
    kernel = Kernel(space, "as_given", "laplacian", 0.5)
    rows = np.arange(20)
    found = factorised(kernel, rows, rows)
    assert isinstance(found, Factors)
    np.testing.assert_allclose(
        found.vectors * found.values @ found.vectors.T, kernel.between(rows, rows), atol=1e-9
    )
