"""How a source was read, so that entities which come later are read in the same way.

A `Domain` remembers its *reader*. It turns a table of new entities into rows with the same columns
in the same units, whatever else the new table holds, and says what is unusual about a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vecfill.checks import is_sparse
from vecfill.errors import InputError
from vecfill.inputs.entities import is_missing, listed, unique_entities
from vecfill.inputs.objects import array_of, embedding_of_object
from vecfill.inputs.table.columns import MISSING, read_numbers
from vecfill.inputs.table.frames import Cells, frame_of, keyed, objects
from vecfill.inputs.table.later_columns import LaterColumn, NumberColumn

_ABSURD = 1e7
"""How many times the range of known values a new one may lie beyond them: the precision of
float32."""


@dataclass(frozen=True, eq=False)
class LaterRows:
    """Rows of new entities, and what is unusual about each."""

    entities: tuple[str, ...]
    rows: Any = field(repr=False)
    unusual: tuple[tuple[str, ...], ...] = field(repr=False)
    """For each entity, reasons to trust its vector less."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What a user passes about new entities: names, and columns or an array."""

    entities: tuple[str, ...]
    columns: dict[str, Cells] = field(repr=False)
    label: str = "the table"
    matrix: Any = field(default=None, repr=False)
    """Rows of numbers without column names, if that is what was passed."""

    def numbers(self, name: str) -> np.ndarray:
        """Return a column of numbers."""
        advice = "Vectors and distances are numbers."
        return read_numbers(self.label, name, self.columns[name], self.entities, advice=advice)


def facts_of(
    table: Any,
    *,
    key: str | None = None,
    names: Any = None,
    guess: str | None = None,
    names_suffice: bool = False,
    **options: Any,
) -> Facts:
    """Return what a user passes about new entities, in any form that `as_domain` takes.

    That is a pandas, polars or Arrow table, a file, an array with `names`, an `Embedding`, or a
    mapping from entity to its vector or to its values by column. Entities are named by the column
    `key`; if none is told, by the column `guess` if there is one, else by the first. Unless
    `names_suffice`, they need further columns.

    Examples
    --------
    >>> facts_of({"iron": {"mass": 55.8, "kind": "metal"}, "neon": {"mass": 20.2}}).columns
    {'mass': [55.8, 20.2], 'kind': ['metal', None]}
    """
    if isinstance(table, Facts):
        return table
    found = embedding_of_object(table)
    table = table if found is None else found
    if hasattr(table, "words") and hasattr(table, "vectors"):
        return Facts(tuple(table.words), {}, "the embedding", table.vectors)
    if isinstance(table, Mapping):
        return _facts_of_mapping(table)
    if isinstance(table, np.ndarray | list | tuple) or is_sparse(table):
        if names is None:
            raise InputError("an array has no entity names. Pass names=, one for each row.")
        entities = unique_entities(names, where="names")
        matrix: Any = table if is_sparse(table) else np.asarray(table)
        if matrix.ndim != 2 or matrix.shape[0] != len(entities):
            raise InputError(
                f"the array has the shape {matrix.shape} for {len(entities)} names. Pass one row "
                "for each name."
            )
        return Facts(entities, {}, "the array", matrix)
    frame = frame_of(table, **options)
    if frame is None:
        raise InputError(
            f"new entities cannot be read from an object of type {type(table).__name__}. Pass a "
            "table, the path of one, an array with names=, or a mapping from entity to its values."
        )
    is_there = guess in frame.names or (guess is not None and guess == frame.index_name)
    entities, rest = keyed(
        frame, guess if key is None and is_there else key, names_suffice=names_suffice
    )
    return Facts(entities, dict(zip(rest.names, rest.cells, strict=True)), rest.label)


def _facts_of_mapping(table: Mapping[Any, Any]) -> Facts:
    if not table:
        raise InputError("there are no new entities: the mapping is empty.")
    entities = unique_entities(table, where="the mapping")
    values = list(table.values())
    if all(isinstance(each, Mapping) for each in values):
        names = dict.fromkeys(str(name) for each in values for name in each)
        return Facts(entities, {name: [each.get(name) for each in values] for name in names})
    try:
        matrix = np.stack(
            [np.atleast_1d(array_of(each, ndim=getattr(each, "ndim", 1))) for each in values]
        )
    except ValueError:
        raise InputError(
            "the vectors of the new entities have different lengths. All need the same."
        ) from None
    return Facts(entities, {}, "the mapping", matrix)


@dataclass(frozen=True, eq=False)
class ColumnsReader:
    """A table whose columns became numbers one by one."""

    columns: tuple[LaterColumn, ...]
    ignored: tuple[str, ...] = ()
    """Columns of the fitted table that were not used."""
    dtype: str = "float64"
    key: str | None = None

    def read(self, facts: Facts) -> LaterRows:
        """Return the same columns of new entities; those that are absent are missing values."""
        cells = self._cells(facts)
        absent = [each.name for each in self.columns if each.name not in cells]
        if len(absent) == len(self.columns):
            raise InputError(
                f"{facts.label} has none of the columns that the model uses "
                f"({listed([each.name for each in self.columns], 10)}). It has "
                f"{listed(cells, 10)}."
            )
        _refuse_empty(facts, [cells[each.name] for each in self.columns if each.name in cells])
        blocks, unusual = [], [[] for _ in facts.entities]
        nothing = [None] * len(facts.entities)
        for column in self.columns:
            given = cells.get(column.name, nothing)
            block, why = column.encoded(given, facts.entities, facts.label)
            blocks.append(block)
            for row, reason in enumerate(why):
                if reason:
                    unusual[row].append(reason)
        rows = np.hstack(blocks).astype(self.dtype)
        return LaterRows(facts.entities, rows, tuple(tuple(each) for each in unusual))

    def is_number(self) -> np.ndarray:
        """(n_columns,) which columns of the domain are numbers of the table."""
        kinds = [isinstance(each, NumberColumn) for each in self.columns]
        return np.repeat(kinds, [each.width for each in self.columns])

    def _cells(self, facts: Facts) -> dict[str, Cells]:
        if facts.matrix is None:
            return facts.columns
        matrix = facts.matrix.toarray() if is_sparse(facts.matrix) else facts.matrix
        fitted = [*(each.name for each in self.columns), *self.ignored]
        had_numbers = all(name.isdigit() for name in fitted)
        if not had_numbers or matrix.shape[1] != len(fitted):
            what = (
                f"vectors of {len(fitted)} numbers" if had_numbers else "a table with the columns "
            )
            raise InputError(
                f"{facts.label} has {matrix.shape[1]} numbers for each entity, but the model was "
                f"fitted to {what}"
                + ("" if had_numbers else listed([each.name for each in self.columns], 10))
                + f". Pass {'as many' if had_numbers else 'a table with these'}."
            )
        return {str(number): list(column) for number, column in enumerate(matrix.T.tolist())}


def _refuse_empty(facts: Facts, columns: Sequence[Cells]) -> None:
    """Refuse an entity about which no column says anything, as a table of known ones does."""
    has_value = np.zeros(len(facts.entities), np.bool_)
    for cells in columns:
        given = objects(cells)
        has_value |= [not (is_missing(c) or (isinstance(c, str) and c in MISSING)) for c in given]
    if not has_value.all():
        empty = [facts.entities[row] for row in np.flatnonzero(~has_value)]
        raise InputError(
            f"{facts.label} says nothing about {listed(empty)}: every cell that the model uses is "
            "empty. Fill one, or leave the row out."
        )


@dataclass(frozen=True, eq=False)
class ArrayReader:
    """Rows of numbers, of which some columns were used as they are."""

    n_columns: int
    used: np.ndarray
    """Places of the columns that were used."""
    dtype: str
    factors: np.ndarray | None = None
    """By what a sparse matrix was multiplied, column by column."""
    is_sparse: bool = False

    def read(self, facts: Facts) -> LaterRows:
        """Return the same columns of new entities."""
        matrix = facts.matrix
        if matrix is None:
            names = [str(number) for number in range(self.n_columns)]
            absent = [name for name in names if name not in facts.columns]
            if absent:
                raise InputError(
                    f"{facts.label} has named columns, but the model was fitted to vectors of "
                    f"{self.n_columns} numbers. Pass a mapping from entity to vector, or an array "
                    "with names=."
                )
            matrix = np.column_stack([facts.numbers(name) for name in names])
        if matrix.shape[1] != self.n_columns:
            raise InputError(
                f"{facts.label} has vectors of {matrix.shape[1]} numbers, but the model was fitted "
                f"to vectors of {self.n_columns}. Pass vectors of the same source."
            )
        rows = self._checked(matrix, facts.entities)
        return LaterRows(facts.entities, rows, ((),) * len(facts.entities))

    def _checked(self, matrix: Any, entities: Sequence[str]) -> Any:
        values = matrix.data if is_sparse(matrix) else np.asarray(matrix)
        if values.dtype.kind not in "fiub":
            raise InputError(f"the vectors are of type {values.dtype}. Pass real numbers.")
        if not np.isfinite(values).all():
            dense = matrix.toarray() if is_sparse(matrix) else values
            row = int((~np.isfinite(dense)).any(axis=1).argmax())
            raise InputError(
                f"the vector of {entities[row]!r} has numbers that are missing or infinite. "
                "Correct them, or leave the entity out."
            )
        if not self.is_sparse:
            dense = matrix.toarray() if is_sparse(matrix) else values
            return np.ascontiguousarray(dense.astype(self.dtype)[:, self.used])
        from scipy.sparse import csr_array, diags_array  # noqa: PLC0415 - slow to load

        found = csr_array(matrix, dtype=self.dtype)
        if self.factors is not None:
            found = csr_array(found @ diags_array(self.factors)).astype(self.dtype)
        found.sum_duplicates()
        return found


@dataclass(frozen=True, eq=False)
class DistancesReader:
    """Distances, or similarities, of new entities to all fitted ones."""

    entities: tuple[str, ...] = field(repr=False)
    similarities: np.ndarray | None = None
    """(n_rows,) similarity of each fitted entity with itself; ``None`` if there are distances."""

    def read(self, facts: Facts) -> LaterRows:
        """Return the distances of new entities (down) to the fitted ones (across)."""
        matrix = facts.matrix
        if matrix is None:
            absent = [name for name in self.entities if name not in facts.columns]
            if absent:
                raise InputError(
                    f"{facts.label} lacks {len(absent)} of the {len(self.entities)} columns that "
                    f"are needed, such as {listed(absent)}: new entities need their distances to "
                    "every fitted one."
                )
            matrix = np.column_stack([facts.numbers(name) for name in self.entities])
        rows = np.asarray(matrix, np.float64)
        if rows.shape[1] != len(self.entities) or not np.isfinite(rows).all():
            raise InputError(
                f"{facts.label} must have {len(self.entities)} finite numbers for each new "
                "entity: its distances to the fitted ones, in their order."
            )
        if self.similarities is not None:
            # The likeness of a new entity with itself is not told; it is taken as that of others.
            own = float(np.median(self.similarities))
            rows = np.sqrt(np.maximum(own + self.similarities - 2.0 * rows, 0.0))
        if rows.min(initial=0.0) < 0:
            raise InputError(f"{facts.label} has distances below 0. Are these similarities?")
        return LaterRows(facts.entities, rows, ((),) * len(facts.entities))


@dataclass(frozen=True, eq=False)
class NoReader:
    """A source to which no entity can be added, with the reason."""

    why: str

    def read(self, facts: Facts) -> LaterRows:
        """Refuse."""
        raise InputError(f"{self.why} Leave this source out for {listed(facts.entities)}.")


@dataclass(frozen=True, eq=False)
class KeptSource:
    """One source of a model: how it was read, and where the known entities lie in it."""

    name: str
    reader: Any
    columns: tuple[str, ...] = field(repr=False)
    low: np.ndarray | None = field(default=None, repr=False)
    """(n_columns,) least value of the known entities; ``None`` if that means nothing."""
    high: np.ndarray | None = field(default=None, repr=False)

    def refuse_absurd(self, rows: Any, entities: Sequence[str]) -> None:
        """Refuse a row so far away that known entities cannot be told apart from there."""
        if self.low is None or self.high is None or is_sparse(rows):
            return
        reach = np.where(self.high > self.low, _ABSURD * (self.high - self.low), np.inf)
        is_absurd = (rows > self.high + reach) | (rows < self.low - reach)
        if is_absurd.any():
            row, column = np.argwhere(is_absurd)[0].tolist()
            what = f"{self.columns[column]} of {entities[row]!r}"
            raise InputError(
                f"{what} is {rows[row, column]:.4g}, and those of known entities are "
                f"{self.low[column]:.4g} to {self.high[column]:.4g}. Correct it, or leave the cell "
                "empty if it is not known."
            )

    def out_of_range(self, rows: Any) -> list[str]:
        """Return for each row in which column it lies far beyond all known entities, if any.

        Far is more than half of the range of the known ones: with many columns, some entity is a
        little beyond it in some column without being unlike the others.

        Examples
        --------
        >>> kept = KeptSource("table", None, ("mass",), np.array([0.0]), np.array([10.0]))
        >>> kept.out_of_range(np.array([[12.0], [99.0]]))
        ['', 'mass is 99, far beyond the known entities (0 to 10)']
        """
        if self.low is None or self.high is None or is_sparse(rows):
            return [""] * rows.shape[0]
        reach = 0.5 * (self.high - self.low)
        beyond = np.maximum(self.low - rows, rows - self.high) - reach
        beyond[:, self.high == self.low] = -np.inf
        found = []
        for row, column in enumerate(beyond.argmax(axis=1).tolist()):
            is_far = beyond[row, column] > 0
            found.append(
                f"{self.columns[column]} is {rows[row, column]:.4g}, far beyond the known entities "
                f"({self.low[column]:.4g} to {self.high[column]:.4g})"
                if is_far
                else ""
            )
        return found
