"""A result -> one HTML page that needs nothing but a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from vecfill.errors import InputError
from vecfill.io import atomic_output
from vecfill.result import Result
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.views.map_data import Coordinates
from vecfill.views.page_data import page_data

STYLES = ("page.css",)
SCRIPTS = (
    *(
        "dom.js",
        "comparison.js",
        "charts.js",
        "trust.js",
        "looks.js",
        "table.js",
        "map.js",
        "made.js",
    ),
    *("detail.js", "page.js"),
)
"""In the order in which they need each other."""
SECTIONS = (
    *("vectors", "proof", "sources", "kinds", "confidence", "entities", "names", "suspicious"),
    "run",
)
"""Sections of the page by their element's id, in order."""


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    *,
    evaluation: Evaluation | None = None,
    columns: Any = None,
    coordinates: Coordinates | None = None,
    geography: bool | None = None,
    title: str = "Imputed vectors",
    manifest: Mapping[str, Any] | None = None,
    sections: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the HTML report of a result: one file that needs no network.

    Contributions are shown for the 2,000 imputed entities of highest confidence (200 if more than
    20,000 are unknown), nearest known entities for 20,000; the page says so where it applies.

    Parameters
    ----------
    result
        What `vecfill.impute` returned.
    path
        Where to; an existing file is kept unless `overwrite`.
    evaluation
        What `vecfill.evaluate` returned, for the comparison with other methods.
    columns
        Columns to show beside each entity: a table keyed by entity (pandas, polars, Arrow or a
        path), or ``{column: {entity: cell}}``. The page shows the first six. If columns are named
        latitude and longitude, the page has a map of the Earth.
    coordinates
        Where entities lie on the map: two numbers by name, or a row for each row of the table. By
        default latitude and longitude of `columns`, or else two directions in which groups of
        similar vectors differ most.
    geography
        Whether `coordinates` are longitude and latitude in degrees, so that coastlines are drawn.
        False keeps latitude and longitude of `columns` from being used.
    title
        What the page is called.
    manifest
        How the result was made: `vecfill.enrich(...).manifest`, or the content of an
        ``OUTPUT.manifest.json``. By default versions and the time, which need no files.
    sections
        What to show, for a short page: some of ``"vectors"``, ``"proof"``, ``"sources"``,
        ``"kinds"``, ``"confidence"``, ``"entities"``, ``"names"``, ``"suspicious"`` and ``"run"``.
        Readers can show the others by the menu of the page. By default all.
    overwrite
        Whether an existing file may be replaced.
    """
    content = report_bytes(
        result,
        evaluation=evaluation,
        columns=columns,
        coordinates=coordinates,
        geography=geography,
        title=title,
        manifest=manifest,
        sections=sections,
    )
    with atomic_output(path, overwrite=overwrite) as file:
        file.write(content)


def report_bytes(
    result: Result,
    *,
    title: str = "Imputed vectors",
    sections: Sequence[str] | None = None,
    **options: Any,
) -> bytes:
    """Return what `write_report` writes, for those who write it together with other files."""
    if not hasattr(result, "suspicious"):
        raise InputError(
            f"an object of type {type(result).__name__} is no result. Pass what vecfill.impute "
            "returned."
        )
    unknown_sections = set(sections or ()) - set(SECTIONS)
    if unknown_sections or isinstance(sections, str):
        raise InputError(
            f"sections={sections!r}: the page has the sections {', '.join(SECTIONS)}. Pass a list "
            "of some of them."
        )
    names = None if sections is None else [name for name in SECTIONS if name in sections]
    return page({**page_data(result, **options), "title": title, "shown": names}).encode("utf-8")


def page(data: dict[str, Any]) -> str:
    """Return the page that shows some data; styles and scripts are part of it.

    Examples
    --------
    >>> "</script><b>" in page({"title": "</script><b>"})
    False
    """
    assets = files("vecfill.views") / "assets"

    def text(names: tuple[str, ...]) -> str:
        return "\n".join((assets / name).read_text(encoding="utf-8") for name in names)

    # With no "<" left in it, nothing in the data can end the script element or start another.
    values = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    parts = {
        "/*STYLES*/": text(STYLES),
        "/*SCRIPTS*/": text(SCRIPTS),
        "/*DATA*/": values.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
    }
    whole = (assets / "page.html").read_text(encoding="utf-8")
    # The data goes in last: a mark inside it stays what it is.
    for mark, content in parts.items():
        before, _, after = whole.partition(mark)
        whole = before + content + after
    return whole
