"""How the work is cut, and where its pieces lie.

What decides bits (the size of a block whose sums are added up, the number of cells, the columns
that are solved together) depends on the data alone. What only decides how much a task holds (the
rows of a group) depends on memory and workers; it is recorded with the plan, so that a resumed job
finds its pieces again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.errors import InputError
from vecfill.method.engine import row_blocks

BLOCK_BYTES = 1 << 26
"""Bytes of a block of rows. Sums are added up by blocks, so another value has other bits."""

MOST_ROWS, LEAST_ROWS = 65536, 256
"""Rows of a block, whatever their length: few enough to be held, enough to be worth a task."""

WIDTH = 16
"""Columns of a slab, as in memory."""

MOST_WIDE = 6_000_000
"""Unknown rows up to which a whole slab is solved at once; above, half of it, and so on."""

NARROWEST = 2
"""A column that is solved alone is added up in another order, and its last bits differ."""

PROCESS_BYTES = 250 << 20
"""What a process holds before it does anything: Python and the libraries."""

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def bytes_of(memory: str | int) -> int:
    """Return how many bytes a text such as ``"4GB"`` means.

    Examples
    --------
    >>> bytes_of("1.5GB")
    1500000000
    """
    if isinstance(memory, int) and not isinstance(memory, bool):
        n_bytes = memory
    else:
        text = str(memory).strip().upper().replace("IB", "B")
        unit = next((unit for unit in reversed(UNITS) if text.endswith(unit)), "")
        try:
            n_bytes = int(float(text.removesuffix(unit)) * UNITS[unit])
        except (KeyError, ValueError, OverflowError):
            raise InputError(
                f"memory={memory!r} is not an amount of memory. Write for example '4GB'."
            ) from None
    if n_bytes < 10**8:
        raise InputError(f"memory={memory!r} is too little. Give at least '100MB'.")
    return n_bytes


def task_bytes(memory: int, n_workers: int) -> int:
    """Return what one task may hold when all workers and the driver share `memory`.

    Examples
    --------
    >>> task_bytes(4 * 10**9, 2) // 10**8
    16
    """
    return max(memory // 20, (memory - PROCESS_BYTES * (n_workers + 1)) // n_workers)


@dataclass(frozen=True)
class Layout:
    """Sizes of the data and of the pieces it is cut in, and the folder of the pieces."""

    work: Path
    n_rows: int
    n_features: int
    dtype: str
    rows_per_block: int
    rows_per_group: int
    n_cells: int

    @property
    def blocks(self) -> list[slice]:
        """The blocks of rows, in order."""
        return row_blocks(self.n_rows, self.rows_per_block)

    def piece(self, *names: object) -> Path:
        """Return the path of a piece by its stage and name, such as ``("rows", 3)``."""
        *folders, name = (f"{name:06d}" if isinstance(name, int) else str(name) for name in names)
        return self.work.joinpath("pieces", *folders, name if "." in name else f"{name}.npy")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the folder."""
        return {name: value for name, value in asdict(self).items() if name != "work"}


def rows_in_block(n_bytes_of_row: int) -> int:
    """Return how many rows a block has: a power of two that depends on the length of rows alone.

    Examples
    --------
    >>> rows_in_block(400), rows_in_block(40_000)
    (65536, 1024)
    """
    n_rows = int(np.clip(BLOCK_BYTES // max(1, n_bytes_of_row), LEAST_ROWS, MOST_ROWS))
    return 1 << (n_rows.bit_length() - 1)


def rows_in_group(n_rows: int, n_features: int, itemsize: int, n_bytes: int, workers: int) -> int:
    """Return how many rows search their neighbours in one task.

    A row is held as it is and lifted, with its candidates and probes. Each worker gets several
    groups if there are rows enough, so that none waits long for the last.

    Examples
    --------
    >>> rows_in_group(2_000_000, 100, 4, 10**9, 2)
    131072
    """
    row_bytes = n_features * (itemsize + 8) + 1500
    fair = -(-n_rows // (4 * workers))
    return int(max(1024, min(0.5 * n_bytes / row_bytes, max(fair, 16384), 131072)))


def slab_width(n_unknown: int) -> int:
    """Return how many columns are solved together: fewer for so many rows that memory counts.

    Examples
    --------
    >>> slab_width(1_000_000), slab_width(20_000_000)
    (16, 4)
    """
    width = WIDTH
    while width > NARROWEST and n_unknown * width > MOST_WIDE * WIDTH:
        width //= 2
    return width


def columns_at_once(n_columns: int, n_unknown: int) -> list[slice]:
    """Return which columns of a slab are solved together; never one of several alone.

    Examples
    --------
    >>> columns_at_once(5, 1_000_000), columns_at_once(5, 50_000_000)
    ([slice(0, 5, None)], [slice(0, 2, None), slice(2, 5, None)])
    """
    blocks = row_blocks(n_columns, slab_width(n_unknown))
    if len(blocks) > 1 and blocks[-1].stop - blocks[-1].start < NARROWEST:
        blocks[-2:] = [slice(blocks[-2].start, n_columns)]
    return blocks


def solving_bytes(n_unknown: int, n_links: int, n_seen: int, itemsize: int) -> int:
    """Return about what solving one slab holds: right sides, directions, weights, known columns."""
    width = slab_width(n_unknown)
    columns = n_unknown * width * (3 * 8 + 7 * 4 + itemsize)
    return columns + 32 * n_links + n_seen * width * (8 + 2 * itemsize)
