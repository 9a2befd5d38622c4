"""A graph -> vectors of its nodes, from short random walks and without sampling them.

The matrix that is decomposed says how much likelier a short random walk from one node is to
meet another than chance would have it, on a log scale and where it is likelier at all: what
DeepWalk approaches by sampling and NetMF (Qiu et al., 2018) writes down. Few pairs are that
near, so it is sparse; being symmetric, its eigenvectors do instead of a singular value
decomposition. Where walks of two steps reach too many nodes, edges alone are decomposed and the
vectors are smoothed along walks, as ProNE (Zhang et al., 2019) does. See decision 20.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import eigsh

from vecfill.errors import InputError
from vecfill.machine.blas import one_blas_thread
from vecfill.wording import count

_WINDOWS = (5, 3, 2, 1)
"""Steps of a walk, the longest first; the first length that can be afforded is taken."""

_MAX_STEPS = 5e8
_MAX_ENTRIES = 20_000_000
"""What walks may cost, in steps and in pairs. The graph of MeSH (28,436 nodes, 14.9 million pairs)
is within these limits; ten times as much did not end in 100 s (decision 20)."""

_BLOCK_CELLS = 1 << 25
_DENSE = 1000
"""Nodes up to which all eigenvectors are computed, which is then faster; a guess."""

LARGE = 30_000
"""Nodes from which on a graph gets vectors by rounds, and a tree of its own edges (decision 20)."""

_N_TRIED = 64
"""Nodes from which walks are tried before all are begun (decision 20)."""

_N_SPARE = 32
"""Directions beyond those that are wanted, so that the last of these converge as well; a guess."""

_N_ROUNDS = 5
"""Rounds of subspace iteration (decision 20)."""


@one_blas_thread()
def node_vectors(weights: csr_array, *, n_dims: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return vectors of the nodes of a graph and notes; `weights` is symmetric, without loops.

    Examples
    --------
    >>> path = csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> vectors, _ = node_vectors(path, n_dims=2)
    >>> np.allclose(vectors[0], vectors[2])
    True
    """
    window, closeness = _nearest_pairs(weights)
    notes: tuple[str, ...] = ()
    if window < _WINDOWS[0]:
        notes = (
            f"The graph is so dense that walks of {window} steps were used, not of {_WINDOWS[0]}.",
        )
    values, vectors = _leading(closeness, n_dims)
    # A large graph keeps the precision of its decomposition, and half the memory with it.
    dtype = np.float64 if weights.shape[0] <= LARGE else np.float32
    vectors = _with_fixed_signs(vectors * np.sqrt(np.abs(values))).astype(dtype)
    if window == 1:
        vectors = _smoothed(vectors, weights)
    lengths = np.linalg.norm(vectors, axis=1)
    n_short = int((lengths < 1e-6 * lengths.max()).sum())
    if n_short:
        notes += (
            f"{count(n_short, 'node has', 'nodes have')} next to no vector, because larger parts "
            f"of the graph took all {vectors.shape[1]} dimensions. Raise n_dims= if that matters.",
        )
    return vectors, notes


def _with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Return the columns, each turned so that its largest entry is positive."""
    if vectors.size == 0:
        return vectors
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs).astype(vectors.dtype)


def _nearest_pairs(weights: csr_array) -> tuple[int, csr_array]:
    """Return the closeness of nodes by the longest walks that can be afforded, and their length."""
    for window in _WINDOWS:
        if _can_afford(weights, window):
            closeness = _closeness(weights, window)
            if closeness is not None:
                return window, closeness
    raise InputError(
        f"a graph of {weights.shape[0]:,} nodes and {weights.nnz // 2:,} edges needs more "
        "memory than is set aside for it. Leave out the weakest edges."
    )


def _can_afford(weights: csr_array, window: int) -> bool:
    """Tell by walks from a few nodes whether those from all of them may keep to the limits.

    In doubt the answer is yes: then the limits themselves end the attempt.
    """
    n_nodes = weights.shape[0]
    if n_nodes <= _N_TRIED:
        return True
    degree = np.diff(weights.indptr)
    sample = np.linspace(0, n_nodes - 1, _N_TRIED).astype(np.int64)
    walks, n_steps = weights[sample], 0.0
    for _ in range(window - 1):
        n_steps += float(degree[walks.indices].sum(dtype=np.float64))
        if n_steps * n_nodes / _N_TRIED > 2 * _MAX_STEPS:
            return False
        walks = csr_array(walks @ weights)
    return True


def _leading(closeness: csr_array, n_dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of largest size and their vectors."""
    n_nodes = closeness.shape[0]
    if n_nodes <= _DENSE or n_dims >= n_nodes // 2:
        values, vectors = np.linalg.eigh(closeness.toarray().astype(np.float64))
        order = np.argsort(-np.abs(values), kind="stable")[: min(n_dims, n_nodes)]
        return values[order], vectors[:, order]
    rng = np.random.default_rng(0)
    if n_nodes <= LARGE:
        # A start that favours no node and is orthogonal to no eigenvector by symmetry.
        start = rng.uniform(0.5, 1.5, n_nodes).astype(np.float32)
        values, vectors = eigsh(closeness, k=n_dims, which="LM", v0=start, tol=1e-4)
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], vectors[:, order]
    # Many eigenvalues of a large graph lie close together, where Lanczos takes very long to tell
    # them apart. Rounds of subspace iteration cost the same for any graph, and what they mix up are
    # directions that matter equally.
    basis = rng.normal(size=(n_nodes, n_dims + _N_SPARE)).astype(np.float32)
    for _ in range(_N_ROUNDS):
        basis = _orthonormal(closeness @ basis)
    values, turn = np.linalg.eigh((basis.T @ (closeness @ basis)).astype(np.float64))
    order = np.argsort(-np.abs(values), kind="stable")[:n_dims]
    return values[order], basis @ turn[:, order].astype(np.float32)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what columns span, by way of their Gram matrix.

    It is several times faster than a QR decomposition of so tall a matrix, and rounding in it only
    delays a later round.
    """
    values, turn = np.linalg.eigh((columns.T @ columns).astype(np.float64))
    scale = 1.0 / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    return columns @ (turn * scale).astype(columns.dtype)


def _smoothed(vectors: np.ndarray, weights: csr_array) -> np.ndarray:
    """Return the mean of each node's vector and of what walks of up to four steps reach.

    Closeness by edges alone knows nothing of neighbours' neighbours; this brings them back in.
    """
    steps = _transitions(weights).astype(vectors.dtype)
    reached, total = vectors, vectors
    for _ in range(_WINDOWS[0] - 1):
        reached = steps @ reached
        total = total + reached
    return total / _WINDOWS[0]


def _transitions(weights: csr_array) -> csr_array:
    """Return the probability of each step of a random walk."""
    strength = np.asarray(weights.sum(axis=1)).ravel()
    inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > 0)
    return csr_array(weights.multiply(inverse[:, None]))


def _closeness(weights: csr_array, window: int) -> csr_array | None:
    """Log of how much likelier walks of up to `window` steps meet than by chance, where positive.

    None if it would take too long or too much memory.
    """
    n_nodes = weights.shape[0]
    strength = np.asarray(weights.sum(axis=1)).ravel()
    inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > 0)
    steps = csr_array(weights.multiply(inverse[:, None])).astype(np.float32)
    degree = np.diff(steps.indptr)
    chance = (strength.sum() / window * inverse).astype(np.float32)
    n_block = max(1, min(2048, _BLOCK_CELLS // n_nodes))
    parts: list[csr_array] = []
    n_steps, n_entries = 0.0, 0
    for start in range(0, n_nodes, n_block):
        walks = steps[start : start + n_block]
        met = walks
        for _ in range(window - 1):
            n_steps += float(degree[walks.indices].sum(dtype=np.float64))
            if n_steps > _MAX_STEPS:
                return None
            walks = csr_array(walks @ steps)
            met = met + walks
        met = csr_array(met)
        met.data = np.log(np.maximum(met.data * chance[met.indices], 1))
        met.eliminate_zeros()
        n_entries += met.nnz
        if n_entries > _MAX_ENTRIES:
            return None
        parts.append(met)
    whole = csr_array(vstack(parts))
    return csr_array((whole + whole.T) / 2).astype(np.float32)
