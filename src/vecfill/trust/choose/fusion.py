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
from vecfill.model.predictors import Guessed, Predictor
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import Member, SourcesSpace
from vecfill.trust.choose.choice import CHANCE, FEWEST_KNOWN, Choice, FewerDims, choose
from vecfill.trust.choose.folds import Fold, hidden_folds
from vecfill.trust.choose.recommending import of_rows
from vecfill.trust.choose.scores import total_score
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.choose.unseen import OutOfFold, out_of_fold
from vecfill.wording import count, html_table, percent

# The usual number; a guess.
N_FOLDS = 5
ENOUGH_HIDDEN = 2000
"""Hidden rows after which another fold would change no weight."""


LEAKS = "it holds the answer for known entities alone"


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
    p_value: float | None = None
    """How likely chance alone would tie the vectors to it; ``None`` if it was not tested."""

    def __str__(self) -> str:
        outcome = f"dropped: {self.why}"
        if self.is_kept:
            outcome = f"weight {self.weight:.2f}, share {percent(self.share)}"
        described = f"{self.n_known:,} known and {count(self.n_unknown, 'unknown entity')}"
        return f"{self.name}: describes {described}; {outcome}"

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
                printable(report.name),
                f"{report.weight:.2f}" if report.is_kept else "dropped",
                f"{report.score['centred_cosine']:.2f}" if "centred_cosine" in report.score else "",
                f"{report.n_known:,}",
                f"{report.n_unknown:,}",
                printable(report.why),
            ]
            for report in self
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
    twins = twins_of(embedding, is_known)
    folds = list(
        hidden_folds(is_known, n_folds=N_FOLDS, seed=seed, enough=ENOUGH_HIDDEN, twins=twins)
    )
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
    unjudged, judged_reports, scores = [], [], []
    for number, member in enumerate(kin):
        known = is_known[member.rows]
        blank = SourceReport(
            member.name, False, "", int(known.sum()), int((~known).sum()), variant=number
        )
        if member.is_leaking:
            return replace(blank, why=LEAKS)
        # Guesses were learnt on other words of the file. No hidden row is needed to choose how.
        if member.is_guess:
            return replace(blank, has_signal=True, predictor=Guessed())
        if known.sum() < FEWEST_KNOWN:
            described = count(blank.n_known, "known entity")
            why = f"it describes only {described}, and {FEWEST_KNOWN} are needed"
            unjudged.append(replace(blank, why=why))
            continue
        member_options = {**options, "goal": of_rows(options["goal"], member.rows)}
        choice = choose(member.space, embedding[member.rows], known, **member_options)
        # The best of several ways may be the luckiest one.
        choice = replace(choice, p_value=min(1.0, choice.p_value * len(kin)))
        why = "" if choice.has_signal else "it carries no signal about the embedding"
        report = replace(
            blank,
            has_signal=choice.has_signal,
            score=choice.honest.means(),
            predictor=choice.predictor,
            why=why,
            p_value=choice.p_value,
        )
        judged_reports.append(report)
        scores.append(choice.honest)
    if not scores:
        return unjudged[0]
    return judged_reports[int(np.argmax(total_score(scores, options["goal"])))]


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
    # Sources without a signal would add noise beside others; alone, they are all there is.
    predictors = [
        report.predictor if report.has_signal or not has_signal else None for report in reports
    ]
    useful = [place for place, predictor in enumerate(predictors) if predictor is not None]
    fewer = FewerDims.of(embedding, is_known)
    unseen = out_of_fold(space, predictors, embedding, is_known, folds, fewer, words, goal)
    helpful = _helpful(unseen, useful, space.presence[~is_known], goal)
    predictor = _fused(space, predictors, helpful, unseen)
    weights = predictor.weights_of(space.presence)
    presence = space.presence[~is_known][:, helpful]
    shares = unseen.shares(weights[np.flatnonzero(is_known)[unseen.place]])
    outcomes = tuple(
        _with_outcome(
            replace(report, share=float(shares[place])),
            place in helpful,
            weights[member.is_present & ~is_known, place],
            int((member.is_present[~is_known] & (presence.sum(axis=1) == 1)).sum()),
        )
        for place, (report, member) in enumerate(zip(reports, space.members, strict=True))
    )
    alone = [report for report in reports if report.predictor is not None]
    return Choice(
        predictor,
        tuple(report.predictor for report in alone if report.predictor is not None),
        tuple(report.score for report in alone),
        unseen.scores(helpful),
        _any_p_value(reports, has_signal=has_signal),
        unseen.stretch(helpful),
        outcomes,
    )


def _any_p_value(reports: Sequence[SourceReport], *, has_signal: bool) -> float:
    """Return how likely chance alone would tie the vectors to any of the sources as it does.

    Each source is tested by itself: fused predictions of hidden rows predict one another.
    """
    p_values = [report.p_value for report in reports if report.p_value is not None]
    # Among many sources, one is often lucky.
    p_value = min(1.0, len(p_values) * min(p_values, default=1.0))
    # If none has a signal alone, fitted weights must not make one up.
    return p_value if has_signal else max(p_value, CHANCE)


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
    leading, second = (rare, usual) if is_most else (usual, rare)
    # A source stays if either kind of rows needs it.
    pairs = zip(fused.members, of_rare.members, strict=True)
    members = tuple(plain or of_block for plain, of_block in pairs)
    is_used = np.array([member is not None for member in members], np.bool_)
    presence = space.of_variants(fused.variants).presence
    presence_of_used = presence & is_used
    weights = {}
    for pattern in sorted({tuple(row) for row in presence_of_used.tolist()}):
        rows = ~is_known & (presence_of_used == pattern).all(axis=1)
        is_rare = 2 * (rows & may_be_rare).sum() > rows.sum() if rows.any() else is_most
        chosen = of_rare if is_rare else fused
        weights[pattern] = tuple(chosen.weights_of_pattern(pattern).tolist())
    predictor = replace(fused, members=members, weights=tuple(weights.items()))
    means = _mean_weights(predictor, presence[~is_known])
    sources = tuple(
        replace(report if report.is_kept else second_report, weight=float(weight))
        for report, second_report, weight in zip(
            leading.sources, second.sources, means, strict=True
        )
    )
    return replace(leading, predictor=predictor, sources=sources)


def _mean_weights(predictor: Fused, presence: np.ndarray) -> np.ndarray:
    """Return the mean weight of each source over the rows that it describes."""
    weights = np.where(presence, predictor.weights_of(presence), 0.0)
    return weights.sum(axis=0) / np.maximum(presence.sum(axis=0), 1)


def _with_outcome(
    report: SourceReport, is_kept: bool, weights: np.ndarray, n_alone: int
) -> SourceReport:
    """Return a report that says what became of the source; it alone describes `n_alone` rows."""
    why = report.why
    if report.has_signal and is_kept:
        alone = f"only it describes {count(n_alone, 'entity')}"
        why = alone if n_alone else "it helps hidden entities"
    elif report.has_signal:
        why = "hidden entities do as well without it"
    weight = float(weights.mean()) if weights.size else 0.0
    return replace(report, is_kept=is_kept, weight=weight, why=why)


def _helpful(
    unseen: OutOfFold, useful: Sequence[int], presence: np.ndarray, goal: str
) -> list[int]:
    """Return the sources without which hidden rows come back worse, or unknown rows not at all."""
    sources = list(useful)
    while len(sources) > 1:
        # A source that repeats another is still needed by the rows that only it describes.
        n_described = int(presence[:, sources].any(axis=1).sum())
        # A guess that no hidden row can judge stays: other words of the file have proved it.
        droppable = [
            place for place in sources if unseen.can_be_judged(place) or not unseen.is_guess[place]
        ]
        fewer = [[source for source in sources if source != left_out] for left_out in droppable]
        fewer = [source for source in fewer if presence[:, source].any(axis=1).sum() == n_described]
        if not fewer:
            break
        totals = total_score([unseen.like_unknown(source) for source in (sources, *fewer)], goal)
        best = int(np.argmax(totals[1:]))
        # Of equals the smaller set is taken: each source must be there again for every new entity.
        if totals[1 + best] < totals[0]:
            break
        sources = fewer[best]
    return sources


def _fused(
    space: SourcesSpace,
    predictors: Sequence[Predictor | None],
    kept_sources: Sequence[int],
    unseen: OutOfFold,
) -> Fused:
    everyone = np.arange(len(unseen.truth))
    # New rows are not read in sources that were dropped, so these tell no rows apart.
    is_kept = np.isin(np.arange(len(predictors)), kept_sources)
    patterns = sorted({tuple(row) for row in (space.presence & is_kept).tolist()})
    weights = tuple(
        (pattern, tuple(unseen.weights(pattern, kept_sources, everyone).tolist()))
        for pattern in patterns
    )
    members = tuple(
        predictor if place in kept_sources else None for place, predictor in enumerate(predictors)
    )
    return Fused(space.names, space.which, members, weights)


def _refuse_without_known(reports: Sequence[SourceReport]) -> None:
    """Refuse if no source describes enough known entities to learn from."""
    if all(report.predictor in (None, Guessed()) for report in reports):
        reasons = "; ".join(f"{report.name}: {report.why}" for report in reports)
        raise InputError(
            f"No source describes enough known entities to learn from ({reasons}). Check that the "
            "sources and the embedding use the same names."
        )
