"""`Domain`: what every kind of input becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from vecfill.wording import count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DomainKind: TypeAlias = Literal["features", "distances"]
Matrix: TypeAlias = "np.ndarray | csr_array"


@dataclass(frozen=True, eq=False)
class Domain:
    """Entities and their vectors, one row each, with notes on what was done to them.

    Attributes
    ----------
    entities
        Names of the rows.
    vectors
        Dense, or sparse by rows; a square matrix of distances if `kind` is `"distances"`.
    columns
        Names of the columns, `"sector=Energy"` for a category and `"price (missing)"` for an
        indicator.
    kind
        `"features"` or `"distances"`.
    notes
        Plain sentences: what was dropped, imputed or found.
    components
        Of a graph, the number of each node's component, 0 being the largest; otherwise None.
    is_guess
        Whether rows are guesses of what is to be imputed, as steps from its mean.
    links
        Of a large graph, its symmetric matrix of weights: who is joined to whom. It serves where a
        tree of the vectors would cost too much. Otherwise None.
    reader
        How entities that come later are read in the same way, see `vecfill.inputs.later_rows`;
        None if they cannot be.

    Examples
    --------
    >>> domain = Domain(("iron", "gold"), np.eye(2), ("x", "y"))
    >>> domain
    Domain(2 entities, 2 columns, kind='features', 0 notes)
    >>> len(domain)
    2
    """

    entities: tuple[str, ...]
    vectors: Matrix
    columns: tuple[str, ...]
    kind: DomainKind = "features"
    notes: tuple[str, ...] = ()
    components: np.ndarray | None = None
    reader: Any = field(default=None, repr=False)
    links: csr_array | None = field(default=None, repr=False)
    is_guess: bool = False

    def __len__(self) -> int:
        return len(self.entities)

    def __repr__(self) -> str:
        return (
            f"Domain({count(len(self.entities), 'entity')}, {count(len(self.columns), 'column')}, "
            f"kind={self.kind!r}, {count(len(self.notes), 'note')})"
        )

    @property
    def is_bare(self) -> bool:
        """Whether the entities have nothing but names.

        Examples
        --------
        >>> Domain(("iron", "tin"), np.empty((2, 0)), ()).is_bare
        True
        """
        return self.vectors.shape[1] == 0

    def cut_off(self, known: set[str]) -> tuple[str, ...]:
        """Return the entities with no path to a known one; empty unless this is a graph.

        Examples
        --------
        >>> parts = np.array([0, 0, 1])
        >>> domain = Domain(("a", "b", "c"), np.eye(3), ("x", "y", "z"), components=parts)
        >>> domain.cut_off({"a"})
        ('c',)
        """
        if self.components is None:
            return ()
        reached = {
            part
            for name, part in zip(self.entities, self.components.tolist(), strict=True)
            if name in known
        }
        return tuple(
            name
            for name, part in zip(self.entities, self.components.tolist(), strict=True)
            if part not in reached
        )
