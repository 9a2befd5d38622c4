"""Kinds of entities that are judged apart: a proof on one kind need not hold for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vecfill.inputs.names.siblings import SEVERAL_WORDS
from vecfill.inputs.rarity import has_several_words
from vecfill.trust.prove.confidence import FEWEST_PROVED
from vecfill.trust.prove.hidden import Hidden
from vecfill.wording import count, percent

FEWEST_DIGITS = 100
"""Count from which on it is told without decimals."""


@dataclass(frozen=True)
class Stratum:
    """One kind of entities: how many are unknown, and what is proved about them."""

    name: str
    n_unknown: int
    n_known: int
    n_hidden: int
    """Known rows of this kind that were hidden."""
    centred_cosine: float | None
    """Their mean, net of the constant as confidence is; ``None`` if none was hidden."""
    hits_at_10: float | None
    coverage: float | None
    """Share of them whose centred cosine was at least its bound."""

    @property
    def is_proved(self) -> bool:
        """Whether enough rows of this kind were hidden."""
        return self.n_hidden >= FEWEST_PROVED

    def falls_short_of(self, level: float) -> bool:
        """Tell whether bounds held for clearly fewer rows of this kind than they should.

        Examples
        --------
        >>> Stratum("names of one word", 5, 200, 100, 0.4, 0.2, 0.75).falls_short_of(0.9)
        True
        """
        if not self.is_proved or self.coverage is None:
            return False
        error = np.sqrt(level * (1.0 - level) / self.n_hidden)
        return bool(self.coverage < level - 2.0 * error)

    def __str__(self) -> str:
        if self.is_proved:
            assert self.coverage is not None
            return (
                f"{self.name}: {self.n_unknown:,} unknown; {self.n_hidden:,} hidden known ones "
                f"came back with a centred cosine of {self.centred_cosine:.2f}, bounds held for "
                f"{percent(self.coverage)}"
            )
        who = count(self.n_unknown, "unknown entity has", "unknown entities have")
        return (
            f"Cannot be proved: {who} "
            f"{self.name}, and only {count(self.n_known, 'known one does', 'known ones do')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "is_proved": self.is_proved}


def kind_of_name(name: str) -> str:
    """Return how an entity's name is built, which decides whether a vocabulary has it.

    Examples
    --------
    >>> kind_of_name("Paris"), kind_of_name("Fort_Worth")
    ('names of one word', 'names of several words')
    """
    return str(kinds_of([name])[0])


def kinds_of(names: Sequence[str]) -> np.ndarray:
    """Return the kind of each name."""
    several = has_several_words(names)
    return np.where(several, SEVERAL_WORDS, "names of one word").astype(object)


def kinds_by_count(rarity: np.ndarray, hidden: np.ndarray) -> list[np.ndarray]:
    """Return whether each row was counted more or less often than the middle hidden one.

    `rarity` is minus the logarithm of a count; rows without one have no kind. There are no kinds
    if too few rows were hidden to prove something about both.

    Examples
    --------
    >>> counts = np.repeat([9, 2], 30)
    >>> (kinds,) = kinds_by_count(-np.log(counts), np.arange(60))
    >>> kinds[[0, 59]].tolist()
    ['counts of 5.5 or more', 'counts below 5.5']
    """
    counts = np.exp(-rarity)
    middle = float(np.median(counts[hidden]))
    is_more = counts >= middle
    n_more = int(is_more[hidden].sum())
    if min(n_more, hidden.size - n_more) < FEWEST_PROVED:
        return []
    told = f"{middle:,.0f}" if middle >= FEWEST_DIGITS else f"{middle:.3g}"
    kinds = np.where(is_more, f"counts of {told} or more", f"counts below {told}").astype(object)
    kinds[np.isnan(rarity)] = None
    return [kinds]


def strata_of(
    kinds: np.ndarray, is_known: np.ndarray, hidden: Hidden, is_covered: np.ndarray
) -> tuple[Stratum, ...]:
    """Return a stratum for each kind of rows, the one with most unknown entities first.

    `kinds` has a label for each row; rows without one (``None``) belong to no stratum.
    """
    found = []
    for kind in dict.fromkeys(kinds.tolist()):
        if kind is None:
            continue
        is_kind = kinds == kind
        rows = np.flatnonzero(is_kind[hidden.rows])
        scores = hidden.scores.rows(rows).means() if rows.size else None
        found.append(
            Stratum(
                kind,
                int((is_kind & ~is_known).sum()),
                int((is_kind & is_known).sum()),
                int(rows.size),
                None if scores is None else float(hidden.net[rows].mean()),
                None if scores is None else scores["hits_at_10"],
                None if scores is None else float(is_covered[rows].mean()),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.n_unknown))
