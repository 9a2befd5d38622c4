"""Confidence where rows lack facts, or are far from the known ones: one limit after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from vecfill.inputs.alignment import Alignment
from vecfill.machine.blas import one_blas_thread
from vecfill.model.fitted import Model
from vecfill.trust.choose.folds import Fold
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.gaps import FittedRows
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import Teachers
from vecfill.trust.prove.lessons import Hide, Lessons, learn_lessons
from vecfill.trust.prove.reach import Distances, Reach, learn_reach
from vecfill.trust.prove.strata import FEWEST_PROVED, Kinds


class AskedOf(NamedTuple):
    """A model, its hidden rows and its unknown ones."""

    model: Model
    alignment: Alignment
    folds: Sequence[Fold]
    random: Hidden
    """The rows of the folds, as they are."""
    unknown_signals: np.ndarray
    kinds: Kinds
    """Of all rows."""


@dataclass(frozen=True, eq=False)
class ToCome:
    """What can be learnt for rows to come: for most imputations, nobody ever asks for it.

    To hide rows without each of their facts costs more than to impute.
    """

    learn: Callable[[], Lessons] = field(repr=False)
    reach: Reach | None = field(default=None, repr=False)

    @cached_property
    def lessons(self) -> Lessons:
        """What teaches the confidence of rows that lack facts, learnt when first asked for."""
        # The bits are those that `impute` would find, which holds BLAS to one thread.
        with one_blas_thread():
            lessons = self.learn()
            return lessons if self.reach is None else replace(lessons, reach=self.reach.ceiling)


class Limits(NamedTuple):
    """What was learnt of rows that lack facts, or are far from the known ones."""

    to_come: ToCome | None
    gaps: np.ndarray | None
    """(n_rows, n_facts) which facts rows lack."""
    unusual: dict[int, str]
    """Why hidden rows teach nothing of some unknown ones, by place among the unknown."""
    confidence: Confidence | None


def limits_of(
    asked: AskedOf,
    teachers: Teachers,
    confidence: Confidence,
    instead: Hide,
    block: Callable[[Fold], Hidden],
    *,
    seed: int,
) -> Limits:
    """Return a confidence that heeds what rows lack and how far they are from known ones.

    `instead` imputes what is asked for in the place of hidden rows, and `block` the rows of a fold.
    """
    model, is_known = asked.model, asked.alignment.is_known
    of_unknown = [labels[~is_known] for labels in asked.kinds]
    fitted = FittedRows.of(asked.alignment.domain, model.predictor, model.space, is_known)
    gaps = fitted.unproved_gaps(is_known, FEWEST_PROVED)
    lacking = gaps[~is_known]
    learn = partial(
        learn_lessons,
        instead,
        fitted,
        model.space,
        asked.folds,
        asked.kinds,
        lacking,
        seed=seed,
    )
    distances = Distances.of(fitted, is_known)
    reach = None
    if distances is not None:
        reach = learn_reach(block, distances, asked.random, asked.kinds)
    to_come, unusual = ToCome(learn, reach), {}
    if lacking.any():
        lessons = to_come.lessons
        confidence = lessons.applied(
            confidence, teachers, asked.unknown_signals, of_unknown, lacking
        )
        unusual = {place: why for place, why in enumerate(lessons.untried(lacking)) if why}
    if reach is not None:
        confidence = reach.applied(confidence, teachers, asked.unknown_signals, of_unknown)
        unusual |= reach.why
    return Limits(to_come, gaps, unusual, confidence)
