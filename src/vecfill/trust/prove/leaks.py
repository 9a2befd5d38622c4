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
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.inputs.prepared import Domain
from vecfill.model.directions import leading_axes, unit
from vecfill.model.predictors import Predictor
from vecfill.model.sources import AnySpace, SourcesSpace
from vecfill.model.space import Member
from vecfill.trust.choose.twins import twins_of
from vecfill.wording import count

# From decision 39, as `APART` is: descriptions of real sets reach 0.48, another embedding 0.73.
RESTORED = 0.8
"""Centred cosine from which on known rows come back better than descriptions restore them."""

APART = 0.25
"""How far from a half the chance must be that an unknown row agrees less than a known one. Honest
sources of real sets reach 0.18, and leaks begin at 0.33."""

CLEAR = 2.0
"""Standard errors by which it must be so far."""

# The others are guesses: enough to tell, few enough to take hundredths of a second.
MOST_ROWS = 1000
MOST_COLUMNS = 1000
MOST_MIXES = 128
ROWS_PER_MIX = 4
MOST_DIMS = 64
MOST_BESIDE = 32
"""Leading directions of every other source that its columns are compared with."""
N_FOLDS = 5
FEWEST_KNOWN = 30
FEWEST_UNKNOWN = 10
RIDGE = 0.05
"""Of standardized columns: keeps covariances of few rows from being singular."""
MOST_NAMED = 5
BLANK = 1e-6
"""Spreads of a column by which values that stand for nothing may differ."""


@dataclass(frozen=True)
class Leak:
    """A source or column that tells known entities from unknown ones, and what that means."""

    source: str
    """Its name, or ``"table"``."""
    kind: str
    """``"answer"``: it has the known vectors in it; ``"apart"``: a column whose values for unknown
    entities are all beyond those of known ones; ``"order"``: a column that numbers the rows;
    ``"twins"``: known entities with the same vector."""
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
                f"Column {names} of {self.source!r} tells all unknown entities from the known "
                "ones: their values lie beyond those of known entities, as dates and numbers of "
                "entries do. What hidden entities prove about it does not hold for unknown ones; "
                "leave it out (ignore=) unless it describes the entities."
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
    rows_of = {member.name: _Rows(member, embedding, is_known) for member in members}
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
        named = rows.named(columns.get(name, ()))
        leaks.append(Leak(name, "answer", named, rows.restored, beside[name], rows.n_unknown))
        del rows_of[name]
    return leaks


def _has_columns(member: Member) -> bool:
    """Tell whether a source has columns that somebody filled in; guesses are learnt elsewhere."""
    return member.space.has_vectors and not member.is_guess and member.space.size.n_features > 0


class _Rows:
    """A sample of the rows of one source, the known ones first."""

    def __init__(self, member: Member, embedding: EmbeddingVectors, is_known: KnownMask) -> None:
        rng = np.random.default_rng(0)
        known = rng.permutation(np.flatnonzero(is_known[member.rows]))[:MOST_ROWS]
        unknown = rng.permutation(np.flatnonzero(~is_known[member.rows]))[:MOST_ROWS]
        self.member, self.n_features = member, member.space.size.n_features
        self.n_known, self.n_unknown = known.size, unknown.size
        self.places = np.r_[known, unknown]
        self.rows = member.rows[self.places]
        self.fold = np.arange(known.size) % N_FOLDS
        self.wide = _columns(member, self.places, MOST_COLUMNS)
        # Of few rows no covariance of many columns can be learnt.
        self.is_wide = member.space.size.n_features > known.size // ROWS_PER_MIX
        n_mixes = int(np.clip(known.size // ROWS_PER_MIX, N_FOLDS, MOST_MIXES))
        self.columns = _columns(member, self.places, n_mixes)
        vectors = embedding[self.rows[: known.size]].astype(np.float64)
        vectors -= vectors.mean(axis=0) if len(vectors) else 0.0
        if vectors.shape[1] > MOST_DIMS and len(vectors):
            vectors = vectors @ leading_axes(vectors, MOST_DIMS)
        self.vectors = vectors

    @property
    def is_enough(self) -> bool:
        """Whether there are enough rows of both kinds to tell."""
        return self.n_known >= FEWEST_KNOWN and self.n_unknown >= FEWEST_UNKNOWN

    @cached_property
    def restored(self) -> float:
        """Mean centred cosine of known rows that a ridge regression has not seen."""
        cosines = np.empty(self.n_known)
        for number in range(N_FOLDS):
            is_out = self.fold == number
            centre = self.vectors[~is_out].mean(axis=0)
            slopes = self._slopes(~is_out, self.vectors[~is_out] - centre)
            steps = self.wide[: self.n_known][is_out] @ slopes
            truth = self.vectors[is_out] - centre
            cosines[is_out] = (unit(steps) * unit(truth)).sum(axis=1)
        return float(cosines.mean())

    def _slopes(self, is_seen: np.ndarray, steps: np.ndarray) -> np.ndarray:
        columns = self.wide[: self.n_known][is_seen]
        # The same equations by rows, where these are fewer.
        is_wide = columns.shape[1] > len(columns)
        gram = columns @ columns.T if is_wide else columns.T @ columns
        # One in a hundred of the mean length, a guess: what is copied needs no more.
        gram[np.diag_indices_from(gram)] += 0.01 * np.trace(gram) / len(gram) + 1e-300
        if is_wide:
            return columns.T @ np.linalg.solve(gram, steps)
        return np.linalg.solve(gram, columns.T @ steps)

    def agreement(self, beside: Sequence[_Rows]) -> float:
        """Return the chance that an unknown row breaks the pattern more than a known one.

        A row breaks it as far as its columns cannot be told from each other and from the leading
        directions of the sources `beside`. What is told is learnt on known rows, other ones.
        """
        if self._is_blank:
            return 1.0
        parts = [self.columns, *(source_rows.at(self.rows) for source_rows in beside)]
        columns, n_own = np.hstack(parts), self.columns.shape[1]
        of_known, of_unknown = np.empty(self.n_known), np.zeros(self.n_unknown)
        for number in range(N_FOLDS):
            is_seen = np.zeros(len(columns), np.bool_)
            is_seen[: self.n_known] = self.fold != number
            shares = (
                _outside(self.wide, is_seen)
                if self.is_wide
                else _unexplained(columns, n_own, is_seen)
            )
            is_out = self.fold == number
            of_known[is_out] = shares[: self.n_known][is_out]
            of_unknown += shares[self.n_known :] / N_FOLDS
        ranks = rankdata(np.r_[of_known, of_unknown])[self.n_known :]
        pairs = self.n_known * self.n_unknown
        return float((ranks.sum() - self.n_unknown * (self.n_unknown + 1) / 2) / pairs)

    @property
    def _is_blank(self) -> bool:
        """Whether most unknown rows are one row, such as the mean or zeros, and few known ones."""
        middle = np.median(self.columns[self.n_known :], axis=0)
        is_same = np.abs(self.columns - middle).max(axis=1) <= BLANK
        return bool(is_same[self.n_known :].mean() > 0.5 and is_same[: self.n_known].mean() < 0.05)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading directions of this source at rows of the whole; zeros where absent."""
        place_of = np.full(self.member.n_all, -1)
        place_of[self.member.rows] = np.arange(self.member.rows.size)
        places = place_of[rows]
        steps = _columns(self.member, np.maximum(places, 0), MOST_MIXES)
        steps[places < 0] = 0.0
        return steps @ leading_axes(steps, min(MOST_BESIDE, steps.shape[1]))

    def is_apart(self, agreement: float) -> bool:
        """Tell whether unknown rows clearly break the pattern, or have hardly any."""
        return abs(agreement - 0.5) - CLEAR * self._error(agreement) >= APART

    def blame(self, alone: float, beside: float) -> float:
        """Return how likely this source is the one that leaks, by its agreements; no unit."""
        return self.restored * (abs(alone - 0.5) + abs(beside - 0.5))

    def _error(self, agreement: float) -> float:
        """Return the standard error of such a chance, after Hanley and McNeil (1982)."""
        first, second = agreement / (2 - agreement), 2 * agreement**2 / (1 + agreement)
        variance = agreement * (1 - agreement)
        variance += (self.n_unknown - 1) * (first - agreement**2)
        variance += (self.n_known - 1) * (second - agreement**2)
        return float(np.sqrt(max(variance, 0.0) / (self.n_known * self.n_unknown)))

    def named(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns that restore most of the known vectors, if they have names."""
        if not len(columns) == self.wide.shape[1] == self.n_features:
            return ()
        slopes = self._slopes(np.ones(self.n_known, np.bool_), self.vectors)
        order = np.argsort(-(slopes**2).sum(axis=1), kind="stable")[:MOST_NAMED]
        return tuple(columns[place] for place in order)


def _columns(member: Member, places: np.ndarray, n_most: int) -> np.ndarray:
    """Return some rows of a source, standardized; of more than `n_most` columns, random mixes.

    Mixes keep the pattern in which columns agree, and there are few of them.
    """
    columns = member.space.prepared("as_given")[places]
    if (n_columns := columns.shape[1]) > n_most:
        mixes = np.random.default_rng(0).normal(size=(n_columns, n_most))
        columns = columns @ mixes
    dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
    return _standardized(dense.astype(np.float64))


def _standardized(columns: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and spread 1; what is constant is 0."""
    steps = columns - columns.mean(axis=0)
    spread = steps.std(axis=0)
    return np.divide(steps, spread, out=np.zeros_like(steps), where=spread > 1e-9)


def _unexplained(columns: np.ndarray, n_own: int, is_seen: np.ndarray) -> np.ndarray:
    """Return which share of each row's first columns the other columns do not explain.

    What columns explain of each other among the seen rows is in the inverse of their covariance.
    """
    centre, spread = columns[is_seen].mean(axis=0), columns[is_seen].std(axis=0)
    # What does not differ among the seen rows would have no scale.
    steps = np.divide(columns - centre, spread, out=np.zeros_like(columns), where=spread > 1e-9)
    covariance = steps[is_seen].T @ steps[is_seen] / is_seen.sum()
    covariance[np.diag_indices_from(covariance)] += RIDGE
    inverse = np.linalg.inv(covariance)
    gaps = (steps @ inverse[:, :n_own]) / np.diag(inverse)[:n_own]
    lengths = (steps[:, :n_own] ** 2).sum(axis=1)
    return (gaps**2).sum(axis=1) / np.maximum(lengths, 1e-12)


def _outside(columns: np.ndarray, is_seen: np.ndarray) -> np.ndarray:
    """Return which share of each row lies outside the leading directions of the seen rows.

    These hold half of what the seen rows differ in. They can be learnt on fewer rows than there are
    columns, and of rows without a pattern they hold little.
    """
    steps = columns - columns[is_seen].mean(axis=0)
    _, sizes, axes = np.linalg.svd(steps[is_seen], full_matrices=False)
    held = np.cumsum(sizes**2) / np.maximum((sizes**2).sum(), 1e-300)
    inside = steps @ axes[: int(np.searchsorted(held, 0.5)) + 1].T
    return 1.0 - (inside**2).sum(axis=1) / np.maximum((steps**2).sum(axis=1), 1e-12)


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
    leaks = []
    for place in np.flatnonzero(numbers_rows | is_apart):
        # Few values are categories, or tell that something is missing.
        if np.unique(known[:, place]).size < FEWEST_UNKNOWN:
            continue
        kind = "order" if numbers_rows[place] else "apart"
        leaks.append(Leak(member.name, kind, (names[place],), n_entities=len(unknown)))
    return leaks


def _twins(domain: Domain, embedding: EmbeddingVectors, is_known: KnownMask) -> list[Leak]:
    """Return known entities that have the vector of another one, by name."""
    twins = twins_of(embedding, is_known)
    if twins is None:
        return []
    later = np.flatnonzero(twins != np.arange(twins.size))
    examples = [f"{domain.entities[row]} = {domain.entities[twins[row]]}" for row in later[:3]]
    return [Leak("names", "twins", tuple(examples), n_entities=later.size)]
