"""Words in a shell -> calls; exceptions -> messages and exit statuses.

====  ======================================================
0     done
1     an error of ours: a bug
2     bad usage or bad input, the message says what to do
3     refused: the table carries no signal about the embedding
130   interrupted
====  ======================================================

Nothing but the standard library is loaded here, so that an interrupt is caught from the start.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence

DONE, BUG, BAD_INPUT, NO_SIGNAL, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    is_debug = "--debug" in words
    _make_streams_safe()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = _run([word for word in words if word != "--debug"])
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        _abandon_stdout()
        status = DONE
    except Exception as error:
        if is_debug:
            traceback.print_exc()
        status = _status_of(error)
    if status == INTERRUPTED:
        _say("Interrupted; no partial file is left.")
    return status


def _make_streams_safe() -> None:
    """See to it that printing cannot fail for want of a stream or of a character."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # A stream was closed by the caller: its number must not go to a file that we open.
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
        sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
        sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        # Words may hold what a terminal's encoding does not: shown escaped, never a crash.
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError, OSError):
                stream.reconfigure(errors="backslashreplace")


def _abandon_stdout() -> None:
    """Send what is left in the buffer nowhere, so that ending the program does not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def _run(words: list[str]) -> int:
    from vecfill.cli import console
    from vecfill.cli.commands import command

    try:
        # Typer prints usage errors itself, and ends with a status of its own.
        command().main(words, prog_name="vecfill", standalone_mode=True)
    except console.ReaderGoneError as error:
        raise BrokenPipeError from error
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return DONE


def _status_of(error: Exception) -> int:
    from vecfill.errors import NoSignalError, VecfillError

    if isinstance(error, NoSignalError):
        _say(f"{error}")
        return NO_SIGNAL
    if isinstance(error, VecfillError):
        _say(f"error: {_in_shell_words(str(error))}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        _say("error: not enough memory. Use a larger machine, or fewer entities at a time.")
        return BAD_INPUT
    if isinstance(error, OSError):
        # Files are looked after by `io`; what is left is standard output or a full disk.
        _abandon_stdout()
        _say(f"error: {error}. Make room, or write elsewhere.")
        return BAD_INPUT
    kind = type(error).__name__
    _say(
        f"this is a bug in vecfill, not a mistake of yours: {kind}: {error}\n"
        "No partial file is left. Run it again with --debug, and report what it prints, with the "
        "command and the version (vecfill --version)."
    )
    return BUG


def _in_shell_words(message: str) -> str:
    """Name options as a shell does where a message speaks of Python's: `member=` is `--member`."""
    from dataclasses import fields

    from vecfill.requests import Method, Reading, Replacement, Trust

    kinds = (Reading, Method, Trust, Replacement)
    options = "|".join(each.name for kind in kinds for each in fields(kind))

    def spelled(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2] or ""
        return f"--{name} {value}" if value else f"--{name}"

    # `member=` is --member, and ridge=-5 is --ridge -5.
    return re.sub(rf"\b({options})=('[^']*'|[-+.\w]+)?", spelled, message)


def _say(message: str) -> None:
    from vecfill.cli.console import plain

    with contextlib.suppress(OSError, ValueError):
        print(f"vecfill: {plain(message)}", file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, *_: object) -> None:
    _say(f"note: {message}")
