"""Columns whose values are replaced by normal scores of their ranks.

Skewed columns, outliers and units stop mattering: only the order of the values in a column counts.
What was learnt from one matrix can be applied to rows that were not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.special import ndtri

from vecfill.inputs.prepared import Matrix


@dataclass(frozen=True, eq=False)
class Ladder:
    """The distinct values of one column, ascending, and the normal score of each."""

    values: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray) -> Ladder:
        """Return the ladder of a column.

        The score of a value is the normal quantile of its rank; equal values share the mean of
        their ranks.

        Examples
        --------
        >>> Ladder.of(np.array([3.0, 1.0, 90.0])).scores.round(2)
        array([-0.97,  0.  ,  0.97])
        """
        values, counts = np.unique(column.astype(np.float64), return_counts=True)
        return cls(values, _scores(counts))

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return the score of each value: between two values of the column it is interpolated.

        Below the least and above the largest value it is theirs.

        Examples
        --------
        >>> Ladder(np.array([0.0, 2.0]), np.array([-1.0, 1.0])).at(np.array([-9.0, 0.5, 2.0]))
        array([-1. , -0.5,  1. ])
        """
        above = np.clip(np.searchsorted(self.values, numbers), 0, self.values.size - 1)
        return _between(self.values, self.scores, np.maximum(above - 1, 0), above, numbers)


def _between(
    values: np.ndarray,
    scores: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    """Return scores of numbers that lie between the values at two places."""
    # Halves, because a difference of two huge numbers may be too large for a number.
    low, high = values[below] / 2, values[above] / 2
    share = np.ones(numbers.shape)
    np.divide(numbers / 2 - low, high - low, out=share, where=high > low)
    share = np.where(numbers == values[above], 1.0, np.clip(share, 0.0, 1.0))
    return scores[below] + share * (scores[above] - scores[below])


def _scores(counts: np.ndarray) -> np.ndarray:
    """Return normal scores of values, ascending, of which there are so many each."""
    below = np.cumsum(counts) - counts
    # Half of a value's own rows count as below it, so ranks are symmetric and never 0 or 1.
    return ndtri((below + counts / 2) / max(1, counts.sum()))


def own_scores(column: np.ndarray) -> np.ndarray:
    """Return the scores of a column's own values, bit for bit those of its ladder.

    One sort is all that takes, where a ladder is made and then looked up value by value.

    Examples
    --------
    >>> column = np.array([3.0, 1.0, 90.0, 1.0])
    >>> bool((own_scores(column) == Ladder.of(column).at(column)).all())
    True
    """
    order = np.argsort(column)
    ordered = column[order]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: column.size]
    scores = _scores(np.diff(np.append(np.flatnonzero(is_new), column.size)))
    # A ladder goes up from the value below, which can differ from the score in the last bit.
    lower = scores[np.maximum(np.arange(scores.size) - 1, 0)]
    scores_of_column = np.empty(column.shape)
    scores_of_column[order] = (lower + (scores - lower))[np.cumsum(is_new) - 1]
    return scores_of_column


@dataclass(frozen=True, eq=False)
class RankNormal:
    """Normal scores of ranks, learnt column by column; applicable to rows not seen before.

    Examples
    --------
    >>> fitted = RankNormal.fitted(np.array([[1.0, 7.0], [2.0, 7.0], [1000.0, 7.0]]))
    >>> fitted.applied(np.array([[1000.0, 7.0], [501.0, 9.0]])).round(2)
    array([[0.97, 0.  ],
           [0.48, 0.  ]])
    """

    ends: np.ndarray = field(repr=False)
    """(n_features,) where the ladder of each column ends in the two arrays."""
    values: np.ndarray = field(repr=False)
    """The distinct values of the first column, ascending, then those of the next one."""
    scores: np.ndarray = field(repr=False)
    """The normal score of each."""

    @classmethod
    def fitted(cls, domain: Matrix) -> RankNormal:
        """Return what there is to know about the columns of a matrix."""
        if isinstance(domain, csr_array):
            return cls._of_sparse(csc_array(domain))
        ladders = [Ladder.of(domain[:, column]) for column in range(domain.shape[1])]
        if not ladders:
            return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        return cls(
            np.cumsum([ladder.values.size for ladder in ladders]),
            np.concatenate([ladder.values for ladder in ladders]),
            np.concatenate([ladder.scores for ladder in ladders]),
        )

    @classmethod
    def _of_sparse(cls, columns: csc_array) -> RankNormal:
        """Return the same of all sparse columns at once: a loop over 20,000 takes seconds."""
        n_rows, n_features = columns.shape
        n_stored = np.diff(columns.indptr)
        # Zeros by their number: they are never written out. Those that are stored count as well.
        has_zeros = np.flatnonzero(n_stored < n_rows)
        numbers = np.concatenate([columns.data.astype(np.float64), np.zeros(has_zeros.size)])
        column_of = np.concatenate([np.repeat(np.arange(n_features), n_stored), has_zeros])
        times = np.ones(numbers.size, np.int64)
        times[columns.data.size :] = n_rows - n_stored[has_zeros]
        order = np.lexsort((numbers, column_of))
        numbers, column_of = numbers[order], column_of[order]
        is_new = np.ones(numbers.size, np.bool_)
        is_new[1:] = (numbers[1:] != numbers[:-1]) | (column_of[1:] != column_of[:-1])
        first = np.flatnonzero(is_new)
        counts = np.add.reduceat(times[order], first) if first.size else first
        # Every column has as many rows, so ranks within it are what is left of a running sum.
        below = np.cumsum(counts) - counts - column_of[first] * n_rows
        ends = np.searchsorted(column_of[first], np.arange(n_features), side="right")
        return cls(ends, numbers[first], ndtri((below + counts / 2) / max(1, n_rows)))

    def thinned(self, most_steps: int) -> RankNormal:
        """Return ladders of so few steps each; between two of them scores are interpolated."""
        sizes = np.diff(self.ends, prepend=0)
        if sizes.max(initial=0) <= most_steps:
            return self
        starts = self.ends - sizes
        places = [
            np.linspace(start, start + size - 1, min(size, most_steps)).round().astype(np.int64)
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
        chosen = np.concatenate(places)
        ends = np.cumsum([place.size for place in places])
        return RankNormal(ends, self.values[chosen], self.scores[chosen])

    def applied(self, rows: Matrix) -> Matrix:
        """Return rows with every value replaced by its score.

        Sparse rows stay sparse: each column is shifted so that zero keeps the score zero, which
        leaves every distance between rows the same.
        """
        if isinstance(rows, csr_array):
            columns = csc_array(rows, dtype=np.float64, copy=True)
            every_column = np.arange(columns.shape[1])
            zeros = self._at(every_column, np.zeros(every_column.size))
            column_of = np.repeat(every_column, np.diff(columns.indptr))
            columns.data = self._at(column_of, columns.data) - zeros[column_of]
            return csr_array(columns).astype(rows.dtype)
        scores = np.empty(rows.shape)
        for column, end in enumerate(self.ends.tolist()):
            part = slice(int(self.ends[column - 1]) if column else 0, end)
            ladder = Ladder(self.values[part], self.scores[part])
            scores[:, column] = ladder.at(rows[:, column].astype(np.float64))
        return scores.astype(rows.dtype)

    def _at(self, column_of: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the scores of numbers from several columns, all columns in one sort."""
        sizes = np.diff(self.ends, prepend=0)
        starts = self.ends - sizes
        n_steps = self.values.size
        every_number = np.concatenate([self.values, numbers])
        every_column = np.concatenate([np.repeat(np.arange(sizes.size), sizes), column_of])
        is_asked = np.arange(every_number.size) >= n_steps
        # A number comes before the step that it is equal to, so it finds itself on that step.
        order = np.lexsort((~is_asked, every_number, every_column))
        places = np.empty(every_number.size, np.int64)
        places[order] = np.cumsum(~is_asked[order])
        above = np.clip(places[n_steps:], starts[column_of], self.ends[column_of] - 1)
        below = np.maximum(above - 1, starts[column_of])
        return _between(self.values, self.scores, below, above, numbers)
