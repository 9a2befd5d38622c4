from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, csr_matrix

from vecfill import InputError, LatentSemanticImputer
from vecfill.checks import domain_rows


def damaged(kind, place: int, value: int):
    """Return a sparse matrix of which one index was changed after it was built."""
    matrix = kind(np.arange(1.0, 13.0).reshape(4, 3))
    indices = matrix.coords[1] if matrix.format == "coo" else matrix.indices
    indices[place] = value
    return matrix


@pytest.mark.parametrize("value", [3, 1_000_000_000, -1])
@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_array])
def test_a_column_outside_of_a_sparse_matrix_is_refused(kind, value):
    with pytest.raises(InputError, match="damaged sparse matrix"):
        domain_rows(damaged(kind, 4, value))


@pytest.mark.parametrize("kind", [csc_array, bsr_array])
def test_an_index_outside_of_other_sparse_matrices_is_refused(kind):
    with pytest.raises(InputError, match="damaged sparse matrix"):
        domain_rows(damaged(kind, 0, 1_000_000))


def test_row_pointers_that_run_backwards_are_refused():
    matrix = csr_array(np.arange(1.0, 13.0).reshape(4, 3))
    matrix.indptr[2] = 0
    with pytest.raises(InputError, match="damaged sparse matrix"):
        LatentSemanticImputer(min_degree=1).fit(matrix, np.arange(4.0)[:, None])


def test_sound_sparse_matrices_of_every_format_are_read():
    expected = np.array([[0.0, 2.0], [3.0, 0.0]])
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        found = domain_rows(coo_array(expected).asformat(form))
        np.testing.assert_array_equal(found.toarray(), expected)
