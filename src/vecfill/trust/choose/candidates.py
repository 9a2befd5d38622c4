"""The predictors that `auto` compares, in two rounds.

First some preparations of the domain with one graph and every trend; then, for the best of these,
the other graphs and weights. Which preparations are worth it, and which kernel ridge regressions,
is found out by a race (`vecfill.trust.choose.race`). The classic candidates are those before there
were kernels: four preparations, without a race.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space

N_PREPARATIONS = 2
"""Preparations that enter the folds after the race."""

N_KERNELS = 2
"""Kernel ridge regressions that enter the folds after the race."""

MOST_FOR_KERNELS = 20_000
"""Known rows above which kernels only race: their fits would cost more than all the rest, and large
sets have shown no gain."""

CLASSIC_PREPARATIONS = (
    "as_given",
    "standardized",
    "unit_rows",
    "unit_rows_without_first_component",
)

RIDGES = (0.0, 0.1, 0.3)
FIRST_RIDGE = 0.1

RESIDUAL_SHARES = (0.3, 0.6, 1.0)
"""Shares of the propagated residual that are added to a trend."""


def first_round(
    space: Space, preparations: Sequence[str] = CLASSIC_PREPARATIONS
) -> list[list[LatentSemantic]]:
    """Return preparations with one graph each; the predictors of an inner list are kin.

    Examples
    --------
    >>> import numpy as np
    >>> [len(group) for group in first_round(Space(np.eye(30)))]
    [5, 5, 5, 5]
    """
    degree = _degrees(space)[0]
    return [
        _with_trends(space, LatentSemantic(preparation, degree, FIRST_RIDGE), alone=True)
        for preparation in preparations
        if preparation in space.preparations
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


def other_degrees(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return the other graphs under the preparation and with the weights of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].min_degree for group in other_degrees(Space(np.eye(30)), LatentSemantic())]
    [20]
    """
    return [
        _with_trends(space, LatentSemantic(best.preparation, degree, best.ridge), alone=False)
        for degree in _degrees(space)
        if degree != best.min_degree
    ]


def other_ridges(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return other weights on the graph of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].ridge for group in other_ridges(Space(np.eye(30)), LatentSemantic(ridge=0.1))]
    [0.0, 0.3]
    """
    return [
        _with_trends(space, LatentSemantic(best.preparation, best.min_degree, ridge), alone=False)
        for ridge in RIDGES
        if ridge != best.ridge
    ]


def n_in_second_round(space: Space, *, is_full: bool) -> int:
    """Return how many groups the second round has: the whole grid, or one way after the other."""
    n_degrees, n_ridges = len(_degrees(space)), len(RIDGES)
    return n_degrees * n_ridges - 1 if is_full else n_degrees + n_ridges - 2


def _degrees(space: Space) -> tuple[int, ...]:
    return tuple(dict.fromkeys(space.degree(each) for each in space.min_degrees))


def _with_trends(space: Space, plain: LatentSemantic, *, alone: bool) -> list[LatentSemantic]:
    return with_trends(plain, alone=alone) if space.has_vectors else [plain]


def with_trends(plain: LatentSemantic, *, alone: bool) -> list[LatentSemantic]:
    """Return a predictor without and with trends; a trend alone does not depend on the graph.

    Examples
    --------
    >>> [each.residual_share for each in with_trends(LatentSemantic(), alone=True)]
    [None, 0.3, 0.6, 1.0, 0.0]
    """
    shares = (*RESIDUAL_SHARES, 0.0) if alone else RESIDUAL_SHARES
    return [plain, *(replace(plain, residual_share=share) for share in shares)]
