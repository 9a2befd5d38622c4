"""The paper's iteration and its lemma, on examples small enough to check by hand."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill import LatentSemanticImputer


def test_the_iteration_reaches_what_the_imputer_solves():
    iteration = importlib.import_module("iteration")
    rng = np.random.default_rng(0)
    domain, embedding = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    embedding[25:] = np.nan
    solved = LatentSemanticImputer(5).fit(domain, embedding)
    for noise in (0.0, 1.0):
        found = iteration.iterate(
            solved.weights_, embedding, tol=1e-13, noise=noise, self_weight=0.3, max_iter=10_000
        )
        np.testing.assert_allclose(found.vectors, solved.embedding_, atol=1e-9)
    assert found.changes[-1] <= 1e-13


def test_the_first_step_from_the_mean_is_done_by_hand():
    iteration = importlib.import_module("iteration")
    weights = np.array([[0, 1, 0], [1, 0, 0], [0.5, 0, 0.5]])
    embedding = np.array([[0.0], [4.0], [np.nan]])
    found = iteration.iterate(weights, embedding, tol=0.0, max_iter=1)
    assert found.vectors.ravel().tolist() == [0.0, 4.0, 1.0]
    assert found.changes == [0.5]


def test_rows_without_a_path_to_a_known_row_are_found():
    module = importlib.import_module("neighbor_weights")
    # Row 1 leans on row 0, which is known; rows 2 and 3 lean on each other; row 4 on row 3.
    links = [(0, 1), (1, 0), (2, 3), (3, 2), (4, 3)]
    rows, neighbors = zip(*links, strict=True)
    weights = csr_array((np.ones(5), (rows, neighbors)), shape=(5, 5))
    is_known = np.array([True, False, False, False, False])
    assert module.cut_off(weights, is_known).tolist() == [False, False, True, True, True]
    assert module.spectral_radius(weights, ~is_known) == pytest.approx(1.0)


def test_weights_on_nearest_neighbors_are_a_convex_mix():
    module = importlib.import_module("neighbor_weights")
    domain = np.random.default_rng(0).normal(size=(30, 4)) + 3
    weights = module.neighbor_weights(domain, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights.min() >= 0
    assert np.diff(weights.indptr).max() <= 3
    assert weights.diagonal().max() == 0
