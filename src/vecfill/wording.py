"""Counts and shares as messages say them ("3 entities have", "25 %"), and tables for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def share_found(share: float, kind: str) -> str:
    """Return how many of the hidden entities are found, as people say it.

    Examples
    --------
    >>> share_found(0.26, "hidden"), share_found(0.8, "rare hidden")
    ('One hidden entity in four is', 'Four in five rare hidden entities are')
    >>> share_found(0.42, "hidden"), share_found(0.004, "hidden")
    ('Two in five hidden entities are', 'Less than one hidden entity in a hundred is')
    """
    numbers = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    if share < 0.01:
        return f"Less than one {kind} entity in a hundred is"
    if share >= 0.97:
        return f"Nearly every {kind} entity is"
    if share > 0.55:
        whole = min(range(3, 11), key=lambda n: abs(share - (n - 1) / n))
        return f"{numbers[whole - 1].capitalize()} in {numbers[whole]} {kind} entities are"
    if 0.36 < share < 0.45:
        return f"Two in five {kind} entities are"
    whole = round(1 / share)
    return f"One {kind} entity in {numbers[whole] if whole <= 10 else whole} is"


_CELL = "text-align:{};padding:2px 14px 2px 0;vertical-align:top"
"""Styles go with each table, since nothing else of ours is there."""


def count(n: int, singular: str, plural: str | None = None) -> str:
    """Return a count with what is counted, in the singular or the plural.

    Words that change with the count besides the last one need `plural`.

    Examples
    --------
    >>> count(1, "new entity"), count(1200, "new entity"), count(0, "match")
    ('1 new entity', '1,200 new entities', '0 matches')
    >>> count(1, "entity has", "entities have"), count(2, "entity has", "entities have")
    ('1 entity has', '2 entities have')
    """
    return f"{n:,} {singular if n == 1 else plural or _plural(singular)}"


def _plural(singular: str) -> str:
    if singular.endswith("y") and singular[-2] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}es" if singular.endswith(("s", "x", "ch", "sh")) else f"{singular}s"


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


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, strong: str | None = None
) -> str:
    """Return a table of texts; the row whose first cell is `strong` is bold.

    Examples
    --------
    >>> html_table(["name"], [["<b>"]]).count("&lt;b&gt;")
    1
    """

    def cells(tag: str, row: Sequence[str], style: str = "") -> str:
        sides = ["left", *["right"] * (len(row) - 1)]
        return "".join(
            f'<{tag} style="{_CELL.format(side)}{style}">{escape(text)}</{tag}>'
            for side, text in zip(sides, row, strict=True)
        )

    body = "".join(
        f"<tr>{cells('td', row, ';font-weight:600' if row[0] == strong else '')}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def html_facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and texts, a line each."""
    rows = "".join(
        f'<tr><th style="{_CELL.format("left")}">{escape(name)}</th>'
        f'<td style="text-align:left;padding:2px 0">{escape(text)}</td></tr>'
        for name, text in pairs
    )
    return f"<table><tbody>{rows}</tbody></table>"


def html_bars(counts: Sequence[int], low: float, high: float, title: str) -> str:
    """Return a small histogram over an interval, as a picture that needs no script."""
    highest, wide, tall = max(*counts, 1), 320, 70
    step = wide / len(counts)
    bars = "".join(
        f'<rect x="{at * step + 1:.1f}" y="{tall - n / highest * tall:.1f}" '
        f'width="{step - 2:.1f}" height="{n / highest * tall:.1f}" fill="#0a6e5f"/>'
        for at, n in enumerate(counts)
    )
    text = 'font-size="11" fill="currentColor"'
    return (
        f'<svg width="{wide}" height="{tall + 34}" role="img" aria-label="{escape(title)}">{bars}'
        f'<text x="0" y="{tall + 14}" {text}>{low:g}</text>'
        f'<text x="{wide}" y="{tall + 14}" {text} text-anchor="end">{high:g}</text>'
        f'<text x="{wide / 2}" y="{tall + 28}" {text} text-anchor="middle">{escape(title)}</text>'
        "</svg>"
    )


def html_details(title: str, content: str) -> str:
    """Return something that is shown when asked for."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"
