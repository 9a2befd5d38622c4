"""Triples -> a row for each entity: which relation, in which direction, to whom.

A *feature* is a relation, a direction and a neighbour: that a film is directed by somebody is
another thing than that he acts in it. Features are weighted as words of a text are, so hubs that
nearly all have say little, and reduced to leading components. Beside these stand how many
neighbours an entity has by each relation, and what literals say. See decision 56.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix, diags_array

from vecfill.errors import InputError
from vecfill.inputs.graphs.triples import Links, Triples, triples_of
from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.prepared import Domain, is_late
from vecfill.inputs.table.column_type import Scales
from vecfill.inputs.table.columns import read_objects
from vecfill.inputs.table.columns_reader import ColumnsReader
from vecfill.inputs.table.features import features_of_columns
from vecfill.inputs.texts.text_rows import leading_components
from vecfill.wording import count

N_DIMS = 256
"""Components that are kept at most. From 64, 128, 192 and 256 on MovieLens (decision 56)."""

BESIDE = 0.4
"""Length of what stands beside the components, counts and literals each, as a share of theirs. From
.05, .1, .2 and .4 on MovieLens (decision 56)."""

DECAY = 0.5
"""Mean length of what neighbours' features say, relative to an entity's own; a guess."""


MOST_FEATURES = 100_000
"""Features that are kept: those that most entities have. As terms of texts."""

MOST_ENTRIES = 20_000_000
"""Entries that a second hop may fill; the largest hubs are not passed through. As in walks."""


@dataclass(frozen=True, eq=False)
class TriplesReader(Reader):
    """How triples of some entities became rows."""

    groups: tuple[str, ...]
    """Direction and relation, such as ``"> directed by"``."""
    neighbors: tuple[str, ...] = field(repr=False)
    """(n_features,) the neighbour of each feature."""
    group: np.ndarray = field(repr=False)
    """(n_features,) its relation, as a number."""
    idf: np.ndarray = field(repr=False)
    """(n_features,)."""
    projection: np.ndarray = field(repr=False)
    """(n_features, n_components) in 32 bits."""
    count_mean: np.ndarray = field(repr=False)
    """(n_groups,) mean of log(1 + neighbours)."""
    count_scale: np.ndarray = field(repr=False)
    columns: ColumnsReader | None = None
    """How literals were read."""
    literal_scale: float = 1.0

    def finds(self, facts: Facts) -> bool:
        """Tell whether new entities came with triples."""
        return facts.triples is not None

    def facts_from(
        self, table: Any, *, key: str | None = None, names: Any = None, **options: Any
    ) -> Facts:
        """Return what triples tell of new entities: of `names`, of those asked for, or of heads."""
        if key is not None:
            raise InputError(f"key={key!r} has no effect: triples name entities in two columns.")
        if is_late(table) and hasattr(table, "triples"):
            triples, names = table.triples, names or table.wanted
        else:
            triples = triples_of(table, **options)
        heads = {triples.nodes[node]: None for node in np.unique(triples.head).tolist()}
        for values in triples.literals.values():
            heads |= dict.fromkeys(values)
        return Facts(tuple(names or heads), {}, "the table of triples", triples=triples)

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the rows of new entities; one that shares no feature with fitted ones has none."""
        if facts.triples is None:
            raise InputError(f"{facts.label} has no triples. Pass new ones by vecfill.triples.")
        present, rows = self.rows(facts.triples, facts.entities)
        return LaterRows.usual(facts, rows[present], present)

    def rows(self, triples: Triples, entities: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return which entities share a feature with others, and the rows of all of them."""
        links = Links.of(triples, self.groups)
        place = self._place
        node_row = _rows_of(triples.nodes, entities)
        is_asked = node_row[links.node] >= 0
        row, group = node_row[links.node][is_asked], links.group[is_asked]
        names = [triples.nodes[node] for node in links.neighbor[is_asked]]
        column = np.array(
            [place.get(key, -1) for key in zip(group.tolist(), names, strict=True)], np.int64
        )
        is_shared = column >= 0
        shape = (len(entities), len(self.neighbors))
        features = _indicators(row[is_shared], column[is_shared], shape)
        counts = _counts(row, group, (len(entities), len(self.groups)))
        return np.diff(features.indptr) > 0, self.rows_from(features, counts, triples, entities)

    def rows_from(
        self, features: csr_array, counts: np.ndarray, triples: Triples, entities: Sequence[str]
    ) -> np.ndarray:
        """Return rows of entities from their features and how many neighbours they have."""
        scores = _weighted(features, self.idf) @ self.projection.astype(np.float64)
        beside = (counts - self.count_mean) * self.count_scale
        literals = self._literals(triples, entities)
        return np.column_stack([scores, beside, literals])

    def _literals(self, triples: Triples, entities: Sequence[str]) -> np.ndarray:
        if self.columns is None:
            return np.empty((len(entities), 0))
        cells = triples.literal_columns(entities)
        cells = {name: cells.get(name, [None] * len(entities)) for name in self.columns.names}
        has_any = [any(c[row] is not None for c in cells.values()) for row in range(len(entities))]
        rows = np.zeros((len(entities), sum(column.width for column in self.columns.columns)))
        if any(has_any):
            known_cells = {name: list(compress(column, has_any)) for name, column in cells.items()}
            facts = Facts(tuple(compress(entities, has_any)), known_cells)
            rows[has_any] = self.columns.read(facts).rows
        return self.literal_scale * rows

    @cached_property
    def _place(self) -> dict[tuple[int, str], int]:
        keys = zip(self.group.tolist(), self.neighbors, strict=True)
        return {key: number for number, key in enumerate(keys)}

    def schema(self) -> dict[str, Any]:
        """Return the relations, in words."""
        return {name: {"type": "relation"} for name in self.groups}


def typed_domains(
    triples: Triples, entities: Sequence[str], *, n_dims: int = N_DIMS
) -> tuple[Domain, ...]:
    """Return entities by their relations, and by those of their neighbours as well.

    Examples
    --------
    >>> triples = triples_of([("a", "in", "x"), ("b", "in", "x"), ("c", "in", "y"),
    ...                       ("d", "in", "y"), ("y", "of", "z"), ("x", "of", "z")])
    >>> near, far = typed_domains(triples, ["a", "b", "c", "d"])
    >>> near.entities, bool(near.vectors[0] @ near.vectors[1] > near.vectors[0] @ near.vectors[2])
    (('a', 'b', 'c', 'd'), True)
    """
    graph = _Graph.of(triples, entities)
    beside = _beside(graph)
    domains = [_domain(graph, beside, hops, n_dims) for hops in (1, 2)]
    return tuple(domain for domain in domains if domain is not None)


@dataclass(frozen=True, eq=False)
class _Graph:
    """Triples, and the rows that entities have among their nodes."""

    triples: Triples
    entities: Sequence[str]
    links: Links
    row: np.ndarray
    """(n_nodes,) the row of each node, -1 if it is no entity."""
    key: np.ndarray
    """(n_links,) the feature: relation, direction and neighbour as one number."""
    is_own: np.ndarray
    """(n_links,) whether an entity has the link."""
    groups: np.ndarray
    """Relations and directions that entities have."""

    @classmethod
    def of(cls, triples: Triples, entities: Sequence[str]) -> _Graph:
        """Return them; refuse if no entity has a link, or none shares one with another."""
        links, row = Links.of(triples), _rows_of(triples.nodes, entities)
        is_own = row[links.node] >= 0
        if not is_own.any():
            raise InputError(
                f"none of the {len(entities)} entities, such as {entities[0]!r}, is in the "
                "triples. Check the names."
            )
        key = links.group * len(triples.nodes) + links.neighbor
        if np.unique(key[is_own]).size == is_own.sum():
            raise InputError(
                f"no two of the {len(entities)} entities share a relation to the same neighbour, "
                "so they cannot be compared."
            )
        groups = np.unique(links.group[is_own])
        return cls(triples, entities, links, row, key, is_own, groups)

    def features(self, *, of_entities: bool, least: int) -> np.ndarray:
        """Return features that so many nodes have, the most frequent ones, in order."""
        keys, times = np.unique(self.key[self.is_own | (not of_entities)], return_counts=True)
        keys, times = keys[times >= least], times[times >= least]
        if keys.size > MOST_FEATURES:
            keys = np.sort(keys[np.argsort(-times, kind="stable")[:MOST_FEATURES]])
        return keys

    def matrix(self, keys: np.ndarray) -> csr_array:
        """(n_nodes, n_keys) which node has which of some features."""
        column = np.searchsorted(keys, self.key).clip(max=keys.size - 1)
        is_used = keys[column] == self.key
        shape = (len(self.triples.nodes), keys.size)
        return _indicators(self.links.node[is_used], column[is_used], shape)

    def of_entities(self, features: csr_array) -> csr_array:
        """(n_entities, n_keys) the features of entities."""
        nodes = np.flatnonzero(self.row >= 0)
        entries = coo_array(features[nodes])
        shape = (len(self.entities), features.shape[1])
        return _indicators(self.row[nodes][entries.row], entries.col, shape)


@dataclass(frozen=True, eq=False)
class _Beside:
    """What stands beside the components of entities."""

    counts: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    columns: ColumnsReader | None
    literal_scale: float
    notes: tuple[str, ...]


def _beside(graph: _Graph) -> _Beside:
    links, n_groups = graph.links, graph.groups.size
    rows = graph.row[links.node[graph.is_own]]
    group = np.searchsorted(graph.groups, links.group[graph.is_own])
    counts = _counts(rows, group, (len(graph.entities), n_groups))
    spread = counts.std(axis=0)
    unit = BESIDE / np.sqrt(max(1, int((spread > 0).sum())))
    scale = np.divide(unit, spread, out=np.zeros(n_groups), where=spread > 0)
    columns, literal_scale, notes = _fitted_literals(graph.triples, graph.entities)
    return _Beside(counts, counts.mean(axis=0), scale, columns, literal_scale, notes)


def _domain(graph: _Graph, beside: _Beside, hops: int, n_dims: int) -> Domain | None:
    """Return entities by their features within some steps; None if the second adds nothing."""
    triples, n_nodes = graph.triples, len(graph.triples.nodes)
    # Within one step, what only one entity has cannot say that two are alike.
    keys = graph.features(of_entities=True, least=2 if hops == 1 else 1)
    features = graph.of_entities(graph.matrix(keys))
    idf = _idf(features)
    weighted = _weighted(features, idf)
    reached = None
    if hops == 2:
        reached = _second_hop(graph, keys, weighted)
        if reached is None:
            return None
    combined = weighted if reached is None else csr_array(weighted @ reached)
    is_present = np.diff(features.indptr) > 0
    _, basis = leading_components(csr_matrix(combined[np.flatnonzero(is_present)]), n_dims)
    projection = basis.T if reached is None else reached @ basis.T
    reader = TriplesReader(
        tuple(graph.links.groups[group] for group in graph.groups),
        tuple(triples.nodes[node] for node in keys % n_nodes),
        np.searchsorted(graph.groups, keys // n_nodes),
        idf,
        np.asarray(projection).astype(np.float32),
        beside.mean,
        beside.scale,
        beside.columns,
        beside.literal_scale,
    )
    rows = reader.rows_from(features, beside.counts, triples, graph.entities)
    n_components = basis.shape[0]
    names = [f"relations {number + 1}" for number in range(n_components)]
    names += [f"how many {name}" for name in reader.groups]
    names += [f"literal {number + 1}" for number in range(rows.shape[1] - len(names))]
    about = (
        f"{count(keys.size, 'feature')} of {count(graph.groups.size, 'relation')} "
        f"within {count(hops, 'step')} became {count(n_components, 'component')}."
    )
    if n_absent := int((~is_present).sum()):
        about += f" {count(n_absent, 'entity shares', 'entities share')} none; left out."
    described = tuple(compress(graph.entities, is_present))
    notes = (*triples.notes, *beside.notes, about)
    return Domain(described, rows[is_present], tuple(names), "features", notes, reader=reader)


def _fitted_literals(
    triples: Triples, entities: Sequence[str]
) -> tuple[ColumnsReader | None, float, tuple[str, ...]]:
    """Return how literals are read, and by what their columns are multiplied."""
    cells = triples.literal_columns(entities)
    columns, notes = [], []
    for name, values in cells.items():
        if all(value is None for value in values):
            continue
        try:
            columns.append(read_objects(name, values, entities))
        except InputError as error:
            notes.append(f"Relation {name!r} is not used: {error}")
    if all(column.is_constant for column in columns):
        return None, 1.0, tuple(notes)
    domain = features_of_columns(
        tuple(entities), columns, scales=Scales(standardize=True), skip_empty=True
    )
    n_columns = len(domain.reader.columns) if isinstance(domain.reader, ColumnsReader) else 1
    assert isinstance(domain.reader, ColumnsReader)
    return domain.reader, BESIDE / float(np.sqrt(n_columns)), tuple(notes)


def _second_hop(graph: _Graph, own_keys: np.ndarray, own_features: csr_array) -> csr_array | None:
    """Return a map from features to themselves and, decayed, to what their neighbours have.

    None if neighbours have no features. The largest hubs are left out if the rows of all others
    fill more than memory admits.
    """
    keys = np.union1d(own_keys, graph.features(of_entities=False, least=2))
    features = graph.matrix(keys)
    of_nodes = _weighted(features, _idf(features))
    neighbor = own_keys % len(graph.triples.nodes)
    size = np.diff(of_nodes.indptr)[neighbor].astype(np.float64)
    times = np.bincount(own_features.indices, minlength=own_keys.size)
    order = np.argsort(size, kind="stable")
    n_passed = int(np.searchsorted(np.cumsum((size * times)[order]), MOST_ENTRIES, side="right"))
    passes = np.zeros(own_keys.size)
    passes[order[:n_passed]] = 1.0
    passes[size == 0] = 0.0
    steps = csr_array(diags_array(passes) @ of_nodes[neighbor])
    second = csr_array(own_features @ steps)
    lengths = np.sqrt(np.asarray(second.multiply(second).sum(axis=1)).ravel())
    if not lengths.any():
        return None
    # Own features have length 1; what many neighbours share adds up to far more.
    steps = csr_array(steps * (DECAY / lengths[lengths > 0].mean()))
    entries = np.ones(own_keys.size)
    places = (np.arange(own_keys.size), np.searchsorted(keys, own_keys))
    itself = csr_array(coo_array((entries, places), shape=(own_keys.size, keys.size)))
    return csr_array(itself + steps)


def _idf(features: csr_array) -> np.ndarray:
    """(n_features,) weights by which what nearly all have counts little, as for terms of texts."""
    has_any = int((np.diff(features.indptr) > 0).sum())
    in_use = np.bincount(features.indices, minlength=features.shape[1])
    return np.log((1.0 + has_any) / (1.0 + in_use)) + 1.0


def _rows_of(nodes: Sequence[str], entities: Sequence[str]) -> np.ndarray:
    """(n_nodes,) the row of each node among entities, -1 if it is none."""
    row_of = {name: row for row, name in enumerate(entities)}
    return np.array([row_of.get(name, -1) for name in nodes], np.int64)


def _indicators(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> csr_array:
    entries = np.ones(row.size)
    matrix = csr_array(coo_array((entries, (row, column)), shape=shape))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _weighted(indicators: csr_array, idf: np.ndarray) -> csr_array:
    """Return rows of unit length, features weighted."""
    rows = csr_array(indicators @ diags_array(idf))
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return csr_array(diags_array(inverse) @ rows)


def _counts(row: np.ndarray, group: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(n_entities, n_groups) log of one more than how many neighbours an entity has."""
    flat = np.bincount(row * shape[1] + group, minlength=shape[0] * shape[1])
    return np.log1p(flat.reshape(shape).astype(np.float64))
