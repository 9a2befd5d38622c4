"""Which rows are asked for: unknown rows of the fit, or rows that came later.

A predictor has one `predict` for both. It asks a space for the wanted rows, or a kernel for how
alike they and known rows are, and need not know when the rows came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from vecfill.model.known import KnownRows

if TYPE_CHECKING:
    from vecfill.model.space import Member, Space


class Wanted(Protocol):
    """The rows that a prediction is about."""

    is_new: ClassVar[bool]
    """Whether the rows came after the fit, so that the domain does not hold them."""

    def numbers(self, known_rows: KnownRows) -> np.ndarray:
        """Return the numbers of the rows, by which a trend knows them."""
        ...

    def n_numbers(self, known_rows: KnownRows) -> int:
        """Return how many numbers there are."""
        ...

    def prepared(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the rows under a preparation."""
        ...

    def among(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the rows as a kernel takes them: by number, or prepared."""
        ...

    def presence(self, presence: np.ndarray, known_rows: KnownRows) -> np.ndarray:
        """Return which source describes which row; `presence` has the rows of the fit."""
        ...

    def of_source(
        self, number: int, member: Member, known_rows: KnownRows, of_member: KnownRows
    ) -> tuple[np.ndarray, Wanted] | None:
        """Return which of the rows a source describes, and these rows among its own.

        ``None`` if nothing can be said: no row that came later has this source.
        """
        ...


@dataclass(frozen=True, eq=False)
class Unknown:
    """Unknown rows of the fit.

    Examples
    --------
    >>> given = KnownRows(np.zeros((3, 1)), np.array([False, True, False]))
    >>> Unknown().numbers(given), Unknown(np.array([1])).numbers(given)
    (array([0, 2]), array([2]))
    """

    places: np.ndarray | None = None
    """Numbered among the unknown rows; ``None``: all of them."""

    is_new: ClassVar[bool] = False

    def numbers(self, known_rows: KnownRows) -> np.ndarray:
        """Return the numbers of the rows in the domain."""
        return known_rows.wanted(self.places)

    def n_numbers(self, known_rows: KnownRows) -> int:
        """Return how many rows the domain has."""
        return known_rows.is_known.size

    def prepared(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the rows under a preparation."""
        return space.prepared(preparation)[self.numbers(known_rows)]

    def among(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the numbers of the rows."""
        return self.numbers(known_rows)

    def presence(self, presence: np.ndarray, known_rows: KnownRows) -> np.ndarray:
        """Return which source describes which row."""
        return presence[self.numbers(known_rows)]

    def of_source(
        self, number: int, member: Member, known_rows: KnownRows, of_member: KnownRows
    ) -> tuple[np.ndarray, Wanted] | None:
        """Return which of the rows a source describes, and their places among its unknown ones."""
        # -1 marks rows of the whole that the source does not have, or that it knows already.
        place_of = np.full(member.n_all, -1)
        place_of[member.rows[of_member.unknown]] = np.arange(of_member.unknown.size)
        places = place_of[self.numbers(known_rows)]
        described = np.flatnonzero(places >= 0)
        return described, Unknown(places[described])


ALL = Unknown()
"""All unknown rows of the fit."""


@dataclass(frozen=True, eq=False)
class New:
    """Rows that came after the fit.

    Each row's answer does not depend on the others.
    """

    rows: Any = field(repr=False)
    """A row of the domain for each; of a domain of distances, its distances from all rows there.
    `SourceRows` if there are several sources."""
    hidden: np.ndarray | None = field(default=None, repr=False)
    """Numbers of rows of the fit that they are made from, and on which they must not rest."""

    is_new: ClassVar[bool] = True

    def __getitem__(self, places: Any) -> New:
        return New(self.rows[places], self.hidden)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self.rows.shape[0]

    def numbers(self, known_rows: KnownRows) -> np.ndarray:
        """Return the numbers of the rows among themselves."""
        return np.arange(self.size)

    def n_numbers(self, known_rows: KnownRows) -> int:
        """Return how many rows there are."""
        return self.size

    def prepared(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the rows under a preparation, as it was fitted."""
        return space.prepared_new(preparation, self.rows)

    def among(self, space: Space, preparation: str, known_rows: KnownRows) -> Any:
        """Return the rows, prepared."""
        # Prepared once here: a kernel asks for the rows block by block.
        return New(self.prepared(space, preparation, known_rows))

    def presence(self, presence: np.ndarray, known_rows: KnownRows) -> np.ndarray:
        """Return which source describes which row."""
        return self.rows.presence(presence.shape[1])

    def of_source(
        self, number: int, member: Member, known_rows: KnownRows, of_member: KnownRows
    ) -> tuple[np.ndarray, Wanted] | None:
        """Return which of the rows a source describes, and what it says about them."""
        places = self.rows.places.get(number)
        if places is None:
            return None
        hidden = self.hidden
        if hidden is not None:
            hidden = np.flatnonzero(np.isin(member.rows, hidden))
        return places, New(self.rows.rows[number], hidden)


@dataclass(frozen=True, eq=False)
class SourceRows:
    """Rows of several sources that came after the fit."""

    n_new: int
    rows: dict[int, Any] = field(repr=False)
    """By number of the source, the rows of those new entities that it describes."""
    places: dict[int, np.ndarray] = field(repr=False)
    """Which new entities these are."""

    @property
    def shape(self) -> tuple[int]:
        """(n_new,)."""
        return (self.n_new,)

    def presence(self, n_sources: int) -> np.ndarray:
        """(n_new, n_sources) which source describes which new entity."""
        # A source that is missing from what was passed describes none of the new entities.
        is_present = np.zeros((self.n_new, n_sources), np.bool_)
        for number, places in self.places.items():
            is_present[places, number] = True
        return is_present
