"""Numeric columns as smooth bins: each becomes a few overlapping bumps along its own order.

A sum over columns can then follow a curve of a year or an income, and a distance counts a few years
as near and forty as no farther than twenty. Bins hold equally many rows, so skew does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import issparse

from vecfill.errors import InputError
from vecfill.inputs.prepared import Matrix
from vecfill.model.rank_normal import Ladder

N_BINS = 8
"""Bins of a column. From decision 62."""

LEAST_VALUES = 16
"""Distinct values from which on a column is numeric enough: two for each bin."""

MOST_COLUMNS = 12
"""Numeric columns up to which it is worth trying: a guess. Many stand for a text or a picture."""

MOST_ENTRIES = 10_000_000
"""Entries of bins above which they are not tried: 80 MB."""

N_LOOKED_AT = 1000
"""Rows, evenly spread, that tell how many values a column has."""


def numeric_columns(rows: Matrix) -> np.ndarray:
    """Return the places of dense columns with enough distinct values for smooth bins.

    Examples
    --------
    >>> years = np.arange(1980.0, 2020.0)
    >>> numeric_columns(np.column_stack([years > 2000, years]))
    array([1])
    """
    if issparse(rows) or rows.shape[0] < LEAST_VALUES:
        return np.zeros(0, np.int64)
    places = np.linspace(0, rows.shape[0] - 1, min(rows.shape[0], N_LOOKED_AT)).astype(np.int64)
    ordered = np.sort(rows[places], axis=0)
    n_values = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
    return np.flatnonzero(n_values >= LEAST_VALUES)


def has_numbers(rows: Matrix) -> bool:
    """Tell whether there are numeric columns, and few enough to be worth trying.

    Examples
    --------
    >>> years = np.arange(1980.0, 2020.0)[:, None]
    >>> has_numbers(years), has_numbers(years > 2000), has_numbers(years.repeat(50, axis=1))
    (True, False, False)
    """
    n_columns = numeric_columns(rows).size
    few = 1 <= n_columns <= MOST_COLUMNS
    return few and rows.shape[0] * (rows.shape[1] + n_columns * (N_BINS + 2)) <= MOST_ENTRIES


@dataclass(frozen=True, eq=False)
class Smooth:
    """Bins of numeric columns, learnt from one matrix; applicable to rows not seen before.

    Examples
    --------
    >>> years = np.arange(1980.0, 2020.0)[:, None]
    >>> bumps = Smooth.fitted(years).applied(years)
    >>> bumps.shape
    (40, 11)
    >>> bool(np.isclose(bumps.var(axis=0).sum(), years.var()))
    True
    """

    columns: np.ndarray = field(repr=False)
    """Places of the numeric columns."""
    ends: np.ndarray = field(repr=False)
    """Where the edges of each of them end in the next array."""
    edges: np.ndarray = field(repr=False)
    """Edges of the bins of the first numeric column, ascending, then those of the next one."""
    sizes: np.ndarray = field(repr=False)
    """Factor of the bumps of each, so that they vary as much as the column did."""

    @classmethod
    def fitted(cls, rows: Matrix) -> Smooth:
        """Return the bins of the numeric columns of a matrix."""
        if issparse(rows):
            raise InputError(
                "preparation='smooth' puts several columns in the place of each numeric one, and "
                "this domain is sparse. Choose 'rank_normal', or pass dense columns."
            )
        columns, edges, sizes = [], [], []
        for column in numeric_columns(rows).tolist():
            numbers = rows[:, column].astype(np.float64)
            edges_of_column = _edges(numbers)
            # A value that most rows share leaves no room for bins. It then stays as it is.
            if edges_of_column.size < 3:
                continue
            columns.append(column)
            edges.append(edges_of_column)
            spread = float(np.sqrt(_bumps(numbers, edges_of_column).var(axis=0).sum()))
            sizes.append(_spread(numbers) / spread)
        ends = np.cumsum([edges_of_column.size for edges_of_column in edges], dtype=np.int64)
        joined = np.concatenate(edges) if edges else np.zeros(0)
        return cls(np.array(columns, np.int64), ends, joined, np.array(sizes, np.float64))

    def applied(self, rows: Matrix) -> Matrix:
        """Return rows with bumps in the place of every numeric column, at the end."""
        parts = [np.delete(rows, self.columns, axis=1)]
        starts = np.append(0, self.ends)
        for place, column in enumerate(self.columns.tolist()):
            edges = self.edges[starts[place] : self.ends[place]]
            bumps = _bumps(rows[:, column].astype(np.float64), edges) * self.sizes[place]
            parts.append(bumps.astype(rows.dtype))
        return np.hstack(parts)

    def origins(self, n_features: int) -> np.ndarray:
        """Return the column that each column of prepared rows was made of.

        Examples
        --------
        >>> years = np.arange(1980.0, 2020.0)
        >>> Smooth.fitted(np.column_stack([years, years > 2000])).origins(2)
        array([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        """
        n_bumps = np.diff(self.ends, prepend=0) + 2
        unchanged = np.delete(np.arange(n_features), self.columns)
        return np.append(unchanged, np.repeat(self.columns, n_bumps))


def _edges(numbers: np.ndarray) -> np.ndarray:
    """Return values between which equally many rows lie; a frequent one stands there once."""
    return np.unique(np.quantile(numbers, np.linspace(0, 1, N_BINS + 1), method="nearest"))


def _spread(numbers: np.ndarray) -> float:
    """Return the standard deviation, also of extreme numbers."""
    largest = float(np.abs(numbers).max())
    return float((numbers / largest).std()) * largest


def _bumps(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return cubic B-splines of the place of numbers among the edges; each row sums to one."""
    n_bins = edges.size - 1
    along = Ladder(edges, np.arange(edges.size, dtype=np.float64)).at(numbers)
    bins = np.minimum(along.astype(np.int64), n_bins - 1)
    share = along - bins
    cubes = (
        (1 - share) ** 3,
        3 * share**3 - 6 * share**2 + 4,
        -3 * share**3 + 3 * share**2 + 3 * share + 1,
        share**3,
    )
    bumps = np.zeros((numbers.size, n_bins + 3))
    for step, heights in enumerate(cubes):
        bumps[np.arange(numbers.size), bins + step] = heights / 6
    return bumps
