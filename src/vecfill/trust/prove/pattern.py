"""How well rows of a source restore known vectors, and whether unknown rows follow their pattern.

The pattern is how the columns of a source agree with each other and with other sources among known
rows. Rare entities have other values than frequent ones, and mostly the same pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.machine.lengths import leading_axes, unit
from vecfill.method.scaling import well_scaled
from vecfill.model.space import Member

# From decision 39.
APART = 0.25
"""How far from a half the chance must be that an unknown row agrees less than a known one. Honest
sources of real sets reach 0.2, made ones of which half lack two facts 0.28, and leaks that are
found begin at 0.32; with two standard errors, 0.28 is not clear."""

CLEAR = 2.0
"""Standard errors by which it must be so far."""

# The others are guesses: enough to tell, few enough to take hundredths of a second.
MOST_ROWS = 1000
MOST_COLUMNS = 1000
MOST_MIXES = 128
ROWS_PER_MIX = 4
MOST_DIMS = 64
MOST_BESIDE = 32
"""Leading directions of every other source that its columns are compared with."""
N_FOLDS = 5
FEWEST_KNOWN = 30
FEWEST_UNKNOWN = 10
RIDGE = 0.05
"""Of standardized columns: keeps covariances of few rows from being singular."""
BLANK = 1e-6
"""Spreads of a column by which values that stand for nothing may differ."""


class SampledRows:
    """A sample of the rows of one source, the known ones first."""

    def __init__(self, member: Member, embedding: EmbeddingVectors, is_known: KnownMask) -> None:
        rng = np.random.default_rng(0)
        known = rng.permutation(np.flatnonzero(is_known[member.rows]))[:MOST_ROWS]
        unknown = rng.permutation(np.flatnonzero(~is_known[member.rows]))[:MOST_ROWS]
        self.member, self.n_features = member, member.space.size.n_features
        self.n_known, self.n_unknown = known.size, unknown.size
        self.places = np.r_[known, unknown]
        self.rows = member.rows[self.places]
        self.fold = np.arange(known.size) % N_FOLDS
        self.wide = _columns(member, self.places, MOST_COLUMNS)
        if self.is_enough and not self._is_blank:
            # Facts that all unknown rows lack are missing, which is another matter.
            self.wide = self.wide * (np.ptp(self.wide[self.n_known :], axis=0) > BLANK)
        # Of few rows no covariance of many columns can be learnt.
        self.is_wide = member.space.size.n_features > known.size // ROWS_PER_MIX
        n_mixes = int(np.clip(known.size // ROWS_PER_MIX, N_FOLDS, MOST_MIXES))
        self.columns = _standardized(_mixed(self.wide, n_mixes))
        vectors = well_scaled(embedding[self.rows[: known.size]].astype(np.float64))
        vectors = vectors - (vectors.mean(axis=0) if len(vectors) else 0.0)
        if vectors.shape[1] > MOST_DIMS and len(vectors):
            vectors = vectors @ leading_axes(vectors, MOST_DIMS)
        self.vectors = vectors

    @property
    def is_enough(self) -> bool:
        """Whether there are enough rows of both kinds to tell."""
        return self.n_known >= FEWEST_KNOWN and self.n_unknown >= FEWEST_UNKNOWN

    @cached_property
    def restored(self) -> float:
        """Mean centred cosine of known rows that a ridge regression has not seen."""
        cosines = np.empty(self.n_known)
        for number in range(N_FOLDS):
            is_out = self.fold == number
            centre = self.vectors[~is_out].mean(axis=0)
            slopes = self._slopes(~is_out, self.vectors[~is_out] - centre)
            steps = self.wide[: self.n_known][is_out] @ slopes
            truth = self.vectors[is_out] - centre
            cosines[is_out] = (unit(steps) * unit(truth)).sum(axis=1)
        return float(cosines.mean())

    def _slopes(self, is_seen: np.ndarray, steps: np.ndarray) -> np.ndarray:
        columns = self.wide[: self.n_known][is_seen]
        # The same equations by rows, where these are fewer.
        is_wide = columns.shape[1] > len(columns)
        gram = columns @ columns.T if is_wide else columns.T @ columns
        # One in a hundred of the mean length, a guess: what is copied needs no more.
        gram[np.diag_indices_from(gram)] += 0.01 * np.trace(gram) / len(gram) + 1e-300
        if is_wide:
            return columns.T @ np.linalg.solve(gram, steps)
        return np.linalg.solve(gram, columns.T @ steps)

    def agreement(self, beside: Sequence[SampledRows]) -> float:
        """Return the chance that an unknown row breaks the pattern more than a known one.

        A row breaks it as far as its columns cannot be told from each other and from the leading
        directions of the sources `beside`. What is told is learnt on known rows, other ones.
        """
        if self._is_blank:
            return 1.0
        parts = [self.columns, *(source_rows.at(self.rows) for source_rows in beside)]
        columns, n_own = np.hstack(parts), self.columns.shape[1]
        of_known, of_unknown = np.empty(self.n_known), np.zeros(self.n_unknown)
        for number in range(N_FOLDS):
            is_seen = np.zeros(len(columns), np.bool_)
            is_seen[: self.n_known] = self.fold != number
            shares = (
                _outside(self.wide, is_seen)
                if self.is_wide
                else _unexplained(columns, n_own, is_seen)
            )
            is_out = self.fold == number
            of_known[is_out] = shares[: self.n_known][is_out]
            of_unknown += shares[self.n_known :] / N_FOLDS
        ranks = rankdata(np.r_[of_known, of_unknown])[self.n_known :]
        pairs = self.n_known * self.n_unknown
        return float((ranks.sum() - self.n_unknown * (self.n_unknown + 1) / 2) / pairs)

    @cached_property
    def _is_blank(self) -> bool:
        """Whether most unknown rows are one row, such as the mean or zeros, and few known ones."""
        middle = np.median(self.wide[self.n_known :], axis=0)
        is_same = np.abs(self.wide - middle).max(axis=1) <= BLANK
        return bool(is_same[self.n_known :].mean() > 0.5 and is_same[: self.n_known].mean() < 0.05)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading directions of this source at rows of the whole; zeros where absent."""
        place_of = np.full(self.member.n_all, -1)
        place_of[self.member.rows] = np.arange(self.member.rows.size)
        places = place_of[rows]
        steps = _columns(self.member, np.maximum(places, 0), MOST_MIXES)
        steps[places < 0] = 0.0
        return steps @ leading_axes(steps, min(MOST_BESIDE, steps.shape[1]))

    def is_apart(self, agreement: float) -> bool:
        """Tell whether unknown rows clearly break the pattern, or have hardly any."""
        return abs(agreement - 0.5) - CLEAR * self._error(agreement) >= APART

    def blame(self, alone: float, beside: float) -> float:
        """Return how likely this source is the one that leaks, by its agreements; no unit."""
        return self.restored * (abs(alone - 0.5) + abs(beside - 0.5))

    def _error(self, agreement: float) -> float:
        """Return the standard error of such a chance, after Hanley and McNeil (1982)."""
        first, second = agreement / (2 - agreement), 2 * agreement**2 / (1 + agreement)
        variance = agreement * (1 - agreement)
        variance += (self.n_unknown - 1) * (first - agreement**2)
        variance += (self.n_known - 1) * (second - agreement**2)
        return float(np.sqrt(max(variance, 0.0) / (self.n_known * self.n_unknown)))

    def named(self, columns: tuple[str, ...], n_most: int) -> tuple[str, ...]:
        """Return the columns that restore most of the known vectors, if they have names."""
        if not len(columns) == self.wide.shape[1] == self.n_features:
            return ()
        slopes = self._slopes(np.ones(self.n_known, np.bool_), self.vectors)
        order = np.argsort(-(slopes**2).sum(axis=1), kind="stable")[:n_most]
        return tuple(columns[place] for place in order)


def _columns(member: Member, places: np.ndarray, n_most: int) -> np.ndarray:
    """Return some rows of a source, standardized; of more than `n_most` columns, random mixes.

    Mixes keep the pattern in which columns agree, and there are few of them.
    """
    columns = _mixed(member.space.prepared("as_given")[places], n_most)
    dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
    return _standardized(dense.astype(np.float64))


def _mixed(columns: Any, n_most: int) -> Any:
    """Return columns, or `n_most` random mixes of them if they are more."""
    if (n_columns := columns.shape[1]) <= n_most:
        return columns
    return columns @ np.random.default_rng(0).normal(size=(n_columns, n_most))


def _standardized(columns: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and spread 1; what is constant is 0."""
    columns = well_scaled(columns)
    steps = columns - columns.mean(axis=0)
    spread = steps.std(axis=0)
    return np.divide(steps, spread, out=np.zeros_like(steps), where=spread > 1e-9)


def _unexplained(columns: np.ndarray, n_own: int, is_seen: np.ndarray) -> np.ndarray:
    """Return which share of each row's first columns the other columns do not explain.

    What columns explain of each other among the seen rows is in the inverse of their covariance.
    """
    centre, spread = columns[is_seen].mean(axis=0), columns[is_seen].std(axis=0)
    # What does not differ among the seen rows would have no scale.
    steps = np.divide(columns - centre, spread, out=np.zeros_like(columns), where=spread > 1e-9)
    covariance = steps[is_seen].T @ steps[is_seen] / is_seen.sum()
    covariance[np.diag_indices_from(covariance)] += RIDGE
    inverse = np.linalg.inv(covariance)
    gaps = (steps @ inverse[:, :n_own]) / np.diag(inverse)[:n_own]
    lengths = (steps[:, :n_own] ** 2).sum(axis=1)
    return (gaps**2).sum(axis=1) / np.maximum(lengths, 1e-12)


def _outside(columns: np.ndarray, is_seen: np.ndarray) -> np.ndarray:
    """Return which share of each row lies outside the leading directions of the seen rows.

    These hold half of what the seen rows differ in. They can be learnt on fewer rows than there are
    columns, and of rows without a pattern they hold little.
    """
    steps = columns - columns[is_seen].mean(axis=0)
    _, sizes, axes = np.linalg.svd(steps[is_seen], full_matrices=False)
    shares = np.cumsum(sizes**2) / np.maximum((sizes**2).sum(), 1e-300)
    inside = steps @ axes[: int(np.searchsorted(shares, 0.5)) + 1].T
    return 1.0 - (inside**2).sum(axis=1) / np.maximum((steps**2).sum(axis=1), 1e-12)
