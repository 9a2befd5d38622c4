"""Edge list -> node vectors, from the graph alone and without chance.

The matrix that is decomposed says how much likelier a short random walk from one node is to
meet another than chance would have it, on a log scale and where it is likelier at all: what
DeepWalk approaches by sampling and NetMF (Qiu et al., 2018) writes down. Few pairs are that
near, so it is sparse; being symmetric, its eigenvectors do instead of a singular value
decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from vecfill._blas import one_blas_thread
from vecfill.errors import InputError
from vecfill.inputs.columns import read_numbers
from vecfill.inputs.entities import listed
from vecfill.inputs.frames import Cells, Frame
from vecfill.inputs.matrices import with_fixed_signs
from vecfill.inputs.prepared import Domain

_WINDOWS = (5, 3, 2, 1)
_MAX_STEPS = 5e9
_MAX_ENTRIES = 150_000_000
_BLOCK_CELLS = 1 << 25
_DENSE = 1000


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
    >>> from vecfill.inputs.frames import frame_of
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
    return Domain(
        edges.nodes, vectors, names, "features", edges.notes + notes + more_notes, components
    )


def edges_of_frame(frame: Frame, columns: Sequence[str] | None = None) -> Edges:
    """Return the graph that a table of edges describes, its largest weight being 1.

    Examples
    --------
    >>> from vecfill.inputs.frames import frame_of
    >>> edges = edges_of_frame(frame_of(pa.table({"a": ["x"], "b": ["y"], "w": [0.5]})))
    >>> edges.weights.toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    sources, targets, weights = _edge_columns(frame, columns)
    ends = [_node_names(cells, name, frame.label) for name, cells in (sources, targets)]
    both = pa.chunked_array(
        [*(chunk for end in ends for chunk in end.chunks)], type=pa.large_string()
    )
    nodes = sorted(pc.unique(both).to_pylist())
    codes = pc.index_in(both, value_set=pa.array(nodes, pa.large_string())).to_numpy()
    codes = codes.astype(np.int64)
    source, target = codes[: frame.n_rows], codes[frame.n_rows :]
    values = np.ones(frame.n_rows)
    notes: list[str] = []
    if weights is not None:
        pairs = zip(source, target, strict=True)
        titles = [f"{nodes[one]} - {nodes[other]}" for one, other in pairs]
        values = _edge_weights(frame.label, *weights, titles)
        is_zero = values == 0
        if is_zero.any():
            notes.append(f"{is_zero.sum()} edges of weight 0 were ignored.")
        source, target, values = source[~is_zero], target[~is_zero], values[~is_zero]
    loops = source == target
    if loops.any():
        shown = listed(nodes[code] for code in np.unique(source[loops]))
        what = "1 self loop was" if loops.sum() == 1 else f"{loops.sum()} self loops were"
        notes.append(f"{what} ignored: {shown}.")
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
        what = "their weights were added" if weights is not None else "they count once"
        notes.append(f"{n_again} edges join a pair that was joined before; {what}.")
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


@one_blas_thread()
def node_vectors(weights: csr_array, *, n_dims: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return vectors of the nodes of a graph and notes; `weights` is symmetric, without loops.

    Examples
    --------
    >>> path = csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> vectors, _ = node_vectors(path, n_dims=2)
    >>> np.allclose(vectors[0], vectors[2])
    True
    """
    notes: tuple[str, ...] = ()
    closeness = None
    for window in _WINDOWS:
        closeness = _closeness(weights, window)
        if closeness is not None:
            if window < _WINDOWS[0]:
                notes = (
                    f"The graph is so dense that walks of {window} steps were used, "
                    f"not of {_WINDOWS[0]}.",
                )
            break
    if closeness is None:
        raise InputError(
            f"a graph of {weights.shape[0]:,} nodes and {weights.nnz // 2:,} edges needs more "
            "memory than is set aside for it. Leave out the weakest edges."
        )
    n_nodes = closeness.shape[0]
    if n_nodes <= _DENSE or n_dims >= n_nodes // 2:
        values, vectors = np.linalg.eigh(closeness.toarray().astype(np.float64))
        order = np.argsort(-np.abs(values), kind="stable")[: min(n_dims, n_nodes)]
        values, vectors = values[order], vectors[:, order]
    else:
        # A start that favours no node and is orthogonal to no eigenvector by symmetry.
        start = np.random.default_rng(0).uniform(0.5, 1.5, n_nodes).astype(np.float32)
        values, vectors = eigsh(closeness, k=n_dims, which="LM", v0=start, tol=1e-4)
        order = np.argsort(-np.abs(values), kind="stable")
        values, vectors = values[order], vectors[:, order]
    vectors = with_fixed_signs(vectors * np.sqrt(np.abs(values))).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    n_short = int((lengths < 1e-6 * lengths.max()).sum())
    if n_short:
        notes += (
            f"{n_short} nodes have next to no vector, because larger parts of the graph took all "
            f"{vectors.shape[1]} dimensions. Raise n_dims if they matter.",
        )
    return vectors, notes


def _closeness(weights: csr_array, window: int) -> csr_array | None:
    """Log of how much likelier walks of up to `window` steps meet than by chance, where positive.

    None if it would take too long or too much memory.
    """
    n_nodes = weights.shape[0]
    strength = np.asarray(weights.sum(axis=1)).ravel()
    inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > 0)
    steps = csr_array(weights.multiply(inverse[:, None])).astype(np.float32)
    degree = np.diff(steps.indptr)
    chance = (strength.sum() / window * inverse).astype(np.float32)
    n_block = max(1, min(2048, _BLOCK_CELLS // n_nodes))
    parts: list[csr_array] = []
    n_steps, n_entries = 0.0, 0
    for start in range(0, n_nodes, n_block):
        walks = steps[start : start + n_block]
        met = walks
        for _ in range(window - 1):
            n_steps += float(degree[walks.indices].sum(dtype=np.float64))
            if n_steps > _MAX_STEPS:
                return None
            walks = csr_array(walks @ steps)
            met = met + walks
        met = csr_array(met)
        met.data = np.log(np.maximum(met.data * chance[met.indices], 1))
        met.eliminate_zeros()
        n_entries += met.nnz
        if n_entries > _MAX_ENTRIES:
            return None
        parts.append(met)
    whole = csr_array(vstack(parts))
    return csr_array((whole + whole.T) / 2).astype(np.float32)


def _components(edges: Edges) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return each node's component, the largest being 0, and a note if there are several."""
    n_parts, part = connected_components(edges.weights, directed=False)
    sizes = np.bincount(part, minlength=n_parts)
    place = np.empty(n_parts, dtype=np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(n_parts)
    if n_parts == 1:
        return place[part], ()
    note = (
        f"The graph falls into {n_parts} components; the largest has {sizes.max()} of "
        f"{len(part)} nodes."
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
    found = [(name, frame.cells[frame.names.index(name)]) for name in columns]
    return found[0], found[1], found[2] if len(found) == 3 else None


def _node_names(cells: Cells, name: str, label: str) -> pa.ChunkedArray:
    """Node names as text, without surrounding spaces; none may be missing."""
    if isinstance(cells, list):
        raise InputError(f"{label}, column {name!r}: values of several types. Nodes are text.")
    column: pa.ChunkedArray = cells
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_string_view(kind) or pa.types.is_integer(kind)):
        raise InputError(
            f"{label}, column {name!r} is of type {kind}. The ends of an edge are names: text, or "
            "whole numbers."
        )
    names = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    missing = pc.fill_null(pc.equal(names, ""), True).to_numpy()
    if missing.any():
        row = int(missing.argmax())
        raise InputError(
            f"{label}, row {row + 1}, column {name!r}: the node is missing. Every edge "
            "has two ends."
        )
    return names


def _edge_weights(label: str, name: str, cells: Cells, edges: Sequence[str]) -> np.ndarray:
    advice = "Weights are numbers; leave the column out if all edges count alike."
    weights = read_numbers(label, name, cells, edges, row="edge", advice=advice)
    for is_bad, what in (
        (np.isnan(weights), "is missing. Give every edge a weight, or none"),
        (weights < 0, "is negative. Edges say how near nodes are; shift or drop such edges"),
    ):
        if is_bad.any():
            row = int(is_bad.argmax())
            raise InputError(f"{label}, row {row + 1}, edge {edges[row]!r}: the weight {what}.")
    return weights
