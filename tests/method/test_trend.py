from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from vecfill.method import trend as trend_module
from vecfill.method.trend import linear_trend, reduced


@given(
    n_known=st.integers(4, 40),
    n_features=st.integers(1, 60),
    n_dims=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_residuals_are_those_of_a_map_fitted_without_the_row(n_known, n_features, n_dims, seed):
    rng = np.random.default_rng(seed)
    coordinates = rng.normal(size=(n_known + 3, n_features))
    embedding = rng.normal(size=(n_known + 3, n_dims))
    is_known = np.arange(n_known + 3) < n_known
    trend = linear_trend(coordinates, embedding, is_known)
    for row in range(0, n_known, 5):
        others = np.delete(np.arange(n_known), row)
        model = Ridge(alpha=trend.alpha).fit(coordinates[others], embedding[others])
        missed = embedding[row] - model.predict(coordinates[[row]]).reshape(-1)
        np.testing.assert_allclose(trend.residuals[row], missed, atol=1e-6)
    whole = Ridge(alpha=trend.alpha).fit(coordinates[:n_known], embedding[:n_known])
    expected = whole.predict(coordinates).reshape(trend.values.shape)
    np.testing.assert_allclose(trend.values, expected, atol=1e-6)


def test_the_number_of_blas_threads_changes_no_bit():
    rng = np.random.default_rng(0)
    rows, embedding = rng.normal(size=(900, 300)), rng.normal(size=(900, 50))
    is_known = np.arange(900) % 2 == 0
    values = []
    for n_blas_threads in (1, 2):
        with threadpool_limits(n_blas_threads):
            values.append(linear_trend(reduced(rows), embedding, is_known).values)
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("size", [1e-160, 1e150])
@pytest.mark.parametrize("shape", [(30, 5), (30, 700), (700, 600)])
def test_the_size_of_the_domain_does_not_matter(shape, size):
    rng = np.random.default_rng(0)
    rows, embedding = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    is_known = np.arange(shape[0]) % 3 > 0
    plain, scaled = (linear_trend(reduced(x), embedding, is_known) for x in (rows, size * rows))
    np.testing.assert_allclose(scaled.values, plain.values, atol=1e-6)
    np.testing.assert_allclose(scaled.residuals, plain.residuals, atol=1e-6)


def test_noise_is_not_taken_for_a_trend():
    rng = np.random.default_rng(0)
    trend = linear_trend(rng.normal(size=(60, 5)), rng.normal(size=(60, 8)), np.ones(60, bool))
    assert np.abs(trend.values - trend.values.mean(axis=0)).max() < 0.5


def test_rows_that_do_not_differ_have_the_mean_for_a_trend():
    embedding = np.array([[1.0], [3.0], [np.nan]])
    trend = linear_trend(np.zeros((3, 2)), embedding, np.array([True, True, False]))
    assert trend.values.ravel().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("shape", "n_directions"),
    [((30, 600), 30), ((700, 600), trend_module.MAX_RANK), ((50, 20), 20), ((50, 513), 50)],
)
def test_reduction_keeps_distances(shape, n_directions):
    domain = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 0.01, shape[1])
    coordinates = reduced(domain)
    assert coordinates.shape == (shape[0], n_directions)
    wanted = np.linalg.norm(domain[:10, None] - domain[None, 10:20], axis=2)
    found = np.linalg.norm(coordinates[:10, None] - coordinates[None, 10:20], axis=2)
    np.testing.assert_allclose(found, wanted, rtol=0.01)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_a_sparse_domain_has_the_coordinates_of_a_dense_one(shape):
    rng = np.random.default_rng(0)
    domain = rng.random(shape) * (rng.random(shape) < 0.3)
    dense, sparse = reduced(domain), reduced(csr_array(domain))
    wanted = np.linalg.norm(dense[:6, None] - dense[None, 6:12], axis=2)
    found = np.linalg.norm(sparse[:6, None] - sparse[None, 6:12], axis=2)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(sparse.mean(axis=0), 0.0, atol=1e-7)


def test_a_large_sparse_domain_is_reduced_to_its_leading_directions(monkeypatch):
    monkeypatch.setattr(trend_module, "MOST_DECOMPOSED", 10)
    monkeypatch.setattr(trend_module, "MAX_RANK", 11)
    rng = np.random.default_rng(0)
    domain = rng.random((40, 12)) * (rng.random((40, 12)) < 0.3)
    dense, sparse = reduced(domain), reduced(csr_array(domain))
    wanted = np.linalg.norm(dense[:10, None] - dense[None, 10:20], axis=2)
    found = np.linalg.norm(sparse[:10, None] - sparse[None, 10:20], axis=2)
    assert np.corrcoef(wanted.ravel(), found.ravel())[0, 1] > 0.95


def test_a_wide_sparse_domain_is_reduced_to_nearly_its_leading_directions(monkeypatch):
    monkeypatch.setattr(trend_module, "MAX_RANK", 12)
    monkeypatch.setattr(trend_module, "N_BEYOND", 8)
    rng = np.random.default_rng(0)
    # Lengths that fall slowly, so that one step of power iteration has something to mix up.
    domain = rng.normal(size=(90, 60)) * 0.93 ** np.arange(60)
    reached = (reduced(csr_array(domain)) ** 2).sum()
    exact = (reduced(domain) ** 2).sum()
    assert 0.95 * exact < reached <= exact * (1 + 1e-9)
    products = reduced(csr_array(domain)).T @ reduced(csr_array(domain))
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9 * exact)
