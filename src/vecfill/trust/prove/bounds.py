"""Hidden rows -> expectation and lower bound of others, kind by kind.

What signals let expect, and how widely truths scatter about that, is a `Relation`. A kind of
rows may still differ from what its signals say, so each kind of which enough rows were hidden has a
shift and a margin of its own, shrunk towards those of all rows.

A margin is counted in spreads, not in cosines. Rows whose signals are good scatter less: one margin
for all held for 76 % of the tenth of lowest confidence and for 95 % of the highest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vecfill.trust.prove.confidence import reached
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.relation import Relation
from vecfill.trust.prove.strata import FEWEST_PROVED, Kinds

MEASURES = ("net", "cosine")
"""Quantities that have a bound: centred cosine net of the constant, and plain cosine."""

SHRINK_KIND = 10.0
"""Rows' worth of belief that a kind is like the others. A guess: a third of `FEWEST_PROVED`."""


def margin_of(
    shortfall: np.ndarray, level: float, *, is_block: bool = False, shape: np.ndarray | None = None
) -> float:
    """Return the conformal quantile of how far truths fall short of expectations.

    That of a block is taken one standard error higher: the offset and its length were chosen on
    the very rows, and few rows flatter most.

    Of a small block, such a quantile is nearly its worst row, and chance. So if more shortfalls of
    random rows are there, they give the `shape`, and the block its mean and spread.
    """
    if shape is not None and shape.size > shortfall.size > 1:
        error = np.sqrt(level * (1.0 - level) / shortfall.size) if is_block else 0.0
        place = int(np.ceil((shape.size + 1) * (level + error)))
        if place > shape.size or not shape.std() > 0:
            return margin_of(shortfall, level, is_block=is_block)
        steps = (np.sort(shape)[place - 1] - shape.mean()) / shape.std()
        return float(shortfall.mean() + steps * shortfall.std(ddof=1))
    # One more than there are: the new row is one of them. That makes the bound hold in any sample.
    place = int(np.ceil((shortfall.size + 1) * level))
    if is_block and place <= shortfall.size:
        error = np.sqrt(level * (1.0 - level) / shortfall.size)
        place = min(int(np.ceil((shortfall.size + 1) * (level + error))), shortfall.size)
    return float(np.sort(shortfall)[place - 1]) if place <= shortfall.size else np.inf


@dataclass(frozen=True)
class _Lesson:
    """What some hidden rows teach about kinds of rows."""

    shifts: list[dict[Any, float]]
    """By how much the kinds of each way of sorting differ from what signals let expect."""
    margin: float
    """How far below its expectation the bound of any row is, in spreads."""
    margins: list[dict[Any, float]]
    """The same for the kinds that are proved."""

    def shift(self, kinds: Kinds, n_rows: int) -> np.ndarray:
        """Return by how much rows of these kinds differ from what signals let expect."""
        return _summed(self.shifts, kinds, n_rows)

    def widest_margin(self, kinds: Kinds, n_rows: int) -> np.ndarray:
        """Return the widest margin of the kinds of each row; that of all rows if it has none."""
        widest = np.full(n_rows, -np.inf)
        for table, labels in zip(self.margins, kinds, strict=True):
            widest = np.maximum(widest, _looked_up(table, labels, -np.inf))
        return np.where(np.isfinite(widest), widest, self.margin)


def _shape_of(random: Hidden, measure: str) -> np.ndarray:
    """Return how far truths of random rows fall short of expectations, in spreads."""
    truth = getattr(random.carried, measure)
    relation = Relation(random.signals, truth, random.fold)
    return (relation.expected - truth) / relation.spread


def _shrunk(margin: float, of_all: float, n_rows: int) -> float:
    """Return the margin of a kind of which `n_rows` were hidden, drawn towards that of all."""
    return (n_rows * margin + SHRINK_KIND * of_all) / (n_rows + SHRINK_KIND)


def _summed(tables: Sequence[Mapping[Any, float]], kinds: Kinds, n_rows: int) -> np.ndarray:
    """Return the sum of what the tables have for the kinds of each row."""
    total = np.zeros(n_rows)
    for table, labels in zip(tables, kinds, strict=True):
        total += _looked_up(table, labels, 0.0)
    return total


def _looked_up(table: Mapping[Any, float], labels: np.ndarray, missing: float) -> np.ndarray:
    return np.array([table.get(label, missing) for label in labels], np.float64)


class Bounded:
    """Expectation and lower bound of one quantity, learnt on hidden rows, kind by kind."""

    def __init__(
        self,
        hidden: Hidden,
        measure: str,
        level: float,
        kinds: Kinds,
        *,
        is_block: bool,
        random: Hidden | None = None,
    ) -> None:
        """Learn from the `hidden` rows; of a block, `random` ones may give the shape of margins."""
        assert all(len(labels) == hidden.rows.size for labels in kinds)
        shape = None if random is None else _shape_of(random, measure)
        self.margin_of = partial(margin_of, level=level, is_block=is_block, shape=shape)
        self.level = level
        self.kinds = kinds
        self.excess = hidden.excess[MEASURES.index(measure)]
        self.truth = getattr(hidden.carried, measure)
        self.relation = Relation(hidden.signals, self.truth, hidden.fold)
        # All carried rows shrink alike, and real rare ones do not: they scatter as they were found.
        self.as_found = self.relation
        if hidden.moved is not None:
            found_truth = getattr(hidden.as_found, measure)
            self.as_found = Relation(hidden.signals, found_truth, hidden.fold)
        self.proved = [_proved(labels) for labels in kinds]
        self.lesson = self._learnt_on(np.arange(self.truth.size))
        self.scatter = 0.0
        if hidden.moved is not None:
            spread = self.as_found.spread
            of_found = (self.as_found.expected - getattr(hidden.as_found, measure)) / spread
            shift = self.lesson.shift(kinds, self.truth.size)
            of_carried = (self.relation.expected + shift - self.truth) / spread
            of_both = [margin_of(shortfall, level) for shortfall in (of_found, of_carried)]
            self.scatter = max(0.0, of_both[0] - of_both[1])
        self.expected, self.is_covered = self._cross_fitted(hidden.fold)

    def _cross_fitted(self, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expectations, and which bounds hold, by what the other folds teach.

        Learnt on the same rows, bounds would hold for the level by construction.
        """
        expected, is_covered = np.empty_like(self.truth), np.empty(fold.size, np.bool_)
        for number in np.unique(fold):
            rows = np.flatnonzero(fold == number)
            lesson = self._learnt_on(np.flatnonzero(fold != number))
            kinds = [labels[rows] for labels in self.kinds]
            expected[rows] = self.relation.expected[rows] + lesson.shift(kinds, rows.size)
            margin = lesson.widest_margin(kinds, rows.size) * self.as_found.spread[rows]
            is_covered[rows] = self.truth[rows] >= expected[rows] - margin
        return expected, is_covered

    def _learnt_on(self, rows: np.ndarray) -> _Lesson:
        """Return shifts and margins of the proved kinds, learnt on some of the hidden rows."""
        members = [
            {kind: rows[labels[rows] == kind] for kind in proved_kinds}
            for labels, proved_kinds in zip(self.kinds, self.proved, strict=True)
        ]
        gap, shifts = self.truth - self.relation.expected, []
        for by_kind in members:
            learnt = {
                kind: float(gap[of_kind].sum()) / (of_kind.size + SHRINK_KIND)
                for kind, of_kind in by_kind.items()
                if of_kind.size
            }
            # What one way of sorting explains, the next must not explain again.
            for kind, shift in learnt.items():
                gap[by_kind[kind]] -= shift
            shifts.append(learnt)
        shortfall = -gap / self.as_found.spread
        margin, margins = self.margin_of(shortfall[rows]), []
        for by_kind in members:
            of_kinds = {kind: self.margin_of(shortfall[at]) for kind, at in by_kind.items()}
            # Too few rows for so high a level: all rows have to do.
            margins.append(
                {
                    kind: _shrunk(size, margin, by_kind[kind].size)
                    for kind, size in of_kinds.items()
                    if np.isfinite(size)
                }
            )
        return _Lesson(shifts, margin, margins)

    def of(self, signals: np.ndarray, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
        """Return expectation and lower bound of new rows."""
        n_rows = len(signals)
        if not n_rows:
            return np.empty(0), np.empty(0)
        values = self.relation.expected_at(signals) - self.excess
        values += self.lesson.shift(kinds, n_rows)
        margin = self.lesson.widest_margin(kinds, n_rows) + self.scatter
        bound = values - margin * self.as_found.spread_at(signals)
        for way, labels in enumerate(kinds):
            proved_kinds = self.proved[way]
            is_unproved = np.array(
                [kind is not None and kind not in proved_kinds for kind in labels]
            )
            if is_unproved.any():
                shifts = self.lesson.shifts[way]
                values[is_unproved] += min([0.0, *shifts.values()])
                bound[is_unproved] = np.minimum(bound[is_unproved], self._floor(way))
        return values, np.clip(bound, -1.0, 1.0)

    def _floor(self, way: int) -> float:
        """Return what a share `level` of the worst proved kind reached, whatever its signals."""
        labels, truth = self.kinds[way], self.truth
        if self.lesson.shifts[way]:
            means = {kind: float(truth[labels == kind].mean()) for kind in self.lesson.shifts[way]}
            truth = truth[labels == min(means, key=means.__getitem__)]
        return reached(truth, self.level)


def _proved(labels: np.ndarray) -> list[Any]:
    """Return the kinds of which enough rows were hidden, in the order in which they occur."""
    kinds = [kind for kind in dict.fromkeys(labels.tolist()) if kind is not None]
    return [kind for kind in kinds if (labels == kind).sum() >= FEWEST_PROVED]
