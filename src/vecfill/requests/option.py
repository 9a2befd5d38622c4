"""One option: what it means and which values it takes; and a group of options, checked as one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, ClassVar

from vecfill.errors import OptionError


@dataclass(frozen=True, kw_only=True)
class Described:
    """What an option means and which values it takes."""

    meaning: str
    type: type = str
    choices: Collection[str] = ()
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    several: bool = False
    """Whether it takes a list, and may be repeated in a shell."""
    in_shell: bool = True
    panel: str = ""
    """Heading under which a command's help lists it; by default that of its request."""


def loaded(entry: Any) -> Any:
    """Return an entry of a table, from where it is if it is written as ``"module:name"``.

    So the table says what there is, and only what is asked for is loaded.

    Examples
    --------
    >>> loaded("math:sqrt")(9.0), loaded(abs)(-1)
    (3.0, 1)
    """
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)


def option(default: Any, meaning: str, **details: Any) -> Any:
    """Return a field of a request with its default, its meaning and the values it takes."""
    return field(default=default, metadata={"option": Described(meaning=meaning, **details)})


def described(request: type[Request], name: str) -> Described:
    """Return what an option of a request means."""
    return next(option for option in fields(request) if option.name == name).metadata["option"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A group of options; every value is checked when it is built."""

    panel: ClassVar[str] = "Options"
    """Heading under which a command's help lists them."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            checked = _checked(option.name, value, option.metadata["option"])
            object.__setattr__(self, option.name, checked)

    def asked(self) -> list[str]:
        """Return the options that differ from their defaults.

        Examples
        --------
        >>> from vecfill.requests import Reading
        >>> Reading(key="name", match="loose").asked()
        ['key']
        """
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        # A table in memory equals nothing, and pandas refuses to say so.
        return [
            option.name
            for option in fields(self)
            if (value := values[option.name]) is not option.default
            and not (isinstance(value, type(option.default)) and value == option.default)
        ]

    def refuse_unused(self, used_names: Collection[str], names: Collection[str], why: str) -> None:
        """Refuse those of some options that were asked for and would not be used.

        Examples
        --------
        >>> from vecfill.requests import Reading
        >>> Reading(key="name").refuse_unused((), ("key",), "an Embedding has its words")
        Traceback (most recent call last):
        vecfill.errors.OptionError: key='name' cannot be used here: an Embedding has its words.
        """
        for name in self.asked():
            if name in names and name not in used_names:
                raise OptionError(f"{name}={getattr(self, name)!r} cannot be used here: {why}.")

    def to_dict(self) -> dict[str, Any]:
        """Return every option with its value, for manifests."""
        return {option.name: _plain(getattr(self, option.name)) for option in fields(self)}


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
        # Tables have it too, and all their rows do not belong into a manifest.
        is_ours = type(value).__module__.partition(".")[0] == "vecfill"
        return value.to_dict() if is_ours else f"{type(value).__name__} in memory"
    return os.fspath(value) if isinstance(value, os.PathLike) else value
