"""A task: a function, plain arguments, and the pieces that hold what the function returns.

A task reads pieces and leaves pieces, and nothing else, so it can run anywhere the work folder can
be seen, twice, or again after a crash. A function whose result is too large to be held returns
``None``: it has written the pieces itself.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.distributed import pieces
from vecfill.distributed.engines import Engine
from vecfill.errors import VecfillError
from vecfill.machine.blas import one_blas_thread

Progress = Callable[[str, int, int], None]

RETRIES = 3
"""How often a task is run again after its worker died. A guess: four times is no chance."""


class TaskError(VecfillError):
    """A task failed again and again, or never ended; the message names it."""


@dataclass(frozen=True)
class Task:
    """One piece of work; `outputs` exist when it is done."""

    stage: str
    name: str
    function: Callable[..., Any]
    """Gives what the outputs hold, one value each, or ``None`` if it has written them."""
    arguments: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[Path, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether all outputs are there, finished."""
        return all(pieces.is_whole(path) for path in self.outputs)

    def __str__(self) -> str:
        return f"{self.stage} {self.name}".strip()


def run_task(task: Task) -> None:
    """Run one task here, with BLAS held to one thread so that bits do not depend on the machine."""
    with one_blas_thread():
        results = task.function(**task.arguments)
    if results is not None:
        results = results if isinstance(results, tuple) else (results,)
        for path, result in zip(task.outputs, results, strict=True):
            pieces.write(path, result)


class Runner:
    """Runs the tasks of one stage after another, and knows who makes which piece."""

    def __init__(
        self, engine: Engine, *, patience: float, progress: Progress | None = None
    ) -> None:
        self.engine = engine
        self.patience = patience
        self.n_run = 0
        """How many tasks have been run, and not found done."""
        self._progress = progress
        self._makers: dict[str, Task] = {}
        self._named: set[str] = set()
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}

    def run(self, tasks: Iterable[Task], *, at_once: int | None = None) -> None:
        """Run those tasks that are not done, no more than `at_once` at a time.

        They are of one stage, or of two that go side by side.
        """
        tasks = list(tasks)
        for task in tasks:
            self._makers.update((str(path), task) for path in task.outputs)
        remaining = self._remaining(tasks)
        if remaining:
            n_workers = self.engine.n_workers
            self._run(remaining, min(n_workers, at_once or n_workers))

    def run_each(
        self,
        stage: str,
        name: str,
        function: Callable[..., Any],
        outputs: Sequence[Path | tuple[Path, ...]],
        *,
        by: str = "block",
        **arguments: Any,
    ) -> list[Any]:
        """Run a function once for each block or group, told by its number as the argument `by`.

        Returns the pieces that it leaves, as they were passed.
        """
        self.run(
            Task(
                stage,
                f"{name} {number}",
                function,
                {**arguments, by: number},
                paths if isinstance(paths, tuple) else (paths,),
            )
            for number, paths in enumerate(outputs)
        )
        return list(outputs)

    @contextmanager
    def here(self, task: Task) -> Iterator[bool]:
        """Let the driver itself do a task, inside the block, if this gives true."""
        remains = bool(self._remaining([task]))
        yield remains
        if remains:
            self.n_run += 1
            self._tell(task.stage, 1)

    def _remaining(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that are not done; count those that are new."""
        remaining = [task for task in tasks if not task.is_done]
        new = [task for task in tasks if str(task) not in self._named]
        self._named.update(str(task) for task in new)
        undone = {str(task) for task in remaining}
        for stage in dict.fromkeys(task.stage for task in new):
            mine = [task for task in new if task.stage == stage]
            self._total[stage] = self._total.get(stage, 0) + len(mine)
            self._tell(stage, sum(str(task) not in undone for task in mine))
        return remaining

    def read(self, read: Callable[[Path], Any], path: Path) -> Any:
        """Read a piece here in the driver; one that is damaged is made again first."""
        try:
            return read(path)
        except pieces.DamagedPieceError as error:
            self._make_again(error)
            return read(path)

    def total(self, paths: Iterable[Path]) -> np.ndarray:
        """Return the sum of the arrays of pieces, added in their order."""
        arrays = (self.read(pieces.read_array, path) for path in paths)
        return reduce(np.add, arrays)

    def joined(self, paths: Iterable[Path]) -> np.ndarray:
        """Return the arrays of pieces, one after the other."""
        return np.concatenate([self.read(pieces.read_array, path) for path in paths])

    def _tell(self, stage: str, n_done: int) -> None:
        """Count tasks as done, and say how far the stage is."""
        total = self._total[stage]
        self._done[stage] = min(total, self._done.get(stage, 0) + n_done)
        if self._progress is not None:
            self._progress(stage, self._done[stage], total)

    def _run(self, remaining: Sequence[Task], at_once: int) -> None:
        waiting, n_failed = deque(remaining), dict.fromkeys(map(str, remaining), 0)
        running: dict[Future[None], Task] = {}
        suspects: set[str] = set()
        try:
            while waiting or running:
                # After a worker died its task is run alone, so that the next death names it.
                limit = 1 if suspects else at_once
                while waiting and len(running) < limit:
                    task = waiting.popleft()
                    running[self.engine.submit(run_task, task)] = task
                finished = wait(running, self.patience, FIRST_COMPLETED).done
                if not finished:
                    self.engine.abandon()
                    raise TaskError(_stalled([*running.values()], self.patience))
                for future in finished:
                    task = running.pop(future)
                    error = future.exception()
                    if error is None:
                        suspects.discard(str(task))
                        self.n_run += 1
                        self._tell(task.stage, 1)
                        continue
                    n_failed[str(task)] += 1
                    if n_failed[str(task)] > RETRIES or not self._mend(error):
                        raise _failed(task, error, n_failed[str(task)]) from error
                    if isinstance(error, BrokenExecutor):
                        suspects.add(str(task))
                    waiting.appendleft(task)
        except BaseException:
            for future in running:
                future.cancel()
            raise

    def _mend(self, error: BaseException) -> bool:
        """Do what is needed before a task is run again; tell whether that can help."""
        if isinstance(error, pieces.DamagedPieceError):
            self._make_again(error)
            return True
        if isinstance(error, BrokenExecutor):
            self.engine.renew()
            return True
        if isinstance(error, OSError):
            return error.errno not in (errno.ENOSPC, errno.EDQUOT)
        return isinstance(error, MemoryError) or type(error).__name__ == "KilledWorker"

    def _make_again(self, error: pieces.DamagedPieceError) -> None:
        task = self._makers.get(error.path)
        if task is None:
            raise error
        for path in task.outputs:
            pieces.discard(path)
        # What it reads may be damaged too: then that is made again first.
        try:
            self.engine.submit(run_task, task).result(self.patience)
        except pieces.DamagedPieceError as deeper:
            if deeper.path == error.path:
                raise
            self._make_again(deeper)
            self.engine.submit(run_task, task).result(self.patience)


def _stalled(running: Sequence[Task], patience: float) -> str:
    names = ", ".join(str(task) for task in running[:3])
    return (
        f"No task has finished for {patience:g} seconds; running: {names}. Look at the worker that "
        "runs it. Then run the same command again: it resumes, and what is done stays done. "
        "patience= sets how long to wait."
    )


def _failed(task: Task, error: BaseException, n_times: int) -> BaseException:
    """Return the error to raise for a task that failed for good."""
    if isinstance(error, VecfillError) and not isinstance(error, pieces.DamagedPieceError):
        return error
    first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, MemoryError):
        advice = "It ran out of memory: lower memory=, or use fewer workers."
    elif isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        advice = "Its worker died, most likely because it ran out of memory: lower memory= or "
        advice += "use fewer workers."
    else:
        advice = "Remove the cause."
    times = f" ({n_times} times)" if n_times > 1 else ""
    return TaskError(
        f"The task '{task}' failed{times}: {type(error).__name__}: {first_line}. {advice} Then run "
        "the same command again: it resumes, and what is done stays done."
    )
