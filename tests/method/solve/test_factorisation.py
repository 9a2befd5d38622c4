from __future__ import annotations

import pickle

import numpy as np
from scipy.sparse import csr_array

from tests.method.test_propagation import made_problem
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.solve import factorisation
from vecfill.method.solve.factorisation import expected_fill, factor_of
from vecfill.method.solve.parts import split_weights
from vecfill.method.weights import convex_weights


def test_the_fill_of_a_factor_is_forecast_from_the_largest_part():
    # Row 0 alone among known rows: a piece around it would say nothing.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 30))
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=6)).tolil()
    weights[0, :] = 0.0
    weights[:, 0] = 0.0
    assert expected_fill(csr_array(weights)) > 10


def test_no_fill_is_forecast_for_far_larger_systems(monkeypatch):
    monkeypatch.setattr(factorisation, "FILL_SAMPLES", (20, 40))
    monkeypatch.setattr(factorisation, "MOST_FORECAST", 3)
    weights, _, is_known = made_problem("line", 400, 4, 0)
    _, on_unknown = split_weights(weights, is_known)
    assert expected_fill(on_unknown) == np.inf


def test_a_factor_that_was_pickled_solves_to_the_same_bits():
    weights, _, is_known = made_problem("normal", 400, 50, 0)
    _, on_unknown = split_weights(weights, is_known)
    factor = factor_of(on_unknown)
    right = np.random.default_rng(0).normal(size=(350, 3))
    for one in (factor, factor.transposed()):
        again = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(again.solve(right), one.solve(right))
