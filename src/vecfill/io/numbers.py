"""Decimal numbers <-> floats, compiled: each number comes out as the nearest float there is."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vecfill.embedding import FloatArray
from vecfill.io.batches import Bytes, Offsets, shown
from vecfill.machine.compiled import compiled, compiled_part

POWERS = np.array([float(f"1e{exponent}") for exponent in range(61)])
"""Powers of ten; exact up to 10^22, and to half a unit beyond."""

NUMBER_TEXT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""What counts as a number in a file: no infinity, no comma."""

MAX_NUMBER = 800
"""Characters of a number; float64 needs at most 767 digits to tell it from its neighbours."""


@compiled_part
def parse_number(
    buffer: Bytes, start: int, end: int, single: bool, powers: NDArray[np.float64]
) -> tuple[float, int]:
    """Return the number in `buffer[start:end]` and whether it is certain, hard, or none at all.

    Certain for float64: digits and power of ten are both exact in float64, so that one rounding
    gives the nearest. Certain for float32: the float64 may be some units off, but is not so near
    to the middle between two float32 that this matters. The rest is left to exact arithmetic.
    """
    place = start
    negative = False
    if place < end and (buffer[place] == 45 or buffer[place] == 43):
        negative = buffer[place] == 45
        place += 1
    digits = np.uint64(0)
    n_digits = 0
    n_significant = 0
    exponent = 0
    seen_point = False
    while place < end:
        byte = int(buffer[place])
        if 48 <= byte <= 57:
            n_digits += 1
            if n_significant > 0 or byte != 48:
                n_significant += 1
            if n_significant <= 19:
                digits = digits * np.uint64(10) + np.uint64(byte - 48)
                if seen_point:
                    exponent -= 1
            elif not seen_point:
                exponent += 1
        elif byte == 46 and not seen_point:
            seen_point = True
        else:
            break
        place += 1
    if n_digits == 0 or end - start > 800:
        return 0.0, 2
    if place < end:
        if buffer[place] != 101 and buffer[place] != 69:
            return 0.0, 2
        place += 1
        minus = False
        if place < end and (buffer[place] == 45 or buffer[place] == 43):
            minus = buffer[place] == 45
            place += 1
        if place == end:
            return 0.0, 2
        written = 0
        while place < end:
            byte = int(buffer[place])
            if not (48 <= byte <= 57):
                return 0.0, 2
            written = min(written * 10 + (byte - 48), 100000)
            place += 1
        exponent += -written if minus else written
    if digits == 0:
        return (-0.0 if negative else 0.0), 0
    if exponent < -60 or exponent > 60:
        return 0.0, 1
    value = float(digits)
    value = value * powers[exponent] if exponent >= 0 else value / powers[-exponent]
    if negative:
        value = -value
    if single:
        size = abs(value)
        if size < 2.4e-38 or size > 3.4e38:
            return value, 1
        # The 29 bits that float32 drops, as a distance from the middle between two float32.
        dropped = np.float64(value).view(np.int64) & 0x1FFFFFFF
        return value, (1 if abs(dropped - 0x10000000) < 16 else 0)
    exact = n_significant <= 15 and -22 <= exponent <= 22
    return value, (0 if exact else 1)


@compiled
def parse_rows(
    buffer: Bytes,
    starts: Offsets,
    ends: Offsets,
    out: FloatArray,
    word_ends: Offsets,
    hard: Offsets,
    powers: NDArray[np.float64],
    single: bool,
) -> tuple[int, int, int]:
    """Parse the last numbers of each line to `out`; the rest in front is the word.

    Returns the rows done, the number of hard ones (row, column, start and end are in `hard`) and,
    if a line is bad, the column at fault (or -1: too few; -2: no word). Stops early when `hard`
    is full.
    """
    n_dims = out.shape[1]
    n_hard = 0
    for row in range(len(starts)):
        if row >= out.shape[0]:
            return row, n_hard, -1
        if n_hard + n_dims > hard.shape[0]:
            return row, n_hard, -9
        stop = ends[row]
        for back in range(n_dims):
            column = n_dims - 1 - back
            start = stop
            while start > starts[row] and buffer[start - 1] != 32 and buffer[start - 1] != 9:
                start -= 1
            if start == starts[row]:
                return row, n_hard, -1
            value, kind = parse_number(buffer, start, stop, single, powers)
            if kind == 2:
                return row, n_hard, column
            if kind == 1:
                hard[n_hard, 0] = row
                hard[n_hard, 1] = column
                hard[n_hard, 2] = start
                hard[n_hard, 3] = stop
                n_hard += 1
            out[row, column] = value
            stop = start - 1
        word_ends[row] = stop
        if stop == starts[row]:
            return row, n_hard, -2
    return len(starts), n_hard, -9


@compiled
def check_rows(
    buffer: Bytes,
    starts: Offsets,
    ends: Offsets,
    n_dims: int,
    word_ends: Offsets,
    powers: NDArray[np.float64],
) -> int:
    """Return how many of the first lines end in `n_dims` numbers that `parse_rows` would accept.

    Nothing is parsed but numbers with an exponent, so this takes a fraction of the time. It stops
    at the first line in doubt, and `parse_rows` then says what is wrong with it, if anything is.
    A number below 10^38 is finite in float32, so 38 digits before the point are beyond doubt.
    """
    for row in range(len(starts)):
        first = starts[row]
        stop = ends[row]
        for _ in range(n_dims):
            place = stop - 1
            while place >= first and np.uint8(buffer[np.uintp(place)] - np.uint8(48)) < 10:
                place -= 1
            n_digits = stop - 1 - place
            if place >= first and buffer[place] == 46:
                point = place
                place -= 1
                while place >= first and np.uint8(buffer[np.uintp(place)] - np.uint8(48)) < 10:
                    place -= 1
                n_whole = point - 1 - place
                n_digits += n_whole
            else:
                n_whole = n_digits
            if place < first:
                return row
            # Signs come at random, and a branch on them would be guessed wrongly half the time.
            byte = buffer[np.uintp(place)]
            place -= np.int64(byte == 45) | np.int64(byte == 43)
            if place < first or (buffer[place] != 32 and buffer[place] != 9):
                while place >= first and buffer[place] != 32 and buffer[place] != 9:
                    place -= 1
                if place < first:
                    return row
                _, kind = parse_number(buffer, place + 1, stop, True, powers)
                if kind != 0:
                    return row
            elif n_digits == 0 or n_whole > 38 or stop - place > 800:
                return row
            stop = place
        if stop == first:
            return row
        word_ends[row] = stop
    return len(starts)


def nearest_float(text: str, dtype: np.dtype[Any]) -> float:
    """Return the float of `dtype` nearest to a decimal number; infinity if it is too large.

    Going through float64 alone may round twice, and so miss the nearest float32.

    Examples
    --------
    >>> nearest_float("0.5", np.dtype(np.float32))
    0.5
    """
    double = float(text)
    if dtype.itemsize >= 8 or not np.isfinite(double) or abs(double) < 1e-60:
        return double
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(double)
        if not np.isfinite(single):
            return float(single)
        below = np.nextafter(single, np.float32(-np.inf))
        above = np.nextafter(single, np.float32(np.inf))
    exact = Fraction(text)
    candidates = [candidate for candidate in (single, below, above) if np.isfinite(candidate)]
    return float(
        min(
            candidates,
            key=lambda candidate: (
                abs(Fraction(float(candidate)) - exact),
                int(candidate.view(np.int32)) & 1,
            ),
        )
    )


def about_large(text: bytes, dtype: np.dtype[Any]) -> str:
    """Return what to say about a number that a type cannot hold.

    Examples
    --------
    >>> about_large(b"1e400", np.dtype(np.float64))
    "'1e400' is too large for float64, which cannot hold it. Correct it."
    """
    wider = ", or read the file with dtype='float64'"
    return (
        f"{shown(text)} is too large for {dtype}, which cannot hold it. Correct it"
        f"{wider if dtype.itemsize < 8 and np.isfinite(float(text)) else ''}."
    )


def shortest_texts(vectors: FloatArray) -> pa.StringArray:
    """Return each row as its numbers with a space between, each as short as reads back the same."""
    n_rows, n_dims = vectors.shape
    if vectors.dtype.itemsize < 4:
        vectors = vectors.astype(np.float32)
    values = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    offsets = pa.array(np.arange(0, n_rows * n_dims + 1, n_dims, dtype=np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, pc.cast(values, pa.string())), " ")
