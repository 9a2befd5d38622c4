"""The rows of a word2vec binary file, found in a window of its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecfill.io.batches import WHITE, Bytes, Offsets
from vecfill.machine.compiled import compiled, compiled_part

MAX_WORD = 1 << 16
SINGLE = np.dtype("<f4")

MORE, FULL, ENDLESS, EMPTY = 0, 1, 2, 3
"""Why a scan ends: more bytes are needed, all places are taken, a word has no end or no letter."""


def scan_few_rows(
    buffer: Bytes,
    end: int,
    *views_and_dims: Any,
) -> tuple[int, int, int]:
    """Do what `scan_rows` does, in plain Python."""
    n_dims, starts, ends, places, is_finite = views_and_dims[4:]
    content = buffer[:end].tobytes()
    place = 0
    for row in range(len(starts)):
        start = place + (content[place : place + 1] == b"\n")
        limit = min(end, start + MAX_WORD)
        stop = content.find(b" ", start, limit)
        if stop < 0:
            return row, place, ENDLESS if limit == start + MAX_WORD else MORE
        if not content[start:stop].strip(WHITE):
            return row, place, EMPTY
        first = stop + 1
        if first + 4 * n_dims > end:
            return row, place, MORE
        vector = np.frombuffer(content, SINGLE, n_dims, first)
        is_finite[row] = np.isfinite(vector).all()
        starts[row], ends[row], places[row] = start, stop, first
        place = first + 4 * n_dims
    return len(starts), place, FULL


@compiled
def scan_rows(
    buffer: Bytes,
    end: int,
    view0: NDArray[np.int32],
    view1: NDArray[np.int32],
    view2: NDArray[np.int32],
    view3: NDArray[np.int32],
    n_dims: int,
    starts: Offsets,
    ends: Offsets,
    places: Offsets,
    is_finite: NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Find the whole rows in `buffer[:end]`; return their number, the bytes used and a status.

    Rows start at any byte, so the numbers are looked at through the one of four shifted views
    that fits.
    """
    place = 0
    n_rows = 0
    while n_rows < len(starts):
        start = place
        if start < end and buffer[start] == 10:
            start += 1
        stop = start
        limit = min(end, start + 65536)
        is_white = True
        while stop < limit and buffer[stop] != 32:
            if not (9 <= buffer[stop] <= 13):
                is_white = False
            stop += 1
        if stop == limit:
            return n_rows, place, 2 if limit == start + 65536 else 0
        if is_white:
            return n_rows, place, 3
        first = stop + 1
        if first + 4 * n_dims > end:
            return n_rows, place, 0
        shift = first & 3
        if shift == 0:
            is_finite[n_rows] = all_finite(view0, first >> 2, n_dims)
        elif shift == 1:
            is_finite[n_rows] = all_finite(view1, first >> 2, n_dims)
        elif shift == 2:
            is_finite[n_rows] = all_finite(view2, first >> 2, n_dims)
        else:
            is_finite[n_rows] = all_finite(view3, first >> 2, n_dims)
        starts[n_rows] = start
        ends[n_rows] = stop
        places[n_rows] = first
        n_rows += 1
        place = first + 4 * n_dims
    return n_rows, place, 1


@compiled_part
def all_finite(view: NDArray[np.int32], first: int, n: int) -> bool:
    """Tell whether no exponent is all ones; written without a branch, so that it is vectorised."""
    n_bad = 0
    for place in range(first, first + n):
        n_bad += (view[place] & 0x7F800000) == 0x7F800000
    return n_bad == 0


@compiled
def gather(buffer: Bytes, places: Offsets, taken: Bytes) -> None:
    """Copy the bytes of vectors to the rows of `taken`."""
    for row in range(len(places)):
        taken[row, :] = buffer[places[row] : places[row] + taken.shape[1]]
