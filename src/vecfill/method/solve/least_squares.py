"""Small non-negative least squares, on a Gram matrix: one row's weights on its neighbours.

Block principal pivoting, with Lawson and Hanson's active set when pivoting would cycle. Parts of
arrays are filled in loops: to assign to a slice takes a tenth of a second to compile.
"""

from __future__ import annotations

import numpy as np

from vecfill.machine.compiled import compiled_part

# A guess: far above rounding in 64 bits, and far below what real neighbours differ by.
PIVOT_TOL = 1e-10
"""A pivot smaller than this share of its diagonal means that neighbours are dependent."""

# A guess, above `PIVOT_TOL`, so that a matrix with it can be factored. See decision 3.
TIE_RIDGE = 1e-9
"""Share of the mean diagonal that picks, among equally good mixes, the one of least norm."""

# A guess: weights agree with scipy.optimize.nnls to 1e-10 (docs/method.md).
DUAL_TOL = 1e-11
"""A gradient above this, on a Gram matrix of mean diagonal 1, lets a neighbour in."""

# A guess.
NEGLIGIBLE = 1e-6
"""Weights below this share of the largest do not set the floor: they are zeros with noise."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""What is smaller has lost its digits, and its inverse is no number."""


@compiled_part
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


@compiled_part
def _support_of(is_in, n, support):
    n_support = 0
    for j in range(n):
        if is_in[j]:
            support[n_support] = j
            n_support += 1
    return n_support


@compiled_part
def _gradient(gram, target, n, x, gradient):
    for j in range(n):
        value = target[j]
        for i in range(n):
            value -= gram[j, i] * x[i]
        gradient[j] = value


@compiled_part
def _active_set(gram, target, n, x, is_in, is_barred, support, factor, solution, gradient):
    """Lawson and Hanson: let in the neighbour with the largest gradient, drop what turns bad."""
    for j in range(n):
        x[j] = 0.0
        is_in[j] = is_barred[j] = False
    _gradient(gram, target, n, x, gradient)
    # More steps than any problem took; rounding must not make it go on for ever.
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
                # The largest step that keeps every weight from turning negative.
                if solution[a] <= 0.0 and x[j] <= step * (x[j] - solution[a]):
                    step = x[j] / (x[j] - solution[a])
                    leaving = j
            for a in range(n_support):
                j = support[a]
                x[j] += step * (solution[a] - x[j])
            if leaving < 0:
                # The others have moved, so that one that was dependent may help now.
                for j in range(n):
                    is_barred[j] = False
                break
            x[leaving] = 0.0
            is_in[leaving] = False
            if leaving == entering:
                is_barred[entering] = True
        _gradient(gram, target, n, x, gradient)


@compiled_part
def _block_pivoting(
    gram, target, n, is_solved, x, is_in, is_barred, support, factor, solution, gradient
):
    """Exchange all bad neighbours at once, one at a time if that does not help.

    It begins with all neighbours in; `solution` is theirs already if `is_solved`.
    """
    for j in range(n):
        is_in[j] = True
    # To exchange all at once may fail to help a few times before it does.
    fewest_bad, patience = n + 1, 3
    for step in range(5 * n + 20):
        n_support = _support_of(is_in, n, support)
        if not (step == 0 and is_solved) and not _solve_on(
            gram, target, support, n_support, factor, solution
        ):
            break
        for j in range(n):
            x[j] = 0.0
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
            # One at a time, always the last: Murty's rule, which cannot cycle.
            is_in[last_bad] = not is_in[last_bad]
    _active_set(gram, target, n, x, is_in, is_barred, support, factor, solution, gradient)


@compiled_part
def _floored(x, n, weight_floor, out):
    """Write `x` as weights that sum to one, with a share of the smallest added to each."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, x[j])
    if not largest > 0.0:
        for j in range(n):
            out[j] = 1.0 / n
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


@compiled_part
def workspace(widest):
    """Return room for one row's problem at a time: making it anew for each row takes longer."""
    x, solution, gradient = np.empty(widest), np.empty(widest), np.empty(widest)
    is_in, is_barred = np.empty(widest, np.bool_), np.empty(widest, np.bool_)
    support = np.empty(widest, np.int64)
    factor = np.empty((widest, widest))
    return x, is_in, is_barred, support, factor, solution, gradient


@compiled_part
def weigh(gram, target, n, is_simplex, ridge, weight_floor, out, work):
    """Turn the Gram matrix of `n` neighbours into weights; it is scaled in place.

    For the simplex form `gram` is that of the neighbours minus the row, and the sum of the
    weights enters as one more equation; otherwise that of the neighbours themselves.
    """
    if n == 0:
        return
    mean_diagonal = 0.0
    for j in range(n):
        mean_diagonal += gram[j, j] / n
    # Only directions of the target matter, since weights are divided by their sum in the end.
    largest_target = 0.0
    for j in range(n):
        largest_target = max(largest_target, abs(target[j]))
    if not mean_diagonal > SMALLEST or not largest_target > SMALLEST:
        for j in range(n):
            out[j] = 1.0 / n
        return
    # Scaled, so that one set of tolerances serves every row; weights are shares.
    scale = 1.0 / mean_diagonal
    sum_equation = 1.0 if is_simplex else 0.0
    for i in range(n):
        target[i] /= largest_target
        for j in range(n):
            gram[i, j] = gram[i, j] * scale + sum_equation
        gram[i, i] += ridge
    x, _, _, support, factor, solution, _ = work
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
