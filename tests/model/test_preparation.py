"""Preparations of the domain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.sparse import csr_array, random_array

from vecfill.errors import InputError
from vecfill.model import preparation
from vecfill.model.preparation import (
    PREPARATIONS,
    rank_normal,
    rank_normal_unit_rows,
    standardized,
    unit_rows,
    unit_rows_without_first_component,
)
from vecfill.model.rank_normal import RankNormal

matrices = arrays(
    st.sampled_from([np.float32, np.float64]),
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6, width=32),
)


def returns(n_rows=40, n_features=7):
    rng = np.random.default_rng(0)
    market = rng.normal(size=n_features)
    return rng.uniform(3, 5, (n_rows, 1)) * market + rng.normal(size=(n_rows, n_features))


@pytest.mark.parametrize("name", PREPARATIONS)
@given(domain=matrices)
def test_every_preparation_keeps_rows_and_type_and_stays_finite(name, domain):
    before = domain.copy()
    after = PREPARATIONS[name](domain)
    # None of them is so tall that it has numbers that become smooth bins.
    assert after.shape == domain.shape
    assert after.dtype == domain.dtype
    assert np.isfinite(after).all()
    np.testing.assert_array_equal(domain, before)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_every_preparation_has_the_same_bits_each_time_and_follows_a_shuffle(name):
    order = np.random.default_rng(0).permutation(40)
    prepare = PREPARATIONS[name]
    np.testing.assert_array_equal(prepare(returns()), prepare(returns()))
    np.testing.assert_allclose(prepare(returns()[order]), prepare(returns())[order], atol=1e-12)


@pytest.mark.parametrize("name", PREPARATIONS)
@pytest.mark.parametrize("size", [1e-300, 1e-310, 1e300])
def test_every_preparation_stands_numbers_of_any_size(name, size):
    assert np.isfinite(PREPARATIONS[name](returns() * size)).all()


@given(matrices)
def test_rows_have_length_one_or_zero(domain):
    lengths = np.linalg.norm(unit_rows(domain).astype(float), axis=1)
    expected = (np.abs(domain).max(axis=1) > 0).astype(float)
    np.testing.assert_allclose(lengths, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_agree(dtype):
    sparse = csr_array(random_array((30, 9), density=0.3, rng=np.random.default_rng(0)))
    sparse = sparse.astype(dtype)
    dense = sparse.toarray()
    rows = unit_rows(sparse)
    assert isinstance(rows, csr_array)
    assert rows.dtype == dtype
    np.testing.assert_allclose(rows.toarray(), unit_rows(dense), atol=1e-6)
    columns = standardized(sparse)
    assert columns.nnz == sparse.nnz
    shifted = columns.toarray() - columns.toarray().mean(axis=0)
    np.testing.assert_allclose(shifted, standardized(dense), atol=1e-5)
    np.testing.assert_allclose(
        unit_rows_without_first_component(sparse),
        unit_rows_without_first_component(dense),
        atol=1e-5,
    )


def test_the_first_component_is_gone_by_every_route(monkeypatch):
    domain = returns()
    centred = domain - domain.mean(axis=0)
    first = np.linalg.svd(centred, full_matrices=False)[2][0]
    by_features = unit_rows_without_first_component(domain)
    assert np.abs(by_features @ first).max() < 1e-10
    np.testing.assert_allclose(np.linalg.norm(by_features, axis=1), 1)
    wide = unit_rows_without_first_component(np.hstack([domain, np.zeros((40, 600))]))
    np.testing.assert_allclose(wide[:, :7], by_features, atol=1e-9)
    monkeypatch.setattr(preparation, "SMALL", 5)
    np.testing.assert_allclose(unit_rows_without_first_component(domain), by_features, atol=1e-9)


def test_a_sparse_matrix_that_would_not_fit_is_refused():
    with pytest.raises(InputError, match="unit_rows"):
        unit_rows_without_first_component(csr_array((10**6, 10**6)))


def test_the_preparations_cannot_be_changed_from_outside():
    with pytest.raises(TypeError):
        PREPARATIONS["other"] = unit_rows


@given(matrices)
def test_what_was_learnt_prepares_the_same_rows_alike(domain):
    fitted = RankNormal.fitted(domain)
    rows = np.vstack([fitted.applied(row[None]) for row in domain])
    np.testing.assert_array_equal(rows, rank_normal(domain))


@given(matrices)
def test_rank_normal_columns_keep_their_order_and_nothing_else_of_their_values(domain):
    exact = domain.astype(float)
    found = rank_normal(exact)
    np.testing.assert_allclose(found, rank_normal(np.arctan(exact / 1e3)), atol=1e-9)
    np.testing.assert_allclose(-found, rank_normal(-exact), atol=1e-9)


def test_rank_normal_scores_are_normal_quantiles_of_mean_ranks():
    from scipy.stats import norm, rankdata

    column = np.array([5.0, 1.0, 5.0, 2.0, 1000.0])
    expected = norm.ppf((rankdata(column) - 0.5) / 5)
    np.testing.assert_allclose(rank_normal(column[:, None]).ravel(), expected)


def test_a_new_value_gets_a_score_between_those_of_its_neighbors():
    fitted = RankNormal.fitted(np.array([[0.0], [10.0], [20.0], [1e308]]))
    asked = np.array([[-5.0], [5.0], [15.0], [5e307], [1.7e308]])
    found, scores = fitted.applied(asked).ravel(), fitted.scores
    assert found[0] == scores[0]
    np.testing.assert_allclose(found[1:3], (scores[:2] + scores[1:3]) / 2)
    np.testing.assert_allclose(found[3], (scores[2] + scores[3]) / 2)
    assert found[4] == scores[3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_normal_sparse_rows_stay_sparse_and_as_far_apart(dtype):
    sparse = csr_array(random_array((30, 9), density=0.3, rng=np.random.default_rng(0)))
    sparse = (sparse - sparse.multiply(sparse > 0.5) * 3).tocsr().astype(dtype)
    found, dense = rank_normal(sparse), rank_normal(sparse.toarray())
    assert found.nnz <= sparse.nnz
    assert found.dtype == dtype
    shift = found.toarray() - dense
    np.testing.assert_allclose(shift, shift[:1].repeat(30, axis=0), atol=1e-6)
    lengths = np.linalg.norm(rank_normal_unit_rows(sparse).toarray(), axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1.0, atol=1e-6)


@given(matrices)
def test_own_rows_by_rank_have_the_bits_of_rows_that_come_later(domain):
    later = RankNormal.fitted(domain).applied(domain)
    assert rank_normal(domain).tobytes() == later.tobytes()


def test_later_rows_get_the_same_scores_sparse_and_dense():
    rng = np.random.default_rng(0)
    rows, later = (
        np.round(4 * random_array((30, 9), density=0.4, rng=rng).toarray(), 1) - column
        for column in (0.0, np.arange(9) % 2)
    )
    dense, sparse = RankNormal.fitted(rows), RankNormal.fitted(csr_array(rows))
    np.testing.assert_array_equal(dense.scores, sparse.scores)
    expected = dense.applied(later) - dense.applied(np.zeros((1, 9)))
    np.testing.assert_allclose(sparse.applied(csr_array(later)).toarray(), expected)
    few = sparse.thinned(3)
    assert np.diff(few.ends, prepend=0).max() == 3
