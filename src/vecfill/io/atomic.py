"""The one atomic writer: a target is the old file or the new one, whole, at any moment.

A folder is absent or whole.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from vecfill.errors import InputError
from vecfill.io.targets import check_new_folder, checked_target, naming

if sys.platform != "win32":
    import fcntl

    def _flock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
else:

    def _flock(descriptor: int) -> None:
        """Do nothing: an open file cannot be removed there anyway."""


_MARK = ".vecfill-"
_ENDING = ".tmp"
_unfinished: set[Path] = set()
"""Temporary files that this process has created, or is about to."""


class _Written(NamedTuple):
    """A temporary file, what was written through, and whether it may replace another file."""

    temporary: Path
    file: OutputFile
    overwrite: bool


_waiting: ContextVar[list[_Written] | None] = ContextVar("_waiting", default=None)
"""Files of a group that are complete and wait for the others; None if there is no group."""


class OutputFile(io.FileIO):
    """A file being written; whatever the disk objects to comes out naming the target."""

    def __init__(self, descriptor: int, target: Path) -> None:
        super().__init__(descriptor, "w")
        self.target = target
        self._written_back = 0

    def start_writing_back(self) -> None:
        """Let the disk begin with what was written, so that less is left to wait for at the end."""
        if hasattr(os, "posix_fadvise"):
            place = self.tell()
            # The advice drops pages that are clean, and starts writing those that are not.
            with contextlib.suppress(OSError):
                n_new = place - self._written_back
                advice = os.POSIX_FADV_DONTNEED
                os.posix_fadvise(self.fileno(), self._written_back, n_new, advice)
            self._written_back = place

    def write(self, data: Any, /) -> int:
        """Write all of `data`."""
        if self.closed:
            # Its descriptor may be another file's by now.
            raise ValueError(f"{self.target}: written to after it was closed")
        unwritten = memoryview(data).cast("B")
        size = len(unwritten)
        with naming(self.target):
            while unwritten:
                unwritten = unwritten[os.write(self.fileno(), unwritten) :]
        return size


@contextlib.contextmanager
def atomic_output(
    path: str | os.PathLike[str], *, overwrite: bool = False, waits: bool = True
) -> Iterator[OutputFile]:
    r"""Give a file to write in; when the block ends well it becomes `path`, otherwise it vanishes.

    Bytes go to a temporary file beside the target, which is synced and then takes the target's
    name in one step. Without `overwrite` an existing target is refused, also one that appears
    while we write: of two writers at once, one wins whole. Temporary files of our own naming whose
    writer was killed are removed. A link is followed, and stays a link. Inside `together` the file
    `waits` for the others; what is no result, such as a cache, need not.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "hello.txt"
    >>> with atomic_output(target) as file:
    ...     _ = file.write(b"hello\n")
    >>> target.read_text()
    'hello\n'
    """
    with atomic_outputs([path], overwrite=overwrite, waits=waits) as files:
        yield files[0]


@contextlib.contextmanager
def atomic_outputs(
    paths: Iterable[str | os.PathLike[str]], *, overwrite: bool = False, waits: bool = True
) -> Iterator[list[OutputFile]]:
    """Give several files as `atomic_output` does; all take their names together, or none does.

    Nothing but a crash of the machine or a kill can come between the names: an interrupt waits,
    and if a later name cannot be taken, the earlier ones that are new are given back.
    """
    targets = [checked_target(path, overwrite=overwrite) for path in paths]
    group = _waiting.get() if waits else None
    files: list[_Written] = []
    try:
        for target in targets:
            _remove_stale(target)
            with naming(target):
                temporary, descriptor = _create(target)
            files.append(_Written(temporary, OutputFile(descriptor, target), overwrite))
        yield [written.file for written in files]
        for temporary, file, _ in files:
            with naming(file.target):
                if file.target.exists():
                    os.chmod(temporary, stat.S_IMODE(file.target.stat().st_mode))  # noqa: PTH101
                os.fsync(file.fileno())
        if group is None:
            _publish_all(files)
        else:
            # In this order an interrupt in between closes no file twice.
            files, complete = [], files
            group.extend(complete)
    finally:
        _close_all(files)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let everything that is written in the block take its names at the end, or nothing at all.

    For a job of several writers: a disk that is full for the last of them leaves no results of the
    first. What was written has no name before the block ends.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with together():
    ...     for name in ("a", "b"):
    ...         with atomic_output(folder / name) as file:
    ...             _ = file.write(b"x")
    ...     print((folder / "a").exists())
    False
    >>> (folder / "a").exists(), (folder / "b").exists()
    (True, True)
    """
    group: list[_Written] = []
    token = _waiting.set(group)
    try:
        yield
        _publish_all(group)
    finally:
        _waiting.reset(token)
        _close_all(group)


def _publish_all(files: list[_Written]) -> None:
    with uninterrupted():
        _take_names(files)
    for folder in {written.file.target.parent for written in files}:
        sync_folder(folder)


def _take_names(files: list[_Written]) -> None:
    published: list[Path] = []
    try:
        for temporary, file, overwrite in files:
            is_new = not file.target.exists()
            with naming(file.target):
                _publish(temporary, file.target, overwrite=overwrite)
            if is_new:
                published.append(file.target)
    except BaseException:
        # What was replaced is gone, and the new one is whole; what was not there before goes again.
        for target in published:
            with contextlib.suppress(OSError):
                target.unlink()
        raise


def _close_all(files: list[_Written]) -> None:
    for temporary, file, _ in files:
        _discard(temporary)
        file.close()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals wait until the block is done; threads other than the main one never get them."""
    signals: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {
            number: handler_before
            for number, handler_before in before.items()
            if callable(handler_before)
        }
    for number in handlers:
        signal.signal(number, lambda *what: signals.append(what))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if signals:
        handlers[signals[0][0]](*signals[0])


def discard_unfinished() -> None:
    """Remove the temporary files that this process has not turned into results.

    For a program that ends: an interrupt may have come between creating a file and the code that
    removes it.
    """
    for temporary in list(_unfinished):
        _discard(temporary)


def _discard(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink()
    _unfinished.discard(temporary)


def _temporary(target: Path) -> Path:
    """Return a new name beside a target, by which others know it for a temporary one of ours."""
    name = f".{target.name}{_MARK}{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
    return target.parent / name


def _create(target: Path) -> tuple[Path, int]:
    while True:
        temporary = _temporary(target)
        _unfinished.add(temporary)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), 0o666)
        if _lock(descriptor) and temporary.exists():
            return temporary, descriptor
        # A cleaner came between creating and locking, and took the file for a stale one.
        os.close(descriptor)
        _discard(temporary)


def _lock(descriptor: int) -> bool:
    try:
        _flock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nothing there is ever taken for stale
        return True
    return True


def _publish(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite or sys.platform == "win32":
        os.replace(temporary, target)  # noqa: PTH105
        return
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise InputError(
            f"{target} was created by someone else meanwhile; theirs is kept. "
            "Allow overwriting it, or choose another name."
        ) from None
    except OSError:  # a file system without hard links
        os.rename(temporary, target)  # noqa: PTH104


def _remove_stale(target: Path, *, is_folder: bool = False) -> None:
    """Remove temporaries for `target` that no living writer holds a lock on."""
    pattern = f".{glob.escape(target.name)}{_MARK}*{_ENDING}"
    with contextlib.suppress(OSError):
        for stale in target.parent.glob(pattern):
            with contextlib.suppress(OSError):
                _remove(stale, is_folder)


def _remove(stale: Path, is_folder: bool) -> None:
    if sys.platform == "win32":
        if not is_folder:  # folders cannot be locked there
            stale.unlink()  # fails while its writer has it open
        return
    kind = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR
    descriptor = os.open(stale, kind | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _flock(descriptor)
        if is_folder:
            shutil.rmtree(stale)
        else:
            stale.unlink()
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Let the disk remember the names in a folder."""
    # Without this a crash of the machine may forget the new name, though not the bytes.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder to write in; when the block ends well it becomes `path`, else it vanishes.

    Files go to a temporary folder beside the target. They are synced, and then the folder takes
    the target's name in one step. An existing target is refused. Temporary folders of our own
    naming whose writer was killed are removed.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> with atomic_folder(target) as folder:
    ...     _ = (folder / "config.json").write_text("{}")
    >>> [file.name for file in target.iterdir()]
    ['config.json']
    """
    target = check_new_folder(path)
    _remove_stale(target, is_folder=True)
    temporary = _temporary(target)
    lock: int | None = None
    try:
        with naming(target):
            temporary.mkdir()
            lock = _locked(temporary)
        yield temporary
        with naming(target):
            _sync_all(temporary)
            with uninterrupted():
                check_new_folder(target)
                temporary.rename(target)
            sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _sync_all(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(place) / name, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(place))


def _locked(folder: Path) -> int | None:
    """Lock a folder, so that others can tell that its writer lives; the lock ends with it."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    _lock(descriptor)
    return descriptor
