"""Tables, graphs, matrices, other embeddings -> one prepared domain matrix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from vecfill.checks import is_sparse
from vecfill.errors import InputError
from vecfill.inputs.embeddings import embedding_of_object
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns import read_matrix
from vecfill.inputs.table.features import features_of_frame
from vecfill.inputs.table.frames import Frame, frame_of, keyed
from vecfill.io.table_files import table_format
from vecfill.requests import (
    DOMAIN_OPTIONS,
    EDGE_OPTIONS,
    KINDS,
    TEXT_OPTIONS,
    Ask,
    Reading,
    loaded,
    takes,
)

__all__ = ["Domain", "as_domain"]


@takes(Reading)
def as_domain(
    table: Any,
    *,
    names_only: bool = False,
    names_suffice: bool = False,
    skip_empty: bool = False,
    ask: Ask,
) -> Domain:
    """Return the entities of any source and their vectors, with notes on what was done.

    By default, the entity names are the index of a pandas table if it has a name or is text, and
    otherwise the first column. An option that does not apply to the source is refused.

    Parameters
    ----------
    table
        A pandas, polars or Arrow table; the path of a CSV, TSV, Parquet or Feather file; an array
        or SciPy sparse matrix with `names`; a mapping from entity to vector; an `Embedding`; or
        vectors of another library (gensim, spaCy, a pair of words and a torch layer). With
        ``kind="edges"``, also a list of (node, node) or (node, node, weight). A `Domain` is
        returned as it is.
    names_only
        Return the nodes of a graph without vectors, which is much faster.
    names_suffice
        Accept a table that has nothing but names; its domain has no columns. By default it is
        refused.
    skip_empty
        Leave out rows of a table that have no value at all. By default they are refused.

    Examples
    --------
    >>> table = pa.table({"city": ["Oslo", "Rome", "Bern"], "people": [0.7, 2.8, 0.1],
    ...                   "coast": [True, False, False]})
    >>> domain = as_domain(table)
    >>> domain.entities, domain.columns
    (('Oslo', 'Rome', 'Bern'), ('people', 'coast'))
    >>> domain.vectors
    array([[0.7, 1. ],
           [2.8, 0. ],
           [0.1, 0. ]])
    """
    ask.reading.refuse_unused((), ("vector",), "vectors to be imputed do not describe entities")
    return domain_of(
        table,
        ask.reading,
        names_only=names_only,
        names_suffice=names_suffice,
        skip_empty=skip_empty,
    )


def domain_of(
    table: Any,
    reading: Reading,
    *,
    names_only: bool = False,
    names_suffice: bool = False,
    skip_empty: bool = False,
) -> Domain:
    """Return what `as_domain` does, for options that were read already."""
    if isinstance(table, Domain):
        reading.refuse_unused((), DOMAIN_OPTIONS, "a Domain has been read already")
        return table
    embedding = embedding_of_object(table)
    table = table if embedding is None else embedding
    if reading.kind == "embedding" and not is_embedding(table):
        refuse_no_embedding(table, reading)
    if reading.kind == "triples" and isinstance(table, list | tuple):
        from vecfill.inputs.graphs.triples import table_of_tuples  # noqa: PLC0415 - slow to load

        table = table_of_tuples(table)
    if reading.kind == "edges" and isinstance(table, list | tuple):
        reading.refuse_unused(EDGE_OPTIONS, _ALL_BUT_KIND, "a list of edges has no columns")
        return _domain_of_edges(_frame_of_tuples(table), reading, names_only=names_only)
    frame = frame_of(table, **_text_options(table, reading))
    if frame is None:
        return _domain_of_rows(table, reading)
    if reading.row_names is not None:
        raise InputError("names= is for arrays; a table has its names in a column (key=).")
    switches = {
        "names_only": names_only,
        "names_suffice": names_suffice,
        "skip_empty": skip_empty,
    }
    domain = loaded(KINDS[reading.kind])(frame, reading, **switches)
    return _with_title_note(domain, frame, table, reading) if domain.is_bare else domain


_ALL_BUT_KIND = tuple(name for name in DOMAIN_OPTIONS if name != "kind")


def _text_options(source: Any, reading: Reading) -> dict[str, Any]:
    if not isinstance(source, str | os.PathLike):
        reading.refuse_unused((), TEXT_OPTIONS, "the source is not a text file")
    options: dict[str, Any] = {name: getattr(reading, name) for name in TEXT_OPTIONS}
    if reading.kind == "features":
        options["texts"] = _columns_of_text(reading)
    return options


def _columns_of_text(reading: Reading) -> set[str]:
    """Return the columns that are not for numbers even if they hold digits alone."""
    names = _as_set(reading.categorical) | _as_set(reading.ignore)
    return names if reading.key is None else names | {reading.key}


def _as_set(names: str | Iterable[str]) -> set[str]:
    return {names} if isinstance(names, str) else set(names)


def domain_of_features(
    frame: Frame, reading: Reading, *, names_suffice: bool, skip_empty: bool, **_switches: bool
) -> Domain:
    """Return what a table of features describes."""
    reading.refuse_unused((), EDGE_OPTIONS, "it is for kind='edges'")
    entities, columns = keyed(frame, reading.key, names_suffice=names_suffice)
    if names_suffice and set(columns.names) == _as_set(reading.ignore):
        why = "the table has nothing but names"
        reading.refuse_unused(("key", "ignore", *TEXT_OPTIONS), _ALL_BUT_KIND, why)
        return Domain(entities, np.empty((len(entities), 0)), (), notes=frame.notes)
    return features_of_frame(
        entities,
        columns,
        standardize=reading.standardize,
        categorical=reading.categorical,
        categorical_weight=reading.categorical_weight,
        ignore=reading.ignore,
        skip_empty=skip_empty,
        key=reading.key,
    )


def domain_of_square(frame: Frame, reading: Reading, **_switches: bool) -> Domain:
    """Return what a table with a row and a column for each entity describes."""
    from vecfill.inputs.matrices import distances_of_matrix  # noqa: PLC0415 - slow to load

    reading.refuse_unused((), EDGE_OPTIONS, "it is for kind='edges'")
    entities, square = keyed(frame, reading.key)
    why = f"it is not for a matrix of {reading.kind}"
    reading.refuse_unused(("key", *TEXT_OPTIONS), _ALL_BUT_KIND, why)
    advice = f"A matrix of {reading.kind} holds numbers only."
    return distances_of_matrix(
        read_matrix(square, entities, advice=advice),
        entities,
        columns=square.names,
        are_similarities=reading.kind == "similarities",
        label=square.label,
    )


def domain_of_edge_list(
    frame: Frame, reading: Reading, *, names_only: bool, **_switches: bool
) -> Domain:
    """Return the graph that a table of edges describes."""
    why = "a graph has no feature columns"
    reading.refuse_unused((*EDGE_OPTIONS, *TEXT_OPTIONS), _ALL_BUT_KIND, why)
    return _domain_of_edges(frame, reading, names_only=names_only)


def refuse_no_embedding(table: Any, reading: Reading, **_switches: bool) -> NoReturn:
    """Refuse what is said to be an embedding and is none."""
    raise InputError(
        f"kind={reading.kind!r}, but {_described(table)} is no Embedding. Read the file with "
        "vecfill.read_embedding first."
    )


def _with_title_note(domain: Domain, frame: Frame, table: Any, reading: Reading) -> Domain:
    """Say what became of the first line of a list of names, which often has no title."""
    is_list = isinstance(table, str | os.PathLike) and len(frame.names) == 1
    if not is_list or not reading.header or table_format(Path(table)) != "text":
        return domain
    note = (
        f"{frame.label}: the first line, {frame.names[0]!r}, was taken for the title of the names. "
        "If it is a name, write a title above it."
    )
    return replace(domain, notes=(*domain.notes, note))


def _domain_of_edges(frame: Frame, reading: Reading, *, names_only: bool) -> Domain:
    from vecfill.inputs.graphs.edges import (  # noqa: PLC0415 - slow to load
        domain_of_edges,
        nodes_of_edges,
    )

    if names_only:
        return nodes_of_edges(frame, columns=reading.edge_columns)
    return domain_of_edges(frame, columns=reading.edge_columns, n_dims=reading.n_dims)


def _domain_of_rows(source: Any, reading: Reading) -> Domain:
    from vecfill.inputs.matrices import (  # noqa: PLC0415 - slow to load
        distances_of_matrix,
        features_of_array,
        features_of_mapping,
    )

    vectors, row_names = _vectors_and_names(source, reading.row_names, reading.kind)
    usable = ("names", "standardize") if reading.kind in ("features", "embedding") else ("names",)
    reading.refuse_unused(usable, _ALL_BUT_KIND, f"{_described(source)} has no columns with names")
    if row_names is None:
        return features_of_mapping(vectors, standardize=reading.standardize)
    if reading.kind in ("features", "embedding"):
        return features_of_array(vectors, row_names, standardize=reading.standardize)
    are_similarities = reading.kind == "similarities"
    return distances_of_matrix(vectors, row_names, are_similarities=are_similarities)


def is_embedding(source: Any) -> bool:
    """Tell whether a source has words and vectors.

    Examples
    --------
    >>> is_embedding([1, 2])
    False
    """
    return hasattr(source, "words") and hasattr(source, "vectors")


def _vectors_and_names(
    source: Any, names: Iterable[str] | None, kind: str
) -> tuple[Any, Iterable[str] | None]:
    """Vectors with their names; a mapping brings its own, so there the names are None."""
    if kind == "edges":
        raise InputError(
            f"a graph cannot be read from {_described(source)}. Pass a table or a file of edges, "
            "or a list of (node, node) pairs."
        )
    if is_embedding(source):
        if names is not None:
            raise InputError("names= is for arrays; an embedding has its words.")
        return source.vectors, list(source.words)
    if isinstance(source, Mapping):
        if names is not None:
            raise InputError("names= is for arrays; a mapping has its keys.")
        if kind != "features":
            raise InputError(f"kind={kind!r} needs a square matrix; pass a table, not a mapping.")
        return source, None
    if isinstance(source, np.ndarray | list | tuple) or is_sparse(source):
        if names is None:
            raise InputError(
                f"{_described(source)} has no entity names. Pass names=, one for each row."
            )
        return source, names
    raise InputError(
        f"a domain cannot be made of {_described(source)}. Pass a pandas, polars or Arrow table, a "
        "path, an array with names=, a mapping from entity to vector, or an Embedding."
    )


def _described(source: object) -> str:
    return f"an object of type {type(source).__name__}"


def _frame_of_tuples(edges: Sequence[Any]) -> Frame:
    rows = [tuple(edge) if isinstance(edge, list | tuple) else (edge,) for edge in edges]
    width = len(rows[0]) if rows else 0
    for number, row in enumerate(rows, start=1):
        if len(row) not in (2, 3) or len(row) != width:
            raise InputError(
                f"edge {number} is {row!r}. Every edge is (node, node), or every edge is "
                "(node, node, weight)."
            )
    if not rows:
        raise InputError("the list of edges is empty.")
    titles = ("source", "target", "weight")[:width]
    try:
        table = pa.table(
            {title: [row[place] for row in rows] for place, title in enumerate(titles)}
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"the list of edges mixes types ({error}). Nodes are text, weights are numbers."
        ) from error
    frame = frame_of(table)
    assert frame is not None
    return frame
