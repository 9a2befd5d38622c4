"""What can go wrong in a job on datasets ends right, or with an error and a resume."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.distributed.made import PLAIN, Made, made
from vecfill.cli import main
from vecfill.distributed import pieces, plan
from vecfill.distributed.engines import Engine, Given, Processes
from vecfill.distributed.job import impute_dataset
from vecfill.distributed.plan import job_status
from vecfill.distributed.tasks import Runner, Task, TaskError
from vecfill.errors import InputError
from vecfill.io import atomic

STAGES = {
    "ingest", "align", "prepare as_given", "partition as_given", "neighbours as_given",
    "weights as_given", "centre final", "centre hidden", "equations hidden", "propagate hidden",
    "equations final", "propagate final", "emit",
}  # fmt: skip


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("items"), n_rows=500)


@pytest.fixture(scope="module")
def right(items: Made) -> pa.Table:
    result = items.imputed("right")
    assert result.work["tasks_run"] == _all_tasks(items)
    return items.table("right")


class StoppedError(Exception):
    pass


class StoppingEngine(Engine):
    """Ends the driver after some tasks, as a kill would."""

    def __init__(self, n_tasks: int, run: list[str]) -> None:
        self.n_left, self.run = n_tasks, run

    def submit(self, function, task):
        self.n_left -= 1
        if self.n_left < 0:
            raise StoppedError
        self.run.append(str(task))
        return super().submit(function, task)


def run_or_die(function, marks: Path, task: Task) -> None:
    """Run a task, but end the worker at the first one of each stage."""
    mark = marks / task.stage
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    function(task)


class DyingWorkers(Processes):
    """Loses a worker in each stage."""

    marks: Path

    def submit(self, function, task):
        return super().submit(partial(run_or_die, function, self.marks), task)


class ShortOfMemory(Engine):
    """Runs out of memory at the first task of each stage."""

    def __init__(self) -> None:
        self.stages: set[str] = set()

    def submit(self, function, task):
        if task.stage in self.stages:
            return super().submit(function, task)
        self.stages.add(task.stage)
        return super().submit(run_out_of_memory, task)


def _all_tasks(items: Made) -> int:
    return sum(n_tasks for _, n_tasks in job_status(items.folder / "right").stages.values())


def test_a_job_stopped_again_and_again_goes_on_where_it_was(
    items: Made, right: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []
    engine = partial(StoppingEngine, 3, run)
    monkeypatch.setattr("vecfill.distributed.job.engine_of", lambda *_, **__: engine())
    for _ in range(20):
        try:
            items.imputed("stopped")
        except StoppedError:
            assert not (items.folder / "stopped out" / "_manifest.json").exists()
        else:
            break
    assert items.table("stopped").equals(right)
    # No task was run twice. The driver itself joins the tree.
    assert len(run) == len(set(run)) == _all_tasks(items) - 1


def test_a_damaged_piece_is_found_by_its_hash_and_made_again(items: Made, right: pa.Table) -> None:
    items.imputed("damaged")
    root = items.folder / "damaged" / "pieces"
    damaged = ("features/rows", "known/slabs", "as_given/ordered", "as_given/bounds",
               "as_given/nearest", "final/as_given/system")  # fmt: skip
    for stage in damaged:
        piece = next(p for p in sorted((root / stage).rglob("*.npy")))
        content = bytearray(piece.read_bytes())
        content[-3] ^= 255
        piece.write_bytes(content)
    for part in (root / "parts").iterdir():
        part.unlink()
    for slab in (root / "final" / "as_given").rglob("solved/*/*"):
        slab.unlink()
    for weights in (root / "as_given" / "weights").rglob("*.npy"):
        weights.unlink()
    for forest in (root / "as_given" / "forest").iterdir():
        forest.unlink()
    items.imputed("damaged", overwrite=True)
    assert items.table("damaged").equals(right)


def test_a_damaged_part_is_never_published(items: Made, right: pa.Table) -> None:
    items.imputed("part")
    part = next((items.folder / "part" / "pieces" / "parts").glob("*.parquet"))
    content = bytearray(part.read_bytes())
    content[100] ^= 255
    part.write_bytes(content)
    items.imputed("part", overwrite=True)
    assert items.table("part").equals(right)


def test_a_full_disk_ends_with_an_error_and_a_resume_that_works(
    items: Made, right: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = 0, os.write

    def filling(descriptor: int, data: bytes) -> int:
        nonlocal written
        written += len(data)
        if written > 400_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(atomic.os, "write", filling)
    with pytest.raises(InputError, match="the disk is full"):
        items.imputed("full")
    monkeypatch.undo()
    assert not list((items.folder / "full").rglob("*.tmp"))
    items.imputed("full")
    assert items.table("full").equals(right)


def test_another_plan_in_the_same_folder_is_refused(items: Made, right: pa.Table) -> None:
    with pytest.raises(InputError, match=r"level=0\.9, not 0\.8"):
        items.imputed("right", level=0.8, overwrite=True)
    changed = made(items.folder / "other", n_rows=501)
    with pytest.raises(InputError, match="other inputs"):
        impute_dataset(
            changed.features, changed.known, changed.folder / "out",
            work=items.folder / "right", method=PLAIN,
        )  # fmt: skip
    (items.folder / "full of things").mkdir()
    (items.folder / "full of things" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        items.imputed("full of things")


def test_a_second_driver_is_refused(items: Made, right: pa.Table) -> None:
    work = items.folder / "right"
    with plan.locked(work):
        assert job_status(work).is_running
        with pytest.raises(InputError, match=f"in use by another run .process {os.getpid()} on"):
            items.imputed("right", overwrite=True)
    assert not job_status(work).is_running


DAMAGES = {
    "a list": "[]",
    "nothing": "null",
    "a number": "7",
    "text": '"plan"',
    "no JSON": "{",
    "no text": "\udcff",
    "deep": "[" * 100_000 + "]" * 100_000,
    "empty": "{}",
    "plan is a list": '{"plan": [], "layout": {}}',
    "inputs is null": '{"plan": {"inputs": null, "options": {}}, "layout": {}}',
    "files are text": '{"plan": {"inputs": {"features": ["a"]}, "options": {}}, "layout": {}}',
    "no layout": '{"plan": {"inputs": {}, "options": {}}, "layout": null}',
}


@pytest.fixture(scope="module")
def damaged_work(items: Made, right: pa.Table) -> Path:
    work = shutil.copytree(items.folder / "right", items.folder / "damaged plan")
    plan.write_json(work / "written.json", {"output": str(items.folder / "right out")})
    return work


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(name, content, id=f"{name}, {damage}")
        for name in ("plan.json", "stages.json", "written.json")
        for damage, content in DAMAGES.items()
        # Where no stage has begun there is nothing to tell.
        if (name, damage) != ("stages.json", "empty")
    ],
)
def test_a_damaged_file_of_the_work_folder_is_named(
    damaged_work: Path, name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, intact = damaged_work / name, (damaged_work / name).read_bytes()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    try:
        assert main(["status", str(damaged_work)]) == 2
    finally:
        path.write_bytes(intact)
    told = capsys.readouterr().err
    assert str(path) in told
    assert "Remove the work folder" in told


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows_per_group", "many"), ("rows_per_group", 0), ("n_cells", 3), ("dtype", "object"),
     ("rows_per_block", -1), ("n_rows", True), ("unknown", 1)],
)  # fmt: skip
def test_a_damaged_layout_is_refused_when_a_job_resumes(
    items: Made, damaged_work: Path, name: str, value: object
) -> None:
    path = damaged_work / "plan.json"
    intact = path.read_bytes()
    recorded = json.loads(intact)
    path.write_text(json.dumps({**recorded, "layout": {**recorded["layout"], name: value}}))
    try:
        with pytest.raises(InputError, match=r"plan\.json is damaged.*start again"):
            items.imputed("damaged plan", overwrite=True)
    finally:
        path.write_bytes(intact)


def test_a_limit_of_confidence_is_refused_where_none_can_be_learnt(tmp_path: Path) -> None:
    few = made(tmp_path, n_rows=300, share_known=0.2)
    for limit in ("min_confidence", "min_bound"):
        with pytest.raises(InputError, match=f"{limit} needs a confidence.* 100 are needed"):
            few.imputed(limit, **{limit: 0.3})
    assert few.imputed("without").coverage is None


def test_status_tells_what_is_done(items: Made, right: pa.Table) -> None:
    told = job_status(items.folder / "right")
    assert all(n_done == n_tasks for n_done, n_tasks in told.stages.values())
    assert told.n_pieces > 50
    assert "neighbours as_given" in str(told)
    with pytest.raises(InputError, match="not the work folder of a job"):
        job_status(items.folder / "nothing here")


def kill_worker(path: str) -> None:
    """Die the first time; leave a piece the second."""
    mark = Path(f"{path}.tried")
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    pieces.write_values(Path(path), 1)


def always_die(path: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_out_of_memory(path: object) -> None:
    raise MemoryError


def exhaust_memory(path: str) -> None:
    """Ask for more than the worker may have the first time; leave a piece the second."""
    import resource

    mark = Path(f"{path}.tried")
    if not mark.exists():
        mark.write_text("")
        held = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (held + (64 << 20), resource.RLIM_INFINITY))
        np.ones(256 << 20, np.uint8)
    pieces.write_values(Path(path), 1)


def leave(path: str) -> None:
    pieces.write_values(Path(path), 1)


def _tasks(folder: Path, *functions) -> list[Task]:
    return [
        Task("test", f"number {n}", function, {"path": str(folder / f"{n}.json")},
             (folder / f"{n}.json",)) for n, function in enumerate(functions)
    ]  # fmt: skip


def test_a_worker_that_dies_costs_its_task_one_more_try(tmp_path: Path) -> None:
    some = _tasks(tmp_path, leave, kill_worker, leave)
    with Processes(2) as engine:
        Runner(engine, patience=300).run(some)
    assert all(task.is_done for task in some)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_each_stage_loses_nothing(
    items: Made, right: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = DyingWorkers(2)
    engine.marks = tmp_path
    monkeypatch.setattr("vecfill.distributed.job.engine_of", lambda *_, **__: engine)
    items.imputed("dying")
    assert items.table("dying").equals(right)
    assert {mark.name for mark in tmp_path.iterdir()} >= STAGES


def test_want_of_memory_in_each_stage_is_tried_again(
    items: Made, right: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ShortOfMemory()
    monkeypatch.setattr("vecfill.distributed.job.engine_of", lambda *_, **__: engine)
    items.imputed("short")
    assert items.table("short").equals(right)
    assert engine.stages >= STAGES


def test_a_task_whose_worker_always_dies_is_named(tmp_path: Path) -> None:
    some = _tasks(tmp_path, leave, always_die, leave)
    with (
        Processes(2) as engine,
        pytest.raises(TaskError, match=r"'test number 1' failed \(4 times"),
    ):
        Runner(engine, patience=300).run(some)


def test_a_task_out_of_memory_is_named_with_advice(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"'test number 0' failed.*lower memory="):
        Runner(Engine(), patience=300).run(_tasks(tmp_path, run_out_of_memory))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_worker_out_of_memory_costs_its_task_one_more_try(tmp_path: Path) -> None:
    some = _tasks(tmp_path, leave, exhaust_memory)
    with Processes(1) as engine:
        Runner(engine, patience=300).run(some)
    assert all(task.is_done for task in some)
    assert (tmp_path / "1.json.tried").exists()


def test_the_watchdog_names_a_task_that_hangs(tmp_path: Path) -> None:
    release = threading.Event()
    hanging = Task("test", "that hangs", lambda: release.wait(60), {}, (tmp_path / "a.json",))
    with ThreadPoolExecutor(1) as threads:
        runner = Runner(Given(threads), patience=0.05)
        with pytest.raises(TaskError, match="running: test that hangs"):
            runner.run([hanging])
        release.set()


def test_a_piece_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with pytest.raises(RuntimeError, match="midway"), pieces.new_piece(path) as file:
        file.write(b"half")
        raise RuntimeError("midway")
    assert not pieces.is_whole(path)
    pieces.write_array(path, np.arange(4))
    assert pieces.is_whole(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not pieces.is_whole(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "evil.npy"
    with pieces.new_piece(path) as file:
        np.lib.format.write_array(file, np.array([{}], object), allow_pickle=True)
    with pytest.raises(pieces.DamagedPieceError, match="cannot be read"):
        pieces.read_array(path)


DRIVER = """
import sys
from vecfill.distributed.job import impute_dataset
from vecfill.distributed.plan import job_status
from vecfill.model.predictors import LatentSemantic
f, v, o, w, n = sys.argv[1:]
def progress(stage, done, total):
    global left
    left -= 1
    if left < 0:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
left = int(n)
impute_dataset(f, v, o, work=w, method=LatentSemantic(ridge=0.1), progress=progress)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_twenty_times_loses_nothing(items: Made, right: pa.Table) -> None:
    words = [items.features, items.known, items.folder / "killed out", items.folder / "killed"]
    codes = []
    # Each run gets a little farther, because what is done is passed over quickly.
    for n_told in range(4, 4 + 6 * 20, 6):
        run = [sys.executable, "-c", DRIVER, *map(str, words), str(n_told)]
        codes.append(subprocess.run(run, check=False, env=os.environ).returncode)
    assert -signal.SIGKILL in codes
    items.imputed("killed", overwrite=True)
    assert items.table("killed").equals(right)


ORPHANS = """
import os, signal
from functools import partial
from vecfill.distributed.engines import Processes
engine = Processes(2)
started = [engine.submit(partial(os.write, 1), b"started ") for _ in range(2)]
print(*(future.result() for future in started), flush=True)
engine.submit(signal.sigwait, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "sigwait"), reason="needs signals")
def test_workers_end_when_the_driver_is_killed() -> None:
    driver = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    driver.stdout.readline()
    # Workers hold the same end of the pipe, so it closes when the last one is gone.
    driver.communicate(timeout=10)
    assert driver.returncode == -signal.SIGKILL


def test_parts_read_back_as_one_dataset(items: Made, right: pa.Table) -> None:
    assert pq.read_table(items.folder / "right out").num_rows == (~items.is_known).sum()
