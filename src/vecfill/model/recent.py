"""Large things that may be asked for again soon, up to a bound on their memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """What knows how much memory it takes, as arrays do."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


Value = TypeVar("Value", bound=Sized)


class Recent:
    """The things asked for last that fit into so many bytes together; the last one stays anyway.

    Examples
    --------
    >>> import numpy as np
    >>> recent = Recent(most_bytes=20)
    >>> recent.once("a", lambda: np.zeros(2)), recent.once("a", lambda: np.ones(2))
    (array([0., 0.]), array([0., 0.]))
    >>> recent.once("b", lambda: np.ones(2)), recent.once("a", lambda: np.ones(2))
    (array([1., 1.]), array([1., 1.]))
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: dict[Hashable, Any] = {}
        self._lock = Lock()

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what is under a key if it is still there, or compute it."""
        found = self.get(key)
        # Others need not wait meanwhile, and two that want the same get the same bits.
        return self.put(key, compute()) if found is None else found

    def get(self, key: Hashable) -> Any:
        """Return what is under a key, or None if it was forgotten."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
            return found

    def put(self, key: Hashable, value: Value) -> Value:
        """Keep something under a key, and return it."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > 1 and self._n_bytes() > self.most_bytes:
                del self._kept[next(iter(self._kept))]
        return value

    def _n_bytes(self) -> int:
        return sum(each.nbytes for each in self._kept.values())

    def __reduce__(self) -> tuple[type[Recent], tuple[int]]:
        # Large, and quick to make again.
        return Recent, (self.most_bytes,)
