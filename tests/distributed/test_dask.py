"""Dask gives the same bits, survives dead workers, and is set up as it must be."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.distributed.made import Made, made
from tests.distributed.test_faults import STAGES, run_or_die
from vecfill.distributed import pieces
from vecfill.distributed.tasks import Runner, Task
from vecfill.errors import InputError

pytest.importorskip("distributed", reason="dask is not installed")

pytestmark = [
    pytest.mark.extra,
    # Dask leaves sockets to the collector when a cluster closes.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("items"), n_rows=400)


def test_one_two_and_three_workers_give_the_bits_of_one_process(items: Made) -> None:
    items.imputed("serial")
    for workers in (1, 2, 3):
        result = items.imputed(f"dask {workers}", engine="dask", workers=workers)
        assert result.work["workers"] == workers
        assert items.table(f"dask {workers}").equals(items.table("serial"))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_each_stage_loses_nothing(
    items: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vecfill.distributed.dask import Dask

    class DyingWorkers(Dask):
        """Loses a worker in each stage."""

        def submit(self, function, task):
            return super().submit(partial(run_or_die, function, tmp_path), task)

    engine = DyingWorkers(workers=2)
    monkeypatch.setattr("vecfill.distributed.job.engine_of", lambda *_, **__: engine)
    items.imputed("dying")
    monkeypatch.undo()
    items.imputed("alive")
    assert items.table("dying").equals(items.table("alive"))
    assert {mark.name for mark in tmp_path.iterdir()} >= STAGES


def die_once(path: str) -> None:
    mark = Path(f"{path}.tried")
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    pieces.write_values(Path(path), 1)


def test_a_worker_that_dies_loses_nothing_and_settings_are_ours(tmp_path: Path) -> None:
    from vecfill.distributed.dask import Dask, worker_settings

    paths = [tmp_path / f"{number}.json" for number in range(4)]
    with Dask(workers=2) as engine:
        found = engine._client.run(worker_settings)
        assert all(each["pause"] is False and each["threads"] == "1" for each in found.values())
        assert all(each["malloc"] == str(1 << 30) for each in found.values())
        assert set(engine._client.nthreads().values()) == {1}
        Runner(engine, patience=300).run(
            Task("test", str(path.stem), die_once, {"path": str(path)}, (path,)) for path in paths
        )
    assert all(pieces.is_whole(path) for path in paths)


ORPHANS = """
import os, signal
from functools import partial
from vecfill.distributed.dask import Dask
if __name__ == "__main__":
    engine = Dask(workers=2)
    started = [engine.submit(partial(os.write, 1), b"started ") for _ in range(2)]
    print(*(future.result() for future in started), flush=True)
    engine.submit(signal.sigwait, [signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "sigwait"), reason="needs signals")
def test_workers_end_when_the_driver_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(ORPHANS)
    driver = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    driver.stdout.readline()
    # Workers hold the same end of the pipe, so it closes when the last one is gone.
    driver.communicate(timeout=10)
    assert driver.returncode == -signal.SIGKILL


def test_a_port_that_is_taken_stops_no_cluster() -> None:
    from vecfill.distributed.dask import Dask

    with socket.socket() as taken:
        # Where 8787 is taken already, by another cluster, that is as good.
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        with Dask(workers=1) as engine:
            assert engine.n_workers == 1


def test_a_scheduler_that_does_not_answer_is_refused(items: Made) -> None:
    with pytest.raises(InputError, match="does not answer"):
        items.imputed("nobody", engine="dask", scheduler="tcp://127.0.0.1:9")


def test_parquet_is_read_and_written_through_fsspec(items: Made) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    for role in ("features", "vectors"):
        for path in (items.folder / role).iterdir():
            memory.pipe(f"/data/{role}/{path.name}", path.read_bytes())
    from tests.distributed.made import PLAIN
    from vecfill import impute_dataset

    items.imputed("local")
    impute_dataset(
        "memory://data/features", "memory://data/vectors", "memory://data/out",
        work=items.folder / "far", method=PLAIN,
    )  # fmt: skip
    memory.get("/data/out/", str(items.folder / "far out"), recursive=True)
    assert items.table("far").equals(items.table("local"))
    assert memory.exists("/data/out/_manifest.json")
    memory.pipe("/data/out/part-000009.parquet", b"of an earlier run")
    again = {"work": items.folder / "far", "method": PLAIN}
    with pytest.raises(InputError, match="exists already"):
        impute_dataset(
            "memory://data/features", "memory://data/vectors", "memory://data/out", **again
        )
    impute_dataset(
        "memory://data/features", "memory://data/vectors", "memory://data/out",
        **again, overwrite=True,
    )  # fmt: skip
    assert not memory.exists("/data/out/part-000009.parquet")


def test_a_work_folder_elsewhere_is_refused(items: Made) -> None:
    from vecfill import impute_dataset

    with pytest.raises(InputError, match="not a local path"):
        impute_dataset(items.features, items.known, "out", work="memory://work")
