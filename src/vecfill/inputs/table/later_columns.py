"""How one column of a table became numbers, so that cells which come later become the same.

Each class is one kind of column. `encoded` returns the numbers of new cells, and for each row what
is unusual about it, or an empty text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vecfill.inputs.table.columns import Categories, read_cells, read_numbers
from vecfill.inputs.table.compact import N_SIGNS, signs_of
from vecfill.inputs.table.frames import Cells
from vecfill.inputs.texts.tfidf import TextModel


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers; a missing one becomes the mean of the fitted ones.

    Examples
    --------
    >>> mass = NumberColumn("mass", mean=2.0, spread=1.0, marks_missing=True)
    >>> mass.encoded([5.0, None], ["a", "b"], "the table")
    (array([[5., 0.],
           [2., 1.]]), ['', ''])
    """

    name: str
    mean: float
    spread: float
    largest: float | None = None
    """By what values are divided before they are standardised; ``None``: they are not."""
    marks_missing: bool = False

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return 2 if self.marks_missing else 1

    def encoded(
        self, cells: Cells, entities: Sequence[str], label: str
    ) -> tuple[np.ndarray, list[str]]:
        """Return the numbers of new cells."""
        advice = "It held numbers when the model was fitted."
        values = read_numbers(label, self.name, cells, entities, advice=advice)
        why = f"{self.name} is missing, which no fitted entity lacked"
        is_unusual = np.isnan(values) & (not self.marks_missing)
        return self.filled(values), [why if each else "" for each in is_unusual.tolist()]

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Return numbers, NaN where they are missing, as columns of the domain."""
        missing = np.isnan(values)
        found = np.where(missing, self.mean, values)
        spread = self.spread
        if self.largest is not None:
            found = (found / self.largest - self.mean / self.largest) / (spread / self.largest)
            spread = 1.0
        return np.column_stack([found, missing * spread]) if self.marks_missing else found[:, None]


@dataclass(frozen=True, eq=False)
class _Labelled:
    """A column whose categories have places."""

    name: str
    labels: tuple[str, ...] = field(repr=False)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}


@dataclass(frozen=True, eq=False)
class CategoryColumn(_Labelled):
    """A column of categories, an indicator each.

    Examples
    --------
    >>> kind = CategoryColumn("kind", ("gas", "metal"), 2.0)
    >>> kind.encoded(["metal", "plasma"], ["a", "b"], "the table")
    (array([[0., 2.],
           [0., 0.]]), ['', "kind is 'plasma', which no fitted entity had"])
    """

    value: float

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return len(self.labels)

    def encoded(
        self, cells: Cells, entities: Sequence[str], label: str
    ) -> tuple[np.ndarray, list[str]]:
        """Return the indicators of new cells; a category that is not known has none."""
        found = np.zeros((len(entities), self.width))
        unusual = []
        for row, value in enumerate(_labels(self.name, cells, entities, label)):
            place = None if value is None else _found(value, self._place)
            if place is not None:
                found[row, place] = self.value
            unusual.append("" if value is None or place is not None else _unseen(self.name, value))
        return found, unusual


@dataclass(frozen=True, eq=False)
class SignsColumn(_Labelled):
    """A column of very many categories, as random signs made from the label alone.

    Its `labels` are the categories of more than one fitted row.
    """

    scale: float
    expects_new: bool = False
    """Whether many fitted rows had a category of their own."""

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return N_SIGNS

    def encoded(
        self, cells: Cells, entities: Sequence[str], label: str
    ) -> tuple[np.ndarray, list[str]]:
        """Return the signs of new cells; rare categories and new ones share theirs."""
        found = np.zeros((len(entities), N_SIGNS))
        unusual = []
        for row, value in enumerate(_labels(self.name, cells, entities, label)):
            place = None if value is None else _found(value, self._place)
            if value is not None:
                signs = signs_of("" if place is None else f"={self.labels[place]}")
                found[row] = self.scale * signs
            is_usual = value is None or place is not None or self.expects_new
            unusual.append("" if is_usual else _unseen(self.name, value or ""))
        return found, unusual


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text, as TF-IDF in a few components."""

    name: str
    model: TextModel = field(repr=False)
    scale: float
    expects_new: bool = False
    """Whether many fitted texts shared no word with others."""

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return self.model.n_components

    def encoded(
        self, cells: Cells, entities: Sequence[str], label: str
    ) -> tuple[np.ndarray, list[str]]:
        """Return the components of new texts."""
        texts = [value or "" for value in _labels(self.name, cells, entities, label)]
        rows = self.model.rows(texts)
        unusual = [
            f"{self.name} has no word of the fitted texts"
            if text and not (is_there or self.expects_new)
            else ""
            for text, is_there in zip(texts, rows.is_present.tolist(), strict=True)
        ]
        found = np.zeros((len(texts), self.width))
        found[rows.is_present] = self.scale * rows.vectors
        return found, unusual


LaterColumn = NumberColumn | CategoryColumn | SignsColumn | TextColumn


def _labels(name: str, cells: Cells, entities: Sequence[str], label: str) -> list[str | None]:
    """Return cells as texts, None where they are missing."""
    column = read_cells(label, name, cells, entities, is_category=True)
    if not isinstance(column, Categories):  # no cell has a value
        return [None] * len(entities)
    return [None if code < 0 else column.labels[code] for code in column.codes.tolist()]


def _found(value: str, place: dict[str, int]) -> int | None:
    """Return the place of a category; codes may be written 3 or 3.0."""
    if value in place:
        return place[value]
    other = value[:-2] if value.endswith(".0") else f"{value}.0"
    return place.get(other)


def _unseen(name: str, value: str) -> str:
    return f"{name} is {value[:40]!r}, which no fitted entity had"
