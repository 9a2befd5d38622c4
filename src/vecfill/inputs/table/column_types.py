"""Types of columns: how each becomes numbers at the fit, and for entities that come later.

A type is a dataclass of what a column of that type learnt at the fit. `fitted` takes a column, or
leaves it to the next type in `COLUMN_TYPES`. `encoded` returns the numbers of cells that come
later, and for each row what is unusual about it, or an empty text. A new type is one class and one
entry in that list, and a model file holds it by its fields.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vecfill.inputs.table.column_type import (
    Block,
    Column,
    ColumnType,
    Encoded,
    Scales,
    dense_block,
)
from vecfill.inputs.table.columns import Categories, Numbers
from vecfill.inputs.table.date_column import DateColumn
from vecfill.inputs.table.list_column import ListColumn
from vecfill.inputs.table.new_cells import NewCells
from vecfill.inputs.texts.text_rows import TextModel, text_rows, words_of

MOST_INDICATORS = 256
"""Categories of one column that get an indicator each; a guess."""

N_SIGNS = 128
"""Columns that stand for more categories than that. The cosine of two random rows of so many signs
has a standard deviation of 1 / sqrt(128) = .09, so categories stay apart. See decision 18."""

N_TEXT_COMPONENTS = 64
"""Components of TF-IDF that stand for a column of text; a guess."""

FEWEST_TEXTS = 20
FEWEST_WORDS = 3.0
"""Words of a cell, on average, from which a column may be text; a guess."""

USUAL = 0.05
"""Share of the fitted rows that make a category of their own, or a text that shares no word with
others, nothing unusual in later rows; a guess."""

_LOOKED_AT = 1000
"""Cells of a column that are enough to tell whether it holds text."""


@dataclass(frozen=True, eq=False)
class NumberColumn(ColumnType):
    """A column of numbers; a missing one becomes the mean of the fitted ones.

    Examples
    --------
    >>> mass = NumberColumn("mass", mean=2.0, spread=1.0, marks_missing=True)
    >>> mass.encoded(NewCells("mass", [5.0, None], ["a", "b"]))
    (array([[5., 0.],
           [2., 1.]]), ['', ''])
    """

    is_number = True
    name: str
    mean: float
    spread: float
    largest: float | None = None
    """By what values are divided before they are standardised; ``None``: they are not."""
    marks_missing: bool = False

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return a column of numbers, and one that marks what is missing if anything is.

        The mark is as long as the column's spread, so it counts like the column itself whatever the
        unit.
        """
        if not isinstance(column, Numbers):
            return None
        mean, spread = column.mean_and_spread
        largest = None
        if scales.standardize:
            largest = float(np.abs(np.where(column.is_missing, mean, column.values)).max())
        names = [column.name]
        if column.is_missing.any():
            names.append(f"{column.name} (missing)")
        encoder = cls(column.name, mean, spread, largest, len(names) > 1)

        def write(part: np.ndarray) -> None:
            part[:] = encoder.filled(column.values)

        return Block(column, names, encoder, write)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the numbers of new cells."""
        values = cells.numbers("It held numbers when the model was fitted.")
        why = f"{self.name} is missing, which no fitted entity lacked"
        is_unusual = np.isnan(values) & (not self.marks_missing)
        return self.filled(values), [why if is_odd else "" for is_odd in is_unusual.tolist()]

    def told(self, numbers: np.ndarray) -> np.ndarray:
        """Return the values in the unit of the table."""
        return numbers[:, 0] if self.largest is None else numbers[:, 0] * self.spread + self.mean

    def is_lacking(self, numbers: np.ndarray) -> np.ndarray:
        """Tell which rows are marked as missing: without marks, none was."""
        # A row of the mean may have had that value.
        return numbers[:, 1] != 0 if self.marks_missing else np.zeros(len(numbers), np.bool_)

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Return numbers, NaN where they are missing, as columns of the domain."""
        missing = np.isnan(values)
        numbers = np.where(missing, self.mean, values)
        spread = self.spread
        if self.largest is not None:
            numbers = (numbers / self.largest - self.mean / self.largest) / (spread / self.largest)
            spread = 1.0
        if self.marks_missing:
            return np.column_stack([numbers, missing * spread])
        return numbers[:, None]


@dataclass(frozen=True, eq=False)
class _Labelled(ColumnType):
    """A column whose categories have places."""

    name: str
    labels: tuple[str, ...] = field(repr=False)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def place(self, value: str) -> int | None:
        """Return the place of a category; codes may be written 3 or 3.0."""
        if value in self._place:
            return self._place[value]
        return self._place.get(value[:-2] if value.endswith(".0") else f"{value}.0")

    def _unseen(self, value: str) -> str:
        return f"{self.name} is {value[:40]!r}, which no fitted entity had"


@dataclass(frozen=True, eq=False)
class CategoryColumn(_Labelled):
    """A column of categories, an indicator each.

    Examples
    --------
    >>> kind = CategoryColumn("kind", ("gas", "metal"), 2.0)
    >>> kind.encoded(NewCells("kind", ["metal", "plasma"], ["a", "b"]))
    (array([[0., 2.],
           [0., 0.]]), ['', "kind is 'plasma', which no fitted entity had"])
    """

    value: float

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return an indicator of each category; None if every row has a category of its own.

        The indicators of one column together have variance `categorical_weight` squared, as a
        standardised column has 1.
        """
        if not isinstance(column, Categories) or column.is_identifier:
            return None
        rows = np.flatnonzero(column.codes >= 0)
        shares = np.bincount(column.codes[rows], minlength=len(column.labels)) / len(column.codes)
        variance = float((shares * (1 - shares)).sum())
        value = float(scales.categorical_weight / np.sqrt(variance))

        def write(part: np.ndarray) -> None:
            part[rows, column.codes[rows]] = value

        names = [f"{column.name}={label}" for label in column.labels]
        return Block(column, names, cls(column.name, column.labels, value), write)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the indicators of new cells; a category that is not known has none."""
        indicators = np.zeros((len(cells.entities), len(self.labels)))
        unusual = [""] * len(cells.entities)
        for row, value in enumerate(cells.labels()):
            place = None if value is None else self.place(value)
            if place is not None:
                indicators[row, place] = self.value
            elif value is not None:
                unusual[row] = self._unseen(value)
        return indicators, unusual


@dataclass(frozen=True, eq=False)
class SignsColumn(_Labelled):
    """A column of very many categories, as random signs made from the label alone.

    Its `labels` are the categories of more than one fitted row.
    """

    scale: float
    expects_new: bool = False
    """Whether many fitted rows had a category of their own."""

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return random signs for each category, made from its label alone.

        Any two categories are then about equally far apart, as they are with indicators. A
        decomposition of the indicators would not do: they are orthogonal, so it would keep the most
        frequent categories and mix up all others. A category of one row cannot be shared, so all
        such are pooled.
        """
        if not isinstance(column, Categories) or column.is_identifier:
            return None
        if len(column.labels) <= MOST_INDICATORS:
            return None
        times = np.bincount(column.codes[column.codes >= 0], minlength=len(column.labels))
        is_rare = times == 1
        n_rare = int(is_rare.sum())
        keys = ["" if is_rare[at] else f"={label}" for at, label in enumerate(column.labels)]
        signs = np.array([signs_of(key) for key in keys])
        values = np.zeros((len(column.codes), N_SIGNS))
        values[column.codes >= 0] = signs[column.codes[column.codes >= 0]]
        pooled = f" {n_rare:,} that occur once are taken as one." if n_rare else ""
        note = (
            f"Column {column.name!r} has {len(column.labels):,} categories: they are encoded in "
            f"{N_SIGNS} columns, which together count as much as one category.{pooled}"
        )
        frequent = tuple(column.labels[place] for place in np.flatnonzero(~is_rare))
        expects_new = n_rare / max(1, int(times.sum())) >= USUAL

        def encoder(scale: float) -> SignsColumn:
            return cls(column.name, frequent, scale, expects_new)

        return dense_block(column, "hashed", values, encoder, note, scales)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the signs of new cells; rare categories and new ones share theirs."""
        signs = np.zeros((len(cells.entities), N_SIGNS))
        unusual = [""] * len(cells.entities)
        for row, value in enumerate(cells.labels()):
            if value is None:
                continue
            place = self.place(value)
            fitted_label = "" if place is None else f"={self.labels[place]}"
            signs[row] = self.scale * signs_of(fitted_label)
            if place is None and not self.expects_new:
                unusual[row] = self._unseen(value)
        return signs, unusual


@dataclass(frozen=True, eq=False)
class TextColumn(ColumnType):
    """A column of text, as TF-IDF in a few components."""

    name: str
    model: TextModel = field(repr=False)
    scale: float
    expects_new: bool = False
    """Whether many fitted texts shared no word with others."""

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return TF-IDF of a column if nearly every cell is another text of several words."""
        if not isinstance(column, Categories) or column.is_asked:
            return None
        n_present = int((column.codes >= 0).sum())
        if len(column.labels) < max(FEWEST_TEXTS, n_present / 2):
            return None
        step = -(-len(column.labels) // _LOOKED_AT)
        n_words = np.mean([len(words_of(label)) for label in column.labels[::step]])
        if n_words < FEWEST_WORDS:
            return None
        rows = text_rows([text or "" for text in column.texts()], n_components=N_TEXT_COMPONENTS)
        # Identifiers of several words each, such as keys and addresses, share none.
        if 2 * rows.is_present.sum() < n_present or not rows.vectors.size:
            return None
        values = np.zeros((len(column.codes), rows.vectors.shape[1]))
        values[rows.is_present] = rows.vectors
        note = (
            f"Column {column.name!r} holds text ({len(column.labels):,} values of {n_words:.0f} "
            f"words on average): used as TF-IDF of {values.shape[1]} components, which together "
            "count as much as one category. Name it in categorical= or ignore= if it is no text."
        )
        expects_new = 1.0 - rows.is_present.sum() / n_present >= USUAL

        def encoder(scale: float) -> TextColumn:
            assert rows.model is not None
            return cls(column.name, rows.model, scale, bool(expects_new))

        return dense_block(column, "text", values, encoder, note, scales)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the components of new texts."""
        texts = [text or "" for text in cells.labels()]
        rows = self.model.rows(texts)
        why = f"{self.name} has no word of the fitted texts"
        unusual = [
            why if text and not (is_there or self.expects_new) else ""
            for text, is_there in zip(texts, rows.is_present.tolist(), strict=True)
        ]
        components = np.zeros((len(texts), self.model.n_components))
        components[rows.is_present] = self.scale * rows.vectors
        return components, unusual


COLUMN_TYPES: list[type[ColumnType]] = [
    DateColumn, ListColumn, TextColumn, SignsColumn, CategoryColumn, NumberColumn,
]  # fmt: skip
"""All types; a column is of the first that takes it."""


def block_of(column: Column, scales: Scales) -> Block | None:
    """Return what a column becomes; None if it has another value in every row, as a key has."""
    blocks = (kind.fitted(column, scales) for kind in COLUMN_TYPES)
    return next((block for block in blocks if block is not None), None)


def signs_of(label: str) -> np.ndarray:
    """Return the random signs that stand for a category."""
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=N_SIGNS // 8)
    return np.unpackbits(np.frombuffer(digest.digest(), np.uint8)) * 2.0 - 1.0
