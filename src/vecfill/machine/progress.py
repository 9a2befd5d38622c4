"""How far a call is, shown where it was called: in a notebook or in a terminal."""

from __future__ import annotations

import sys
from html import escape
from importlib import import_module
from typing import Any


class ProgressBar:
    """Shows the progress of a call. Pass it as `progress` to `impute`, `evaluate` or `enrich`.

    In a notebook it is one line below the cell, in a terminal one line of stderr, and nothing
    where the output goes to a file. The line goes when the work is done.

    Examples
    --------
    >>> import vecfill
    >>> places = {f"town{i}": [float(i), float(i * i % 7)] for i in range(40)}
    >>> known = {name: place for name, place in list(places.items())[:30]}
    >>> result = vecfill.impute(places, known, progress=vecfill.ProgressBar())
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._is_notebook = _is_notebook()
        self._is_terminal = not self._is_notebook and bool(getattr(sys.stderr, "isatty", bool)())
        self._last = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show what is being done, how much is done, and how much there is (0: unknown)."""
        is_over = bool(total) and done >= total
        share = f" {100 * done // total} %" if total else f" {done:,}" if done else ""
        text = "" if is_over else f"{what}{share}"
        if text == self._last:
            return
        if self._is_notebook:
            self._show(text, done, total)
        elif self._is_terminal:
            sys.stderr.write(f"\r{text:<{len(self._last)}}" + ("\r" if is_over else ""))
            sys.stderr.flush()
        self._last = text

    def _show(self, text: str, done: int, total: int) -> None:
        display = import_module("IPython.display")
        # Without a value the bar says that it cannot tell how far it is.
        value = f' value="{done}" max="{total}"' if total else ""
        bar = f"<progress{value}></progress> {escape(text)}" if text else ""
        if self._handle is None:
            self._handle = display.display(display.HTML(bar), display_id=True)
        else:
            self._handle.update(display.HTML(bar))


def _is_notebook() -> bool:
    """Tell whether this runs in a notebook, without loading IPython if nobody has."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return type(running).__name__ == "ZMQInteractiveShell"
