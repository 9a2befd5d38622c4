"""Extremely randomised trees: which known rows end in one leaf with a row.

Every node of a tree draws a few cuts at random, each of one column between two of its rows, and
keeps the one that tells vectors apart best (after Geurts, Ernst and Wehenkel, 2006). Vectors are
seen along a few random directions, others for each tree, so a cut costs no more for long vectors
than for short ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from vecfill.machine.blas import one_blas_thread
from vecfill.machine.compiled import compiled, compiled_part
from vecfill.machine.lengths import unit
from vecfill.method.engine import parallel_map
from vecfill.method.scaling import well_scaled

N_DIRECTIONS = 8
"""Random directions along which a tree sees vectors: with more, trees are more alike."""

FEWEST_DIMS = 4
"""Fewer dimensions have too few directions: vectors count by their length too."""

MOST_DRAWN = 8
"""Pairs of rows drawn for each cut that is to be tried: those that are equal give none."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees one after the other, as arrays over their nodes, and where the known rows end.

    Examples
    --------
    >>> rows = np.repeat([[0.0], [1.0]], 4, axis=0)
    >>> forest = Forest.grown(rows, rows, n_trees=5, n_tried=1, min_leaf=3, seed=0)
    >>> forest.shares(np.array([[-7.0], [1.0]])).toarray().round(2)
    array([[0.25, 0.25, 0.25, 0.25, 0.  , 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  , 0.25, 0.25, 0.25, 0.25]])
    """

    columns: np.ndarray
    """(n_nodes,) the column by which a node divides rows; -1 in leaves."""
    thresholds: np.ndarray
    """(n_nodes,) rows whose value is larger go right."""
    left: np.ndarray
    """(n_nodes,) number of the left child; the right one follows it."""
    roots: np.ndarray
    """(n_trees,) number of the first node of each tree."""
    leaves: np.ndarray
    """(n_known, n_trees) the leaf of each known row in each tree."""

    @classmethod
    @one_blas_thread()
    def grown(
        cls,
        rows: np.ndarray,
        vectors: np.ndarray,
        *,
        n_trees: int,
        n_tried: int,
        min_leaf: int,
        seed: int,
        n_threads: int | None = 1,
    ) -> Forest:
        """Return trees grown on known rows and their vectors, the same for any number of threads.

        Each node tries `n_tried` cuts, and no leaf has fewer than `min_leaf` known rows.
        """
        steps = well_scaled(vectors.astype(np.float64))
        steps = steps - steps.mean(axis=0)
        n_dims = steps.shape[1]
        # By direction, as vectors are compared: one long vector must not decide about every cut.
        targets = unit(steps) if n_dims >= FEWEST_DIMS else steps
        columns = np.ascontiguousarray(rows.T, np.float64)

        def tree(number: int) -> tuple[np.ndarray, ...]:
            rng = np.random.default_rng([seed, number])
            projections = targets
            if n_dims > N_DIRECTIONS:
                projections = targets @ rng.normal(size=(n_dims, N_DIRECTIONS))
            projections = np.ascontiguousarray(projections)
            return _grown(columns, projections, int(rng.integers(2**62)), n_tried, min_leaf)

        trees = parallel_map(tree, range(n_trees), n_jobs=n_threads)
        columns_of, thresholds, children, leaves = zip(*trees, strict=True)
        roots = np.cumsum([0, *map(len, children)])
        return cls(
            np.concatenate(columns_of),
            np.concatenate(thresholds),
            np.concatenate([child + root for child, root in zip(children, roots, strict=False)]),
            roots[:-1],
            np.column_stack([leaf + root for leaf, root in zip(leaves, roots, strict=False)]),
        )

    def shares(self, rows: np.ndarray) -> csr_array:
        """Return the share of every known row (across) in each row (down); they sum to one.

        In each tree, the known rows of the row's leaf share equally.
        """
        n_trees, n_nodes = self.roots.size, self.left.size
        reached = _reached(
            np.ascontiguousarray(rows, np.float64),
            self.columns,
            self.thresholds,
            self.left,
            self.roots,
        )
        sizes = np.bincount(self.leaves.ravel(), minlength=n_nodes)
        alike = _leaf_matrix(reached, 1.0 / (n_trees * sizes[reached]), n_nodes)
        known = _leaf_matrix(self.leaves, np.ones(self.leaves.shape), n_nodes)
        return csr_array(alike @ csr_array(known.T))


def _leaf_matrix(leaves: np.ndarray, values: np.ndarray, n_nodes: int) -> csr_array:
    """Return a row for each row, with a value in the column of each of its leaves."""
    starts = np.arange(len(leaves) + 1) * leaves.shape[1]
    return csr_array((values.ravel(), leaves.ravel(), starts), shape=(len(leaves), n_nodes))


@compiled_part
def _next(state: np.ndarray) -> np.uint64:
    """Return the next random number (splitmix64), whose state is one number."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled_part
def _gain(
    column: np.ndarray,
    threshold: float,
    members: np.ndarray,
    targets: np.ndarray,
    min_leaf: int,
    total: np.ndarray,
    left: np.ndarray,
) -> float:
    """Return how much of the vectors' spread a cut explains; -1 if it leaves too few rows."""
    n_left = 0
    for direction in range(left.size):
        left[direction] = 0.0
    for place in range(members.size):
        # A product and no branch, since a branch would be guessed wrong every other time.
        is_left = np.int64(column[members[place]] <= threshold)
        n_left += is_left
        for direction in range(left.size):
            left[direction] += is_left * targets[place, direction]
    n_right = members.size - n_left
    if n_left < min_leaf or n_right < min_leaf:
        return -1.0
    of_left = of_right = 0.0
    for direction in range(left.size):
        right = total[direction] - left[direction]
        of_left += left[direction] * left[direction]
        of_right += right * right
    return of_left / n_left + of_right / n_right


@compiled_part
def _divided(column: np.ndarray, threshold: float, members: np.ndarray, targets: np.ndarray) -> int:
    """Put rows up to the threshold first, with their targets, and return how many they are."""
    first, last = 0, members.size - 1
    while first <= last:
        if column[members[first]] <= threshold:
            first += 1
        else:
            members[first], members[last] = members[last], members[first]
            for direction in range(targets.shape[1]):
                target = targets[first, direction]
                targets[first, direction] = targets[last, direction]
                targets[last, direction] = target
            last -= 1
    return first


@compiled
def _grown(
    columns: np.ndarray, targets: np.ndarray, seed: int, n_tried: int, min_leaf: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns, thresholds and left children of a tree, and the leaf of each row."""
    n_columns, n_rows = columns.shape
    n_most = 2 * (n_rows // min_leaf) + 1
    column_of, left = np.full(n_most, -1, np.int64), np.zeros(n_most, np.int64)
    thresholds, bounds = np.zeros(n_most), np.zeros((n_most, 2), np.int64)
    state = np.array([seed], np.uint64)
    # Both in the order of the leaves, so that the rows of a node lie side by side.
    order, ordered = np.arange(n_rows), targets.copy()
    leaves = np.empty(n_rows, np.int64)
    total, left_sum = np.zeros(targets.shape[1]), np.zeros(targets.shape[1])
    bounds[0, 1], n_nodes, node = n_rows, 1, 0
    while node < n_nodes:
        first, last = bounds[node, 0], bounds[node, 1]
        members, values = order[first:last], ordered[first:last]
        best_gain, n_varied = -1.0, 0
        if members.size >= 2 * min_leaf:
            for direction in range(values.shape[1]):
                total[direction] = 0.0
                for place in range(members.size):
                    total[direction] += values[place, direction]
            for _ in range(MOST_DRAWN * n_tried):
                number = np.int64(_next(state) % np.uint64(n_columns))
                column = columns[number]
                # Between two of its rows: columns in which most are equal are mostly passed over,
                # and a value far out does not draw all cuts towards it.
                low = column[members[_next(state) % np.uint64(members.size)]]
                high = column[members[_next(state) % np.uint64(members.size)]]
                if low == high:
                    continue
                low, high = min(low, high), max(low, high)
                part = np.float64(_next(state) >> np.uint64(11)) / 9007199254740992.0
                threshold = low * (1.0 - part) + high * part
                # Rounded up to the larger value, it need not divide anything.
                threshold = low if threshold >= high else threshold
                gain = _gain(column, threshold, members, values, min_leaf, total, left_sum)
                if gain > best_gain:
                    best_gain, column_of[node], thresholds[node] = gain, number, threshold
                n_varied += 1
                if n_varied == n_tried:
                    break
        if best_gain < 0.0:
            for row in members:
                leaves[row] = node
        else:
            middle = first + _divided(columns[column_of[node]], thresholds[node], members, values)
            left[node] = n_nodes
            bounds[n_nodes, 0], bounds[n_nodes, 1] = first, middle
            bounds[n_nodes + 1, 0], bounds[n_nodes + 1, 1] = middle, last
            n_nodes += 2
        node += 1
    return column_of[:n_nodes], thresholds[:n_nodes], left[:n_nodes], leaves


@compiled
def _reached(
    rows: np.ndarray,
    column_of: np.ndarray,
    thresholds: np.ndarray,
    left: np.ndarray,
    roots: np.ndarray,
) -> np.ndarray:
    """Return the leaf that each row (down) reaches in each tree (across)."""
    leaves = np.empty((len(rows), roots.size), np.int64)
    for place in range(len(rows)):
        for tree in range(roots.size):
            node = roots[tree]
            while column_of[node] >= 0:
                is_right = rows[place, column_of[node]] > thresholds[node]
                node = left[node] + np.int64(is_right)
            leaves[place, tree] = node
    return leaves
