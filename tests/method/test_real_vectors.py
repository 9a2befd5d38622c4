from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree

from tests.conftest import DATA
from vecfill.method.cells import cells_of
from vecfill.method.neighbors import exact_neighbors
from vecfill.method.tree import minimum_spanning_tree


@pytest.fixture(scope="module")
def mesh_rows() -> np.ndarray:
    """Return distinct vectors of medical headings, or skip."""
    file = DATA / "medicine" / "mesh_graph_netmf128.npz"
    if not file.is_file():
        pytest.skip("the shared data folder ../shared/data/medicine is not on this machine")
    with np.load(file, allow_pickle=False) as arrays:
        rows = next(arrays[name] for name in arrays.files if arrays[name].ndim == 2)
    return np.unique(np.asarray(rows[:2000]), axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("with_cells", [False, True])
def test_medical_headings_have_the_neighbors_and_the_tree_of_brute_force(mesh_rows, with_cells):
    cells = cells_of(mesh_rows) if with_cells else None
    found = exact_neighbors(mesh_rows, n_neighbors=8, cells=cells)
    wide = mesh_rows.astype(np.float64)
    squared = np.array([((wide - row) ** 2).sum(axis=1) for row in wide])
    np.fill_diagonal(squared, np.inf)
    expected = np.sort(squared, axis=1)[:, :8]
    np.testing.assert_allclose(found.squared[:, :8], expected, rtol=1e-12)
    tree = minimum_spanning_tree(mesh_rows, found, cells=cells)
    np.fill_diagonal(squared, 0.0)
    weight = scipy_tree(np.sqrt(squared)).sum()
    assert np.sqrt(tree.squared).sum() == pytest.approx(weight, rel=1e-12)
