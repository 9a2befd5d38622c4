"""Arrays with names, mappings, and square matrices become a domain."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array
from scipy.spatial.distance import cdist

from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain


def points(n_rows=6, n_features=3):
    return np.random.default_rng(0).normal(size=(n_rows, n_features))


def distances(n_rows=6):
    return cdist(points(n_rows), points(n_rows))


def named(matrix, names="abcdef"):
    return pd.DataFrame(matrix, index=list(names), columns=list(names))


def test_an_array_a_mapping_and_a_table_give_the_same_vectors():
    names = list("abcdef")
    array = as_domain(points(), names=names)
    mapping = as_domain(dict(zip(names, points(), strict=True)))
    table = as_domain(pa.table({"name": names, **{str(i): points()[:, i] for i in range(3)}}))
    for other in (mapping, table):
        assert array.entities == other.entities
        np.testing.assert_array_equal(array.vectors, other.vectors)


@pytest.mark.parametrize("n_features", [3, 80])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int16, bool])
def test_float32_stays_and_other_numbers_become_float64(dtype, n_features):
    array = (10 * points(n_features=n_features)).astype(dtype)
    array[0], array[1] = 0, 1
    domain = as_domain(array, names=list("abcdef"))
    assert domain.vectors.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(domain.vectors, array)


@pytest.mark.parametrize("n_features", [3, 80])
def test_constant_columns_of_an_array_are_dropped_and_missing_values_marked(n_features):
    array = points(n_features=n_features)
    array[:, 1] = 7
    domain = as_domain(array, names=list("abcdef"))
    assert domain.vectors.shape == (6, n_features - 1)
    assert "1" not in domain.columns
    assert "constant" in domain.notes[0]
    array[2, 0] = np.nan
    assert "0 (missing)" in as_domain(array, names=list("abcdef")).columns


def test_a_sparse_matrix_stays_sparse_and_its_empty_rows_are_reported():
    dense = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])
    for make in (csr_array, coo_array, csc_matrix):
        domain = as_domain(make(dense), names=["a", "b", "c"])
        assert isinstance(domain.vectors, csr_array)
        np.testing.assert_array_equal(domain.vectors.toarray(), dense)
        assert "'b'" in domain.notes[0]
    assert as_domain(csr_array(dense.astype(np.float32)), names=["a", "b", "c"]).vectors.dtype == (
        np.float32
    )
    scaled = as_domain(csr_array(dense), names=["a", "b", "c"], standardize=True)
    assert scaled.vectors.toarray().var(axis=0) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    ("array", "names", "message"),
    [
        (np.eye(2), ["a"], "1 names for 2 rows"),
        (np.eye(2), ["a", "a"], "'a' present more than once"),
        (np.ones(2), ["a", "b"], "1 axes, not 2"),
        (np.array([["x"], ["y"]]), ["a", "b"], "of type <U1"),
        ([[1, 2], [3]], ["a", "b"], "no table of numbers"),
        (np.array([[1j], [2]]), ["a", "b"], "of type complex128"),
        (np.array([[1.0], [np.inf]]), ["a", "b"], "column 0, entity 'b': the value is infinite"),
        (np.ones((2, 3)), ["a", "b"], "constant"),
        (np.ones((2, 80)), ["a", "b"], "constant"),
        (np.empty((2, 0)), ["a", "b"], r"shape \(2, 0\)"),
        (np.empty((2, 100_001)), ["a", "b"], "100,001 columns"),
        (csr_array((2, 3)), ["a", "b"], "no entry"),
        (csr_array(np.array([[1.0], [np.nan]])), ["a", "b"], "column 0, entity 'b'"),
    ],
)
def test_an_array_that_cannot_be_used_is_refused(array, names, message):
    with pytest.raises(InputError, match=message):
        as_domain(array, names=names)


def test_a_mapping_of_unequal_vectors_is_refused_by_name():
    with pytest.raises(InputError, match="vector of 'b' has 1 numbers, the first one has 2"):
        as_domain({"a": [1, 2], "b": [3]})
    with pytest.raises(InputError, match="vector of 'b' is not a row of numbers"):
        as_domain({"a": [1, 2], "b": "xy"})
    with pytest.raises(InputError, match="is empty"):
        as_domain({})


def test_distances_are_taken_as_they_are_whatever_the_order_of_the_columns():
    expected = distances()
    table = named(expected)
    for source in (table, table[list("fbdace")]):
        domain = as_domain(source, kind="distances")
        assert domain.kind == "distances"
        np.testing.assert_allclose(domain.vectors, expected)
    np.testing.assert_allclose(
        as_domain(expected, names=list("abcdef"), kind="distances").vectors, expected
    )


def test_similarities_become_the_euclidean_distances_behind_them():
    domain = as_domain(named(points() @ points().T), kind="similarities")
    np.testing.assert_allclose(domain.vectors, distances(), atol=1e-7)
    assert "turned into distances" in domain.notes[0]


def changed(row, column, value):
    matrix = distances()
    matrix[row, column] = value
    return named(matrix)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (named(distances()).iloc[:4], "4 x 6 for 4 names"),
        (changed(0, 1, 9.0), "not symmetric: 'a' to 'b' is"),
        (named(-distances()), "less than 0. Are these similarities"),
        (changed(2, 2, 1.0), "of 'c' to itself is 1, not 0"),
        (changed(0, 1, np.nan), "'a' and 'b' is missing or infinite"),
        (named(distances()).rename(columns={"a": "z"}), "'z' is no row"),
        (named(np.zeros((6, 6))), "every distance is 0"),
        (named(distances()).assign(b="x"), "column 'b' holds text such as 'x'"),
    ],
)
def test_a_matrix_that_holds_no_distances_is_refused(source, message):
    with pytest.raises(InputError, match=message):
        as_domain(source, kind="distances")


def test_distances_passed_as_similarities_are_refused():
    with pytest.raises(InputError, match=r"more similar .* than to themselves"):
        as_domain(named(distances()), kind="similarities")
    with pytest.raises(InputError, match="is sparse"):
        as_domain(csr_array(distances()), names=list("abcdef"), kind="distances")
    with pytest.raises(InputError, match="needs a square matrix"):
        as_domain({"a": [0.0]}, kind="distances")


def test_what_an_array_masks_is_missing():
    masked = np.ma.masked_array(points(), mask=np.arange(18).reshape(6, 3) == 4)
    assert as_domain(masked, names=list("abcdef")).columns == ("0", "1", "1 (missing)", "2")


@pytest.mark.parametrize("kind", ["features", "similarities"])
@pytest.mark.parametrize("column", [6, 1_000_000, -1])
def test_a_sparse_matrix_that_points_outside_of_itself_is_refused(kind, column):
    matrix = csr_array(np.eye(6))
    matrix.indices[2] = column
    with pytest.raises(InputError, match="damaged sparse matrix"):
        as_domain(matrix, names=list("abcdef"), kind=kind)
