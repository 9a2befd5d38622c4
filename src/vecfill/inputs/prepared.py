"""`Domain`: what every kind of input becomes, and the sources of which it consists.

A *source* is one description of entities: a table, a graph, a text, names. A domain has one to n of
them. Entities may be missing from any source; the domain has every entity that one describes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.wording import count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from vecfill.inputs.later_rows import Reader

DomainKind: TypeAlias = Literal["features", "distances"]
Matrix: TypeAlias = "np.ndarray | csr_array"

TABLE = "table"
"""What the source of a domain that has only one is called in reports."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Entities and their vectors, one row each, with notes on what was done to them.

    Attributes
    ----------
    entities
        Names of the rows.
    vectors
        Dense, or sparse by rows; a square matrix of distances if `kind` is `"distances"`.
    columns
        Names of the columns, `"sector=Energy"` for a category and `"price (missing)"` for an
        indicator.
    kind
        `"features"` or `"distances"`.
    notes
        Plain sentences: what was dropped, imputed or found.
    components
        Of a graph, the number of each node's component, 0 being the largest; otherwise None.
    is_guess
        Whether rows are guesses of what is to be imputed, as steps from its mean.
    links
        Of a large graph, its symmetric matrix of weights: who is joined to whom. It serves where a
        tree of the vectors would cost too much. Otherwise None.
    reader
        How entities that come later are read in the same way, see `vecfill.inputs.later_rows`;
        None if they cannot be.
    members
        The sources of which the domain was put together (`joint`); `vectors` is empty then, and the
        rows are in the sources. Empty if the domain is a description itself.
    kinds
        How the name of each entity relates to the vocabulary; empty if names are no source.

    Examples
    --------
    >>> domain = Domain(("iron", "gold"), np.eye(2), ("x", "y"))
    >>> domain
    Domain(2 entities, 2 columns, kind='features', 0 notes)
    >>> len(domain)
    2
    """

    entities: tuple[str, ...]
    vectors: Matrix
    columns: tuple[str, ...]
    kind: DomainKind = "features"
    notes: tuple[str, ...] = ()
    components: np.ndarray | None = None
    reader: Reader | None = field(default=None, repr=False)
    links: csr_array | None = field(default=None, repr=False)
    is_guess: bool = False
    members: tuple[Source, ...] = ()
    kinds: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.entities)

    def __repr__(self) -> str:
        if self.is_joint:
            names = ", ".join(source.name for source in self.members)
            n_sources = count(len(self.members), "source")
            return f"Domain({count(len(self), 'entity')}, {n_sources}: {names})"
        return (
            f"Domain({count(len(self.entities), 'entity')}, {count(len(self.columns), 'column')}, "
            f"kind={self.kind!r}, {count(len(self.notes), 'note')})"
        )

    @property
    def is_joint(self) -> bool:
        """Whether the domain was put together of sources, be it only one."""
        return bool(self.members)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the domain; what is a description itself is its own only source.

        Examples
        --------
        >>> [source.name for source in Domain(("iron",), np.eye(1), ("x",)).sources]
        ['table']
        """
        return self.members or (Source(TABLE, (self,)),)

    @property
    def is_bare(self) -> bool:
        """Whether the entities have nothing but names.

        Examples
        --------
        >>> Domain(("iron", "tin"), np.empty((2, 0)), ()).is_bare
        True
        """
        return self.vectors.shape[1] == 0

    def cut_off(self, known: set[str]) -> tuple[str, ...]:
        """Return the entities with no path to a known one; empty unless this is a graph.

        Examples
        --------
        >>> parts = np.array([0, 0, 1])
        >>> domain = Domain(("a", "b", "c"), np.eye(3), ("x", "y", "z"), components=parts)
        >>> domain.cut_off({"a"})
        ('c',)
        """
        if self.components is None:
            return ()
        is_known = np.array([name in known for name in self.entities])
        is_reached = np.isin(self.components, self.components[is_known])
        return tuple(compress(self.entities, ~is_reached))


class LateSource(Protocol):
    """A source whose rows depend on the embedding or on other sources.

    A text may be read by the word vectors of the embedding, and a graph describes those of its
    nodes that other sources name: it has `of_others`, which returns it for those names.
    """

    title: ClassVar[str]
    """What it is called in reports if it has no name."""

    @property
    def entities(self) -> tuple[str, ...]:
        """Names of the entities that it describes."""
        ...

    @property
    def variants(self) -> Callable[..., tuple[Domain, ...]]:
        """Function of an embedding, ``words=`` and ``progress=``: the ways to turn it into rows.

        The one that does best on hidden entities is taken. `words` has the word of each known
        entity.
        """
        ...


def is_late(value: Any) -> bool:
    """Tell whether something has no rows before the embedding is there, such as a text."""
    return hasattr(value, "entities") and callable(getattr(value, "variants", None))


@dataclass(frozen=True, eq=False)
class Source:
    """One description of entities, under the name that it has in reports.

    Examples
    --------
    >>> Source("facts", (Domain(("iron",), np.eye(1), ("x",)),)).entities
    ('iron',)
    """

    name: str
    variants: tuple[Domain, ...] = field(repr=False, default=())
    """Ways to turn it into rows, one of which is chosen on hidden entities."""
    late: LateSource | None = field(repr=False, default=None)
    """What has no rows before the embedding is there."""

    @property
    def entities(self) -> tuple[str, ...]:
        """Names of all entities that some variant describes."""
        if self.late is not None:
            return self.late.entities
        return tuple(dict.fromkeys(name for domain in self.variants for name in domain.entities))

    @property
    def follows_others(self) -> bool:
        """Whether it names more than entities, as a graph of films and of who made them does."""
        return hasattr(self.late, "of_others")

    def of_others(self, names: Sequence[str]) -> Source:
        """Return the source for the entities that other sources name, if it follows them."""
        late: Any = self.late
        return replace(self, late=late.of_others(names)) if self.follows_others else self

    @property
    def is_bare(self) -> bool:
        """Whether it asks for entities and says nothing about them."""
        return all(domain.is_bare for domain in self.variants)

    def resolved(self, vocabulary: Embedding | None, **context: Any) -> Source:
        """Return the source with all its variants, now that the embedding is there."""
        if self.late is None:
            return self
        try:
            return Source(self.name, self.late.variants(vocabulary, **context))
        except InputError as error:
            raise InputError(f"source {self.name!r}: {error}") from error


def joint(sources: Sequence[Source]) -> Domain:
    """Return the domain of all entities that some source describes, in the order of the sources.

    Examples
    --------
    >>> facts, mesh = Domain(("a", "b"), np.eye(2), ("x", "y")), Domain(("b",), np.eye(1), ("z",))
    >>> joint([Source("facts", (facts,)), Source("mesh", (mesh,))])
    Domain(2 entities, 2 sources: facts, mesh)
    """
    entities = tuple(dict.fromkeys(name for source in sources for name in source.entities))
    columns = tuple(
        f"{source.name}: {column}"
        for source in sources
        for domain in source.variants[:1]
        for column in domain.columns
    )
    notes = tuple(
        f"{source.name}: {note}"
        for source in sources
        for domain in source.variants
        for note in domain.notes
    )
    nothing = np.empty((len(entities), 0))
    return Domain(entities, nothing, columns, notes=notes, members=tuple(sources))
