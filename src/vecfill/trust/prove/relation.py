"""Signals of hidden rows -> what to expect of others, and how far truths scatter about it.

Signals tell twice: rows that many near ones agree on come back better, and they scatter less. Both
relations are learnt on hidden rows, each row judged by what the other folds teach. The second part
of a relation, a bend or a spread, is followed only as far as rows of other folds bear it out: with
few hidden rows, or where there is nothing to see, it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RIDGE = 1.0
"""Shrinkage of slopes in hidden rows times their variance: six rows' worth for a rank. A guess."""

# Measured offline on made data (25 to 1,000 known) and on headings, movies and companies: smaller
# and larger ones (0.1 to 1, and 1 to 5) move widths by less than 1 %.
RIDGE_OF_BEND = 0.3
"""The same for the bend of the line: its columns vary less than ranks do."""

RIDGE_OF_SPREAD = 5.0
"""The same for the spread: the logarithm of one shortfall is a noisy measure of it."""

N_POWERS = 3
"""Powers of the expectation that bend it. Cosines flatten towards 1, and often towards 0 as well,
which takes a cubic."""

N_HEIGHTS = 51
"""Places at which is looked whether the bent line still rises."""

DOUBT = 2.0
"""Squared standard errors that are taken off a squared slope. 1 would be the least that is without
bias (James and Stein); with 2, nine in ten relations that are pure chance are left out entirely."""

SMALLEST = 0.1
"""Shortfalls below this share of their root mean square count as this large: how near to 0 a
shortfall came says little, and its logarithm has no end. A guess."""


def ranks_among(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return where values stand among reference values, column by column, from 0 to 1.

    Signals have long tails, and those of unknown rows reach beyond those of hidden ones: as ranks
    they cannot drag a line out of the range that it was learnt in.
    """
    ranks = np.empty(values.shape)
    for column in range(values.shape[1]):
        ordered = np.sort(reference[:, column])
        low = np.searchsorted(ordered, values[:, column], side="left")
        high = np.searchsorted(ordered, values[:, column], side="right")
        # The middle of equal values: a signal that is 0 for most rows must not put them all first.
        ranks[:, column] = (low + high) / (2.0 * ordered.size)
    return ranks


@dataclass(frozen=True)
class Line:
    """A linear map from columns to what they let expect.

    Ridge regression on a handful of columns: a library that has it takes two seconds to load.
    """

    slopes: np.ndarray
    shift: float

    @classmethod
    def fitted(
        cls,
        columns: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        ridge: float = RIDGE,
    ) -> Line:
        """Return the line of least weighted squares; `weights` have a mean of 1."""
        weights = np.ones(target.size) if weights is None else weights
        centre = np.average(columns, axis=0, weights=weights)
        mean = float(np.average(target, weights=weights))
        steps = columns - centre
        weighted_steps = weights[:, None] * steps
        # Columns that say the same, or nothing, would make the equations singular.
        gram = weighted_steps.T @ steps + ridge * np.eye(columns.shape[1])
        slopes = np.linalg.solve(gram, weighted_steps.T @ (target - mean))
        return cls(slopes, mean - float(centre @ slopes))

    def at(self, columns: np.ndarray) -> np.ndarray:
        """Return what the line lets expect at these columns."""
        return columns @ self.slopes + self.shift


def cross_fitted(
    columns: np.ndarray,
    target: np.ndarray,
    fold: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    ridge: float = RIDGE,
) -> np.ndarray:
    """Return what each row lets expect, by a line that was learnt without its fold."""
    weights = np.ones(target.size) if weights is None else weights
    expected = np.empty(target.size)
    for number in np.unique(fold):
        is_out = fold == number
        of_folds = columns[~is_out], target[~is_out], weights[~is_out]
        expected[is_out] = Line.fitted(*of_folds, ridge=ridge).at(columns[is_out])
    return expected


def believed_share(
    promised: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Return how much of a promise, made without each row's fold, its rows bear out: 0 to 1.

    Examples
    --------
    >>> target = np.linspace(-1.0, 1.0, 40)
    >>> believed_share(2.0 * target, target), believed_share(-target, target)
    (0.5, 0.0)
    """
    weights = np.ones(target.size) if weights is None else weights
    steps = promised - np.average(promised, weights=weights)
    squares = float(weights @ steps**2)
    if not squares > 0 or target.size < 3:
        return 0.0
    gaps = target - np.average(target, weights=weights)
    slope = float((weights * steps) @ gaps) / squares
    if not slope > 0:
        return 0.0
    variance = float(weights @ (gaps - slope * steps) ** 2) / (target.size - 2) / squares
    return float(np.clip(slope - DOUBT * variance / slope, 0.0, 1.0))


class Relation:
    """What signals of hidden rows let expect of a quantity, and how far truths scatter about it."""

    def __init__(self, signals: np.ndarray, truth: np.ndarray, fold: np.ndarray) -> None:
        self.reference = signals
        ranks = ranks_among(signals, signals)
        self.line = Line.fitted(ranks, truth)
        self.even = cross_fitted(ranks, truth, fold)
        """(n_hidden,) what the line alone lets expect of each hidden row, without its fold."""
        self._learn_spread(ranks, truth - self.even, fold)
        self._learn_bend(truth - self.even, fold)
        self.expected = self.even + self.bend_share * self.bend
        """(n_hidden,) what to expect of each hidden row, learnt without its fold."""

    def _learn_spread(self, ranks: np.ndarray, gaps: np.ndarray, fold: np.ndarray) -> None:
        """Learn the logarithm of how far truths lie from the line, by signals and expectation."""
        size = float(np.sqrt(np.mean(gaps**2)))
        logs = np.log(np.maximum(np.abs(gaps), SMALLEST * size)) if size > 0 else 0.0 * gaps
        columns = np.column_stack([ranks, self._place(self.even)])
        promised = cross_fitted(columns, logs, fold, ridge=RIDGE_OF_SPREAD)
        self.log_spread = Line.fitted(columns, logs, ridge=RIDGE_OF_SPREAD)
        self.mean_log = float(logs.mean())
        self.spread_share = believed_share(promised, logs)
        self.spread = np.exp(self.spread_share * (promised - self.mean_log))
        """(n_hidden,) how widely truths like each scatter, relative to all, without its fold."""

    def _learn_bend(self, gaps: np.ndarray, fold: np.ndarray) -> None:
        """Learn how the line is bent by its own height: rows that scatter less count for more."""
        weights = self.spread**-2.0
        weights /= weights.mean()
        powers = self._powers(self.even)
        self.bend = cross_fitted(powers, gaps, fold, weights, ridge=RIDGE_OF_BEND)
        self.bend_line = Line.fitted(powers, gaps, weights, ridge=RIDGE_OF_BEND)
        steepest = self._steepest_fall()
        believed = believed_share(self.bend, gaps, weights)
        self.bend_share = believed if believed * steepest <= 1.0 else 1.0 / steepest

    def _steepest_fall(self) -> float:
        """Return how much of the line's rise its bend takes back where it takes most.

        Beyond 1, rows that signals call better would be expected to be worse.
        """
        rise = float(self.even.max() - self.even.min())
        powers = np.arange(1, N_POWERS + 1)
        height = np.linspace(0.0, 1.0, N_HEIGHTS)[:, None]
        slopes = (powers * height ** (powers - 1)) @ self.bend_line.slopes
        return float(np.max(-slopes, initial=0.0)) / rise if rise > 0 else 0.0

    def expected_at(self, signals: np.ndarray) -> np.ndarray:
        """Return what to expect of rows with these signals."""
        even = self.line.at(ranks_among(signals, self.reference))
        return even + self.bend_share * self.bend_line.at(self._powers(even))

    def spread_at(self, signals: np.ndarray) -> np.ndarray:
        """Return how widely truths of rows with these signals scatter, relative to all."""
        ranks = ranks_among(signals, self.reference)
        logs = self.log_spread.at(np.column_stack([ranks, self._place(self.line.at(ranks))]))
        return np.exp(self.spread_share * (logs - self.mean_log))

    def both_at(self, signals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `expected_at` and `spread_at`, whose ranks are looked up once."""
        ranks = ranks_among(signals, self.reference)
        even = self.line.at(ranks)
        logs = self.log_spread.at(np.column_stack([ranks, self._place(even)]))
        expected = even + self.bend_share * self.bend_line.at(self._powers(even))
        return expected, np.exp(self.spread_share * (logs - self.mean_log))

    def _place(self, even: np.ndarray) -> np.ndarray:
        """Return where expectations stand among those of the hidden rows."""
        return ranks_among(even[:, None], self.even[:, None])[:, 0]

    def _powers(self, even: np.ndarray) -> np.ndarray:
        """Return powers of expectations, brought from the range of the hidden rows to 0 to 1."""
        low, high = float(self.even.min()), float(self.even.max())
        # A cubic must not be followed beyond the rows that it was learnt on.
        height = (np.clip(even, low, high) - low) / ((high - low) or 1.0)
        return height[:, None] ** np.arange(1, N_POWERS + 1)
