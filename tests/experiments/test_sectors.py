"""Votes of neighbours: the fast way against scikit-learn's."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier


@pytest.mark.parametrize("votes", ["uniform", "distance"])
def test_votes_are_those_of_scikit_learn(votes):
    sectors = importlib.import_module("sectors")
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(60, 5)), rng.integers(4, size=60)
    expected = [
        cross_val_score(
            KNeighborsClassifier(k, weights=votes), vectors, labels, cv=LeaveOneOut()
        ).mean()
        for k in (1, 2, 5, 9)
    ]
    found = sectors.sector_accuracy(vectors, labels, (1, 2, 5, 9), votes=votes)
    np.testing.assert_allclose(found, expected)


def test_a_copy_outvotes_all_other_neighbors():
    sectors = importlib.import_module("sectors")
    vectors = np.array([[0.0], [0.0], [1e-9], [1e-9], [1e-9]])
    hits = sectors.sector_hits(vectors, np.array([1, 1, 0, 0, 0]), (4,), votes="distance")
    assert hits[0, 0]


def test_ties_may_go_to_the_sector_of_the_nearest_voter():
    sectors = importlib.import_module("sectors")
    vectors = np.array([[0.0], [1.0], [3.0], [3.5], [5.0]])
    labels = np.array([1, 1, 0, 0, 0])
    tied = sectors.sector_hits(vectors, labels, (2,))[0, 0]
    nearest = sectors.sector_hits(vectors, labels, (2, 3), votes="nearest")[0]
    assert not tied
    assert nearest.tolist() == [True, False]
