"""Which predictors are worth hiding rows for: a cheap race before the folds.

Kernel ridge regression has leave-one-out predictions in closed form. So every preparation and
kernel can be judged on a sample of the known rows for less than what hiding rows once would cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import parallel_map
from vecfill.model.kernels import BY_DISTANCE, Kernel, is_binary
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge
from vecfill.model.predictors.kernel_ridge import WIDTHS
from vecfill.model.space import Space
from vecfill.trust.choose.scores import Judge, total_score

MOST_RACED = 400
"""Known rows in the race."""

ALIKE = 0.999
"""Correlation of distances from which on two preparations count as one. Columns of equal spread,
standardized or not, reach 0.9995; on real sets with other columns the largest was 0.993."""

N_FINALISTS = 4
"""Predictors whose width is looked over after all have run with a middle one."""


def kernel_ridges(space: Space) -> list[KernelRidge]:
    """Return kernel ridge regression under every preparation and kernel that a space admits.

    Examples
    --------
    >>> print(*kernel_ridges(Space(np.ones((2, 2)), is_distances=True)), sep="; ")
    as_given, rbf kernel ridge; as_given, laplacian kernel ridge
    """
    found = [
        KernelRidge(preparation, kernel)
        for preparation in space.preparations
        for kernel in BY_DISTANCE
    ]
    return [*found, KernelRidge(kernel="tanimoto")] if is_binary(space) else found


@one_blas_thread()
def raced(
    space: Space, given: KnownRows, entrants: Sequence[KernelRidge], *, goal: str = "balanced"
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
    sample = _sampled(given)
    known = sample.known.astype(np.float64)
    judge = Judge(known, known.mean(axis=0))
    # What entrants of one preparation share is kept apart from that of others: those run beside it.
    samples = {each.preparation: replace(sample, _kept={}) for each in entrants}

    def left_out(some: Sequence[KernelRidge]) -> list[np.ndarray]:
        return [each.left_out(space, samples[each.preparation]) for each in some]

    def ordered(some: Sequence[KernelRidge]) -> list[KernelRidge]:
        lanes = _lanes(some)
        found = parallel_map(left_out, lanes, n_jobs=space.n_threads)
        vectors = dict(zip(chain(*lanes), chain(*found), strict=True))
        every = np.arange(len(known))
        scores = parallel_map(
            lambda each: judge.scored(judge.centre + vectors[each], every),
            some,
            n_jobs=space.n_threads,
        )
        order = np.argsort(-total_score(scores, goal), kind="stable")
        return [some[place] for place in order]

    heats = ordered([_of_one_width(each) for each in entrants])
    # Widths are looked over only for those that come in first.
    finalists = [replace(each, width=None) for each in heats[:N_FINALISTS]]
    finals = ordered(finalists)
    widths = [each.tuned(space, samples[each.preparation]).width for each in finals]
    found = [replace(each, width=width) for each, width in zip(finals, widths, strict=True)]
    return [*found, *heats[N_FINALISTS:]]


@one_blas_thread()
def are_alike(space: Space, given: KnownRows, one: str, other: str) -> bool:
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
    sample = np.flatnonzero(_sampled(given).is_known)
    pairs = np.triu_indices(sample.size, 1)
    apart = [
        np.sqrt(Kernel(space, each, "rbf").squared_distances(sample, sample)[pairs])
        for each in (one, other)
    ]
    spreads = [float(each.std()) for each in apart]
    if min(spreads) == 0.0:
        return spreads[0] == spreads[1]
    return bool(np.corrcoef(np.array(apart))[0, 1] > ALIKE)


def _lanes(entrants: Sequence[KernelRidge]) -> list[list[KernelRidge]]:
    """Return entrants that share much as lists, those of prepared ranks first: they take longest.

    Examples
    --------
    >>> some = [KernelRidge(), KernelRidge("rank_normal"), KernelRidge("rank_normal_unit_rows")]
    >>> [len(lane) for lane in _lanes(some)]
    [2, 1]
    """
    lanes: dict[str, list[KernelRidge]] = {"rank_normal": []}
    for each in entrants:
        lane = each.preparation.removesuffix("_unit_rows")
        lanes.setdefault(lane, []).append(each)
    return [lane for lane in lanes.values() if lane]


def _of_one_width(each: KernelRidge) -> KernelRidge:
    """Return the predictor with the middle width, if its kernel has one."""
    return replace(each, width=WIDTHS[1]) if each.kernel in BY_DISTANCE else each


def _sampled(given: KnownRows) -> KnownRows:
    """Return the known rows, or so many of them that decompositions take hundredths of a second."""
    known = np.flatnonzero(given.is_known)
    is_raced = np.zeros(given.is_known.size, np.bool_)
    is_raced[np.random.default_rng(0).permutation(known)[:MOST_RACED]] = True
    return KnownRows(given.embedding, is_raced)
