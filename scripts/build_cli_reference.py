"""Rebuild `docs/cli-reference.md` from the commands themselves; a test fails if it is stale.

python scripts/build_cli_reference.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

from vecfill.cli.commands import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli-reference.md"

HEAD = """\
# Command reference

Every command, argument and option, as `vecfill COMMAND --help` tells them;
[the command line](cli.md) says what they are for. This page is made by
`python scripts/build_cli_reference.py`: change the code, not the page.
"""


@dataclass(frozen=True)
class Parameter:
    """An argument or option, as its function declares it."""

    name: str
    type: Any
    info: ArgumentInfo | OptionInfo
    default: Any

    @property
    def is_argument(self) -> bool:
        """Whether it is told by its place, not by a name."""
        return isinstance(self.info, ArgumentInfo)

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is inspect.Parameter.empty

    @property
    def metavar(self) -> str:
        """What stands for the value."""
        if self.info.metavar:
            return self.info.metavar
        if get_origin(self.type) is Literal:
            return "NAME"
        return {Path: "FILE", int: "N", float: "X"}.get(self.type, "TEXT")

    @property
    def names(self) -> str:
        """How it is written, for a cell of a table."""
        if self.is_argument:
            return f"`{self.metavar}`"
        plain = self.name.strip("_").replace("_", "-")
        # Beside a type, Typer takes the first name for a default.
        first = [self.info.default] if isinstance(self.info.default, str) else []
        names = [*first, *(self.info.param_decls or ())]
        if self.type is bool:
            return ", ".join(f"`{each}`" for each in names or (f"--{plain}", f"--no-{plain}"))
        *short, last = names or [f"--{plain}"]
        value = self.metavar.replace("|", "\\|")
        return ", ".join([*(f"`{each}`" for each in short), f"`{last} {value}`"])

    @property
    def shown_default(self) -> str:
        """What holds if it is not given, for a cell of a table."""
        if self.is_required:
            return "required"
        if self.type is bool:
            return "on" if self.default else "off"
        return "" if self.default is None else f"`{self.default}`"

    @property
    def about(self) -> str:
        """The help, choices or limits, and whether it may be repeated, for a cell of a table."""
        parts = [self.info.help or ""]
        kind = get_args(self.type)[0] if get_origin(self.type) is list else self.type
        low, high = self.info.min, self.info.max
        # A help that tells the choices itself is told them once.
        if get_origin(kind) is Literal and not all(each in parts[0] for each in get_args(kind)):
            parts.append("One of " + ", ".join(f"`{each}`" for each in get_args(kind)) + ".")
        elif low is not None:
            parts.append(f"At least {low:g}." if high is None else f"From {low:g} to {high:g}.")
        if get_origin(self.type) is list:
            parts.append("May be given more than once.")
        return " ".join(" ".join(parts).split()).replace("|", "\\|")


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the arguments and options of a command, in the order of its help."""
    found = []
    for name, each in inspect.signature(function, eval_str=True).parameters.items():
        kind, info = get_args(each.annotation)
        if NoneType in get_args(kind):
            kind = next(one for one in get_args(kind) if one is not NoneType)
        found.append(Parameter(name, kind, info, each.default))
    return found


def reference() -> str:
    """Return the whole page."""
    assert app.registered_callback is not None
    assert app.registered_callback.callback is not None
    commands = {
        each.name or each.callback.__name__: each.callback
        for each in app.registered_commands
        if each.callback is not None
    }
    links = ", ".join(f"[{name}](#vecfill-{name})" for name in commands)
    parts = [
        HEAD,
        f"## vecfill\n\n{app.info.help}\n",
        "```\nvecfill [OPTIONS] COMMAND ...\n```\n",
        f"Commands: {links}. Each has `--help`, in short `-h`.\n",
        _table("Option", parameters(app.registered_callback.callback)),
    ]
    for name, function in commands.items():
        every = parameters(function)
        arguments = [each for each in every if each.is_argument]
        words = [each.metavar if each.is_required else f"[{each.metavar}]" for each in arguments]
        told = inspect.getdoc(function) or ""
        parts += [
            f"## vecfill {name}\n\n{told}\n",
            f"```\nvecfill {' '.join([name, '[OPTIONS]', *words])}\n```\n",
            _table("Argument", arguments),
            _table("Option", [each for each in every if not each.is_argument]),
        ]
    return "\n".join(parts)


def _table(title: str, every: list[Parameter]) -> str:
    # What must be given comes first; the rest stays in the order of the help.
    lines = [
        f"| {each.names} | {each.shown_default} | {each.about} |"
        for each in sorted(every, key=lambda one: not one.is_required)
    ]
    return "\n".join([f"| {title} | Default | What it is |", "| --- | --- | --- |", *lines, ""])


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"Written: docs/{PAGE.name}")
