"""Several spaces over the same entities, each of which knows only some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vecfill.inputs.prepared import Domain
from vecfill.model.known import KnownRows
from vecfill.model.space import Space


@dataclass(frozen=True, eq=False)
class Member:
    """One source as a space, and which rows of the whole it describes."""

    name: str
    space: Space = field(repr=False)
    rows: np.ndarray = field(repr=False)
    """(n_member_rows,) the row in the whole of each of its rows."""
    n_all: int
    """How many rows the whole has."""
    is_guess: bool = False
    """Whether its rows are guesses of the vectors themselves, learnt on other words."""

    @property
    def is_present(self) -> np.ndarray:
        """(n_all,) which rows it describes."""
        found = np.zeros(self.n_all, np.bool_)
        found[self.rows] = True
        return found

    def given(self, given: KnownRows) -> KnownRows:
        """Return what is known of its own rows."""
        return KnownRows(given.embedding[self.rows], given.is_known[self.rows])


class SourcesSpace(Space):
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
    >>> one = Domain(("a", "b"), np.eye(2), ("x", "y"))
    >>> other = Domain(("b", "c"), np.eye(2), ("x", "y"))
    >>> space = SourcesSpace([[Member("one", Space.of_domain(one), np.array([0, 1]), 3)],
    ...                       [Member("other", Space.of_domain(other), np.array([1, 2]), 3)]])
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
        first = self.members[0]
        # It has no rows of its own: they are in the members.
        super().__init__(np.empty((first.n_all, 0)), is_distances=True, n_jobs=first.space.n_jobs)

    @cached_property
    def presence(self) -> np.ndarray:
        """(n_rows, n_members) which member describes which row."""
        return np.column_stack([each.is_present for each in self.members])

    @property
    def is_joint(self) -> bool:
        """Whether its rows are those of several sources."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(each.name for each in self.members)

    def of_variants(self, which: Sequence[int]) -> SourcesSpace:
        """Return the same sources under these variants."""
        return (
            self if tuple(which) == self.which else SourcesSpace(self.variants, which, self.kinds)
        )

    @classmethod
    def of_sources(cls, domain: Domain, *, n_jobs: int | None = None) -> SourcesSpace:
        """Return the space of several sources that were read."""
        place = {name: row for row, name in enumerate(domain.entities)}
        return cls(
            [
                [_member(source.name, each, place, n_jobs) for each in source.variants]
                for source in domain.sources
            ],
            kinds=domain.kinds,
        )


def _member(name: str, domain: Domain, place: dict[str, int], n_jobs: int | None) -> Member:
    rows = np.array([place[entity] for entity in domain.entities], np.int64)
    space = Space.of_domain(domain, n_jobs=n_jobs)
    return Member(name, space, rows, len(place), domain.is_guess)
