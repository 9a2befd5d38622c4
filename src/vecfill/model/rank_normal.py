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
    def of(cls, column: np.ndarray, n_zeros: int = 0) -> Ladder:
        """Return the ladder of a column, given without `n_zeros` of its zeros.

        The score of a value is the normal quantile of its rank; equal values share the mean of
        their ranks.

        Examples
        --------
        >>> Ladder.of(np.array([3.0, 1.0, 90.0])).scores.round(2)
        array([-0.97,  0.  ,  0.97])
        """
        values, counts = np.unique(column.astype(np.float64), return_counts=True)
        if n_zeros:
            # Entries that are stored and zero count as zeros too.
            place = int(np.searchsorted(values, 0.0))
            if place == values.size or values[place] != 0.0:
                values, counts = np.insert(values, place, 0.0), np.insert(counts, place, 0)
            counts[place] += n_zeros
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
        below = np.maximum(above - 1, 0)
        # Halves, because a difference of two huge numbers may be too large for a number.
        low, high = self.values[below] / 2, self.values[above] / 2
        share = np.ones(numbers.shape)
        np.divide(numbers / 2 - low, high - low, out=share, where=high > low)
        share = np.where(numbers == self.values[above], 1.0, np.clip(share, 0.0, 1.0))
        return self.scores[below] + share * (self.scores[above] - self.scores[below])


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

    ladders: tuple[Ladder, ...] = field(repr=False)
    """One for each column."""

    @classmethod
    def fitted(cls, domain: Matrix) -> RankNormal:
        """Return what there is to know about the columns of a matrix."""
        n_rows, n_features = domain.shape
        if isinstance(domain, csr_array):
            # Column by column, zeros by their number: they are never written out.
            columns = csc_array(domain)
            parts = np.split(columns.data, columns.indptr[1:-1])
            return cls(tuple(Ladder.of(each, n_rows - each.size) for each in parts))
        return cls(tuple(Ladder.of(domain[:, column]) for column in range(n_features)))

    def applied(self, rows: Matrix) -> Matrix:
        """Return rows with every value replaced by its score.

        Sparse rows stay sparse: each column is shifted so that zero keeps the score zero, which
        leaves every distance between rows the same.
        """
        if isinstance(rows, csr_array):
            columns = csc_array(rows, dtype=np.float64, copy=True)
            for column, ladder in enumerate(self.ladders):
                part = slice(columns.indptr[column], columns.indptr[column + 1])
                zero = ladder.at(np.zeros(1))
                columns.data[part] = ladder.at(columns.data[part]) - zero
            return csr_array(columns).astype(rows.dtype)
        scores = np.empty(rows.shape)
        for column, ladder in enumerate(self.ladders):
            scores[:, column] = ladder.at(rows[:, column].astype(np.float64))
        return scores.astype(rows.dtype)
