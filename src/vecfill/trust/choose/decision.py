"""How to impute, decided on hidden known rows that are like the unknown ones.

Unknown entities are mostly rarer than the known ones, and vectors carry their frequency. So two
more things are decided beside the predictor: whether the unknown rows look rarer than the known
ones, and whether the offset of rare entities (see `vecfill.model.offset`) helps the rarest known
rows when they are hidden as one block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import OptionError
from vecfill.inputs.rarity import Rarity
from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule, Offsets, without
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.stretch import Stretch, stretch_of
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.choice import Choice, choose
from vecfill.trust.choose.folds import Fold, rarest_block
from vecfill.trust.choose.fusion import choose_sources, for_rare, weighed
from vecfill.trust.choose.rareness import MOST_ODDS, has_own, odds_of_rare
from vecfill.trust.choose.recommending import audience_for
from vecfill.trust.choose.scores import Judge, RowScores, has_collapsed, total_rows
from vecfill.trust.choose.twins import twins_of

# From decision 14, as `CLEAR` is.
BLOCK = 1 / 3
"""Share of the known rows, the rarest, that are hidden as one block."""

# A guess: twenty hidden rows at least.
FEWEST_FOR_BLOCK = 60
"""Known rows below which a third of them proves nothing."""

# From decision 29: seven assumed rarities, of which the least that is level is taken.
BEYOND = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""How much rarer than the rarest known row an unknown row may be taken to be."""

DEGREES = {1: max(BEYOND), 2: 0.5}
"""Curves through known rows, tried where there is no larger vocabulary, and how far beyond the
rarest known row each may be followed: a parabola soon leads astray."""

# From decision 25, as `SURE` is.
RARE = 1.5
"""Odds from which on unknown rows are taken to be rare. An offset that is not theirs does harm, so
the table must say something in favour of it."""

# A guess: each costs a ranking of the block.
N_FACTORS = 7
"""Lengths of the steps beside an offset that are tried."""

CLEAR = 2.0
"""Standard errors that a gain must have."""

SURE = 5.0
"""Odds for or against from which on it is taken as settled whether unknown rows are rare."""


ASSUMED_ODDS: Mapping[str | None, float] = {"rare": MOST_ODDS, "like_known": 1.0 / MOST_ODDS}
"""Odds that unknown rows are rare if the user says so: as sure as the table can ever make it."""

NO_RARITY = "neither counts nor the order of the embedding say how rare the known entities are"
NO_RARE = "every unknown entity is missing for another reason than that it is rare"


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
    odds_of_rare: float | None = None
    """Odds that unknown rows are rarer than known ones; ``None`` if nothing tells."""
    on_block: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)
    """Mean measures of the rarest known rows when they are hidden, without offset (``"none"``),
    with the best (``"offset"``), and with nothing but it, the same for all (``"offset_alone"``)."""
    stretch: Stretch = field(default_factory=Stretch)
    """How much longer steps from the mean are made."""
    too_few_for_rarity: int | None = None
    """Known entities whose rarity is known, if they are too few to learn anything from."""

    @property
    def is_sure(self) -> bool:
        """Whether it is settled which proof speaks for the unknown rows."""
        odds = self.odds_of_rare
        return odds is None or not 1.0 / SURE < odds < SURE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            **self.predictor.to_dict(),
            "offset": None if self.rule is None else self.rule.to_dict(),
            "proof": self.proof,
        }


def decide(
    space: Any,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    asked: Predictor | None = None,
    rarity: Rarity | None = None,
    offset: str = "auto",
    assume: str | None = None,
    words: np.ndarray | None = None,
    goal: str = "balanced",
    candidates: str = "all",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Decision:
    """Return the predictor, and the offset rule if one helps rows like the unknown ones.

    A predictor that was `asked` for is taken as it is: without offset, and not stretched. With
    ``offset="off"`` nothing is moved for rarity. `assume` settles whether unknown rows are rare, as
    users who know it may say. `words` are vectors of other words of the file,
    among which hidden rows are ranked as well.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 3))
    >>> domain, embedding = np.tanh(latent), latent @ rng.normal(size=(3, 5))
    >>> decide(Space(domain), embedding, np.arange(120) < 90).proof
    'random'
    """
    decision = Decision(asked) if asked is not None else None
    if decision is None:
        options = {"goal": goal, "candidates": candidates, "seed": seed, "words": words}
        choose_for = choose_sources if space.is_joint else choose
        choice = choose_for(space, embedding, is_known, **options, progress=progress)
        decision = Decision(choice.predictor, choice, stretch=Stretch(choice.stretch))
    if rarity is None:
        _refuse_rare(assume, NO_RARITY)
        return decision
    candidates_known = rarity.may_be_rare(is_known)
    may_be_rare = rarity.may_be_rare(~is_known)
    if not may_be_rare.any():
        _refuse_rare(assume, NO_RARE)
        return decision
    # With fewer rows the odds would be chance, and the choice is left as it is.
    if (n_candidates := int(candidates_known.sum())) < FEWEST_FOR_BLOCK:
        needed = f"{FEWEST_FOR_BLOCK} known entities are needed, and there are {n_candidates}"
        _refuse_rare(assume, needed)
        return replace(decision, too_few_for_rarity=n_candidates)
    twins = twins_of(embedding, is_known)
    block = rarest_block(is_known, rarity.values, share=BLOCK, among=candidates_known, twins=twins)
    odds = ASSUMED_ODDS.get(assume)
    if odds is None:
        odds = odds_of_rare(space, decision.predictor, rarity.values, is_known, block, may_be_rare)
    is_rare = odds > RARE
    proof = "rarest" if is_rare else "random"
    decision = replace(decision, proof=proof, odds_of_rare=odds)
    if is_rare:
        decision = _weighed_for_rare(
            decision, space, embedding, is_known, may_be_rare, block, goal, words
        )
    if asked is not None or offset == "off":
        return decision
    # With counts every row has an offset of its own, so one is tried even if the unknown rows are
    # not rarer as a whole. Without, only rare rows can gain by it.
    if not (is_rare or has_own(rarity.values, is_known)):
        return decision
    return _with_offset(decision, space, embedding, is_known, rarity, block, goal, words)


def _weighed_for_rare(
    decision: Decision,
    space: Any,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    may_be_rare: KnownMask,
    block: Fold,
    goal: str,
    words: np.ndarray | None,
) -> Decision:
    """Return the decision with sources weighed anew for rare rows, if there are several.

    What a source is worth for rare rows, rare rows must say: the spelling of rare cities misleads,
    though it helps the frequent ones.
    """
    if not space.is_joint or decision.choice is None:
        return decision
    vectors = embedding.astype(np.float64)
    choice = weighed(space, decision.choice.sources, vectors, is_known, [block], goal, words)
    stretch = Stretch(decision.stretch.plain, choice.stretch)
    choice = for_rare(space, decision.choice, choice, is_known, may_be_rare)
    return replace(decision, predictor=choice.predictor, choice=choice, stretch=stretch)


def _refuse_rare(assume: str | None, why: str) -> None:
    """Refuse to take unknown rows for rare where no known rows show what that means."""
    if assume == "rare":
        raise OptionError(
            f"assume='rare' cannot be used here: {why}. Leave it out, or pass counts= to say how "
            "often each entity occurs."
        )


def _with_offset(
    decision: Decision,
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    rarity: Rarity,
    block: Fold,
    goal: str,
    words: np.ndarray | None,
) -> Decision:
    """Return the decision with the offset rule that helps the block, if one does.

    It must help in the whole file too, and may not crowd the vectors together: an offset is the
    same for all, and raises every cosine.
    """
    # 64 bits throughout: small offsets are differences of large vectors.
    vectors = embedding.astype(np.float64)
    rules = rules_for(rarity, is_known)
    trial = _Trial(space, decision.predictor, vectors, is_known, rarity.values, block, words, goal)
    scores_by_rule: dict[Any, RowScores] = {None: trial.plain()}
    # Limits come first: one that crowds must not be chosen and then refused, since another one
    # that is hardly worse need not crowd.
    with_rules = {rule: trial.scored(rule) for rule in rules}
    scores_by_rule |= {
        rule: scores for rule, scores in with_rules.items() if not has_collapsed(scores)
    }
    best = least_within_noise(scores_by_rule, goal)
    if best is None or not is_clearly_better(scores_by_rule[best], scores_by_rule[None]):
        return replace(decision, on_block={"none": scores_by_rule[None].means()})
    # The predictor stays: one chosen anew on what the offset leaves over was no better.
    alone = trial.alone(best)
    scores = {"none": scores_by_rule[None], "offset": scores_by_rule[best], "offset_alone": alone}
    means = {name: row_scores.means() for name, row_scores in scores.items()}
    stretch = Stretch(decision.stretch.plain, trial.stretch(best))
    return replace(decision, rule=best, on_block=means, stretch=stretch)


def least_within_noise(scores_by_rule: dict[Any, RowScores], goal: str) -> Any:
    """Return the best rule, or one that assumes less and is no worse beyond noise.

    Unknown rows can be rarer than the hidden block by less than the block is rarer than the rest:
    a vocabulary ends somewhere. So of rules that are level on the block, the one that goes least
    far is taken.
    """
    names, rows = list(scores_by_rule), total_rows(list(scores_by_rule.values()), goal)
    best = int(np.argmax(rows.mean(axis=1)))
    # No offset assumes least of all, so nothing can be taken in its place.
    if names[best] is None:
        return None
    behind = rows[best] - rows
    is_level = behind.mean(axis=1) <= behind.std(axis=1) / np.sqrt(rows.shape[1])
    # A line and a parabola that go equally far beyond the known rows end in different places, so
    # only rules of one curve are compared by that.
    degree = names[best].degree
    level = [name for name, fits in zip(names, is_level, strict=True) if fits and name is not None]
    return min((rule for rule in level if rule.degree == degree), key=lambda rule: rule.beyond)


def rules_for(rarity: Rarity, is_known: KnownMask) -> list[OffsetRule]:
    """Return the offset rules to try: own rarities where there are counts, else several guesses."""
    uses_own = has_own(rarity.values, is_known)
    beyonds = (0.0,) if uses_own else BEYOND
    if rarity.vocabulary is not None:
        words = rarity.vocabulary
        curve = Curve(words.rarity, words.means, words.spreads)
        return [
            OffsetRule(beyond, uses_own=uses_own, curve=curve, spares_several=rarity.spares_several)
            for beyond in beyonds
        ]
    return [
        OffsetRule(beyond, uses_own=uses_own, degree=degree, spares_several=rarity.spares_several)
        for degree, reach in DEGREES.items()
        for beyond in beyonds
        if beyond <= reach
    ]


class _Trial:
    """The rarest known rows, hidden as a block and imputed with and without offsets."""

    def __init__(
        self,
        space: Space,
        predictor: Predictor,
        vectors: np.ndarray,
        is_known: KnownMask,
        rarity: np.ndarray,
        block: Fold,
        words: np.ndarray | None,
        goal: str = "balanced",
    ) -> None:
        self.space = space
        self.predictor = predictor
        self.vectors = vectors
        self.rarity = rarity
        self.block = block
        self.seen_rows = KnownRows(vectors, block.is_seen)
        audience = audience_for(goal, vectors, [block])
        self.judge = Judge(vectors[is_known], self.seen_rows.known.mean(axis=0), words, audience)
        self._steps: dict[int, np.ndarray] = {}
        self._factors: dict[OffsetRule, float] = {}

    def plain(self) -> RowScores:
        """Return the scores without an offset."""
        prediction = self.predictor.predict(
            self.space, self.seen_rows, Unknown(self.block.places), tol=1e-4
        )
        return self.judge.scored(prediction.vectors, self.block.truth)

    def scored(self, rule: OffsetRule) -> RowScores:
        """Return the scores with an offset, the steps beside it stretched as they will be."""
        start, steps = self._parts(rule)
        return self.judge.scored(start + self.stretch(rule) * steps, self.block.truth)

    def alone(self, rule: OffsetRule) -> RowScores:
        """Return the scores if every row gets its offset and nothing else."""
        start, _ = self._parts(rule)
        return self.judge.scored(start, self.block.truth)

    def stretch(self, rule: OffsetRule) -> float:
        """Return how much longer steps beside the offset are best made.

        Unlike without an offset, their length decides about ranks. So of lengths up to that with
        which the rows are as spread as the truth, the longest is taken that is no worse than the
        best beyond noise.
        """
        start, steps = self._parts(rule)
        if rule not in self._factors:
            # Shorter than predicted is not tried: predictions lie too near to the mean, never too
            # far.
            truth = self.vectors[self.block.hidden]
            longest = stretch_of(start, steps, truth)
            factors = np.linspace(1.0, longest, N_FACTORS) if longest > 1.0 else np.ones(1)
            scores = [
                self.judge.scored(start + factor * steps, self.block.truth) for factor in factors
            ]
            # Short steps have the best cosines and crowd together. Those that crowd too much are
            # left out before the best is sought: it might be one of them.
            usable = [place for place, score in enumerate(scores) if not has_collapsed(score)]
            usable = usable or [len(scores) - 1]
            rows = total_rows([scores[place] for place in usable], "balanced")
            behind = rows[int(rows.mean(axis=1).argmax())] - rows
            is_level = behind.mean(axis=1) <= CLEAR * behind.std(axis=1) / np.sqrt(rows.shape[1])
            self._factors[rule] = float(factors[usable][is_level][-1])
        return self._factors[rule]

    def _parts(self, rule: OffsetRule) -> tuple[np.ndarray, np.ndarray]:
        """Return where the rows start, offset included, and their steps from there."""
        offsets = hidden_offsets(rule, self.rarity, self.seen_rows, self.block)
        seen_rows = without(self.vectors, self.block.is_seen, offsets)
        centre = seen_rows.known.mean(axis=0)
        # What is left of the seen rows depends on the curve, not on how far beyond it rows are
        # taken to lie. So one solution serves all rules of a degree.
        if rule.degree not in self._steps:
            prediction = self.predictor.predict(
                self.space, seen_rows, Unknown(self.block.places), tol=1e-4
            )
            self._steps[rule.degree] = prediction.vectors - centre
        return centre + offsets.unknown[self.block.places], self._steps[rule.degree]


def hidden_offsets(
    rule: OffsetRule, rarity: np.ndarray, known_rows: KnownRows, fold: Fold, *, as_rare: bool = True
) -> Offsets:
    """Return the offsets when a fold is hidden: its rows' own rarities count only with counts."""
    spared = None
    # Nobody knows how rare an unknown row is without its count, so a hidden row must not know.
    if not rule.uses_own:
        rarity = rarity.copy()
        rarity[fold.hidden] = np.nan
        if not as_rare:
            spared = ~fold.is_seen
    return rule.offsets(rarity, known_rows, spared)


def is_clearly_better(scores: RowScores, baseline: RowScores) -> bool:
    """Tell whether cosine or rank gains by more than noise, and nothing loses by more."""
    gains = []
    for measure in ("centred_cosine", "mrr", "agreement"):
        gap = scores.of(measure) - baseline.of(measure)
        # Scores that gain the same on every row have no error: then any gain is clear.
        error = float(gap.std()) / np.sqrt(gap.size) or 1e-300
        gains.append(float(gap.mean()) / error)
    return max(gains) > CLEAR and min(gains) > -CLEAR
