"""BLAS held to one thread, wherever its bits or its threads would matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import cache
from threading import Lock
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


class one_blas_thread(ContextDecorator):  # noqa: N801 - used like a function
    """Hold BLAS to one thread, in a ``with`` or as a decorator.

    The bits of a product, and more so of a decomposition, depend on how it is cut among threads.
    And after a product on several threads OpenBLAS keeps them spinning for a tenth of a second,
    which is taken from whatever runs next.

    The limit is one of the whole process. It holds until the last of those who asked for it is
    done: if the first one lifted it, products that run in other threads would change their bits.

    Examples
    --------
    >>> with one_blas_thread(), one_blas_thread():
    ...     pass
    """

    _lock = Lock()
    _n_holders = 0
    _limit: AbstractContextManager[object] | None = None

    def __enter__(self) -> None:
        cls = one_blas_thread
        with cls._lock:
            if cls._n_holders == 0:
                limit = _blas().limit(limits=1, user_api="blas")
                limit.__enter__()
                cls._limit = limit
            cls._n_holders += 1

    def __exit__(self, *_: object) -> None:
        cls = one_blas_thread
        with cls._lock:
            cls._n_holders -= 1
            if cls._n_holders == 0 and cls._limit is not None:
                cls._limit.__exit__(None, None, None)


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
