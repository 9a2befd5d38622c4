"""Very many names in two arrays, with an index: found without holding them as texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class KeptNames:
    """Names of the rows of a model.

    Examples
    --------
    >>> names = KeptNames.of(["Oslo", "Bern"])
    >>> names.row("Bern"), names.row("Rome"), names[0], len(names)
    (1, None, 'Oslo', 2)
    """

    letters: np.ndarray = field(repr=False)
    """All names in UTF-8, one after the other."""
    ends: np.ndarray = field(repr=False)
    """(n_names,) where each ends."""
    hashes: np.ndarray = field(repr=False)
    """(n_names,) ascending."""
    order: np.ndarray = field(repr=False)
    """(n_names,) the row of the name with each hash."""

    @classmethod
    def of(cls, names: Sequence[str]) -> KeptNames:
        """Return names and their index."""
        raw = [name.encode("utf-8", "surrogatepass") for name in names]
        ends = np.cumsum([len(encoded) for encoded in raw], dtype=np.int64)
        letters = np.frombuffer(b"".join(raw), np.uint8)
        hashes = np.array([_hash(encoded) for encoded in raw], np.int64)
        # Of rows of one name the last comes first: an entity that was forgotten and came again.
        order = np.lexsort((-np.arange(hashes.size), hashes))
        return cls(letters, ends, hashes[order], order)

    def __len__(self) -> int:
        return self.ends.size

    def __getitem__(self, row: int) -> str:
        first = int(self.ends[row - 1]) if row else 0
        return self.letters[first : int(self.ends[row])].tobytes().decode("utf-8", "surrogatepass")

    def at(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Return the names of some rows."""
        return tuple(self[int(row)] for row in rows)

    def row(self, name: str) -> int | None:
        """Return the row of a name, or None."""
        name_hash = _hash(name.encode("utf-8", "surrogatepass"))
        place = int(np.searchsorted(self.hashes, name_hash))
        while place < self.hashes.size and self.hashes[place] == name_hash:
            row = int(self.order[place])
            if self[row] == name:
                return row
            place += 1
        return None


class NamesOfRows:
    """Names of some rows, looked up one at a time.

    Examples
    --------
    >>> NamesOfRows(KeptNames.of(["Oslo", "Bern"]), np.array([1]))[0]
    'Bern'
    """

    def __init__(self, names: KeptNames, rows: np.ndarray) -> None:
        self.names = names
        self.rows = rows

    def __getitem__(self, place: int, /) -> str:
        return self.names[int(self.rows[place])]


def _hash(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little", signed=True)
