"""The atomic writer: old or new, whole, whatever happens."""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import InputError
from vecfill.io import append_rows, atomic_output
from vecfill.io import atomic as module
from vecfill.io.atomic import atomic_folder, atomic_outputs, together


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_target_appears_when_the_block_ends(tmp_path):
    with atomic_output(tmp_path / "a") as file:
        file.write(b"new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_a_failing_block_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_output(tmp_path / "a", overwrite=True) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_permissions_are_those_of_the_file_replaced_or_of_the_umask(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    with atomic_output(tmp_path / "a", overwrite=True) as file:
        file.write(b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    with atomic_output(tmp_path / "b") as file:
        file.write(b"new")
    (tmp_path / "c").write_bytes(b"")
    assert (tmp_path / "b").stat().st_mode == (tmp_path / "c").stat().st_mode


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_output(tmp_path / "link", overwrite=True) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


# 60
def test_an_existing_target_is_refused_unless_told(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(InputError, match=r"a exists already. Allow overwriting"):
        write_embedding(Embedding(["x"], [[1.0]]), tmp_path / "a", format="glove")
    assert (tmp_path / "a").read_bytes() == b"old"


# 61
def test_a_missing_folder_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"a.vec: cannot be written: there is no folder .*nowhere"):
        write_embedding(Embedding(["x"], [[1.0]]), tmp_path / "nowhere" / "a.vec")


def test_a_read_only_folder_is_refused(folder_of_nobody):
    folder_of_nobody.chmod(0o500)
    with pytest.raises(InputError, match="no permission"):
        write_embedding(Embedding(["x"], [[1.0]]), folder_of_nobody / "a.vec")


@pytest.mark.parametrize(
    ("number", "words"),
    [(28, "the disk is full"), (13, "no permission in"), (30, "no permission in"), (5, "Write")],
)
def test_what_the_disk_objects_to_names_the_file(tmp_path, monkeypatch, number, words):
    def fails(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    for name in ("a.bin", "a.vec.gz", "a.npz", "a.parquet", "a.safetensors", "a.arrow", "a.csv"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fails)
            with pytest.raises(InputError, match=f"{name}: cannot be written: .*{words}"):
                write_embedding(Embedding(["x"], [[1.0]]), tmp_path / name)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(InputError, match=f"a.bin: cannot be written: .*{words}"):
            write_embedding(Embedding(["x"], [[1.0]]), tmp_path / "a.bin")
    assert names(tmp_path) == []


def test_nothing_is_written_once_a_failed_file_is_closed(tmp_path, monkeypatch):
    late: list[bytes] = []

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    for name in ("a.vec", "a.vec.gz", "a.npz.gz"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(InputError, match="the disk is full") as caught:
                write_embedding(Embedding(["x"], [[1.0]]), tmp_path / name)
            # By now the number of its descriptor may be that of another file.
            patch.setattr(os, "write", lambda _number, data: late.append(bytes(data)) or len(data))
            del caught
            gc.collect()
    assert late == []
    with atomic_output(tmp_path / "a") as file:
        file.write(b"in time")
    with pytest.raises(ValueError, match="after it was closed"):
        file.write(b"late")
    assert (tmp_path / "a").read_bytes() == b"in time"


def test_a_full_disk_leaves_nothing_and_keeps_the_original(tmp_path):
    # A limit on the size of files fails in the middle of a write, as a full disk does.
    known = Embedding(map(str, range(20_000)), np.ones((20_000, 20), dtype=np.float32))
    write_embedding(known, tmp_path / "a.bin")
    code = (
        "import resource, signal, sys; import vecfill, vecfill.io, numpy\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "more = vecfill.Embedding(['new'], numpy.ones((1, 20)))\n"
        "try: vecfill.io.append_rows(sys.argv[1], sys.argv[2], more)\n"
        "except vecfill.errors.InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a.bin", tmp_path / "b.bin"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "b.bin: cannot be written: the disk is full" in done.stdout, done.stderr
    assert names(tmp_path) == ["a.bin"]
    assert len(read_embedding(tmp_path / "a.bin")) == 20_000


# 62
def test_pipes_devices_folders_and_dashes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for target, words in (
        (tmp_path / "pipe", "pipe or a device"),
        (Path("/dev/null"), "pipe or a device"),
        (tmp_path, "is a directory"),
        ("-", "'-' is not a file"),
    ):
        with pytest.raises(InputError, match=words), atomic_output(target, overwrite=True):
            pass


# 64
@pytest.mark.parametrize("is_there", [True, False])
def test_a_writer_killed_at_any_line_leaves_the_old_or_the_new_file_whole(tmp_path, is_there):
    original, target = tmp_path / "original.bin", tmp_path / "target.bin"
    vectors = np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32)
    write_embedding(Embedding([f"w{i}" for i in range(500)], vectors), original)
    untouched = original.read_bytes()
    added = Embedding(["new"], np.ones((1, 20), np.float32))
    append_rows(original, target, added)
    new = target.read_bytes()
    old = b"old" if is_there else None
    n_lines = _killed_after(10**9, original, target, added, old)
    outcomes = set()
    for moment in np.linspace(1, n_lines - 1, 60).astype(int):
        _killed_after(int(moment), original, target, added, old)
        found = target.read_bytes() if target.exists() else None
        assert found in (old, new)
        outcomes.add(found == new)
        assert original.read_bytes() == untouched
    assert outcomes == {True, False}, "kills came both before and after the file was in place"
    # The temporaries that the killed have left are cleaned by whoever writes next.
    append_rows(original, target, added, overwrite=True)
    assert names(tmp_path) == ["original.bin", "target.bin"]


def _killed_after(
    n_lines: int, original: Path, target: Path, added: Embedding, old: bytes | None
) -> int:
    """Append rows in a child that kills itself after so many lines of io; return those it ran."""
    if old is None:
        target.unlink(missing_ok=True)
    else:
        target.write_bytes(old)
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside threads; the child only writes and is killed.
        warnings.simplefilter("ignore", DeprecationWarning)
        reading, writing = os.pipe()
        pid = os.fork()
    if pid == 0:
        n_done = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal n_done
            if "vecfill" not in frame.f_code.co_filename:
                return None
            if event == "line":
                n_done += 1
                if n_done == n_lines:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        try:
            sys.settrace(trace)
            append_rows(original, target, added, overwrite=True)
            sys.settrace(None)
            os.write(writing, str(n_done).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    told = os.read(reading, 100)
    os.close(reading)
    return int(told) if told else n_lines


def test_temporaries_of_living_writers_are_left_alone(tmp_path):
    with atomic_output(tmp_path / "a", overwrite=True) as first:
        first.write(b"first")
        with atomic_output(tmp_path / "a", overwrite=True) as second:
            second.write(b"second")
        assert (tmp_path / "a").read_bytes() == b"second"
    assert (tmp_path / "a").read_bytes() == b"first"


def test_only_temporaries_of_our_own_naming_are_removed(tmp_path):
    stale = tmp_path / ".a.vecfill-1-00.tmp"
    others = [tmp_path / ".b.vecfill-1-00.tmp", tmp_path / ".a.swp", tmp_path / "a.tmp"]
    for path in (stale, *others):
        path.write_bytes(b"")
    with atomic_output(tmp_path / "a") as file:
        file.write(b"new")
    assert names(tmp_path) == sorted(["a", *(path.name for path in others)])


def test_temporary_folders_of_dead_writers_are_removed_and_those_of_living_ones_stay(tmp_path):
    stale, other = tmp_path / ".a.vecfill-1-00.tmp", tmp_path / ".b.vecfill-1-00.tmp"
    for folder in (stale, other):
        folder.mkdir()
        (folder / "half").write_bytes(b"")
    with atomic_folder(tmp_path / "a") as first:
        (first / "file").write_bytes(b"first")
        with pytest.raises(KeyError), atomic_folder(tmp_path / "a") as second:
            assert names(tmp_path) == sorted([first.name, second.name, other.name])
            raise KeyError
    assert names(tmp_path) == [other.name, "a"]
    assert (tmp_path / "a" / "file").read_bytes() == b"first"


# 69
def test_of_two_writers_at_once_one_wins_whole(tmp_path):
    def write(byte: int) -> bool:
        try:
            with atomic_output(tmp_path / "a") as file:
                for _ in range(50):
                    file.write(bytes([byte]) * 10_000)
        except InputError as error:
            return not ("exists already" in str(error) or "someone else meanwhile" in str(error))
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(write, range(4)))
    assert sum(won) == 1
    assert (tmp_path / "a").read_bytes() == bytes([won.index(True)]) * 500_000
    assert names(tmp_path) == ["a"]


def test_a_target_that_appears_meanwhile_is_kept(tmp_path):
    with (
        pytest.raises(InputError, match="created by someone else meanwhile; theirs is kept"),
        atomic_output(tmp_path / "a") as file,
    ):
        file.write(b"ours")
        (tmp_path / "a").write_bytes(b"theirs")
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert names(tmp_path) == ["a"]


def test_file_systems_without_hard_links_or_locks_will_do(tmp_path, monkeypatch):
    def no(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no)
    monkeypatch.setattr(module, "_flock", no)
    monkeypatch.setattr(os, "copy_file_range", no, raising=False)
    write_embedding(Embedding(["x"], [[1.0]]), tmp_path / "a.bin")
    append_rows(tmp_path / "a.bin", tmp_path / "b.bin", Embedding(["y"], [[2.0]]))
    assert read_embedding(tmp_path / "b.bin").words == ("x", "y")
    assert names(tmp_path) == ["a.bin", "b.bin"]


def test_files_that_belong_together_appear_together_or_not_at_all(tmp_path):
    with atomic_outputs([tmp_path / "a", tmp_path / "b"]) as files:
        for file in files:
            file.write(b"new")
        assert not {"a", "b"} & set(names(tmp_path))
    assert names(tmp_path) == ["a", "b"]
    with (
        pytest.raises(InputError, match="created by someone else"),
        atomic_outputs([tmp_path / "c", tmp_path / "d"]),
    ):
        (tmp_path / "d").write_bytes(b"theirs")
    assert names(tmp_path) == ["a", "b", "d"]
    assert (tmp_path / "d").read_bytes() == b"theirs"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have Ctrl-C raise as usual, also where the test run itself was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_between_two_names_waits_for_the_second(tmp_path, monkeypatch):
    inner = module._publish

    def interrupted(*args, **options):
        inner(*args, **options)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "_publish", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_outputs([tmp_path / "a", tmp_path / "b"]):
        pass
    assert names(tmp_path) == ["a", "b"]


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def recorded(descriptor):
        mode = os.fstat(descriptor).st_mode
        synced.append((stat.S_ISDIR(mode), (tmp_path / "new.txt").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    with atomic_output(tmp_path / "new.txt") as file:
        file.write(b"x")
    # The file's bytes before it has its name; the folder after.
    assert synced == [(False, False), (True, True)]


def test_results_of_several_writers_take_their_names_together(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    with together():
        with atomic_output(tmp_path / "a") as file:
            file.write(b"new")
        with atomic_output(tmp_path / "old", overwrite=True) as file:
            file.write(b"new")
        with atomic_output(tmp_path / "cache", waits=False):
            pass
        assert (tmp_path / "old").read_bytes() == b"old"
        assert "cache" in names(tmp_path)
        assert "a" not in names(tmp_path)
    assert names(tmp_path) == ["a", "cache", "old"]
    assert (tmp_path / "old").read_bytes() == b"new"


def test_a_later_writer_that_fails_takes_the_earlier_ones_with_it(tmp_path):
    with pytest.raises(ZeroDivisionError), together():
        with atomic_output(tmp_path / "a"):
            pass
        with atomic_output(tmp_path / "b"):
            raise ZeroDivisionError
    assert names(tmp_path) == []
    with atomic_output(tmp_path / "c"):
        pass
    assert names(tmp_path) == ["c"], "the group has ended"


def test_a_name_that_cannot_be_taken_gives_back_new_ones_and_keeps_replaced_ones(
    tmp_path, monkeypatch
):
    (tmp_path / "old").write_bytes(b"old")
    inner = module._publish

    def failing(temporary, target, **options):
        if target.name == "last":
            raise OSError(errno.EIO, "broken")
        inner(temporary, target, **options)

    monkeypatch.setattr(module, "_publish", failing)
    paths = [tmp_path / name for name in ("new", "old", "last")]
    with (
        pytest.raises(InputError, match="last: cannot be written"),
        atomic_outputs(paths, overwrite=True) as files,
    ):
        for file in files:
            file.write(b"new")
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == b"new"
