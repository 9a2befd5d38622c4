"""What all databases share: read a table, impute, write back only what was missing.

A database is one module with a `Store`. `fill_store` does the rest, so all of them treat options,
results and second runs alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.inputs.alignment import align
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.one_table import without_imputed
from vecfill.requests import Method, Reading, Trust
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


class Store(Protocol):
    """A place that holds keys, features and vectors."""

    def read(self) -> pa.Table:
        """Return all rows; a vector that is missing is null."""
        ...

    def write(self, cells: NewCells) -> None:
        """Write all cells or none; a vector that is there by now is an error."""
        ...


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


@dataclass(frozen=True)
class StoreOptions:
    """How a database is to be read and filled, beside the options of `vecfill.impute`."""

    confidence: str | None = None
    n_jobs: int | None = None
    progress: Progress = quiet


def fill_store(
    store: Store, requests: tuple[Reading, Method, Trust], options: StoreOptions
) -> Filled:
    """Impute the missing vectors of a store and write them back, all of them or none."""
    reading, how, trust = requests
    if reading.key is None or reading.vector is None:
        raise InputError("key= and vector= name the columns of the table. Pass both.")
    table = store.read()
    if table.num_rows == 0:
        raise InputError("the table has no rows. vecfill learns from rows that have a vector.")
    if options.confidence is not None:
        reading = without_imputed(table, options.confidence, reading)
    alignment = align(table, None, reading)
    assert alignment.table is not None
    if alignment.table.has_vector.all():
        return Filled(None, ())
    result = impute_aligned(alignment, how, trust, n_jobs=options.n_jobs, progress=options.progress)
    filling = result.filling()
    keys = table.column(reading.key).take(pa.array(filling.rows))
    sure = None
    if options.confidence is not None:
        unsaid = np.full(len(filling.rows), np.nan)
        sure = unsaid if filling.confidence is None else filling.confidence
    cells = NewCells(keys, filling.vectors, sure)
    if len(cells):
        store.write(cells)
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
