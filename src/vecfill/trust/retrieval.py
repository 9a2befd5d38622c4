"""What a search finds: the documents nearest to each query by cosine, and how good that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vecfill.machine.lengths import unit

ROWS_AT_ONCE = 512
"""Queries whose cosines with all documents are held at once: 80 MB with 20,000 of them."""

MEASURES = ("recall", "ndcg")


def nearest(
    queries: np.ndarray, documents: np.ndarray, k: int, own_places: np.ndarray | None = None
) -> np.ndarray:
    """Return the `k` documents with the largest cosine to each query, the nearest first.

    A query that is a document itself does not find its own place (`own_places`).

    Examples
    --------
    >>> nearest(np.array([[1.0, 0.1]]), np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]), 2)
    array([[1, 2]])
    """
    return top_of(cosines(queries, documents), k, own_places)


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Return the cosine of each query (down) with each document (across), in 32 bits."""
    directions = unit(np.asarray(documents, np.float32)).T
    scores = np.empty((len(queries), directions.shape[1]), np.float32)
    for first in range(0, len(queries), ROWS_AT_ONCE):
        block = slice(first, first + ROWS_AT_ONCE)
        np.matmul(unit(np.asarray(queries[block], np.float32)), directions, out=scores[block])
    return scores


def top_of(scores: np.ndarray, k: int, own_places: np.ndarray | None = None) -> np.ndarray:
    """Return the places of the `k` largest scores of each row, the largest first."""
    if own_places is not None:
        scores = scores.copy()
        scores[np.arange(len(scores)), own_places] = -np.inf
    k = min(k, scores.shape[1])
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    # By place first, so that equal scores come in the order of the documents.
    top.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.take_along_axis(top, order, axis=1)


def judged(
    top: np.ndarray, relevant: Sequence[np.ndarray] | np.ndarray, k: int
) -> dict[str, np.ndarray]:
    """Return recall and NDCG at `k` of each query, from 0 to 1.

    Recall is relative to what `k` places can hold.

    Examples
    --------
    >>> judged(np.array([[4, 7]]), [np.array([7])], 2)
    {'recall': array([1.]), 'ndcg': array([0.63092975])}
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    if isinstance(relevant, np.ndarray):
        # All have as many answers, so all are looked up at once.
        hits = (top[:, :, None] == relevant[:, None, :]).any(axis=2)
        n_most = min(k, relevant.shape[1])
        gains = hits @ discounts[: hits.shape[1]]
        return {"recall": hits.sum(axis=1) / n_most, "ndcg": gains / discounts[:n_most].sum()}
    recall, ndcg = np.empty(len(top)), np.empty(len(top))
    for row, (places, right) in enumerate(zip(top, relevant, strict=True)):
        hits = np.isin(places, right)
        n_most = min(k, len(right))
        recall[row] = hits.sum() / n_most
        ndcg[row] = discounts[: hits.size][hits].sum() / discounts[:n_most].sum()
    return {"recall": recall, "ndcg": ndcg}
