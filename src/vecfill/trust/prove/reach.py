"""Rows farther from the known ones than hidden rows are: what can be learnt of them.

How far a row lies is told by its distance to the nearest known rows, in columns of equal spread.
Most known rows have a near one, and so have rows that were hidden at random. If many unknown rows
are farther, the known rows that are most like them are hidden as one block: what they reach, by
distance, is to be expected of the unknown ones. Beyond the block nothing is known, and there is no
bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from scipy.sparse import issparse

from vecfill._types import KnownMask
from vecfill.inputs.table.columns_reader import ColumnsReader
from vecfill.method.engine import row_blocks
from vecfill.method.scaling import well_scaled
from vecfill.trust.choose.folds import Fold, fold_of
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.gaps import FittedRows
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import ENOUGH_HIDDEN, FEWEST_HIDDEN, Teacher, Teachers
from vecfill.trust.prove.strata import Kinds

N_NEAREST = 5
"""Known rows whose mean distance says how far a row is; a guess: one alone may be a twin."""

MOST_LANDMARKS = 2000
"""Known rows to which distances are measured; a guess at what is quick."""

MOST_COLUMNS = 2000
"""Columns above which distances are not measured; a guess at what is quick."""

ORDINARY = 0.95
"""Share of the known rows that is no farther from the others than what is ordinary; a guess."""

CLEARLY = 4.0
"""Standard errors by which more unknown rows are farther if they lie elsewhere. By chance, one set
in 30,000 does."""

ELSEWHERE = 0.15
"""Least share of the unknown rows beyond what is ordinary, three times what it is for known ones; a
guess."""

BEYOND = 1.5
"""From how many times the distance of the farthest known row on hidden rows teach nothing; a
guess."""

BLOCK = 0.2
"""Share of the known rows that is hidden as one block. As in a fold of random rows."""

FEWEST_OF_BLOCK = 60
"""Rows of a block, if there are three times as many; a guess: twice `FEWEST_PROVED`."""

ROWS_PER_BLOCK = 2048

FAR = "lies farther from the known entities than any that was hidden"
SHIFTED = "lies where no known entity is, as many unknown ones do"


@dataclass(frozen=True, eq=False)
class Distances:
    """Rows of the fit in columns of equal spread, to see how far they are from known ones."""

    rows: np.ndarray = field(repr=False)
    """(n_rows, n_columns)."""
    is_known: KnownMask = field(repr=False)

    @classmethod
    def of(cls, fitted: FittedRows, is_known: KnownMask) -> Distances | None:
        """Return the rows of all sources of dense columns; ``None`` if there are none."""
        parts = [
            part
            for number in fitted.rows.rows
            # Names differ by kind (of several words, say), and kinds are judged apart.
            if not getattr(fitted.fact_list.readers[number], "reads_names", False)
            and (part := _standardised(fitted, number, is_known)) is not None
        ]
        if not parts or sum(part.shape[1] for part in parts) > MOST_COLUMNS:
            return None
        return cls(np.hstack(parts), is_known)

    def to(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the mean distance of rows to the nearest of some known ones, themselves left out.

        Examples
        --------
        >>> line = Distances(np.arange(8.0)[:, None], np.arange(8) < 7)
        >>> line.to(np.array([7]), np.arange(7))
        array([3.])
        """
        step = -(-known.size // MOST_LANDMARKS)
        landmarks = known[::step]
        n_nearest = min(N_NEAREST, landmarks.size - 1)
        squares = (self.rows[landmarks] ** 2).sum(axis=1)
        distances = np.empty(rows.size)
        for block in row_blocks(rows.size, ROWS_PER_BLOCK):
            part = self.rows[rows[block]]
            squared = (part**2).sum(axis=1)[:, None] + squares - 2 * part @ self.rows[landmarks].T
            squared[rows[block][:, None] == landmarks] = np.inf
            nearest = np.partition(squared, n_nearest - 1, axis=1)[:, :n_nearest]
            distances[block] = np.sqrt(np.maximum(nearest, 0.0)).mean(axis=1)
        return distances


def _standardised(fitted: FittedRows, number: int, is_known: KnownMask) -> np.ndarray | None:
    """Return a source's columns in spreads of known rows; rows that it lacks are at the mean."""
    rows, reader = fitted.rows, fitted.fact_list.readers[number]
    vectors, places = rows.rows[number], rows.places[number]
    known = is_known[places]
    if issparse(vectors) or known.sum() < FEWEST_HIDDEN:
        return None
    vectors = well_scaled(np.asarray(vectors, np.float64))
    of_known = vectors[known]
    variance, varies = of_known.var(axis=0), of_known.std(axis=0) > 0
    if isinstance(reader, ColumnsReader):
        # Category and text became many columns, which together count as much as one of numbers.
        starts = np.cumsum([0, *(column.width for column in reader.columns[:-1])])
        widths = [column.width for column in reader.columns]
        variance = np.repeat(np.add.reduceat(variance, starts), widths)
    spread = np.sqrt(variance)
    standardised = np.zeros((rows.n_new, int(varies.sum())))
    centred = vectors[:, varies] - of_known.mean(axis=0)[varies]
    standardised[places] = centred / spread[varies]
    return standardised


@dataclass(frozen=True, eq=False)
class Reach:
    """What is known of rows that lie far from the known ones."""

    why: dict[int, str]
    """Why nothing was learnt of some unknown rows, by place among the unknown."""
    outermost: Callable[[], float] = field(repr=False)
    """Hides the outermost known rows, and returns what they reach."""
    teacher: Teacher | None = None
    """What teaches the confidence of all unknown rows, if many of them are far."""
    distances: np.ndarray | None = field(default=None, repr=False)
    """(n_unknown,) how far they are, as the teacher's last signal."""

    @cached_property
    def ceiling(self) -> float:
        """What the outermost hidden rows reach."""
        return self.outermost()

    def applied(
        self, confidence: Confidence, teachers: Teachers, signals: np.ndarray, kinds: Kinds
    ) -> Confidence:
        """Return a confidence that is nowhere above what rows so far away reach."""
        is_beyond = np.zeros(len(signals), np.bool_)
        is_beyond[list(self.why)] = True
        if self.teacher is not None and self.distances is not None:
            columns = np.column_stack([signals, self.distances])
            limit = self.teacher.confidence(columns, kinds[:1], teachers.level)
            if limit is not None:
                values = np.minimum(confidence.values, limit.values)
                confidence = replace(confidence.lowered_to(limit), values=values)
        # To hide the outermost rows is work, which is for nothing if no row lies beyond them.
        if not self.why:
            return confidence
        return confidence.without_bound(is_beyond, self.ceiling)


def learn_reach(
    hide: Callable[[Fold], Hidden], distances: Distances, random: Hidden, kinds: Kinds
) -> Reach:
    """Return what the known rows that are most like far unknown ones teach about these.

    `random` are known rows that were hidden at random: the outermost of them do where a block of so
    many rows would cost much and tell little more.
    """
    is_known = distances.is_known
    known, unknown = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    of_known, of_unknown = (distances.to(rows, known) for rows in (known, unknown))
    is_elsewhere = lies_elsewhere(of_known, of_unknown)
    if not is_elsewhere:
        is_far = of_unknown > BEYOND * of_known.max(initial=0.0)
        why = dict.fromkeys(np.flatnonzero(is_far).tolist(), FAR)
        return Reach(why, partial(_outermost, hide, distances, random.without_vectors(), known))
    # The known rows that are nearest to unknown ones, whatever the shape of both.
    block = _block(is_known, -distances.to(known, unknown))
    hidden = hide(block)
    of_block = distances.to(block.hidden, np.flatnonzero(block.is_seen))
    is_outer = of_block >= np.median(of_block)
    is_far = of_unknown > np.quantile(of_block, ORDINARY)
    teacher = Teacher.of(
        replace(hidden, signals=np.column_stack([hidden.signals, of_block])), kinds[:1], "random"
    )
    return Reach(
        dict.fromkeys(np.flatnonzero(is_far).tolist(), SHIFTED),
        partial(float, hidden.net[is_outer].mean()),
        teacher,
        of_unknown,
    )


def _outermost(
    hide: Callable[[Fold], Hidden], distances: Distances, random: Hidden, known: np.ndarray
) -> float:
    """Return the mean cosine of the outermost known rows, hidden as a block if they are few."""
    if known.size <= ENOUGH_HIDDEN:
        squares = (distances.rows[known] ** 2).sum(axis=1)
        return float(hide(_block(distances.is_known, squares)).net.mean())
    squares = (distances.rows[random.rows] ** 2).sum(axis=1)
    return float(random.net[squares >= np.quantile(squares, 1.0 - BLOCK)].mean())


def _block(is_known: KnownMask, outwards: np.ndarray) -> Fold:
    """Return the fold of the known rows that are farthest outwards."""
    n_hidden = max(round(BLOCK * outwards.size), min(FEWEST_OF_BLOCK, outwards.size // 3))
    order = np.argsort(outwards, kind="stable")
    return fold_of(is_known, np.sort(order[outwards.size - n_hidden :]))


def lies_elsewhere(of_known: np.ndarray, of_unknown: np.ndarray) -> bool:
    """Tell whether far more unknown rows than known ones are beyond what is ordinary.

    Examples
    --------
    >>> near = np.linspace(0, 1, 100)
    >>> lies_elsewhere(near, near), lies_elsewhere(near, near + 0.5)
    (False, True)
    """
    if of_unknown.size < FEWEST_HIDDEN:
        return False
    share, limit = 1.0 - ORDINARY, np.quantile(of_known, ORDINARY)
    error = np.sqrt(share * (1.0 - share) * (1.0 / of_known.size + 1.0 / of_unknown.size))
    return bool((of_unknown > limit).mean() > max(ELSEWHERE, share + CLEARLY * error))
