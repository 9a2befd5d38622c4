"""Small pieces of HTML for notebooks: styles go with them, since nothing else of ours is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:{};padding:2px 14px 2px 0;vertical-align:top"


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
    most, wide, tall = max(*counts, 1), 320, 70
    step = wide / len(counts)
    bars = "".join(
        f'<rect x="{at * step + 1:.1f}" y="{tall - n / most * tall:.1f}" '
        f'width="{step - 2:.1f}" height="{n / most * tall:.1f}" fill="#0a6e5f"/>'
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
