"""Sources that know the answer for known entities and nothing about the unknown ones.

Such a leak passes every test on hidden rows, because hidden rows are known ones. Two things
together give it away: it restores known vectors better than descriptions do, and the unknown rows
break the pattern in which its columns agree with each other, and with the other sources, among the
known rows. A difference between known and unknown rows alone is no leak: rare entities differ
honestly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.inputs.prepared import Domain
from vecfill.model.predictors import Predictor
from vecfill.model.sources import AnySpace, SourcesSpace
from vecfill.model.space import Member
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.prove.pattern import FEWEST_KNOWN, FEWEST_UNKNOWN, SampledRows
from vecfill.wording import count

# From decision 39: descriptions of real sets reach 0.48, another embedding .73.
RESTORED = 0.8
"""Centred cosine from which on known rows come back better than descriptions restore them."""

MOST_NAMED = 5


@dataclass(frozen=True)
class Leak:
    """A source or column that tells known entities from unknown ones, and what that means."""

    source: str
    """Its name, or ``"table"``."""
    kind: str
    """``"answer"``: it has the known vectors in it; ``"apart"``: columns whose values for unknown
    entities are all one, or all beyond those of known ones; ``"order"``: columns that number the
    rows; ``"twins"``: known entities with the same vector."""
    columns: tuple[str, ...] = ()
    """The columns that matter most; or names of twins."""
    restored: float | None = None
    """Centred cosine at which it restores hidden known vectors, by ridge regression."""
    agreement: float | None = None
    """Chance that an unknown row breaks the pattern of the known ones more than one of these does;
    a half where they are alike."""
    n_entities: int = 0
    """How many entities are concerned."""

    @property
    def lowers_trust(self) -> bool:
        """Whether hidden rows prove nothing about unknown ones that are imputed from it."""
        return self.kind == "answer"

    def __str__(self) -> str:
        names = ", ".join(map(repr, self.columns))
        if self.kind == "twins":
            return (
                f"{count(self.n_entities, 'known entity has', 'known entities have')} the vector "
                f"of another one ({names}): such entities are hidden together, so that none gives "
                "the other away. Keep one name of each if they are the same thing."
            )
        if self.kind == "order":
            return (
                f"Column {names} of {self.source!r} numbers the rows. It says where an entity "
                "stands in the table and nothing about it; leave it out (ignore=)."
            )
        if self.kind == "apart":
            return (
                f"Source {self.source!r} tells all unknown entities from the known ones by "
                f"{names}: they have one value there, or values beyond those of known entities, as "
                "dates and numbers of entries do. What hidden entities prove about that does not "
                "hold for unknown ones; leave it out (ignore=) unless it describes the entities."
            )
        assert self.restored is not None
        assert self.agreement is not None
        mostly = f" (mostly by {names})" if names else ""
        apart = max(self.agreement, 1.0 - self.agreement)
        return (
            f"Source {self.source!r} seems to hold the answer for known entities alone. It "
            f"restores hidden vectors with a centred cosine of {self.restored:.2f}{mostly}, and "
            "its rows of unknown entities do not follow the pattern of the known ones: they are "
            f"told apart with a probability of {apart:.2f}. If its values were made from the "
            "embedding, leave it out."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**vars(self), "columns": list(self.columns), "lowers_trust": self.lowers_trust}


def leaks_of(
    space: AnySpace, domain: Domain, embedding: EmbeddingVectors, is_known: KnownMask
) -> tuple[Leak, ...]:
    """Return what gives known entities away, sources that hold the answer first.

    Examples
    --------
    >>> from vecfill.model.space import Space
    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))
    >>> is_known = np.arange(200) < 120
    >>> copied = np.where(is_known[:, None], vectors, rng.normal(size=(200, 6)))
    >>> domain = Domain(tuple(map(str, range(200))), copied, tuple("abcdef"))
    >>> [leak.kind for leak in leaks_of(Space(copied), domain, vectors, is_known)]
    ['answer']
    """
    leaks = []
    if (~is_known).sum() >= FEWEST_UNKNOWN and is_known.sum() >= FEWEST_KNOWN:
        leaks = _answers(space, domain, embedding, is_known)
        for member, source in zip(_members(space), domain.sources, strict=True):
            leaks += _odd_columns(member, source.variants[0].columns, is_known)
    return (*leaks, *_twins(domain, embedding, is_known))


def without_leaks(space: AnySpace, leaks: Sequence[Leak]) -> AnySpace:
    """Return sources of which those that hold the answer are not to be used; if none is left, all.

    One table alone stays as it is, and its confidence is lowered instead.
    """
    leaking = {leak.source for leak in leaks if leak.lowers_trust}
    if not leaking or not space.is_joint:
        return space
    variants = [
        [replace(member, is_leaking=member.name in leaking) for member in kin]
        for kin in space.variants
    ]
    is_left = [not (kin[0].is_leaking or kin[0].is_guess) for kin in variants]
    return SourcesSpace(variants, space.which, space.kinds) if any(is_left) else space


def is_used(leaks: Sequence[Leak], predictor: Predictor, space: AnySpace) -> bool:
    """Tell whether vectors are made from a source that holds the answer."""
    leaking = {leak.source for leak in leaks if leak.lowers_trust}
    if not leaking or not space.is_joint:
        return bool(leaking)
    pairs = predictor.by_source(space)
    return any(member.name in leaking for member, predictor in pairs if predictor is not None)


def _members(space: AnySpace) -> list[Member]:
    """Return the sources of a space, one variant each; a table is its own only one."""
    if space.is_joint:
        return list(space.members)
    return [Member("table", space, np.arange(space.n_rows), space.n_rows)]


def _answers(
    space: AnySpace, domain: Domain, embedding: EmbeddingVectors, is_known: KnownMask
) -> list[Leak]:
    """Return sources that restore known vectors and whose unknown rows break their pattern.

    One after the other, the clearest first: beside a leak an honest source seems to lose its
    pattern too, and must be looked at again without it.
    """
    members = [member for member in _members(space) if _has_columns(member)]
    rows_of = {member.name: SampledRows(member, embedding, is_known) for member in members}
    suspects = {
        name: rows for name, rows in rows_of.items() if rows.is_enough and rows.restored >= RESTORED
    }
    columns = {source.name: source.variants[0].columns for source in domain.sources}
    alone = {name: rows.agreement([]) for name, rows in suspects.items()}
    leaks: list[Leak] = []
    while suspects:
        beside = {
            name: rows.agreement([rows_of[source] for source in rows_of if source != name])
            for name, rows in suspects.items()
        }
        clear = [name for name, rows in suspects.items() if rows.is_apart(beside[name])]
        if not clear:
            break
        # A leak breaks the pattern of an honest source beside it as well, but restores more, and
        # mostly breaks its own.
        name = max(clear, key=lambda name: suspects[name].blame(alone[name], beside[name]))
        rows = suspects.pop(name)
        named = rows.named(columns.get(name, ()), MOST_NAMED)
        leaks.append(Leak(name, "answer", named, rows.restored, beside[name], rows.n_unknown))
        del rows_of[name]
    return leaks


def _has_columns(member: Member) -> bool:
    """Tell whether a source has columns that somebody filled in; guesses are learnt elsewhere."""
    return member.space.has_vectors and not member.is_guess and member.space.size.n_features > 0


def _odd_columns(member: Member, names: tuple[str, ...], is_known: KnownMask) -> list[Leak]:
    """Return columns that number the rows, or whose values of unknown rows are all elsewhere."""
    columns = member.space.prepared("as_given") if _has_columns(member) else None
    if not isinstance(columns, np.ndarray) or len(names) != columns.shape[1]:
        return []
    known, unknown = columns[is_known[member.rows]], columns[~is_known[member.rows]]
    if min(len(known), len(unknown)) < FEWEST_UNKNOWN:
        return []
    steps = np.diff(columns.astype(np.float64), axis=0)
    sizes = np.abs(steps).max(axis=0)
    numbers_rows = (sizes > 0) & (np.abs(steps - steps[0]).max(axis=0) <= 1e-6 * sizes)
    is_apart = (unknown.min(axis=0) > known.max(axis=0)) | (unknown.max(axis=0) < known.min(axis=0))
    is_apart |= np.ptp(unknown, axis=0) == 0
    leaks = []
    for kind, is_odd in (("order", numbers_rows), ("apart", is_apart & ~numbers_rows)):
        # Few values are categories, or tell that something is missing.
        places = [
            place
            for place in np.flatnonzero(is_odd)
            if np.unique(known[:, place]).size >= FEWEST_UNKNOWN
        ]
        if places:
            columns_named = tuple(names[place] for place in places[:MOST_NAMED])
            leaks.append(Leak(member.name, kind, columns_named, n_entities=len(unknown)))
    return leaks


def _twins(domain: Domain, embedding: EmbeddingVectors, is_known: KnownMask) -> list[Leak]:
    """Return known entities that have the vector of another one, by name."""
    twins = twins_of(embedding, is_known)
    if twins is None:
        return []
    later = np.flatnonzero(twins != np.arange(twins.size))
    examples = [f"{domain.entities[row]} = {domain.entities[twins[row]]}" for row in later[:3]]
    return [Leak("names", "twins", tuple(examples), n_entities=later.size)]
