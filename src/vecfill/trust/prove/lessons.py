"""What hidden rows without some facts teach about rows that lack the same facts.

A row that lacks a fact is imputed worse than its signals say, since they were learnt on rows that
have it. So known rows are hidden and imputed again without the same facts, as rows that came later
are: each *pattern* of missing facts that is frequent among the unknown rows, the others together,
and for rows to come every fact alone. A pattern that was not tried has no bound, and the
expectation of its worst fact, less what the others cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from vecfill.model.wanted import New
from vecfill.trust.choose.folds import Fold
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.gaps import FittedRows
from vecfill.trust.prove.hidden import Asked, Hidden
from vecfill.trust.prove.learning import FEWEST_HIDDEN, Teacher, Teachers
from vecfill.trust.prove.strata import Kinds

N_TAUGHT = 500
"""Hidden rows for each pattern. A guess: bounds of level 0.9 then hold for 88.7 to 91.3 % by chance
of the sample alone."""

FEWEST_OF_PATTERN = 100
"""Hidden rows that must lack no more than a pattern; with fewer, others do too. A guess: bounds of
level 0.9 then hold for 87 to 93 %."""

FREQUENT = 0.03
"""Share of the unknown rows that makes a pattern frequent; a guess."""

MOST_PATTERNS = 6
"""Frequent patterns that are learnt one by one; a guess: others are learnt together."""

MOST_FACTS = 12
"""Facts that are learnt one by one for rows to come; a guess: others are learnt together."""

Pattern = tuple[int, ...]
"""The numbers of the facts that a row lacks."""

Hide = Callable[[Sequence[Fold], Callable[[Fold], Asked]], Hidden]
"""Hides the rows of folds, and imputes what is asked for in their place."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """What teaches the confidence of rows that lack facts."""

    facts: tuple[str, ...]
    """Names of the facts."""
    patterns: tuple[Pattern, ...] = ()
    """The patterns that were tried."""
    teacher_of: tuple[int, ...] = ()
    """Which teacher knows each of them."""
    teachers: tuple[Teacher, ...] = field(default=(), repr=False)
    reach: float = 1.0
    """Mean cosine of the outermost known rows, hidden together: more is not to be expected
    farther out."""

    @cached_property
    def _place_of(self) -> Mapping[Pattern, int]:
        return dict(zip(self.patterns, self.teacher_of, strict=True))

    def is_learnt(self, gaps: np.ndarray) -> np.ndarray:
        """Tell which rows lack nothing, or facts whose pattern was tried."""
        patterns = patterns_of(gaps)
        return np.array(
            [not pattern or pattern in self._place_of for pattern in patterns], np.bool_
        )

    def untried(self, gaps: np.ndarray) -> list[str]:
        """Return for each row why nothing was learnt about the facts that it lacks, if so."""
        return [
            "" if learnt else self._untried(pattern)
            for pattern, learnt in zip(patterns_of(gaps), self.is_learnt(gaps), strict=True)
        ]

    def _untried(self, pattern: Pattern) -> str:
        names = [self.facts[number] for number in pattern]
        if len(names) == 1:
            return f"lacks {names[0]}, which was not tested"
        *firsts, last = [*names[:3], f"{len(names) - 3} more"] if len(names) > 3 else names
        return f"lacks {', '.join(firsts)} and {last} together, which was not tested"

    def applied(
        self,
        confidence: Confidence,
        teachers: Teachers,
        signals: np.ndarray,
        kinds: Kinds,
        gaps: np.ndarray,
    ) -> Confidence:
        """Return the confidence of rows, those that lack facts judged by what was learnt so.

        `confidence` is what complete rows with these signals get; what it takes off from random
        rows, for rarity, is taken off here too.
        """
        lacking = np.flatnonzero(gaps.any(axis=1))
        if not lacking.size:
            return confidence
        names = [labels[lacking] for labels in kinds[:1]]
        columns = [confidence.values, confidence.lower_bound, confidence.plain_lower_bound]
        usual = teachers.plain.confidence(signals[lacking], names, teachers.level)
        assert usual is not None
        of_usual = [usual.values, usual.lower_bound, usual.plain_lower_bound]
        taken_off = [
            np.maximum(plain - column[lacking], 0.0)
            for plain, column in zip(of_usual, columns, strict=True)
        ]
        of_lacking = self._judged(teachers, signals[lacking], names, gaps[lacking])
        new = [np.array(column) for column in columns]
        for column, values, less, low in zip(new, of_lacking, taken_off, (0, -1, -1), strict=True):
            column[lacking] = np.maximum(values - less, low)
        return replace(confidence, values=new[0], lower_bound=new[1], plain_lower_bound=new[2])

    def _judged(
        self, teachers: Teachers, signals: np.ndarray, kinds: Kinds, gaps: np.ndarray
    ) -> list[np.ndarray]:
        """Return expectation and both bounds of rows that lack facts, as random rows have them."""
        columns = np.column_stack([signals, gaps.sum(axis=1)])
        answers = [
            np.zeros(len(gaps)),
            np.full(len(gaps), -1.0),
            np.full(len(gaps), -1.0),
        ]
        by_pattern: dict[Pattern, list[int]] = {}
        for row, pattern in enumerate(patterns_of(gaps)):
            by_pattern.setdefault(pattern, []).append(row)
        rows_of: dict[int, list[int]] = {}
        for pattern, rows in by_pattern.items():
            if pattern in self._place_of:
                rows_of.setdefault(self._place_of[pattern], []).extend(rows)
            else:
                answers[0][rows] = self._guessed(teachers, columns[rows], kinds, rows, pattern)
        for place, rows in rows_of.items():
            taught = self._taught(
                place, columns[rows], [labels[rows] for labels in kinds], teachers
            )
            parts = (taught.values, taught.lower_bound, taught.plain_lower_bound)
            for column, part in zip(answers, parts, strict=True):
                column[rows] = part
        return answers

    def _taught(
        self, place: int, columns: np.ndarray, kinds: Kinds, teachers: Teachers
    ) -> Confidence:
        confidence = self.teachers[place].confidence(columns, kinds, teachers.level)
        assert confidence is not None
        return confidence

    def _guessed(
        self,
        teachers: Teachers,
        columns: np.ndarray,
        kinds: Kinds,
        rows: list[int],
        pattern: Pattern,
    ) -> np.ndarray:
        """Return the expectation of rows whose pattern was not tried."""
        usual = float(teachers.plain.told.net.mean())
        labels = [of_rows[rows] for of_rows in kinds]
        worst, losses = np.ones(len(rows)), []
        for number in pattern:
            place = self._place_of.get((number,))
            if place is None:
                continue
            worst = np.minimum(worst, self._taught(place, columns, labels, teachers).values)
            losses.append(max(usual - float(self.teachers[place].told.net.mean()), 0.0))
        if not losses:
            return np.zeros(len(rows))
        # Facts of which nothing is known cost as much as the dearest one that is.
        losses += [max(losses)] * (len(pattern) - len(losses))
        return np.maximum(worst - (sum(losses) - max(losses)), 0.0)


def patterns_of(gaps: np.ndarray) -> list[Pattern]:
    """Return which facts each row lacks.

    Examples
    --------
    >>> patterns_of(np.array([[True, False, True], [False, False, False]]))
    [(0, 2), ()]
    """
    patterns: list[Pattern] = [()] * len(gaps)
    for row in np.flatnonzero(gaps.any(axis=1)).tolist():
        patterns[row] = tuple(np.flatnonzero(gaps[row]).tolist())
    return patterns


def learn_lessons(
    hide: Hide, fitted: FittedRows, space: object, folds: Sequence[Fold], kinds: Kinds,
    gaps_of_unknown: np.ndarray, *, seed: int,
) -> Lessons:  # fmt: skip
    """Return what hidden rows teach that lack what the unknown rows lack, and single facts."""
    groups = _groups(patterns_of(gaps_of_unknown), len(fitted.fact_list.facts))
    lessons = Lessons(fitted.fact_list.names)
    if not groups:
        return lessons
    chosen_folds = _enough(folds)
    n_together = -(-N_TAUGHT // len(chosen_folds))
    draw = _Draw(fitted, space, groups, np.random.default_rng(seed), n_together)
    hidden = hide(chosen_folds, draw)
    group_of = np.concatenate(draw.group_of)
    n_gaps = np.concatenate(draw.n_gaps)
    hidden = replace(hidden, signals=np.column_stack([hidden.signals, n_gaps]))
    patterns: list[Pattern] = []
    places: list[int] = []
    teachers: list[Teacher] = []
    for number, group in enumerate(groups):
        part = hidden.part(np.flatnonzero(group_of == number))
        if part.rows.size < FEWEST_HIDDEN:
            continue
        for pattern in dict.fromkeys(group):
            if pattern not in patterns:
                patterns.append(pattern)
                places.append(len(teachers))
        teachers.append(Teacher.of(part, kinds[:1], "random"))
    return replace(
        lessons, patterns=tuple(patterns), teacher_of=tuple(places), teachers=tuple(teachers)
    )


def _enough(folds: Sequence[Fold]) -> list[Fold]:
    """Return the first folds that hide enough rows to learn from."""
    sizes = np.cumsum([fold.hidden.size for fold in folds])
    return list(folds[: 1 + int(np.searchsorted(sizes, N_TAUGHT))])


def _groups(patterns: Sequence[Pattern], n_facts: int) -> list[list[Pattern]]:
    """Return the patterns that are learnt together, the frequent ones first, each by itself.

    Examples
    --------
    >>> _groups([(), (0,), (0,), (0, 1)] * 9, 2)
    [[(0,)], [(0, 1)], [(1,)]]
    """
    times = Counter(pattern for pattern in patterns if pattern)
    frequent = [
        pattern
        for pattern, n_times in times.most_common(MOST_PATTERNS)
        if n_times >= FREQUENT * len(patterns)
    ]
    groups = [[pattern] for pattern in frequent]
    seldom = [pattern for pattern in patterns if len(pattern) > 1 and pattern not in frequent]
    if seldom:
        groups.append(seldom)
    alone = [(number,) for number in range(n_facts) if (number,) not in frequent]
    groups += [[pattern] for pattern in alone[:MOST_FACTS]]
    if alone[MOST_FACTS:]:
        groups.append(alone[MOST_FACTS:])
    return groups


class _Draw:
    """Rows that are asked for in each fold: hidden ones, each without the facts of a pattern."""

    def __init__(
        self, fitted: FittedRows, space: object, groups: Sequence[Sequence[Pattern]],
        rng: np.random.Generator, n_together: int,
    ) -> None:  # fmt: skip
        self.fitted, self.space, self.groups = fitted, space, groups
        self.rng, self.n_together = rng, n_together
        self.group_of: list[np.ndarray] = []
        """Of each fold, the group of each row that was asked for."""
        self.n_gaps: list[np.ndarray] = []

    def __call__(self, fold: Fold) -> Asked:
        """Return what is asked for in a fold."""
        natural = self.fitted.gaps[fold.hidden]
        of_hidden, removed, group_of = [], [], []
        for number, group in enumerate(self.groups):
            patterns = [group[at] for at in self.rng.integers(len(group), size=self.n_together)]
            for pattern, n_times in Counter(patterns).items():
                lacks = np.zeros(natural.shape[1], np.bool_)
                lacks[list(pattern)] = True
                rows = self._like(natural, lacks, n_times)
                of_hidden.append(rows)
                removed.append(np.repeat(lacks[None], rows.size, axis=0))
                group_of.append(np.full(rows.size, number))
        places, gaps = np.concatenate(of_hidden), np.vstack(removed)
        gaps |= natural[places]
        self.group_of.append(np.concatenate(group_of))
        self.n_gaps.append(gaps.sum(axis=1))
        rows = self.fitted.at(fold.hidden[places])
        blanked = self.fitted.fact_list.without(rows, gaps)
        return Asked(New(self.space.new_rows(blanked), fold.hidden), places)  # pyright: ignore

    def _like(self, natural: np.ndarray, lacks: np.ndarray, n_rows: int) -> np.ndarray:
        """Return hidden rows that lack no more than a pattern, or as little more as can be."""
        n_more = (natural & ~lacks).sum(axis=1)
        order = self.rng.permutation(n_more.size)
        order = order[np.argsort(n_more[order], kind="stable")]
        n_exact = int((n_more == 0).sum())
        n_least = min(n_rows, FEWEST_OF_PATTERN * self.n_together // N_TAUGHT)
        return order[: min(n_rows, max(n_exact, n_least))]
