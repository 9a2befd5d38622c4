"""Edge list -> a graph, and a domain whose rows are the vectors of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from vecfill.errors import InputError
from vecfill.inputs.entities import listed
from vecfill.inputs.graphs.walks import LARGE, node_vectors
from vecfill.inputs.later_rows import NoReader
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns import read_numbers
from vecfill.inputs.table.frames import Cells, Frame
from vecfill.wording import count


class Edges(NamedTuple):
    """Nodes in the order of their names, and the symmetric matrix of edge weights."""

    nodes: tuple[str, ...]
    weights: csr_array
    notes: tuple[str, ...]


def domain_of_edges(
    frame: Frame, *, columns: Sequence[str] | None = None, n_dims: int = 128
) -> Domain:
    """Return vectors of the nodes of a graph, near for nodes that short walks connect.

    Edges have no direction; a pair listed again adds its weight, or nothing if there are none.
    The nodes come in the order of their names, so the order of the edges does not matter.

    Parameters
    ----------
    frame
        A table of edges.
    columns
        Names of the columns of both ends and, as a third, of the weight. Needed if the table
        has more than three columns; otherwise they are taken in that order.
    n_dims
        Length of the vectors; fewer if there are fewer nodes.

    Examples
    --------
    >>> from vecfill.inputs.table.frames import frame_of
    >>> edges = pa.table({"a": ["x", "y", "p", "p"], "b": ["y", "z", "q", "p"]})
    >>> domain = domain_of_edges(frame_of(edges), n_dims=2)
    >>> domain.entities, domain.components.tolist()
    (('p', 'q', 'x', 'y', 'z'), [1, 1, 0, 0, 0])
    >>> for note in domain.notes: print(note)
    1 self loop was ignored: 'p'.
    The graph falls into 2 components; the largest has 3 of 5 nodes.
    """
    if n_dims < 1:
        raise InputError(f"n_dims={n_dims}, but vectors need at least one number.")
    edges = edges_of_frame(frame, columns)
    components, notes = _components(edges)
    vectors, more_notes = node_vectors(edges.weights, n_dims=n_dims)
    names = tuple(f"walks {number + 1}" for number in range(vectors.shape[1]))
    all_notes = edges.notes + notes + more_notes
    reader = NoReader("vectors of nodes are made from the whole graph, so none can be added.")
    links = edges.weights if len(edges.nodes) > LARGE else None
    return Domain(edges.nodes, vectors, names, "features", all_notes, components, reader, links)


def nodes_of_edges(frame: Frame, *, columns: Sequence[str] | None = None) -> Domain:
    """Return the nodes of a graph without vectors, for those who want their names only.

    Examples
    --------
    >>> from vecfill.inputs.table.frames import frame_of
    >>> domain = nodes_of_edges(frame_of(pa.table({"a": ["x", "y"], "b": ["y", "z"]})))
    >>> domain.entities, domain.vectors.shape
    (('x', 'y', 'z'), (3, 0))
    """
    edges = edges_of_frame(frame, columns)
    components, notes = _components(edges)
    vectors = np.empty((len(edges.nodes), 0))
    return Domain(edges.nodes, vectors, (), "features", edges.notes + notes, components)


def edges_of_frame(frame: Frame, columns: Sequence[str] | None = None) -> Edges:
    """Return the graph that a table of edges describes, its largest weight being 1.

    Examples
    --------
    >>> from vecfill.inputs.table.frames import frame_of
    >>> edges = edges_of_frame(frame_of(pa.table({"a": ["x"], "b": ["y"], "w": [0.5]})))
    >>> edges.weights.toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    sources, targets, weights = _edge_columns(frame, columns)
    ends = [node_names(cells, name, frame.label, _OF_EDGE) for name, cells in (sources, targets)]
    ends_together = pa.chunked_array(
        [*(chunk for end in ends for chunk in end.chunks)], type=pa.large_string()
    )
    nodes = sorted(pc.unique(ends_together).to_pylist())
    codes = pc.index_in(ends_together, value_set=pa.array(nodes, pa.large_string())).to_numpy()
    codes = codes.astype(np.int64)
    source, target = codes[: frame.n_rows], codes[frame.n_rows :]
    values = np.ones(frame.n_rows)
    notes: list[str] = []
    if weights is not None:
        pairs = zip(source, target, strict=True)
        titles = [f"{nodes[low]} - {nodes[high]}" for low, high in pairs]
        values = _edge_weights(frame.label, *weights, titles)
        is_zero = values == 0
        if is_zero.any():
            zero = count(is_zero.sum(), "edge of weight 0 was", "edges of weight 0 were")
            notes.append(f"{zero} ignored.")
        source, target, values = source[~is_zero], target[~is_zero], values[~is_zero]
    loops = source == target
    if loops.any():
        loop_names = listed(nodes[code] for code in np.unique(source[loops]))
        phrase = count(loops.sum(), "self loop was", "self loops were")
        notes.append(f"{phrase} ignored: {loop_names}.")
    low, high = np.minimum(source, target)[~loops], np.maximum(source, target)[~loops]
    values = values[~loops]
    if len(values) == 0:
        raise InputError(f"{frame.label} has no edge between two different nodes.")
    # In one order, so that sums have the same bits however the file was sorted.
    order = np.lexsort((values, high, low))
    low, high, values = low[order], high[order], values[order]
    is_first = np.r_[True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])]
    if not is_first.all():
        n_again = len(values) - int(is_first.sum())
        phrase = "weights were added" if weights is not None else "a pair counts once"
        joins = count(n_again, "edge joins", "edges join")
        notes.append(f"{joins} a pair that was joined before; {phrase}.")
        starts = np.flatnonzero(is_first)
        values = np.add.reduceat(values, starts) if weights is not None else values[starts]
        low, high = low[starts], high[starts]
    with np.errstate(over="ignore"):
        total = values.sum()
    if not np.isfinite(total) or values.min() / values.max() < 1e-30:
        raise InputError(
            f"{frame.label}: weights from {values.min():.3g} to {values.max():.3g} cannot be "
            "compared in one graph. Rescale them, for instance by their logarithm."
        )
    values = values / values.max()
    shape = (len(nodes), len(nodes))
    half = csr_array(coo_array((values, (low, high)), shape=shape))
    return Edges(tuple(nodes), csr_array(half + half.T), tuple(notes))


def _components(edges: Edges) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return each node's component, the largest being 0, and a note if there are several."""
    n_parts, part = connected_components(edges.weights, directed=False)
    sizes = np.bincount(part, minlength=n_parts)
    place = np.empty(n_parts, dtype=np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(n_parts)
    if n_parts == 1:
        return place[part], ()
    note = (
        f"The graph falls into {n_parts:,} components; the largest has {sizes.max():,} of "
        f"{len(part):,} nodes."
    )
    return place[part], (note,)


def _edge_columns(
    frame: Frame, columns: Sequence[str] | None
) -> tuple[tuple[str, Cells], tuple[str, Cells], tuple[str, Cells] | None]:
    if frame.n_rows == 0:
        raise InputError(f"{frame.label} has no rows. An edge list needs one row for each edge.")
    if columns is None:
        if len(frame.names) not in (2, 3):
            raise InputError(
                f"{frame.label} has {len(frame.names)} columns, {listed(frame.names, 6)}. An edge "
                "list has two, and a third for weights; name them (edge_columns=)."
            )
        columns = frame.names
    absent = [name for name in columns if name not in frame.names]
    if absent or len(columns) not in (2, 3) or len(set(columns)) < len(columns):
        raise InputError(
            f"edge_columns={tuple(columns)!r}, but {frame.label} has the columns "
            f"{listed(frame.names, 6)}. Name two of them, and a third for weights."
        )
    chosen = [(name, frame.columns[name]) for name in columns]
    return chosen[0], chosen[1], chosen[2] if len(chosen) == 3 else None


_OF_EDGE = "Every edge has two ends."


def node_names(cells: Cells, name: str, label: str, rule: str) -> pa.ChunkedArray:
    """Node names as text, without surrounding spaces; none may be missing, as a `rule` says."""
    if isinstance(cells, list):
        raise InputError(f"{label}, column {name!r}: values of several types. Nodes are text.")
    column: pa.ChunkedArray = cells
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_string_view(kind) or pa.types.is_integer(kind)):
        raise InputError(
            f"{label}, column {name!r} is of type {kind}. Nodes have names: text, or whole numbers."
        )
    names = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    missing = pc.fill_null(pc.equal(names, ""), True).to_numpy()
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"{label}, row {row + 1}, column {name!r}: the cell is empty. {rule}")
    return names


def _edge_weights(label: str, name: str, cells: Cells, edges: Sequence[str]) -> np.ndarray:
    advice = "Weights are numbers; leave the column out if all edges count alike."
    weights = read_numbers(label, name, cells, edges, row="edge", advice=advice)
    for is_bad, problem in (
        (np.isnan(weights), "is missing. Give every edge a weight, or none"),
        (weights < 0, "is negative. Edges say how near nodes are; shift or drop such edges"),
    ):
        if is_bad.any():
            row = int(is_bad.argmax())
            raise InputError(f"{label}, row {row + 1}, edge {edges[row]!r}: the weight {problem}.")
    return weights
