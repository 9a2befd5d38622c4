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
from vecfill.method.engine import parallel_map
from vecfill.model.fitted import Model
from vecfill.trust.choose.choice import FEWEST_KNOWN
from vecfill.trust.choose.decision import BLOCK, CLEAR, Decision
from vecfill.trust.choose.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.choose.rareness import has_own
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.hidden import (
    Asked,
    Hidden,
    Region,
    drift_of,
    hide_and_impute,
    reaches,
    region_of,
)
from vecfill.trust.prove.learning import (
    ENOUGH_HIDDEN,
    FEWEST_HIDDEN,
    Teacher,
    Teachers,
    excess_of,
    expected_of,
)
from vecfill.trust.prove.lessons import Lessons
from vecfill.trust.prove.limits import AskedOf, Limits, ToCome, limits_of
from vecfill.trust.prove.signals import SIGNALS, signals
from vecfill.trust.prove.strata import (
    Kinds,
    Stratum,
    Witness,
    kinds_of_rows,
    strata_of,
)

N_FOLDS = 5
"""Folds of random rows: four fifths of the known rows stay, so hidden ones are little worse off
than unknown ones. The usual number; a guess."""


ODD = 2.0
"""Robust deviations below what rows like it reach, from which on a known row is suspicious. A
guess: one row in forty of a bell curve, so rows must have little likeness at all, too."""


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
    readings: Mapping[str, float] = field(default_factory=dict)
    """Mean confidence of the unknown rows that may be rare if they are (``"rare"``) and if not
    (``"like_known"``); empty if that is settled."""
    teachers: Teachers | None = field(default=None, repr=False)
    """From what the confidence of further entities can be learnt."""
    to_come: ToCome | None = field(default=None, repr=False)
    """What can be learnt for entities to come."""
    gaps: np.ndarray | None = field(default=None, repr=False)
    """(n_rows, n_facts) which facts each row lacks."""
    unusual: dict[int, str] = field(default_factory=dict)
    """Why hidden rows teach nothing of some unknown ones, by place among the unknown."""
    shown: Hidden | None = field(default=None, repr=False)
    """The hidden rows that speak, with the vectors that were imputed for them."""

    @property
    def lessons(self) -> Lessons | None:
        """What teaches the confidence of entities that lack facts, learnt when first asked for."""
        return None if self.to_come is None else self.to_come.lessons

    @property
    def heldout(self) -> RowScores | None:
        """Scores of the hidden rows that speak for the unknown entities."""
        return self.scores.get(self.speaks)

    @property
    def tenths(self) -> list[dict[str, float]]:
        """Tenths of the hidden rows by expectation: what came out, and the share of bounds held.

        With `strata` it says whether bounds hold given something, not only on average.
        """
        return [] if self.confidence is None else self.confidence.groups()

    def is_beyond(self, is_known: np.ndarray) -> np.ndarray:
        """(n_rows,) which rows are unlike all that were hidden."""
        is_beyond = np.zeros(is_known.size, np.bool_)
        is_beyond[np.flatnonzero(~is_known)[list(self.unusual)]] = True
        return is_beyond

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "speaks": self.speaks,
            "scores": {name: scores.means() for name, scores in self.scores.items()},
            "strata": [stratum.to_dict() for stratum in self.strata],
            "tenths": self.tenths,
            "readings": dict(self.readings),
        }


def prove(
    model: Model,
    alignment: Alignment,
    decision: Decision,
    *,
    level: float,
    seed: int,
    is_void: bool = False,
) -> Proof:
    """Return what hiding known rows proves about a model's imputed rows.

    It `is_void` if the vectors come from a source that holds the answer for known rows alone.
    """
    if alignment.n_known < FEWEST_KNOWN:
        return Proof()
    # What is learnt later keeps the alignment, and must not keep the whole file with it.
    alignment = replace(alignment, vocabulary=None)
    hiding = _Hiding(model, alignment, decision, seed)
    # Neither needs the other, and each has steps that are work for one thread only.
    steps: list[Callable[[], Any]] = [
        lambda: hiding.random_rows(as_rare=False),
        lambda: signals_of_unknown(model),
    ]
    random, unknown_signals = parallel_map(lambda step: step(), steps, n_jobs=model.space.n_beside)
    hidden: dict[str, Hidden] = {"random": random}
    may_be_rare = _may_be_rare(alignment, decision)
    if may_be_rare.any() and (decision.proof == "rarest" or not decision.is_sure):
        hidden["rarest"] = hiding.rarest_rows(unknown_signals[may_be_rare])
    rarest_speaks = bool(decision.proof == "rarest" and may_be_rare.any())
    if rarest_speaks and decision.rule is None:
        # Rare rows may be like any others here, and more of those were hidden.
        rarest_speaks = differs(hidden["rarest"], random)
    kinds = kinds_of_rows(model, alignment, hidden["rarest" if rarest_speaks else "random"].rows)
    teachers = Teachers(
        _rare_teacher(hiding, hidden, kinds, rarest_speaks=rarest_speaks),
        Teacher.of(random, kinds, "random"),
        level,
        alignment.rarity is not None and alignment.rarity.spares_several,
        is_void,
    )
    of_unknown = [labels[~alignment.is_known] for labels in kinds]
    confidence = teachers.confidence(unknown_signals, of_unknown, may_be_rare)
    readings: dict[str, float] = {}
    if teachers.rare is not None and not decision.is_sure:
        readings = teachers.rare.readings(unknown_signals[may_be_rare])
    limits = Limits(None, None, {}, confidence)
    if confidence is not None and not is_void:
        asked = AskedOf(model, alignment, hiding.folds, random, unknown_signals, kinds)
        limits = limits_of(asked, teachers, confidence, hiding.instead, hiding.block, seed=seed)
    is_mostly_rare = rarest_speaks and 2 * may_be_rare.sum() > may_be_rare.size
    speaks = "rarest" if is_mostly_rare else "random"
    return Proof(
        speaks=speaks,
        scores={name: rows.scores for name, rows in hidden.items()},
        confidence=limits.confidence,
        strata=strata_of(kinds, alignment.is_known, _witnesses(teachers, kinds, may_be_rare)),
        suspicious=_suspicions(alignment, random),
        readings=readings,
        teachers=None if confidence is None else teachers,
        to_come=limits.to_come,
        gaps=limits.gaps,
        unusual=limits.unusual,
        shown=hidden[speaks],
    )


def _may_be_rare(alignment: Alignment, decision: Decision) -> np.ndarray:
    """Return which unknown rows are treated as rare ones."""
    n_unknown = int((~alignment.is_known).sum())
    if alignment.rarity is None or decision.odds_of_rare is None:
        return np.zeros(n_unknown, np.bool_)
    return alignment.rarity.may_be_rare(~alignment.is_known)[~alignment.is_known]


def _rare_teacher(
    hiding: _Hiding, hidden: Mapping[str, Hidden], kinds: Kinds, *, rarest_speaks: bool
) -> Teacher | None:
    """Return what teaches the confidence of rows that may be rare; ``None``: as for the others."""
    random, decision = hidden["random"], hiding.decision
    if not rarest_speaks:
        # They may be rare, so bounds are no higher than rare rows allow.
        rarest = hidden.get("rarest")
        return None if rarest is None else Teacher.of(random, kinds, "random", rarest)
    doubt = None
    if not decision.is_sure:
        # What if the rows are not rare after all, and are imputed as if they were?
        doubt = random if decision.rule is None else hiding.random_rows(as_rare=True)
    return Teacher.of(hidden["rarest"], kinds, "rarest", doubt)


def _witnesses(teachers: Teachers, kinds: Kinds, may_be_rare: np.ndarray) -> list[Witness]:
    """Return the hidden rows from which was learnt, and for which unknown rows they speak."""
    is_plain = np.ones_like(may_be_rare) if teachers.rare is None else ~may_be_rare
    speakers = [(teachers.plain, is_plain, "")]
    if teachers.rare is not None:
        speakers = [speaker for speaker in speakers if is_plain.any()]
        suffix = ", taken for rare" if speakers else ""
        speakers.append((teachers.rare, may_be_rare, suffix))
    # Coverage of hidden rows is the same whatever is unknown, so nothing is asked for.
    no_signals = np.empty((0, teachers.plain.told.signals.shape[1]))
    no_kinds = [np.empty(0, dtype=object) for _ in kinds]
    witnesses = []
    for teacher, rows, suffix in speakers:
        confidence = teacher.confidence(no_signals, no_kinds, teachers.level, teachers.plain.told)
        if confidence is not None:
            witnesses.append(Witness(teacher.told, confidence.is_covered, rows, suffix))
    return witnesses


def signals_of_unknown(model: Model) -> np.ndarray:
    """Return the signals of a model's unknown rows."""
    rows = model.as_predicted()
    if not rows.unknown.size:
        return np.empty((0, len(SIGNALS)))
    # The model's vectors have their offset and are stretched; signals are of what was predicted.
    return signals(rows, replace(model.prediction, vectors=rows.embedding[rows.unknown]))


def differs(hidden: Hidden, other_hidden: Hidden) -> bool:
    """Tell whether hidden rows of two kinds come back with cosines that differ by more than chance.

    Examples
    --------
    >>> ones, half = RowScores(*[np.ones(40)] * 8), RowScores(*[np.linspace(0, 1, 40)] * 8)
    >>> sure, mixed = (Hidden(None, None, None, scores, None) for scores in (ones, half))
    >>> differs(sure, mixed), differs(mixed, sure), differs(mixed, mixed)
    (True, True, False)
    """
    cosine, other_cosine = hidden.scores.centred_cosine, other_hidden.scores.centred_cosine
    error = np.sqrt(cosine.var() / cosine.size + other_cosine.var() / other_cosine.size)
    return bool(abs(cosine.mean() - other_cosine.mean()) > CLEAR * error)


class _Hiding:
    """Known rows hidden and imputed again, as the unknown ones were imputed."""

    def __init__(self, model: Model, alignment: Alignment, decision: Decision, seed: int) -> None:
        self.model = model
        self.alignment = alignment
        self.decision = decision
        n_known = alignment.n_known
        # Large folds would be ranked against all known rows at a cost, and tell no more.
        n_folds = max(min(N_FOLDS, n_known), n_known // ENOUGH_HIDDEN)
        is_known = alignment.is_known
        self.twins = twins_of(alignment.embedding, is_known)
        self.folds = list(
            hidden_folds(
                is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN, twins=self.twins
            )
        )

    def random_rows(self, *, as_rare: bool) -> Hidden:
        """Return random rows, imputed as rare ones are or as the others."""
        return self._imputed(self.folds, as_rare=as_rare)

    def rarest_rows(self, unknown_signals: np.ndarray) -> Hidden:
        """Return the rarest known rows, hidden as a block and imputed as rare rows are.

        `unknown_signals` are those of the unknown rows that are treated so.
        """
        rarity, is_known = self.alignment.rarity, self.alignment.is_known
        assert rarity is not None
        among = rarity.may_be_rare(is_known)
        block = rarest_block(is_known, rarity.values, share=BLOCK, among=among, twins=self.twins)
        is_unknown = rarity.may_be_rare(~is_known)
        of_hidden, of_unknown = reaches(rarity, is_known, is_unknown, block)
        region = region_of(self.model, self.decision, of_hidden, of_unknown)
        hidden = self._imputed([block], as_rare=True, region=region)
        drift = 0.0, 0.0
        if not has_own(rarity.values, is_known):
            # With counts, frequent and rare rows are kinds of their own, which shows the same.
            farther = float(of_unknown.mean() - of_hidden.mean())
            drift = drift_of(hidden, rarity.values[block.hidden], farther)
        return replace(hidden, excess=excess_of(hidden, unknown_signals, drift))

    def instead(self, folds: Sequence[Fold], asked: Callable[[Fold], Asked]) -> Hidden:
        """Return rows that are asked for in the place of random ones."""
        return self._imputed(folds, as_rare=False, asked=asked)

    def block(self, fold: Fold) -> Hidden:
        """Return the rows of one fold, imputed as rows that are not rare."""
        return self._imputed([fold], as_rare=False)

    def _imputed(
        self,
        folds: Sequence[Fold],
        *,
        as_rare: bool,
        region: Region | None = None,
        asked: Callable[[Fold], Asked] | None = None,
    ) -> Hidden:
        rule, stretch = self.decision.rule, self.decision.stretch
        has_offset = rule is not None and (as_rare or rule.uses_own)
        rarity = self.alignment.rarity
        return hide_and_impute(
            self.model.space,
            self.alignment.embedding,
            self.alignment.embedding[self.alignment.is_known],
            self.model.predictor,
            folds,
            rule=rule,
            as_rare=as_rare,
            rarity=None if rarity is None else rarity.values,
            region=region,
            factor=stretch.rare if has_offset else stretch.plain,
            asked=asked,
        )


def suspicious_rows(hidden: Hidden, *, n_most: int = 50) -> np.ndarray:
    """Return places in `hidden` of known rows that their imputation contradicts, worst first.

    Such a row is expected to be imputed well, and yet its own vector points elsewhere: often a
    homonym, such as the verb "reading" for a town.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(60, 3))
    >>> embedding = domain.copy()
    >>> embedding[7] = -5 * domain[7]
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> folds = hidden_folds(np.ones(60, bool), n_folds=5, seed=0)
    >>> hidden = hide_and_impute(Space(domain), embedding, embedding, PAPER, folds)
    >>> 7 in hidden.rows[suspicious_rows(hidden)]
    True
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    centred = hidden.scores.centred_cosine
    surprise = centred - expected_of(hidden)
    # The median of deviations, so that the suspicious rows themselves do not widen the limit; the
    # factor makes it the standard deviation of a bell curve.
    middle = np.median(surprise)
    deviation = 1.4826 * np.median(np.abs(surprise - middle))
    is_odd = (surprise < middle - ODD * deviation) & (centred < 0.5 * np.median(centred))
    places = np.flatnonzero(is_odd)
    return places[np.argsort(surprise[places], kind="stable")][:n_most]


def _suspicions(alignment: Alignment, hidden: Hidden) -> tuple[Suspicion, ...]:
    places = suspicious_rows(hidden)
    if not places.size:
        return ()
    expected, words = expected_of(hidden), alignment.matches.words
    entities = [alignment.domain.entities[row] for row in hidden.rows[places]]
    cosines = hidden.scores.centred_cosine[places].tolist()
    return tuple(
        Suspicion(entity, words[entity], cosine, expectation)
        for entity, cosine, expectation in zip(
            entities, cosines, expected[places].tolist(), strict=True
        )
    )
