"""How far entities that came later can be trusted, and what is unusual about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.living.adding import NewEntities
from vecfill.living.file import Kept
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.gaps import FactList
from vecfill.trust.prove.lessons import Lessons
from vecfill.trust.prove.strata import kinds_of
from vecfill.wording import count

Reasons = list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is unusual about new entities, and how far to trust each."""

    unusual: Reasons
    confidence: Confidence | None
    gaps: np.ndarray
    """(n_new, n_facts) which facts they lack."""
    is_beyond: np.ndarray
    """(n_new,) of which hidden rows teach nothing, so that they have no bound."""

    def notes(self, new: NewEntities) -> tuple[str, ...]:
        """Return what to say of the new entities as a whole."""
        shifts = [
            f"{shift}: is it in another unit, or another column? No bounds are given."
            for shift in new.shifts.values()
        ]
        drifts = [f"{drift}." for drift in new.drifts]
        return (*shifts, *drifts, *_notes(self.unusual))


def judgement(
    kept: Kept, new: NewEntities, signals: np.ndarray, is_used: Sequence[bool], is_usual: np.ndarray
) -> Judgement:
    """Return what is unusual about new entities, and how far to trust each.

    `is_usual` tells which are described by the same sources as a fitted one.
    """
    fact_list = FactList.of_kept(kept.sources, is_used)
    gaps = fact_list.gaps(new.rows, new.lacks)
    lessons = kept.lessons
    if lessons is not None and lessons.facts != fact_list.names:
        lessons = None
    unusual: Reasons = [(*reasons, *new.shifts.values()) for reasons in new.unusual]
    for row in np.flatnonzero(~is_usual):
        unusual[row] += ("no fitted entity had exactly these sources",)
    is_beyond = new.is_odd | bool(new.shifts)
    if kept.teachers is None:
        return Judgement(unusual, None, gaps, is_beyond)
    confidence = kept.teachers.of_names(signals, new.names, new.groups)
    if confidence is None or lessons is None:
        are_unusual = np.array([bool(reasons) for reasons in unusual], np.bool_)
        cautious = None if confidence is None else confidence.cautious(are_unusual)
        return Judgement(unusual, cautious, gaps, is_beyond)
    for row, why in enumerate(lessons.untried(gaps)):
        unusual[row] += (why,) if why else ()
    is_beyond |= ~lessons.is_learnt(gaps)
    # A column that is another one now says no more than a missing one, if not less.
    shifted = [
        at for at, fact in enumerate(fact_list.facts) if (fact.source, fact.column) in new.shifts
    ]
    judged_gaps = gaps.copy()
    judged_gaps[:, shifted] = True
    kinds = [kinds_of(new.names)]
    confidence = lessons.applied(confidence, kept.teachers, signals, kinds, judged_gaps)
    return Judgement(unusual, _limited(confidence, lessons, new, is_beyond), gaps, is_beyond)


def kept_of_judged(
    kept: Kept, new: NewEntities, confidence: Confidence | None, is_used: Sequence[bool]
) -> dict[str, np.ndarray | None]:
    """Return what a model keeps of how new entities were judged, beside what it has."""
    if kept.gaps is None or kept.is_beyond is None:
        return {"gaps": None, "is_beyond": None}
    gaps = FactList.of_kept(kept.sources, is_used).gaps(new.rows, new.lacks)
    is_beyond = np.zeros(len(new.names), np.bool_)
    if confidence is not None:
        is_beyond = confidence.lower_bound <= -1.0
    return {
        "gaps": np.vstack([kept.gaps, gaps]),
        "is_beyond": np.append(kept.is_beyond, is_beyond),
    }


def _limited(
    confidence: Confidence, lessons: Lessons, new: NewEntities, is_beyond: np.ndarray
) -> Confidence:
    """Return a confidence without bounds for rows of which hidden ones teach nothing."""
    # A column in another unit puts every row in a wrong place, where signals can look fine.
    most = 0.0 if new.shifts else lessons.reach
    is_far = new.is_odd | bool(new.shifts)
    return confidence.without_bound(is_far, most).without_bound(is_beyond, 1.0)


def _notes(unusual: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    n_unusual = sum(1 for reasons in unusual if reasons)
    if not n_unusual:
        return ()
    first = next(reasons[0] for reasons in unusual if reasons)
    return (
        f"{count(n_unusual, 'new entity is', 'new entities are')} unlike anything fitted (such as: "
        f"{first}); bounds are cautious there, or not given (-1).",
    )
