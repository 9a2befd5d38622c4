"""How to impute, decided on hidden known rows that are like the unknown ones.

Unknown entities are mostly rarer than the known ones, and vectors carry their frequency. So two
more things are decided beside the predictor: whether the unknown rows look rarer than the known
ones, and whether the offset of rare entities (see `vecfill.model.offset`) helps the rarest known
rows when they are hidden as one block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.inputs.rarity import Rarity
from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule, Offsets
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.trust.choice import Choice, choose
from vecfill.trust.folds import Fold, rarest_block
from vecfill.trust.scores import RowScores, score_rows, total_score

BLOCK = 1 / 3
"""Share of the known rows, the rarest, that are hidden as one block."""

FEWEST_FOR_BLOCK = 60
"""Known rows below which a third of them proves nothing."""

BEYOND = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""How much rarer than the rarest known row an unknown row may be taken to be."""

DEGREES = {1: max(BEYOND), 2: 0.5}
"""Curves through known rows, tried where there is no larger vocabulary, and how far beyond the
rarest known row each may be followed: a parabola soon leads astray."""

LEAST_SHIFT = 0.1
"""Standard deviations of rarity below which the domain says nothing about rarity."""

RARE_SHIFT = 0.2
"""Unknown rows look rare if they are imputed to be rarer than known ones by this share of what the
hidden block is. Measured shares: about 0 for rows hidden at random, 0.3 to 1 for really unknown
or rare ones."""

CLEAR = 2.0
"""Standard errors that a gain must have."""


@dataclass(frozen=True)
class Decision:
    """How to impute, and which hidden rows speak for the unknown ones."""

    predictor: Predictor
    choice: Choice | None = None
    """How the predictor was chosen; ``None`` if one was asked for."""
    rule: OffsetRule | None = None
    """How the offset of rare entities is found; ``None``: there is none."""
    proof: str = "random"
    """Hidden rows that are like the unknown ones: ``"random"`` or the ``"rarest"``."""
    on_block: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)
    """Mean measures of the rarest known rows, hidden: without offset, and with the best."""


def decide(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    asked: Predictor | None = None,
    rarity: Rarity | None = None,
    goal: str = "balanced",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Decision:
    """Return the predictor, and the offset rule if one helps rows like the unknown ones.

    A predictor that was `asked` for is taken as it is, without offset.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 3))
    >>> domain, embedding = np.tanh(latent), latent @ rng.normal(size=(3, 5))
    >>> decide(Space(domain), embedding, np.arange(120) < 90).proof
    'random'
    """
    choice = None
    if asked is None:
        choice = choose(space, embedding, is_known, goal=goal, seed=seed, progress=progress)
    decision = Decision(asked or choice.predictor, choice)  # pyright: ignore[reportOptionalMemberAccess]
    if rarity is None or is_known.sum() < FEWEST_FOR_BLOCK or is_known.all():
        return decision
    block = rarest_block(is_known, rarity.values, share=BLOCK)
    is_rare = looks_rare(space, decision.predictor, rarity.values, is_known, block)
    decision = replace(decision, proof="rarest" if is_rare else "random")
    if asked is not None or not (is_rare or has_own(rarity.values, is_known)):
        return decision
    return _with_offset(decision, space, embedding, is_known, rarity, block, goal)


def has_own(rarity: np.ndarray, is_known: KnownMask) -> bool:
    """Tell whether most unknown rows have a rarity of their own, from counts."""
    is_told = np.isfinite(rarity[~is_known])
    return bool(is_told.size and is_told.mean() > 0.5)


def looks_rare(
    space: Space, predictor: Predictor, rarity: np.ndarray, is_known: KnownMask, block: Fold
) -> bool:
    """Tell whether the unknown rows look rarer than the known ones.

    The rarity of unknown rows is imputed from that of the known ones, just as vectors are, and
    compared with what comes out for the rarest known rows when they are hidden. Where the domain
    says nothing about rarity they are taken to be rare: that is why they have no vector.
    """
    spread = float(rarity[is_known].std()) or 1.0
    if has_own(rarity, is_known):
        shift = float(np.nanmean(rarity[~is_known]) - rarity[is_known].mean())
        gap = float(rarity[block.hidden].mean() - rarity[block.is_seen].mean())
        return shift > RARE_SHIFT * gap
    gap = _shift(space, predictor, rarity, block.is_seen, block.places)
    # What few rows show may be chance.
    if gap < max(LEAST_SHIFT, CLEAR / np.sqrt(block.hidden.size)) * spread:
        return True
    shift = _shift(space, predictor, rarity, is_known, None)
    return shift > RARE_SHIFT * gap


def _shift(
    space: Space,
    predictor: Predictor,
    rarity: np.ndarray,
    is_seen: KnownMask,
    places: np.ndarray | None,
) -> float:
    """Return how much rarer rows are imputed to be than the seen ones are on average."""
    given = KnownRows(rarity[:, None], is_seen)
    found = predictor.predict(space, given, places=places, tol=1e-4).vectors
    return float(found.mean() - given.known.mean())


def _with_offset(
    decision: Decision,
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    rarity: Rarity,
    block: Fold,
    goal: str,
) -> Decision:
    """Return the decision with the offset rule that helps the block, if one does."""
    # 64 bits throughout: small offsets are differences of large vectors.
    vectors = embedding.astype(np.float64)
    rules = rules_for(rarity, is_known)
    tried = _on_block(space, decision.predictor, vectors, is_known, rarity.values, block, rules)
    totals = total_score(list(tried.values()), goal)
    best = list(tried)[int(np.argmax(totals))]
    if best is None or not is_clearly_better(tried[best], tried[None]):
        return replace(decision, on_block={"none": tried[None].means()})
    # The predictor stays: one chosen anew on what the offset leaves over was no better.
    scores = {"none": tried[None].means(), "offset": tried[best].means()}
    return replace(decision, rule=best, on_block=scores)


def rules_for(rarity: Rarity, is_known: KnownMask) -> list[OffsetRule]:
    """Return the offset rules to try: own rarities where there are counts, else several guesses."""
    uses_own = has_own(rarity.values, is_known)
    beyonds = (0.0,) if uses_own else BEYOND
    if rarity.vocabulary is not None:
        curve = Curve(rarity.vocabulary.rarity, rarity.vocabulary.means)
        return [OffsetRule(beyond, uses_own=uses_own, curve=curve) for beyond in beyonds]
    return [
        OffsetRule(beyond, uses_own=uses_own, degree=degree)
        for degree, most in DEGREES.items()
        for beyond in beyonds
        if beyond <= most
    ]


def _on_block(
    space: Space,
    predictor: Predictor,
    vectors: np.ndarray,
    is_known: KnownMask,
    rarity: np.ndarray,
    block: Fold,
    rules: list[OffsetRule],
) -> dict[Any, RowScores]:
    """Return scores of the hidden block without an offset (`None`) and with each rule."""
    given = KnownRows(vectors, block.is_seen)
    known, centre = vectors[is_known], given.known.mean(axis=0)
    plain = predictor.predict(space, given, places=block.places, tol=1e-4).vectors
    scores: dict[Any, RowScores] = {None: score_rows(plain, block.truth, known, centre)}
    rests: dict[int, np.ndarray] = {}
    for rule in rules:
        offsets = hidden_offsets(rule, rarity, given, block)
        if rule.degree not in rests:
            rest = KnownRows(without(vectors, block.is_seen, offsets), block.is_seen)
            found = predictor.predict(space, rest, places=block.places, tol=1e-4)
            rests[rule.degree] = found.vectors
        moved = rests[rule.degree] + offsets.unknown[block.places]
        scores[rule] = score_rows(moved, block.truth, known, centre)
    return scores


def hidden_offsets(rule: OffsetRule, rarity: np.ndarray, given: KnownRows, fold: Fold) -> Offsets:
    """Return the offsets when a fold is hidden: its rows' own rarities count only with counts."""
    if not rule.uses_own:
        rarity = rarity.copy()
        rarity[fold.hidden] = np.nan
    return rule.offsets(rarity, given)


def without(vectors: np.ndarray, is_seen: KnownMask, offsets: Offsets) -> np.ndarray:
    """Return vectors whose seen rows have lost their offset."""
    rest = vectors.copy()
    rest[is_seen] -= offsets.known
    return rest


def is_clearly_better(one: RowScores, other: RowScores) -> bool:
    """Tell whether cosine or rank gains by more than noise, and neither loses by more."""
    gains = []
    for measure in ("centred_cosine", "mrr"):
        gap = one.of(measure) - other.of(measure)
        error = float(gap.std()) / np.sqrt(gap.size) or 1e-300
        gains.append(float(gap.mean()) / error)
    return max(gains) > CLEAR and min(gains) > -CLEAR
