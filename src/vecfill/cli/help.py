"""Help that is grouped by what options are about, with examples, as wide as the terminal."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import typer
from typer.core import TyperCommand

PANELS = ("Input", "Names", "Method", "Trust", "Output", "Beyond memory", "Options")
"""Headings of groups of options, in their order; what belongs to none is under the last."""

WIDEST = 110
"""Longer lines are hard to read, however wide the terminal is."""


def uses_colour(stream: Any) -> bool:
    """Tell whether a stream is a terminal that shows styles, and nobody has asked for none."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    return not is_plain and bool(getattr(stream, "isatty", bool)())


def heading(text: str, stream: Any = None) -> str:
    """Return a heading, bold where that can be shown."""
    return typer.style(text, bold=True) if uses_colour(stream or sys.stdout) else text


class GroupedCommand(TyperCommand):
    """A command whose help lists options under headings and ends with examples."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage, required arguments without braces."""
        pieces = [re.sub(r"^\{(.*)\}$", r"\1", each) for each in self.collect_usage_pieces(ctx)]
        formatter.write_usage(ctx.command_path, " ".join(pieces))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a shell; a misspelt option is answered as a misspelt command is."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            near = getattr(error, "possibilities", None)
            if not near:
                raise
            name = getattr(error, "option_name", "")
            return ctx.fail(f"No such option {name!r}. Did you mean {near[0]!r}?")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then each group of options."""
        arguments, groups = [], {panel: [] for panel in PANELS}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is None:
                continue
            if each.param_type_name == "argument":
                arguments.append(record)
            else:
                panel = getattr(each, "rich_help_panel", None) or PANELS[-1]
                groups[panel].append(record)
        for title, records in (("Arguments", arguments), *groups.items()):
            if records:
                with formatter.section(heading(title)):
                    formatter.write_dl(records, col_max=26)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the examples as they are: a shell's lines are not wrapped."""
        if not self.epilog:
            return
        with formatter.section(heading("Examples")):
            for line in self.epilog.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n")
