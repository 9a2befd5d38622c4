"""Groups of entities that a user names, such as countries or genres, that get their own bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, is_missing, listed
from vecfill.inputs.table.frames import Frame, frame_by, keyed, objects
from vecfill.requests import Reading


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each entity.

    Examples
    --------
    >>> groups = Groups.of("country", ["Peru", None, "Chile", "Peru"])
    >>> groups.labels()
    array(['country Peru', None, 'country Chile', 'country Peru'], dtype=object)
    """

    title: str
    """What the groups are called: their column, or ``"group"``."""
    names: tuple[str, ...]
    codes: np.ndarray
    """(n_entities,) which name each entity has; -1: none."""

    @classmethod
    def of(cls, title: str, values: Sequence[Any]) -> Groups:
        """Return the groups of entities with these values; a missing value is no group."""
        texts = [None if is_missing(value) else _text(value) for value in values]
        place = {
            text: place
            for place, text in enumerate(dict.fromkeys(text for text in texts if text is not None))
        }
        codes = np.array([-1 if text is None else place[text] for text in texts], np.int32)
        return cls(title, tuple(place), codes)

    def labels(self) -> np.ndarray:
        """Return the group of each entity in words; ``None`` if it has none."""
        named = np.array([*(f"{self.title} {name}" for name in self.names), None], dtype=object)
        return named[self.codes]

    @property
    def of_others(self) -> str:
        """What groups of few known entities are called together."""
        return f"any other {self.title}"

    def at(self, rows: np.ndarray) -> Groups:
        """Return the groups of some of the entities."""
        return Groups(self.title, self.names, self.codes[rows])

    def followed_by(self, later: Groups) -> Groups:
        """Return the groups of these entities and then of later ones."""
        names = tuple(dict.fromkeys((*self.names, *later.names)))
        place = {name: number for number, name in enumerate(names)}
        # The last is that of entities without a group.
        of_later = np.array([*(place[name] for name in later.names), -1], np.int32)
        return Groups(self.title, names, np.append(self.codes, of_later[later.codes]))


def read_groups(table: Any, groups: Any, reading: Reading, entities: Sequence[str]) -> Groups:
    """Return the groups of entities: those of a mapping, or of a column of their table.

    Examples
    --------
    >>> read_groups(None, {"Lima": "Peru"}, Reading(), ("Lima", "Rome")).labels()
    array(['group Peru', None], dtype=object)
    """
    if isinstance(groups, Mapping):
        return Groups.of("group", [groups.get(entity) for entity in entities])
    if not isinstance(groups, str):
        raise InputError(
            f"groups is an object of type {type(groups).__name__}. Pass the name of a column of "
            "the table, or a mapping from entity to group."
        )
    columns: list[str] = []
    for frame in _frames(table, reading):
        names, described = keyed(frame, reading.key)
        if groups in described.names:
            value_of = dict(zip(names, objects(described.columns[groups]), strict=True))
            return Groups.of(groups, [value_of.get(entity) for entity in entities])
        columns += described.names
    if not columns:
        raise InputError(
            f"groups={groups!r} names a column, and the table has none. Pass a mapping from entity "
            "to group."
        )
    raise InputError(
        f"groups={groups!r} is no column of the table.{did_you_mean(groups, columns)} Its columns "
        f"are {listed(columns, 10)}."
    )


def _frames(table: Any, reading: Reading) -> Iterable[Frame]:
    """Return every table that has columns, of one or several sources."""
    tables = list(table.values()) if isinstance(table, Mapping) else [table]
    if isinstance(table, list | tuple):
        tables = list(table)
    frames = (frame_by(source, reading) for source in tables)
    return [frame for frame in frames if frame is not None]


def _text(value: Any) -> str:
    """Return a group as text; a whole number is written the same whatever type it is read as.

    Examples
    --------
    >>> _text(3.0), _text(3), _text("3")
    ('3', '3', '3')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
