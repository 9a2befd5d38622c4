"""What hidden known rows prove about the imputed ones.

Two proofs: rows hidden at random, as everybody does; and the rarest rows hidden as one block, which
is nearer to what unknown entities are. The one that speaks for them teaches the confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill.inputs.alignment import Alignment
from vecfill.model.fitted import Model
from vecfill.trust.choice import FEWEST_KNOWN
from vecfill.trust.confidence import (
    ENOUGH_HIDDEN,
    Confidence,
    learn_confidence,
    suspicious_rows,
)
from vecfill.trust.decision import BLOCK, Decision
from vecfill.trust.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.hidden import Hidden, hide_and_impute
from vecfill.trust.scores import RowScores
from vecfill.trust.signals import signals
from vecfill.trust.strata import Stratum, cautious_rows, strata_of

N_FOLDS = 5


@dataclass(frozen=True)
class Suspicion:
    """A known entity whose hidden vector its imputation contradicts."""

    entity: str
    word: str
    centred_cosine: float
    """Between its vector and what its neighbours make of it."""


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
    if alignment.n_known < FEWEST_KNOWN or is_known.all():
        return Proof()
    n_folds = min(N_FOLDS, alignment.n_known)
    folds = hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN)
    hidden = {"random": _hidden(model, alignment, decision, list(folds))}
    if decision.proof == "rarest":
        assert alignment.rarity is not None
        block = rarest_block(is_known, alignment.rarity.values, share=BLOCK)
        hidden["rarest"] = _hidden(model, alignment, decision, [block])
    told = hidden[decision.proof]
    rest = model.without_offsets()
    seen = signals(rest, replace(model.prediction, vectors=rest.embedding[rest.unknown]))
    confidence = learn_confidence(told, seen, level=level, proof=decision.proof)
    strata: tuple[Stratum, ...] = ()
    if confidence is not None:
        names = alignment.domain.entities
        strata = strata_of(names, is_known, told, confidence.is_covered)
        confidence = cautious(confidence, cautious_rows(names, is_known, strata))
    return Proof(
        speaks=decision.proof,
        scores={name: each.scores for name, each in hidden.items()},
        confidence=confidence,
        strata=strata,
        suspicious=_suspicions(alignment, hidden["random"]),
    )


def _hidden(
    model: Model, alignment: Alignment, decision: Decision, folds: Sequence[Fold]
) -> Hidden:
    rarity = None if alignment.rarity is None else alignment.rarity.values
    vectors, known = alignment.embedding, alignment.embedding[alignment.is_known]
    return hide_and_impute(
        model.space, vectors, known, model.predictor, folds, rule=decision.rule, rarity=rarity
    )


def cautious(confidence: Confidence, is_unproved: np.ndarray) -> Confidence:
    """Return bounds that no signal raises, for rows of a kind about which nothing is proved.

    Their bound is at most what a share `level` of all hidden rows reached, whatever was seen.
    """
    if not is_unproved.any():
        return confidence
    place = max(0, int(np.floor((1.0 - confidence.level) * (confidence.actual.size + 1))) - 1)
    floor = float(np.sort(confidence.actual)[place])
    bound = np.where(is_unproved, np.minimum(confidence.lower_bound, floor), confidence.lower_bound)
    return replace(confidence, lower_bound=bound)


def _suspicions(alignment: Alignment, hidden: Hidden) -> tuple[Suspicion, ...]:
    words, found = alignment.matches.words, []
    for place in suspicious_rows(hidden):
        entity = alignment.domain.entities[hidden.rows[place]]
        cosine = float(hidden.scores.centred_cosine[place])
        found.append(Suspicion(entity, words[entity], cosine))
    return tuple(found)
