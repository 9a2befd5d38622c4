"""BLAS held to one thread, wherever its bits or its threads would matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    # Numba's products run in the library of this module, and only what is loaded is found.
    import scipy.linalg  # noqa: F401, PLC0415 - slow to load
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    # Finding the libraries takes milliseconds, and they stay where they are.
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, in a ``with`` or as a decorator.

    The bits of a product, and more so of a decomposition, depend on how it is cut among threads.
    And after a product on several threads OpenBLAS keeps them spinning for a tenth of a second,
    which is taken from whatever runs next.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    with _blas().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread: for many small calls, threads cost more than they save.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    with _blas().limit(limits=1):
        yield
