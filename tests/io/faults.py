"""A disk that fails at the k-th call: SQLite's way of testing what happens then.

Every call that touches a file of a folder counts: opening, reading, writing, syncing, linking,
renaming, changing permissions, listing. A test counts k up from 1 until the job passes.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vecfill.io import streams

BY_PATH = ("open", "link", "replace", "rename", "chmod", "listdir")
BY_DESCRIPTOR = ("write", "fsync")


class FaultyDisk:
    """Fails the call number `fail_at` that touches `folder`, and all later ones if it `lasts`."""

    def __init__(self, folder: Path, fail_at: int, *, lasts: bool = False) -> None:
        self.folder = os.fspath(folder.resolve())
        self.fail_at = fail_at
        self.lasts = lasts
        self.calls: list[str] = []

    @property
    def failed(self) -> str | None:
        """The call that failed, if it came to that."""
        return self.calls[self.fail_at - 1] if len(self.calls) >= self.fail_at else None

    def touch(self, name: str) -> None:
        """Count a call, and fail if it is its turn."""
        self.calls.append(name)
        n_calls = len(self.calls)
        if n_calls == self.fail_at or (self.lasts and n_calls > self.fail_at):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def is_ours(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        return os.fspath(Path(path).absolute()).startswith(self.folder)


@contextmanager
def faulty_disk(folder: Path, fail_at: int, *, lasts: bool = False) -> Iterator[FaultyDisk]:
    """Let a call that touches a file in `folder` fail while the block runs."""
    disk = FaultyDisk(folder, fail_at, lasts=lasts)
    with pytest.MonkeyPatch.context() as patch:
        for name in BY_PATH:
            patch.setattr(os, name, _failing(disk, getattr(os, name), name, by_path=True))
        for name in BY_DESCRIPTOR:
            patch.setattr(os, name, _failing(disk, getattr(os, name), name, by_path=False))
        opened = _failing(disk, builtins.open, "open to read", by_path=True)
        patch.setattr(builtins, "open", opened)
        patch.setattr(io, "open", opened)
        patch.setattr(streams.ByteStream, "__init__", _reading_through(disk))
        yield disk


def _failing(
    disk: FaultyDisk, inner: Callable[..., Any], name: str, *, by_path: bool
) -> Callable[..., Any]:
    def outer(first: Any, *args: Any, **options: Any) -> Any:
        if not by_path or disk.is_ours(first):
            disk.touch(name)
        return inner(first, *args, **options)

    return outer


def _reading_through(disk: FaultyDisk) -> Callable[..., None]:
    inner = streams.ByteStream.__init__

    def outer(self: Any, source: Any, file: Any, *args: Any, **options: Any) -> None:
        inner(self, source, _Reads(disk, file), *args, **options)

    return outer


class _Reads:
    """A file whose reads count."""

    def __init__(self, disk: FaultyDisk, file: Any) -> None:
        self._disk = disk
        self._file = file

    def readinto(self, buffer: Any, /) -> int | None:
        self._disk.touch("read")
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
