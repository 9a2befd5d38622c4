"""The estimators, handed to scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vecfill import AutoImputer, LatentSemanticImputer


@parametrize_with_checks(
    [
        LatentSemanticImputer(min_degree=3),
        LatentSemanticImputer(min_degree=3, metric="cosine", ridge=0.1),
        LatentSemanticImputer(min_degree=3, metric="precomputed"),
        AutoImputer("paper"),
    ]
)
def test_an_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([AutoImputer(force=True)])
def test_an_estimator_that_chooses_keeps_it_too(estimator, check):
    # The data of these checks is noise, which is refused unless forced.
    check(estimator)
