"""The work folder: what the job is, who works on it, and how far it is.

``plan.json`` holds the hashes of the inputs, the options and the versions. A folder serves one
plan: another is refused, and the same one finds what is done. A lock keeps a second driver out.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os.path import realpath
from pathlib import Path
from typing import Any

from vecfill.distributed.pieces import piece_about
from vecfill.distributed.tasks import Progress
from vecfill.errors import InputError
from vecfill.io.atomic import atomic_output
from vecfill.io.provenance import as_json, provenance

if sys.platform != "win32":
    import fcntl

    def _flock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
else:

    def _flock(descriptor: int) -> None:
        """Do nothing: there are no such locks there."""


PLAN, LOCK, STAGES, WRITTEN = "plan.json", "lock", "stages.json", "written.json"

SHAPES: Mapping[str, Any] = {
    PLAN: {
        "plan": {"inputs": {str: [{"path": str}]}, "options": {str: object}},
        "layout": {"n_rows": int, "n_features": int, "rows_per_group": int},
    },
    STAGES: {str: (int, int)},
    WRITTEN: {"output": str},
}
"""What each file must hold for us to read it: other programs and full disks write there too."""


def check_folders(inputs: Sequence[str], *, work: str, out: str) -> None:
    """Refuse to write into an input, or results into the work folder, which may be removed."""
    for place, sources in ((work, inputs), (out, (*inputs, work))):
        for source in sources:
            # What is not on this machine is not written to.
            if "://" not in source and Path(realpath(place)).is_relative_to(realpath(source)):
                raise InputError(
                    f"{place} is {source} or lies in it, and that is an input or the work folder. "
                    "Choose another folder."
                )


def own_version() -> str:
    """Return the version of this library; it is loaded by now, and knows us."""
    return import_module("vecfill").__version__


def versions() -> dict[str, Any]:
    """Return the versions that may decide bits."""
    software = provenance(own_version())
    return {"vecfill": software["vecfill"], "python": software["python"], **software["packages"]}


def write_json(path: Path, values: Any) -> None:
    """Write plain values as JSON, atomically."""
    with atomic_output(path, overwrite=True) as file:
        file.write(as_json(values).encode("ascii") + b"\n")


def read_json(path: Path) -> Any:
    """Return what a file of the work folder holds; refuse a damaged one."""
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({error}). Remove the work folder and start again."
        ) from error
    if not fits(values, SHAPES[path.name]):
        raise _damaged(path)
    return values


def _damaged(path: Path) -> InputError:
    return InputError(
        f"{path} is damaged: it is not what a job writes there. Remove the work folder and start "
        "again."
    )


def fits(values: Any, shape: Any) -> bool:
    """Tell whether plain values have a shape: a type, lists of one, or fields with their shapes.

    Examples
    --------
    >>> fits({"a": [1, 2]}, {"a": [int]}), fits({"a": [1, "b"]}, {str: [int]})
    (True, False)
    >>> fits([3], (int, int)), fits([3, 4], (int, int))
    (False, True)
    """
    if isinstance(shape, dict):
        if not isinstance(values, dict):
            return False
        fields = dict.fromkeys(values, shape[str]) if str in shape else shape
        return all(name in values and fits(values[name], fields[name]) for name in fields)
    if isinstance(shape, list):
        return isinstance(values, list) and all(fits(value, shape[0]) for value in values)
    if isinstance(shape, tuple):
        return (
            isinstance(values, list) and len(values) == len(shape) and all(map(fits, values, shape))
        )
    return isinstance(values, shape) and not (shape is int and isinstance(values, bool))


@contextlib.contextmanager
def locked(work: Path) -> Iterator[None]:
    """Keep a second driver out of the work folder while the block runs."""
    path = work / LOCK
    try:
        work.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise InputError(
            f"{work} cannot be used as a work folder: {error.strerror}. Name another one."
        ) from error
    try:
        if not _try_lock(descriptor):
            raise InputError(
                f"{work} is in use by another run ({_holder(path)}). Wait until it ends, or use "
                "another work folder."
            )
        os.truncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        _flock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _holder(path: Path) -> str:
    try:
        return path.read_text() or "unknown"
    except OSError:
        return "unknown"


def is_locked(work: Path) -> bool:
    """Tell whether a driver works in a folder."""
    try:
        descriptor = os.open(work / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def adopt_plan(work: Path, plan: Mapping[str, Any], layout: Mapping[str, Any]) -> dict[str, Any]:
    """Write the plan of a new job, or check that a job begun here is the same one.

    Returns the layout: a job that is resumed keeps the groups that it began with, which depend on
    memory and workers. The other sizes follow from the inputs.
    """
    path = work / PLAN
    plan = json.loads(as_json(plan))
    if not path.exists():
        strangers = [path.name for path in work.iterdir() if path.name != LOCK]
        if strangers:
            raise InputError(
                f"{work} holds other files ({strangers[0]}) and no plan. Name an empty or new "
                "folder as the work folder."
            )
        write_json(path, {"plan": plan, "layout": dict(layout)})
        return dict(layout)
    recorded = read_json(path)
    for part, values in plan.items():
        if (before := recorded["plan"].get(part)) != values:
            raise InputError(
                f"{work} holds a job with {_difference(part, before, values)}. Use another work "
                "folder for this one, or remove that folder."
            )
    layout = {**layout, "rows_per_group": recorded["layout"]["rows_per_group"]}
    if recorded["layout"] != layout or layout["rows_per_group"] < 1:
        raise _damaged(path)
    return layout


def _difference(part: str, before: Any, now: Mapping[str, Any]) -> str:
    if part != "inputs" and isinstance(before, dict):
        for name, value in now.items():
            if before.get(name) != value:
                if part == "versions":
                    return f"{name} {before.get(name)}, not {value}"
                return f"{name}={before.get(name)!r}, not {value!r}"
    return f"other {part}"


class Ledger:
    """Which stages a job has gone through, and how far the present one is."""

    def __init__(self, work: Path, progress: Progress | None) -> None:
        self.path = work / STAGES
        self.progress = progress
        self.stages: dict[str, list[int]] = {}
        (work / WRITTEN).unlink(missing_ok=True)

    def end(self, output: str) -> None:
        """Note that the job is complete, and where its result is."""
        write_json(self.path.with_name(WRITTEN), {"output": output})

    def __call__(self, stage: str, n_done: int, n_tasks: int) -> None:
        """Note how far a stage is; tell who wants to know."""
        before = self.stages.get(stage)
        self.stages[stage] = [n_done, n_tasks]
        # Rewriting it for each of a thousand small tasks would cost more than the tasks.
        if before is None or n_done == n_tasks or n_done % max(1, n_tasks // 50) == 0:
            write_json(self.path, self.stages)
        if self.progress is not None:
            self.progress(stage, n_done, n_tasks)


def ledger_of_pieces(work: Path) -> dict[str, Any]:
    """Return how many pieces there are, their bytes, and the hash of each."""
    ledger = {}
    root = work / "pieces"
    for path in sorted(root.rglob("*.sha256")):
        piece = path.with_name(path.name.removesuffix(".sha256"))
        about = piece_about(piece)
        if about is not None:
            ledger[piece.relative_to(root).as_posix()] = about
    return {
        "n_pieces": len(ledger),
        "bytes": sum(about["bytes"] for about in ledger.values()),
        "sha256": {name: about["sha256"] for name, about in ledger.items()},
    }


@dataclass(frozen=True)
class Status:
    """What is done of a job."""

    work: str
    is_running: bool
    """Whether a driver works in the folder now."""
    output: str | None
    """Where the result was written; ``None`` until the job is complete."""
    inputs: dict[str, list[str]]
    layout: dict[str, Any]
    stages: dict[str, tuple[int, int]]
    """Tasks done, and tasks in all, of each stage begun, in order."""
    n_pieces: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return dict(vars(self))

    def __str__(self) -> str:
        state = "running" if self.is_running else "stopped; run the same command again to resume"
        if self.output is not None:
            state = f"complete, written to {self.output}"
        files = ", ".join(f"{len(paths)} of {role}" for role, paths in self.inputs.items())
        lines = [
            f"Work       {self.work} ({state})",
            f"Entities   {self.layout['n_rows']:,} of {self.layout['n_features']:,} features",
            f"Files      {files}",
            f"Pieces     {self.n_pieces:,}, {self.bytes / 1e9:.2f} GB",
        ]
        width = max((len(stage) for stage in self.stages), default=0)
        lines += [
            f"  {stage:<{width}}  {n_done:,} of {n_tasks:,}"
            + ("" if n_done < n_tasks else "  done")
            for stage, (n_done, n_tasks) in self.stages.items()
        ]
        return "\n".join(lines)


def job_status(work: str | os.PathLike[str]) -> Status:
    """Return how far the job of a work folder is.

    Examples
    --------
    >>> job_status("/no/such/folder")
    Traceback (most recent call last):
    vecfill.errors.InputError: /no/such/folder is not the work folder of a job: ...
    """
    folder = Path(work)
    if not (folder / PLAN).is_file():
        raise InputError(
            f"{work} is not the work folder of a job: it has no {PLAN}. Name the folder that "
            "was passed as work=."
        )
    recorded = read_json(folder / PLAN)
    inputs = recorded["plan"]["inputs"]
    stages, written = folder / STAGES, folder / WRITTEN
    progress = read_json(stages) if stages.is_file() else {}
    pieces = ledger_of_pieces(folder)
    return Status(
        os.fspath(work),
        is_locked(folder),
        read_json(written)["output"] if written.is_file() else None,
        {role: [file["path"] for file in files] for role, files in inputs.items()},
        recorded["layout"],
        {stage: (n_done, n_tasks) for stage, (n_done, n_tasks) in progress.items()},
        pieces["n_pieces"],
        pieces["bytes"],
    )
