"""The predictors that `auto` compares, in two rounds.

First each preparation of the domain with one graph and every trend; then, for the best of these,
the other graphs and weights.
"""

from __future__ import annotations

from dataclasses import replace

from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space

RIDGES = (0.0, 0.1, 0.3)
FIRST_RIDGE = 0.1

RESIDUAL_SHARES = (0.3, 0.6, 1.0)
"""Shares of the propagated residual that are added to a trend."""


def first_round(space: Space) -> list[list[LatentSemantic]]:
    """Return every preparation with one graph; the predictors of an inner list are kin.

    Examples
    --------
    >>> import numpy as np
    >>> [len(group) for group in first_round(Space(np.eye(30)))]
    [5, 5, 5, 5]
    """
    degree = _degrees(space)[0]
    return [
        _with_trends(space, LatentSemantic(preparation, degree, FIRST_RIDGE), alone=True)
        for preparation in space.preparations
    ]


def second_round(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return the other graphs and weights under the preparation of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].min_degree for group in second_round(Space(np.eye(30)), LatentSemantic())]
    [8, 8, 20, 20, 20]
    """
    degrees = _degrees(space)
    return [
        _with_trends(space, LatentSemantic(best.preparation, degree, ridge), alone=False)
        for degree in degrees
        for ridge in RIDGES
        if (degree, ridge) != (degrees[0], FIRST_RIDGE)
    ]


def n_groups(space: Space) -> int:
    """Return how many groups both rounds have."""
    return len(space.preparations) + len(_degrees(space)) * len(RIDGES) - 1


def _degrees(space: Space) -> tuple[int, ...]:
    return tuple(dict.fromkeys(space.degree(each) for each in space.min_degrees))


def _with_trends(space: Space, plain: LatentSemantic, *, alone: bool) -> list[LatentSemantic]:
    """Return a predictor without and with trends; a trend alone does not depend on the graph."""
    if not space.has_vectors:
        return [plain]
    shares = (*RESIDUAL_SHARES, 0.0) if alone else RESIDUAL_SHARES
    return [plain, *(replace(plain, residual_share=share) for share in shares)]
