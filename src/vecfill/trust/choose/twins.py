"""Known rows that are one thing under two names, and must be hidden together.

Two names may match one word, and a file may hold a word twice. If one of the two is hidden and the
other one seen, the truth is there to be copied, and noise looks like signal.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.method.scaling import well_scaled

# A guess: what is left of a difference when vectors are written with four digits.
NEAR = 1e-4
"""Distance below which two vectors are one, relative to the spread of the known ones."""

# A guess: in four dimensions, of 10,000 rows hardly a pair in a million sets is so near by chance.
FEWEST_DIMS = 4
"""Dimensions below which vectors that are not the same may be near by chance."""

# A guess. Where fewer are distinct, a vector stands for a class, and equal ones are no accident.
MOST_DISTINCT = 0.5
"""Share of the known vectors that must be distinct for equal ones to be twins."""


def twins_of(embedding: EmbeddingVectors, is_known: KnownMask) -> np.ndarray | None:
    """Return for each row the number of the first known row with its vector; ``None``: no twins.

    Where most vectors are shared they stand for classes, and unknown entities have one of them too:
    then none are twins.

    Examples
    --------
    >>> vectors = np.array([[1.0], [2.0], [np.nan], [1.0]])
    >>> twins_of(vectors, np.array([True, True, False, True]))
    array([0, 1, 2, 0])
    >>> twins_of(vectors, np.array([True, True, False, False])) is None
    True
    """
    known_rows = np.flatnonzero(is_known)
    known = embedding[known_rows]
    place_of: dict[int, int] = {}
    # Adding zero makes one of the two zeros of floating point.
    first = np.array(
        [
            place_of.setdefault(hash((row + 0.0).tobytes()), row_at)
            for row_at, row in enumerate(known)
        ]
    )
    distinct = np.unique(first)
    first = distinct[_near(known[distinct])[np.searchsorted(distinct, first)]]
    n_distinct = np.unique(first).size
    if n_distinct == known_rows.size or n_distinct < MOST_DISTINCT * known_rows.size:
        return None
    twins = np.arange(is_known.size)
    twins[known_rows] = known_rows[first]
    return twins


def _near(known: np.ndarray) -> np.ndarray:
    """Return for each of some distinct vectors the place of the first that is as good as equal."""
    places = np.arange(len(known))
    n_dims = known.shape[1]
    if len(known) < 2 or n_dims < FEWEST_DIMS:
        return places
    pairs = near_pairs(known)
    if not len(pairs):
        return places
    edges = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(known),) * 2)
    _, label = connected_components(edges, directed=False)
    return np.unique(label, return_index=True)[1][label]


def near_pairs(known: np.ndarray, other_rows: np.ndarray | None = None) -> np.ndarray:
    """Return pairs of places of known vectors, or of a known and another one, that are the same.

    Examples
    --------
    >>> known = np.random.default_rng(0).normal(size=(5, 4))
    >>> near_pairs(known, known[[3, 1]] + 1e-7).tolist()
    [[1, 1], [3, 0]]
    """
    n_known, n_dims = known.shape
    # Squares of 64-bit numbers over- or underflow long before the numbers do.
    all_vectors = known if other_rows is None else np.vstack([known, other_rows])
    vectors = well_scaled(all_vectors.astype(np.float64))
    vectors = vectors - vectors[:n_known].mean(axis=0)
    limit = NEAR * float(np.sqrt((vectors[:n_known] ** 2).sum(axis=1).mean()))
    # Projections are no farther apart than vectors are. In three dimensions few pairs pass, and
    # only those are compared whole.
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(n_dims, 3)))[0]
    tree = cKDTree(vectors[:n_known] @ axes)
    if other_rows is None:
        pairs = tree.query_pairs(limit, output_type="ndarray")
    else:
        other_tree = cKDTree(vectors[n_known:] @ axes)
        distances = tree.sparse_distance_matrix(other_tree, limit, output_type="ndarray")
        pairs = np.column_stack([distances["i"], distances["j"] + n_known])
    gaps = vectors[pairs[:, 0]] - vectors[pairs[:, 1]]
    pairs = pairs[(gaps**2).sum(axis=1) <= limit**2]
    if other_rows is None:
        return pairs
    pairs[:, 1] -= n_known
    return pairs[np.lexsort(pairs.T[::-1])]


def first_of(twins: np.ndarray) -> KnownMask:
    """Tell which rows are the first of those that are twins.

    Examples
    --------
    >>> first_of(np.array([0, 1, 0]))
    array([ True,  True, False])
    """
    return twins == np.arange(twins.size)
