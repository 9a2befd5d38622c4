"""The disk fails at the k-th call, for every k until the job passes: nothing lost, nothing torn."""

from __future__ import annotations

import json
import shutil
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vecfill.run
from tests.exchange.model_folders import INPUT, N_DIMS, stored, word_piece, write_folder
from tests.exchange.model_folders import write_safetensors as write_weights
from tests.io.faults import faulty_disk
from tests.shell import N_KNOWN, World

IMPUTE = ("impute", "base.vec", "towns.csv", "-o", "new.vec", "--method", "paper")
ADD = ("add", "towns.model", "more.csv", "-o", "new.vec")
FILL = ("impute", "--vector", "embedding", "--key", "name", "--method", "paper")
TOKENS = ("tokens", "model", "terms.txt", "--source", "towns.csv", "-o", "new")
# A command that writes something is one line here.
JOBS = {
    "impute": IMPUTE,
    "impute with a page": (*IMPUTE, "--report", "new.html"),
    "impute with a saved model": (*IMPUTE, "--report", "new.html", "--save", "new.model"),
    "impute from gzip": ("impute", "base.vec.gz", *IMPUTE[2:]),
    "replace": (*IMPUTE, "--exclude", "town3", "--replace", "excluded"),
    "convert to text": ("convert", "base.npz", "new.vec"),
    "convert to npz": ("convert", "base.vec", "new.npz"),
    "convert to parquet": ("convert", "base.vec", "new.parquet"),
    "convert to gzip": ("convert", "base.npz", "new.vec.gz"),
    "convert to Arrow": ("convert", "base.vec", "new.arrow"),
    "convert to safetensors": ("convert", "base.vec", "new.safetensors"),
    "add": ADD,
    "add to a file": (*ADD, "--append-to", "base.vec"),
    "add and keep": (*ADD, "--save", "new.model"),
    "match": ("match", "base.vec", "towns.csv", "-o", "new.csv"),
    "fill a Parquet table": (*FILL, "items.parquet", "-o", "new.parquet"),
    "fill a CSV table, with a page": (*FILL, "items.csv", "-o", "new.csv", "--report", "new.html"),
    "fill a table, with a saved model": (
        *FILL,
        "items.csv",
        "-o",
        "new.csv",
        "--save",
        "new.model",
    ),
    "tokens": TOKENS,
    "tokens with a page": (*TOKENS, "--report", "new.html"),
}
FOLDERS = ("tokens", "tokens with a page")
"""Jobs that write a new folder. They cannot be told to replace one, and on a disk that fails from
then on nothing can empty a temporary folder; the next run removes it."""
WITH_MODELS = [job for job in JOBS if "model" in job or "add" in job]
"""Jobs that take longer, and are tried in two of four ways."""
MOST_CALLS = 300


@pytest.fixture
def world(tmp_path, capsys, monkeypatch):
    made = World(tmp_path, capsys)
    assert made.run("convert", "base.vec", "base.npz")[0] == 0
    assert made.run("convert", "base.vec", "base.vec.gz")[0] == 0
    assert made.run(*IMPUTE, "--no-manifest", "--save", "towns.model")[0] == 0
    (tmp_path / "new.vec").unlink()
    made.write_table("more.csv", ["new1", "new2"], made.places[:2] + 0.1)
    _write_items(made)
    write_model(made)
    # The disk is what is tested; the same numbers need not be computed a hundred times.
    once = _once(vecfill.run.impute_aligned)
    for module in (vecfill.run,):
        monkeypatch.setattr(module, "impute_aligned", once)
    return made


def _write_items(made: World) -> None:
    """Write a table of towns with a column of vectors, null where there is none."""
    rows = [list(map(float, row)) for row in made.base.vectors[2:]]
    vectors = [*rows, *[None] * (len(made.towns) - N_KNOWN)]
    places = {name: made.places[:, column] for column, name in enumerate("xyz")}
    table = pa.table({"name": made.towns, **places, "embedding": vectors})
    pq.write_table(table, made.folder / "items.parquet")
    cells = [str(each).replace("None", "") for each in vectors]
    made.write(
        "items.csv",
        "name,x,y,z,embedding\n"
        + "".join(
            f'{name},{x:.4f},{y:.4f},{z:.4f},"{cell}"\n'
            for name, (x, y, z), cell in zip(made.towns, made.places, cells, strict=True)
        ),
    )


def write_model(made: World) -> None:
    """Write the folder of a language model whose whole words are the known towns."""
    spec = word_piece()
    tokens = ["[PAD]", "[UNK]", *made.towns[:N_KNOWN]]
    spec["model"]["vocab"] = {token: row for row, token in enumerate(tokens)}
    folder = write_folder(made.folder / "model", spec)
    table = np.vstack([np.zeros((2, N_DIMS)), made.base.vectors[2:, :N_DIMS]])
    write_weights(folder / "model.safetensors", {INPUT: stored(table, "F32")})
    made.write("terms.txt", f"{made.towns[-1]}\n{made.towns[-2]}\n")


def _once(inner: Any) -> Any:
    found = cache(list)()

    def outer(*args: Any, **options: Any) -> Any:
        if not found:
            found.append(inner(*args, **options))
        return found[0]

    found.clear()
    return outer


def contents(world: World) -> dict[str, bytes]:
    """Return every file by its path; an empty folder counts as one, and holds nothing."""
    paths = [path for path in world.folder.rglob("*") if path.is_file() or not any(path.iterdir())]
    names = {path.relative_to(world.folder).as_posix(): path for path in paths}
    return {name: path.read_bytes() if path.is_file() else b"" for name, path in names.items()}


def remove(world: World, names: Any) -> None:
    for name in names:
        path = world.folder / name
        path.unlink(missing_ok=True)
        if path.parent != world.folder:
            shutil.rmtree(path.parent, ignore_errors=True)


def same(name: str, found: bytes, expected: bytes) -> bool:
    """Tell whether two results are the same but for the time at which they were made."""
    if name.endswith(".json"):
        return json.loads(found).keys() == json.loads(expected).keys()
    has_time = name.endswith((".html", ".model"))
    return found == expected or (has_time and len(found) == len(expected))


CASES = [
    pytest.param(job, is_there, lasts, id=f"{job}, {'over old results' if is_there else 'new'}, "
                 f"{'from then on' if lasts else 'once'}")
    for job in JOBS for is_there in (False, True) for lasts in (False, True)
    if job not in FOLDERS or not (is_there or lasts)
    if job not in WITH_MODELS or is_there == lasts
]  # fmt: skip


@pytest.mark.parametrize(("job", "is_there", "lasts"), CASES)
def test_a_fault_at_any_call_leaves_old_or_new_results_whole(world, job, is_there, lasts):
    words = JOBS[job] + (("--overwrite",) if is_there else ())
    before = contents(world)
    assert world.run(*words)[0] == 0
    expected = {name: data for name, data in contents(world).items() if name not in before}
    old = dict.fromkeys(expected, b"old") if is_there else {}
    n_refused = 0
    for fail_at in range(1, MOST_CALLS):
        remove(world, expected)
        for name, data in old.items():
            (world.folder / name).write_bytes(data)
        with faulty_disk(world.folder, fail_at, lasts=lasts) as disk:
            status, _, err = world.run(*words)
        found = contents(world)
        assert {name: found.pop(name) for name in before} == before, "inputs are never touched"
        assert not [name for name in found if name not in expected], (fail_at, disk.failed)
        is_new = {name: same(name, data, expected[name]) for name, data in found.items()
                  if data != b"old"}  # fmt: skip
        assert all(is_new.values()), (fail_at, disk.failed, "a result is torn")
        if not is_there:
            assert len(found) in (0, len(expected)), (fail_at, disk.failed)
        if status == 0:
            assert is_new.keys() == expected.keys(), (fail_at, disk.failed)
        else:
            n_refused += 1
            assert status == 2, (fail_at, disk.failed, err)
            assert "vecfill: error: " in err, (fail_at, disk.failed)
            assert "Traceback" not in err
        if disk.failed is None:
            break
    assert disk.failed is None, "the job passes once no call fails"
    assert n_refused > 3
