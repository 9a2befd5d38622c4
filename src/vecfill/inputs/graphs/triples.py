"""A table of triples -> who is related to whom and how, and what literals say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, listed
from vecfill.inputs.graphs.edges import node_names
from vecfill.inputs.table.frames import Frame, frame_of, objects
from vecfill.inputs.table.written_numbers import is_number_text
from vecfill.inputs.texts.text_rows import words_of
from vecfill.wording import count

IS_LITERAL = "is_literal"
"""Column of a table of N-Triples that marks literals."""

FEWEST_WORDS = 3.0
"""Words of a literal, on average, from which a relation tells a text; as of columns of a table."""

_LOOKED_AT = 1000
"""Literals of a relation that are enough to tell what they are."""

SAME = 0.9
"""Share of pairs from which on two relations say the same, such as one and its inverse; a guess."""

OUT, IN = ">", "<"
"""Direction of a link: from head to tail, or back."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Who is related to whom; each triple once, in the order of head, relation and tail.

    Examples
    --------
    >>> triples = triples_of([("Alien", "director", "Scott"), ("Alien", "year", "1979")])
    >>> triples.nodes, triples.relations, triples.literals
    (('Alien', 'Scott'), ('director',), {'year': {'Alien': ['1979']}})
    """

    nodes: tuple[str, ...]
    relations: tuple[str, ...]
    head: np.ndarray = field(repr=False)
    """(n_triples,) number of a node."""
    relation: np.ndarray = field(repr=False)
    tail: np.ndarray = field(repr=False)
    literals: dict[str, dict[str, list[str]]] = field(repr=False)
    """By relation, the numbers, dates or texts of nodes."""
    notes: tuple[str, ...] = ()

    def literal_columns(self, entities: Sequence[str]) -> dict[str, list[Any]]:
        """Return a column for each relation to literals; of several numbers the mean.

        Examples
        --------
        >>> triples_of([("Alien", "year", "1979"), ("Alien", "year", "1981"),
        ...             ("Alien", "genre", "horror")]).literal_columns(["Alien", "Brazil"])
        {'year': [1980.0, None]}
        """
        return {
            relation: [_one_cell(values.get(entity)) for entity in entities]
            for relation, values in self.literals.items()
        }


def triples_of(
    source: Any,
    *,
    head: str | int | None = None,
    relation: str | int | None = None,
    tail: str | int | None = None,
    **options: Any,
) -> Triples:
    """Return the triples of a table, a file or a list, with `options` for files of text.

    Columns are named, or numbered from 0. A relation whose tails are all numbers tells numbers; in
    N-Triples, other literals are texts, or values that several entities may share.
    """
    if isinstance(source, list | tuple):
        source = table_of_tuples(source)
    frame = frame_of(source, **options)
    if frame is None:
        raise InputError(
            f"triples cannot be read from an object of type {type(source).__name__}. Pass a table, "
            "the path of one, or a list of (head, relation, tail)."
        )
    names = _columns(frame, (head, relation, tail))
    return triples_of_frame(frame, names)


def triples_of_frame(frame: Frame, names: Sequence[str]) -> Triples:
    """Return the triples in three columns of a table: head, relation and tail."""
    notes = list(frame.notes)
    cells = [node_names(frame.columns[name], name, frame.label, _OF_TRIPLE) for name in names]
    if IS_LITERAL not in frame.names and pc.any(pc.equal(cells[1], names[1])).as_py():
        # Its relation comes again, so the first line is no line of titles.
        first = [pa.array([title], pa.large_string()) for title in names]
        cells = [
            pa.chunked_array([title, *column.chunks])
            for title, column in zip(first, cells, strict=True)
        ]
        notes.append(f"{frame.label}: the first line is a triple as well, {listed(names)}.")
    heads, relations, tails = (pa.concat_arrays(column.chunks) for column in cells)
    is_literal, literals = _literals(frame, heads, relations, tails)
    if is_literal.all() and not literals:
        raise InputError(f"{frame.label} has no triple.")
    is_node = ~is_literal
    link = pa.array(is_node)
    ends = pa.concat_arrays([heads, tails.filter(link)])
    node_names_sorted = pc.unique(ends).sort()
    relation_names = pc.unique(relations.filter(link)).sort()
    head = _codes(heads.filter(link), node_names_sorted)
    tail = _codes(tails.filter(link), node_names_sorted)
    kind = _codes(relations.filter(link), relation_names)
    # In one order, each once: however the file was sorted, sums have the same bits.
    order = np.lexsort((tail, kind, head))
    head, kind, tail = head[order], kind[order], tail[order]
    is_first = np.ones(head.size, np.bool_)
    is_first[1:] = (np.diff(head) != 0) | (np.diff(kind) != 0) | (np.diff(tail) != 0)
    if n_again := int((~is_first).sum()):
        notes.append(f"{count(n_again, 'triple was', 'triples were')} there twice.")
    if literals:
        notes.append(
            f"{count(len(literals), 'relation')} ({listed(literals)}) to numbers, dates or texts: "
            "read as columns."
        )
    return Triples(
        tuple(node_names_sorted.to_pylist()),
        tuple(relation_names.to_pylist()),
        head[is_first],
        kind[is_first],
        tail[is_first],
        literals,
        tuple(notes),
    )


_OF_TRIPLE = "Every triple has a head, a relation and a tail."


def _codes(names: pa.Array, of: pa.Array) -> np.ndarray:
    codes = pc.index_in(names, value_set=of)
    return codes.to_numpy(zero_copy_only=False).astype(np.int64)


def _columns(frame: Frame, choices: Sequence[str | int | None]) -> list[str]:
    """Return the names of the columns of heads, relations and tails."""
    titles = [name for name in frame.names if name != IS_LITERAL]
    if all(column is None for column in choices):
        if len(titles) != 3:
            raise InputError(
                f"{frame.label} has {count(len(titles), 'column')}, {listed(titles, 6)}, and "
                "triples have three. Name them (head=, relation=, tail=)."
            )
        return titles
    names: list[str] = []
    for role, place in zip(("head", "relation", "tail"), choices, strict=True):
        column = place
        if isinstance(place, int) and 0 <= place < len(frame.names):
            column = frame.names[place]
        if column is None or column not in frame.names:
            hint = did_you_mean(str(column), frame.names)
            raise InputError(
                f"{role}={column!r}, but {frame.label} has the columns {listed(frame.names, 6)}."
                f"{hint} Name head=, relation= and tail=, or give their numbers from 0."
            )
        names.append(str(column))
    if len(set(names)) < 3:
        raise InputError(f"head, relation and tail are {listed(names)}. Name three columns.")
    return names


def table_of_tuples(triples: Sequence[Any]) -> pa.Table:
    """Return a list of (head, relation, tail) as a table."""
    for number, triple in enumerate(triples, start=1):
        if not isinstance(triple, list | tuple) or len(triple) != 3:
            raise InputError(
                f"triple {number} is {triple!r}. Every triple is (head, relation, tail)."
            )
    if not triples:
        raise InputError("the list of triples is empty.")
    columns = zip(("head", "relation", "tail"), zip(*triples, strict=True), strict=True)
    return pa.table({title: [str(cell) for cell in cells] for title, cells in columns})


def _literals(
    frame: Frame, heads: pa.Array, relations: pa.Array, tails: pa.Array
) -> tuple[np.ndarray, dict[str, dict[str, list[str]]]]:
    """Return which triples tell a number, a date or a text, and what they tell by relation."""
    is_marked = None
    if IS_LITERAL in frame.names:
        is_marked = np.array(objects(frame.columns[IS_LITERAL]), np.bool_)
    names = pc.unique(relations).sort()
    codes = _codes(relations, names)
    is_head = pc.is_in(tails, value_set=pc.unique(heads)).to_numpy(zero_copy_only=False)
    may_be = ~is_head if is_marked is None else is_marked
    # Where heads have numbers for names, so have tails.
    if is_marked is None and all(map(is_number_text, pc.unique(heads).to_pylist()[:_LOOKED_AT])):
        may_be[:] = False
    is_literal = np.zeros(len(heads), np.bool_)
    literals: dict[str, dict[str, list[str]]] = {}
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for number in range(len(names)):
        rows = order[ends[number] : ends[number + 1]]
        if not may_be[rows].all():
            continue
        if not _are_values(tails.take(pa.array(rows[:_LOOKED_AT])), is_marked is not None):
            continue
        values = tails.take(pa.array(rows)).to_pylist()
        if is_marked is None and not all(map(is_number_text, values)):
            continue
        of_entity: dict[str, list[str]] = defaultdict(list)
        for entity, value in zip(heads.take(pa.array(rows)).to_pylist(), values, strict=True):
            of_entity[entity].append(value)
        literals[names[number].as_py()] = dict(of_entity)
        is_literal[rows] = True
    return is_literal, literals


def _are_values(tails: pa.Array, is_marked: bool) -> bool:
    """Tell whether tails are numbers or, if they are marked as literals, dates or texts."""
    values = tails.to_pylist()
    if all(map(is_number_text, values)):
        return True
    if not is_marked:
        return False
    if all(value[:4].isdigit() and value[4:5] in ("", "-") for value in values):
        return True
    n_words = np.mean([len(words_of(value)) for value in values])
    # Short ones that come again are values that entities share: a rating, a country.
    return bool(n_words >= FEWEST_WORDS and len(set(values)) > len(values) / 2)


def _one_cell(values: list[str] | None) -> Any:
    if not values:
        return None
    if len(values) == 1 and not is_number_text(values[0]):
        return values[0]
    if all(map(is_number_text, values)):
        return float(np.mean([float(value) for value in values]))
    if all(value[:4].isdigit() for value in values):
        return min(values)
    return "\n".join(sorted(values))


@dataclass(frozen=True, eq=False)
class Links:
    """Entities and their neighbours by relation and direction; relations of one meaning once."""

    groups: tuple[str, ...]
    group: np.ndarray
    node: np.ndarray
    neighbor: np.ndarray

    @classmethod
    def of(cls, triples: Triples, groups: Sequence[str] | None = None) -> Links:
        """Return the links of triples: those of some groups, or of all that are not the same."""
        n_relations = len(triples.relations)
        group = np.concatenate([triples.relation, triples.relation + n_relations])
        node = np.concatenate([triples.head, triples.tail])
        neighbor = np.concatenate([triples.tail, triples.head])
        names = [f"{way} {name}" for way in (OUT, IN) for name in triples.relations]
        if groups is None:
            chosen = _distinct(group, node * len(triples.nodes) + neighbor, len(names))
            groups = [names[number] for number in chosen]
        place = {name: number for number, name in enumerate(groups)}
        number_of = np.array([place.get(name, -1) for name in names], np.int64)
        is_used = number_of[group] >= 0
        return cls(tuple(groups), number_of[group][is_used], node[is_used], neighbor[is_used])


def _distinct(group: np.ndarray, pair: np.ndarray, n_groups: int) -> list[int]:
    """Return the groups that do not say what another one says, the largest first.

    Many graphs list a relation and its inverse: the links of one are then those of the other,
    walked backwards, and would count twice.
    """
    _, pair_number = np.unique(pair, return_inverse=True)
    entries = np.ones(pair.size, np.int32)
    shape = (int(pair_number.max(initial=0)) + 1, n_groups)
    has = csr_array(coo_array((entries, (pair_number, group)), shape=shape))
    has.data[:] = 1
    common = (has.T @ has).toarray()
    sizes = common.diagonal()
    distinct: list[int] = []
    # Of equals the one in the direction in which it was written: it comes first.
    for number in np.argsort(-sizes, kind="stable").tolist():
        if sizes[number] and not any(common[number, k] >= SAME * sizes[number] for k in distinct):
            distinct.append(number)
    return sorted(distinct)
