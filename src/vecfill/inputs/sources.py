"""Several descriptions of the same entities -> one domain that holds them side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vecfill.checks import is_sparse
from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain, is_embedding
from vecfill.inputs.embeddings import KINDS
from vecfill.inputs.prepared import Domain, Source, is_late, joint


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
    descriptions = table.values() if isinstance(table, Mapping) else table
    is_collection = isinstance(table, Mapping | list | tuple)
    return is_collection and bool(table) and all(map(_is_source, descriptions))


def _is_source(value: Any) -> bool:
    """Tell a source from the vector of an entity and from an edge."""
    if isinstance(value, Mapping | str | os.PathLike) or is_late(value):
        return True
    if any(kind.is_it(value) for kind in KINDS):
        return True
    if isinstance(value, np.ndarray | list | tuple) or is_sparse(value):
        return False
    return is_embedding(value) or hasattr(value, "columns")


def read_sources(table: Any, read: Callable[[Any], Domain]) -> Domain:
    """Return the sources of a user as one domain; `read` turns each into a `Domain`.

    Examples
    --------
    >>> tables = {"a": {"iron": [1.0], "tin": [2.0]}, "b": {"tin": [2], "gold": [3]}}
    >>> domain = read_sources(tables, as_domain)
    >>> domain.entities, [source.name for source in domain.sources]
    (('iron', 'tin', 'gold'), ['a', 'b'])
    """
    named = table.items() if isinstance(table, Mapping) else numbered(table)
    return joint(asked([_source_of(name, description, read) for name, description in named]))


def asked(sources: Sequence[Source]) -> list[Source]:
    """Return sources; a graph that names more than entities describes those that others name."""
    names: dict[str, None] = {}
    for source in sources:
        if not source.follows_others:
            names |= dict.fromkeys(source.entities)
    return [source.of_others(tuple(names)) for source in sources] if names else list(sources)


def numbered(table: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    """Return sources that have no names with the names that reports give them."""
    return ((f"source {number}", description) for number, description in enumerate(table, start=1))


def _source_of(name: Any, description: Any, read: Callable[[Any], Domain]) -> Source:
    if not isinstance(name, str) or not name:
        raise InputError(f"a source is named {name!r}. Names of sources are text.")
    if is_late(description):
        return Source(name, late=description)
    try:
        domain = read(description)
    except InputError as error:
        raise InputError(f"source {name!r}: {error}") from error
    # What is read later has no rows yet, and comes as its own only source.
    return replace(domain.members[0], name=name) if domain.is_joint else Source(name, (domain,))
