"""The predictors that `auto` compares: who enters the folds, and in which rounds.

First a cheap race: kernel ridge regression has leave-one-out predictions in closed form, so every
preparation and kernel can be judged on a sample of the known rows for less than what hiding rows
once would cost. Then two rounds in the folds: the best preparations with one graph and every trend,
and for the best of these the other graphs and weights. The classic candidates are those before
there were kernels: four preparations, without a race.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product

import numpy as np
from scipy.sparse import issparse

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import parallel_map
from vecfill.model.kernels import BY_DISTANCE, Kernel, is_binary
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, LatentSemantic, LeafKernel, Sparsemax
from vecfill.model.predictors.kernel_ridge import WIDTHS
from vecfill.model.space import Space
from vecfill.trust.choose.recommending import audience_for, parts_of
from vecfill.trust.choose.scores import Judge, total_score
from vecfill.trust.choose.twins import first_of, twins_of

# From decision 27: in 14 folds the best preparation was first or second in the race.
N_PREPARATIONS = 2
"""Preparations that enter the folds after the race."""

# From decision 15.
N_KERNELS = 2
"""Kernel ridge regressions that enter the folds after the race."""

MOST_FOR_KERNELS = 20_000
"""Known rows above which kernels only race: their fits would cost more than all the rest, and large
sets have shown no gain."""

MOST_FOR_TREES = 20_000_000
"""Entries of the known rows above which no trees are tried: they are written out in full."""

# Those of the rival, which is tuned over them too.
SCALES = (1.0, 3.0, 10.0, 30.0)
"""Factors of the cosines of sparsemax that are tried where ranks are what is wanted."""

BY_DIRECTION = ("as_given", "standardized", "unit_rows_without_first_component", "rank_normal")
"""Preparations under which sparsemax is tried: it makes rows of unit length by itself."""

# Those of decision 5, kept so that old comparisons can be run again.
CLASSIC_PREPARATIONS = (
    "as_given",
    "standardized",
    "unit_rows",
    "unit_rows_without_first_component",
)

# A guess: none, little and much of it; others were not tried.
RIDGES = (0.0, 0.1, 0.3)

# The middle one, so that the second round can go either way.
FIRST_RIDGE = 0.1

RESIDUAL_SHARES = (0.3, 0.6, 1.0)
"""Shares of the propagated residual that are added to a trend."""

# From decision 15.
MOST_RACED = 400
"""Known rows in the race."""

# From decision 32.
ALIKE = 0.999
"""Correlation of distances from which on two preparations count as one. Columns of equal spread,
standardized or not, reach 0.9995; on real sets with other columns the largest was 0.993."""

# From decision 27: only the first four look over all widths.
N_FINALISTS = 4
"""Predictors whose width is looked over after all have run with a middle one."""


# The share is a guess. From decision 43: on seven sparse sets, at most 2 % of them stored, `auto`
# chose the same with and without it.
LEAST_STORED = 0.1
"""Share of entries that sparse rows store from which on it is worth trying to fill them."""

FILLING = ("unit_rows_without_first_component",)
"""Preparations that write out every entry of sparse rows."""


def kernel_ridges(space: Space) -> list[KernelRidge]:
    """Return kernel ridge regression under every preparation and kernel that a space admits.

    Examples
    --------
    >>> print(*kernel_ridges(Space(np.ones((2, 2)), is_distances=True)), sep="; ")
    as_given, rbf kernel ridge; as_given, laplacian kernel ridge
    """
    entrants = [
        KernelRidge(preparation, kernel)
        for preparation in space.worth_trying
        if not (preparation in FILLING and _is_sparse(space))
        for kernel in BY_DISTANCE
    ]
    # Of smooth bins a sum is a curve along each number, which no distance over all of them is.
    entrants += [KernelRidge("smooth", "linear")] if "smooth" in space.worth_trying else []
    return [*entrants, KernelRidge(kernel="tanimoto")] if is_binary(space) else entrants


def summands(
    space: Space, order: Sequence[KernelRidge], preparations: Sequence[str]
) -> list[KernelRidge]:
    """Return kernels of every kind under the best preparations, which are averaged to recommend.

    What one kind of kernel gets wrong another gets right, and scores are sums, so their mean is
    better than any (decision 58).

    Examples
    --------
    >>> order = kernel_ridges(Space(np.eye(3)))
    >>> [summand.kernel for summand in summands(Space(np.eye(3)), order, ["as_given"])]
    ['rbf', 'laplacian', 'linear']
    """
    best = {(entrant.preparation, entrant.kernel): entrant for entrant in reversed(order)}
    nearness = [best[place] for name in preparations for kernel in BY_DISTANCE
                if (place := (name, kernel)) in best]  # fmt: skip
    sums = [KernelRidge(name, "linear") for name in preparations] if space.has_vectors else []
    return [*nearness, *sums]


def _is_sparse(space: Space) -> bool:
    """Tell whether most of what filled rows would hold are zeros."""
    rows = space.rows
    return issparse(rows) and rows.nnz < LEAST_STORED * rows.shape[0] * rows.shape[1]


@one_blas_thread()
def raced(
    space: Space, known_rows: KnownRows, entrants: Sequence[KernelRidge], *, goal: str = "balanced"
) -> list[KernelRidge]:
    """Return predictors in the order of their leave-one-out scores, the best first.

    Each has the width with which it ran; the strength is left to be tuned where it is fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.exp(3 * rng.normal(size=(80, 4)))
    >>> given = KnownRows(np.log(rows), np.ones(80, bool))
    >>> raced(Space(rows), given, kernel_ridges(Space(rows)))[0].preparation
    'rank_normal'
    """
    sample = race_sample(known_rows)
    known = sample.known.astype(np.float64)
    parts = parts_of(sample.is_known)
    audience = audience_for(goal, sample.embedding, parts)
    judge = Judge(known, known.mean(axis=0), audience=audience)
    # What entrants of one preparation share is kept apart from that of others: those run beside it.
    samples = {entrant.preparation: replace(sample, _kept={}) for entrant in entrants}

    def left_out(lane: Sequence[KernelRidge]) -> list[np.ndarray]:
        return [entrant.left_out(space, samples[entrant.preparation]) for entrant in lane]

    def ordered(runners: Sequence[KernelRidge]) -> list[KernelRidge]:
        lanes = _lanes(runners)
        steps_by_lane = parallel_map(left_out, lanes, n_jobs=space.n_threads)
        vectors = dict(zip(chain(*lanes), chain(*steps_by_lane), strict=True))
        # An audience has the rows in the order of its parts, and nobody else asks for an order.
        every = (
            np.arange(len(known))
            if audience is None
            else np.concatenate([part.truth for part in parts])
        )
        scores = parallel_map(
            lambda entrant: judge.scored(judge.centre + vectors[entrant][every], every),
            runners,
            n_jobs=space.n_threads,
        )
        # Stable: of equals, the plainer preparation comes first in the list and stays ahead.
        order = np.argsort(-total_score(scores, goal), kind="stable")
        return [runners[place] for place in order]

    heats = ordered([_of_one_width(entrant) for entrant in entrants])
    # Widths are looked over only for those that come in first.
    finalists = [replace(entrant, width=None) for entrant in heats[:N_FINALISTS]]
    finals = ordered(finalists)
    widths = [entrant.tuned(space, samples[entrant.preparation]).width for entrant in finals]
    finishers = [
        replace(entrant, width=width) for entrant, width in zip(finals, widths, strict=True)
    ]
    return [*finishers, *heats[N_FINALISTS:]]


@one_blas_thread()
def are_alike(
    space: Space, known_rows: KnownRows, preparation: str, other_preparation: str
) -> bool:
    """Tell whether rows are as far apart under one preparation as under another, but for the scale.

    Then nothing that is made of distances can tell the two apart. It is so where columns have been
    standardized, or rows been given unit length, before they were handed over.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(80, 4))
    >>> rows, given = rows / rows.std(axis=0), KnownRows(rows, np.ones(80, bool))
    >>> spaces = Space(9 * rows), Space(rows * [1, 1, 2, 3])
    >>> [are_alike(space, given, "as_given", "standardized") for space in spaces]
    [True, False]
    """
    sample = np.flatnonzero(race_sample(known_rows).is_known)
    pairs = np.triu_indices(sample.size, 1)
    distances = [
        np.sqrt(Kernel(space, name, "rbf").squared_distances(sample, sample)[pairs])
        for name in (preparation, other_preparation)
    ]
    spreads = [float(lengths.std()) for lengths in distances]
    # Rows that are all equally far apart have no correlation; two such preparations are alike.
    if min(spreads) == 0.0:
        return spreads[0] == spreads[1]
    return bool(np.corrcoef(np.array(distances))[0, 1] > ALIKE)


def _lanes(entrants: Sequence[KernelRidge]) -> list[list[KernelRidge]]:
    """Return entrants that share much as lists, those of prepared ranks first: they take longest.

    Examples
    --------
    >>> some = [KernelRidge(), KernelRidge("rank_normal"), KernelRidge("rank_normal_unit_rows")]
    >>> [len(lane) for lane in _lanes(some)]
    [2, 1]
    """
    # Side by side, two entrants that share prepared ranks would both compute them.
    lanes: dict[str, list[KernelRidge]] = {"rank_normal": []}
    for entrant in entrants:
        lane = entrant.preparation.removesuffix("_unit_rows")
        lanes.setdefault(lane, []).append(entrant)
    return [lane for lane in lanes.values() if lane]


def _of_one_width(entrant: KernelRidge) -> KernelRidge:
    """Return the predictor with the middle width, if its kernel has one."""
    return replace(entrant, width=WIDTHS[1]) if entrant.kernel in BY_DISTANCE else entrant


def race_sample(known_rows: KnownRows) -> KnownRows:
    """Return the known rows, or so many of them that decompositions take hundredths of a second."""
    is_known = known_rows.is_known
    twins = twins_of(known_rows.embedding, is_known)
    # One of several twins: left out alone, each would be told by the others.
    known = np.flatnonzero(is_known if twins is None else is_known & first_of(twins))
    is_raced = np.zeros(is_known.size, np.bool_)
    # Not the seed of the folds: another seed must hide other rows, not start another race.
    is_raced[np.random.default_rng(0).permutation(known)[:MOST_RACED]] = True
    return KnownRows(known_rows.embedding, is_raced)


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


def graphless(
    space: Space, n_known: int, preparation: str, goal: str
) -> list[list[LeafKernel] | list[Sparsemax]]:
    """Return what is tried beside kernels and graphs for a goal."""
    ranked = for_ranks(space, n_known) if goal == "rank" else []
    return [*trees(space, n_known, preparation), *ranked]


def trees(space: Space, n_known: int, preparation: str) -> list[list[LeafKernel]]:
    """Return a kernel of trees, where it costs a part of what the rest does.

    Examples
    --------
    >>> [len(trees(Space(np.eye(30), is_distances=far), 20, "as_given")) for far in (False, True)]
    [1, 0]
    """
    is_small = n_known <= MOST_FOR_KERNELS and n_known * space.size.n_features <= MOST_FOR_TREES
    fits = space.has_vectors and is_small and not _is_sparse(space)
    return [[LeafKernel(preparation)]] if fits else []


def for_ranks(space: Space, n_known: int) -> list[list[Sparsemax]]:
    """Return what is tried as well where ranks are what is wanted.

    Examples
    --------
    >>> [len(group) for group in for_ranks(Space(np.eye(30)), 20)]
    [4, 4, 4, 4]
    """
    if not space.has_vectors or n_known > MOST_FOR_KERNELS or _is_sparse(space):
        return []
    return [[Sparsemax(name, scale=scale) for scale in SCALES] for name in BY_DIRECTION]


def second_round(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return the other graphs and weights under the preparation of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].min_degree for group in second_round(Space(np.eye(30)), LatentSemantic())]
    [8, 8, 20, 20, 20]
    """
    settings = list(product(_degrees(space), RIDGES))
    settings.remove((settings[0][0], FIRST_RIDGE))
    return _groups(space, best, settings)


def other_degrees(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return the other graphs under the preparation and with the weights of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].min_degree for group in other_degrees(Space(np.eye(30)), LatentSemantic())]
    [20]
    """
    degrees = [degree for degree in _degrees(space) if degree != best.min_degree]
    return _groups(space, best, [(degree, best.ridge) for degree in degrees])


def other_ridges(space: Space, best: LatentSemantic) -> list[list[LatentSemantic]]:
    """Return other weights on the graph of the best so far.

    Examples
    --------
    >>> import numpy as np
    >>> [group[0].ridge for group in other_ridges(Space(np.eye(30)), LatentSemantic(ridge=0.1))]
    [0.0, 0.3]
    """
    ridges = [ridge for ridge in RIDGES if ridge != best.ridge]
    return _groups(space, best, [(best.min_degree, ridge) for ridge in ridges])


def n_in_second_round(space: Space, *, is_full: bool) -> int:
    """Return how many groups the second round has: the whole grid, or one way after the other."""
    n_degrees, n_ridges = len(_degrees(space)), len(RIDGES)
    return n_degrees * n_ridges - 1 if is_full else n_degrees + n_ridges - 2


def _groups(
    space: Space, best: LatentSemantic, settings: Sequence[tuple[int, float]]
) -> list[list[LatentSemantic]]:
    """Return a group for each degree and ridge, under the preparation of the best so far."""
    # A trend alone depends on neither, and was tried in the first round.
    return [
        _with_trends(space, LatentSemantic(best.preparation, degree, ridge), alone=False)
        for degree, ridge in settings
    ]


def _degrees(space: Space) -> tuple[int, ...]:
    return tuple(dict.fromkeys(space.degree(min_degree) for min_degree in space.min_degrees))


def _with_trends(space: Space, plain: LatentSemantic, *, alone: bool) -> list[LatentSemantic]:
    # A trend is a sum over columns, and a matrix of distances has none.
    return with_trends(plain, alone=alone) if space.has_vectors else [plain]


def with_trends(plain: LatentSemantic, *, alone: bool) -> list[LatentSemantic]:
    """Return a predictor without and with trends; a trend alone does not depend on the graph.

    Examples
    --------
    >>> [predictor.residual_share for predictor in with_trends(LatentSemantic(), alone=True)]
    [None, 0.3, 0.6, 1.0, 0.0]
    """
    shares = (*RESIDUAL_SHARES, 0.0) if alone else RESIDUAL_SHARES
    return [plain, *(replace(plain, residual_share=share) for share in shares)]
