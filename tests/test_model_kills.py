"""A model that is being saved when the process is killed."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from types import FrameType

import numpy as np
import pytest

import vecfill as vf

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
    n_lines = _killed_after(10**9, model, path, old)
    outcomes = set()
    for moment in np.linspace(1, n_lines - 1, N_KILLS).astype(int):
        _killed_after(int(moment), model, path, old)
        found = path.read_bytes()
        assert found in (old, new)
        outcomes.add(found == new)
    assert outcomes == {True, False}, "kills came both before and after the file was in place"
    model.save(path, overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["m.vecfill"]
    assert "e25" in vf.load(path, check=True).known


def _killed_after(n_lines: int, model: vf.LivingModel, path, old: bytes) -> int:
    """Save in a child that kills itself after so many lines of io; return those it ran."""
    path.write_bytes(old)
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside threads; the child only writes and is killed.
        warnings.simplefilter("ignore", DeprecationWarning)
        reading, writing = os.pipe()
        pid = os.fork()
    if pid == 0:
        n_done = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal n_done
            if f"vecfill{os.sep}io" not in frame.f_code.co_filename:
                return None
            if event == "line":
                n_done += 1
                if n_done == n_lines:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        try:
            sys.settrace(trace)
            model.save(path, overwrite=True)
            sys.settrace(None)
            os.write(writing, str(n_done).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    told = os.read(reading, 100)
    os.close(reading)
    return int(told or 0)
