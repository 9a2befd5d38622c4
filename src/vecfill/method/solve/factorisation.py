"""A sparse factor that is kept, and a forecast of how much one would fill up.

A factor solves any number of right sides, transposed ones too, and never stalls. What speaks
against it is fill: on graphs of word vectors it has a hundred times the entries of the system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import splu

# Decision 26. Two sizes, because fill grows as a power that only two sizes tell.
FILL_SAMPLES = (2000, 4000)
"""Rows of the two pieces that are factored to forecast the fill of the whole."""

# As `MOST_FILL` of `system`: fill only grows with size.
HOPELESS = 20.0
"""Fill of the smaller piece beyond which nobody asks how much more the whole would have."""

# A guess: the power that two pieces tell is not trusted further.
MOST_FORECAST = 25
"""Rows of a system to rows of the larger piece: beyond this a forecast of fill is a guess."""


class Factor:
    """The factors of a weakly diagonally dominant matrix, for any number of right sides.

    A pickle holds the matrix and not its factors, which are computed again: they are far larger.

    Examples
    --------
    >>> factor = Factor(csc_array(np.array([[2.0, 0.0], [1.0, 4.0]])))
    >>> right = np.array([[2.0], [5.0]])
    >>> factor.solve(right).ravel(), factor.transposed().solve(right).ravel()
    (array([1., 1.]), array([0.375, 1.25 ]))
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = csc_array(matrix)
        self.is_transposed = False
        self._factors = self._factored()

    def _factored(self) -> Any:
        # Weakly diagonally dominant, so the diagonal is a safe pivot and keeps the fill low.
        options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        return splu(self.matrix, permc_spec="MMD_AT_PLUS_A", **options)

    @property
    def nnz(self) -> int:
        """Entries of both factors."""
        return self._factors.nnz

    def transposed(self) -> Factor:
        """Return what solves the transposed system; the factors are shared."""
        transposed = Factor.__new__(Factor)
        transposed.__dict__.update(self.__dict__, is_transposed=not self.is_transposed)
        return transposed

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return the solution for a block of right sides."""
        return self._factors.solve(right, trans="T" if self.is_transposed else "N")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_factors": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._factors = self._factored()


def factor_of(weights: csr_array) -> Factor:
    """Return the factor of ``I - weights``.

    Examples
    --------
    >>> factor_of(csr_array(np.array([[0.0, 0.5], [0.0, 0.0]]))).solve(np.array([[0.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    return Factor(eye_array(weights.shape[0], format="csc") - weights)


def expected_fill(weights: csr_array) -> float:
    """Return about how many times more entries a factor of ``I - weights`` has than the matrix.

    Two pieces of the graph around one row are factored; fill grows as a power of size. Unknown
    rows fall apart where only known ones lie between them: what counts is the largest part.

    Examples
    --------
    >>> chain = csr_array((np.full(4999, 0.5), (np.arange(4999), np.arange(1, 5000))), (5000, 5000))
    >>> expected_fill(chain) < 3
    True
    """
    n_parts, part = connected_components(weights, directed=False)
    part_sizes = np.bincount(part, minlength=n_parts)
    n_rows = int(part_sizes.max())
    if n_rows > MOST_FORECAST * FILL_SAMPLES[1]:
        return np.inf
    # Any row of the largest part would do; this one is the same in every run.
    middle = int(np.flatnonzero(part == part_sizes.argmax())[n_rows // 2])
    nearby = breadth_first_order(weights, middle, directed=False, return_predecessors=False)
    fills = []
    # A piece that is nearly the whole would cost as much as what it is to forecast.
    sizes = [min(size, max(1, n_rows * size // (4 * FILL_SAMPLES[1]))) for size in FILL_SAMPLES]
    for size in sizes:
        rows = np.sort(nearby[:size])
        piece = csr_array(weights[rows][:, rows])
        fills.append(factor_of(piece).nnz / (piece.nnz + rows.size))
        if fills[0] > HOPELESS:
            return np.inf
    small, large = fills
    growth = np.log(large / small) / np.log(FILL_SAMPLES[1] / FILL_SAMPLES[0])
    return float(large * (n_rows / sizes[1]) ** max(growth, 0.0))
