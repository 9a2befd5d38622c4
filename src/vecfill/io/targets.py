"""Where results go: never onto an input, never two to one place; what may stand there before."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.io.sources import file_name


def check_targets(targets: Iterable[Any], sources: Iterable[Any], *, overwrite: bool) -> None:
    """Refuse before the work what could not be written after it.

    A target may be no input (also through a link), may not be named twice, must not exist unless
    `overwrite`, and its folder must be there. ``None`` among targets or sources is nothing, and
    sources that are no paths are left alone.

    Examples
    --------
    >>> check_targets(["a.vec"], ["a.vec"], overwrite=True)
    Traceback (most recent call last):
    vecfill.errors.InputError: a.vec is the input a.vec itself, which is never written to. ...
    """
    inputs = [path for path in sources if isinstance(path, str | os.PathLike)]
    earlier_targets: list[Path] = []
    for place in [path for path in targets if path is not None]:
        target = Path(place)
        for source in inputs:
            refuse_input(target, Path(source))
        if any(are_same(target, earlier) for earlier in earlier_targets):
            raise InputError(
                f"{place} is named for two results, and one would replace the other. Choose "
                "another name for one of them."
            )
        earlier_targets.append(target)
        checked_target(place, overwrite=overwrite)
        if not target.parent.is_dir():
            raise InputError(
                f"{place}: cannot be written: there is no folder {target.parent}. Create it first."
            )


def refuse_input(target: Path, source: Path, *, kind: str = "input") -> None:
    """Refuse a target that is an input, by whatever name."""
    if are_same(target, source):
        raise InputError(
            f"{target} is the {kind} {source} itself, which is never written to. "
            "Choose another name for the result."
        )


def are_same(first: Path, second: Path) -> bool:
    """Tell whether two paths are one file, whether it exists or not.

    Examples
    --------
    >>> are_same(Path("a"), Path("./a")), are_same(Path("a"), Path("b"))
    (True, False)
    """
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return _real(first) == _real(second)


def _real(path: Path) -> str:
    """Return where a path leads; a loop of links or a NUL, which `Path.resolve` minds, is kept."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.fspath(path)


def checked_target(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the real place of `path` if a file may be put there; refuse otherwise."""
    if os.fspath(file_name(path)) == "-":
        raise InputError("'-' is not a file here: name a file to write to.")
    try:
        target = Path(path).resolve()
        mode = target.stat().st_mode
    except FileNotFoundError:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {error}. Write elsewhere.") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory. Name a file to write to.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a pipe or a device, not a plain file. Name a plain file.")
    if not overwrite:
        raise InputError(
            f"{path} exists already. Allow overwriting it (overwrite=True), or choose another name."
        )
    return target


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


@contextlib.contextmanager
def naming(target: Path) -> Iterator[None]:
    """Turn an `OSError` of writing into an `InputError` that names `target`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {_advice(error, target)}") from error


def _advice(error: OSError, target: Path) -> str:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"the disk is full ({reason}). Free space or write elsewhere."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission in {target.parent} ({reason}). Write elsewhere."
    if error.errno == errno.ENOENT:
        return f"there is no folder {target.parent}. Create it first."
    if error.errno == errno.ENAMETOOLONG:
        return f"the name is too long ({reason}). Choose a shorter one."
    return f"{reason}. Write elsewhere."
