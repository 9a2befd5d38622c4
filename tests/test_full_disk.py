"""Disks that are really full: each result is old or new, whole, and the message says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shell import World
from tests.test_faults import contents, same
from tests.test_signals import ADD, TOKENS, write_later

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("mount"), reason="only root may mount a small disk"
    ),
]

ROOMS = (0, 4, 8, 16, 32, 64, 128, 256)
"""Kilobytes that are left on the disk."""


@contextmanager
def small_disk(place: Path, size: str = "64M") -> Iterator[Path]:
    """Mount a disk in memory at a folder."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a disk in memory")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def room_of(disk: Path, kilobytes: int) -> Iterator[None]:
    """Fill a disk, but for so much."""
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free - (kilobytes << 10)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free, 1))
    try:
        yield
    finally:
        ballast.unlink()


@pytest.mark.parametrize(
    ("words", "results"),
    [(ADD, ("new.vec", "new.model")), (TOKENS, ("new", "new.html"))],
    ids=["add", "tokens"],
)
def test_a_command_on_a_full_disk_leaves_whole_results_or_none(words, results, tmp_path, capsys):
    statuses = []
    with small_disk(tmp_path / "disk") as disk:
        world = World(disk, capsys)
        write_later(world)
        inputs = contents(world)
        assert world.run(*words)[0] == 0
        expected = {name: data for name, data in contents(world).items() if name not in inputs}
        for room in ROOMS:
            _remove(disk, results)
            with room_of(disk, room):
                status, _, err = world.run(*words)
                statuses.append(status)
            after = contents(world)
            assert {name: after.pop(name) for name in inputs} == inputs
            if status == 0:
                assert after.keys() == expected.keys()
            else:
                assert "disk is full" in err or "No space left" in err
            for name, data in after.items():
                assert same(name, data, expected[name]), (name, room)
        _remove(disk, results)
        assert world.run(*words)[0] == 0
        assert contents(world).keys() == {*inputs, *expected}
    assert set(statuses) == {0, 2}


def _remove(disk: Path, results: tuple[str, ...]) -> None:
    for path in disk.iterdir():
        if path.name.startswith(results):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.extra
@pytest.mark.parametrize("name", ["duckdb", "lancedb", "qdrant"])
def test_a_store_on_a_full_disk_has_old_or_new_rows(name, tmp_path):
    pytest.importorskip({"qdrant": "qdrant_client"}.get(name, name))
    import vecfill as vf
    from tests.exchange.test_databases import FILLED
    from tests.exchange.test_store_kills import ONE, STORES, n_new
    from tests.exchange.world import items

    make, fill, read = STORES[name]
    expected, n_failed = vf.impute(items(), **ONE), 0
    with small_disk(tmp_path / "disk") as disk:
        where = str(disk / "store")
        for room in ROOMS:
            shutil.rmtree(where, ignore_errors=True)
            make(where)
            with room_of(disk, room):
                try:
                    fill(where)
                except vf.InputError:
                    n_failed += 1
            n_vectors, _ = n_new(read(where), expected)
            assert n_vectors in (0, len(FILLED)) or name == "qdrant"
            fill(where)
            assert n_new(read(where), expected) == (len(FILLED), len(FILLED))
    assert n_failed
