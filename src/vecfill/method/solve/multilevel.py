"""A preconditioner for ``(I - W) Y = B`` when few rows are known: sweeps on ever coarser copies.

A Gauss-Seidel sweep evens out neighbours at once, but takes as many sweeps as there are steps to
carry news from one end of the graph to the other. So rows are joined with their neighbours in
groups, groups again in groups, and what sweeps leave over is solved among groups, where the other
end is a few steps away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from vecfill.machine.compiled import compiled
from vecfill.method.solve.factorisation import Factor
from vecfill.method.solve.krylov import less_weighted
from vecfill.method.solve.lanes import load, plus, scaled, store

# A guess.
COARSEST = 400
"""Rows at which a factorisation is quicker than another level."""

# A guess: such a level would cost as much as the one above it.
MOST_LEFT = 0.8
"""A level that leaves a larger share of the rows is not worth its sweeps."""

# A guess; twice joined, groups have about seven rows.
MOST_IN_GROUP = 4
"""Small groups lose little; they make one level more."""

# Over-correction is usual where corrections are constant on groups; that it is 1.4 is a guess.
OVERSHOOT = 1.4
"""A correction that is constant on groups is too short; this evens out its length."""


@compiled
def _groups(indptr, indices, weights):
    """Join each row that is still alone with its strongest neighbour; return groups and count."""
    n_rows = indptr.size - 1
    group = np.full(n_rows, -1, np.int32)
    size = np.zeros(n_rows, np.int32)
    n_groups = 0
    for row in range(n_rows):
        if group[row] >= 0:
            continue
        strongest, partner = 0.0, -1
        for place in range(indptr[row], indptr[row + 1]):
            neighbor = indices[place]
            has_room = group[neighbor] < 0 or size[group[neighbor]] < MOST_IN_GROUP
            if neighbor != row and has_room and weights[place] > strongest:
                strongest, partner = weights[place], neighbor
        # A partner that has a group takes the row in, if there is room; so no row stays alone.
        if partner >= 0 and group[partner] >= 0:
            group[row] = group[partner]
        else:
            group[row] = n_groups
            if partner >= 0:
                group[partner] = n_groups
                size[n_groups] += 1
            n_groups += 1
        size[group[row]] += 1
    return group, n_groups


@compiled
def _sweep_forward(indptr, indices, weights, diagonal, right, out):
    """Write one Gauss-Seidel sweep from zero, first row to last."""
    for row in range(len(right)):
        mixture = load(right, row)
        for place in range(indptr[row], indptr[row + 1]):
            # From zero, rows that come later hold nothing yet.
            if indices[place] < row:
                mixture = plus(mixture, scaled(load(out, indices[place]), weights[place]))
        store(out, row, scaled(mixture, 1.0 / diagonal[row]))


@compiled
def _sweep_backward(indptr, indices, weights, diagonal, right, out):
    """Improve `out` by one Gauss-Seidel sweep, last row to first."""
    for row in range(len(right) - 1, -1, -1):
        mixture = load(right, row)
        for place in range(indptr[row], indptr[row + 1]):
            mixture = plus(mixture, scaled(load(out, indices[place]), weights[place]))
        store(out, row, scaled(mixture, 1.0 / diagonal[row]))


@compiled
def _restricted_rest(indptr, indices, weights, diagonal, right, vectors, group, out):
    """Write what is left over, ``right - (D - W) vectors``, summed over groups."""
    out[:] = 0.0
    for row in range(len(right)):
        residue = plus(load(right, row), scaled(load(vectors, row), -diagonal[row]))
        for place in range(indptr[row], indptr[row + 1]):
            residue = plus(residue, scaled(load(vectors, indices[place]), weights[place]))
        store(out, group[row], plus(load(out, group[row]), residue))


@compiled
def _add_correction(group, coarse, vectors):
    for row in range(group.size):
        step = scaled(load(coarse, group[row]), OVERSHOOT)
        store(vectors, row, plus(load(vectors, row), step))


@dataclass(frozen=True)
class Level:
    """One copy of the system, ``D - W``, and how its rows are grouped for the next."""

    weights: csr_array
    diagonal: np.ndarray
    group: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that compiled sweeps take."""
        return self.weights.indptr, self.weights.indices, self.weights.data, self.diagonal


def _coarser(
    weights: csr_array, diagonal: np.ndarray, group: np.ndarray, n_groups: int
) -> tuple[csr_array, np.ndarray]:
    """Return weights and diagonal of the same system among groups."""
    entry = weights.tocoo()
    ends = (group[entry.row], group[entry.col])
    coarse = csr_array((entry.data, ends), (n_groups, n_groups))
    coarse.sum_duplicates()
    # Weights within a group act on the group itself, so they move to the diagonal.
    within = coarse.diagonal()
    coarse.setdiag(0.0)
    coarse.eliminate_zeros()
    return coarse, np.bincount(group, weights=diagonal, minlength=n_groups) - within


def _groups_of_groups(weights: csr_array) -> tuple[np.ndarray, int]:
    """Return groups of about seven rows: groups are joined with groups before they are a level.

    Among groups the system is denser, so that many small levels would cost more than they save.
    """
    # Strength is mutual: a row may lean on one that does not lean on it.
    mutual = csr_array(weights + weights.T)
    group, n_groups = _groups(mutual.indptr, mutual.indices, mutual.data)
    coarse, _ = _coarser(mutual, np.zeros(mutual.shape[0]), group, n_groups)
    again, n_groups = _groups(coarse.indptr, coarse.indices, coarse.data)
    return again[group], n_groups


class Multilevel:
    """Approximately solves ``(I - W) Y = B`` by one pass down all levels and up again."""

    dtype = np.dtype(np.float64)

    def __init__(self, weights: csr_array) -> None:
        self.levels: list[Level] = []
        self._weights = (weights.indptr, weights.indices, weights.data)
        diagonal = np.ones(weights.shape[0])
        while weights.shape[0] > COARSEST:
            group, n_groups = _groups_of_groups(weights)
            if n_groups > MOST_LEFT * weights.shape[0]:
                break
            self.levels.append(Level(weights, diagonal, group))
            weights, diagonal = _coarser(weights, diagonal, group, n_groups)
        self._coarsest = Factor(diags_array(diagonal) - weights, ordering="COLAMD")

    def smooth(self, right: np.ndarray, out: np.ndarray, depth: int = 0) -> None:
        """Write about the solution for a block of columns."""
        if depth == len(self.levels):
            out[:] = self._coarsest.solve(right)
            return
        level = self.levels[depth]
        # Forward on the way down and backward on the way up: news travels both ways.
        _sweep_forward(*level.arrays, right, out)
        coarse = np.empty((int(level.group.max()) + 1, right.shape[1]))
        _restricted_rest(*level.arrays, right, out, level.group, coarse)
        correction = np.empty_like(coarse)
        self.smooth(coarse, correction, depth + 1)
        _add_correction(level.group, correction, out)
        _sweep_backward(*level.arrays, right, out)

    def apply(
        self,
        smoothed: np.ndarray,
        right: np.ndarray,  # noqa: ARG002
        partner: np.ndarray,
        out: np.ndarray,
        dots: np.ndarray,
    ) -> None:
        """Write ``(I - W) smoothed`` and its products, as `Preconditioner` says."""
        less_weighted(*self._weights, smoothed, smoothed, partner, out, dots)
