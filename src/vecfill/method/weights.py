"""Stage 2: graph -> how much, each row a convex mix of its neighbours.

Least squares with non-negative weights, solved on the small Gram matrix of a row's neighbours by
block principal pivoting, with Lawson and Hanson's active set when pivoting would cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill._compiled import compiled, compiled_in_any_order
from vecfill._types import DomainVectors
from vecfill.method.blocks import parallel_map, row_blocks
from vecfill.method.distances import Rows, well_scaled

PIVOT_TOL = 1e-10
"""A pivot smaller than this share of its diagonal means that neighbours are dependent."""

TIE_RIDGE = 1e-9
"""Share of the mean diagonal that picks, among equally good mixes, the one of least norm."""

DUAL_TOL = 1e-11
"""A gradient above this, on a Gram matrix of mean diagonal 1, lets a neighbour in."""

NEGLIGIBLE = 1e-6
"""Weights below this share of the largest do not set the floor: they are zeros with noise."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""What is smaller has lost its digits, and its inverse is no number."""

ROWS_PER_BLOCK = 512


@compiled
def _solve_on(gram, target, support, n_support, factor, solution):
    """Solve the system on `support` by Cholesky; false if neighbours are dependent."""
    for a in range(n_support):
        i = support[a]
        pivot = gram[i, i]
        for c in range(a):
            pivot -= factor[a, c] * factor[a, c]
        if not pivot > PIVOT_TOL * gram[i, i]:
            return False
        # Kept as its inverse: a division takes as long as ten products.
        inverse = 1.0 / np.sqrt(pivot)
        factor[a, a] = inverse
        for b in range(a + 1, n_support):
            value = gram[support[b], i]
            for c in range(a):
                value -= factor[b, c] * factor[a, c]
            factor[b, a] = value * inverse
    for a in range(n_support):
        value = target[support[a]]
        for c in range(a):
            value -= factor[a, c] * solution[c]
        solution[a] = value * factor[a, a]
    for a in range(n_support - 1, -1, -1):
        value = solution[a]
        for c in range(a + 1, n_support):
            value -= factor[c, a] * solution[c]
        solution[a] = value * factor[a, a]
    return True


@compiled
def _support_of(is_in, n, support):
    n_support = 0
    for j in range(n):
        if is_in[j]:
            support[n_support] = j
            n_support += 1
    return n_support


@compiled
def _gradient(gram, target, n, x, gradient):
    for j in range(n):
        value = target[j]
        for i in range(n):
            value -= gram[j, i] * x[i]
        gradient[j] = value


@compiled
def _active_set(gram, target, n, x, is_in, support, factor, solution, gradient):
    """Lawson and Hanson: let in the neighbour with the largest gradient, drop what turns bad."""
    x[:n] = 0.0
    is_in[:n] = False
    is_barred = np.zeros(n, np.bool_)
    _gradient(gram, target, n, x, gradient)
    for _ in range(20 * n + 50):
        entering = -1
        for j in range(n):
            if (
                not (is_in[j] or is_barred[j])
                and gradient[j] > DUAL_TOL
                and (entering < 0 or gradient[j] > gradient[entering])
            ):
                entering = j
        if entering < 0:
            return
        is_in[entering] = True
        while True:
            n_support = _support_of(is_in, n, support)
            if not _solve_on(gram, target, support, n_support, factor, solution):
                # Rounding made the newcomer dependent: the rest explains it already.
                is_in[entering] = False
                is_barred[entering] = True
                break
            step = 1.0
            leaving = -1
            for a in range(n_support):
                j = support[a]
                if solution[a] <= 0.0 and x[j] <= step * (x[j] - solution[a]):
                    step = x[j] / (x[j] - solution[a])
                    leaving = j
            for a in range(n_support):
                j = support[a]
                x[j] += step * (solution[a] - x[j])
            if leaving < 0:
                is_barred[:] = False
                break
            x[leaving] = 0.0
            is_in[leaving] = False
            if leaving == entering:
                is_barred[entering] = True
        _gradient(gram, target, n, x, gradient)


@compiled
def _block_pivoting(gram, target, n, is_solved, x, is_in, support, factor, solution, gradient):
    """Exchange all bad neighbours at once, one at a time if that does not help.

    It begins with all neighbours in; `solution` is theirs already if `is_solved`.
    """
    is_in[:n] = True
    fewest_bad, patience = n + 1, 3
    for step in range(5 * n + 20):
        n_support = _support_of(is_in, n, support)
        if not (step == 0 and is_solved) and not _solve_on(
            gram, target, support, n_support, factor, solution
        ):
            break
        x[:n] = 0.0
        for a in range(n_support):
            x[support[a]] = solution[a]
        n_bad, last_bad = 0, -1
        for j in range(n):
            if not is_in[j]:
                value = target[j]
                for a in range(n_support):
                    value -= gram[j, support[a]] * solution[a]
                gradient[j] = value
            if (is_in[j] and x[j] < 0.0) or (not is_in[j] and gradient[j] > DUAL_TOL):
                n_bad += 1
                last_bad = j
        if n_bad == 0:
            return
        if n_bad < fewest_bad:
            fewest_bad, patience = n_bad, 3
        else:
            patience -= 1
        if patience >= 0:
            for j in range(n):
                if is_in[j]:
                    is_in[j] = x[j] >= 0.0
                else:
                    is_in[j] = gradient[j] > DUAL_TOL
        else:
            is_in[last_bad] = not is_in[last_bad]
    _active_set(gram, target, n, x, is_in, support, factor, solution, gradient)


@compiled
def _floored(x, n, weight_floor, out):
    """Write `x` as weights that sum to one, with a share of the smallest added to each."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, x[j])
    if not largest > 0.0:
        out[:n] = 1.0 / n
        return
    smallest = largest
    for j in range(n):
        if x[j] > NEGLIGIBLE * largest:
            smallest = min(smallest, x[j])
    total = 0.0
    for j in range(n):
        out[j] = x[j] + weight_floor * smallest
        total += out[j]
    for j in range(n):
        out[j] /= total


@compiled
def _workspace(widest):
    """Return room for one row's problem at a time: making it anew for each row takes longer."""
    x, solution, gradient = np.empty(widest), np.empty(widest), np.empty(widest)
    is_in, support = np.empty(widest, np.bool_), np.empty(widest, np.int64)
    factor = np.empty((widest, widest))
    return x, is_in, support, factor, solution, gradient


@compiled
def _weigh(gram, target, n, is_simplex, ridge, weight_floor, out, work):
    """Turn the Gram matrix of `n` neighbours into weights; it is scaled in place.

    For the simplex form `gram` is that of the neighbours minus the row, and the sum of the
    weights enters as one more equation; otherwise that of the neighbours themselves.
    """
    if n == 0:
        return
    mean_diagonal = 0.0
    for j in range(n):
        mean_diagonal += gram[j, j] / n
    largest_target = 0.0
    for j in range(n):
        largest_target = max(largest_target, abs(target[j]))
    if not mean_diagonal > SMALLEST or not largest_target > SMALLEST:
        out[:n] = 1.0 / n
        return
    # Scaled, so that one set of tolerances serves every row; weights are shares.
    scale = 1.0 / mean_diagonal
    sum_equation = 1.0 if is_simplex else 0.0
    for i in range(n):
        target[i] /= largest_target
        for j in range(n):
            gram[i, j] = gram[i, j] * scale + sum_equation
        gram[i, i] += ridge
    x, _, support, factor, solution, _ = work
    for i in range(n):
        support[i] = i
    is_solved = _solve_on(gram, target, support, n, factor, solution)
    if not is_solved:
        # More than one mix is best: fewer features than neighbours, or equal neighbours. A
        # little ridge takes the one of least norm, whatever the order of the neighbours.
        for i in range(n):
            gram[i, i] += TIE_RIDGE
    _block_pivoting(gram, target, n, is_solved, *work)
    _floored(x, n, weight_floor, out)


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


@compiled
def _gather_point(row, out):
    for t in range(row.size):
        out[t] = np.float64(row[t])


@compiled
def _gather_difference(row, origin, out):
    for t in range(row.size):
        out[t] = np.float64(row[t]) - np.float64(origin[t])


@compiled
def _widest(indptr, first, last):
    widest = 0
    for row in range(first, last):
        widest = max(widest, indptr[row + 1] - indptr[row])
    return widest


@compiled
def _dense_weights(
    rows, fitted, first, last, indptr, indices, is_simplex, ridge, weight_floor, weights
):
    widest = _widest(indptr, first, last)
    points = np.empty((widest + 1, rows.shape[1]))
    gram, target = np.empty((widest + 1, widest + 1)), np.empty(widest)
    work = _workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        if is_simplex:
            for a in range(n):
                _gather_difference(fitted[indices[start + a]], rows[row], points[a])
            _gram_of(points, n, gram)
            target[:n] = 1.0
        else:
            for a in range(n):
                _gather_point(fitted[indices[start + a]], points[a])
            _gather_point(rows[row], points[n])
            _gram_of(points, n + 1, gram)
            target[:n] = gram[n, :n]
        _weigh(gram, target, n, is_simplex, ridge, weight_floor, weights[start:stop], work)


@compiled
def _distance_weights(
    distances, fitted, first, last, indptr, indices, ridge, weight_floor, weights
):
    widest = _widest(indptr, first, last)
    gram, target = np.empty((widest, widest)), np.empty(widest)
    work = _workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        target[:n] = 1.0
        for a in range(n):
            for b in range(n):
                i, j = indices[start + a], indices[start + b]
                to_i, to_j = np.float64(distances[row, i]), np.float64(distances[row, j])
                between = np.float64(fitted[i, j])
                # Gram matrix of differences from the row, by the law of cosines.
                gram[a, b] = 0.5 * (to_i * to_i + to_j * to_j - between * between)
        _weigh(gram, target, n, True, ridge, weight_floor, weights[start:stop], work)


@compiled
def _local_columns(indices, indptr, row, neighbors, column_of, columns):
    """Number the columns that a row and its neighbours use; return how many there are."""
    n_used = 0
    for a in range(neighbors.size + 1):
        which = row if a == neighbors.size else neighbors[a]
        for place in range(indptr[which], indptr[which + 1]):
            if column_of[indices[place]] < 0:
                column_of[indices[place]] = n_used
                columns[n_used] = indices[place]
                n_used += 1
    return n_used


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
    widest = _widest(indptr, first, last)
    gram, target = np.empty((widest + 1, widest + 1)), np.empty(widest)
    work = _workspace(widest)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        n = stop - start
        neighbors, me = indices[start:stop], row + offset
        n_used = _local_columns(columns_of_rows, row_starts, me, neighbors, column_of, columns)
        points = np.zeros((n + 1, n_used))
        for a in range(n + 1):
            which = me if a == n else neighbors[a]
            for place in range(row_starts[which], row_starts[which + 1]):
                points[a, column_of[columns_of_rows[place]]] = np.float64(data[place])
        for used in range(n_used):
            column_of[columns[used]] = -1
        if is_simplex:
            for a in range(n):
                points[a] -= points[n]
            _gram_of(points, n, gram)
            target[:n] = 1.0
        else:
            _gram_of(points, n + 1, gram)
            target[:n] = gram[n, :n]
        _weigh(gram, target, n, is_simplex, ridge, weight_floor, weights[start:stop], work)


def _as_weights(graph: csr_array, values: np.ndarray) -> csr_array:
    return csr_array((values, graph.indices, graph.indptr), graph.shape)


def _kernel_and_rows(domain: Rows, fitted: Rows) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """Return the compiled function for dense or sparse rows, and its arguments for them."""
    if not issparse(domain):
        return _dense_weights, (domain, fitted)
    both = fitted if fitted is domain else vstack([fitted, domain], format="csr")
    offset = both.shape[0] - domain.shape[0]
    return _sparse_weights, (both.data, both.indices, both.indptr, both.shape[1], offset)


def convex_weights(
    domain: DomainVectors | csr_array,
    graph: csr_array,
    *,
    fitted: np.ndarray | csr_array | None = None,
    form: str = "simplex",
    ridge: float = 0.0,
    weight_floor: float = 0.1,
    n_jobs: int | None = None,
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
    values = np.empty(graph.indices.size)
    options = (is_simplex, ridge, weight_floor, values)
    domain = well_scaled(domain)
    kernel, rows = _kernel_and_rows(domain, domain if fitted is None else fitted)

    def weigh(block: slice) -> None:
        kernel(*rows, block.start, block.stop, graph.indptr, graph.indices, *options)

    parallel_map(weigh, row_blocks(graph.shape[0], ROWS_PER_BLOCK), n_jobs=n_jobs)
    return _as_weights(graph, values)


def convex_weights_of_distances(
    distances: np.ndarray,
    graph: csr_array,
    *,
    between: np.ndarray | None = None,
    ridge: float = 0.0,
    weight_floor: float = 0.1,
    n_jobs: int | None = None,
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
    fitted = distances if between is None else between
    values = np.empty(graph.indices.size)

    def weigh(block: slice) -> None:
        lists = (block.start, block.stop, graph.indptr, graph.indices)
        _distance_weights(distances, fitted, *lists, ridge, weight_floor, values)

    parallel_map(weigh, row_blocks(graph.shape[0], ROWS_PER_BLOCK), n_jobs=n_jobs)
    return _as_weights(graph, values)
