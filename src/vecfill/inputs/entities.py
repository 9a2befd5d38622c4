"""Entity names: text, none missing, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any
from uuid import UUID

from vecfill.errors import InputError


def unique_entities(names: Iterable[object], *, where: str) -> tuple[str, ...]:
    """Return the names without surrounding spaces; refuse what is missing, empty or doubled.

    Integers and UUIDs, the usual keys of databases, are names as well.

    Examples
    --------
    >>> unique_entities(["iron", " NA "], where="the table")
    ('iron', 'NA')
    """
    if isinstance(names, str):
        raise InputError(f"{where}: one string, {names!r}. Pass a list of names.")
    listed_names: list[Any] = list(names)
    # Millions of names are text as a rule; whatever else they are is found one by one.
    stripped = [name.strip() for name in listed_names] if _are_texts(listed_names) else [""]
    if not all(stripped):
        stripped = _stripped_one_by_one(listed_names, where)
    if len(set(stripped)) < len(stripped):
        doubled = [name for name, count in Counter(stripped).items() if count > 1]
        raise InputError(
            f"{where}: entity {listed(doubled)} present more than once (spaces around a name do "
            "not count). Keep one row of each, or join them first."
        )
    return tuple(stripped)


def _are_texts(names: list[Any]) -> bool:
    return set(map(type, names)) <= {str}


def _stripped_one_by_one(names: list[Any], where: str) -> list[str]:
    stripped: list[str] = []
    for row, name in enumerate(names, start=1):
        if is_missing(name):
            raise InputError(
                f"{where}, row {row}: the entity name is missing. Every row needs one."
            )
        # NumPy's integers, of which the index of a pandas table is made, are no `int`.
        if isinstance(name, bool) or not isinstance(name, str | Integral | UUID):
            raise InputError(
                f"{where}, row {row}: the entity name {name!r} is of type {type(name).__name__}. "
                "Names are text; name the right key column, or turn it into text."
            )
        text = str(name).strip()
        if not text:
            raise InputError(f"{where}, row {row}: the entity name is empty. Every row needs one.")
        stripped.append(text)
    return stripped


def is_missing(value: object) -> bool:
    """Tell whether a cell has no value: None, NaN, or what pandas puts in its place.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("nan")
    (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value  # noqa: PLR0124 - NaN differs from itself


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return a question that names the nearest of some names, or nothing if none is near.

    Examples
    --------
    >>> did_you_mean("popultion", ["name", "population"]), did_you_mean("x", ["name"])
    (" Did you mean 'population'?", '')
    """
    lower = {candidate.lower(): candidate for candidate in names}
    near = get_close_matches(str(name).lower(), list(lower), n=1)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def listed(names: Iterable[object], n_shown: int = 3) -> str:
    """Return the first few names for a message, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    every = list(names)
    first_names = ", ".join(_short(name) for name in every[:n_shown])
    more = len(every) - n_shown
    return f"{first_names} and {more} more" if more > 0 else first_names


def _short(name: object) -> str:
    text = str(name)
    return repr(text if len(text) <= 60 else text[:57] + "...")
