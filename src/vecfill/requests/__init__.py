"""What a user asks for, option by option: built once, passed whole, recorded whole.

`Reading` says how files, tables and names are read, `Method` how to impute, `Trust` what to say
about the result, `Replacement` which rows to replace, `Output` what to write besides vectors, and
`Scale` how to run beyond memory. `Ask` holds all of them. Python functions take their fields as
keyword arguments (`takes`), and `vecfill.cli.options` makes shell options of them, so an option is
described in one place and nowhere else. Nothing heavy is loaded here, because ``vecfill --help``
needs it.

- `option`: One option: what it means and which values it takes; and a group of options, checked as
  one.
- `groups`: The options of each group: for each its default, its meaning and the values it takes.
- `outputs`: The options of what a job writes beside vectors, and of how it runs: as in `groups`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar, cast

from vecfill.errors import OptionError
from vecfill.requests.groups import (
    DOMAIN_OPTIONS,
    EDGE_OPTIONS,
    FILE_OPTIONS,
    KINDS,
    LEVELS,
    NAME_OPTIONS,
    RARITY_OPTIONS,
    TABLE_OPTIONS,
    TEXT_KIND,
    TEXT_OPTIONS,
    Method,
    Reading,
    Trust,
)
from vecfill.requests.option import Described, Request, described, loaded
from vecfill.requests.outputs import Output, Replacement, Scale

__all__ = [
    "DOMAIN_OPTIONS",
    "EDGE_OPTIONS",
    "FILE_OPTIONS",
    "KINDS",
    "LEVELS",
    "NAME_OPTIONS",
    "RARITY_OPTIONS",
    "TABLE_OPTIONS",
    "TEXT_KIND",
    "TEXT_OPTIONS",
    "Ask",
    "Described",
    "Method",
    "Output",
    "Reading",
    "Replacement",
    "Request",
    "Scale",
    "Trust",
    "all_options",
    "described",
    "loaded",
    "takes",
]

Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """All that a user asked for.

    Examples
    --------
    >>> ask = Ask.of(key="name", min_degree=5)
    >>> ask.reading.key, ask.method.min_degree, ask.trust.level
    ('name', 5, 0.9)
    """

    reading: Reading = field(default_factory=Reading)
    method: Method = field(default_factory=Method)
    trust: Trust = field(default_factory=Trust)
    replacement: Replacement = field(default_factory=Replacement)
    output: Output = field(default_factory=Output)
    scale: Scale = field(default_factory=Scale)

    @classmethod
    def of(cls, **options: Any) -> Ask:
        """Return what some options ask for; each goes to the group that has it."""
        by_group: dict[str, dict[str, Any]] = {group: {} for group in _KINDS}
        for name, value in options.items():
            by_group[_GROUP_OF[name]][name] = value
        groups: dict[str, Any] = {
            group: _KINDS[group](**values) for group, values in by_group.items()
        }
        return cls(**groups)

    def to_dict(self, *groups: str) -> dict[str, Any]:
        """Return every option of some groups with its value, for manifests."""
        return {k: v for group in groups for k, v in getattr(self, group).to_dict().items()}


_KINDS: dict[str, type[Request]] = {
    "reading": Reading,
    "method": Method,
    "trust": Trust,
    "replacement": Replacement,
    "output": Output,
    "scale": Scale,
}
_GROUP_OF = {option.name: group for group, kind in _KINDS.items() for option in fields(kind)}


def all_options() -> list[Field[Any]]:
    """Return all options of all kinds, for those who name them in other words."""
    return [option for kind in _KINDS.values() for option in fields(kind)]


def takes(*kinds: type[Request]) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Let a function take an `Ask` while its callers pass options of these kinds as keywords.

    An option that does not exist is refused by name, with the nearest one that does. Who has an
    `Ask` already, such as a command of the shell, passes it whole (``ask=``).

    Examples
    --------
    >>> @takes(Reading)
    ... def show(table, *, ask):
    ...     print(table, ask.reading.key, ask.reading.match)
    >>> show("towns.csv", key="name")
    towns.csv name loose
    >>> show("towns.csv", kye="name")
    Traceback (most recent call last):
    vecfill.errors.OptionError: kye is not an option of show. Did you mean key?
    """
    options = [option for kind in kinds for option in fields(kind)]

    def with_options(function: Callable[..., Returned]) -> Callable[..., Returned]:
        parameters = inspect.signature(function).parameters.values()
        plain = [parameter for parameter in parameters if parameter.name != "ask"]
        names = {parameter.name for parameter in plain}
        known = {option.name for option in options}

        @wraps(function)
        def called(*args: Any, ask: Ask | None = None, **values: Any) -> Returned:
            requested = {name: values.pop(name) for name in [*values] if name not in names}
            for name in requested:
                if name not in known:
                    raise OptionError(_unknown_option(name, function.__name__, names | known))
            return function(*args, **values, ask=Ask.of(**requested) if ask is None else ask)

        parameters_of_options = [
            inspect.Parameter(
                parameter.name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default
            )
            for parameter in options
            if parameter.name not in names
        ]
        cast(Any, called).__signature__ = inspect.Signature([*plain, *parameters_of_options])
        called.__doc__ = _with_options(function.__doc__ or "", kinds)
        return called

    return with_options


def _with_options(text: str, kinds: Collection[type[Request]]) -> str:
    """Return a docstring with a list of all options before its examples."""
    lines = ["Options", "-------"]
    for kind in kinds:
        for option in fields(kind):
            lines += [
                f"{option.name}={option.default!r}",
                f"    {_in_python(option.metadata['option'].meaning)}",
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
