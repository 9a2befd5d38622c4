from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from tests.method.search.test_cells import structured_rows
from tests.method.search.test_neighbors import KINDS, awkward_rows, brute_force
from vecfill import LatentSemanticImputer
from vecfill.method import graph
from vecfill.method.graph import measured_neighbor_graphs, spanning_neighbor_graph
from vecfill.method.search import approximate, neighbors
from vecfill.method.search.cell_search import empty_lists
from vecfill.method.search.cells import cells_of
from vecfill.method.search.neighbors import approximate_neighbors


@pytest.fixture(autouse=True)
def few_rows_met(monkeypatch):
    """Make small rows searched approximately, each meeting so few others that some are missed."""
    monkeypatch.setattr(graph, "CELLS_FROM", 2)
    monkeypatch.setattr(approximate, "FIRST_MET", 60)


def test_most_true_neighbors_are_found_and_the_recall_is_what_is_told():
    rows = np.random.default_rng(0).normal(size=(1500, 10)).astype(np.float32)
    found = approximate_neighbors(rows, n_neighbors=8, cells=cells_of(rows))
    truth = np.argsort(brute_force(rows), axis=1, kind="stable")[:, :8]
    recall = np.mean([np.isin(t, f).mean() for t, f in zip(truth, found.indices, strict=True)])
    assert 0.95 < found.recall <= 1.0
    assert recall == pytest.approx(found.recall, abs=0.02)


@pytest.mark.parametrize("n_passes", [0, 2])
def test_farther_rings_are_met_until_enough_is_found(monkeypatch, n_passes):
    monkeypatch.setattr(approximate, "N_PASSES", n_passes)
    monkeypatch.setattr(approximate, "MOST_MET", 1.0)
    rows = np.random.default_rng(0).normal(size=(1500, 40)).astype(np.float32)
    found = approximate_neighbors(rows, n_neighbors=8, slack=4, cells=cells_of(rows))
    assert found.recall >= approximate.ENOUGH_RECALL
    assert all(np.unique(listed).size == listed.size for listed in found.indices)


def test_rows_that_rings_do_not_serve_are_searched_exactly(monkeypatch):
    monkeypatch.setattr(approximate, "N_PASSES", 0)
    rows = np.random.default_rng(0).normal(size=(1500, 40)).astype(np.float32)
    found = approximate_neighbors(rows, n_neighbors=8, cells=cells_of(rows))
    truth = np.argsort(brute_force(rows), axis=1, kind="stable")[:, :8]
    assert found.recall == 1.0
    np.testing.assert_array_equal(found.indices[:, :8], truth)


def test_a_pass_over_neighbors_of_neighbors_raises_the_recall():
    rows = np.random.default_rng(0).normal(size=(1500, 10)).astype(np.float32)
    cells = cells_of(rows)
    lists = empty_lists(1500, 12)
    approximate._meet_ring(cells, (0.0, 60.0), lists, None)
    truth = np.argsort(brute_force(rows[cells.order]), axis=1, kind="stable")[:, :8]
    before = approximate._recall(lists[1], np.arange(1500), truth)
    approximate._one_pass(cells, *lists, None)
    assert before < approximate._recall(lists[1], np.arange(1500), truth)


@pytest.mark.parametrize("kind", KINDS)
def test_an_approximate_graph_is_connected_and_has_the_least_degree(kind):
    rows = awkward_rows(kind, 300, 6, 0)
    found = measured_neighbor_graphs(rows, min_degrees=(5,), neighbors="approximate")[0]
    assert connected_components(found.graph, directed=False)[0] == 1
    assert np.diff(found.graph.indptr).min() >= 5
    assert (found.graph.indices >= 0).all()


def test_far_groups_are_joined_by_their_nearest_pairs():
    rng = np.random.default_rng(0)
    rows = (1000.0 * np.arange(6)[:, None] + rng.normal(size=(6, 60))).reshape(-1, 1)
    group = np.repeat(np.arange(6), 60)
    is_far = group[:, None] != group
    nearly = spanning_neighbor_graph(rows, min_degree=4, neighbors="approximate").toarray()
    exact = spanning_neighbor_graph(rows, min_degree=4, neighbors="exact").toarray()
    assert (exact & is_far).sum() == 10
    np.testing.assert_array_equal(nearly & is_far, exact & is_far)


def test_any_number_of_threads_gives_the_same_approximate_graph():
    rows = np.random.default_rng(0).normal(size=(1200, 8)).astype(np.float32)
    options = {"min_degree": 6, "neighbors": "approximate"}
    one, two, three = (spanning_neighbor_graph(rows, n_jobs=n, **options) for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.indices, other.indices)


def test_auto_is_exact_unless_the_data_is_large_and_has_no_structure(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32)
    assert measured_neighbor_graphs(rows, min_degrees=(4,))[0].recall == 1.0
    monkeypatch.setattr(neighbors, "MOST_EXACT_WORK", 0.3 * 2000**2 * 20)
    assert measured_neighbor_graphs(rows, min_degrees=(4,))[0].recall < 1.0
    assert measured_neighbor_graphs(rows, min_degrees=(4,), neighbors="exact")[0].recall == 1.0
    assert measured_neighbor_graphs(structured_rows(2000, 20), min_degrees=(4,))[0].recall == 1.0


def test_the_estimator_tells_the_recall_of_its_neighbors():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 12)), rng.normal(size=(900, 3))
    Y[::2] = np.nan
    assert LatentSemanticImputer().fit(X, Y).neighbor_recall_ == 1.0
    fitted = LatentSemanticImputer(neighbors="approximate").fit(X, Y)
    assert 0.9 < fitted.neighbor_recall_ <= 1.0
