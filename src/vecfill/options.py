"""What an option is, and how functions take groups of options as keyword arguments.

A `Request` is a group of options (`vecfill.requests` has them all). `takes` lets a Python function
take their fields as keywords; `vecfill.cli.options` makes shell options of them. This module loads
nothing heavy, because ``vecfill --help`` needs it.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from vecfill.errors import OptionError

Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class Described:
    """What an option means and which values it takes."""

    what: str
    type: type = str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    several: bool = False
    """Whether it takes a list, and may be repeated in a shell."""
    in_shell: bool = True
    panel: str = ""
    """Heading under which a command's help lists it; by default that of its request."""


def option(default: Any, what: str, **details: Any) -> Any:
    """Return a field of a request with its default, its meaning and the values it takes."""
    return field(default=default, metadata={"option": Described(what=what, **details)})


def described(request: type[Request], name: str) -> Described:
    """Return what an option of a request means."""
    return next(each for each in fields(request) if each.name == name).metadata["option"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A group of options; every value is checked when it is built."""

    panel: ClassVar[str] = "Options"
    """Heading under which a command's help lists them."""

    def __post_init__(self) -> None:
        for each in fields(self):
            checked = _checked(each.name, getattr(self, each.name), each.metadata["option"])
            object.__setattr__(self, each.name, checked)

    def asked(self) -> list[str]:
        """Return the options that differ from their defaults.

        Examples
        --------
        >>> from vecfill.requests import Reading
        >>> Reading(key="name", match="loose").asked()
        ['key']
        """
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def refuse_unused(self, used: Collection[str], among: Collection[str], why: str) -> None:
        """Refuse the options `among` some that were asked for and would not be used.

        Examples
        --------
        >>> from vecfill.requests import Reading
        >>> Reading(key="name").refuse_unused((), ("key",), "an Embedding has its words")
        Traceback (most recent call last):
        vecfill.errors.OptionError: key='name' cannot be used here: an Embedding has its words.
        """
        for name in self.asked():
            if name in among and name not in used:
                raise OptionError(f"{name}={getattr(self, name)!r} cannot be used here: {why}.")

    def to_dict(self) -> dict[str, Any]:
        """Return every option with its value, for manifests."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


def takes(
    **groups: type[Request],
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Let a function take request objects while its callers pass their fields as keywords.

    An option that does not exist is refused by name, with the nearest one that does.

    Examples
    --------
    >>> from vecfill.requests import Reading
    >>> @takes(reading=Reading)
    ... def show(table, *, reading):
    ...     print(table, reading.key, reading.match)
    >>> show("towns.csv", key="name")
    towns.csv name loose
    >>> show("towns.csv", kye="name")
    Traceback (most recent call last):
    vecfill.errors.OptionError: kye is not an option of show. Did you mean key?
    """
    option_of = {each.name: group for group, kind in groups.items() for each in fields(kind)}

    def with_options(function: Callable[..., Returned]) -> Callable[..., Returned]:
        own = inspect.signature(function).parameters
        plain = [each for each in own.values() if each.name not in groups]
        names = {each.name for each in plain}

        @wraps(function)
        def called(*args: Any, **values: Any) -> Returned:
            given: dict[str, dict[str, Any]] = {group: {} for group in groups}
            for name in [name for name in values if name not in names]:
                if name not in option_of:
                    raise OptionError(
                        _unknown_option(name, function.__name__, names | {*option_of})
                    )
                given[option_of[name]][name] = values.pop(name)
            requests = {group: kind(**given[group]) for group, kind in groups.items()}
            return function(*args, **values, **requests)

        shown = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
            for kind in groups.values()
            for each in fields(kind)
            if each.name not in names
        ]
        cast(Any, called).__signature__ = inspect.Signature([*plain, *shown])
        called.__doc__ = _with_options(function.__doc__ or "", groups.values())
        return called

    return with_options


def _with_options(text: str, kinds: Collection[type[Request]]) -> str:
    """Return a docstring with a list of all options before its examples."""
    lines = ["Options", "-------"]
    for kind in kinds:
        for each in fields(kind):
            lines += [
                f"{each.name}={each.default!r}",
                f"    {_in_python(each.metadata['option'].what)}",
            ]
    # Python 3.13 takes the margin out of docstrings, and earlier versions leave it there.
    head, mark, examples = inspect.cleandoc(text).partition("Examples\n--------\n")
    return f"{head}{chr(10).join(lines)}\n\n{mark}{examples}"


def _in_python(about: str) -> str:
    """Return help as Python's documentation says it: TABLE is a word of the shell."""
    for word in ("EMBEDDING", "TABLE", "OUTPUT"):
        about = about.replace(word, f"the {word.lower()}")
    return about


def _unknown_option(name: str, where: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f" Did you mean {near[0]}?" if near else f" Options are {', '.join(sorted(known))}."
    return f"{name} is not an option of {where}.{hint}"


def _checked(name: str, value: Any, option: Described) -> Any:
    """Return a value as its option holds it, or refuse it by name."""
    from vecfill import checks  # noqa: PLC0415

    if value is None:
        return None
    if option.several:
        return (value,) if isinstance(value, str) else tuple(value)
    if option.type is bool:
        return checks.true_or_false(value, name)
    if option.type is int:
        return checks.whole_number(value, name, low=int(option.low or 0))
    if option.type is float:
        low = -float("inf") if option.low is None else option.low
        return checks.number(value, name, low=low, high=option.high)
    if option.choices and isinstance(value, str):
        return checks.one_of(value, name, option.choices)
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict") and not isinstance(value, Mapping):
        return value.to_dict()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
