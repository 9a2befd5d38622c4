"""The estimator, handed to scikit-learn's own checks."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from vecfill import LatentSemanticImputer


@parametrize_with_checks(
    [
        LatentSemanticImputer(min_degree=3),
        LatentSemanticImputer(min_degree=3, metric="cosine", ridge=0.1),
        LatentSemanticImputer(min_degree=3, metric="precomputed"),
    ]
)
def test_the_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)
