"""The one way in which we compile: when first called, and cached on disk where one can be written.

Numba takes half a second to load, and many commands call no compiled function at all. Its cache is
beside the package, or in the user's cache folder if that cannot be written, as in an installation
that belongs to somebody else; `NUMBA_CACHE_DIR` names another folder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_LOCK = Lock()


class _Compiled:
    """A function that Numba compiles when it is first called, from Python or from compiled code."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, is_part: bool = False
    ) -> None:
        # The shape checks of the tests wrap every function, and Numba can read only the function.
        plain = inspect.unwrap(function)
        update_wrapper(self, plain)
        self._plain = plain
        # Nobody calls these functions from C, and what that would need takes long to compile.
        self._options = {**options, "no_cfunc_wrapper": True, "no_cpython_wrapper": is_part}
        self._is_part = is_part
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._is_part:
            return self._plain(*args)
        dispatcher = self._dispatcher or self._compile()
        return dispatcher(*args)

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks for where compiled code calls this function."""
        return self._compile()._numba_type_

    def _compile(self) -> Any:
        import numba  # noqa: PLC0415 - slow to load

        # One dispatcher for all threads, or each would compile the function for itself.
        with _LOCK:
            if self._dispatcher is not None:
                return self._dispatcher
            try:
                self._dispatcher = numba.njit(nogil=True, cache=True, **self._options)(self._plain)
            except RuntimeError:  # Numba found no folder to cache in.
                self._dispatcher = numba.njit(nogil=True, **self._options)(self._plain)
            return self._dispatcher


def compiled(function: F) -> F:
    """Compile `function` by Numba: no lock held, bits as written, cached on disk if that works.

    Fast-math is off, so that a sum has the same bits wherever the function is inlined. Where Numba
    finds no folder to cache in, the function is compiled anew in each process.
    """
    return cast(F, _Compiled(function, {}))


def compiled_part(function: F) -> F:
    """Compile a part of other compiled functions, which nothing else calls: in less time.

    Called from Python it is not compiled.
    """
    return cast(F, _Compiled(function, {}, is_part=True))


def compiled_in_any_order(function: F) -> F:
    """Compile the same way, but let the compiler reorder sums, which vectorises them.

    For long sums whose last bits decide nothing: a Gram matrix, or a distance that is computed
    again. One function compiled once still gives the same bits for any number of threads.
    """
    return cast(F, _Compiled(function, {"fastmath": {"reassoc", "contract", "nsz"}}))
