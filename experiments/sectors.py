"""Does a vector's neighbourhood tell the sector? Leave-one-out k-nearest-neighbour votes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist


def sector_hits(
    vectors: np.ndarray, sectors: np.ndarray, ks: Sequence[int], *, votes: str = "uniform"
) -> np.ndarray:
    """Tell for each row and each k whether the k nearest other rows vote for its sector.

    The answers are those of scikit-learn's classifier under leave-one-out, from one matrix of
    distances: ties go to the smaller sector. `votes` is ``"uniform"``, ``"distance"`` (votes
    weighed by 1 / distance) or ``"nearest"`` (equal votes, ties go to the sector whose voters come
    first). The result is (n_rows, len(ks)).
    """
    classes, sector = np.unique(sectors, return_inverse=True)
    distances = cdist(vectors, vectors)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : max(ks)]
    ballots = np.eye(len(classes))[sector[nearest]]
    if votes == "distance":
        ballots *= _closeness(np.take_along_axis(distances, nearest, axis=1))[:, :, None]
    elif votes == "nearest":
        # Too little to change a majority, enough to break a tie: halves, so that first beats rest.
        ballots *= 1 + 2.0 ** -np.arange(10, 10 + max(ks))[:, None]
    hits = [ballots[:, :k].sum(axis=1).argmax(axis=1) == sector for k in ks]
    return np.column_stack(hits)


def _closeness(distances: np.ndarray) -> np.ndarray:
    # A neighbour at distance zero outvotes all others: a weight far above any finite one.
    with np.errstate(divide="ignore"):
        return np.minimum(1 / distances, 1e100)


def sector_accuracy(
    vectors: np.ndarray, sectors: np.ndarray, ks: Sequence[int], *, votes: str = "uniform"
) -> np.ndarray:
    """Return the share of rows whose sector the vote gets right, one number a k."""
    return sector_hits(vectors, sectors, ks, votes=votes).mean(axis=0)
