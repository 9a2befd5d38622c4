"""What is printed: data on stdout, messages and progress on stderr, in the words of the shell.

Messages of the library name arguments of Python: `member=` is `--member` here.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from vecfill import wording
from vecfill.requests import all_options
from vecfill.wording import count

WIDEST = 110
"""Longer lines are hard to read, however wide the terminal is."""

PYTHON_ONLY = ("dtype", "matches", "words")
"""Arguments that messages name and no command has, beside those of the request objects."""

_MORE = ("n_jobs", "folds", "hide", "append_to")
"""Arguments that are options of some commands, beside those of the request objects."""

_OTHER_NAMES = {"n_jobs": "--jobs", "confidence": "--confidence-column"}
_NEVER_OVERWRITE = ("tokens",)
_OF_COMMAND = {"convert": {"format": "--from"}, "add": {"missing": "--missing"}}

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

    text = printable(text) if not text.isascii() else text
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text
    )


def heading(text: str, stream: Any = None) -> str:
    """Return a heading, bold if it goes to a terminal that shows styles and nobody wants none."""
    is_plain = os.environ.get("NO_COLOR") or not has_styles(stream or sys.stdout)
    return text if is_plain else f"\x1b[1m{text}\x1b[0m"


def has_styles(stream: Any) -> bool:
    """Tell whether a stream is a terminal that understands more than plain lines."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def is_terminal(stream: Any) -> bool:
    """Tell whether a stream is a terminal; it may be none at all, or closed by the caller."""
    return bool(getattr(stream, "isatty", bool)())


def width_of(stream: Any) -> int | None:
    """Return the width of lines on a terminal; ``None`` for a file, whose lines are not wrapped."""
    if not is_terminal(stream):
        return None
    size = (80, 24)
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(stream.fileno())
    return max(20, min(WIDEST, shutil.get_terminal_size(size).columns))


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
    width = width_of(stream)
    if width is None:
        return text
    style = {"subsequent_indent": "  ", "break_long_words": False}
    return "\n".join(
        piece
        for line in text.split("\n")
        for piece in wording.wrapped(line, width, **style) or [""]
    )


def notes(sentences: Iterable[str], limit: int | None = None) -> None:
    """Print sentences on what deserves a look: all of them, or some and where the others are."""
    messages = [told(sentence) for sentence in sentences]
    for message in messages[:limit]:
        note(f"note: {message}")
    if limit is not None and len(messages) > limit:
        more = count(len(messages) - limit, "more note is", "more notes are")
        note(f"note: {more} in the manifest, --json and --report.")


def told(message: str) -> str:
    """Return a message of the library in the words of the command that runs."""
    return in_shell_words(message, command)


def flag_of(name: str) -> str:
    """Return the shell option that a Python argument is.

    Examples
    --------
    >>> flag_of("min_degree"), flag_of("n_jobs")
    ('--min-degree', '--jobs')
    """
    return _OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")


@cache
def flags_of(command: str) -> Mapping[str, str]:
    """Return the shell option that each Python argument is, for one command.

    Examples
    --------
    >>> flags_of("impute")["min_degree"], flags_of("convert")["format"]
    ('--min-degree', '--from')
    """
    names = [option.name for option in all_options() if option.metadata["option"].in_shell]
    return {name: flag_of(name) for name in (*names, *_MORE)} | _OF_COMMAND.get(command, {})


@cache
def _python_only() -> tuple[str, ...]:
    hidden = [option.name for option in all_options() if not option.metadata["option"].in_shell]
    return (*hidden, *PYTHON_ONLY)


def in_shell_words(message: str, command: str = "impute") -> str:
    """Name options as a shell does; leave out advice that a shell cannot follow.

    Examples
    --------
    >>> in_shell_words("ridge=-5 is out of range. Use force=True, or give counts=.")
    '--ridge -5 is out of range. Use --force, or give --counts.'
    >>> in_shell_words("text=('about', 'more') cannot be used here.")
    "--text 'about' --text 'more' cannot be used here."
    >>> in_shell_words("Its numbers were rounded. Pass dtype='float64' to keep them.")
    'Its numbers were rounded.'
    """
    if command in _NEVER_OVERWRITE:
        message = message.replace("Allow overwriting it (overwrite=True), or choose", "Choose")
    hidden = "|".join(_python_only())
    # A sentence ends at a full stop with a space or nothing after it; names of files have neither.
    sentences = re.split(r"(?<=\.)\s(?=[A-Z])", message)
    useful = [sentence for sentence in sentences if not re.search(rf"\b({hidden})=", sentence)]
    text = " ".join(useful or sentences[:1]) if len(useful) < len(sentences) else message
    flags = flags_of(command)

    def spelled(option: re.Match[str]) -> str:
        flag, value = flags[option[1]], option[2] or ""
        if value.startswith("("):
            return " ".join(f"{flag} {word}" for word in re.findall(r"'[^']*'", value))
        return flag if value in ("", "True") else f"{flag} {value}"

    return re.sub(
        rf"(?<![-\w])({'|'.join(flags)})=('[^']*'|\(('[^']*',? ?)+\)|[-+.\w]*\w)?", spelled, text
    )


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


def show(result: Any, sentences: tuple[str, ...], *, json: bool) -> None:
    """Print notes, and a result as text or as JSON."""
    notes(sentences)
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
        if has_styles(sys.stderr):
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

    def __call__(self, stage: str, n_done: int, n_total: int) -> None:
        """Show how far it is."""
        if self._bars is None:
            return
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._bars.remove_task(task)
            self._tasks = {stage: self._bars.add_task(stage, total=None, amount="")}
        amount = f"{n_done:,}" if n_done and not n_total else ""
        self._bars.update(
            self._tasks[stage], completed=n_done, total=n_total or None, amount=amount
        )
