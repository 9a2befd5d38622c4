"""What each column of a table adds, by leaving it out: known rows predicted without themselves.

Kernel ridge regression has leave-one-out predictions in closed form, so a column costs one fit on a
sample of the known rows. Columns that seem to hurt are left out of a further preparation, which
`auto` then compares with the others on hidden rows: what this module thinks decides nothing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.machine.blas import one_blas_thread
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, Predictor
from vecfill.model.preparation import base_of, left_out_by, without_columns
from vecfill.model.space import Space
from vecfill.trust.choose.candidates import race_sample
from vecfill.trust.choose.recommending import audience_for, parts_of
from vecfill.trust.choose.scores import Judge, total_rows
from vecfill.wording import percent

MOST_COLUMNS = 40
"""Columns of a table that are judged; a guess at what is worth the time."""

BEYOND_CHANCE = 2.0
"""Standard errors from which on a column helps or hurts; folds confirm what is left out."""

MOSTLY_LACKING = 0.9
"""Share of unknown entities of one value from which on a column cannot tell them apart; a guess."""


@dataclass(frozen=True)
class ColumnReport:
    """What a column adds.

    Examples
    --------
    >>> print(ColumnReport("population", -0.08, "hurts", is_left_out=True))
    'population' hurts (-8 %); left out
    """

    name: str
    gain: float
    """How much better hidden entities come back with it, relative to the score without it."""
    verdict: str
    """``"helps"``, ``"hurts"``, ``"no difference"`` or ``"cannot say"``."""
    is_left_out: bool = False

    def __str__(self) -> str:
        about = f"{self.name!r} {self.verdict} ({100 * self.gain:+.0f} %)"
        if self.verdict == "cannot say":
            about = f"{self.name!r} has one value for nearly all unknown entities"
        return about + ("; left out" if self.is_left_out else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def leaner(space: Space, known_rows: KnownRows, best: KernelRidge, goal: str) -> KernelRidge | None:
    """Return the predictor without the columns that seem to hurt it; None if none does.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.column_stack([rng.normal(size=(150, 3)), 9 * rng.normal(size=150)])
    >>> known = KnownRows(np.sin(2 * rows[:, :3]), np.ones(150, bool))
    >>> columns = [("a", 0, 1), ("b", 1, 2), ("c", 2, 3), ("noise", 3, 4)]
    >>> leaner(Space(rows, columns=columns), known, KernelRidge(width=1.0), "balanced").preparation
    'as_given without 3'
    """
    gains = _gains(space, known_rows, best, goal) if space.may_leave_out else {}
    hurts = [name for name, (_, z) in gains.items() if z < -BEYOND_CHANCE]
    # Something must stay.
    if not hurts or len(hurts) == len(space.columns):
        return None
    places = [place for name, a, b in space.columns if name in hurts for place in range(a, b)]
    return replace(best, preparation=without_columns(best.preparation, places))


@one_blas_thread()
def column_reports(
    space: Any, embedding: EmbeddingVectors, is_known: KnownMask, predictor: Predictor
) -> tuple[ColumnReport, ...]:
    """Return what each column of the tables adds to the predictor that was chosen."""
    reports: list[ColumnReport] = []
    for member, member_predictor in predictor.by_source(space):
        if member_predictor is None or not _is_judged(member.space):
            continue
        known_rows = KnownRows(embedding[member.rows], is_known[member.rows])
        preparations = member_predictor.preparations or ("as_given",)
        left_out = {place for name in preparations for place in left_out_by(name)}
        entrant = KernelRidge(base_of(preparations[0]), width=1.0)
        gains = _gains(member.space, known_rows, entrant, "balanced")
        unknown = member.space.rows[np.flatnonzero(~known_rows.is_known)]
        for name, first, end in member.space.columns:
            gain, z = gains[name]
            verdict = "no difference"
            if abs(z) > BEYOND_CHANCE:
                verdict = "helps" if z > 0 else "hurts"
            if _is_mute(unknown[:, first:end]):
                verdict = "cannot say"
            title = f"{member.name}: {name}" if space.is_joint else name
            reports.append(ColumnReport(title, gain, verdict, first in left_out))
    return tuple(reports)


def column_notes(reports: Sequence[ColumnReport]) -> tuple[str, ...]:
    """Return what to know about columns that were left out, or hurt, or cannot say anything."""
    notes = []
    for report in reports:
        change = percent(abs(report.gain))
        if report.is_left_out:
            notes.append(
                f"Column {report.name!r} was left out: with it, hidden known entities came back "
                f"{change} worse. Pass columns='all' to use it."
            )
        elif report.verdict == "hurts":
            notes.append(
                f"Column {report.name!r} may hurt: a simple model of hidden known entities is "
                f"{change} worse with it. If it says nothing about the vectors, leave it out "
                "(ignore=)."
            )
        elif report.verdict == "cannot say":
            notes.append(
                f"Column {report.name!r} has one value for nearly all unknown entities, so it "
                "cannot tell them apart."
            )
    return tuple(notes)


def columns_in_words(reports: Sequence[ColumnReport]) -> str:
    """Return which columns help and which do not, in a line.

    Examples
    --------
    >>> reports = [ColumnReport("year", 0.0, "no difference"), ColumnReport("kind", 0.3, "helps")]
    >>> columns_in_words(reports)
    "'kind' helps (+30 %), 'year' no difference (+0 %)"
    """
    order = sorted(reports, key=lambda report: -report.gain)
    listed = order if len(order) <= 8 else [*order[:5], *order[-3:]]
    return ", ".join(map(str, listed))


def _is_judged(space: Any) -> bool:
    return space.has_vectors and 2 <= len(space.columns) <= MOST_COLUMNS


def _gains(
    space: Space, known_rows: KnownRows, entrant: KernelRidge, goal: str
) -> dict[str, tuple[float, float]]:
    """Return for each column what it adds, relative and in standard errors."""
    if not _is_judged(space):
        return {}
    sample = race_sample(known_rows)
    known = sample.known.astype(np.float64)
    parts = parts_of(sample.is_known)
    audience = audience_for(goal, sample.embedding, parts)
    judge = Judge(known, known.mean(axis=0), audience=audience)
    every = np.arange(len(known))
    if audience is not None:
        every = np.concatenate([part.truth for part in parts])

    def scored(of: KernelRidge) -> Any:
        own = replace(sample, _kept={})
        return judge.scored(judge.centre + of.left_out(space, own)[every], every)

    whole, gains = scored(entrant), {}
    for name, first, end in space.columns:
        name_without = without_columns(entrant.preparation, range(first, end))
        less = scored(replace(entrant, preparation=name_without))
        with_it, without_it = total_rows([whole, less], goal)
        gap = with_it - without_it
        error = float(gap.std()) / np.sqrt(gap.size)
        relative = float(gap.mean()) / max(abs(float(without_it.mean())), 1e-9)
        gains[name] = (relative, float(gap.mean()) / error if error > 0 else 0.0)
    return gains


def _is_mute(rows: Any) -> bool:
    """Tell whether nearly all rows have the same values in the columns of one."""
    if rows.shape[0] == 0 or not isinstance(rows, np.ndarray):
        return False
    _, times = np.unique(rows, axis=0, return_counts=True)
    return bool(times.max() >= MOSTLY_LACKING * rows.shape[0]) and rows.shape[0] > 1
