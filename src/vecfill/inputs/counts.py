"""How often entities were counted: a mapping, a column of their table, or a file of pairs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.inputs.table.columns import read_numbers
from vecfill.inputs.table.frames import Frame, frame_by, keyed
from vecfill.io.names import read_pairs
from vecfill.requests import Reading


def is_column(counts: Any) -> bool:
    """Tell whether counts are named by a column: text that is the path of no file.

    Examples
    --------
    >>> is_column("population"), is_column({"Oslo": 3})
    (True, False)
    """
    return isinstance(counts, str) and not Path(counts).is_file()


def read_counts(table: Any, reading: Reading) -> dict[str, float]:
    """Return the count of each entity that has one.

    Examples
    --------
    >>> read_counts(None, Reading(counts={"Oslo": 3}))
    {'Oslo': 3.0}
    """
    counts = reading.counts
    if isinstance(counts, Mapping):
        return {str(name): _checked(str(name), value) for name, value in counts.items()}
    if is_column(counts):
        return _of_column(table, reading)
    if isinstance(counts, str | os.PathLike):
        return _of_file(counts)
    raise InputError(
        f"counts is an object of type {type(counts).__name__}. Pass a mapping from entity to "
        "count, the name of a column of the table, or a file of entity and count."
    )


def _of_file(path: str | os.PathLike[str]) -> dict[str, float]:
    pairs = read_pairs(path, second="count")
    # A first line whose second cell has no digit names the columns; `1,000` is a count gone wrong.
    rows = pairs[1:] if pairs and not any(map(str.isdigit, pairs[0][1])) else pairs
    counts: dict[str, float] = {}
    for name, value in rows:
        count = _checked(name, value)
        if counts.setdefault(name, count) != count:
            raise InputError(
                f"{path} counts {name!r} twice, as {counts[name]:g} and as {count:g}. Keep one "
                "line for each entity."
            )
    return counts


def _of_column(table: Any, reading: Reading) -> dict[str, float]:
    frame = None if isinstance(table, Mapping) else frame_by(table, reading)
    if frame is None:
        raise InputError(
            f"counts={reading.counts!r} is no file, and the table has no columns. Pass a mapping "
            "from entity to count."
        )
    entities, columns = keyed(frame, reading.key)
    numbers = _numbers(columns, str(reading.counts), entities)
    return {
        name: _checked(name, value)
        for name, value in zip(entities, numbers, strict=True)
        if not math.isnan(value)
    }


def _numbers(frame: Frame, column: str, entities: tuple[str, ...]) -> list[float]:
    if column not in frame.names:
        raise InputError(
            f"counts={column!r} is neither a file nor a column of {frame.label}. Its columns are "
            f"{', '.join(frame.names[:10])}."
        )
    numbers = read_numbers(
        frame.label, column, frame.columns[column], entities, advice="Counts are numbers."
    )
    return [float(value) for value in numbers]


def _checked(name: str, value: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError):
        count = math.nan
    if not (math.isfinite(count) and count >= 0):
        raise InputError(f"the count of {name!r} is {value!r}. Counts are numbers of at least 0.")
    return count
