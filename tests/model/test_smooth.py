"""Numeric columns as smooth bins."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

import vecfill as vf
from vecfill.errors import InputError
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic
from vecfill.model.preparation import FittedPreparation, smooth
from vecfill.model.smooth import N_BINS, Smooth, has_numbers, numeric_columns
from vecfill.model.space import Space
from vecfill.trust.choose.candidates import kernel_ridges
from vecfill.trust.choose.choice import choose

columns = arrays(
    np.float64,
    st.tuples(st.integers(16, 60), st.just(1)),
    elements=st.floats(-1e6, 1e6, width=32),
    unique=True,
)


def films(n_rows=150, seed=0):
    """Return a kind and a year, and vectors that follow a curve of the year."""
    rng = np.random.default_rng(seed)
    year, kind = rng.integers(1920, 2020, n_rows), rng.integers(0, 2, n_rows)
    angle = (year[:, None] - 1920) / 100 * np.arange(2, 8) * np.pi
    vectors = np.hstack([np.sin(angle), np.cos(angle)]) + kind[:, None] / 2
    vectors += rng.normal(size=vectors.shape) / 3
    return np.column_stack([kind, (year - 1970) / 30]).astype(float), vectors


@given(columns)
def test_bumps_of_a_value_are_not_negative_and_have_the_same_sum(rows):
    bumps = smooth(rows)
    assert (bumps >= 0).all()
    np.testing.assert_allclose(bumps.sum(axis=1), bumps[0].sum())


@given(columns)
def test_bumps_vary_as_much_as_their_column(rows):
    np.testing.assert_allclose(smooth(rows).var(axis=0).sum(), rows.var())


@given(columns)
def test_bumps_do_not_depend_on_the_unit_of_the_column_but_for_their_size(rows):
    np.testing.assert_allclose(smooth(8 * rows) / 8, smooth(rows), rtol=1e-9)


@given(columns)
def test_a_row_that_comes_later_has_the_bits_of_the_same_row_at_the_fit(rows):
    fitted = FittedPreparation.of("smooth", rows)
    later = np.vstack([fitted.applied(row[None]) for row in rows])
    assert later.tobytes() == smooth(rows).tobytes()


def test_a_sum_of_bumps_can_be_the_place_among_the_edges():
    rows = np.arange(81.0)[:, None]
    fitted = Smooth.fitted(rows)
    along = fitted.applied(rows) / fitted.sizes[0] @ np.arange(-1.0, N_BINS + 2)
    np.testing.assert_allclose(along, rows.ravel() / 10, atol=1e-12)


def test_beyond_its_ends_a_column_goes_on_as_it_ends():
    fitted = Smooth.fitted(np.arange(40.0)[:, None])
    np.testing.assert_array_equal(
        fitted.applied(np.array([[-5.0], [99.0]])), fitted.applied(np.array([[0.0], [39.0]]))
    )


def test_only_columns_of_many_values_are_changed():
    rows, _ = films()
    assert numeric_columns(rows).tolist() == [1]
    prepared = smooth(rows)
    assert prepared.shape == (150, 1 + N_BINS + 3)
    np.testing.assert_array_equal(prepared[:, 0], rows[:, 0])
    few = rows.round()
    np.testing.assert_array_equal(smooth(few), few)


def test_a_column_that_nearly_always_has_one_value_stays():
    rows = np.zeros((400, 1))
    rows[:20, 0] = np.arange(20)
    np.testing.assert_array_equal(smooth(rows), rows)


def test_sparse_rows_are_refused_with_a_way_out():
    with pytest.raises(InputError, match="rank_normal"):
        smooth(csr_array(np.eye(20)))


@pytest.mark.parametrize(
    "rows",
    [np.eye(40), csr_array(np.arange(40.0)[:, None]), np.random.default_rng(0).random((40, 30))],
)
def test_nothing_smooth_is_tried_without_a_few_numbers(rows):
    assert not has_numbers(rows)
    assert "smooth" not in {entrant.preparation for entrant in kernel_ridges(Space(rows))}


def test_a_curve_of_a_number_is_raced_and_chosen():
    rows, vectors = films()
    raced = {entrant.kernel for entrant in kernel_ridges(Space(rows))
             if entrant.preparation == "smooth"}  # fmt: skip
    assert raced == {"rbf", "laplacian", "linear"}
    choice = choose(Space(rows), vectors, np.ones(150, np.bool_))
    assert "smooth" in str(choice.predictor)


def test_ridge_on_smooth_bins_follows_a_curve_and_plain_ridge_does_not():
    rows, vectors = films()
    space, known = Space(rows), KnownRows(vectors, np.arange(150) < 110)
    truth = vectors[110:] - vectors[:110].mean(axis=0)
    explained = []
    for preparation in ("as_given", "smooth"):
        predicted = KernelRidge(preparation, "linear").predict(space, known).vectors
        explained.append(1 - ((predicted - vectors[110:]) ** 2).sum() / (truth**2).sum())
    assert explained[0] < 0.2
    assert explained[1] > 0.5


def test_a_trend_along_bins_is_explained_by_the_column_they_are_made_of():
    rows, vectors = films()
    names = [f"film{number}" for number in range(150)]
    table = pd.DataFrame(rows, index=names, columns=["kind", "year"])
    known = dict(zip(names[:110], vectors, strict=False))
    method = LatentSemantic("smooth", residual_share=0.5)
    result = vf.impute(table, known, method=method, names="off")
    assert next(iter(result.explain(names[-1]).drivers)) == "year"
