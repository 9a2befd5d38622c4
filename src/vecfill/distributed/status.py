"""How far a job is, as its work folder tells."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecfill.distributed import plan
from vecfill.errors import InputError


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
    if not (folder / plan.PLAN).is_file():
        raise InputError(
            f"{work} is not the work folder of a job: it has no {plan.PLAN}. Name the folder that "
            "was passed as work=."
        )
    begun = plan.read_json(folder / plan.PLAN)
    stages, written = folder / plan.STAGES, folder / plan.WRITTEN
    told = plan.read_json(stages) if stages.is_file() else {}
    pieces = plan.ledger_of_pieces(folder)
    return Status(
        os.fspath(work),
        plan.is_locked(folder),
        plan.read_json(written)["output"] if written.is_file() else None,
        {role: [file["path"] for file in files] for role, files in begun["plan"]["inputs"].items()},
        begun["layout"],
        {stage: (n_done, n_tasks) for stage, (n_done, n_tasks) in told.items()},
        pieces["n_pieces"],
        pieces["bytes"],
    )
