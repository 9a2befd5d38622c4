"""Jobs that are writing when the process is killed: what is there is whole, and can be redone."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

import vecfill as vf
from tests.shell import World
from tests.test_faults import contents, same
from tests.test_signals import ADD, TOKENS, clear, write_later

N_KILLS = 50


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_save_killed_at_any_line_leaves_the_old_model_or_the_new_one(tmp_path):
    rows = {f"e{n}": [float(n), float(n * n % 7)] for n in range(30)}
    known = {f"e{n}": [float(n), 1.0] for n in range(20)}
    result = vf.impute(rows, known, method="paper", names="off")
    path, model = tmp_path / "m.vecfill", result.to_model()
    model.save(path)
    old = path.read_bytes()
    model.update(known={"e25": np.array([7.0, 7.0])})
    model.save(path, overwrite=True)
    new = path.read_bytes()

    def killed_after(n_lines: int) -> int:
        path.write_bytes(old)
        return _killed_after(n_lines, lambda: model.save(path, overwrite=True))

    n_lines = killed_after(10**9)
    outcomes = set()
    for moment in np.linspace(1, n_lines - 1, N_KILLS).astype(int):
        killed_after(int(moment))
        found = path.read_bytes()
        assert found in (old, new)
        outcomes.add(found == new)
    assert outcomes == {True, False}, "kills came both before and after the file was in place"
    model.save(path, overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["m.vecfill"]
    assert "e25" in vf.load(path, check=True).known


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize(
    ("words", "results"),
    [(ADD, {"new.vec", "new.model"}), (TOKENS, {"new", "new.html"})],
    ids=["add", "tokens"],
)
def test_a_command_killed_at_any_line_leaves_whole_results(words, results, tmp_path, capsys):
    world = World(tmp_path, capsys)
    write_later(world)
    inputs = contents(world)
    assert world.run(*words)[0] == 0
    expected = {name: data for name, data in contents(world).items() if name not in inputs}
    clear(world, results)
    n_lines = _killed_after(10**9, lambda: world.run(*words))
    for moment in np.linspace(1, n_lines - 1, 12).astype(int):
        clear(world, results)
        _killed_after(int(moment), lambda: world.run(*words))
        after = contents(world)
        assert {name: after.pop(name) for name in inputs} == inputs
        results_there = {name: data for name, data in after.items() if ".vecfill-" not in name}
        for name, data in results_there.items():
            assert same(name, data, expected[name]), (name, moment)
    clear(world, results)
    assert world.run(*words)[0] == 0
    assert contents(world).keys() == {*inputs, *expected}, "what was left by kills is removed"


@pytest.mark.extra
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_database_job_killed_at_any_line_fills_all_cells_or_none(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from tests.exchange.test_databases import FILLED, ONE, items
    from vecfill.exchange.duckdb import fill_duckdb

    path, rows = tmp_path / "shop.duckdb", items()

    def n_missing() -> int:
        with duckdb.connect(str(path)) as connection:
            query = "SELECT count(*) FROM items WHERE embedding IS NULL"
            return connection.execute(query).fetchone()[0]

    def killed_after(n_lines: int) -> int:
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE items AS SELECT * FROM given")
        return _killed_after(n_lines, lambda: fill_duckdb(str(path), "items", **ONE), "exchange")

    n_lines = killed_after(10**9)
    n_left, outcomes = n_missing(), set()
    for moment in np.linspace(1, n_lines - 1, 12).astype(int):
        killed_after(int(moment))
        outcomes.add(n_missing())
    assert outcomes <= {n_left, n_left + len(FILLED)}
    fill_duckdb(str(path), "items", **ONE)
    assert n_missing() == n_left, "a second run finishes the job"


def _killed_after(n_lines: int, act: Callable[[], object], part: str = "io") -> int:
    """Act in a child that kills itself after so many lines of a part; return those it ran."""
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside threads; the child only writes and is killed.
        warnings.simplefilter("ignore", DeprecationWarning)
        reading, writing = os.pipe()
        pid = os.fork()
    if pid == 0:
        n_done = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal n_done
            if f"vecfill{os.sep}{part}" not in frame.f_code.co_filename:
                return None
            if event == "line":
                n_done += 1
                if n_done == n_lines:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        try:
            sys.settrace(trace)
            act()
            sys.settrace(None)
            os.write(writing, str(n_done).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    told = os.read(reading, 100)
    os.close(reading)
    return int(told or 0)
