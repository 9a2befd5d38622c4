"""What hidden known rows prove about the imputed ones.

Two proofs: rows hidden at random, as everybody does; and the rarest rows hidden as one block, which
is nearer to what unknown entities are. The one that speaks for them teaches the confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill.inputs.alignment import Alignment
from vecfill.inputs.rarity import Rarity, has_several_words
from vecfill.method.engine import parallel_map
from vecfill.model.fitted import Model
from vecfill.trust.choose.choice import FEWEST_KNOWN
from vecfill.trust.choose.decision import BLOCK, CLEAR, Decision, has_own
from vecfill.trust.choose.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.confidence import (
    ENOUGH_HIDDEN,
    Confidence,
    Kinds,
    excess_of,
    expected_of,
    learn_confidence,
    put_together,
    suspicious_rows,
)
from vecfill.trust.prove.hidden import Hidden, Region, drift_of, hide_and_impute
from vecfill.trust.prove.signals import SIGNALS, signals
from vecfill.trust.prove.source_strata import kinds_by_source
from vecfill.trust.prove.strata import Stratum, kinds_by_count, kinds_of, strata_of

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
class Teacher:
    """Hidden rows from which the confidence of some unknown rows is learnt."""

    told: Hidden
    kinds: tuple[tuple[str | None, ...], ...]
    """For each way of sorting, the kind of each hidden row; names come first."""
    proof: str
    other: Hidden | None = None
    """Hidden rows of the other proof, whose bounds are not exceeded either."""

    def confidence(self, seen: np.ndarray, kinds: Kinds, level: float) -> Confidence | None:
        """Return the confidence of rows of which signals and kinds are seen.

        Kinds may be told in the first ways of sorting only.
        """
        of_hidden = [np.array(labels, dtype=object) for labels in self.kinds[: len(kinds)]]
        confidence = learn_confidence(
            self.told,
            seen,
            level=level,
            proof=self.proof,
            of_hidden=of_hidden,
            of_unknown=kinds,
        )
        if confidence is None or self.other is None:
            return confidence
        return confidence.lowered_to(learn_confidence(self.other, seen, level=level))


@dataclass(frozen=True, eq=False)
class Teachers:
    """What teaches confidence, for the rows of the fit and for entities that come later."""

    rare: Teacher | None
    """For rows that may be unknown because they are rare; ``None``: as for the others."""
    plain: Teacher
    level: float
    spares_several: bool = False
    """Whether names of several words are unknown for another reason than rarity."""

    def of_names(self, seen: np.ndarray, names: Sequence[str]) -> Confidence | None:
        """Return the confidence of entities that came later, of which only names are known."""
        may_be_rare = np.ones(len(names), np.bool_)
        if self.spares_several:
            may_be_rare = ~has_several_words(names)
        return self.confidence(seen, [kinds_of(names)], may_be_rare)

    def confidence(
        self, seen: np.ndarray, kinds: Kinds, may_be_rare: np.ndarray
    ) -> Confidence | None:
        """Return the confidence of rows of which signals and kinds are seen."""
        if self.rare is None:
            return self.plain.confidence(seen, kinds, self.level)
        if may_be_rare.all():
            return self.rare.confidence(seen, kinds, self.level)
        parts = [
            (rows, teacher.confidence(seen[rows], [each[rows] for each in kinds], self.level))
            for rows, teacher in ((may_be_rare, self.rare), (~may_be_rare, self.plain))
        ]
        return put_together(parts)


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
    shown: Hidden | None = field(default=None, repr=False)
    """The hidden rows that speak, with the vectors that were imputed for them."""

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
        lambda: _hidden(model, alignment, decision, folds, as_rare=False),
        lambda: _seen(model),
    ]
    of_random, seen = parallel_map(lambda step: step(), steps, n_jobs=model.space.n_beside)
    hidden: dict[str, Hidden] = {"random": of_random}
    may_be_rare = _may_be_rare(alignment, decision)
    if may_be_rare.any() and (decision.proof == "rarest" or not decision.is_sure):
        hidden["rarest"] = _hidden_block(model, alignment, decision, seen[may_be_rare])
    rarest_speaks = decision.proof == "rarest" and may_be_rare.any()
    if rarest_speaks and decision.rule is None:
        # Rare rows may be like any others here, and more of those were hidden.
        rarest_speaks = differs(hidden["rarest"], hidden["random"])
    kinds = _kinds(model, alignment, hidden["rarest" if rarest_speaks else "random"])
    spares_several = alignment.rarity is not None and alignment.rarity.spares_several
    plain = _teacher("random", hidden["random"], kinds)
    teachers = Teachers(None, plain, level, spares_several)
    if rarest_speaks:
        other = None
        if not decision.is_sure:
            # What if the rows are not rare after all, and are imputed as if they were?
            is_moved = decision.rule is not None
            other = (
                _hidden(model, alignment, decision, folds, as_rare=True)
                if is_moved
                else hidden["random"]
            )
        other = None if other is None else replace(other, vectors=None)
        rare = replace(_teacher("rarest", hidden["rarest"], kinds), other=other)
        teachers = replace(teachers, rare=rare)
    elif "rarest" in hidden:
        # They may be rare, so bounds are no higher than rare rows allow.
        rare = replace(teachers.plain, other=replace(hidden["rarest"], vectors=None))
        teachers = replace(teachers, rare=rare)
    of_unknown = [labels[~is_known] for labels in kinds]
    confidence = teachers.confidence(seen, of_unknown, may_be_rare)
    is_mostly_rare = rarest_speaks and 2 * may_be_rare.sum() > may_be_rare.size
    speaks = "rarest" if is_mostly_rare else "random"
    return Proof(
        speaks=speaks,
        scores={name: rows.scores for name, rows in hidden.items()},
        confidence=confidence,
        strata=_strata(alignment, teachers, kinds, may_be_rare, hidden),
        suspicious=_suspicions(alignment, hidden["random"]),
        teachers=None if confidence is None else teachers,
        shown=hidden[speaks],
    )


def _may_be_rare(alignment: Alignment, decision: Decision) -> np.ndarray:
    """Return which unknown rows are treated as rare ones."""
    n_unknown = int((~alignment.is_known).sum())
    if alignment.rarity is None or decision.odds_of_rare is None:
        return np.zeros(n_unknown, np.bool_)
    return alignment.rarity.may_be_rare(~alignment.is_known)[~alignment.is_known]


def _hidden_block(
    model: Model, alignment: Alignment, decision: Decision, seen: np.ndarray
) -> Hidden:
    """Return the rarest known rows, hidden as a block and imputed as rare rows are.

    `seen` are the signals of the unknown rows that are treated so.
    """
    assert alignment.rarity is not None
    rarity = alignment.rarity
    among = rarity.may_be_rare(alignment.is_known)
    block = rarest_block(alignment.is_known, rarity.values, share=BLOCK, among=among)
    is_unknown = rarity.may_be_rare(~alignment.is_known)
    of_hidden, of_unknown = _reaches(rarity, alignment.is_known, is_unknown, block)
    region = _region(model, decision, of_hidden, of_unknown)
    on_block = _hidden(model, alignment, decision, [block], as_rare=True, region=region)
    drift = 0.0, 0.0
    if not has_own(rarity.values, alignment.is_known):
        # With counts, frequent and rare rows are kinds of their own, which shows the same.
        farther = float(of_unknown.mean() - of_hidden.mean())
        drift = drift_of(on_block, rarity.values[block.hidden], farther)
    return replace(on_block, excess=excess_of(on_block, seen, drift))


def _kinds(model: Model, alignment: Alignment, hidden: Hidden) -> list[np.ndarray]:
    """Return the ways in which rows are sorted into kinds, a label of each row."""
    by_count: list[np.ndarray] = []
    if alignment.rarity is not None and has_own(alignment.rarity.values, alignment.is_known):
        by_count = kinds_by_count(alignment.rarity.values, hidden.rows)
    names = kinds_of(alignment.domain.entities)
    return [names, *by_count, *kinds_by_source(model)]


def _teacher(proof: str, hidden: Hidden, kinds: Sequence[np.ndarray]) -> Teacher:
    hidden = replace(hidden, vectors=None)
    return Teacher(hidden, tuple(tuple(labels[hidden.rows].tolist()) for labels in kinds), proof)


def _strata(
    alignment: Alignment,
    teachers: Teachers,
    kinds: Sequence[np.ndarray],
    may_be_rare: np.ndarray,
    hidden: Mapping[str, Hidden],
) -> tuple[Stratum, ...]:
    """Return what is proved about each kind, by the hidden rows that speak for it."""
    is_known, strata = alignment.is_known, []
    nothing = [np.empty(0, dtype=object) for _ in kinds]
    no_signals = np.empty((0, hidden["random"].signals.shape[1]))
    by_teacher = [(teachers.plain, ~may_be_rare if teachers.rare else np.ones_like(may_be_rare))]
    if teachers.rare is not None:
        by_teacher.append((teachers.rare, may_be_rare))
    learnt = [
        (teacher.told, rows, teacher.confidence(no_signals, nothing, teachers.level))
        for teacher, rows in by_teacher
        if rows.any() or len(by_teacher) == 1
    ]
    for labels in kinds:
        for told, rows, confidence in learnt:
            if confidence is not None:
                here = labels.copy()
                here[np.flatnonzero(~is_known)[~rows]] = None
                found = strata_of(here, is_known, told, confidence.is_covered)
                if len(learnt) == 1:
                    strata += found
                    continue
                suffix = ", taken for rare" if told is learnt[-1][0] else ""
                strata += [
                    replace(stratum, name=stratum.name + suffix)
                    for stratum in found
                    if stratum.n_unknown
                ]
    return tuple(strata)


def _seen(model: Model) -> np.ndarray:
    """Return the signals of a model's unknown rows."""
    rest = model.as_predicted()
    if not rest.unknown.size:
        return np.empty((0, len(SIGNALS)))
    return signals(rest, replace(model.prediction, vectors=rest.embedding[rest.unknown]))


def differs(one: Hidden, other: Hidden) -> bool:
    """Tell whether hidden rows of two kinds come back with cosines that differ by more than chance.

    Examples
    --------
    >>> ones, half = RowScores(*[np.ones(40)] * 8), RowScores(*[np.linspace(0, 1, 40)] * 8)
    >>> sure, mixed = (Hidden(None, None, None, each, None) for each in (ones, half))
    >>> differs(sure, mixed), differs(mixed, mixed)
    (True, False)
    """
    left, right = one.scores.centred_cosine, other.scores.centred_cosine
    error = np.sqrt(left.var() / left.size + right.var() / right.size)
    return bool(abs(left.mean() - right.mean()) > CLEAR * error)


def _reaches(
    rarity: Rarity, is_known: np.ndarray, is_unknown: np.ndarray, block: Fold
) -> tuple[np.ndarray, np.ndarray]:
    """Return what rarities the hidden and the unknown rows are taken to have: ends, or quantiles.

    With counts, unknown rows have rarities of their own. Without, they begin where the known rows
    end, span as much as the hidden ones, and cannot be rarer than the last word.
    """
    own = rarity.values[is_unknown]
    if has_own(rarity.values, is_known):
        own = np.where(np.isnan(own), rarity.values[is_known].max(), own)
        hidden = np.quantile(rarity.values[block.hidden], QUANTILES)
        return hidden, np.quantile(own, QUANTILES)
    # Names that are missing for another reason may be as rare as any that is hidden.
    low = float(rarity.values[rarity.may_be_rare(block.is_seen)].max())
    high = float(rarity.values[rarity.may_be_rare(is_known)].max())
    last = 2.0 * high - low
    if rarity.vocabulary is not None:
        last = max(high, min(last, float(rarity.vocabulary.rarity[-1])))
    return np.array([low, high]), np.array([high, last])


def _region(
    model: Model, decision: Decision, of_hidden: np.ndarray, of_unknown: np.ndarray
) -> Region | None:
    """Return where the unknown rows are taken to lie, as far as the whole vocabulary tells it.

    A curve through known rows says nothing reliable about rows that are rarer than all of them.
    """
    rule, offsets = decision.rule, model.offsets
    if rule is None or rule.curve is None or offsets is None:
        return None
    is_rare = offsets.is_rare
    if not is_rare.any():
        return None
    plain = model.as_predicted()
    middle = plain.known.mean(axis=0, dtype=np.float64)
    steps = decision.stretch.rare * (plain.embedding[plain.unknown][is_rare] - middle)
    return Region(
        curve=rule.curve,
        middle=middle,
        offset=None if rule.uses_own else offsets.unknown[is_rare][0],
        length=float(np.sqrt((steps**2).sum(axis=1).mean())),
        hidden=of_hidden,
        unknown=of_unknown,
    )


def _hidden(
    model: Model,
    alignment: Alignment,
    decision: Decision,
    folds: Sequence[Fold],
    *,
    as_rare: bool,
    region: Region | None = None,
) -> Hidden:
    """Return hidden rows imputed as the unknown ones are, rare ones or the others."""
    rarity = None if alignment.rarity is None else alignment.rarity.values
    vectors, known = alignment.embedding, alignment.embedding[alignment.is_known]
    rule = decision.rule
    has_offset = rule is not None and (as_rare or rule.uses_own)
    return hide_and_impute(
        model.space,
        vectors,
        known,
        model.predictor,
        folds,
        rule=rule,
        as_rare=as_rare,
        rarity=rarity,
        region=region,
        factor=decision.stretch.rare if has_offset else decision.stretch.plain,
    )


def _suspicions(alignment: Alignment, hidden: Hidden) -> tuple[Suspicion, ...]:
    words, found = alignment.matches.words, []
    places = suspicious_rows(hidden)
    expected = expected_of(hidden) if places.size else np.empty(0)
    for place in places:
        entity = alignment.domain.entities[hidden.rows[place]]
        cosine = float(hidden.scores.centred_cosine[place])
        found.append(Suspicion(entity, words[entity], cosine, float(expected[place])))
    return tuple(found)
