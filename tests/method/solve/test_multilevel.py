from __future__ import annotations

import numpy as np

from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.solve.krylov import GaussSeidel, solve_columns
from vecfill.method.solve.multilevel import Multilevel
from vecfill.method.solve.parts import split_weights
from vecfill.method.weights import convex_weights


def test_coarse_levels_save_most_iterations():
    rng = np.random.default_rng(0)
    rows = np.sort(rng.random((3000, 1)), axis=0)
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=4))
    is_known = np.arange(3000) % 100 == 0
    on_known, on_unknown = split_weights(weights, is_known)
    right = on_known @ rng.normal(size=(30, 3))
    n_iter = {}
    for name, precondition in (
        ("sweeps", GaussSeidel(on_unknown)),
        ("levels", Multilevel(on_unknown)),
    ):
        options = {"tol": 1e-9, "max_iter": 2000}
        n_iter[name], _ = solve_columns(
            on_unknown, right, np.zeros_like(right), precondition, **options
        )
    assert n_iter["levels"] < n_iter["sweeps"] / 2
