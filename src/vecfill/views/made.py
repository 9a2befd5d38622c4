"""A manifest -> the lines of it that a page shows, of bounded size whatever it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError

MOST_LINES = 50
"""Of one kind, such as options: a manifest of ours has far fewer."""
MOST_NAMES = 10
LONGEST = 300

Line = list[str]
"""What it is, and its value, both as text."""


def how_made(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return when, with what, how and from which files a result was made, as short texts.

    Parts that the manifest lacks are left out; its lists of entities are not looked at, since the
    page shows entities elsewhere.

    Examples
    --------
    >>> found = how_made({"made_at": "2026-01-02T03:04:05Z", "python": "3.12.1",
    ...                   "options": {"seed": 0, "exclude": [f"name{i}" for i in range(5000)]}})
    >>> found["made"]
    [['Made', '2026-01-02 03:04:05 UTC'], ['Python', '3.12.1']]
    >>> print(found["options"][1][1])
    name0, name1, name2, name3, name4, name5, name6, name7, name8, name9 and 4,990 more
    """
    if not isinstance(manifest, Mapping):
        raise InputError(
            f"manifest is a {type(manifest).__name__}. Pass what enrich(...).manifest holds, or "
            "the content of OUTPUT.manifest.json as json.load gives it."
        )
    about_run = {
        "Made": _moment(manifest.get("made_at")),
        "vecfill": manifest.get("vecfill"),
        "Python": manifest.get("python"),
        "Platform": manifest.get("platform"),
        "Result": manifest.get("output"),
        "Format": manifest.get("format"),
    }
    return {
        "made": [[label, as_text(value)] for label, value in about_run.items() if value],
        "files": [_file(role, content) for role, content in _items(manifest.get("inputs"))],
        "options": _lines(manifest.get("options")),
        "counts": [
            [name, f"{n:,}" if isinstance(n, int) else as_text(n)]
            for name, n in _items(manifest.get("counts"))
        ],
        "packages": _lines(manifest.get("packages")),
    }


def as_text(value: Any) -> str:
    r"""Return any value as text that a reader takes in at a glance.

    Examples
    --------
    >>> as_text(None), as_text(True), as_text(12345), as_text(0.9), as_text(())
    ('none', 'yes', '12345', '0.9', 'none')
    >>> print(as_text("\t"))
    '\t'
    >>> as_text(np.zeros((400, 3))), as_text({"a": 1, "b": 2})
    ('array of shape 400 x 3', 'a: 1, b: 2')
    """
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return f"array of shape {' x '.join(map(str, value.shape))}"
    if isinstance(value, Mapping):
        pairs = (f"{_cut(str(name))}: {as_text(item)}" for name, item in value.items())
        return _listed(pairs, len(value))
    if isinstance(value, Sequence | set | frozenset | np.ndarray) and not isinstance(
        value, str | bytes
    ):
        return _listed((as_text(item) for item in value), len(value))
    text = str(value)
    # A separator of cells is often a tab: shown as it is typed.
    return _cut(text if text.strip() else repr(text))


def _listed(texts: Iterable[str], n_texts: int) -> str:
    first_texts = list(islice(texts, MOST_NAMES))
    n_more = n_texts - len(first_texts)
    return _cut(", ".join(first_texts) or "none") + (f" and {n_more:,} more" if n_more else "")


def _cut(text: str) -> str:
    # Cut before it is made printable: the text may be a whole file by mistake.
    return printable(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def _items(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return []
    return [(_cut(str(name)), content) for name, content in islice(value.items(), MOST_LINES)]


def _lines(value: Any) -> list[Line]:
    return [[name, as_text(content)] for name, content in _items(value)]


def _file(role: str, about: Any) -> list[str | int | None]:
    """Return role, path, bytes and hash of an input."""
    if not isinstance(about, Mapping):
        return [role, as_text(about), None, None]
    size, digest = about.get("bytes"), about.get("sha256")
    return [
        role,
        as_text(about.get("path")),
        int(size) if isinstance(size, int) else None,
        as_text(digest) if digest else None,
    ]


def _moment(text: Any) -> str | None:
    """Return a time of a manifest as people write it."""
    if text is None:
        return None
    return str(text).replace("T", " ").replace("Z", " UTC")
