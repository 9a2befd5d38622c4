"""What all databases share: read a table, impute, write back only what was missing.

A database is one module with a `Store` and a function that opens it. `filling` does the rest, so
all of them treat options, results and second runs alike.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.inputs.alignment import align
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.table.one_table import without_imputed
from vecfill.requests import Ask, Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.run import impute_aligned


@dataclass(frozen=True, eq=False)
class NewCells:
    """What is to be written: keys as the store has them, a vector each, and confidences."""

    keys: pa.ChunkedArray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    confidence: np.ndarray | None = field(default=None, repr=False)
    """``None`` if no confidences are to be written."""

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class Columns:
    """What the columns of a store are called."""

    key: str
    vector: str
    confidence: str | None = None
    """Where confidences are written, if anywhere."""


class Store(ABC):
    """A place that holds keys, features and vectors."""

    key: str | None = None
    """What the key is called where it has a name of its own, which users need not say."""

    @abstractmethod
    def read(self, columns: Columns) -> pa.Table:
        """Return all rows; a vector that is missing is null."""

    @abstractmethod
    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all cells or none; a vector that is there by now is an error."""


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


Opened = Callable[..., AbstractContextManager[Store]]

_PARAMETERS = """\
confidence
    Name of a column for the confidence of each new vector; it is added if it does not exist.
    Later runs do not learn from rows that have a confidence.
n_jobs, progress
    As in `vecfill.impute`.

"""


def filling(opened: Opened) -> Callable[..., Filled]:
    """Make a function that opens a store into one that fills it, all vectors or none.

    What it makes takes the options of `vecfill.impute` as well.
    """

    def fill(
        *place: Any,
        confidence: str | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        ask: Ask,
        **places: Any,
    ) -> Filled:
        with opened(*place, **places) as store:
            return _filled(store, confidence, ask, n_jobs=n_jobs, progress=progress or quiet)

    shown = inspect.signature(fill).parameters
    more = [shown[name] for name in ("confidence", "n_jobs", "progress", "ask")]
    where = inspect.signature(opened).parameters.values()
    text, mark, examples = inspect.cleandoc(opened.__doc__ or "").partition("Examples\n--------\n")
    # What `takes` looks at: the function's own parameters, and where in its text they end.
    cast(Any, fill).__signature__ = inspect.Signature([*where, *more])
    fill.__doc__ = f"{text.rstrip()}\n{_PARAMETERS}{mark}{examples}"
    fill.__name__, fill.__qualname__, fill.__module__ = (
        opened.__name__,
        opened.__qualname__,
        opened.__module__,
    )
    return takes(Reading, Method, Trust)(fill)


def _filled(
    store: Store, confidence: str | None, ask: Ask, *, n_jobs: int | None, progress: Progress
) -> Filled:
    """Impute the missing vectors of a store and write them back, all of them or none."""
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
    table = store.read(columns)
    if table.num_rows == 0:
        raise InputError("the table has no rows. vecfill learns from rows that have a vector.")
    if confidence is not None:
        reading = without_imputed(table, confidence, reading)
    alignment = align(table, None, reading)
    assert alignment.table is not None
    if alignment.table.has_vector.all():
        return Filled(None, ())
    result = impute_aligned(alignment, ask, n_jobs=n_jobs, progress=progress)
    filling = result.filling()
    keys = table.column(columns.key).take(pa.array(filling.rows))
    sure = None
    if confidence is not None:
        unsaid = np.full(len(filling.rows), np.nan)
        sure = unsaid if filling.confidence is None else filling.confidence
    cells = NewCells(keys, filling.vectors, sure)
    if len(cells):
        store.write(cells, columns)
    return Filled(result, tuple(keys.to_pylist()), result.abstained)


def refuse_changed(n_written: int, n_expected: int, where: str) -> None:
    """Refuse to finish if rows got a vector, or went, while vectors were being imputed.

    Examples
    --------
    >>> refuse_changed(3, 3, "items")
    """
    if n_written != n_expected:
        raise InputError(
            f"{where} changed meanwhile. Vectors missing when it was read: {n_expected:,}; still "
            f"missing of these: {n_written:,}. Nothing was written; run again."
        )


def quoted(name: str) -> str:
    """Return the name of a column as SQL quotes it.

    Examples
    --------
    >>> print(quoted('my "odd" name'))
    "my ""odd"" name"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Return the name of a table as SQL quotes it, each part of ``schema.table`` for itself.

    Examples
    --------
    >>> print(quoted_table("main.items"))
    "main"."items"
    """
    return ".".join(quoted(part) for part in name.split("."))
