"""Hidden rows -> how far to trust others: the one way from signals and kinds to confidence.

What can be seen of an imputed row without its truth (do its contributors agree, how many are there,
how well do its neighbours explain it ...) predicts how near the truth it lies. The relation is
learnt on known rows that were hidden, where the truth can be looked up. The rows of the fit, those
that come later and those of datasets all pass through `learn_confidence`.

Kinds of entities differ, so expectation and margin are learnt for each kind of which enough were
hidden. A kind that cannot be proved gets the expectation of the worst one that can, and a bound
that no signal raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.inputs.groups import Groups
from vecfill.inputs.rarity import has_several_words
from vecfill.trust.prove.bounds import MEASURES, Bounded
from vecfill.trust.prove.confidence import Confidence, put_together, reached
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.relation import Relation
from vecfill.trust.prove.strata import Kinds, kinds_of, kinds_of_groups

ENOUGH_HIDDEN = 2000
"""Hidden rows after which another fold would teach no more. A guess: by chance, bounds of level 0.9
hold for 89 to 91 % of that many."""

FEWEST_HIDDEN = 20
"""Hidden rows below which nothing is learnt. A guess: a bound of level 0.9 needs at least nine."""

# From decision 31.
FEW_UNKNOWN = 10
"""Unknown rows of which one still believes half of what raises their mean: it may be chance."""


def learn_confidence(
    hidden: Hidden,
    unknown_signals: np.ndarray,
    *,
    level: float = 0.9,
    proof: str = "random",
    of_hidden: Kinds = (),
    of_unknown: Kinds = (),
    random: Hidden | None = None,
) -> Confidence | None:
    """Return the confidence of unknown rows, learnt on hidden ones; ``None`` if they are too few.

    Kinds of rows are judged apart; `of_hidden` and `of_unknown` label both in the same ways. If the
    hidden rows are a small block, `random` ones say how truths scatter.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> from vecfill.trust.choose.folds import hidden_folds
    >>> from vecfill.trust.prove.hidden import hide_and_impute
    >>> from vecfill.trust.prove.signals import signals
    >>> domain = np.random.default_rng(0).normal(size=(60, 3))
    >>> space, known_rows = Space(domain), KnownRows(domain, np.arange(60) < 50)
    >>> folds = hidden_folds(known_rows.is_known, n_folds=5, seed=0)
    >>> hidden = hide_and_impute(space, domain, known_rows.known, PAPER, folds)
    >>> unknown_signals = signals(known_rows, PAPER.predict(space, known_rows))
    >>> learn_confidence(hidden, unknown_signals).values.round(1)[:3]
    array([1., 1., 1.])
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return None
    is_block = proof == "rarest"
    net, plain = (
        Bounded(hidden, measure, level, of_hidden, is_block=is_block, random=random)
        for measure in MEASURES
    )
    values, lower_bound = net.of(unknown_signals, of_unknown)
    _, plain_lower_bound = plain.of(unknown_signals, of_unknown)
    return Confidence(
        # A line can leave the range where cosines net of the constant mean something.
        np.clip(values, 0.0, 1.0),
        lower_bound,
        plain_lower_bound,
        level,
        np.clip(net.expected, 0.0, 1.0),
        hidden.carried.net,
        net.is_covered,
        proof,
        reached(plain.truth, level),
    )


def excess_of(
    hidden: Hidden, unknown_signals: np.ndarray, drift: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float]:
    """Return by how much signals alone would make unknown rows better than they are.

    Signals tell good rows from bad ones among rows that were imputed alike. But a block is imputed
    from fewer known rows than the unknown ones are, and that alone moves signals: more rows agree,
    or are nearer. Nothing says that rarer rows are better for it, so what signals say about the
    unknown rows as a whole may lower their confidence, but not raise it. Of a few unknown rows a
    part is believed, since they may be better by chance.

    By their `drift` they are worse than the block, and what signals say of that counts towards it.
    """
    n_unknown = len(unknown_signals)
    if hidden.rows.size < FEWEST_HIDDEN or not n_unknown:
        return 0.0, 0.0
    excess = []
    for measure, drop in zip(MEASURES, drift, strict=True):
        truth = getattr(hidden.carried, measure)
        relation = Relation(hidden.signals, truth, hidden.fold)
        gain = float(relation.expected_at(unknown_signals).mean() - truth.mean())
        doubted = max(gain, 0.0) * n_unknown / (n_unknown + FEW_UNKNOWN)
        excess.append(doubted + max(drop + min(gain, 0.0), 0.0))
    return excess[0], excess[1]


def expected_of(hidden: Hidden) -> np.ndarray:
    """Return the centred cosine to expect of each hidden row, learnt without its fold."""
    return Relation(hidden.signals, hidden.scores.centred_cosine, hidden.fold).expected


@dataclass(frozen=True, eq=False)
class Teacher:
    """Hidden rows from which the confidence of some unknown rows is learnt."""

    # The names of fields are those in files of models.
    told: Hidden
    kinds: tuple[tuple[str | None, ...], ...]
    """For each way of sorting, the kind of each hidden row; names come first."""
    proof: str
    other: Hidden | None = None
    """Hidden rows of the other proof, whose bounds are not exceeded either."""

    @classmethod
    def of(cls, hidden: Hidden, kinds: Kinds, proof: str, doubt: Hidden | None = None) -> Teacher:
        """Return a teacher that keeps what it teaches from, but no vectors."""
        labels = tuple(tuple(of_rows[hidden.rows].tolist()) for of_rows in kinds)
        return cls(
            hidden.without_vectors(),
            labels,
            proof,
            None if doubt is None else doubt.without_vectors(),
        )

    def confidence(
        self, signals: np.ndarray, kinds: Kinds, level: float, random: Hidden | None = None
    ) -> Confidence | None:
        """Return the confidence of rows with these signals and kinds.

        Kinds may be known in the first ways of sorting only. `random` rows help a small block.
        """
        of_hidden = [np.array(labels, dtype=object) for labels in self.kinds[: len(kinds)]]
        confidence = learn_confidence(
            self.told,
            signals,
            level=level,
            proof=self.proof,
            of_hidden=of_hidden,
            of_unknown=kinds,
            # Random rows would help to judge their own bounds.
            random=random if self.proof == "rarest" else None,
        )
        if confidence is None or self.other is None:
            return confidence
        return confidence.lowered_to(learn_confidence(self.other, signals, level=level))

    def readings(self, signals: np.ndarray) -> dict[str, float]:
        """Return the mean confidence of rows with these signals if they are rare, and if not.

        Empty if only one of both was asked of hidden rows.
        """
        if self.other is None or not len(signals):
            return {}
        names = ("rare", "like_known") if self.proof == "rarest" else ("like_known", "rare")
        learnt = [learn_confidence(hidden, signals) for hidden in (self.told, self.other)]
        return {
            name: float(confidence.values.mean())
            for name, confidence in zip(names, learnt, strict=True)
            if confidence is not None
        }


@dataclass(frozen=True, eq=False)
class Teachers:
    """What teaches confidence, for the rows of the fit and for entities that come later."""

    rare: Teacher | None
    """For rows that may be unknown because they are rare; ``None``: as for the others."""
    plain: Teacher
    level: float
    spares_several: bool = False
    """Whether names of several words are unknown for another reason than rarity."""
    is_void: bool = False
    """Whether hidden rows prove nothing, because the vectors come from a source that leaks."""

    def of_names(
        self, signals: np.ndarray, names: Sequence[str], groups: Groups | None = None
    ) -> Confidence | None:
        """Return the confidence of entities that came later, of which only names are known.

        If a user named groups at the fit, those of the entities are needed as well.
        """
        kinds = [kinds_of(names)]
        if groups is not None:
            groups_apart = {group for group in self.plain.kinds[1] if group != groups.of_others}
            kinds.append(kinds_of_groups(groups, groups_apart))
        may_be_rare = np.ones(len(names), np.bool_)
        if self.spares_several:
            may_be_rare = ~has_several_words(names)
        return self.confidence(signals, kinds, may_be_rare)

    def confidence(
        self, signals: np.ndarray, kinds: Kinds, may_be_rare: np.ndarray
    ) -> Confidence | None:
        """Return the confidence of rows with these signals and kinds."""
        confidence = self._taught(signals, kinds, may_be_rare)
        return confidence.unproved() if self.is_void and confidence is not None else confidence

    def _taught(
        self, signals: np.ndarray, kinds: Kinds, may_be_rare: np.ndarray
    ) -> Confidence | None:
        if self.rare is None:
            return self.plain.confidence(signals, kinds, self.level)
        if may_be_rare.all():
            return self.rare.confidence(signals, kinds, self.level, self.plain.told)
        parts = []
        for rows, teacher in ((may_be_rare, self.rare), (~may_be_rare, self.plain)):
            labels = [of_rows[rows] for of_rows in kinds]
            learnt = teacher.confidence(signals[rows], labels, self.level, self.plain.told)
            parts.append((rows, learnt))
        return put_together(parts)
