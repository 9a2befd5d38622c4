"""Dask as an engine: a local cluster with settings that suit, or a scheduler that is there.

Tasks read and write files and hold no data in the cluster. So spilling and pausing by memory only
do harm: a worker near its limit would pause for ever. And the default of the allocator gives memory
back to the system after each task, only to ask for it again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any

from vecfill.distributed.engines import Engine
from vecfill.errors import InputError, MissingExtraError
from vecfill.method.engine import n_workers

config: Any
Client: Any
LocalCluster: Any
try:
    config, _distributed = import_module("dask.config"), import_module("distributed")
    Client, LocalCluster = _distributed.Client, _distributed.LocalCluster
except ImportError:
    # Told when an engine is asked for; whoever reads the examples need not have Dask.
    config = Client = LocalCluster = None

logger = logging.getLogger(__name__)

RETRIES = 3
"""How often Dask runs a task again, as our own runner does."""

_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

SETTINGS: dict[str, Any] = {
    "distributed.nanny.pre-spawn-environ": _ENVIRONMENT,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.daemon": True,
}
"""What a cluster needs; a scheduler that is there is checked for it."""


ANY_PORT: dict[str, Any] = {"dashboard_address": "127.0.0.1:0"}
"""Any free port for the page of a cluster; `None` would mean 8787, which may be taken."""


class Dask(Engine):
    """Runs tasks on Dask workers, one thread each."""

    name = "dask"

    def __init__(self, *, workers: int | None = None, scheduler: str | None = None) -> None:
        if Client is None:
            raise MissingExtraError("engine='dask' needs Dask: pip install 'vecfill[dask]'")
        self._cluster: Any = None
        if scheduler is None:
            self.n_workers = n_workers(workers)
            with config.set(SETTINGS):
                self._cluster = LocalCluster(
                    n_workers=self.n_workers,
                    threads_per_worker=1,
                    memory_limit=0,
                    processes=True,
                    host="127.0.0.1",
                    # Workers that end slowly or die are dealt with, and tell users nothing.
                    silence_logs=logging.ERROR,
                    **ANY_PORT,
                )
            self._client: Any = Client(self._cluster)
        else:
            self._client = _connected(scheduler)
            threads: dict[str, int] = self._client.nthreads()
            if not threads:
                self._client.close()
                raise InputError(f"The scheduler {scheduler} has no workers. Start some first.")
            self.n_workers = len(threads) if workers is None else n_workers(workers)
            for note in _unsuited(self._client, threads):
                logger.warning(note)
        # Never pure: a task that is asked for again must run again.
        self._executor = self._client.get_executor(retries=RETRIES, pure=False)

    def submit(self, function: Callable[[Any], None], task: Any) -> Future[None]:
        """Begin with a task."""
        return self._executor.submit(function, task)

    def abandon(self) -> None:
        """Let go of what runs."""
        self.close()

    def close(self) -> None:
        """Close the client, and the cluster if it is ours."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def _connected(scheduler: str) -> Any:
    try:
        return Client(scheduler, timeout="20s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"scheduler={scheduler!r} does not answer ({error}). Give the address that "
            "`dask scheduler` prints, such as tcp://10.0.0.5:8786."
        ) from error


def worker_settings() -> dict[str, Any]:
    """Return the settings of the worker that runs this."""
    pause = config.get("distributed.worker.memory.pause", default=None)
    return {
        "pause": pause,
        "malloc": os.environ.get("MALLOC_TRIM_THRESHOLD_"),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def _unsuited(client: Any, threads: dict[str, int]) -> list[str]:
    """Return what speaks against the settings of a cluster that is not ours."""
    notes = []
    if any(n > 1 for n in threads.values()):
        notes.append("Some workers have several threads. Start them with one each.")
    workers: Any = client.run(worker_settings).values()
    if any(worker["pause"] not in (False, None) for worker in workers):
        notes.append(
            "Some workers pause when memory is tight, and may pause for ever. Set "
            "distributed.worker.memory.pause to False."
        )
    if any(worker["malloc"] is None for worker in workers):
        notes.append(
            "Some workers run without MALLOC_TRIM_THRESHOLD_ in their environment, which costs "
            "about half as much time again. Set it to 1073741824."
        )
    return notes
