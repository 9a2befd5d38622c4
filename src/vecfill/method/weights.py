"""Stage 2: graph -> how much, each row a convex mix of its neighbours.

Least squares with non-negative weights (`least_squares`), on the small Gram matrix of each row's
neighbours; rows in blocks, dense, sparse, or known only by their distances.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill._types import DomainVectors
from vecfill.machine.compiled import compiled, compiled_in_any_order, compiled_part
from vecfill.method.engine import Workers, fill, row_blocks
from vecfill.method.scaling import scaled_together, well_scaled
from vecfill.method.solve.least_squares import weigh, workspace

# A guess.
ROWS_PER_BLOCK = 512


@compiled_in_any_order
def _gram_of(points, n, gram):
    """Gram matrix of the first `n` rows of 64-bit points, two rows by two at a time."""
    n_features = points.shape[1]
    for a in range(0, n, 2):
        # An odd last row is its own partner: written twice, but no special case.
        b = min(a + 1, n - 1)
        for c in range(0, a + 1, 2):
            d = min(c + 1, n - 1)
            ac = ad = bc = bd = 0.0
            for t in range(n_features):
                ac += points[a, t] * points[c, t]
                ad += points[a, t] * points[d, t]
                bc += points[b, t] * points[c, t]
                bd += points[b, t] * points[d, t]
            gram[a, c] = gram[c, a] = ac
            gram[a, d] = gram[d, a] = ad
            gram[b, c] = gram[c, b] = bc
            gram[b, d] = gram[d, b] = bd


@compiled_part
def _gather_point(row, out):
    for t in range(row.size):
        out[t] = np.float64(row[t])


@compiled_part
def _gather_difference(row, origin, out):
    for t in range(row.size):
        out[t] = np.float64(row[t]) - np.float64(origin[t])


@compiled_part
def _widest(indptr, first, last):
    widest = 0
    for row in range(first, last):
        widest = max(widest, indptr[row + 1] - indptr[row])
    return widest


@compiled
def _dense_weights(
    rows, fitted, first, last, indptr, indices, is_simplex, ridge, weight_floor, weights
):
    """Write the weights of the edges of some rows; `weights` begins with the first of them."""
    widest, first_edge = _widest(indptr, first, last), indptr[first]
    points = np.empty((widest + 1, rows.shape[1]))
    gram, target = np.empty((widest + 1, widest + 1)), np.empty(widest)
    work = workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        if is_simplex:
            for a in range(n):
                # Differences first: products far from the origin lose the digits that matter.
                _gather_difference(fitted[indices[start + a]], rows[row], points[a])
            _gram_of(points, n, gram)
            for a in range(n):
                target[a] = 1.0
        else:
            for a in range(n):
                _gather_point(fitted[indices[start + a]], points[a])
            _gather_point(rows[row], points[n])
            _gram_of(points, n + 1, gram)
            for a in range(n):
                target[a] = gram[n, a]
        mine = weights[start - first_edge : stop - first_edge]
        weigh(gram, target, n, is_simplex, ridge, weight_floor, mine, work)


@compiled
def _distance_weights(
    distances, fitted, first, last, indptr, indices, ridge, weight_floor, weights
):
    widest, first_edge = _widest(indptr, first, last), indptr[first]
    gram, target = np.empty((widest, widest)), np.empty(widest)
    work = workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        for a in range(n):
            target[a] = 1.0
            for b in range(n):
                i, j = indices[start + a], indices[start + b]
                to_i, to_j = np.float64(distances[row, i]), np.float64(distances[row, j])
                between = np.float64(fitted[i, j])
                # Gram matrix of differences from the row, by the law of cosines.
                gram[a, b] = 0.5 * (to_i * to_i + to_j * to_j - between * between)
        mine = weights[start - first_edge : stop - first_edge]
        weigh(gram, target, n, True, ridge, weight_floor, mine, work)


@compiled_part
def _local_columns(indices, indptr, row, neighbors, column_of, columns):
    """Number the columns that the row or two neighbors use; return their number, and of all used.

    A column of one neighbor alone adds to its square and to no product: it is marked as -2. In
    wide domains most are, and without them the rows that are multiplied are several times shorter.
    """
    n_numbered = n_used = 0
    for place in range(indptr[row], indptr[row + 1]):
        column_of[indices[place]] = n_numbered
        columns[n_used] = indices[place]
        n_numbered, n_used = n_numbered + 1, n_used + 1
    for neighbor in neighbors:
        for place in range(indptr[neighbor], indptr[neighbor + 1]):
            column = indices[place]
            if column_of[column] == -1:
                column_of[column] = -2
                columns[n_used] = column
                n_used += 1
            elif column_of[column] == -2:
                column_of[column] = n_numbered
                n_numbered += 1
    return n_numbered, n_used


@compiled
def _sparse_weights(
    data,
    columns_of_rows,
    row_starts,
    n_features,
    offset,
    first,
    last,
    indptr,
    indices,
    is_simplex,
    ridge,
    weight_floor,
    weights,
):
    column_of = np.full(n_features, -1)
    columns = np.empty(n_features, np.int64)
    widest, first_edge = _widest(indptr, first, last), indptr[first]
    gram, target = np.empty((widest + 1, widest + 1)), np.empty(widest)
    alone = np.empty(widest + 1)
    work = workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        neighbors, me = indices[start:stop], row + offset
        n_numbered, n_used = _local_columns(
            columns_of_rows, row_starts, me, neighbors, column_of, columns
        )
        points = np.zeros((n + 1, n_numbered))
        alone[:] = 0.0
        for a in range(n + 1):
            member = me if a == n else neighbors[a]
            for place in range(row_starts[member], row_starts[member + 1]):
                value, column = np.float64(data[place]), column_of[columns_of_rows[place]]
                if column < 0:
                    alone[a] += value * value
                else:
                    points[a, column] = value
        for column in range(n_used):
            column_of[columns[column]] = -1
        if is_simplex:
            for a in range(n):
                points[a] -= points[n]
            _gram_of(points, n, gram)
            for a in range(n):
                target[a] = 1.0
        else:
            _gram_of(points, n + 1, gram)
            for a in range(n):
                target[a] = gram[n, a]
        for a in range(n):
            gram[a, a] += alone[a]
        mine = weights[start - first_edge : stop - first_edge]
        weigh(gram, target, n, is_simplex, ridge, weight_floor, mine, work)


_KERNELS = {
    "dense": _dense_weights,
    "sparse": _sparse_weights,
    "distances": _distance_weights,
}
"""What weighs the rows of a block, by name: compiled code cannot be sent to other processes."""


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in 32 bits if they fit: kernels take a second to compile for each type."""
    limit = np.iinfo(np.int32).max
    is_narrow = numbers.dtype == np.int32 or int(numbers.max(initial=0)) > limit
    return numbers if is_narrow else numbers.astype(np.int32)


def _weigh_block(
    kernel: str,
    arrays: tuple[Any, ...],
    lists: tuple[np.ndarray, np.ndarray],
    options: tuple[bool | float, ...],
    block: slice,
    values: np.ndarray,
) -> None:
    _KERNELS[kernel](*arrays, block.start, block.stop, *lists, *options, values)


def _weighed(
    graph: csr_array,
    kernel: str,
    arrays: tuple[Any, ...],
    options: tuple[bool | float, ...],
    n_jobs: Workers,
) -> csr_array:
    """Return the graph with weights on its edges, which a kernel gives to a block of rows."""
    values = np.empty(graph.indices.size)
    rows = row_blocks(graph.shape[0], ROWS_PER_BLOCK)
    edges = [slice(int(graph.indptr[b.start]), int(graph.indptr[b.stop])) for b in rows]
    lists = _narrow(graph.indptr), _narrow(graph.indices)
    weigh_block = partial(_weigh_block, kernel, arrays, lists, options)
    fill([values], weigh_block, edges, items=rows, n_jobs=n_jobs)
    return csr_array((values, graph.indices, graph.indptr), graph.shape)


def convex_weights(
    domain: DomainVectors | csr_array,
    graph: csr_array,
    *,
    fitted: np.ndarray | csr_array | None = None,
    form: str = "simplex",
    ridge: float = 0.0,
    weight_floor: float = 0.1,
    n_jobs: Workers = None,
) -> csr_array:
    """Return each row as a convex mix of its neighbours: ``weights[row, neighbor]``.

    `form` is ``"simplex"``, least squares over all convex mixes as in the paper's equation, or
    ``"nnls"``, non-negative least squares divided by its sum as in the authors' code. `ridge`
    times the mean squared length (of the neighbours minus the row, or of the neighbours) is
    added to the diagonal of the Gram matrix; it draws the mix towards the plain mean.
    `weight_floor` times the smallest positive weight is added to every neighbour, so that none
    is cut off. Where several mixes are equally good, the one of least norm is taken. A row whose
    weights are all zero gets equal ones. The neighbours are rows of `fitted`, if given, else of
    the domain itself.

    Examples
    --------
    A point a quarter of the way from one neighbour to the other:

    >>> domain = np.array([[1.0], [0.0], [4.0]])
    >>> graph = csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool))
    >>> convex_weights(domain, graph, weight_floor=0.0).toarray()
    array([[0.  , 0.75, 0.25],
           [1.  , 0.  , 0.  ],
           [1.  , 0.  , 0.  ]])
    """
    is_simplex = form == "simplex"
    assert is_simplex or form == "nnls"
    options = (is_simplex, ridge, weight_floor)
    if fitted is None:
        rows = fitted_rows = well_scaled(domain)
    else:
        rows, fitted_rows = scaled_together(domain, fitted)
    if not issparse(rows):
        return _weighed(graph, "dense", (rows, fitted_rows), options, n_jobs)
    # Sparse rows come after the fitted ones in one matrix.
    matrix = rows if fitted is None else vstack([fitted_rows, rows], format="csr")
    offset = matrix.shape[0] - rows.shape[0]
    arrays = (matrix.data, matrix.indices, matrix.indptr, matrix.shape[1], offset)
    return _weighed(graph, "sparse", arrays, options, n_jobs)


def convex_weights_of_distances(
    distances: np.ndarray,
    graph: csr_array,
    *,
    between: np.ndarray | None = None,
    ridge: float = 0.0,
    weight_floor: float = 0.1,
    n_jobs: Workers = None,
) -> csr_array:
    """Return the simplex weights of rows known only by their distances.

    ``distances[row, neighbor]`` is from a row to the neighbours that `graph` lists; `between`
    has the distances among the neighbours when these are not the rows themselves.

    Examples
    --------
    >>> distances = np.array([[0.0, 1, 3], [1, 0, 4], [3, 4, 0]])
    >>> graph = csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool))
    >>> convex_weights_of_distances(distances, graph, weight_floor=0.0).toarray()[0]
    array([0.  , 0.75, 0.25])
    """
    if between is None:
        distances = fitted = well_scaled(distances)
    else:
        distances, fitted = scaled_together(distances, between)
    return _weighed(graph, "distances", (distances, fitted), (ridge, weight_floor), n_jobs)
