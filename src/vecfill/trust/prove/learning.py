"""Hidden rows -> how far to trust others: the one way from signals and kinds to confidence.

What can be seen of an imputed row without its truth (do its contributors agree, how many are there,
how well do its neighbours explain it ...) predicts how near the truth it lies. The relation is
learnt on known rows that were hidden, where the truth can be looked up. The rows of the fit, those
that come later and those of datasets all pass through `learn_confidence`.

Kinds of entities differ, so expectation and margin are learnt for each kind of which enough were
hidden. A kind that cannot be proved gets the expectation of the worst one that can, and a bound
that no signal raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vecfill.inputs.rarity import has_several_words
from vecfill.trust.prove.confidence import Confidence, put_together, reached
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.strata import FEWEST_PROVED, Kinds, kinds_of

ENOUGH_HIDDEN = 2000
"""Hidden rows after which another fold would teach no more. A guess: by chance, bounds of level 0.9
hold for 89 to 91 % of that many."""

FEWEST_HIDDEN = 20
"""Hidden rows below which nothing is learnt. A guess: a bound of level 0.9 needs at least nine."""

MEASURES = ("net", "cosine")
"""Quantities that have a bound: centred cosine net of the constant, and plain cosine."""

SHRINK_KIND = 10.0
"""Rows' worth of belief that a kind is like the others. A guess: a third of `FEWEST_PROVED`."""

# From decision 31.
FEW_UNKNOWN = 10
"""Unknown rows of which one still believes half of what raises their mean: it may be chance."""


def learn_confidence(
    hidden: Hidden,
    unknown_signals: np.ndarray,
    *,
    level: float = 0.9,
    proof: str = "random",
    of_hidden: Kinds = (),
    of_unknown: Kinds = (),
) -> Confidence | None:
    """Return the confidence of unknown rows, learnt on hidden ones; ``None`` if they are too few.

    Kinds of rows are judged apart; `of_hidden` and `of_unknown` label both in the same ways.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> from vecfill.trust.choose.folds import hidden_folds
    >>> from vecfill.trust.prove.hidden import hide_and_impute
    >>> from vecfill.trust.prove.signals import signals
    >>> domain = np.random.default_rng(0).normal(size=(60, 3))
    >>> space, known_rows = Space(domain), KnownRows(domain, np.arange(60) < 50)
    >>> folds = hidden_folds(known_rows.is_known, n_folds=5, seed=0)
    >>> hidden = hide_and_impute(space, domain, known_rows.known, PAPER, folds)
    >>> unknown_signals = signals(known_rows, PAPER.predict(space, known_rows))
    >>> learn_confidence(hidden, unknown_signals).values.round(1)[:3]
    array([1., 1., 1.])
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return None
    is_block = proof == "rarest"
    net, plain = (
        _Bounded(hidden, measure, level, of_hidden, is_block=is_block) for measure in MEASURES
    )
    values, lower_bound = net.of(unknown_signals, of_unknown)
    _, plain_lower_bound = plain.of(unknown_signals, of_unknown)
    return Confidence(
        # A line can leave the range where cosines net of the constant mean something.
        np.clip(values, 0.0, 1.0),
        lower_bound,
        plain_lower_bound,
        level,
        np.clip(net.expected, 0.0, 1.0),
        hidden.carried.net,
        net.is_covered,
        proof,
    )


def excess_of(
    hidden: Hidden, unknown_signals: np.ndarray, drift: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float]:
    """Return by how much signals alone would make unknown rows better than they are.

    Signals tell good rows from bad ones among rows that were imputed alike. But a block is imputed
    from fewer known rows than the unknown ones are, and that alone moves signals: more rows agree,
    or are nearer. Nothing says that rarer rows are better for it, so what signals say about the
    unknown rows as a whole may lower their confidence, but not raise it. Of a few unknown rows a
    part is believed, since they may be better by chance.

    By their `drift` they are worse than the block, and what signals say of that counts towards it.
    """
    n_unknown = len(unknown_signals)
    if hidden.rows.size < FEWEST_HIDDEN or not n_unknown:
        return 0.0, 0.0
    ranks = _ranks(hidden.signals, hidden.signals)
    unknown_ranks = _ranks(unknown_signals, hidden.signals)
    excess = []
    for measure, drop in zip(MEASURES, drift, strict=True):
        truth = getattr(hidden.carried, measure)
        gain = float(_Line.fitted(ranks, truth).at(unknown_ranks).mean() - truth.mean())
        doubted = max(gain, 0.0) * n_unknown / (n_unknown + FEW_UNKNOWN)
        excess.append(doubted + max(drop + min(gain, 0.0), 0.0))
    return excess[0], excess[1]


def expected_of(hidden: Hidden) -> np.ndarray:
    """Return the centred cosine to expect of each hidden row, learnt without its fold."""
    ranks = _ranks(hidden.signals, hidden.signals)
    return _cross_fitted(ranks, hidden.scores.centred_cosine, hidden.fold)


@dataclass(frozen=True, eq=False)
class Teacher:
    """Hidden rows from which the confidence of some unknown rows is learnt."""

    # The names of fields are those in files of models.
    told: Hidden
    kinds: tuple[tuple[str | None, ...], ...]
    """For each way of sorting, the kind of each hidden row; names come first."""
    proof: str
    other: Hidden | None = None
    """Hidden rows of the other proof, whose bounds are not exceeded either."""

    @classmethod
    def of(cls, hidden: Hidden, kinds: Kinds, proof: str, doubt: Hidden | None = None) -> Teacher:
        """Return a teacher that keeps what it teaches from, but no vectors."""
        labels = tuple(tuple(of_rows[hidden.rows].tolist()) for of_rows in kinds)
        return cls(
            hidden.without_vectors(),
            labels,
            proof,
            None if doubt is None else doubt.without_vectors(),
        )

    def confidence(self, signals: np.ndarray, kinds: Kinds, level: float) -> Confidence | None:
        """Return the confidence of rows with these signals and kinds.

        Kinds may be known in the first ways of sorting only.
        """
        of_hidden = [np.array(labels, dtype=object) for labels in self.kinds[: len(kinds)]]
        confidence = learn_confidence(
            self.told,
            signals,
            level=level,
            proof=self.proof,
            of_hidden=of_hidden,
            of_unknown=kinds,
        )
        if confidence is None or self.other is None:
            return confidence
        return confidence.lowered_to(learn_confidence(self.other, signals, level=level))


@dataclass(frozen=True, eq=False)
class Teachers:
    """What teaches confidence, for the rows of the fit and for entities that come later."""

    rare: Teacher | None
    """For rows that may be unknown because they are rare; ``None``: as for the others."""
    plain: Teacher
    level: float
    spares_several: bool = False
    """Whether names of several words are unknown for another reason than rarity."""
    is_void: bool = False
    """Whether hidden rows prove nothing, because the vectors come from a source that leaks."""

    def of_names(self, signals: np.ndarray, names: Sequence[str]) -> Confidence | None:
        """Return the confidence of entities that came later, of which only names are known."""
        may_be_rare = np.ones(len(names), np.bool_)
        if self.spares_several:
            may_be_rare = ~has_several_words(names)
        return self.confidence(signals, [kinds_of(names)], may_be_rare)

    def confidence(
        self, signals: np.ndarray, kinds: Kinds, may_be_rare: np.ndarray
    ) -> Confidence | None:
        """Return the confidence of rows with these signals and kinds."""
        confidence = self._taught(signals, kinds, may_be_rare)
        return confidence.unproved() if self.is_void and confidence is not None else confidence

    def _taught(
        self, signals: np.ndarray, kinds: Kinds, may_be_rare: np.ndarray
    ) -> Confidence | None:
        if self.rare is None:
            return self.plain.confidence(signals, kinds, self.level)
        if may_be_rare.all():
            return self.rare.confidence(signals, kinds, self.level)
        parts = []
        for rows, teacher in ((may_be_rare, self.rare), (~may_be_rare, self.plain)):
            labels = [of_rows[rows] for of_rows in kinds]
            parts.append((rows, teacher.confidence(signals[rows], labels, self.level)))
        return put_together(parts)


def _ranks(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
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
class _Line:
    """A linear map from ranks of signals to what they let expect.

    Ridge regression on a handful of columns: a library that has it takes two seconds to load.
    """

    slopes: np.ndarray
    shift: float

    @classmethod
    def fitted(cls, ranks: np.ndarray, target: np.ndarray, *, alpha: float = 1.0) -> _Line:
        centre, mean = ranks.mean(axis=0), float(target.mean())
        steps = ranks - centre
        # Signals that say the same, or nothing, would make the equations singular.
        gram = steps.T @ steps + alpha * np.eye(ranks.shape[1])
        slopes = np.linalg.solve(gram, steps.T @ (target - mean))
        return cls(slopes, mean - float(centre @ slopes))

    def at(self, ranks: np.ndarray) -> np.ndarray:
        return ranks @ self.slopes + self.shift


def _cross_fitted(ranks: np.ndarray, target: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return what each row lets expect, by a line that was learnt without its fold."""
    expected = np.empty(target.size)
    for number in np.unique(fold):
        is_out = fold == number
        expected[is_out] = _Line.fitted(ranks[~is_out], target[~is_out]).at(ranks[is_out])
    return expected


def _margin(shortfall: np.ndarray, level: float, *, is_block: bool = False) -> float:
    """Return the conformal quantile of how far truths fall short of expectations.

    That of a block is taken one standard error higher: the offset and its length were chosen on
    the very rows, and few rows flatter most.
    """
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
    """How far below its expectation the bound of any row is."""
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


def _summed(tables: Sequence[Mapping[Any, float]], kinds: Kinds, n_rows: int) -> np.ndarray:
    """Return the sum of what the tables have for the kinds of each row."""
    total = np.zeros(n_rows)
    for table, labels in zip(tables, kinds, strict=True):
        total += _looked_up(table, labels, 0.0)
    return total


def _looked_up(table: Mapping[Any, float], labels: np.ndarray, missing: float) -> np.ndarray:
    return np.array([table.get(label, missing) for label in labels], np.float64)


class _Bounded:
    """Expectation and lower bound of one quantity, learnt on hidden rows, kind by kind."""

    def __init__(
        self, hidden: Hidden, measure: str, level: float, kinds: Kinds, *, is_block: bool
    ) -> None:
        assert all(len(labels) == hidden.rows.size for labels in kinds)
        self.reference = hidden.signals
        self.margin_of = partial(_margin, level=level, is_block=is_block)
        self.level = level
        self.kinds = kinds
        self.excess = hidden.excess[MEASURES.index(measure)]
        self.truth = getattr(hidden.carried, measure)
        ranks = _ranks(hidden.signals, hidden.signals)
        self.by_signals = _cross_fitted(ranks, self.truth, hidden.fold)
        self.line = _Line.fitted(ranks, self.truth)
        self.proved = [_proved(labels) for labels in kinds]
        self.lesson = self._learnt_on(np.arange(self.truth.size))
        # All carried rows shrink alike, and real rare ones do not: they scatter more.
        self.scatter = 0.0
        if hidden.moved is not None:
            unmoved = getattr(hidden.as_found, measure)
            shortfall = _cross_fitted(ranks, unmoved, hidden.fold) - unmoved
            of_carried = self.by_signals + self.lesson.shift(kinds, self.truth.size) - self.truth
            self.scatter = max(0.0, _margin(shortfall, level) - _margin(of_carried, level))
        self.expected, self.is_covered = self._cross_fitted(hidden.fold)

    def _cross_fitted(self, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expectations, and which bounds hold, by what the other folds teach.

        Learnt on the same rows, bounds would hold for the level by construction.
        """
        expected, is_covered = np.empty_like(self.by_signals), np.empty(fold.size, np.bool_)
        for number in np.unique(fold):
            rows = np.flatnonzero(fold == number)
            lesson = self._learnt_on(np.flatnonzero(fold != number))
            kinds = [labels[rows] for labels in self.kinds]
            expected[rows] = self.by_signals[rows] + lesson.shift(kinds, rows.size)
            margin = lesson.widest_margin(kinds, rows.size)
            is_covered[rows] = self.truth[rows] >= expected[rows] - margin
        return expected, is_covered

    def _learnt_on(self, rows: np.ndarray) -> _Lesson:
        """Return shifts and margins of the proved kinds, learnt on some of the hidden rows."""
        members = [
            {kind: rows[labels[rows] == kind] for kind in proved_kinds}
            for labels, proved_kinds in zip(self.kinds, self.proved, strict=True)
        ]
        gap, shifts = self.truth - self.by_signals, []
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
        kinds = [labels[rows] for labels in self.kinds]
        shortfall = np.full(self.truth.size, np.nan)
        shift = _summed(shifts, kinds, rows.size)
        shortfall[rows] = self.by_signals[rows] + shift - self.truth[rows]
        margins = []
        for by_kind in members:
            of_kinds = {kind: self.margin_of(shortfall[at]) for kind, at in by_kind.items()}
            # Too few rows for so high a level: all rows have to do.
            margins.append({kind: size for kind, size in of_kinds.items() if np.isfinite(size)})
        return _Lesson(shifts, self.margin_of(shortfall[rows]), margins)

    def of(self, signals: np.ndarray, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
        """Return expectation and lower bound of new rows."""
        n_rows = len(signals)
        if not n_rows:
            return np.empty(0), np.empty(0)
        values = self.line.at(_ranks(signals, self.reference)) - self.excess
        values += self.lesson.shift(kinds, n_rows)
        bound = values - self.lesson.widest_margin(kinds, n_rows) - self.scatter
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
