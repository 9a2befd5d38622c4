"""Numbers of extreme size: the answer at any scale is the answer at scale 1, scaled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill import LatentSemanticImputer
from vecfill.method.scaling import scaled_together, well_scaled
from vecfill.method.solve import system
from vecfill.method.solve.system import UnknownSystem
from vecfill.method.trend import linear_trend, reduced

# As decimal numbers: 2e-300, 7e-171, 1e160 and 7e299. Powers of two change no digit.
exponents = pytest.mark.parametrize("exponent", [-995, -567, 532, 996])

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(300, 6))
VECTORS = rng.normal(size=(300, 5))
VECTORS[::2] = np.nan
SOME_KNOWN = ~np.isnan(VECTORS[:, 0])
NEW_ROWS = rng.normal(size=(20, 6))
DISTANCES = np.sqrt(((ROWS[:, None] - ROWS) ** 2).sum(axis=2))

ways = pytest.mark.parametrize(
    "options",
    [
        {},
        {"metric": "cosine"},
        {"weight_rule": "nnls"},
        {"solver": "power"},
        {"metric": "precomputed"},
        {"is_sparse": True},
    ],
    ids=lambda options: " ".join(map(str, options.values())) or "default",
)


def fitted(exponent_of_domain: int, exponent_of_vectors: int, options: dict):
    options = dict(options)
    domain = DISTANCES if options.get("metric") == "precomputed" else ROWS
    domain = np.ldexp(domain, exponent_of_domain)
    if options.pop("is_sparse", False):
        domain = csr_array(np.maximum(domain, 0.0))
    imputer = LatentSemanticImputer(random_state=0, **options)
    return imputer.fit(domain, np.ldexp(VECTORS, exponent_of_vectors))


@exponents
@ways
def test_the_size_of_the_domain_changes_no_bit(exponent, options):
    expected = fitted(0, 0, options).embedding_
    np.testing.assert_array_equal(fitted(exponent, 0, options).embedding_, expected)


@exponents
@ways
@pytest.mark.parametrize("most_factored", [10, 3000])
def test_vectors_grow_with_the_embedding(monkeypatch, exponent, options, most_factored):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    expected = fitted(0, 0, options).embedding_
    found = fitted(0, exponent, options).embedding_
    np.testing.assert_array_equal(np.ldexp(found, -exponent), expected)


@pytest.mark.parametrize("size", [1e160, 1e300, 1e-300])
def test_sizes_that_are_no_power_of_two_change_only_the_last_digits(size):
    expected = LatentSemanticImputer().fit(ROWS, VECTORS).embedding_
    found = LatentSemanticImputer().fit(size * ROWS, size * VECTORS).embedding_
    np.testing.assert_allclose(found / size, expected, atol=1e-5)


def test_float32_is_imputed_up_to_its_largest_number():
    largest = np.finfo(np.float32).max
    vectors = (VECTORS / np.nanmax(np.abs(VECTORS))).astype(np.float32)
    expected = LatentSemanticImputer().fit(ROWS, vectors).embedding_
    found = LatentSemanticImputer().fit(ROWS, vectors * largest).embedding_
    np.testing.assert_allclose(found / largest, expected, atol=1e-6)
    rows = (ROWS / np.abs(ROWS).max()).astype(np.float32)
    np.testing.assert_allclose(
        LatentSemanticImputer().fit(rows * largest, vectors).embedding_,
        LatentSemanticImputer().fit(rows, vectors).embedding_,
        atol=1e-4,
    )


@exponents
@pytest.mark.parametrize("is_sparse", [False, True])
def test_new_rows_are_compared_with_fitted_ones_at_any_size(exponent, is_sparse):
    as_given = (lambda x: csr_array(np.maximum(x, 0.0))) if is_sparse else np.asarray
    plain = LatentSemanticImputer().fit(as_given(ROWS), VECTORS)
    scaled = LatentSemanticImputer().fit(as_given(np.ldexp(ROWS, exponent)), VECTORS)
    expected = plain.transform(as_given(NEW_ROWS))
    found = scaled.transform(as_given(np.ldexp(NEW_ROWS, exponent)))
    np.testing.assert_array_equal(found, expected)


@exponents
def test_distances_of_new_rows_may_have_any_size(exponent):
    between = np.sqrt(((NEW_ROWS[:, None] - ROWS) ** 2).sum(axis=2))
    expected = fitted(0, 0, {"metric": "precomputed"}).transform(between)
    found = fitted(exponent, 0, {"metric": "precomputed"}).transform(np.ldexp(between, exponent))
    np.testing.assert_array_equal(found, expected)


def test_tiny_new_rows_are_not_blown_up():
    # Scaled alone, new rows would no longer be where they are among the fitted ones.
    imputer = LatentSemanticImputer(min_degree=2).fit([[-1.0], [1.0], [3.0]], [[0.0], [2.0], [4.0]])
    np.testing.assert_allclose(imputer.transform([[1e-20]]), [[1.0]])


@exponents
@pytest.mark.parametrize("most_factored", [10, 3000])
def test_columns_of_any_size_are_solved_side_by_side(monkeypatch, exponent, most_factored):
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    weights = fitted(0, 0, {}).weights_
    right = np.random.default_rng(1).normal(size=(150, 3))
    sizes = np.array([0, exponent, 3])
    equations = UnknownSystem(weights, SOME_KNOWN)
    for solve in (equations.solve, equations.solve_transposed):
        found = solve(np.ldexp(right, sizes))
        assert found.residual < 1e-8
        np.testing.assert_allclose(
            np.ldexp(found.vectors, -sizes), solve(right).vectors, rtol=1e-6, atol=1e-9
        )


@exponents
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_trend_of_any_size_is_the_same_trend(exponent, is_sparse):
    as_given = csr_array if is_sparse else np.asarray
    expected = linear_trend(reduced(as_given(ROWS)), VECTORS, SOME_KNOWN)
    domain = linear_trend(reduced(as_given(np.ldexp(ROWS, exponent))), VECTORS, SOME_KNOWN)
    np.testing.assert_allclose(domain.values, expected.values, atol=1e-12)
    np.testing.assert_allclose(domain.residuals, expected.residuals, atol=1e-12)
    both = linear_trend(reduced(as_given(ROWS)), np.ldexp(VECTORS, exponent), SOME_KNOWN)
    np.testing.assert_array_equal(np.ldexp(both.values, -exponent), expected.values)
    np.testing.assert_array_equal(np.ldexp(both.residuals, -exponent), expected.residuals)


def test_numbers_of_ordinary_size_are_left_alone():
    assert well_scaled(ROWS) is ROWS
    zeros = np.zeros((2, 2))
    assert scaled_together(ROWS, zeros)[1] is zeros
