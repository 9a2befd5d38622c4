"""Dates -> years with a fraction, so that they have distances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_YEAR_FIRST = re.compile(
    r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?",
    re.A,
)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})", re.A)
_SHORT = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2}", re.A)


class DateError(ValueError):
    """What is wrong with a column of dates, at a row or with all of them."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


def is_date(text: str) -> bool:
    """Tell whether a text is written like a date.

    Examples
    --------
    >>> [is_date(text) for text in ("1979-05-25", "25.5.1979", "5/25/79", "1979")]
    [True, True, True, False]
    """
    return any(form.fullmatch(text) for form in (_YEAR_FIRST, _YEAR_LAST, _SHORT))


def years_of_texts(texts: Sequence[str | None]) -> np.ndarray:
    """Return dates as years with a fraction, NaN where there is none.

    Day and month are told apart by the whole column: one of them is above 12 somewhere. A column in
    which neither is says nothing, and is refused.

    Examples
    --------
    >>> years_of_texts(["2000-01-01", "2000-07-02", None])
    array([2000. , 2000.5,    nan])
    >>> years_of_texts(["1/2/2000", "31/12/2000"]).round(2)
    array([2000.08, 2001.  ])
    """
    triples: list[tuple[int, int, int] | None] = []
    ends: list[tuple[int, int, int]] = []
    for row, text in enumerate(texts):
        if text is None:
            triples.append(None)
        elif match := _YEAR_FIRST.fullmatch(text):
            triples.append((int(match[1]), int(match[2]), int(match[3])))
        elif match := _YEAR_LAST.fullmatch(text):
            # A point stands between day and month; in that order wherever it is used.
            is_by_points = match[2] == "."
            day, month = int(match[1]), int(match[3])
            triples.append((int(match[4]), month, day))
            if not is_by_points:
                ends.append((row, day, month))
        else:
            raise DateError(row, f"{text!r} has no year of four digits. Write 1979-05-25.")
    if ends:
        is_day_first = any(first > 12 for _, first, _ in ends)
        is_month_first = any(second > 12 for _, _, second in ends)
        if is_day_first == is_month_first:
            row, first, second = ends[0]
            why = f"{texts[row]!r} may begin with the day or with the month. Write 1979-05-25."
            raise DateError(row, why)
        if is_month_first:
            for row, first, second in ends:
                triples[row] = (triples[row] or (0, 0, 0))[0], first, second
    return np.array([_year(row, triple) for row, triple in enumerate(triples)])


def _year(row: int, triple: tuple[int, int, int] | None) -> float:
    if triple is None:
        return np.nan
    try:
        day = date(*triple)
    except ValueError:
        year, month, of_month = triple
        raise DateError(row, f"{year}-{month:02}-{of_month:02} is no day. Correct it.") from None
    start = date(day.year, 1, 1).toordinal()
    n_days = date(day.year, 12, 31).toordinal() - start + 1
    return day.year + (day.toordinal() - start) / n_days


def years_of_cells(cells: Any) -> np.ndarray:
    """Return a column of Arrow's dates or timestamps as years with a fraction.

    Examples
    --------
    >>> import datetime
    >>> years_of_cells(pa.chunked_array([[datetime.date(2001, 1, 1), None]]))
    array([2001.,   nan])
    """
    days = cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None)))
    year, day = pc.year(days), pc.day_of_year(days)
    lengths = pc.if_else(pc.is_leap_year(days), 366.0, 365.0)
    share = pc.divide(pc.subtract(day.cast(pa.float64()), 1.0), lengths)
    years = pc.add(year.cast(pa.float64()), share)
    return np.array([np.nan if value is None else value for value in years.to_pylist()])
