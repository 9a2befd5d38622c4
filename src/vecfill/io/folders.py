"""The atomic writer of folders: a target is absent or whole at any moment."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from vecfill.errors import InputError
from vecfill.io.atomic import naming, sync_folder, uninterrupted

if sys.platform != "win32":
    import fcntl

    def _flock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
else:

    def _flock(descriptor: int) -> None:
        """Do nothing: folders cannot be opened there."""


_MARK = ".vecfill-"
_ENDING = ".tmp"


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
    >>> [each.name for each in target.iterdir()]
    ['config.json']
    """
    target = check_new_folder(path)
    _remove_stale(target)
    name = f".{target.name}{_MARK}{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
    temporary = target.parent / name
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


def check_new_folder(path: str | os.PathLike[str]) -> Path:
    """Return the real place of a folder that is to be made; refuse if something is there.

    Examples
    --------
    >>> check_new_folder("/")
    Traceback (most recent call last):
    vecfill.errors.InputError: / exists already. Choose another name, or remove it first.
    """
    target = Path(os.path.realpath(path))  # which does not mind a loop of links
    if os.path.lexists(target):
        raise InputError(f"{path} exists already. Choose another name, or remove it first.")
    if not target.parent.is_dir():
        raise InputError(
            f"{path}: cannot be written: there is no folder {target.parent}. Create it first."
        )
    return target


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
    with contextlib.suppress(OSError):
        _flock(descriptor)
    return descriptor


def _remove_stale(target: Path) -> None:
    """Remove temporary folders for `target` that no living writer holds a lock on."""
    if sys.platform == "win32":
        return
    for stale in target.parent.glob(f".{glob.escape(target.name)}{_MARK}*{_ENDING}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(stale, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                _flock(descriptor)
                shutil.rmtree(stale)
            finally:
                os.close(descriptor)
