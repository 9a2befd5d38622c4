"""A column of lists in cells, such as ``Drama|Comedy``: an indicator for each item."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vecfill.inputs.entities import listed
from vecfill.inputs.table.column_type import (
    Block,
    Column,
    ColumnType,
    Encoded,
    Scales,
    dense_block,
)
from vecfill.inputs.table.columns import LISTS, Categories
from vecfill.inputs.table.new_cells import NewCells

SEPARATORS = (LISTS, ";", ",")
"""What may stand between items. A comma also stands in texts and names; see `_is_list`."""

FEWEST_LISTS = 0.1
"""Share of cells with several items from which on a column holds lists; a guess."""

MOST_ITEMS = 256
"""Items that get an indicator: the most frequent ones. As many as categories of a column."""

MOST_WORDS = 3
"""Words that items separated by commas have at most: others are parts of a text. A guess."""


@dataclass(frozen=True, eq=False)
class ListColumn(ColumnType):
    """A column whose cells list items, an indicator each.

    Examples
    --------
    >>> genres = ListColumn("genres", "|", ("Comedy", "Drama"), 2.0)
    >>> genres.encoded(NewCells("genres", ["Drama|Comedy", "Drama|Noir"], ["a", "b"]))
    (array([[2., 2.],
           [0., 2.]]), ['', "genres has 'Noir', which no fitted entity had"])
    """

    name: str
    separator: str
    items: tuple[str, ...] = field(repr=False)
    value: float
    expects_new: bool = False
    """Whether fitted rows had items that got no indicator."""

    @classmethod
    def fitted(cls, column: Column, scales: Scales) -> Block | None:
        """Return an indicator of each item if cells are lists of items that come again."""
        if not isinstance(column, Categories) or column.is_asked:
            return None
        texts = column.texts()
        separator = next((mark for mark in SEPARATORS if _is_list(column, mark)), None)
        if separator is None:
            return None
        lists = [_items(text, separator) for text in texts]
        times = Counter(item for items in lists for item in items)
        # What only one row has cannot say that two rows are alike.
        shared = sorted((item for item in times if times[item] > 1), key=lambda i: (-times[i], i))
        items = tuple(sorted(shared[:MOST_ITEMS]))
        place = {item: number for number, item in enumerate(items)}
        values = np.zeros((len(texts), len(items)))
        for row, of_row in enumerate(lists):
            values[row, [place[item] for item in of_row if item in place]] = 1.0
        n_others = len(times) - len(items)
        rare_items = f" {n_others:,} others are too rare." if n_others else ""
        note = (
            f"Column {column.name!r} holds lists separated by {separator!r}: split into "
            f"{len(items)} indicators ({listed(items, 4)}).{rare_items} Name it in categorical= if "
            "each cell is one value."
        )

        def encoder(scale: float) -> ListColumn:
            return cls(column.name, separator, items, scale, n_others > 0)

        block = dense_block(column, "list", values, encoder, note, scales)
        if block is None:
            return None
        names = [f"{column.name}={item}" for item in items]
        return Block(block.column, names, block.encoder, block.write, block.note)

    def encoded(self, cells: NewCells) -> Encoded:
        """Return the indicators of new cells; an item that is not known has none."""
        indicators = np.zeros((len(cells.entities), len(self.items)))
        unusual = [""] * len(cells.entities)
        for row, text in enumerate(cells.labels()):
            new = []
            for item in _items(text, self.separator):
                if item in self._place:
                    indicators[row, self._place[item]] = self.value
                else:
                    new.append(item)
            if new and not self.expects_new:
                unusual[row] = f"{self.name} has {new[0][:40]!r}, which no fitted entity had"
        return indicators, unusual

    @cached_property
    def _place(self) -> dict[str, int]:
        return {item: number for number, item in enumerate(self.items)}


def _items(text: str | None, separator: str) -> list[str]:
    """Return the items of a cell, each once.

    Examples
    --------
    >>> _items("Drama| Comedy||Drama", "|"), _items(None, "|")
    (['Drama', 'Comedy'], [])
    """
    items = (text or "").split(separator)
    return list(dict.fromkeys(item.strip() for item in items if item.strip()))


def _is_list(column: Categories, separator: str) -> bool:
    """Tell whether cells of a column are lists: their items come again where the cells do not."""
    lists = [_items(label, separator) for label in column.labels]
    n_several = sum(len(items) > 1 for items in lists)
    if n_several == 0 or n_several < FEWEST_LISTS * len(lists):
        return False
    times = Counter(item for items in lists for item in items)
    if separator == "," and any(len(item.split()) > MOST_WORDS for item in times):
        return False
    # Lists are put together of fewer things than there are lists; names such as "Paris, France"
    # and sentences have nearly as many parts as there are of them.
    return 2 * len(times) <= len(lists) + n_several and sum(times.values()) >= 2 * len(times)
