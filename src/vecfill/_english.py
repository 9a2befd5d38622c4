"""Counts and shares as messages say them: "1 entity has", "3 entities have", "25 %"."""

from __future__ import annotations

import textwrap
from typing import Any


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a count with what is counted, in the singular or the plural.

    Words that change with the count besides the last one need `many`.

    Examples
    --------
    >>> count(1, "new entity"), count(1200, "new entity"), count(0, "match")
    ('1 new entity', '1,200 new entities', '0 matches')
    >>> count(1, "entity has", "entities have"), count(2, "entity has", "entities have")
    ('1 entity has', '2 entities have')
    """
    return f"{n:,} {one if n == 1 else many or _plural(one)}"


def _plural(one: str) -> str:
    if one.endswith("y") and one[-2] not in "aeiou":
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith(("s", "x", "ch", "sh")) else f"{one}s"


def percent(share: float, digits: int = 0) -> str:
    """Return a share of one in per cent.

    Examples
    --------
    >>> percent(0.25), percent(0.897, 1)
    ('25 %', '89.7 %')
    """
    return f"{100 * share:.{digits}f} %"


def wrapped(text: str, width: int, **options: Any) -> list[str]:
    """Return the lines of a text, none of which begins with a percent sign.

    Examples
    --------
    >>> wrapped("It was found in 25 % of cases.", 18)
    ['It was found in', '25 % of cases.']
    """
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width, break_on_hyphens=False, **options)
    return [line.replace("\u00a0%", " %") for line in lines]
