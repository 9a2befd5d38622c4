"""Stage: which entities are known or may be seen, and their vectors in the order of the entities.

Names are compared by 128 bits of their hashes, so the driver holds 16 bytes a row and no names.
Known vectors are kept in slabs of columns, because that is how propagation reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from vecfill.distributed.ingest import names_piece
from vecfill.distributed.layout import WIDTH, Layout
from vecfill.distributed.pieces import read_array, read_table
from vecfill.distributed.tasks import Runner, Task
from vecfill.errors import InputError
from vecfill.method.engine import row_blocks


@dataclass(frozen=True)
class Known:
    """The known rows: how many, and the pieces that hold their vectors."""

    layout: Layout
    n_known: int
    n_dims: int
    dtype: str

    @property
    def n_slabs(self) -> int:
        """How many slabs of columns there are."""
        return -(-self.n_dims // WIDTH)

    @property
    def blocks(self) -> list[slice]:
        """The blocks of known rows."""
        return row_blocks(self.n_known, self.layout.rows_per_block)

    def rows(self) -> np.ndarray:
        """Return the numbers of the known rows, ascending."""
        return read_array(self.layout.piece("known", "rows"))

    def is_known(self) -> np.ndarray:
        """Return whether each row is known."""
        mask = np.zeros(self.layout.n_rows, np.bool_)
        mask[self.rows()] = True
        return mask

    def vectors(self, block: int) -> np.ndarray:
        """Return the vectors of a block of known rows."""
        return joined_slabs(read_array(self.layout.piece("known", "slabs", block)), self.n_dims)

    def some_vectors(self, places: np.ndarray) -> np.ndarray:
        """Return the vectors of some known rows, whose places among them ascend."""
        vectors = np.empty((places.size, self.n_dims))
        edges = [span.start for span in self.blocks] + [self.n_known]
        cuts = np.searchsorted(places, edges)
        for block, (first, last) in enumerate(pairwise(cuts)):
            if first < last:
                vectors[first:last] = self.vectors(block)[places[first:last] - edges[block]]
        return vectors


@dataclass(frozen=True)
class Sample:
    """Known rows that may be seen: all of them, or all but the hidden ones."""

    known: Known
    variant: str
    """``"final"`` or ``"hidden"``."""

    def piece(self, *names: object) -> Path:
        """Return the path of a piece that depends on which rows are seen."""
        return self.known.layout.piece(self.variant, *names)

    def is_seen(self) -> np.ndarray:
        """Return which known rows are seen."""
        return read_array(self.known.layout.piece("known", f"seen_{self.variant}"))

    def is_seen_row(self) -> np.ndarray:
        """Return which of all rows are seen."""
        mask = np.zeros(self.known.layout.n_rows, np.bool_)
        mask[self.known.rows()] = self.is_seen()
        return mask

    def block(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the seen rows within a block, and their numbers."""
        span = self.known.blocks[block]
        places = np.flatnonzero(self.is_seen()[span])
        return places, np.array(self.known.rows()[span])[places]


def in_slabs(vectors: np.ndarray) -> np.ndarray:
    """Return vectors cut into slabs of columns, (n_slabs, n_rows, width), the last filled with 0.

    Examples
    --------
    >>> in_slabs(np.ones((5, 20))).shape
    (2, 5, 16)
    """
    n_rows, n_dims = vectors.shape
    slabs = np.zeros((-(-n_dims // WIDTH), n_rows, WIDTH), vectors.dtype)
    for slab, columns in zip(slabs, row_blocks(n_dims, WIDTH), strict=True):
        slab[:, : columns.stop - columns.start] = vectors[:, columns]
    return slabs


def joined_slabs(slabs: np.ndarray, n_dims: int) -> np.ndarray:
    """Return vectors that were cut into slabs of columns.

    Examples
    --------
    >>> vectors = np.arange(40.0).reshape(2, 20)
    >>> bool((joined_slabs(in_slabs(vectors), 20) == vectors).all())
    True
    """
    return np.hstack([*slabs])[:, :n_dims]


def align(layout: Layout, vectors: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the known rows, and where their vectors are."""

    def whole(role: str, kind: str) -> np.ndarray:
        blocks = range(len((layout if role == "features" else vectors).blocks))
        return np.concatenate([read_array(layout.piece(role, kind, block)) for block in blocks])

    entities, words = whole("features", "hashes"), whole("vectors", "hashes")
    order = _sorted_unique(layout, entities, "features")
    source = np.flatnonzero(whole("vectors", "has"))
    source = source[_sorted_unique(layout, words[source], "vectors")]
    place = np.searchsorted(entities[order, 0], words[source, 0])
    place = np.minimum(place, order.size - 1)
    is_match = (entities[order[place]] == words[source]).all(axis=1)
    rows, source = order[place[is_match]], source[is_match]
    by_row = np.argsort(rows, kind="stable")
    return rows[by_row], source[by_row]


def _sorted_unique(layout: Layout, hashes: np.ndarray, role: str) -> np.ndarray:
    """Return the order of the hashes; refuse two that are equal in their first half."""
    order = np.argsort(hashes[:, 0], kind="stable")
    ordered = hashes[order]
    repeats = np.flatnonzero(ordered[1:, 0] == ordered[:-1, 0])
    if repeats.size:
        first, second = sorted((int(order[repeats[0]]), int(order[repeats[0] + 1])))
        is_same = bool((ordered[repeats[0]] == ordered[repeats[0] + 1]).all())
        clash = "have the same name" if is_same else "have names with the same 64-bit hash"
        name = f", {_name(layout, first)!r}" if role == "features" else ""
        raise InputError(
            f"Rows {first + 1} and {second + 1} of {role} {clash}{name}. Keep one row for each "
            "entity."
        )
    return order


def _name(layout: Layout, row: int) -> str:
    block, place = divmod(row, layout.rows_per_block)
    return read_table(names_piece(layout, block)).column("entity")[place].as_py()


def known_slabs(known: Known, vectors: Layout, block: int) -> np.ndarray:
    """Return the vectors of a block of known rows, in slabs of columns."""
    layout = known.layout
    source = read_array(layout.piece("known", "source"))[known.blocks[block]]
    gathered = np.empty((source.size, known.n_dims), known.dtype)
    block_of = source // vectors.rows_per_block
    for number in np.unique(block_of):
        places = np.flatnonzero(block_of == number)
        rows = read_array(layout.piece("vectors", "rows", int(number)))
        gathered[places] = rows[source[places] - number * vectors.rows_per_block]
    return in_slabs(gathered)


def aligned(runner: Runner, layout: Layout, vectors: Layout) -> Known:
    """Run the stage."""
    outputs = (layout.piece("known", "rows"), layout.piece("known", "source"))
    arguments = {"layout": layout, "vectors": vectors}
    runner.run([Task("align", "names", align, arguments, outputs)])
    n_known = len(runner.read(read_array, outputs[0]))
    if n_known == 0:
        raise InputError(
            "No entity of the features has a vector: not one name is in both. Names must be equal "
            "to the letter here."
        )
    known = Known(layout, n_known, vectors.n_features, vectors.dtype)
    slabs = [layout.piece("known", "slabs", block) for block in range(len(known.blocks))]
    runner.run_each("align", "vectors", known_slabs, slabs, known=known, vectors=vectors)
    return known
