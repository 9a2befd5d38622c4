from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree
from scipy.spatial.distance import cdist

from tests.conftest import DATA
from vecfill.method.search.cells import cells_of
from vecfill.method.search.neighbors import exact_neighbors
from vecfill.method.search.tree import minimum_spanning_tree


@pytest.fixture(scope="module")
def mesh_rows() -> np.ndarray:
    """Return the distinct vectors of medical headings, or skip."""
    file = DATA / "medicine" / "mesh_graph_netmf128.npz"
    if not file.is_file():
        pytest.skip("the shared data folder ../shared/data/medicine is not on this machine")
    with np.load(file, allow_pickle=False) as arrays:
        rows = next(arrays[name] for name in arrays.files if arrays[name].ndim == 2)
    _, first = np.unique(np.asarray(rows), axis=0, return_index=True)
    return np.ascontiguousarray(rows[np.sort(first)])


@pytest.mark.slow
@pytest.mark.parametrize("with_cells", [False, True])
def test_medical_headings_have_the_neighbors_of_brute_force(mesh_rows, with_cells):
    rows, some = mesh_rows, np.arange(0, len(mesh_rows), 25)
    found = exact_neighbors(rows, n_neighbors=8, cells=cells_of(rows) if with_cells else None)
    squared = cdist(rows[some].astype(np.float64), rows.astype(np.float64), "sqeuclidean")
    squared[np.arange(some.size), some] = np.inf
    # Ties by row number, which is what a stable sort of all distances gives.
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(found.indices[some, :8], nearest)


@pytest.mark.slow
@pytest.mark.parametrize("with_cells", [False, True])
def test_medical_headings_have_the_tree_of_brute_force(mesh_rows, with_cells):
    rows = mesh_rows[:6000]
    cells = cells_of(rows) if with_cells else None
    tree = minimum_spanning_tree(
        rows, exact_neighbors(rows, n_neighbors=8, cells=cells), cells=cells
    )
    weight = scipy_tree(cdist(rows.astype(np.float64), rows.astype(np.float64))).sum()
    assert np.sqrt(tree.squared).sum() == pytest.approx(weight, rel=1e-12)
