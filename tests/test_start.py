"""What is loaded when, and what is compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from vecfill.machine.compiled import compiled

SLOW_TO_LOAD = ("numba", "pandas", "scipy", "sklearn")


@compiled
def half(value):
    return value / 2


@compiled
def quarters(values):
    total = 0.0
    for value in values:
        total += half(half(value))
    return total


def test_compiled_code_calls_compiled_code_that_nobody_called_before():
    assert quarters(np.array([1.0, 3.0])) == 1.0


def test_threads_that_call_at_once_share_one_dispatcher():
    @compiled
    def one(value):
        return value + 1

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == list(range(1, 9))
    assert one._dispatcher is not None
    assert len(one._dispatcher.signatures) == 1


def test_matching_the_sample_loads_nothing_slow():
    code = f"""
    import contextlib, io, sys
    from vecfill.cli import main
    from vecfill.sample import CITIES, VECTORS
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["match", str(VECTORS), str(CITIES)]) == 0
    print([name for name in {SLOW_TO_LOAD!r} if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.fixture
def open_folder():
    """A folder that every account may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name == "nt", reason="permissions of folders are those of POSIX")
def test_a_package_that_cannot_be_written_is_cached_in_the_folder_of_the_user(open_folder):
    package, home = open_folder / "package", open_folder / "home"
    package.mkdir()
    home.mkdir()
    home.chmod(0o777)
    work = "@compiled\ndef twice(value):\n    return 2 * value\n"
    (package / "work.py").write_text("from vecfill.machine.compiled import compiled\n\n\n" + work)
    package.chmod(0o555)
    # Root may write anywhere, and would not need another folder. All that is needed is loaded
    # before, because the files of Python may belong to root alone.
    code = f"""
    import os, sys
    from vecfill.machine.compiled import compiled
    compiled(lambda value: 2 * value)(4)
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    sys.path.insert(0, {str(package)!r})
    import work
    print(work.twice(4))
    """
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    package.chmod(0o755)
    assert done.stdout.strip() == "8", done.stderr
    assert list(home.rglob("*.nbi")), "nothing was cached"
    assert not list(package.rglob("*.nbi"))
