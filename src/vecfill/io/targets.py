"""Where results go: never onto an input, never twice onto one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.io.atomic import checked_target


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
    inputs = [each for each in sources if isinstance(each, str | os.PathLike)]
    seen: list[Path] = []
    for place in [each for each in targets if each is not None]:
        target = Path(place)
        for source in inputs:
            refuse_input(target, Path(source))
        if any(are_same(target, other) for other in seen):
            raise InputError(
                f"{place} is named for two results, and one would replace the other. Choose "
                "another name for one of them."
            )
        seen.append(target)
        checked_target(place, overwrite=overwrite)
        if not target.parent.is_dir():
            raise InputError(
                f"{place}: cannot be written: there is no folder {target.parent}. Create it first."
            )


def refuse_input(target: Path, source: Path) -> None:
    """Refuse a target that is an input, by whatever name."""
    if are_same(target, source):
        raise InputError(
            f"{target} is the input {source} itself, which is never written to. "
            "Choose another name for the result."
        )


def are_same(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file, whether it exists or not.

    Examples
    --------
    >>> are_same(Path("a"), Path("./a")), are_same(Path("a"), Path("b"))
    (True, False)
    """
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return _real(one) == _real(other)


def _real(path: Path) -> str:
    """Return where a path leads; a loop of links or a NUL, which `Path.resolve` minds, is kept."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.fspath(path)
