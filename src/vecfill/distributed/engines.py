"""Who runs tasks: this process, a pool of processes, or any executor.

An engine is a `concurrent.futures.Executor` and how many tasks it can run at once. It need not
share memory with the driver, only the work folder.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from vecfill.errors import InputError
from vecfill.method.engine import n_workers

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Engine:
    """Runs tasks in this process, one after another."""

    name = "serial"
    n_workers = 1

    def submit(self, function: Callable[[Any], None], task: Any) -> Future[None]:
        """Begin with a task; here it has ended when this returns."""
        future: Future[None] = Future()
        try:
            future.set_result(function(task))
        except Exception as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        """Start workers again after one of them died."""

    def abandon(self) -> None:
        """Let go of workers that hang."""

    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        # After an error or an interrupt nobody waits for workers, which may hang.
        if error is None:
            self.close()
        else:
            self.abandon()


class Processes(Engine):
    """Runs tasks in a pool of fresh processes, one thread each."""

    name = "processes"

    def __init__(self, workers: int | None = None) -> None:
        self.n_workers = n_workers(workers)
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[[Any], None], task: Any) -> Future[None]:
        """Begin with a task."""
        if self._pool is None:
            # Fresh processes: a fork would copy locks that threads of the driver hold.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self.n_workers, mp_context=context, initializer=_prepare_worker
            )
        return self._pool.submit(function, task)

    def renew(self) -> None:
        """Start workers again after one of them died."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def abandon(self) -> None:
        """End workers that hang."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class Given(Engine):
    """Runs tasks on an executor that the caller made, and leaves it open."""

    name = "executor"

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self._executor = executor
        self.name = f"executor {type(executor).__name__}"
        self.n_workers = n_workers(executor) if workers is None else n_workers(workers)

    def submit(self, function: Callable[[Any], None], task: Any) -> Future[None]:
        """Begin with a task."""
        return self._executor.submit(function, task)


def _prepare_worker() -> None:
    for name in _ONE_THREAD:
        os.environ[name] = "1"
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    """End this worker as soon as the driver is gone, however it went.

    A worker waits for tasks at a pipe of which it holds both ends, so it would never see that
    nobody writes to it any more.
    """
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def engine_of(
    engine: str | Executor | None, *, workers: int | None = None, scheduler: str | None = None
) -> Engine:
    """Return the engine that was asked for.

    Examples
    --------
    >>> engine_of(None).name
    'serial'
    >>> engine_of("threads")
    Traceback (most recent call last):
    vecfill.errors.InputError: engine='threads' is none of serial, processes, dask. Pass one ...
    """
    if scheduler is not None and engine != "dask":
        raise InputError(
            "scheduler= is the address of a Dask scheduler. Use it with engine='dask'."
        )
    if isinstance(engine, Executor):
        return Given(engine, workers)
    if engine in (None, "serial"):
        if workers not in (None, 1):
            raise InputError(
                f"workers={workers} needs several processes. Use engine='processes' or 'dask'."
            )
        return Engine()
    if engine == "processes":
        return Processes(workers)
    if engine == "dask":
        from vecfill.distributed.dask import Dask  # noqa: PLC0415  needs an extra

        return Dask(workers=workers, scheduler=scheduler)
    raise InputError(
        f"engine={engine!r} is none of serial, processes, dask. Pass one of these names, or an "
        "object that is a concurrent.futures.Executor."
    )
