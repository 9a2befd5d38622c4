"""Words in a shell -> calls; exceptions -> messages and exit statuses.

====  ======================================================
0     done
1     an error of ours: a bug
2     bad usage or bad input, the message says what to do
3     refused: the table carries no signal about the embedding, or the new vectors are nearly one
130   interrupted (Ctrl-C)
143   terminated (SIGTERM)
====  ======================================================

Nothing but the standard library is loaded here, so that an interrupt is caught from the start.

Words become calls in:

- `commands`: All commands, in the order of the help; each loads what it needs when it is called.
- `imputing`: The command that imputes: an embedding and a table, one table, or datasets beyond
  memory.
- `models`: The commands for models in files: add entities to one, and say what is in one.
- `migrating`: `vecfill migrate`: from one embedding to another, or whether to stay.
- `tokens`: `vecfill tokens`: terms that become tokens of a language model.
- `files`: Commands on files that are there: prove that known rows are unchanged, write another
  format.
- `options`: Shell options made from the request objects, and the few that commands have besides.

and results become words in:

- `console`: What is printed: data on stdout, messages and progress on stderr, in the words of the
  shell: `member=` is `--member` there.
- `summary`: What a user sees after an imputation: what was done, how good it is, what to do next.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DONE, BUG, BAD_INPUT, NO_SIGNAL = 0, 1, 2, 3

# Below, OpenBLAS ends the process itself, or parts of SciPy do not load: tried in steps of 50 MB on
# two cores, `impute --method paper` first got as far as a message of ours with 400 MB.
LEAST_ADDRESS_SPACE = 400 << 20
"""Bytes of address space below which no command is begun."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    status = DONE
    with _stoppable() as stopped:
        try:
            status = _status(list(sys.argv[1:] if argv is None else argv))
            stopped.is_ending = True
        except KeyboardInterrupt:
            stopped.is_ending = True
            stopped.by = stopped.by or signal.SIGINT
        # Also if the interrupt was lost, as happens to exceptions inside a finaliser.
        if stopped.by is not None:
            status = 128 + stopped.by
            _tidy_up()
            _say("Interrupted; no partial file is left.")
    return status


@dataclass
class _Stopped:
    """Which signal came first, and whether to act on those that come."""

    by: int | None = None
    is_ending: bool = False


@contextlib.contextmanager
def _stoppable() -> Iterator[_Stopped]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt until the program is ending anyway."""
    stopped = _Stopped()

    def stop(number: int, _: object) -> None:
        stopped.by = stopped.by or number
        if not stopped.is_ending:
            raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        # A signal that the caller has switched off, as nohup does, stays off.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tidy_up() -> None:
    """Remove temporary files that an interrupt left because it came at an awkward moment."""
    if (atomic := sys.modules.get("vecfill.io.atomic")) is not None:
        atomic.discard_unfinished()


def _status(words: list[str]) -> int:
    """Run one command; turn whatever ends it into an exit status."""
    is_debug = "--debug" in words
    try:
        _make_streams_safe()
        if _is_too_tight(words):
            return BAD_INPUT
        _check_environment()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = _run([word for word in words if word != "--debug"])
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        _abandon_stdout()
        status = DONE
    except Exception as error:
        if is_debug:
            traceback.print_exc()
        status = _status_of(error)
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


def _check_environment() -> None:
    """Refuse a variable on which libraries beneath fail, without a reason, when they are loaded."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "0")
    try:
        int(seconds)
    except ValueError:
        from vecfill.errors import InputError

        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH is {seconds!r}, but it must be a whole "
            "number of seconds since 1970. Correct it, or unset it."
        ) from None


def _is_too_tight(words: Sequence[str]) -> bool:
    """Say so if there is too little address space to load what a command needs."""
    limit = _address_space()
    if limit >= LEAST_ADDRESS_SPACE or not words or {"--help", "--version"} & {*words}:
        return False
    # In plain words: what lays out messages loads the libraries that would not fit.
    print(
        f"vecfill: error: not enough memory: the address space is limited to {int(limit) >> 20:,} "
        f"MB (ulimit -v), and libraries end the process below {LEAST_ADDRESS_SPACE >> 20:,} MB. "
        "Raise the limit, or lift it (ulimit -v unlimited).",
        file=sys.stderr,
    )
    return True


def _address_space() -> float:
    """Return how many bytes of address space this process may have."""
    try:
        import resource
    except ImportError:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _abandon_stdout() -> None:
    """Send what is left in the buffer nowhere, so that ending the program does not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def _run(words: list[str]) -> int:
    from vecfill.cli import console
    from vecfill.cli.commands import command

    console.command = next((word for word in words if not word.startswith("-")), "")
    try:
        # Typer prints usage errors itself, and ends with a status of its own.
        command().main(words, prog_name="vecfill", standalone_mode=True)
    except console.ReaderGoneError as error:
        raise BrokenPipeError from error
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return DONE


def _status_of(error: Exception) -> int:
    from vecfill.cli import console
    from vecfill.errors import HarmError, NoSignalError, VecfillError

    if isinstance(error, (NoSignalError, HarmError)):
        _say(console.told(str(error)))
        return NO_SIGNAL
    if isinstance(error, VecfillError):
        _say(f"error: {console.told(str(error))}")
        return BAD_INPUT
    if (fault := _fault_of_machine(error)) is not None:
        _say(f"error: {fault}")
        return BAD_INPUT
    if isinstance(error, OSError):
        # Files are looked after by `io`; what is left is standard output or a full disk.
        _abandon_stdout()
        _say(f"error: {error}. Free some space, or write to another place.")
        return BAD_INPUT
    kind = type(error).__name__
    _say(
        f"this is a bug in vecfill, not a mistake on your side: {kind}: {error}\n"
        "No partial file is left. Please run it again with --debug and report the output, with the "
        "command and the version (vecfill --version)."
    )
    return BUG


# What libraries say if memory is short while they are loaded, or start their threads.
_SIGNS_OF_SHORTAGE = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    "unable to allocate",
)
# What they say if a part of them could not be loaded, which under a limit has that reason.
_SIGNS_OF_MISSING_PARTS = ("seems to be broken", "could not find/load shared object")


def _fault_of_machine(error: Exception) -> str | None:
    """Return what is wrong with the machine or its settings, if that is why something failed."""
    message = str(error).lower()
    signs = _SIGNS_OF_SHORTAGE
    if _address_space() < math.inf:
        signs += _SIGNS_OF_MISSING_PARTS
    if isinstance(error, MemoryError) or any(sign in message for sign in signs):
        return "not enough memory. Use a larger machine, or fewer entities at a time."
    # Numba reads it when it is first loaded, deep inside a command.
    n_threads = os.environ.get("NUMBA_NUM_THREADS")
    if isinstance(error, ValueError) and "number of threads specified" in message:
        return f"NUMBA_NUM_THREADS={n_threads} is no number of threads. Unset it, or set it to 1."
    return None


def _say(message: str) -> None:
    from vecfill.cli.console import plain, wrapped

    with contextlib.suppress(OSError, ValueError):
        print(wrapped(f"vecfill: {plain(message)}", sys.stderr), file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, *_: object) -> None:
    from vecfill.cli import console

    _say(f"note: {console.told(str(message))}")
