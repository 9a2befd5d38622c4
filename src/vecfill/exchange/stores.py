"""What all databases share: read a table, impute, write back only what was missing.

A database is one module with a `Store`; `fill` does the rest, so that all of them treat options,
results and second runs alike. `vecfill.testing.check_store` checks one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError, VecfillError
from vecfill.inputs.alignment import align
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.table.one_table import without_imputed
from vecfill.requests import Ask, Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.run import impute_aligned
from vecfill.wording import count


@dataclass(frozen=True, eq=False)
class NewCells:
    """What is to be written: keys as the store has them, a vector each, and confidences."""

    keys: pa.ChunkedArray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    confidence: np.ndarray | None = field(default=None, repr=False)
    """``None`` if no confidences are to be written."""

    def __len__(self) -> int:
        return len(self.vectors)

    def confidence_cells(self) -> pa.Array:
        """Return confidences; null where too few entities were known to learn one."""
        return pa.array(self.confidence, from_pandas=True)


@dataclass(frozen=True)
class Columns:
    """What the columns of a store are called."""

    key: str
    vector: str
    confidence: str | None = None
    """Where confidences are written, if anywhere."""


class Store(ABC):
    """A place that holds keys, features and vectors, and to which others may write as well."""

    key: str | None = None
    """What the key is called where it has a name of its own, which users need not say."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call the store."""

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what its library raises: users get an `InputError` that names the store."""
        return ()

    def opened(self) -> AbstractContextManager[Store]:
        """Return the store while it can be read and written, for a store that is opened first."""
        return nullcontext(self)

    @abstractmethod
    def read(self, columns: Columns) -> pa.Table:
        """Return all rows as they are now; a vector that is missing is null."""

    @abstractmethod
    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all cells where a vector is still missing, or none; never undo what others wrote.

        If a vector is there by now, or a row is gone, `refuse_changed` says so. A store that cannot
        take back what it wrote says how many vectors it wrote.
        """


@dataclass(frozen=True)
class SqlTable(Store):
    """A table that is reached by SQL: it is read, and written to, in one transaction each."""

    connection: Any
    """A connection of the database's library without an open transaction, or where to connect."""
    table: str
    """Its name: ``items``, ``schema.items``, or as SQL quotes it."""

    @property
    def name(self) -> str:
        """The name of the table."""
        return f"table {self.table!r}"


@dataclass(frozen=True)
class Filled:
    """What was written to a database."""

    result: Result | None = field(repr=False)
    """None if every row had a vector, so that there was nothing to do."""
    keys: tuple[Any, ...]
    """The keys of the rows that were given a vector."""
    left_out: tuple[str, ...] = ()
    """Entities whose confidence was below what was asked for; they stay without a vector."""

    def __len__(self) -> int:
        return len(self.keys)


@takes(Reading, Method, Trust)
def fill(
    store: Store,
    *,
    confidence: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> Filled:
    """Fill the vectors that rows of a store lack, all of them or none.

    `key` and `vector` name columns. The other columns describe the rows, unless `ignore` names
    them. Rows that have a vector are not changed, so a second run finds nothing to do. If a row
    gets a vector or goes while vectors are being imputed, an error says so, and what others wrote
    stays.

    Parameters
    ----------
    store
        A `DuckDBTable`, `PostgresTable`, `LanceDBTable` or `QdrantCollection`, each from the module
        of that name in `vecfill.exchange`, or a `Store` of your own.
    confidence
        Name of a column for the confidence of each new vector; it is added if it does not exist.
        Later runs do not learn from rows that have a confidence.
    n_jobs, progress
        As in `vecfill.impute`.

    """
    if not isinstance(store, Store):
        raise InputError(
            f"an object of type {type(store).__name__} is not a store. Pass a table such as "
            "vecfill.exchange.duckdb.DuckDBTable(connection, 'items')."
        )
    with ExitStack() as stack:
        with _in_our_words(store, "cannot be opened"):
            opened = stack.enter_context(store.opened())
        return _filled(opened, confidence, ask, n_jobs=n_jobs, progress=progress or quiet)


@contextmanager
def _in_our_words(store: Store, trouble: str) -> Iterator[None]:
    """Raise what a library says of a store as an error of ours that names the store."""
    try:
        yield
    except VecfillError:
        raise
    except store.errors() as error:
        raise InputError(f"{store.name} {trouble}: {first_line(error)}") from error


@contextmanager
def _naming_table(name: str) -> Iterator[None]:
    """Let what is said about an Arrow table name the store that it was read from."""
    try:
        yield
    except InputError as error:
        text = str(error)
        if not text.startswith("the table"):
            raise
        raise type(error)(name + text.removeprefix("the table")) from error


def first_line(error: BaseException) -> str:
    r"""Return what an error says, without the drawings that databases add below.

    Examples
    --------
    >>> first_line(ValueError("no such column\nLINE 1: SELECT"))
    'no such column'
    """
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _filled(
    store: Store, confidence: str | None, ask: Ask, *, n_jobs: int | None, progress: Progress
) -> Filled:
    reading = ask.reading
    if store.key is not None:
        if reading.key not in (None, store.key):
            raise InputError(
                f"key={reading.key!r}, but the key of a point is its id. Leave it out."
            )
        reading = replace(reading, key=store.key)
    if reading.key is None or reading.vector is None:
        raise InputError("key= and vector= name the columns of the table. Pass both.")
    columns = Columns(reading.key, reading.vector, confidence)
    with _in_our_words(store, "cannot be read"):
        table = store.read(columns)
    if table.num_rows == 0:
        raise InputError(f"{store.name} has no rows. vecfill learns from rows that have a vector.")
    with _naming_table(store.name):
        if confidence is not None:
            _check_confidences(table, confidence, store.name)
            reading = without_imputed(table, confidence, reading)
        alignment = align(table, None, reading)
    assert alignment.table is not None
    if alignment.table.has_vector.all():
        return Filled(None, ())
    ask = replace(ask, reading=reading)
    result = impute_aligned(alignment, ask, table=table, n_jobs=n_jobs, progress=progress)
    filling = result.filling()
    keys = table.column(columns.key).take(pa.array(filling.rows))
    sure = None
    if confidence is not None:
        unsaid = np.full(len(filling.rows), np.nan)
        sure = unsaid if filling.confidence is None else filling.confidence
    cells = NewCells(keys, filling.vectors, sure)
    if len(cells):
        trouble = f"was not changed, because column {columns.vector!r} cannot be written"
        with _in_our_words(store, trouble):
            store.write(cells, columns)
    return Filled(result, tuple(keys.to_pylist()), result.abstained)


def _check_confidences(table: pa.Table, name: str, where: str) -> None:
    """Refuse a column of whole numbers, to which a database would round confidences in silence."""
    if name not in table.column_names:
        return
    kind, types = table.schema.field(name).type, pa.types
    can_hold = (types.is_floating, types.is_decimal, types.is_string, types.is_null)
    if not any(is_kind(kind) for is_kind in can_hold):
        raise InputError(
            f"{where}: the column {name!r} holds values of type {kind}, not confidences. Choose "
            "another name (confidence=)."
        )


def refuse_changed(n_missing: int, n_expected: int, where: str, *, n_written: int = 0) -> None:
    """Refuse to go on if rows got a vector, or went, while vectors were being imputed.

    Examples
    --------
    >>> refuse_changed(3, 3, "items")
    """
    if n_missing == n_expected:
        return
    outcome = "Nothing was written"
    if n_written:
        outcome = f"Written: {count(n_written, 'vector')} of {n_expected:,}"
    raise InputError(
        f"{where} changed meanwhile. Vectors missing when it was read: {n_expected:,}; still "
        f"missing of these: {n_missing:,}. {outcome}; run again."
    )


def quoted(name: str) -> str:
    """Return the name of a column as SQL quotes it.

    Examples
    --------
    >>> print(quoted('my "odd" name'))
    "my ""odd"" name"
    """
    return '"' + name.replace('"', '""') + '"'


_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')


def quoted_table(name: str, exists: Callable[[str], bool]) -> str:
    """Return the name of a table as SQL quotes it; ``a.b`` is table b of schema a, or one name.

    Examples
    --------
    >>> print(quoted_table("main.items", {'"main"."items"'}.__contains__))
    "main"."items"
    >>> print(quoted_table("a.b", {'"a.b"'}.__contains__))
    "a.b"
    """
    parts = [part[1].replace('""', '"') if part[1] else part[2] for part in _PART.finditer(name)]
    ways = {".".join(map(quoted, parts)), quoted(name)} - {""}
    tables = sorted(filter(exists, ways))
    if not tables:
        raise InputError(f"there is no table {name!r}. Name one as schema.table or table.")
    if len(tables) > 1:
        raise InputError(f"there are two tables {name!r}. Pass one of {' and '.join(tables)}.")
    return tables[0]


def refuse_transaction(*, is_closed: bool) -> None:
    """Refuse a connection on which no transaction can begin."""
    if is_closed:
        raise InputError("the connection is closed. Open a new one.")
    raise InputError(
        "the connection has a transaction open, and the vectors need one of their own. Commit it "
        "or roll it back first."
    )


def refuse_object(thing: Any, methods: Collection[str], expected: str) -> None:
    """Refuse an object that lacks what a store needs of it.

    Examples
    --------
    >>> refuse_object("items", ["merge_insert"], "a LanceDB table. Pass one")
    Traceback (most recent call last):
    vecfill.errors.InputError: an object of type str is not a LanceDB table. Pass one.
    """
    if not all(hasattr(thing, method) for method in methods):
        raise InputError(f"an object of type {type(thing).__name__} is not {expected}.")
