"""Tables, graphs, matrices, other embeddings -> one prepared domain matrix."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from vecfill.errors import InputError
from vecfill.inputs.columns import read_numbers
from vecfill.inputs.features import features_of_frame
from vecfill.inputs.frames import Frame, frame_of, keyed
from vecfill.inputs.graphs import domain_of_edges
from vecfill.inputs.matrices import distances_of_matrix, features_of_array, features_of_mapping
from vecfill.inputs.prepared import Domain

SourceKind: TypeAlias = Literal["features", "similarities", "distances", "edges"]

_KINDS: tuple[SourceKind, ...] = ("features", "similarities", "distances", "edges")

__all__ = ["Domain", "SourceKind", "as_domain"]


def as_domain(
    source: Any,
    *,
    kind: SourceKind = "features",
    key: str | None = None,
    names: Iterable[str] | None = None,
    standardize: bool = False,
    categorical: Collection[str] = (),
    categorical_weight: float = 1.0,
    ignore: Collection[str] = (),
    edge_columns: Sequence[str] | None = None,
    n_dims: int = 128,
    encoding: str = "utf-8",
    separator: str | None = None,
    header: bool = True,
) -> Domain:
    """Return the entities of any source and their vectors, with notes on what was done.

    Parameters
    ----------
    source
        A pandas, polars or Arrow table; the path of a CSV, TSV, Parquet or Feather file; an array
        or SciPy sparse matrix with `names`; a mapping from entity to vector; or an `Embedding`.
        With `kind="edges"` also a list of (node, node) or (node, node, weight).
    kind
        What the rows are: `"features"`; `"similarities"` or `"distances"` of a square matrix whose
        columns are the same entities; `"edges"` of a graph.
    key
        The column of entity names. By default the index of a pandas table if it has a name or is
        text, else the first column.
    names
        Entity names of the rows of an array.
    standardize
        Whether numeric columns get mean 0 and variance 1.
    categorical
        Columns of numbers or text to be taken as categories whatever they look like.
    categorical_weight
        How much one column of categories counts; 1 is as much as a standardised numeric column.
    ignore
        Columns to leave out.
    edge_columns
        Of an edge list, the columns of both ends and, as a third, of the weight.
    n_dims
        Of an edge list, the length of the vectors.
    encoding, separator, header
        Of a text file, see `vecfill.io.tables.read_table`.

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
    if kind not in _KINDS:
        raise InputError(f"kind={kind!r} is not known. Use one of {', '.join(map(repr, _KINDS))}.")
    if kind == "edges" and isinstance(source, list | tuple):
        frame = _frame_of_tuples(source)
    else:
        frame = frame_of(source, encoding=encoding, separator=separator, header=header)
    if frame is not None:
        if names is not None:
            raise InputError("names= is for arrays; a table has its names in a column (key=).")
        if kind == "edges":
            return domain_of_edges(frame, columns=edge_columns, n_dims=n_dims)
        entities, rest = keyed(frame, key)
        if kind == "features":
            return features_of_frame(
                entities,
                rest,
                standardize=standardize,
                categorical=categorical,
                categorical_weight=categorical_weight,
                ignore=ignore,
            )
        return _distances_of_frame(entities, rest, kind)
    vectors, row_names = _vectors_and_names(source, names, kind)
    if row_names is None:
        return features_of_mapping(vectors, standardize=standardize)
    if kind == "features":
        return features_of_array(vectors, row_names, standardize=standardize)
    return distances_of_matrix(vectors, row_names, are_similarities=kind == "similarities")


def _vectors_and_names(
    source: Any, names: Iterable[str] | None, kind: SourceKind
) -> tuple[Any, Iterable[str] | None]:
    """Vectors with their names; a mapping brings its own, so there the names are None."""
    if kind == "edges":
        raise InputError(
            f"a graph cannot be read from {_described(source)}. Pass a table or a file of edges, "
            "or a list of (node, node) pairs."
        )
    if hasattr(source, "words") and hasattr(source, "vectors"):
        if names is not None:
            raise InputError("names= is for arrays; an embedding has its words.")
        return source.vectors, list(source.words)
    if isinstance(source, Mapping):
        if names is not None:
            raise InputError("names= is for arrays; a mapping has its keys.")
        if kind != "features":
            raise InputError(f"kind={kind!r} needs a square matrix; pass a table, not a mapping.")
        return source, None
    if isinstance(source, np.ndarray | list | tuple) or issparse(source):
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


def _distances_of_frame(entities: tuple[str, ...], frame: Frame, kind: SourceKind) -> Domain:
    advice = f"A matrix of {kind} holds numbers only."
    columns = [
        read_numbers(frame.label, name, cells, entities, advice=advice)
        for name, cells in zip(frame.names, frame.cells, strict=True)
    ]
    return distances_of_matrix(
        np.column_stack(columns),
        entities,
        columns=frame.names,
        are_similarities=kind == "similarities",
        label=frame.label,
    )


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
