"""How a source was read, so that entities which come later are read in the same way.

A `Domain` remembers its *reader*. It turns a table of new entities into rows with the same columns
in the same units, whatever else the new table holds, and says what is unusual about a row. Each
reader stands beside the function that reads the first rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np

from vecfill.checks import is_sparse
from vecfill.errors import InputError
from vecfill.inputs.embeddings import array_of, embedding_of_object
from vecfill.inputs.entities import is_missing, listed, unique_entities
from vecfill.inputs.prepared import TABLE, Domain
from vecfill.inputs.table.columns import read_numbers
from vecfill.inputs.table.frames import Cells, frame_of, keyed, objects

_ABSURD = 1e7
"""How many times the range of known values a new one may lie beyond them: the precision of
float32."""

_FAR = 0.5
"""Share of the range of known values beyond which a new one is far away; a guess. With many
columns, some entity is a little beyond the range in some column without being unlike the others."""


@dataclass(frozen=True, eq=False)
class LaterRows:
    """Rows of new entities, and what is unusual about each."""

    entities: tuple[str, ...]
    rows: Any = field(repr=False)
    unusual: tuple[tuple[str, ...], ...] = field(repr=False)
    """For each entity, reasons to trust its vector less."""
    lacks: np.ndarray | None = field(default=None, repr=False)
    """(n_entities, n_columns) which facts are missing, as the reader's `facts` name them."""
    is_odd: np.ndarray | None = field(default=None, repr=False)
    """(n_entities,) which are unusual for more than a missing fact; ``None``: all unusual ones."""

    @classmethod
    def usual(cls, facts: Facts, rows: Any, is_present: Any = None) -> LaterRows:
        """Return rows of which nothing is unusual, of those entities that have one."""
        entities = facts.entities
        if is_present is not None:
            entities = tuple(compress(entities, is_present))
        return cls(entities, rows, ((),) * len(entities))


@dataclass(frozen=True, eq=False)
class Facts:
    """What a user passes about new entities: names, and columns or an array."""

    entities: tuple[str, ...]
    columns: dict[str, Cells] = field(repr=False)
    label: str = "the table"
    matrix: Any = field(default=None, repr=False)
    """Rows of numbers without column names, if that is what was passed."""
    triples: Any = field(default=None, repr=False)
    """Who is related to whom, if that is what was passed."""

    def about(self, entities: tuple[str, ...]) -> Facts:
        """Return triples as facts about some entities."""
        return replace(self, entities=entities)

    def numbers(self, name: str) -> np.ndarray:
        """Return a column of numbers."""
        advice = "Vectors and distances are numbers."
        return read_numbers(self.label, name, self.columns[name], self.entities, advice=advice)

    def matrix_of(self, columns: Sequence[str], why_needed: str) -> Any:
        """Return the rows of numbers; of a table with names, those of some columns."""
        if self.matrix is not None:
            return self.matrix
        absent = [name for name in columns if name not in self.columns]
        if absent:
            raise InputError(f"{self.label} {why_needed.format(absent=listed(absent))}")
        return np.column_stack([self.numbers(name) for name in columns])

    def has_any(self, columns: Sequence[str]) -> bool:
        """Tell whether there are rows of numbers, or any of some columns."""
        return self.matrix is not None or any(name in self.columns for name in columns)

    def texts(self, columns: Sequence[str]) -> list[str]:
        """Return the texts about new entities: some columns, joined.

        Examples
        --------
        >>> Facts(("tin",), {"about": ["a soft metal"]}).texts(("about",))
        ['a soft metal']
        """
        chosen = [name for name in columns if name in self.columns]
        if not chosen and len(self.columns) == 1:
            chosen = list(self.columns)
        if not chosen:
            raise InputError(
                f"{self.label} has no column {listed(columns)} with the texts about new entities. "
                f"It has {listed(self.columns, 10)}."
            )
        parts = [objects(self.columns[name]) for name in chosen]
        return [
            "\n".join(str(cell).strip() for cell in cells if not is_missing(cell))
            for cells in zip(*parts, strict=True)
        ]


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
    embedding = embedding_of_object(table)
    table = table if embedding is None else embedding
    if hasattr(table, "words") and hasattr(table, "vectors"):
        return Facts(tuple(table.words), {}, "the embedding", table.vectors)
    if isinstance(table, Mapping):
        return _facts_of_mapping(table)
    if isinstance(table, np.ndarray | list | tuple) or is_sparse(table):
        if names is None:
            raise InputError("an array has no entity names. Pass names=, one for each row.")
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"names={names!r}, but an array needs a list of names, one a row.")
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
    chosen_key = guess if key is None and is_there else key
    entities, features = keyed(frame, chosen_key, names_suffice=names_suffice)
    return Facts(entities, features.columns, features.label)


def _facts_of_mapping(table: Mapping[Any, Any]) -> Facts:
    if not table:
        raise InputError("there are no new entities: the mapping is empty.")
    entities = unique_entities(table, where="the mapping")
    values = list(table.values())
    if all(isinstance(value, Mapping) for value in values):
        names = dict.fromkeys(str(name) for cells in values for name in cells)
        return Facts(entities, {name: [cells.get(name) for cells in values] for name in names})
    try:
        rows = [np.atleast_1d(array_of(row, ndim=getattr(row, "ndim", 1))) for row in values]
        matrix = np.stack(rows)
    except ValueError:
        raise InputError(
            "the vectors of the new entities have different lengths. All need the same."
        ) from None
    return Facts(entities, {}, "the mapping", matrix)


class Reader:
    """How a source was read. Subclasses are dataclasses of what there is to remember of the fit.

    A model file holds their fields.
    """

    reads_names: ClassVar[bool] = False
    """Whether the names of new entities are all that it needs."""

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:
        """Return the rows of new entities; `encoder` is that of texts, if users pass one."""
        raise NotImplementedError

    def facts_from(self, table: Any, **options: Any) -> Facts | None:  # noqa: ARG002
        """Return what a table tells of new entities if it is not one row for each of them."""
        return None

    def finds(self, facts: Facts) -> bool:
        """Tell whether a table has what this one of several sources needs."""
        return facts.matrix is not None

    def has_range(self) -> np.ndarray | bool:
        """(n_columns,) in which columns of the domain the range of known values means something."""
        return False

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that a row may lack one by one."""
        return ()

    def lacks(self, rows: Any) -> np.ndarray:
        """(n_rows, n_facts) which facts rows lack."""
        return np.zeros((rows.shape[0], len(self.facts)), np.bool_)

    def blanked(self, rows: Any, lacks: np.ndarray) -> Any:  # noqa: ARG002
        """Return rows without some facts: as if these had never been told."""
        return rows

    def shifts(self, rows: Any, lacks: np.ndarray) -> dict[int, str]:  # noqa: ARG002
        """Return which facts differ as a whole from those of the fit, in words, by number."""
        return {}

    def drifts(self, lacks: np.ndarray) -> list[str]:  # noqa: ARG002
        """Return which facts rows lack far more often than those of the fit, in words."""
        return []

    def refuse_absent(self, facts: Facts) -> None:
        """Refuse a table that lacks columns of the fitted one altogether."""

    def spans(self) -> list[tuple[str, int, int]]:
        """Return columns of the table, each with its first column of the domain and its end."""
        return []

    def schema(self) -> dict[str, Any]:
        """Return what the columns of the fitted table were like, as plain values."""
        return {}


@dataclass(frozen=True, eq=False)
class TextsReader(Reader):
    """Texts about entities, in some columns of a table."""

    columns: tuple[str, ...]

    def finds(self, facts: Facts) -> bool:
        """Tell whether a table has any of the columns."""
        return facts.has_any(self.columns)

    def schema(self) -> dict[str, Any]:
        """Return the columns that hold the texts."""
        return {name: {"type": "text"} for name in self.columns}


@dataclass(frozen=True, eq=False)
class NoReader(Reader):
    """A source to which no entity can be added, with the reason."""

    why: str

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Refuse."""
        raise InputError(f"{self.why} Leave this source out for {listed(facts.entities)}.")


@dataclass(frozen=True, eq=False)
class KeptSource:
    """One source of a model: how it was read, and where the known entities lie in it."""

    name: str
    reader: Reader | None
    columns: tuple[str, ...] = field(repr=False)
    low: np.ndarray | None = field(default=None, repr=False)
    """(n_columns,) least value of the known entities; ``None`` if that means nothing."""
    high: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, domain: Domain, is_known: np.ndarray) -> KeptSource:
        """Return what is kept of a source of which `is_known` marks the known rows."""
        low = high = None
        has_range = False if domain.reader is None else domain.reader.has_range()
        if not is_sparse(domain.vectors) and np.any(has_range) and is_known.any():
            known = domain.vectors[is_known]
            low, high = known.min(axis=0), known.max(axis=0)
            high = np.where(has_range, high, low)
        columns = domain.columns or tuple(str(n) for n in range(domain.vectors.shape[1]))
        return cls(name, domain.reader, tuple(columns), low, high)

    def read(self, facts: Facts, encoder: Any = None) -> LaterRows:
        """Return the rows of new entities; what is refused is said to be of this source."""
        if self.reader is None:
            raise InputError(
                f"source {self.name!r} was passed as a Domain that was made by hand, so it is not "
                "known how new entities would be read. Pass the table itself to impute."
            )
        try:
            return self.reader.read(facts, encoder=encoder)
        except InputError as error:
            if self.name == TABLE:
                raise
            raise InputError(f"source {self.name!r}: {error}") from error

    @property
    def reads_names(self) -> bool:
        """Whether the names of new entities are all that it needs."""
        return self.reader is not None and self.reader.reads_names

    def finds(self, facts: Facts) -> bool:
        """Tell whether a table has what this source needs."""
        return self.reader is not None and self.reader.finds(facts)

    def refuse_absurd(self, rows: Any, entities: Sequence[str]) -> None:
        """Refuse a row so far away that known entities cannot be told apart from there."""
        if self.low is None or self.high is None or is_sparse(rows):
            return
        reach = np.where(self.high > self.low, _ABSURD * (self.high - self.low), np.inf)
        is_absurd = (rows > self.high + reach) | (rows < self.low - reach)
        if is_absurd.any():
            row, column = np.argwhere(is_absurd)[0].tolist()
            cell = f"{self.columns[column]} of {entities[row]!r}"
            raise InputError(
                f"{cell} is {rows[row, column]:.4g}, and those of known entities are "
                f"{self.low[column]:.4g} to {self.high[column]:.4g}. Correct it, or leave the cell "
                "empty if it is not known."
            )

    def out_of_range(self, rows: Any) -> list[str]:
        """Return for each row in which column it lies far beyond all known entities, if any.

        Examples
        --------
        >>> kept = KeptSource("table", None, ("mass",), np.array([0.0]), np.array([10.0]))
        >>> kept.out_of_range(np.array([[12.0], [99.0]]))
        ['', 'mass is 99, far beyond the known entities (0 to 10)']
        """
        if self.low is None or self.high is None or is_sparse(rows):
            return [""] * rows.shape[0]
        reach = _FAR * (self.high - self.low)
        beyond = np.maximum(self.low - rows, rows - self.high) - reach
        beyond[:, self.high == self.low] = -np.inf
        return [
            f"{self.columns[column]} is {rows[row, column]:.4g}, far beyond the known entities "
            f"({self.low[column]:.4g} to {self.high[column]:.4g})"
            if beyond[row, column] > 0
            else ""
            for row, column in enumerate(beyond.argmax(axis=1).tolist())
        ]
