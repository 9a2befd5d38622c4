"""Triples as a source: whom they are to describe is settled when the other sources are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.entities import unique_entities
from vecfill.inputs.graphs.triples import IS_LITERAL, Triples, triples_of, triples_of_frame
from vecfill.inputs.graphs.typed_features import N_DIMS, typed_domains
from vecfill.inputs.prepared import Domain, Source, joint
from vecfill.inputs.table.frames import Frame
from vecfill.requests import DOMAIN_OPTIONS, EDGE_OPTIONS, TEXT_OPTIONS, Reading
from vecfill.wording import count

TRIPLES = "triples"


@dataclass(frozen=True, eq=False)
class TriplesSource:
    """Triples, and the entities that they are to describe.

    A graph names actors and genres as well as films. Unless `wanted` says otherwise, it describes
    those entities that the other sources name, and all of its nodes if there is no other.

    Examples
    --------
    >>> source = triples([("Alien", "director", "Scott"), ("Blade Runner", "director", "Scott")])
    >>> source, source.of_others(["Alien", "Brazil"]).entities
    (TriplesSource(2 triples, 3 nodes), ('Alien',))
    """

    title: ClassVar[str] = TRIPLES

    triples: Triples = field(repr=False)
    wanted: tuple[str, ...] | None = None
    """``None``: whom the other sources name."""
    n_dims: int = N_DIMS
    n_others: int = 0
    """Nodes that are not described because no other source names them."""

    def __repr__(self) -> str:
        n_triples, n_nodes = len(self.triples.head), len(self.triples.nodes)
        return f"TriplesSource({count(n_triples, 'triple')}, {count(n_nodes, 'node')})"

    @property
    def entities(self) -> tuple[str, ...]:
        """Names of the entities that are described."""
        if self.wanted is None:
            return self.triples.nodes
        nodes = set(self.triples.nodes).union(*self.triples.literals.values())
        return tuple(name for name in self.wanted if name in nodes)

    def of_others(self, names: Iterable[str]) -> TriplesSource:
        """Return the source for entities that other sources name, unless it was told its own."""
        if self.wanted is not None:
            return self
        source = replace(self, wanted=tuple(names))
        return replace(source, n_others=len(self.triples.nodes) - len(source.entities))

    def variants(
        self,
        embedding: Embedding | None = None,  # noqa: ARG002
        *,
        words: Mapping[str, str] | None = None,  # noqa: ARG002
        progress: Callable[[str, int, int], None] | None = None,
    ) -> tuple[Domain, ...]:
        """Return entities as rows of their relations, within one step and within two."""
        if progress is not None:
            progress("Reading triples", 0, 0)
        entities = self.entities
        if not entities:
            raise InputError(
                "the triples name none of the entities that are to be described. Their names must "
                "be the same in both; IRIs are names as they are written, without brackets."
            )
        domains = typed_domains(self.triples, entities, n_dims=self.n_dims)
        if not self.n_others:
            return domains
        nodes = count(self.n_others, "further node")
        note = f"{nodes} of the graph are no entity of another source, and are not described."
        return tuple(replace(domain, notes=(*domain.notes, note)) for domain in domains)


def triples(
    source: Any,
    *,
    head: str | int | None = None,
    relation: str | int | None = None,
    tail: str | int | None = None,
    entities: Iterable[str] | None = None,
    n_dims: int | None = None,
    **options: Any,
) -> TriplesSource:
    """Return typed triples, a knowledge graph, as a source for `impute`.

    Each entity becomes its weighted relations to neighbours, in both directions, within one step or
    two, whichever does better on hidden entities. Relations to numbers, dates and texts are
    columns. New entities can be added from their triples.

    Parameters
    ----------
    source
        A table, a file (CSV, TSV, Parquet, N-Triples), or a list of (head, relation, tail).
    head, relation, tail
        The columns, by name or by number from 0; by default the three that there are.
    entities
        Names of the entities to describe. By default those that the other sources name, or all
        nodes if there is no other source.
    n_dims
        Components at most; 256 by default.
    options
        How a text file is read: ``encoding``, ``separator``, ``header``.

    Examples
    --------
    >>> triples([("Alien", "director", "Scott"), ("Blade Runner", "director", "Scott")])
    TriplesSource(2 triples, 3 nodes)
    """
    table = triples_of(source, head=head, relation=relation, tail=tail, **options)
    wanted = None if entities is None else unique_entities(entities, where="entities=")
    return TriplesSource(table, wanted, _checked(n_dims))


def domain_of_triples(frame: Frame, reading: Reading, **_switches: bool) -> Domain:
    """Return the source that a table of triples makes."""
    options = ("kind", *EDGE_OPTIONS, *TEXT_OPTIONS)
    of_features = [name for name in DOMAIN_OPTIONS if name not in options]
    reading.refuse_unused((), of_features, "triples have no feature columns")
    names = reading.edge_columns or [name for name in frame.names if name != IS_LITERAL]
    if len(names) != 3 or set(names) - set(frame.names):
        raise InputError(
            f"{frame.label} has the columns {', '.join(frame.names[:6])}, and triples need three: "
            "name those of head, relation and tail, in this order (edge_columns=)."
        )
    n_dims = reading.n_dims if "n_dims" in reading.asked() else None
    source = TriplesSource(triples_of_frame(frame, names), None, _checked(n_dims))
    return joint((Source(TRIPLES, late=source),))


def _checked(n_dims: int | None) -> int:
    if n_dims is not None and n_dims < 1:
        raise InputError(f"n_dims={n_dims}, but vectors need at least one number.")
    return N_DIMS if n_dims is None else n_dims
