"""The options of what a job writes beside vectors, and of how it runs: as in `groups`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vecfill.requests.option import Request, option


@dataclass(frozen=True, kw_only=True)
class Replacement(Request):
    """Which rows that a file has are replaced by imputed ones; by default none.

    Examples
    --------
    >>> Replacement(replace="suspicious").asked()
    ['replace']
    """

    panel: ClassVar[str] = "Output"

    replace: Any = option(
        None, "Replace existing rows: those of entities that are treated as unknown (excluded), "
        "contradicted by their neighbours (suspicious), or named in a file.",
        metavar="excluded|suspicious|FILE",
    )  # fmt: skip
    blend: float | None = option(
        None, "Replace a row by count/(count+K) of the old and K/(count+K) of the new vector. "
        "Needs counts=.", type=float, low=0.0, metavar="K",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.replace, Iterable) and not isinstance(self.replace, str):
            object.__setattr__(self, "replace", tuple(self.replace))


@dataclass(frozen=True, kw_only=True)
class Scale(Request):
    """How to run a job on datasets that do not fit in memory, or on several machines.

    Examples
    --------
    >>> Scale(engine="processes", work="work").asked()
    ['engine', 'work']
    """

    panel: ClassVar[str] = "Beyond memory"

    engine: Any = option(
        None, "Run the job in pieces: in this process, in a pool of processes, or on Dask. "
        "EMBEDDING and TABLE are Parquet files or folders of parts, OUTPUT is a "
        "folder. Needs work=.",
        choices=("serial", "processes", "dask"),
    )  # fmt: skip
    work: Any = option(
        None, "Work folder that all workers can see. The same command with the same folder "
        "continues where an earlier run stopped.", metavar="DIR",
    )  # fmt: skip
    workers: int | None = option(
        None, "Number of processes. By default all cores; the result is the same.",
        type=int, low=1, metavar="N",
    )  # fmt: skip
    scheduler: str | None = option(
        None, "Address of a Dask scheduler. By default a local cluster is started.",
        metavar="ADDRESS",
    )  # fmt: skip
    memory: Any = option(
        "4GB", "Memory limit for all processes of the job on one machine.", metavar="SIZE"
    )  # fmt: skip
    recall: float | None = option(
        None, "Share of the true nearest neighbours to find; 1 compares all pairs. By default 1 if "
        "that is fast, otherwise 0.95.", type=float, low=0.1, high=1.0, metavar="R",
    )  # fmt: skip
    patience: float = option(
        3600.0, "Stop if no task finishes for this many seconds, and name the task that hangs.",
        type=float, low=0.0, metavar="SECONDS",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Output(Request):
    """What a job on files writes besides vectors, and how.

    Examples
    --------
    >>> Output(report="page.html").asked()
    ['report']
    """

    panel: ClassVar[str] = "Output"

    confidence: str | None = option(
        None,
        "With vector=: name of a column to add for the confidence of new vectors. If the table "
        "has it, nothing is learnt from the vectors that an earlier run imputed.",
        metavar="NAME",
    )  # fmt: skip
    report: Any = option(None, "Write an HTML report about the result.", type=Path)
    save: Any = option(
        None, "Also save the model, so that vecfill add can add entities later.", type=Path,
        metavar="MODEL",
    )  # fmt: skip
    evaluate: bool = option(
        False,
        "Compare the chosen method with others on hidden known entities, and add this to the "
        "report. Takes several times as long. The vectors stay the same.", type=bool, panel="Trust",
    )  # fmt: skip
    manifest: bool = option(
        True, "Write OUTPUT.manifest.json, a record of versions, options and input files.",
        type=bool,
    )  # fmt: skip
    overwrite: bool = option(
        False, "Replace existing files. Without this option, the command stops if a file exists.",
        type=bool,
    )  # fmt: skip
