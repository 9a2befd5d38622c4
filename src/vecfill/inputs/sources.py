"""Several descriptions of the same entities -> one domain that holds them side by side.

A *source* is one description: a table, a graph, a text, names. Entities may be missing from any of
them; the domain of all sources has every entity that at least one of them describes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from vecfill.checks import is_sparse
from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain, is_embedding
from vecfill.inputs.objects import KINDS
from vecfill.inputs.prepared import Domain
from vecfill.wording import count


@runtime_checkable
class LateSource(Protocol):
    """A source whose rows depend on the embedding, such as a text read by its word vectors."""

    @property
    def entities(self) -> tuple[str, ...]:
        """Names of the entities that it describes."""
        ...

    def variants(
        self,
        embedding: Embedding | None = None,
        *,
        words: Mapping[str, str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> tuple[Domain, ...]:
        """Return the ways to turn it into rows; the best on hidden entities is taken."""
        ...


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
        return tuple(dict.fromkeys(name for each in self.variants for name in each.entities))


@dataclass(frozen=True, eq=False, repr=False)
class JointDomain(Domain):
    """All entities of several sources; `vectors` is empty, the rows are in the sources."""

    sources: tuple[Source, ...] = ()
    kinds: tuple[str, ...] = ()
    """How the name of each entity relates to the vocabulary; empty if names are no source."""

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.sources)
        n_entities, n_sources = len(self.entities), len(self.sources)
        return f"JointDomain({count(n_entities, 'entity')}, {count(n_sources, 'source')}: {names})"

    def cut_off(self, known: set[str]) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: what a graph cannot reach, another source may."""
        return ()


def edges(source: Any, *, columns: Any = None, n_dims: int | None = None) -> Domain:
    """Return a graph as a source: a table, a file or a list of edges.

    Parameters
    ----------
    source
        A table, the path of a file, or a list of (node, node) or (node, node, weight).
    columns
        Columns of the two nodes and, optionally, of the weight. By default the first ones.
    n_dims
        Dimensions of the vectors that are computed from the graph; 128 by default.

    Examples
    --------
    >>> edges([("iron", "metal"), ("gold", "metal"), ("gold", "coin")])
    Domain(4 entities, 4 columns, kind='features', 0 notes)
    """
    options: dict[str, Any] = {"kind": "edges"}
    if columns is not None:
        options["edge_columns"] = columns
    if n_dims is not None:
        options["n_dims"] = n_dims
    return as_domain(source, **options)


def are_sources(table: Any) -> bool:
    """Tell whether a user passes several sources: a mapping from name to source, or a list of them.

    A text counts as well: it is read like one of several.

    Examples
    --------
    >>> are_sources({"facts": {"iron": [1.0]}}), are_sources({"iron": [1.0]})
    (True, False)
    """
    if is_late(table):
        return True
    if isinstance(table, Mapping):
        return bool(table) and all(_is_source(each) for each in table.values())
    if isinstance(table, list | tuple):
        return bool(table) and all(_is_source(each) for each in table)
    return False


def is_late(value: Any) -> bool:
    """Tell whether something has no rows before the embedding is there, such as a text."""
    return isinstance(value, LateSource) and not isinstance(value, Domain | Source)


def _is_source(value: Any) -> bool:
    """Tell a source from the vector of an entity and from an edge."""
    if isinstance(value, Domain | Source | LateSource | Mapping | str | os.PathLike | pa.Table):
        return True
    if any(kind.is_it(value) for kind in KINDS):
        return True
    if isinstance(value, np.ndarray | list | tuple) or is_sparse(value):
        return False
    return is_embedding(value) or hasattr(value, "columns")


def read_sources(table: Any, read: Callable[[Any], Domain]) -> JointDomain:
    """Return the sources of a user as one domain; `read` turns each into a `Domain`.

    Examples
    --------
    >>> found = read_sources({"a": {"iron": [1.0], "tin": [2.0]}, "b": {"tin": [2], "gold": [3]}},
    ...                      as_domain)
    >>> found.entities, [each.name for each in found.sources]
    (('iron', 'tin', 'gold'), ['a', 'b'])
    """
    named = table.items() if isinstance(table, Mapping) else _numbered(table)
    found = []
    for name, each in named:
        if not isinstance(name, str) or not name:
            raise InputError(f"a source is named {name!r}. Names of sources are text.")
        found.append(_source_of(name, each, read))
    return joint(found)


def _numbered(table: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    return [(f"source {number}", each) for number, each in enumerate(table, start=1)]


def _source_of(name: str, each: Any, read: Callable[[Any], Domain]) -> Source:
    if isinstance(each, Source):
        return replace(each, name=name)
    if is_late(each):
        return Source(name, late=each)
    try:
        return Source(name, (read(each),))
    except InputError as error:
        raise InputError(f"source {name!r}: {error}") from error


def joint(sources: Sequence[Source]) -> JointDomain:
    """Return the domain of all entities that some source describes, in the order of the sources."""
    entities = tuple(dict.fromkeys(name for each in sources for name in each.entities))
    columns = tuple(
        f"{each.name}: {column}"
        for each in sources
        for domain in each.variants[:1]
        for column in domain.columns
    )
    notes = tuple(
        f"{each.name}: {note}"
        for each in sources
        for domain in each.variants
        for note in domain.notes
    )
    nothing = np.empty((len(entities), 0))
    return JointDomain(entities, nothing, columns, notes=notes, sources=tuple(sources))
