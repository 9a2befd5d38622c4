from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from tests.method.search.test_neighbors import KINDS, awkward_rows
from vecfill import ConvergenceWarning, InputError, LatentSemanticImputer, VecfillError
from vecfill.method.propagation import split_weights


def made_embedding(n_rows: int, *, n_known: int, n_dims: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    embedding = rng.normal(size=(n_rows, n_dims))
    embedding[rng.permutation(n_rows)[n_known:]] = np.nan
    return embedding


@given(
    kind=st.sampled_from(KINDS),
    n_known=st.integers(1, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    solver=st.sampled_from(["direct", "power"]),
    metric=st.sampled_from(["euclidean", "cosine"]),
    seed=st.integers(0, 1000),
)
def test_known_rows_come_back_bit_for_bit(kind, n_known, dtype, solver, metric, seed):
    X = awkward_rows(kind, 30, 4, seed).astype(dtype)
    Y = made_embedding(30, n_known=n_known, seed=seed).astype(dtype)
    imputer = LatentSemanticImputer(
        min_degree=4, solver=solver, metric=metric, tol=0.5, max_iter=10_000, random_state=0
    ).fit(X, Y)
    is_known = ~np.isnan(Y).any(axis=1)
    assert imputer.embedding_.dtype == dtype
    assert imputer.embedding_[is_known].tobytes() == Y[is_known].tobytes()
    assert np.isfinite(imputer.embedding_).all()
    np.testing.assert_array_equal(imputer.is_known_, is_known)


@given(kind=st.sampled_from(["normal", "far clusters", "tiny"]), seed=st.integers(0, 1000))
def test_permuting_rows_permutes_the_result(kind, seed):
    X, Y = awkward_rows(kind, 40, 8, seed), made_embedding(40, n_known=15, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    imputer = LatentSemanticImputer(min_degree=5)
    expected = imputer.fit(X, Y).embedding_[order]
    np.testing.assert_allclose(imputer.fit(X[order], Y[order]).embedding_, expected, atol=1e-5)


@given(seed=st.integers(0, 1000))
def test_shifting_the_domain_changes_nothing(seed):
    X, Y = awkward_rows("normal", 40, 8, seed), made_embedding(40, n_known=15, seed=seed)
    imputer = LatentSemanticImputer(min_degree=5)
    expected = imputer.fit(X, Y).embedding_
    np.testing.assert_allclose(imputer.fit(X - 17.0, Y).embedding_, expected, atol=1e-6)


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000))
def test_the_walk_over_unknown_rows_dies_out(kind, seed):
    X, Y = awkward_rows(kind, 40, 8, seed), made_embedding(40, n_known=4, seed=seed)
    imputer = LatentSemanticImputer(min_degree=5).fit(X, Y)
    _, on_unknown = split_weights(imputer.weights_, imputer.is_known_)
    assert np.abs(np.linalg.eigvals(on_unknown.toarray())).max() < 1


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_any_number_of_threads_gives_the_same_bits(n_jobs):
    X = np.random.default_rng(0).normal(size=(1300, 9)).astype(np.float32)
    Y = made_embedding(1300, n_known=300, n_dims=40).astype(np.float32)
    for solver in ("direct", "power"):
        imputer = LatentSemanticImputer(solver=solver, random_state=0, n_jobs=1)
        expected = imputer.fit(X, Y).embedding_
        again = clone(imputer).set_params(n_jobs=n_jobs).fit(X, Y).embedding_
        assert expected.tobytes() == again.tobytes()


def test_distances_give_the_result_of_the_rows():
    X, Y = awkward_rows("normal", 50, 6, 0), made_embedding(50, n_known=20)
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    rows = LatentSemanticImputer(min_degree=5).fit(X[:40], Y[:40])
    from_distances = LatentSemanticImputer(min_degree=5, metric="precomputed")
    from_distances.fit(distances[:40, :40], Y[:40])
    np.testing.assert_allclose(from_distances.embedding_, rows.embedding_, atol=1e-8)
    np.testing.assert_allclose(
        from_distances.transform(distances[40:, :40]), rows.transform(X[40:]), atol=1e-8
    )


def test_cosine_is_euclidean_on_unit_rows():
    X, Y = awkward_rows("normal", 50, 6, 0), made_embedding(50, n_known=20)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = LatentSemanticImputer(min_degree=5, metric="cosine").fit(X, Y)
    euclidean = LatentSemanticImputer(min_degree=5).fit(unit, Y)
    np.testing.assert_allclose(cosine.embedding_, euclidean.embedding_, atol=1e-9)
    np.testing.assert_allclose(cosine.transform(7 * X[:3]), cosine.embedding_[:3], atol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_give_the_result_of_dense_ones(metric):
    X, Y = awkward_rows("normal", 60, 9, 0), made_embedding(60, n_known=20)
    X[np.abs(X) < 0.5] = 0.0
    dense = LatentSemanticImputer(min_degree=5, metric=metric).fit(X[:50], Y[:50])
    sparse = LatentSemanticImputer(min_degree=5, metric=metric).fit(csr_array(X[:50]), Y[:50])
    np.testing.assert_allclose(sparse.embedding_, dense.embedding_, atol=1e-7)
    np.testing.assert_allclose(
        sparse.transform(csr_array(X[50:])), dense.transform(X[50:]), atol=1e-7
    )


def test_a_new_entity_is_the_mix_of_its_nearest_fitted_rows():
    imputer = LatentSemanticImputer(min_degree=2).fit([[0.0], [4.0], [9.0]], [[0.0], [8.0], [1.0]])
    np.testing.assert_allclose(imputer.transform([[1.0]]), [[2.0]])
    np.testing.assert_array_equal(imputer.transform([[4.0]]), [[8.0]])


def test_pandas_names_and_output_are_honoured():
    X = pd.DataFrame(awkward_rows("normal", 20, 2, 0), columns=["height", "width"])
    Y = made_embedding(20, n_known=10)
    imputer = LatentSemanticImputer(min_degree=3).set_output(transform="pandas")
    table = imputer.fit_transform(X, Y)
    assert list(imputer.feature_names_in_) == ["height", "width"]
    assert list(table.columns) == [f"latentsemanticimputer{i}" for i in range(3)]
    assert imputer.transform(X).equals(table)
    assert imputer.n_features_in_ == 2


def test_nothing_unknown_returns_the_embedding_as_it_is():
    X, Y = awkward_rows("normal", 5, 2, 0), made_embedding(5, n_known=5)
    imputer = LatentSemanticImputer(min_degree=8).fit(X, Y)
    assert imputer.embedding_.tobytes() == Y.tobytes()
    assert imputer.embedding_ is not Y


def test_one_known_row_is_copied_to_all():
    X, Y = awkward_rows("normal", 12, 2, 0), made_embedding(12, n_known=1)
    imputed = LatentSemanticImputer(min_degree=3).fit(X, Y).embedding_
    np.testing.assert_allclose(imputed, np.repeat(Y[~np.isnan(Y).any(axis=1)], 12, axis=0))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, bool])
def test_halves_integers_and_booleans_are_accepted(dtype):
    X = (awkward_rows("normal", 20, 5, 0) * 3).astype(dtype)
    Y = made_embedding(20, n_known=8)
    imputed = LatentSemanticImputer(min_degree=4).fit(X, Y).embedding_
    np.testing.assert_array_equal(
        imputed, LatentSemanticImputer(min_degree=4).fit(X.astype(float), Y).embedding_
    )


def test_values_from_1e_300_to_1e300_give_finite_vectors():
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.uniform(-300, 300, size=(40, 3))
    Y = made_embedding(40, n_known=15)
    assert np.isfinite(LatentSemanticImputer().fit(X, Y).embedding_).all()


def test_an_iteration_that_ends_too_early_warns_with_the_change_it_reached():
    X, Y = awkward_rows("normal", 40, 3, 0), made_embedding(40, n_known=2)
    imputer = LatentSemanticImputer(solver="power", max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 with a relative change of \d"):
        imputer.fit(X, Y)
    assert imputer.n_iter_ == 1


X_GOOD, Y_GOOD = np.arange(12.0).reshape(6, 2), np.arange(12.0).reshape(6, 2)


def changed(values: np.ndarray, place: tuple[int, int], value: float) -> np.ndarray:
    values = values.copy()
    values[place] = value
    return values


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (changed(X_GOOD, (3, 1), np.nan), Y_GOOD, "X contains NaN at row 3, column 1"),
        (changed(X_GOOD, (2, 0), -np.inf), Y_GOOD, "X contains infinity at row 2, column 0"),
        (csr_array(changed(X_GOOD, (2, 1), np.inf)), Y_GOOD, "infinity at row 2, column 1"),
        (X_GOOD, changed(Y_GOOD, (4, 1), np.nan), "Row 4 of Y is partly missing: column 1"),
        (X_GOOD, changed(Y_GOOD, (1, 1), np.inf), "Y contains infinity at row 1, column 1"),
        (X_GOOD, np.full((6, 2), np.nan), "No row of Y is known: all 6 rows"),
        (X_GOOD, Y_GOOD[:5], "X has 6 rows and Y has 5"),
        (X_GOOD.astype(complex), Y_GOOD, "Complex data not supported"),
        (X_GOOD, Y_GOOD * 1j, "Complex data not supported: Y has dtype complex128"),
        (np.full((6, 2), "a", dtype=object), Y_GOOD, "X has dtype object, which is not numeric"),
        (X_GOOD, Y_GOOD[None], "Y has 3 dimensions, expected 2"),
        (X_GOOD[:, 0], Y_GOOD, "Reshape your data"),
        (X_GOOD[:, :0], Y_GOOD, "0 feature(s)"),
        (X_GOOD, Y_GOOD[:, :0], "Y has no columns"),
        (X_GOOD, csr_array(Y_GOOD), "Y is sparse"),
        (X_GOOD, None, "pass the embedding as Y"),
    ],
)
def test_bad_arrays_are_refused_by_place(X, Y, words):
    with pytest.raises(VecfillError, match=re.escape(words)):
        LatentSemanticImputer(min_degree=2).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_degree": 0}, "min_degree=0 is not a whole number of at least 1"),
        ({"min_degree": 2.5}, "min_degree=2.5"),
        ({"min_degree": 6}, "min_degree=6, but there are only 6 rows. Use at most 5."),
        (
            {"weight_rule": "lasso"},
            "weight_rule='lasso' is not known. Use one of 'simplex', 'nnls'",
        ),
        ({"solver": "cg"}, "solver='cg'"),
        ({"metric": "manhattan"}, "metric='manhattan'"),
        ({"ridge": -1}, "ridge=-1 is out of range"),
        ({"weight_floor": np.nan}, "weight_floor=nan is not a finite number"),
        ({"tol": 0, "solver": "power"}, "tol=0 is out of range. Use a number above 0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"self_weight": 1.0}, "self_weight=1.0 is out of range"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"metric": "precomputed"}, "requires a square matrix of distances, but X is 6 x 2"),
    ],
)
def test_bad_options_are_refused_with_what_would_do(options, words):
    Y = Y_GOOD.copy()
    Y[2] = np.nan
    with pytest.raises(InputError, match=re.escape(words)):
        LatentSemanticImputer(**{"min_degree": 2, **options}).fit(X_GOOD, Y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({(0, 1): -1.0, (1, 0): -1.0}, "X[0, 1] is -1, but distances are not negative"),
        ({(2, 2): 1.0}, "X[2, 2] is 1, but a row's distance from itself is 0"),
        ({(0, 2): 7.0}, "X is not symmetric: X[0, 2] is 7"),
    ],
)
def test_bad_distances_are_refused_by_place(change, words):
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    for place, value in change.items():
        distances[place] = value
    with pytest.raises(InputError, match=re.escape(words)):
        LatentSemanticImputer(min_degree=2, metric="precomputed").fit(
            distances, made_embedding(5, n_known=3)
        )


def test_nnls_needs_vectors_and_says_so():
    imputer = LatentSemanticImputer(min_degree=2, metric="precomputed", weight_rule="nnls")
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    with pytest.raises(InputError, match="weight_rule='nnls' needs domain vectors"):
        imputer.fit(distances, made_embedding(5, n_known=3))


def test_without_a_floor_rows_that_reach_nothing_known_are_refused():
    # Rows 3 and 4 are equal: each is all of the other's mix, and nothing known reaches them.
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    Y = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
    with pytest.raises(InputError, match=r"2 unknown rows \(the first is row 3\).*weight_floor"):
        LatentSemanticImputer(min_degree=2, weight_floor=0.0).fit(X, Y)
    assert np.isfinite(LatentSemanticImputer(min_degree=2).fit(X, Y).embedding_).all()
