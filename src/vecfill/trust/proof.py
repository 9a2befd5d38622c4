"""What hidden known rows prove about the imputed ones.

Two proofs: rows hidden at random, as everybody does; and the rarest rows hidden as one block, which
is nearer to what unknown entities are. The one that speaks for them teaches the confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill.inputs.alignment import Alignment
from vecfill.method.engine import parallel_map
from vecfill.model.fitted import Model
from vecfill.model.offset import OffsetRule
from vecfill.trust.choice import FEWEST_KNOWN
from vecfill.trust.confidence import (
    ENOUGH_HIDDEN,
    Confidence,
    excess_of,
    expected_of,
    learn_confidence,
    suspicious_rows,
)
from vecfill.trust.decision import BLOCK, CLEAR, Decision, has_own
from vecfill.trust.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.hidden import Hidden, Region, hide_and_impute
from vecfill.trust.scores import RowScores
from vecfill.trust.signals import SIGNALS, signals
from vecfill.trust.source_strata import kinds_by_source
from vecfill.trust.strata import Stratum, kinds_by_count, kinds_of, strata_of

N_FOLDS = 5

QUANTILES = np.linspace(0.0, 1.0, 11)
"""Of the rarities that hidden and unknown rows have, brought together."""


@dataclass(frozen=True)
class Suspicion:
    """A known entity whose hidden vector its imputation contradicts."""

    entity: str
    word: str
    centred_cosine: float
    """Between its vector and what its neighbours make of it."""
    expected: float
    """What known entities like it reach. The larger the gap, the more suspicious."""


@dataclass(frozen=True, eq=False)
class Teachers:
    """The hidden rows from which confidence is learnt, for entities that come later."""

    told: Hidden
    level: float
    proof: str
    other: Hidden | None
    """Hidden rows of the other proof, whose bounds are not exceeded either."""
    strata: tuple[Stratum, ...]
    kinds: tuple[str, ...]
    """The kind of each hidden row."""

    def confidence(self, seen: np.ndarray, names: Sequence[str]) -> Confidence | None:
        """Return the confidence of rows of which some signals are seen."""
        confidence = learn_confidence(self.told, seen, level=self.level, proof=self.proof)
        if confidence is None:
            return None
        if self.other is not None:
            confidence = confidence.lowered_to(learn_confidence(self.other, seen, level=self.level))
        of_hidden = np.array(self.kinds, dtype=object)
        return _cautious_by_kind(confidence, kinds_of(names), of_hidden, self.strata)


@dataclass(frozen=True, eq=False)
class Proof:
    """Scores of hidden rows, and what they teach about the unknown ones."""

    speaks: str = "random"
    """Which proof speaks for the unknown entities."""
    scores: dict[str, RowScores] = field(default_factory=dict, repr=False)
    """By the way in which rows were hidden: ``"random"``, ``"rarest"``."""
    confidence: Confidence | None = None
    """``None`` if too few entities are known to learn it."""
    strata: tuple[Stratum, ...] = ()
    suspicious: tuple[Suspicion, ...] = ()
    teachers: Teachers | None = field(default=None, repr=False)
    """From what the confidence of further entities can be learnt."""

    @property
    def heldout(self) -> RowScores | None:
        """Scores of the hidden rows that speak for the unknown entities."""
        return self.scores.get(self.speaks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "speaks": self.speaks,
            "scores": {name: scores.means() for name, scores in self.scores.items()},
            "strata": [each.to_dict() for each in self.strata],
        }


def prove(
    model: Model, alignment: Alignment, decision: Decision, *, level: float, seed: int
) -> Proof:
    """Return what hiding known rows proves about a model's imputed rows."""
    is_known = alignment.is_known
    if alignment.n_known < FEWEST_KNOWN:
        return Proof()
    # Large folds would be ranked against all known rows at a cost, and tell no more.
    n_folds = max(min(N_FOLDS, alignment.n_known), alignment.n_known // ENOUGH_HIDDEN)
    folds = list(hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN))
    # Neither needs the other, and each has steps that are work for one thread only.
    steps: list[Callable[[], Any]] = [
        lambda: _hidden(model, alignment, _for_random(decision.rule), folds),
        lambda: _seen(model),
    ]
    of_random, seen = parallel_map(lambda step: step(), steps, n_jobs=model.space.n_beside)
    hidden: dict[str, Hidden] = {"random": of_random}
    if decision.proof == "rarest" or not decision.is_sure:
        assert alignment.rarity is not None
        rarity = alignment.rarity.values
        block = rarest_block(is_known, rarity, share=BLOCK)
        region = _region(model, decision, rarity, block)
        on_block = _hidden(model, alignment, decision.rule, [block], region)
        hidden["rarest"] = replace(on_block, excess=excess_of(on_block, seen))
    speaks = decision.proof
    if (
        speaks == "rarest"
        and decision.rule is None
        and not differs(hidden["rarest"], hidden["random"])
    ):
        # Rare rows are like any others here, and more of those were hidden.
        speaks = "random"
    told = hidden[speaks]
    confidence = learn_confidence(told, seen, level=level, proof=speaks)
    other: Hidden | None = None
    if confidence is not None and not decision.is_sure:
        other = hidden["random" if speaks == "rarest" else "rarest"]
        if decision.rule is not None and speaks == "rarest":
            # What if the unknown rows are not rare after all, and are imputed as if they were?
            other = _hidden(model, alignment, decision.rule, folds)
        confidence = confidence.lowered_to(learn_confidence(other, seen, level=level))
    strata: tuple[Stratum, ...] = ()
    teachers: Teachers | None = None
    if confidence is not None:
        by_name = kinds_of(alignment.domain.entities)
        is_covered = confidence.is_covered
        by_rarity: list[np.ndarray] = []
        if alignment.rarity is not None and has_own(alignment.rarity.values, is_known):
            by_rarity = kinds_by_count(alignment.rarity.values, told.rows)
        for kinds in (by_name, *by_rarity, *kinds_by_source(model)):
            found = strata_of(kinds, is_known, told, is_covered)
            confidence = _cautious_by_kind(confidence, kinds[~is_known], kinds[told.rows], found)
            strata += found
        names_told = tuple(by_name[told.rows].tolist())
        teachers = Teachers(told, level, speaks, other, strata, names_told)
    return Proof(
        speaks=speaks,
        scores={name: each.scores for name, each in hidden.items()},
        confidence=confidence,
        strata=strata,
        suspicious=_suspicions(alignment, hidden["random"]),
        teachers=teachers,
    )


def _seen(model: Model) -> np.ndarray:
    """Return the signals of a model's unknown rows."""
    rest = model.without_offsets()
    if not rest.unknown.size:
        return np.empty((0, len(SIGNALS)))
    return signals(rest, replace(model.prediction, vectors=rest.embedding[rest.unknown]))


def differs(one: Hidden, other: Hidden) -> bool:
    """Tell whether hidden rows of two kinds come back with cosines that differ by more than chance.

    Examples
    --------
    >>> ones, half = RowScores(*[np.ones(40)] * 5), RowScores(*[np.linspace(0, 1, 40)] * 5)
    >>> sure, mixed = (Hidden(None, None, None, each) for each in (ones, half))
    >>> differs(sure, mixed), differs(mixed, mixed)
    (True, False)
    """
    left, right = one.scores.centred_cosine, other.scores.centred_cosine
    error = np.sqrt(left.var() / left.size + right.var() / right.size)
    return bool(abs(left.mean() - right.mean()) > CLEAR * error)


def _for_random(rule: OffsetRule | None) -> OffsetRule | None:
    """Return the rule for rows hidden at random: an assumed rarity is not theirs."""
    return rule if rule is not None and rule.uses_own else None


def _region(model: Model, decision: Decision, rarity: np.ndarray, block: Fold) -> Region | None:
    """Return where the unknown rows are taken to lie, as far as the whole vocabulary tells it.

    With counts they have rarities of their own. Without, they begin where the known rows end, span
    as much as the hidden ones, and cannot be rarer than the last word. A curve through known rows
    says nothing reliable about rows that are rarer than all of them.
    """
    rule, offsets = decision.rule, model.offsets
    if rule is None or rule.curve is None or offsets is None:
        return None
    rest = model.embedding[model.rows.unknown] - offsets.unknown
    low, high = float(rarity[block.is_seen].max()), float(rarity[model.is_known].max())
    if rule.uses_own:
        hidden, unknown = (
            np.quantile(each, QUANTILES) for each in (rarity[block.hidden], offsets.assumed)
        )
    else:
        last = max(high, min(2.0 * high - low, float(rule.curve.rarity[-1])))
        hidden, unknown = np.array([low, high]), np.array([high, last])
    return Region(
        curve=rule.curve,
        centre=model.known.mean(axis=0, dtype=np.float64),
        offset=None if rule.uses_own else offsets.unknown[0],
        length=float(np.sqrt((rest**2).sum(axis=1).mean())),
        hidden=hidden,
        unknown=unknown,
    )


def _hidden(
    model: Model,
    alignment: Alignment,
    rule: OffsetRule | None,
    folds: Sequence[Fold],
    region: Region | None = None,
) -> Hidden:
    rarity = None if alignment.rarity is None else alignment.rarity.values
    vectors, known = alignment.embedding, alignment.embedding[alignment.is_known]
    return hide_and_impute(
        model.space, vectors, known, model.predictor, folds, rule=rule, rarity=rarity, region=region
    )


def _cautious_by_kind(
    confidence: Confidence,
    of_unknown: np.ndarray,
    of_hidden: np.ndarray,
    strata: Sequence[Stratum],
) -> Confidence:
    """Return bounds that are cautious for kinds about which too little is proved.

    A kind that is not proved gets the bound of all hidden rows. One whose bounds held too rarely
    gets that of its own. `of_unknown` and `of_hidden` are the kinds of rows.
    """
    unproved = [each.name for each in strata if not each.is_proved]
    failed = [each.name for each in strata if each.falls_short_of(confidence.level)]
    confidence = cautious(confidence, np.isin(of_unknown, unproved))
    for kind in failed:
        own = confidence.actual[of_hidden == kind]
        confidence = cautious(confidence, of_unknown == kind, own)
    return confidence


def cautious(
    confidence: Confidence, is_unproved: np.ndarray, reached: np.ndarray | None = None
) -> Confidence:
    """Return bounds that no signal raises, for rows of a kind about which nothing is proved.

    Their bound is at most what a share `level` of hidden rows reached, whatever was seen: of all
    of them, or of those whose centred cosines are given as `reached`.
    """
    if not is_unproved.any():
        return confidence
    reached = np.sort(confidence.actual if reached is None else reached)
    place = max(0, int(np.floor((1.0 - confidence.level) * (reached.size + 1))) - 1)
    floor = float(reached[place])
    bound = np.where(is_unproved, np.minimum(confidence.lower_bound, floor), confidence.lower_bound)
    return replace(confidence, lower_bound=bound)


def _suspicions(alignment: Alignment, hidden: Hidden) -> tuple[Suspicion, ...]:
    words, found = alignment.matches.words, []
    places = suspicious_rows(hidden)
    expected = expected_of(hidden) if places.size else np.empty(0)
    for place in places:
        entity = alignment.domain.entities[hidden.rows[place]]
        cosine = float(hidden.scores.centred_cosine[place])
        found.append(Suspicion(entity, words[entity], cosine, float(expected[place])))
    return tuple(found)
