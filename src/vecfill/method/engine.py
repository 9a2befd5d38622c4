"""Rows cut in blocks; the only parallel map.

A block is computed by one thread with BLAS held to one thread, so its bits do not depend on how
many threads there are; and threads that run compiled code without the lock need no copies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib

from vecfill._blas import one_blas_thread
from vecfill.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def row_blocks(n_rows: int, size: int) -> list[slice]:
    """Cut `n_rows` rows in slices of `size`; the last may be shorter.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def n_threads(n_jobs: int | None) -> int:
    """Tell how many threads `n_jobs` asks for.

    ``None`` means as many as NumPy's own products would take: every core this process may use,
    less if ``OMP_NUM_THREADS`` says so (joblib sets it in its workers). A number is read as
    scikit-learn reads it: -1 is all cores, -2 all but one.

    Examples
    --------
    >>> n_threads(3)
    3
    """
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        n_cores = joblib.cpu_count()
        return min(n_cores, max(1, int(limit))) if limit.isdigit() else n_cores
    if n_jobs == 0:
        raise InputError("n_jobs=0 means no thread at all. Use a positive number, or -1 for all.")
    return joblib.effective_n_jobs(n_jobs) if n_jobs < 0 else n_jobs


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, n_jobs: int | None = None
) -> list[Result]:
    """Apply `function` to every item on threads; results keep the order of the items.

    Examples
    --------
    >>> parallel_map(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    items = list(items)
    n_workers = min(n_threads(n_jobs), len(items))
    with one_blas_thread():
        if n_workers <= 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(n_workers) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                # One failure, or Ctrl-C, ends the work: what has not begun never begins.
                for future in futures:
                    future.cancel()
                raise
