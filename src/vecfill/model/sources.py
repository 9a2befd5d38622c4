"""Several spaces over the same entities, each of which knows only some of them.

A space that consists of one table is its own only member, so what goes through `members` need not
ask how many there are. `stored_parts` and `stored_space` are what a model file holds of either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array, vstack

from vecfill.errors import InputError
from vecfill.inputs.prepared import Domain
from vecfill.model.space import MIN_DEGREES, Member, Rows, Space, WeightsKey, stored_name
from vecfill.model.wanted import SourceRows


class Needs(Protocol):
    """What a predictor needs of a space; see `vecfill.model.predictors.Predictor`."""

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations of rows."""
        ...

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights."""
        ...

    def kernels(self, space: Any) -> tuple[Any, ...]:
        """Return the kernels."""
        ...


class SourcesSpace:
    """The spaces of several sources; a row of the whole may be missing from any of them.

    Parameters
    ----------
    variants
        For each source the ways of turning it into rows, one space each.
    which
        Which variant of each source is used; by default the first.
    kinds
        A label of each row, by which known and unknown rows may differ; by default none.

    Examples
    --------
    >>> facts = Domain(("a", "b"), np.eye(2), ("x", "y"))
    >>> texts = Domain(("b", "c"), np.eye(2), ("x", "y"))
    >>> space = SourcesSpace([[Member("facts", Space.of_domain(facts), np.array([0, 1]), 3)],
    ...                       [Member("texts", Space.of_domain(texts), np.array([1, 2]), 3)]])
    >>> space.presence.astype(int)
    array([[1, 0],
           [1, 1],
           [0, 1]])
    """

    def __init__(
        self,
        variants: Sequence[Sequence[Member]],
        which: Sequence[int] | None = None,
        kinds: Sequence[str] = (),
    ) -> None:
        self.variants = tuple(tuple(kin) for kin in variants)
        self.which = tuple(which or [0] * len(self.variants))
        self.kinds = tuple(kinds)
        chosen = zip(self.variants, self.which, strict=True)
        self.members = tuple(kin[number] for kin, number in chosen)
        self.n_rows = self.members[0].n_all
        self.n_jobs = self.members[0].space.n_jobs

    @classmethod
    def of_sources(
        cls, domain: Domain, *, may_leave_out: bool = True, n_jobs: int | None = None
    ) -> SourcesSpace:
        """Return the space of several sources that were read."""
        # By name: sources list their entities in orders of their own.
        row_of = {name: row for row, name in enumerate(domain.entities)}

        def member(name: str, variant: Domain) -> Member:
            rows = np.array([row_of[entity] for entity in variant.entities], np.int64)
            space = Space.of_domain(variant, may_leave_out=may_leave_out, n_jobs=n_jobs)
            return Member(name, space, rows, len(row_of), variant.is_guess)

        variants = [
            [member(source.name, variant) for variant in source.variants]
            for source in domain.sources
        ]
        return cls(variants, kinds=domain.kinds)

    @property
    def is_joint(self) -> bool:
        """Whether its rows are those of several sources, be it only one of them."""
        return True

    @property
    def n_threads(self) -> int | None:
        """As many threads as `n_jobs` says: one where other processes do the work."""
        return self.members[0].space.n_threads

    @property
    def n_beside(self) -> int | None:
        """Threads for things that each keep threads and memory busy: what is large is a member."""
        return self.n_threads

    def degree(self, min_degree: int) -> int:
        """Return the least degree that the number of rows admits."""
        return min(min_degree, max(1, self.n_rows - 1))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(member.name for member in self.members)

    @cached_property
    def presence(self) -> np.ndarray:
        """(n_rows, n_members) which member describes which row."""
        return np.column_stack([member.is_present for member in self.members])

    def of_variants(self, which: Sequence[int]) -> SourcesSpace:
        """Return the same sources under these variants."""
        is_this = tuple(which) == self.which
        return self if is_this else SourcesSpace(self.variants, which, self.kinds)

    def with_members(self, members: Sequence[Member]) -> SourcesSpace:
        """Return a space of the same kind that consists of other sources, each in one variant."""
        return SourcesSpace([[member] for member in members])

    def new_rows(self, rows: SourceRows) -> SourceRows:
        """Return what `New` holds for rows of its sources that came later."""
        return rows


AnySpace: TypeAlias = Any
"""A `Space` or a `SourcesSpace`: what a model is fitted in. Predictors of one source take the
first, `Fused` the second, and nothing else needs to know."""


def space_of(
    domain: Domain,
    *,
    min_degrees: Sequence[int] = MIN_DEGREES,
    may_leave_out: bool = True,
    n_jobs: int | None = None,
) -> AnySpace:
    """Return the space of a domain: that of its rows, or those of its sources."""
    if domain.is_joint:
        return SourcesSpace.of_sources(domain, may_leave_out=may_leave_out, n_jobs=n_jobs)
    options: dict[str, Any] = {"min_degrees": min_degrees, "may_leave_out": may_leave_out}
    return Space.of_domain(domain, **options, n_jobs=n_jobs)


def extended(space: AnySpace, rows: SourceRows, predictor: Any) -> AnySpace:
    """Return a space with rows of its sources added, those that the predictor uses."""
    members, n_all = [], space.n_rows + rows.n_new
    for number, (member, of_member) in enumerate(predictor.by_source(space)):
        wider, numbers = member.space, member.rows
        # Sources that were dropped stay as they are: nothing is ever asked of them.
        if of_member is not None and number in rows.places:
            wider = longer(wider, rows.rows[number], of_member)
            numbers = np.concatenate([numbers, space.n_rows + rows.places[number]])
        members.append(Member(member.name, wider, numbers, n_all))
    return space.with_members(members)


def longer(space: Space, new_rows: Rows, predictor: Needs) -> Space:
    """Return a space with more rows at its end, each a mix of the rows that were there.

    The rows that were there keep their neighbours.
    """
    if not space.has_vectors:
        raise InputError(
            "keep=True needs a source of features: of entities that are described by distances, "
            "the distances to later ones are not known."
        )
    # Unit, centre and preparations stay those of the fit, or all old kernels would change.
    parts, n_all = parts_of(space, predictor), space.n_rows + new_rows.shape[0]
    for preparation in predictor.preparations:
        prepared = space.prepared_new(preparation, new_rows)
        parts[f"rows {preparation}"] = _stacked(space.prepared(preparation), prepared)
    for key in predictor.weights_keys:
        prepared = space.prepared_new(key.preparation, new_rows)
        mixes, _ = space.mixes_of_new(prepared, key, weight_floor=key.weight_floor)
        halves = [
            csr_array((weights.data, weights.indices, weights.indptr), (weights.shape[0], n_all))
            for weights in (space.weights(key), mixes)
        ]
        parts[f"{stored_name(key)}"] = csr_array(vstack(halves))
    parts["size"] = replace(space.size, n_rows=n_all)
    return Space.stored(parts.__getitem__, n_jobs=space.n_jobs)


def _stacked(rows: Rows, more: Rows) -> Rows:
    if isinstance(rows, np.ndarray):
        return np.vstack([rows, more]).astype(rows.dtype)
    return csr_array(vstack([rows, more]))


def parts_of(space: Space, predictor: Needs | None) -> dict[str, Any]:
    """Return the parts of a space that a predictor needs, by name; without one, the size.

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> list(parts_of(Space(np.eye(3)), LatentSemantic(min_degree=2)))
    ['size', 'rows as_given', 'preparing as_given', 'weights as_given|2|0.0|simplex|0.1']
    """
    parts: dict[str, Any] = {"size": space.size}
    if predictor is None:
        return parts
    for preparation in predictor.preparations:
        parts[f"rows {preparation}"] = space.prepared(preparation)
        if space.has_vectors:
            parts[f"preparing {preparation}"] = space.preparing(preparation)
    parts |= {f"{stored_name(key)}": space.weights(key) for key in predictor.weights_keys}
    for kernel in predictor.kernels(space):
        parts |= kernel.parts()
    return parts


def stored_parts(space: AnySpace, predictor: Any) -> dict[str, Any]:
    """Return what a model file holds of a space, by name; spaces of sources are numbered."""
    sources: list[tuple[Member, Needs | None]] = predictor.by_source(space)
    names = [member.name for member, _ in sources]
    parts: dict[str, Any] = {
        "layout": {"n_spaces": len(sources), "is_joint": space.is_joint, "names": names}
    }
    for number, (member, of_source) in enumerate(sources):
        of_member = parts_of(member.space, of_source)
        parts |= {f"space {number} {name}": part for name, part in of_member.items()}
        # A table describes every row, and its own numbers would only make files larger.
        if space.is_joint:
            parts[f"space {number} members"] = member.rows
    return parts


def stored_space(parts: Mapping[str, Any], n_all: int, *, n_jobs: int | None = None) -> AnySpace:
    """Return the space of a model of so many rows from what its file holds."""
    layout = parts["layout"]
    spaces = [
        Space.stored(lambda name, at=number: parts[f"space {at} {name}"], n_jobs=n_jobs)
        for number in range(layout["n_spaces"])
    ]
    # One source that is weighed is not the same as one table: its weight need not be one.
    if not layout["is_joint"]:
        return spaces[0]
    members = [
        [Member(name, space, parts[f"space {number} members"], n_all)]
        for number, (name, space) in enumerate(zip(layout["names"], spaces, strict=True))
    ]
    return SourcesSpace(members)
