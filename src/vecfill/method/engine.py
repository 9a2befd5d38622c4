"""The only parallel map: pieces in, pieces out.

A stage cuts its work into blocks and hands the engine a function for one block. The function is
defined at the top of a module and gets arrays and numbers (`functools.partial` binds what all
blocks share), so it can be pickled and nothing is shared behind the engine's back. Threads run the
blocks here; any `concurrent.futures.Executor` can run them instead.

Each block is computed by one thread with BLAS held to one thread, so its bits do not depend on
how many workers there are or where they run.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from vecfill.errors import InputError
from vecfill.machine.blas import one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

if TYPE_CHECKING:
    Workers: TypeAlias = int | Executor | None
else:
    # Users pass it straight through the stages, and `n_workers` refuses nonsense in better words
    # than the type checks of the tests.
    Workers = Any
"""Who runs the blocks: a number of threads, ``None`` for as many as sensible, or an executor."""

CONTROL_GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells a process what its container may use."""


def row_blocks(n_rows: int, size: int) -> list[slice]:
    """Cut `n_rows` rows into slices of `size`; the last may be shorter.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@cache
def _core_quota() -> float:
    """Return how many cores the control group of this process may keep busy, or infinity.

    A container is often limited this way, and then sees more cores than it may use.
    """
    try:
        quota, period = (CONTROL_GROUP / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = (
                (CONTROL_GROUP / "cpu" / f"cpu.cfs_{quantity}_us").read_text()
                for quantity in ("quota", "period")
            )
        except OSError:
            return np.inf
    try:
        cores = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):
        return np.inf  # "max": no limit
    return cores if cores > 0 else np.inf


def _n_cores() -> int:
    """Return how many cores this process may use."""
    try:
        n_cores = len(os.sched_getaffinity(0))
    except AttributeError:  # only some systems can pin a process to cores
        n_cores = os.cpu_count() or 1
    return max(1, int(min(n_cores, np.ceil(_core_quota()))))


def n_workers(n_jobs: Workers) -> int:
    """Return how many blocks can run at once.

    ``None`` means as many threads as NumPy's own products would use: every core this process may
    use, fewer if ``OMP_NUM_THREADS`` says so (joblib sets it in its workers). A number is read as
    scikit-learn reads it: -1 is all cores, -2 all but one.

    Examples
    --------
    >>> n_workers(3)
    3
    """
    if isinstance(n_jobs, Executor):
        # An executor need not say how many workers it has. Too few pieces would leave some idle.
        return int(getattr(n_jobs, "_max_workers", None) or _n_cores())
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(_n_cores(), max(1, int(limit))) if limit.isdigit() else _n_cores()
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool):
        raise InputError(
            f"n_jobs={n_jobs!r} is not a whole number. Use a number of threads such as 2, "
            f"-1 for all cores, or None to let vecfill decide."
        )
    if n_jobs == 0:
        raise InputError("n_jobs=0 means no thread at all. Use a positive number, or -1 for all.")
    return int(n_jobs) if n_jobs > 0 else max(1, _n_cores() + 1 + int(n_jobs))


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, n_jobs: Workers = None
) -> list[Result]:
    """Apply `function` to every item; results keep the order of the items.

    Examples
    --------
    >>> parallel_map(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    items = list(items)
    with one_blas_thread():
        if isinstance(n_jobs, Executor):
            return _results([n_jobs.submit(_alone, function, item) for item in items])
        n_threads = min(n_workers(n_jobs), len(items))
        if n_threads <= 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(n_threads) as pool:
            return _results([pool.submit(function, item) for item in items])


def fill(
    outputs: Sequence[np.ndarray],
    function: Callable[..., Result],
    blocks: Sequence[slice],
    *,
    items: Sequence[Any] | None = None,
    axis: int = 0,
    n_jobs: Workers = None,
) -> list[Result]:
    """Let `function` write one block of each output at a time; return what it returns.

    It is called as ``function(item, *parts)``. A part is the block of an output along `axis`, with
    the values that are there; the item is the block itself, unless `items` are given. The function
    may write to its parts and to nothing else. Blocks ascend and do not overlap, so threads write
    straight into the outputs. Another executor gets copies of the parts, and what it sends back is
    copied into place.

    Examples
    --------
    >>> doubled = np.empty(5)
    >>> _ = fill([doubled], partial(np.multiply, 2), row_blocks(5, 2), items=[[1, 2], [3, 4], [5]])
    >>> doubled
    array([ 2.,  4.,  6.,  8., 10.])
    """
    assert all(earlier.stop <= later.start for earlier, later in pairwise(blocks)), "blocks overlap"
    places = [(slice(None),) * axis + (block,) for block in blocks]
    items = blocks if items is None else items
    work = [
        (item, *(output[place] for output in outputs))
        for item, place in zip(items, places, strict=True)
    ]
    if not isinstance(n_jobs, Executor):
        return parallel_map(partial(_called, function), work, n_jobs=n_jobs)
    results = []
    filled_blocks = parallel_map(partial(_filled, function), work, n_jobs=n_jobs)
    for place, (result, parts) in zip(places, filled_blocks, strict=True):
        for output, part in zip(outputs, parts, strict=True):
            output[place] = part
        results.append(result)
    return results


def _results(futures: list[Future[Result]]) -> list[Result]:
    try:
        return [future.result() for future in futures]
    except BaseException:
        # After a failure, or Ctrl-C, blocks that have not begun never begin.
        for future in futures:
            future.cancel()
        raise


def _alone(function: Callable[[Item], Result], item: Item) -> Result:
    """Call `function` where the caller cannot hold BLAS to one thread: in another process."""
    with one_blas_thread():
        return function(item)


def _called(function: Callable[..., Result], arguments: tuple) -> Result:
    return function(*arguments)


def _filled(function: Callable[..., Result], arguments: tuple) -> tuple[Result, list[np.ndarray]]:
    """Return the result and the parts as the function left them, for the way back."""
    item, *parts = arguments
    # What comes over a wire without being copied cannot be written to.
    parts = [part if part.flags.writeable else part.copy() for part in parts]
    return function(item, *parts), parts
