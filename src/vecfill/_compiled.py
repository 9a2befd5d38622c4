"""The one way in which we compile: cached on disk where a disk can be written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def _compile(function: F, **options: Any) -> F:
    # The shape checks of the tests wrap every function, and Numba can read only the function.
    plain = inspect.unwrap(function)
    try:
        return cast(F, numba.njit(nogil=True, cache=True, **options)(plain))
    except RuntimeError:
        return cast(F, numba.njit(nogil=True, **options)(plain))


def compiled(function: F) -> F:
    """Compile `function` by Numba: no lock held, bits as written, cached on disk if that works.

    Fast-math is off, so that a sum has the same bits wherever the function is inlined. Numba
    refuses at import time when it finds no folder to cache in; then we compile anew each time.
    """
    return _compile(function)


def compiled_in_any_order(function: F) -> F:
    """Compile the same way, but let the compiler reorder sums, which vectorises them.

    For long sums whose last bits decide nothing: a Gram matrix, or a distance that is computed
    again. One function compiled once still gives the same bits for any number of threads.
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})
