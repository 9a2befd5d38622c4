"""Which sources help, and how much: learnt on known rows that each source predicts unseen.

Late fusion by presence pattern. Each source chooses its own predictor on the rows it describes.
Hidden known rows are then predicted by every source, and non-negative weights are fitted for each
pattern of present sources. A source stays only if hidden rows come back better with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.model.directions import unit
from vecfill.model.predictors import Guessed, Predictor
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import Member, SourcesSpace
from vecfill.trust.choose.choice import (
    FEWEST_KNOWN,
    Choice,
    FewerDims,
    choose,
    permutation_p_value,
)
from vecfill.trust.choose.folds import Fold, hidden_folds
from vecfill.trust.choose.scores import total_score
from vecfill.trust.choose.unseen import OutOfFold, out_of_fold
from vecfill.wording import count, html_table, percent

N_FOLDS = 5
ENOUGH_HIDDEN = 2000
"""Hidden rows after which another fold would change no weight."""


@dataclass(frozen=True)
class SourceReport:
    """What became of one source."""

    name: str
    is_kept: bool
    why: str
    """Why it was kept or dropped, in a sentence."""
    n_known: int
    """Known entities that it describes."""
    n_unknown: int
    weight: float = 0.0
    """Its mean weight over the unknown entities that it describes. It also makes up for the length
    of what the source predicts, so it can be above one."""
    share: float = 0.0
    """Its part in the vectors of hidden entities; those of all sources sum to one."""
    has_signal: bool = False
    """Whether hidden entities come back better than chance under this source alone."""
    score: dict[str, float] = field(default_factory=dict)
    """Mean measures of hidden entities under this source alone."""
    predictor: Predictor | None = None
    variant: int = 0
    """Which way of turning it into rows was the best one."""

    def __str__(self) -> str:
        kept = f"weight {self.weight:.2f}, share {percent(self.share)}"
        kept = kept if self.is_kept else f"dropped: {self.why}"
        described = f"{self.n_known:,} known and {count(self.n_unknown, 'unknown entity')}"
        return f"{self.name}: describes {described}; {kept}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "name": self.name,
            "is_kept": self.is_kept,
            "why": self.why,
            "weight": self.weight,
            "share": self.share,
            "n_known": self.n_known,
            "n_unknown": self.n_unknown,
            "score": self.score,
            "method": None if self.predictor is None else self.predictor.to_dict(),
        }


class SourceReports(tuple[SourceReport, ...]):
    """The reports of all sources; a table in a notebook, a line each in print."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        head = ["source", "weight", "centred cosine alone", "known", "unknown", "why"]
        rows = [
            [
                printable(each.name),
                f"{each.weight:.2f}" if each.is_kept else "dropped",
                f"{each.score['centred_cosine']:.2f}" if "centred_cosine" in each.score else "",
                f"{each.n_known:,}",
                f"{each.n_unknown:,}",
                printable(each.why),
            ]
            for each in self
        ]
        return html_table(head, rows)


def choose_sources(
    space: SourcesSpace,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    words: np.ndarray | None = None,
    goal: str = "balanced",
    candidates: str = "all",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Choice:
    """Return the sources that help, how each predicts, and their weights.

    Examples
    --------
    >>> from vecfill.model.space import Space
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 4))
    >>> halves = {"left": latent[:, :2], "right": latent[:, 2:], "noise": rng.normal(size=(120, 2))}
    >>> space = SourcesSpace([[Member(name, Space(rows), np.arange(120), 120)]
    ...                       for name, rows in halves.items()])
    >>> choice = choose_sources(space, latent @ rng.normal(size=(4, 6)), np.arange(120) < 90)
    >>> [(each.name, each.is_kept) for each in choice.sources]
    [('left', True), ('right', True), ('noise', False)]
    """
    reports, n_steps = [], len(space.variants) + 1
    for number, kin in enumerate(space.variants):
        options = {"goal": goal, "candidates": candidates, "seed": seed, "words": words}
        reports.append(_best_variant(kin, embedding, is_known, options))
        if progress is not None:
            progress(number + 1, n_steps)
    _refuse_without_known(reports)
    folds = list(hidden_folds(is_known, n_folds=N_FOLDS, seed=seed, enough=ENOUGH_HIDDEN))
    choice = weighed(space, reports, embedding, is_known, folds, goal, words)
    if progress is not None:
        progress(n_steps, n_steps)
    return choice


def _best_variant(
    kin: Sequence[Member],
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    options: dict[str, Any],
) -> SourceReport:
    """Return what is to be said of a source under its best variant."""
    found = []
    for number, member in enumerate(kin):
        known = is_known[member.rows]
        blank = SourceReport(
            member.name, False, "", int(known.sum()), int((~known).sum()), variant=number
        )
        if member.is_guess:
            return replace(blank, has_signal=True, predictor=Guessed())
        if known.sum() < FEWEST_KNOWN:
            described = count(blank.n_known, "known entity")
            why = f"it describes only {described}, and {FEWEST_KNOWN} are needed"
            found.append((None, replace(blank, why=why)))
            continue
        choice = choose(member.space, embedding[member.rows], known, **options)
        why = "" if choice.has_signal else "it carries no signal about the embedding"
        told = replace(
            blank,
            has_signal=choice.has_signal,
            score=choice.honest.means(),
            predictor=choice.predictor,
            why=why,
        )
        found.append((choice.honest, told))
    judged = [each for each in found if each[0] is not None]
    if not judged:
        return found[0][1]
    return judged[int(np.argmax(total_score([each[0] for each in judged], options["goal"])))][1]


def weighed(
    space: SourcesSpace,
    reports: Sequence[SourceReport],
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    folds: Sequence[Fold],
    goal: str,
    words: np.ndarray | None = None,
) -> Choice:
    """Return which of the sources help the hidden rows of some folds, and with what weights.

    If none carries a signal, all are weighed, for users who force an answer.
    """
    space = space.of_variants([report.variant for report in reports])
    has_signal = any(
        report.has_signal and not member.is_guess
        for report, member in zip(reports, space.members, strict=True)
    )
    predictors = [
        report.predictor if report.has_signal or not has_signal else None for report in reports
    ]
    useful = [place for place, each in enumerate(predictors) if each is not None]
    fewer = FewerDims.of(embedding, is_known)
    unseen = out_of_fold(space, predictors, embedding, is_known, folds, fewer, words)
    kept = _kept(unseen, useful, space.presence[~is_known], goal)
    predictor = _fused(space, predictors, kept, unseen)
    weights = predictor.weights_of(space.presence)
    presence = space.presence[~is_known][:, kept]
    shares = unseen.shares(weights[np.flatnonzero(is_known)[unseen.place]])
    told = tuple(
        _told(
            replace(report, share=float(shares[place])),
            place in kept,
            weights[each.is_present & ~is_known, place],
            int((each.is_present[~is_known] & (presence.sum(axis=1) == 1)).sum()),
        )
        for place, (report, each) in enumerate(zip(reports, space.members, strict=True))
    )
    p_value = 1.0
    if has_signal:
        p_value = permutation_p_value(unit(unseen.fused(kept)), unit(unseen.truth))
    tried = [report for report in reports if report.predictor is not None]
    return Choice(
        predictor,
        tuple(report.predictor for report in tried if report.predictor is not None),
        tuple(report.score for report in tried),
        unseen.scores(kept),
        p_value,
        unseen.stretch(kept),
        told,
    )


def for_rare(
    space: SourcesSpace, usual: Choice, rare: Choice, is_known: KnownMask, may_be_rare: np.ndarray
) -> Choice:
    """Return the choice whose weights are learnt on rare rows where most unknown rows may be rare.

    That is decided for each pattern of sources: names of several words have parts, and rare single
    words have none.
    """
    fused, of_rare = usual.predictor, rare.predictor
    assert isinstance(fused, Fused)
    assert isinstance(of_rare, Fused)
    is_most = 2 * may_be_rare.sum() > (~is_known).sum()
    leading, other = (rare, usual) if is_most else (usual, rare)
    presence = space.of_variants(fused.variants).presence
    weights = dict((of_rare if is_most else fused).weights)
    for pattern in {tuple(row) for row in presence[~is_known].tolist()}:
        rows = ~is_known & (presence == pattern).all(axis=1)
        is_rare = 2 * (rows & may_be_rare).sum() > rows.sum()
        weights[pattern] = dict((of_rare if is_rare else fused).weights)[pattern]
    pairs = zip(fused.members, of_rare.members, strict=True)
    members = tuple(one or another for one, another in pairs)
    predictor = replace(fused, members=members, weights=tuple(weights.items()))
    means = _mean_weights(predictor, presence[~is_known])
    sources = tuple(
        replace(report if report.is_kept else beside, weight=float(weight))
        for report, beside, weight in zip(leading.sources, other.sources, means, strict=True)
    )
    return replace(leading, predictor=predictor, sources=sources)


def _mean_weights(predictor: Fused, presence: np.ndarray) -> np.ndarray:
    """Return the mean weight of each source over the rows that it describes."""
    weights = np.where(presence, predictor.weights_of(presence), 0.0)
    return weights.sum(axis=0) / np.maximum(presence.sum(axis=0), 1)


def _told(report: SourceReport, is_kept: bool, weights: np.ndarray, n_alone: int) -> SourceReport:
    """Return a report that says what became of the source; it alone describes `n_alone` rows."""
    why = report.why
    if report.has_signal and is_kept:
        alone = f"only it describes {count(n_alone, 'entity')}"
        why = alone if n_alone else "it helps hidden entities"
    elif report.has_signal:
        why = "hidden entities do as well without it"
    weight = float(weights.mean()) if weights.size else 0.0
    return replace(report, is_kept=is_kept, weight=weight, why=why)


def _kept(unseen: OutOfFold, useful: Sequence[int], presence: np.ndarray, goal: str) -> list[int]:
    """Return the sources without which hidden rows come back worse, or unknown rows not at all."""
    kept = list(useful)
    while len(kept) > 1:
        # A source that repeats another is still needed by the rows that only it describes.
        n_described = int(presence[:, kept].any(axis=1).sum())
        # A guess that no hidden row can judge stays: other words of the file have proved it.
        judged = [
            place for place in kept if unseen.can_be_judged(place) or not unseen.is_guess[place]
        ]
        fewer = [[each for each in kept if each != left_out] for left_out in judged]
        fewer = [each for each in fewer if presence[:, each].any(axis=1).sum() == n_described]
        if not fewer:
            break
        totals = total_score([unseen.like_unknown(each) for each in (kept, *fewer)], goal)
        best = int(np.argmax(totals[1:]))
        if totals[1 + best] < totals[0]:
            break
        kept = fewer[best]
    return kept


def _fused(
    space: SourcesSpace,
    predictors: Sequence[Predictor | None],
    kept: Sequence[int],
    unseen: OutOfFold,
) -> Fused:
    everyone = np.arange(len(unseen.truth))
    patterns = sorted({tuple(row) for row in space.presence.tolist()})
    weights = tuple(
        (each, tuple(unseen.weights(each, kept, everyone).tolist())) for each in patterns
    )
    members = tuple(each if place in kept else None for place, each in enumerate(predictors))
    return Fused(space.names, space.which, members, weights)


def _refuse_without_known(reports: Sequence[SourceReport]) -> None:
    """Refuse if no source describes enough known entities to learn from."""
    if all(each.predictor in (None, Guessed()) for each in reports):
        told = "; ".join(f"{each.name}: {each.why}" for each in reports)
        raise InputError(
            f"No source describes enough known entities to learn from ({told}). Check that the "
            "sources and the embedding use the same names."
        )
