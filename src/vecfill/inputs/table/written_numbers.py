"""How numbers are written in cells of text, and which of them nobody should guess at."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from vecfill.errors import InputError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.A | re.I)
_DECORATED = re.compile(
    r"[+-]?\s*[$€£¥₹]?\s*[+-]?\d{1,3}([.,' \u00a0]\d{3})*([.,]\d+)?\s*[$€£¥₹%]?"
    r"|[+-]?\d+,\d+|[$€£¥₹]\s*[+-]?\d+([.,]\d+)?|[+-]?\d+([.,]\d+)?\s*[$€£¥₹%]|\(\d[\d.,]*\)",
    re.A,
)
_WITH_UNIT = re.compile(
    r"[+-]?\d[\d.,]*\s*(kg|g|mg|lbs?|oz|km|cm|mm|mi|ft|ml|kb|mb|gb|tb|hz|khz|mhz|ghz|kwh?|"
    r"usd|eur|gbp|chf|jpy|inr|cny|hrs?|hours?|min|mins|minutes|sec|days?|years?|yrs?|°c|°f|\")",
    re.I,
)


def is_number_text(text: str) -> bool:
    """Tell whether a text is written like a number.

    Examples
    --------
    >>> is_number_text("-1.5e3"), is_number_text("1,000")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def refuse_what_was_meant_otherwise(
    name: str, times: dict[str, int], cells: pa.ChunkedArray, entities: Sequence[str]
) -> None:
    """Refuse numbers with units or currencies, and those with a few cells of text among them."""
    total = sum(times.values())
    numbers = {label for label in times if _NUMBER.fullmatch(label)}
    with_unit = {label for label in times if label not in numbers and _WITH_UNIT.fullmatch(label)}
    if with_unit and 2 * (sum(times[label] for label in with_unit)) > total:
        texts = cells.to_pylist()
        row = next(row for row, text in enumerate(texts) if text in with_unit)
        raise InputError(
            f"column {name!r}, entity {entities[row]!r} (row {row + 1}): {texts[row]!r} is a "
            "number with a unit, and which units are alike is yours to say. Bring all to one unit "
            "and write plain numbers; or name the column in categorical= if it is no number."
        )
    decorated = {label for label in times if label not in numbers and _DECORATED.fullmatch(label)}
    n_numbers = sum(times[label] for label in numbers)
    n_decorated = sum(times[label] for label in decorated)
    texts = cells.to_pylist()
    if decorated and 2 * (n_numbers + n_decorated) > total:
        row = next(row for row, text in enumerate(texts) if text in decorated)
        raise InputError(
            f"column {name!r}, entity {entities[row]!r} (row {row + 1}): {texts[row]!r} is not a "
            "plain number. Write numbers with a decimal point and without thousands separators, "
            "currency or per cent signs (1234.5); or name the column in categorical= if it is "
            "no number."
        )
    if 2 * n_numbers > total:
        row = next(
            row for row, text in enumerate(texts) if text is not None and text not in numbers
        )
        n_texts = total - n_numbers
        raise InputError(
            f"column {name!r}, entity {entities[row]!r} (row {row + 1}): {texts[row][:60]!r} is "
            f"not a number, as {n_numbers} of the column's {total} values are ({n_texts} not). "
            "Correct it, leave the cell empty if the value is missing, or name the column "
            "in categorical=."
        )
