"""Kinds of entities that are judged apart: a proof on one kind need not hold for another.

Rows are sorted into kinds in several ways: by how their names are built, by counts, by which
sources describe them, and by whether another form of the name is in the vocabulary. Each way is an
array with a label for every row, ``None`` for rows that have no kind in that respect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from vecfill._types import KnownMask
from vecfill.inputs.alignment import Alignment
from vecfill.inputs.groups import Groups
from vecfill.inputs.names.domains import NAME_SOURCES, NAMES
from vecfill.inputs.names.siblings import SEVERAL_WORDS
from vecfill.inputs.rarity import has_several_words
from vecfill.model.fitted import Model
from vecfill.trust.choose.rareness import has_own
from vecfill.trust.prove.hidden import Hidden
from vecfill.wording import count, percent

FEWEST_PROVED = 30
"""Hidden rows of a kind below which its score proves nothing. A guess: the error of their mean
cosine is then about a fifth of the spread between rows."""

FEWEST_DIGITS = 100
"""Count from which on it is written without decimals."""

Kinds = Sequence[np.ndarray]
"""Ways of sorting rows into kinds: for each, a label of every row, ``None`` if it has no kind."""


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
        # Two standard errors: about one proved kind in forty would be named by chance.
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
        entities = count(self.n_unknown, "unknown entity has", "unknown entities have")
        return (
            f"Cannot be proved: {entities} "
            f"{self.name}, and only {count(self.n_known, 'known one does', 'known ones do')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "is_proved": self.is_proved}


def kinds_of_rows(model: Model, alignment: Alignment, hidden_rows: np.ndarray) -> list[np.ndarray]:
    """Return all ways in which rows are sorted into kinds, a label of each row; names come first.

    Names are first, and then groups if a user named some, because they alone are there for an
    entity that comes later: `Teacher` learns from the first ways only if a caller knows no more.
    """
    rarity = alignment.rarity
    by_count = []
    if rarity is not None and has_own(rarity.values, alignment.is_known):
        by_count = kinds_by_count(rarity.values, hidden_rows)
    groups = alignment.groups
    by_group = [] if groups is None else [kinds_by_group(groups, hidden_rows)]
    names = kinds_of(alignment.domain.entities)
    return [names, *by_group, *by_count, *kinds_by_source(model)]


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
    is_several = has_several_words(names)
    return np.where(is_several, SEVERAL_WORDS, "names of one word").astype(object)


def kinds_by_group(groups: Groups, hidden_rows: np.ndarray) -> np.ndarray:
    """Return the group of each row; groups of which too few rows were hidden are one kind.

    Examples
    --------
    >>> groups = Groups.of("country", ["Peru"] * 30 + ["Chile"])
    >>> kinds_by_group(groups, np.arange(31))[[0, 30]].tolist()
    ['country Peru', 'any other country']
    """
    labels = groups.labels()
    hidden = labels[hidden_rows]
    judged_apart = {
        group for group in set(hidden.tolist()) if (hidden == group).sum() >= FEWEST_PROVED
    }
    return kinds_of_groups(groups, judged_apart)


def kinds_of_groups(groups: Groups, judged_apart: Collection[Any]) -> np.ndarray:
    """Return the group of each row; all that are not judged apart are one kind."""
    labels = groups.labels()
    is_of_others = np.array(
        [label is not None and label not in judged_apart for label in labels], bool
    )
    labels[is_of_others] = groups.of_others
    return labels


def kinds_by_count(rarity: np.ndarray, hidden_rows: np.ndarray) -> list[np.ndarray]:
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
    middle = float(np.median(counts[hidden_rows]))
    is_more = counts >= middle
    n_more = int(is_more[hidden_rows].sum())
    if min(n_more, hidden_rows.size - n_more) < FEWEST_PROVED:
        return []
    limit = f"{middle:,.0f}" if middle >= FEWEST_DIGITS else f"{middle:.3g}"
    kinds = np.where(is_more, f"counts of {limit} or more", f"counts below {limit}").astype(object)
    kinds[np.isnan(rarity)] = None
    return [kinds]


def kinds_by_source(model: Model) -> list[np.ndarray]:
    """Return the kind of each row in two respects; none if there is one source.

    Which of the sources that were kept describe it, if that differs between rows; and whether
    another form of its name is in the vocabulary, if names are a source that was kept. Names of
    several words are a kind of their own elsewhere, so they have none here.
    """
    used_members = [
        member
        for member, predictor in model.predictor.by_source(model.space)
        if predictor is not None
    ]
    # What can be said of a name, by its parts or its letters, its own kinds say.
    members = [
        member for member in used_members if member.name == NAMES or member.name not in NAME_SOURCES
    ]
    sources = [member.name for member in members]
    kinds = _kinds_by_presence(sources, [member.is_present for member in members])
    forms = getattr(model.space, "kinds", ())
    if forms and any(member.name in NAME_SOURCES for member in used_members):
        by_form = np.array(forms, dtype=object)
        by_form[by_form == SEVERAL_WORDS] = None
        kinds.append(by_form)
    return kinds


def _kinds_by_presence(sources: list[str], is_present: list[np.ndarray]) -> list[np.ndarray]:
    """Return by which sources each row is described, in words; none if all rows are alike."""
    patterns = np.column_stack(is_present) if sources else np.empty((0, 0), np.bool_)
    if not (patterns != patterns[:1]).any():
        return []
    kinds = np.empty(len(patterns), dtype=object)
    for pattern in np.unique(patterns, axis=0):
        present = [source for source, is_there in zip(sources, pattern, strict=True) if is_there]
        if present:
            only = " only" if len(present) == 1 else ""
            is_pattern = (patterns == pattern).all(axis=1)
            kinds[is_pattern] = f"a description by {' + '.join(present)}{only}"
    return [kinds]


class Witness(NamedTuple):
    """Hidden rows that speak for some of the unknown ones."""

    hidden: Hidden
    is_covered: np.ndarray
    """(n_hidden,) whether the bound of each held."""
    speaks_for: np.ndarray
    """(n_unknown,) for which unknown rows."""
    suffix: str = ""
    """What is added to the name of a kind if several witnesses speak about it."""


def strata_of(
    kinds: Kinds, is_known: KnownMask, witnesses: Sequence[Witness]
) -> tuple[Stratum, ...]:
    """Return what is proved about each kind by those that speak for it, way by way of sorting.

    Within a way, the kind with most unknown entities is first. If several witnesses speak, each
    names only kinds for which it speaks.
    """
    strata = []
    for labels in kinds:
        for witness in witnesses:
            # An unknown row for which another one speaks must not be counted here as well.
            heard = labels.copy()
            heard[np.flatnonzero(~is_known)[~witness.speaks_for]] = None
            found_strata = [
                _stratum(kind, heard == kind, is_known, witness)
                for kind in dict.fromkeys(heard.tolist())
                if kind is not None
            ]
            strata += sorted(
                (
                    stratum
                    for stratum in found_strata
                    if len(witnesses) == 1 or stratum.n_unknown > 0
                ),
                key=lambda stratum: -stratum.n_unknown,
            )
    return tuple(strata)


def _stratum(kind: str, is_kind: np.ndarray, is_known: KnownMask, witness: Witness) -> Stratum:
    hidden = witness.hidden
    rows = np.flatnonzero(is_kind[hidden.rows])
    n_unknown, n_known = int((is_kind & ~is_known).sum()), int((is_kind & is_known).sum())
    cosine, hits, coverage = None, None, None
    if rows.size:
        cosine = float(hidden.net[rows].mean())
        hits = float(hidden.scores.hits_at_10[rows].mean())
        coverage = float(witness.is_covered[rows].mean())
    return Stratum(
        kind + witness.suffix, n_unknown, n_known, int(rows.size), cosine, hits, coverage
    )
