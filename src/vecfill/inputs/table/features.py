"""Columns of a table -> one numeric matrix, and notes on what became of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, listed
from vecfill.inputs.later_rows import ColumnsReader
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns import Categories, Numbers, read_cells
from vecfill.inputs.table.compact import Compact, compacted
from vecfill.inputs.table.frames import MAX_COLUMNS, Frame
from vecfill.inputs.table.later_columns import (
    CategoryColumn,
    LaterColumn,
    NumberColumn,
    SignsColumn,
    TextColumn,
)
from vecfill.wording import count, percent

_MAX_BYTES = 1 << 34
_SCALE_GAP = 1e6

LARGE = 4_000_000
"""Entries from which a domain is kept in 32 bits, where they suffice."""

_LOST_OF_SPREAD = 1e-6
"""What rounding to 32 bits may change in a column of a large table, as a share of its spread."""


@dataclass
class _Findings:
    """What was found in the columns, gathered so that 500 of one kind make one sentence."""

    empty: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    averaged: dict[str, int] = field(default_factory=dict)
    without_category: dict[str, int] = field(default_factory=dict)

    def about_absent(self, n_entities: int) -> list[str]:
        """Return what to say of entities, and of columns, without any value."""
        who = count(n_entities, "entity has", "entities have")
        return [
            f"{who} no value; left out of this source.",
            *_Findings(empty=self.empty).sentences(),
        ]

    def sentences(self) -> list[str]:
        notes: list[str] = []
        for names, what in (
            (self.empty, "without any value; dropped"),
            (self.constant, "dropped because constant"),
            (self.identifiers, "another value in every row, like an identifier; not used"),
            (self.averaged, "set to the column's mean, and marked in a column '... (missing)'"),
            (self.without_category, "in no category"),
        ):
            if not names:
                continue
            head = f"{count(len(names), 'column')} ({listed(names)})"
            if isinstance(names, dict):
                head += f" with {count(sum(names.values()), 'missing value')}"
            notes.append(f"{head}: {what}.")
        return notes


def features_of_frame(
    entities: tuple[str, ...],
    frame: Frame,
    *,
    standardize: bool = False,
    categorical: Collection[str] = (),
    categorical_weight: float = 1.0,
    ignore: Collection[str] = (),
    skip_empty: bool = False,
) -> Domain:
    """Return the domain of a table whose entity names have been split off.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from vecfill.inputs.table.frames import frame_of
    >>> table = pa.table({"mass": [1.0, None, 3.0], "of": ["x", "x", "x"], "n": [7, 8, 9]})
    >>> domain = features_of_frame(("a", "b", "c"), frame_of(table))
    >>> domain.columns
    ('mass', 'mass (missing)', 'n')
    >>> domain.vectors
    array([[1., 0., 7.],
           [2., 1., 8.],
           [3., 0., 9.]])
    >>> for note in domain.notes: print(note)
    1 column ('of'): dropped because constant.
    1 column ('mass') with 1 missing value: set to the column's mean, and marked in a
    column '... (missing)'.
    """
    if not (np.isfinite(categorical_weight) and categorical_weight > 0):
        raise InputError(
            f"categorical_weight={categorical_weight!r} is not a positive number. 1 lets a "
            "category weigh as much as one standardised numeric column."
        )
    for option, names in (("ignore", ignore), ("categorical", categorical)):
        absent = [name for name in _as_names(names) if name not in frame.names]
        if absent:
            raise InputError(
                f"{option}= names {listed(absent)}, but {frame.label} has the columns "
                f"{listed(frame.names, 10)}.{did_you_mean(absent[0], frame.names)}"
            )
    ignore, categorical = _as_names(ignore), _as_names(categorical)
    columns: list[Numbers | Categories] = []
    for name, cells in zip(frame.names, frame.cells, strict=True):
        if name not in ignore:
            is_category = name in categorical
            columns.append(read_cells(frame.label, name, cells, entities, is_category=is_category))
    domain = features_of_columns(
        entities,
        columns,
        standardize=standardize,
        categorical_weight=categorical_weight,
        label=frame.label,
        skip_empty=skip_empty,
    )
    notes = frame.notes + domain.notes
    if frame.n_rows > 2 and set(frame.names) == set(entities):
        notes += (
            "The table is square and its columns are named like its rows; each row was taken as a "
            "vector. Say kind='similarities' or kind='distances' if it is a matrix of those.",
        )
    return replace(domain, notes=notes)


def features_of_columns(
    entities: tuple[str, ...],
    columns: Sequence[Numbers | Categories],
    *,
    standardize: bool = False,
    categorical_weight: float = 1.0,
    label: str = "the table",
    skip_empty: bool = False,
) -> Domain:
    """Return the domain of columns that have been read.

    A missing number becomes its column's mean, and an indicator as long as the column's spread
    marks it, so that it counts like the column itself whatever the unit. The indicators of one
    category together have variance `categorical_weight` squared, as a standardised column has 1.
    Entities without any value are refused; with `skip_empty` they are left out.

    Examples
    --------
    >>> kinds = Categories("kind", np.array([0, 1, 0, 1]), ("gas", "metal"))
    >>> features_of_columns(("a", "b", "c", "d"), [kinds]).vectors.var(axis=0).sum().round(6)
    np.float64(1.0)
    """
    found = _Findings()
    all_names = [column.name for column in columns]
    columns = _with_values(columns, found, label)
    blocks, compact = _blocks(columns, found, label)
    notes = [*found.sentences(), *(each.note for each in compact.values())]
    is_empty = _n_missing_of_rows([column for _, column in blocks], len(entities)) == len(blocks)
    if skip_empty and is_empty.any():
        rows = np.flatnonzero(~is_empty)
        some = features_of_columns(
            tuple(entities[row] for row in rows),
            [column.at(rows) for column in columns],
            standardize=standardize,
            categorical_weight=categorical_weight,
            label=label,
        )
        return replace(some, notes=(*found.about_absent(int(is_empty.sum())), *some.notes))
    _refuse_gaps(entities, [column for _, column in blocks], label)
    if not standardize:
        _note_scales([column for _, column in blocks], notes)
    names = [name for block, _ in blocks for name in block]
    _refuse_too_large(len(entities), len(names), blocks, label)
    is_large = len(entities) * len(names) >= LARGE
    dtype = (
        np.float32 if is_large and all(_fits_32_bits(each) for _, each in blocks) else np.float64
    )
    vectors = np.zeros((len(entities), len(names)), dtype)
    later: list[LaterColumn] = []
    start = 0
    for block, column in blocks:
        part = vectors[:, start : start + len(block)]
        if column.name in compact:
            part[:] = categorical_weight * compact[column.name].values
            later.append(_compact_later(column.name, compact[column.name], categorical_weight))
        elif isinstance(column, Categories):
            later.append(_write_categories(part, column, categorical_weight))
        else:
            later.append(_write_numbers(part, column, standardize))
        start += len(block)
    used = {column.name for column in later}
    reader = ColumnsReader(tuple(later), tuple(name for name in all_names if name not in used))
    return Domain(entities, vectors, tuple(names), "features", tuple(notes), reader=reader)


Block = tuple[list[str], Numbers | Categories]
"""A column, and the names of the dense columns that it becomes."""


def _blocks(
    columns: Sequence[Numbers | Categories], found: _Findings, label: str
) -> tuple[list[Block], dict[str, Compact]]:
    """Return the columns that tell entities apart, and those of them that are encoded compactly."""
    blocks: list[Block] = []
    compact: dict[str, Compact] = {}
    for column in columns:
        few = compacted(column) if isinstance(column, Categories) else None
        if few is not None:
            compact[column.name] = few
        if names := _names_of(column, few, found):
            blocks.append((names, column))
    if not blocks:
        notes = [*found.sentences(), *(each.note for each in compact.values())]
        raise InputError(
            f"{label}: no column can be used. " + " ".join(notes) + " Give at least one column "
            "that tells the entities apart."
        )
    return blocks, compact


def _compact_later(name: str, few: Compact, weight: float) -> LaterColumn:
    """Return how cells of a column of texts or of very many categories are read later."""
    if few.text is not None:
        return TextColumn(name, few.text, weight * few.scale, few.expects_new)
    return SignsColumn(name, few.frequent, weight * few.scale, few.expects_new)


def _names_of(
    column: Numbers | Categories, few: Compact | None, found: _Findings
) -> list[str] | None:
    """Return the names of the dense columns that a column becomes; None if it says nothing."""
    is_gap = column.is_missing
    n_missing = int(is_gap.sum())
    if isinstance(column, Numbers):
        if column.present.min() == column.present.max():
            found.constant.append(column.name)
            return None
        if n_missing:
            found.averaged[column.name] = n_missing
            return [column.name, f"{column.name} (missing)"]
        return [column.name]
    if len(column.labels) == 1:
        found.constant.append(column.name)
        return None
    if few is None and len(column.labels) == len(is_gap) - n_missing:
        found.identifiers.append(column.name)
        return None
    if n_missing:
        found.without_category[column.name] = n_missing
    return [f"{column.name}={value}" for value in column.labels] if few is None else few.names


def _with_values(
    columns: Sequence[Numbers | Categories], found: _Findings, label: str
) -> list[Numbers | Categories]:
    """Return the columns that are not wholly missing."""
    kept = [column for column in columns if not column.is_missing.all()]
    found.empty.extend(column.name for column in columns if column.is_missing.all())
    if not kept:
        raise InputError(
            f"{label}: no column has any value, or all are left out. Entities need features."
        )
    return kept


def _refuse_gaps(
    entities: tuple[str, ...], columns: Sequence[Numbers | Categories], label: str
) -> None:
    """Refuse rows of which nothing is known, and tables of which over half is not."""
    n_missing_of_row = _n_missing_of_rows(columns, len(entities))
    empty = np.flatnonzero(n_missing_of_row == len(columns))
    if len(empty):
        raise InputError(
            f"{label}: every value of entity {listed(entities[row] for row in empty)} that could "
            f"be used is missing (row {empty[0] + 1}). Nothing can be said about it; remove the "
            "row."
        )
    share = n_missing_of_row.sum() / (len(entities) * len(columns))
    if share > 0.5:
        raise InputError(
            f"{label}: {percent(share)} of the values are missing. With over half of them gone, "
            "what is left would be mostly means; leave out the emptiest columns (ignore=) or rows."
        )


def _n_missing_of_rows(columns: Sequence[Numbers | Categories], n_rows: int) -> np.ndarray:
    found = np.zeros(n_rows, dtype=np.int64)
    for column in columns:
        found += column.is_missing
    return found


def _fits_32_bits(column: Numbers | Categories) -> bool:
    """Tell whether rounding to 32 bits leaves a column what it is, also far from zero."""
    if isinstance(column, Categories):
        return True
    values = column.present
    with np.errstate(over="ignore"):
        lost = float(np.abs(values.astype(np.float32) - values).max())
    return lost <= _LOST_OF_SPREAD * column.mean_and_spread[1]


def _write_numbers(part: np.ndarray, column: Numbers, standardize: bool) -> NumberColumn:
    mean, spread = column.mean_and_spread
    largest = None
    if standardize:
        largest = float(np.abs(np.where(column.is_missing, mean, column.values)).max())
    later = NumberColumn(column.name, mean, spread, largest, part.shape[1] > 1)
    part[:] = later.filled(column.values)
    return later


def _write_categories(part: np.ndarray, column: Categories, weight: float) -> CategoryColumn:
    rows = np.flatnonzero(column.codes >= 0)
    shares = np.bincount(column.codes[rows], minlength=len(column.labels)) / len(column.codes)
    variance = float((shares * (1 - shares)).sum())
    value = float(weight / np.sqrt(variance))
    part[rows, column.codes[rows]] = value
    return CategoryColumn(column.name, column.labels, value)


def _note_scales(columns: Sequence[Numbers | Categories], notes: list[str]) -> None:
    spreads = {
        column.name: column.mean_and_spread[1] for column in columns if isinstance(column, Numbers)
    }
    if len(spreads) < 2:
        return
    for name, spread in sorted(spreads.items(), key=lambda item: -item[1])[:3]:
        others = [other for key, other in spreads.items() if key != name]
        middle = float(np.median(others))
        if spread / _SCALE_GAP >= middle:
            notes.append(
                f"Column {name!r} spreads {spread:.3g}, the others typically {middle:.3g}: it "
                "alone decides who is near whom. Use standardize=True unless that is meant."
            )


def _refuse_too_large(
    n_rows: int, n_columns: int, blocks: Sequence[tuple[list[str], object]], label: str
) -> None:
    n_bytes = 8 * n_rows * n_columns
    if n_columns <= MAX_COLUMNS and n_bytes <= _MAX_BYTES:
        return
    widest = max((names for names, _ in blocks), key=len)
    raise InputError(
        f"{label} becomes {n_columns:,} dense columns, {n_bytes / 2**30:.1f} GiB for {n_rows:,} "
        f"rows; {widest[0].partition('=')[0]!r} alone gives {len(widest):,}. Leave it out "
        "(ignore=), or pass a SciPy sparse matrix in Python."
    )


def _as_names(names: Collection[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
