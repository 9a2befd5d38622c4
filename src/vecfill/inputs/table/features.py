"""Columns of a table -> one numeric matrix, and notes on what became of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, listed
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.column_facts import ColumnFacts
from vecfill.inputs.table.column_type import AS_THEY_ARE, Block, Column, Scales
from vecfill.inputs.table.column_types import TextColumn, block_of
from vecfill.inputs.table.columns import Categories, Numbers, read_cells
from vecfill.inputs.table.columns_reader import ColumnsReader
from vecfill.inputs.table.frames import MAX_COLUMNS, Frame
from vecfill.wording import count, percent

_MAX_BYTES = 1 << 34
"""Dense columns beyond 16 GiB are refused; a guess at what machines have."""

_SCALE_GAP = 1e6
"""How many times the spread of the others makes a column decide alone; a guess."""

LARGE = 4_000_000
"""Entries from which a domain is kept in 32 bits, where they suffice."""

_LOST_OF_SPREAD = 1e-6
"""What rounding to 32 bits may change in a column of a large table, as a share of its spread."""


@dataclass
class _Findings:
    """What there is to say of the columns, gathered so that 500 of one kind make one sentence."""

    empty: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    n_missing: dict[str, dict[str, int]] = field(
        default_factory=lambda: {Numbers.about_missing: {}, Categories.about_missing: {}}
    )
    """Missing values of columns, by what becomes of them."""
    notes: list[str] = field(default_factory=list)
    """What is said of one column alone."""

    def about_absent(self, n_entities: int) -> list[str]:
        """Return what to say of entities, and of columns, without any value."""
        absent = count(n_entities, "entity has", "entities have")
        note = f"{absent} no value; left out of this source."
        return [note, *_Findings(empty=self.empty).sentences()]

    def sentences(self) -> list[str]:
        sentences: list[str] = []
        for names, became in (
            (self.empty, "without any value; dropped"),
            (self.constant, "dropped because constant"),
            (self.identifiers, "another value in every row, like an identifier; not used"),
            *((n_missing, became) for became, n_missing in self.n_missing.items()),
        ):
            if not names:
                continue
            head = f"{count(len(names), 'column')} ({listed(names)})"
            if isinstance(names, dict):
                head += f" with {count(sum(names.values()), 'missing value')}"
            sentences.append(f"{head}: {became}.")
        return [*sentences, *self.notes]


def features_of_frame(
    entities: tuple[str, ...],
    frame: Frame,
    *,
    standardize: bool = False,
    categorical: Collection[str] = (),
    categorical_weight: float = 1.0,
    ignore: Collection[str] = (),
    skip_empty: bool = False,
    key: str | None = None,
) -> Domain:
    """Return the domain of a table whose entity names, in the column `key`, have been split off.

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
    ignore, categorical = _as_names(ignore), _as_names(categorical)
    for option, names in (("ignore", ignore), ("categorical", categorical)):
        absent = [name for name in names if name not in frame.names]
        if absent:
            raise InputError(
                f"{option}= names {listed(absent)}, but {frame.label} has the columns "
                f"{listed(frame.names, 10)}.{did_you_mean(absent[0], frame.names)}"
            )
    columns = [
        read_cells(frame.label, name, cells, entities, is_category=name in categorical)
        for name, cells in frame.columns.items()
        if name not in ignore
    ]
    domain = features_of_columns(
        entities,
        columns,
        scales=Scales(standardize, categorical_weight),
        label=frame.label,
        skip_empty=skip_empty,
        key=key,
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
    columns: Sequence[Column],
    *,
    scales: Scales = AS_THEY_ARE,
    label: str = "the table",
    skip_empty: bool = False,
    dtype: np.dtype[Any] | None = None,
    key: str | None = None,
) -> Domain:
    """Return the domain of columns that have been read, in `dtype` if that is told.

    What becomes of a column its type says (`column_types`). Entities without any value are refused;
    with `skip_empty` they are left out.

    Examples
    --------
    >>> kinds = Categories("kind", np.array([0, 1, 0, 1]), ("gas", "metal"))
    >>> features_of_columns(("a", "b", "c", "d"), [kinds]).vectors.var(axis=0).sum().round(6)
    np.float64(1.0)
    """
    findings = _Findings()
    blocks = _blocks(columns, scales, findings, label)
    used_columns = [block.column for block in blocks]
    is_empty = _n_missing_of_rows(used_columns) == len(blocks)
    if skip_empty and is_empty.any():
        rows = np.flatnonzero(~is_empty)
        described = features_of_columns(
            tuple(entities[row] for row in rows),
            [column.at(rows) for column in columns if not column.is_missing.all()],
            scales=scales,
            label=label,
            key=key,
        )
        notes = (*findings.about_absent(int(is_empty.sum())), *described.notes)
        return replace(described, notes=notes)
    _refuse_gaps(entities, used_columns, label)
    notes = findings.sentences()
    if not scales.standardize:
        notes += _notes_on_scales(used_columns)
    names = [name for block in blocks for name in block.names]
    _refuse_too_large(len(entities), len(names), blocks, label)
    is_large = len(entities) * len(names) >= LARGE
    is_short = is_large and all(column.fits_32_bits(_LOST_OF_SPREAD) for column in used_columns)
    vectors = np.zeros((len(entities), len(names)), np.float32 if is_short else np.float64)
    start = 0
    for block in blocks:
        block.write(vectors[:, start : start + len(block.names)])
        start += len(block.names)
    used_names = {column.name for column in used_columns}
    unused = tuple(column.name for column in columns if column.name not in used_names)
    like = tuple(
        ColumnFacts.of(block.column, is_text=isinstance(block.encoder, TextColumn))
        for block in blocks
    )
    reader = ColumnsReader(tuple(block.encoder for block in blocks), unused, key=key, like=like)
    if dtype is not None:
        vectors, reader = vectors.astype(dtype, copy=False), replace(reader, dtype=str(dtype))
    return Domain(entities, vectors, tuple(names), "features", tuple(notes), reader=reader)


def _blocks(
    columns: Sequence[Column], scales: Scales, findings: _Findings, label: str
) -> list[Block]:
    """Return what becomes of the columns that tell entities apart."""
    findings.empty += [column.name for column in columns if column.is_missing.all()]
    if len(findings.empty) == len(columns):
        raise InputError(
            f"{label}: no column has any value, or all are left out. Entities need features."
        )
    blocks: list[Block] = []
    for column in columns:
        if column.is_missing.all():
            continue
        block = None if column.is_constant else block_of(column, scales)
        if block is None:
            unused = findings.constant if column.is_constant else findings.identifiers
            unused.append(column.name)
            continue
        blocks.append(block)
        if n_missing := int(column.is_missing.sum()):
            findings.n_missing[column.about_missing][column.name] = n_missing
        if block.note is not None:
            findings.notes.append(block.note)
    if not blocks:
        raise InputError(
            f"{label}: no column can be used. {' '.join(findings.sentences())} Give at least one "
            "column that tells the entities apart."
        )
    return blocks


def _refuse_gaps(entities: tuple[str, ...], columns: Sequence[Column], label: str) -> None:
    """Refuse rows of which nothing is known, and tables of which over half is not."""
    n_missing_of_row = _n_missing_of_rows(columns)
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


def _n_missing_of_rows(columns: Sequence[Column]) -> np.ndarray:
    return np.array([column.is_missing for column in columns]).sum(axis=0, dtype=np.int64)


def _notes_on_scales(columns: Sequence[Column]) -> list[str]:
    """Return a warning of each column whose numbers are far larger than those of the others."""
    spreads = {
        column.name: column.mean_and_spread[1] for column in columns if isinstance(column, Numbers)
    }
    notes: list[str] = []
    if len(spreads) < 2:
        return notes
    for name, spread in sorted(spreads.items(), key=lambda item: -item[1])[:3]:
        typical = float(np.median([spreads[key] for key in spreads if key != name]))
        if spread / _SCALE_GAP >= typical:
            notes.append(
                f"Column {name!r} spreads {spread:.3g}, the others typically {typical:.3g}: it "
                "alone decides who is near whom. Use standardize=True unless that is meant."
            )
    return notes


def _refuse_too_large(n_rows: int, n_columns: int, blocks: Sequence[Block], label: str) -> None:
    n_bytes = 8 * n_rows * n_columns
    if n_columns <= MAX_COLUMNS and n_bytes <= _MAX_BYTES:
        return
    widest = max((block.names for block in blocks), key=len)
    raise InputError(
        f"{label} becomes {n_columns:,} dense columns, {n_bytes / 2**30:.1f} GiB for {n_rows:,} "
        f"rows; {widest[0].partition('=')[0]!r} alone gives {len(widest):,}. Leave it out "
        "(ignore=), or pass a SciPy sparse matrix in Python."
    )


def _as_names(names: Collection[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
