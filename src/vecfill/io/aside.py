"""Work done with bytes on the way past: hashing and copying, on a thread of their own."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

_MAX_WAITING = 2


class Aside:
    """Calls `action` with each block in order on one other thread, at most two blocks behind.

    Blocks are copied, because readers reuse their buffers; so are the copies, after `action`
    returns. What it raises comes out of a later `offer` or of `finish`.

    Examples
    --------
    >>> seen = []
    >>> with Aside(lambda block: seen.append(bytes(block))) as aside:
    ...     aside.offer(memoryview(b"cat"))
    ...     aside.finish()
    >>> seen
    [b'cat']
    """

    def __init__(self, action: Callable[[memoryview], Any]) -> None:
        self._action = action
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[Any]] = deque()
        self._free: deque[bytearray] = deque()
        self.n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def offer(self, block: memoryview) -> None:
        """Hand over a block; wait if too many are waiting already."""
        self.n_bytes += len(block)
        # A fresh buffer for each block would cost more than copying: its pages must be cleared.
        buffer = self._free.popleft() if self._free else bytearray()
        if len(buffer) < len(block):
            buffer = bytearray(len(block))
        memoryview(buffer)[: len(block)] = block
        self._waiting.append(self._pool.submit(self._act, buffer, len(block)))
        if len(self._waiting) > _MAX_WAITING:
            self._waiting.popleft().result()

    def _act(self, buffer: bytearray, size: int) -> None:
        self._action(memoryview(buffer)[:size])
        self._free.append(buffer)

    def finish(self) -> None:
        """Wait until all blocks are done."""
        while self._waiting:
            self._waiting.popleft().result()


class Sha256(Aside):
    """The SHA-256 of a file, computed from the blocks that a reader reads anyway."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._digest = hashlib.sha256()
        super().__init__(self._digest.update)

    def result(self) -> str:
        """Return the hash; what was not read in one go (a member of a zip, say) is read now."""
        self.finish()
        if self.n_bytes == self._size:
            return self._digest.hexdigest()
        return sha256_of(self._path)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
