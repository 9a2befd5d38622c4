"""How far a call is, shown where it was called, and how long its stages took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from typing import Any


class Stopwatch:
    """Passes on how far a call is, and keeps how many seconds each of its stages took.

    Examples
    --------
    >>> ticks = iter([0.0, 2.0, 5.0])
    >>> watch = Stopwatch(lambda what, done, total: None, clock=lambda: next(ticks))
    >>> for place in ("Reading", 0, 0), ("Imputing", 0, 1), ("Imputing", 1, 1):
    ...     watch(*place)
    >>> watch.seconds
    {'Reading': 2.0, 'Imputing': 3.0}
    """

    def __init__(
        self,
        show: Callable[[str, int, int], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._show = show
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._stage: str | None = None
        self._begun = 0.0

    def __call__(self, stage: str, n_done: int, total: int) -> None:
        """Show what is being done; a stage ends with the next one, or when all of it is done."""
        self._show(stage, n_done, total)
        is_over = bool(total) and n_done >= total
        if stage == self._stage and not is_over:
            return
        now = self._clock()
        if self._stage is not None:
            spent = now - self._begun
            self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + spent
        self._stage, self._begun = None if is_over else stage, now

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of each stage that is over, in the order in which they began."""
        return {stage: round(seconds, 2) for stage, seconds in self._seconds.items()}


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
