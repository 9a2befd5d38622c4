"""What others would do: the same results by other means, written plainly."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree


def distances_by_pairs(rows: np.ndarray) -> np.ndarray:
    """Every distance, a pair at a time, as the authors' published code computes it."""
    wide = rows.astype(np.float64)
    return np.array([[np.linalg.norm(row - other) for other in wide] for row in wide])


def distances_by_rows(rows: np.ndarray) -> np.ndarray:
    """Every distance, a row at a time, as anyone who knows NumPy would."""
    wide = rows.astype(np.float64)
    return np.array([np.sqrt(((wide - row) ** 2).sum(axis=1)) for row in wide])


def tree_edges(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tree = minimum_spanning_tree(distances).tocoo()
    return tree.row, tree.col


def lists_of(left: np.ndarray, right: np.ndarray, nearest: np.ndarray, min_degree: int) -> list:
    """Tree neighbours, then nearest rows until the least degree."""
    lists: list[list[int]] = [[] for _ in nearest]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        lists[a].append(b)
        lists[b].append(a)
    for row, neighbors in enumerate(lists):
        for other in nearest[row]:
            if len(neighbors) >= min_degree:
                break
            if other not in neighbors:
                neighbors.append(int(other))
    return lists


def nnls_weights(rows: np.ndarray, lists: list) -> csr_array:
    """Non-negative least squares, a row at a time, with the authors' floor."""
    wide = rows.astype(np.float64)
    indices, values, indptr = [], [], [0]
    for row, neighbors in enumerate(lists):
        found = nnls(wide[neighbors].T, wide[row])[0]
        positive = found[found > 0]
        found = found + 0.1 * (positive.min() if positive.size else 1.0)
        indices.extend(neighbors)
        values.extend(found / found.sum())
        indptr.append(len(indices))
    return csr_array((values, indices, indptr), (len(rows), len(rows)))


def power_iteration(
    weights: csr_array, embedding: np.ndarray, is_known: np.ndarray, tol: float
) -> np.ndarray:
    """The paper's iteration on the whole matrix; known rows are put back after each step."""
    rng = np.random.default_rng(0)
    known = embedding[is_known].astype(np.float64)
    vectors = rng.normal(known.mean(axis=0), known.std(axis=0), size=embedding.shape)
    vectors[is_known] = known
    for _ in range(10_000):
        mixed = weights @ vectors
        mixed[is_known] = known
        change = np.abs(mixed - vectors).sum() / np.abs(vectors).sum()
        vectors = mixed
        if change < tol:
            break
    return vectors


def authors_algorithm(
    rows, embedding, is_known, *, distances_of=distances_by_pairs, min_degree=8, tol=1e-4
):
    """The paper, plainly: dense distances, tree, nearest rows, a least squares each, iteration."""
    distances = distances_of(rows)
    np.fill_diagonal(distances, 0.0)
    left, right = tree_edges(distances)
    nearest = np.array([np.argsort(row)[1 : min_degree + 1] for row in distances])
    weights = nnls_weights(rows, lists_of(left, right, nearest, min_degree))
    # The authors keep the matrix dense, and walk lazily: half of each step stays where it is.
    lazy = 0.5 * (weights.toarray() + np.eye(len(rows)))
    return power_iteration(lazy, embedding, is_known, tol)


def composition(rows, embedding, is_known, *, min_degree=8, tol=1e-4):
    """What a user would compose from scikit-learn and SciPy today."""
    from sklearn.metrics import pairwise_distances
    from sklearn.neighbors import NearestNeighbors

    distances = pairwise_distances(rows.astype(np.float64))
    left, right = tree_edges(distances)
    search = NearestNeighbors(n_neighbors=min_degree, algorithm="brute").fit(rows)
    nearest = search.kneighbors(return_distance=False)
    weights = nnls_weights(rows, lists_of(left, right, nearest, min_degree))
    return power_iteration(weights, embedding, is_known, tol)


def sklearn_neighbors(rows: np.ndarray, n_neighbors: int) -> None:
    from sklearn.neighbors import NearestNeighbors

    NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(rows).kneighbors()


def faiss_neighbors(rows: np.ndarray, n_neighbors: int) -> None:
    import faiss

    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows)
    index.search(rows, n_neighbors + 1)


def scipy_tree(rows: np.ndarray) -> None:
    from sklearn.metrics import pairwise_distances

    minimum_spanning_tree(pairwise_distances(rows))


def sklearn_tree(rows: np.ndarray) -> None:
    """The tree inside scikit-learn's HDBSCAN: no public name, but the best it has."""
    from sklearn.cluster._hdbscan._linkage import mst_from_data_matrix
    from sklearn.metrics import DistanceMetric

    wide = np.ascontiguousarray(rows, np.float64)
    metric = DistanceMetric.get_metric("euclidean")
    mst_from_data_matrix(wide, np.zeros(len(wide)), metric, 1.0)


def mlpack_tree(rows: np.ndarray) -> None:
    import mlpack

    mlpack.emst(rows.astype(np.float64))
