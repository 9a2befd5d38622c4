"""What is printed: data on stdout, messages and progress on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vecfill import wording
from vecfill.wording import count

if TYPE_CHECKING:
    from vecfill.io import Verification

_MOST_WORDS = 10
"""Added or replaced words that `verify` lists."""

command = ""
"""The command that runs; its messages name its own options."""


def plain(text: str) -> str:
    r"""Return text that cannot command a terminal: control characters are shown escaped.

    Examples
    --------
    >>> print(plain("red\x1b[31m, caf\udce9"))
    red\x1b[31m, caf\xe9
    """
    from vecfill.embedding import printable

    shown = printable(text) if not text.isascii() else text
    if shown.replace("\n", "").isprintable():
        return shown
    return "".join(
        char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in shown
    )


class ReaderGoneError(Exception):
    """Nobody reads standard output any more. Typer would take a BrokenPipeError for its own."""


def out(text: str) -> None:
    """Print data."""
    try:
        print(text, file=sys.stdout)
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def note(text: str) -> None:
    """Print a message."""
    print(wrapped(plain(text), sys.stderr), file=sys.stderr)


def wrapped(text: str, stream: Any) -> str:
    """Return text in lines that fit a terminal, broken between words; as it is for a file.

    Examples
    --------
    >>> wrapped("note: one line", None)
    'note: one line'
    """
    from vecfill.cli.help import WIDEST

    if not bool(getattr(stream, "isatty", bool)()):
        return text
    seen = (80, 24)
    with suppress(OSError, ValueError):
        seen = os.get_terminal_size(stream.fileno())
    columns = shutil.get_terminal_size(seen).columns
    width, style = max(20, min(WIDEST, columns)), {"subsequent_indent": "  "}
    lines = text.split("\n")
    broken = [wording.wrapped(line, width, break_long_words=False, **style) for line in lines]
    return "\n".join("\n".join(lines_of_one) for lines_of_one in broken)


def notes(said: Iterable[str], most: int | None = None) -> None:
    """Print sentences on what deserves a look: all of them, or some and where the others are."""
    messages = [told(message) for message in said]
    for message in messages[:most]:
        note(f"note: {message}")
    if most is not None and len(messages) > most:
        more = count(len(messages) - most, "more note is", "more notes are")
        note(f"note: {more} in the manifest, --json and --report.")


def told(message: str) -> str:
    """Return a message of the library in the words of the command that runs."""
    from vecfill.cli.wording import in_shell_words

    return in_shell_words(message, command)


def out_bytes(path: Path) -> None:
    """Print the content of a file as it is."""
    try:
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def out_csv(content: bytes) -> None:
    """Print CSV, to a terminal without characters that would command it."""
    text = content.decode("utf-8", "backslashreplace").rstrip("\n")
    out(plain(text) if sys.stdout.isatty() else text)


def show(result: Any, said: tuple[str, ...], *, json: bool) -> None:
    """Print notes, and a result as text or as JSON."""
    notes(said)
    if json:
        out_json(result.to_dict())
    else:
        out(plain(str(result)))


def out_json(content: Any) -> None:
    """Print plain values as JSON."""
    from vecfill.io.provenance import as_json

    out(as_json(content))


def is_stdout(output: Path, *, json: bool) -> bool:
    """Tell whether vectors go to standard output; refuse if JSON would go there too."""
    from vecfill.errors import InputError

    if str(output) == "-" and json:
        raise InputError("-o - and --json both ask for standard output. Name a file for one.")
    return str(output) == "-"


def check_suffix(path: Path) -> None:
    """Refuse a file whose suffix does not say what to write, naming the option that does."""
    from vecfill.errors import InputError
    from vecfill.io.codecs import codec_for_writing

    try:
        codec_for_writing(str(path))
    except InputError as error:
        raise InputError(str(error).replace("format=", "--to")) from error


@contextmanager
def target(output: Path) -> Iterator[Path]:
    """Give the file to write; that of standard output is printed when the block ends well."""
    if str(output) != "-":
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="vecfill-") as folder:
        place = Path(folder) / "standard output"
        yield place
        out_bytes(place)


class Progress:
    """A bar on stderr for as long as the block runs; nothing at all if that is no terminal.

    It is called with what is being done, how much is done, and how much there is (0: unknown).
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                TextColumn("{task.description}", style="none", markup=False),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[amount]}", style="none", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True, highlight=False),
                transient=True,
                refresh_per_second=5,
            )
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far it is."""
        if self._bars is None:
            return
        if what not in self._tasks:
            for task in self._tasks.values():
                self._bars.remove_task(task)
            self._tasks = {what: self._bars.add_task(what, total=None, amount="")}
        amount = f"{done:,}" if done and not total else ""
        self._bars.update(self._tasks[what], completed=done, total=total or None, amount=amount)


def verified(verification: Verification) -> str:
    """Return what a comparison of two files has shown, as lines of text."""
    n_replaced = len(verification.replaced)
    what = f"{count(verification.n_known - n_replaced, 'row')} unchanged, "
    what += f"{n_replaced:,} replaced, " if n_replaced else ""
    lines = [f"{what}{verification.n_added:,} added"]
    lines += _some("~", [change.word for change in verification.replaced])
    lines += _some("+", verification.added)
    return "\n".join(plain(line) for line in lines)


def _some(mark: str, words: Sequence[str]) -> list[str]:
    """Return a line for each of the first words, so that what was said before stays in sight."""
    more = len(words) - _MOST_WORDS
    lines = [f"{mark} {word}" for word in words[:_MOST_WORDS]]
    return [*lines, f"{mark} {more:,} more; --json lists all"] if more > 0 else lines


def quartiles(values: Any) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    import numpy as np

    return [float(quartile) for quartile in np.quantile(values, [0.25, 0.5, 0.75])]
