"""The whole job on datasets: plan, stages in order, parts, manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.distributed import pieces, plan
from vecfill.distributed.alignment import Known, aligned
from vecfill.distributed.dataset import Dataset, files_of, hash_of, open_dataset
from vecfill.distributed.emitting import Emission, emitted, publish, refuse_output
from vecfill.distributed.engines import engine_of
from vecfill.distributed.ingest import converted, ingest_tasks
from vecfill.distributed.layout import (
    PROCESS_BYTES,
    Layout,
    bytes_of,
    rows_in_block,
    rows_in_group,
    task_bytes,
)
from vecfill.distributed.methods import (
    FEWEST_KNOWN,
    Chosen,
    Ground,
    checked_method,
    choose_method,
)
from vecfill.distributed.sampling import in_sample, leaks_in
from vecfill.distributed.tasks import Progress, Runner
from vecfill.errors import InputError, NoSignalError, OptionError
from vecfill.io.provenance import provenance
from vecfill.machine.blas import one_blas_thread
from vecfill.method.search.cells import MOST_CELLS
from vecfill.model.predictors import LatentSemantic
from vecfill.requests import Ask, Method, Reading, Scale, Trust, takes
from vecfill.trust.notes import leak_notes, no_signal
from vecfill.trust.prove.leaks import Leak
from vecfill.wording import count, percent

ONE_PROCESS_ROWS = 200_000
"""Rows up to which `vecfill.impute` in one process is the simpler and quicker way: it takes
15 s there (docs/scale.md)."""

MOST_MENDED = 10
"""Damaged pieces that the driver makes again before it gives up on the disk: a guess."""

USED_READING = ("key", "vector", "ignore", "format", "member")
USED_TRUST = ("level", "min_confidence", "min_bound")


@dataclass(frozen=True)
class DatasetResult:
    """What a job on datasets has written, and how it went."""

    output: str
    parts: tuple[str, ...]
    counts: dict[str, int]
    method: dict[str, Any]
    """The predictor that was used."""
    recall: float
    """Share of the true nearest rows that were found, on a sample; 1 if exact."""
    coverage: float | None
    """Share of hidden rows whose lower bound held; ``None`` if there is no confidence."""
    hidden: dict[str, float] | None
    """Mean measures on hidden known rows under the predictor used."""
    tried: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    leaks: tuple[Leak, ...] = ()
    """What gives known entities away, such as a column made from their vectors."""
    work: dict[str, Any] = field(default_factory=dict)
    """Tasks that were run and found done, and the engine."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**vars(self), "leaks": [leak.to_dict() for leak in self.leaks]}

    def __repr__(self) -> str:
        trust = "" if self.coverage is None else f", bounds held for {percent(self.coverage, 1)}"
        return (
            f"DatasetResult({count(self.counts['imputed'], 'entity')} imputed in {self.output}, "
            f"recall {self.recall:.3f}{trust})"
        )


@takes(Reading, Method, Trust, Scale)
def impute_dataset(
    features: str | os.PathLike[str],
    vectors: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    ask: Ask,
) -> DatasetResult:
    """Impute a dataset that does not fit in memory, or on several machines; resume if interrupted.

    `features` is a Parquet file or a folder of parts: a column of names and columns of numbers (or
    one column of lists). `vectors` is the same with a column of vectors, or an embedding file.
    Names match to the letter. `out` becomes a folder of Parquet parts with the columns entity,
    vector, confidence and lower_bound, one row for each entity without a vector, and a manifest.

    The result does not depend on `engine`, on the number of workers or on `memory`, bit for bit.

    Parameters
    ----------
    features, vectors, out
        Paths, local or anything that fsspec opens, such as ``s3://bucket/items``.
    overwrite
        Replace a result that is there.
    progress
        Called with the stage, tasks done, and tasks in all.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = Path(tempfile.mkdtemp())
    >>> names, rng = [f"item {i}" for i in range(300)], np.random.default_rng(0)
    >>> latent = rng.normal(size=(300, 3))
    >>> columns = {f"x{i}": np.tanh(latent @ rng.normal(size=3)) for i in range(6)}
    >>> pq.write_table(pa.table({"entity": names, **columns}), folder / "items.parquet")
    >>> known = {"entity": names[:200], "vector": latent[:200].tolist()}
    >>> pq.write_table(pa.table(known), folder / "known.parquet")
    >>> result = impute_dataset(folder / "items.parquet", folder / "known.parquet",
    ...                         folder / "imputed", work=folder / "work", method="paper")
    >>> result.counts["imputed"], result.recall
    (100, 1.0)
    >>> pq.read_table(folder / "imputed").column_names
    ['entity', 'vector', 'confidence', 'lower_bound']
    """
    scale = ask.scale
    if scale.work is None:
        raise OptionError(
            "A job beyond memory needs a work folder. Name one with work=; the same folder lets "
            "an interrupted job continue."
        )
    paths = [os.fspath(path) for path in (features, vectors, out, scale.work)]
    checks.number(scale.patience, "patience", low=0, open_low=True)
    if "://" in paths[3]:
        raise InputError(
            f"work={paths[3]!r} is not a local path. Pieces are mapped into memory: name a local "
            "or mounted folder that all workers see. Inputs and output may lie elsewhere."
        )
    _refuse_unused(ask)
    n_bytes = bytes_of(scale.memory)
    job = _Job(paths[0], paths[1], paths[2], paths[3], ask, checked_method(ask.method))
    plan.check_folders(paths[:2], work=job.work, out=job.out)
    refuse_output(job.out, overwrite=overwrite)
    with plan.locked(Path(job.work)), one_blas_thread():
        ledger = plan.Ledger(Path(job.work), progress)
        how = {"workers": scale.workers, "scheduler": scale.scheduler}
        with engine_of(scale.engine, **how) as engine:
            runner = Runner(engine, patience=scale.patience, progress=ledger)
            result = _mending(lambda: job.run(runner, n_bytes))
            ledger.end(job.out)
            return result


def _mending(run: Callable[[], DatasetResult]) -> DatasetResult:
    """Run a job; where the driver itself meets a damaged piece, discard it and go on from there."""
    for _ in range(MOST_MENDED):
        try:
            return run()
        except pieces.DamagedPieceError as error:
            pieces.discard(Path(error.path))
    return run()


def _refuse_unused(ask: Ask) -> None:
    why = "a job on datasets does not know it"
    ask.reading.refuse_unused(USED_READING, ask.reading.asked(), why)
    ask.trust.refuse_unused(USED_TRUST, ask.trust.asked(), why)
    if ask.method.goal == "recommend":
        raise OptionError("goal='recommend' cannot be used here: a job on datasets hears no users.")
    ask.method.refuse_unused((), ("assume",), why)
    if ask.method.candidates != "all":
        raise InputError("candidates= cannot be used here: a job on datasets has its own few.")


def _refuse_limits(trust: Trust, n_known: int) -> None:
    """Refuse limits of confidence where too few rows are known to learn any."""
    limits = ("min_confidence", "min_bound")
    requested = [name for name in limits if getattr(trust, name) is not None]
    if requested and n_known < FEWEST_KNOWN:
        raise InputError(
            f"{requested[0]} needs a confidence, and too few entities are known to learn one "
            f"({n_known}; {FEWEST_KNOWN} are needed). Leave it out, and name another work folder."
        )


@dataclass(frozen=True)
class _Job:
    """One job: what was asked for."""

    features: str
    vectors: str
    out: str
    work: str
    ask: Ask
    predictor: LatentSemantic | None
    """The one that was asked for; ``None`` if one is to be chosen."""

    @property
    def recall(self) -> float | None:
        """The share of nearest neighbours to find."""
        return self.ask.scale.recall

    def run(self, runner: Runner, memory: int) -> DatasetResult:
        """Go through the stages; what is done already is not done again."""
        reading, how, trust = self.ask.reading, self.ask.method, self.ask.trust
        n_workers = runner.engine.n_workers
        features = open_dataset(self.features, key=reading.key, ignore=reading.ignore)
        is_parquet = _is_parquet(self.vectors)
        vectors = open_dataset(self.vectors, vector=reading.vector) if is_parquet else None
        inputs = self._inputs(features, vectors)
        layout = self._layout(features, inputs, memory, n_workers)
        runner.run(ingest_tasks(layout, features, "features"))
        if vectors is None:
            how_read = {"format": reading.format, "member": reading.member}
            vectors = converted(runner, layout, self.vectors, how_read)
        known, notes = self._known(runner, layout, vectors)
        if known.n_known < layout.n_rows:
            _refuse_limits(trust, known.n_known)
        budget = max(memory // 4, memory - PROCESS_BYTES * (n_workers + 1))
        ground = Ground(runner, layout, known, self.recall, budget)
        leaks = leaks_in(runner, known, features)
        is_void = any(leak.lowers_trust for leak in leaks)
        notes += tuple(
            in_sample(note, layout.n_rows) for note in leak_notes(leaks, is_void=is_void)
        )
        chosen = choose_method(ground, how, self.predictor, trust.level)
        if is_void:
            chosen = replace(chosen, coverage=None)
        if chosen.choice is not None and not chosen.choice.has_signal and not how.force:
            raise NoSignalError(no_signal(chosen.choice))
        parts = []
        if known.n_known < layout.n_rows:
            parts = emitted(runner, Emission(chosen, trust, is_void))
        result = self._result(runner, known, chosen, parts, notes)
        result = replace(result, leaks=leaks)
        publish(self.out, parts, self._manifest(result, inputs))
        return result

    def _inputs(self, features: Dataset, vectors: Dataset | None) -> dict[str, Any]:
        theirs = files_of(self.vectors) if vectors is None else [p.path for p in vectors.parts]
        return {
            "features": [hash_of(part.path) for part in features.parts],
            "vectors": [hash_of(path) for path in theirs],
        }

    def _layout(
        self, features: Dataset, inputs: Mapping[str, Any], memory: int, n_workers: int
    ) -> Layout:
        n_rows, itemsize = features.n_rows, np.dtype(features.dtype).itemsize
        if n_rows < 3:
            raise InputError(f"{self.features} has only {n_rows} rows; at least 3 are needed.")
        sizes = {
            **_sizes(features),
            "rows_per_group": rows_in_group(
                n_rows, features.n_columns, itemsize, task_bytes(memory, n_workers), n_workers
            ),
            "n_cells": min(n_rows, int(np.clip(2.0 * np.sqrt(n_rows), 16, MOST_CELLS))),
        }
        options = {
            **{name: getattr(self.ask.reading, name) for name in USED_READING},
            **self.ask.method.to_dict(),
            **{name: getattr(self.ask.trust, name) for name in USED_TRUST},
            "recall": self.recall,
        }
        job = {"inputs": inputs, "options": options, "versions": plan.versions()}
        sizes = plan.adopt_plan(Path(self.work), job, sizes)
        return Layout(Path(self.work), **sizes)

    def _known(
        self, runner: Runner, layout: Layout, vectors: Dataset
    ) -> tuple[Known, tuple[str, ...]]:
        """Ingest the vectors and align them with the entities."""
        of_vectors = replace(layout, **_sizes(vectors))
        runner.run(ingest_tasks(of_vectors, vectors, "vectors"))
        known = aligned(runner, layout, of_vectors)
        notes = []
        if layout.n_rows <= ONE_PROCESS_ROWS:
            notes.append(
                f"{layout.n_rows:,} entities fit in the memory of one process: vecfill.impute does "
                "this without a work folder, and compares more methods."
            )
        return known, tuple(notes)

    def _result(
        self,
        runner: Runner,
        known: Known,
        chosen: Chosen,
        parts: list[Path],
        notes: tuple[str, ...],
    ) -> DatasetResult:
        choice, engine, n_rows = chosen.choice, runner.engine, known.layout.n_rows
        n_unknown = n_rows - known.n_known
        n_written = sum(runner.read(pieces.read_n_rows, part) for part in parts)
        counts = {
            "entities": n_rows,
            "known": known.n_known,
            "unknown": n_unknown,
            "imputed": n_written,
            "abstained": n_unknown - n_written,
        }
        if chosen.hidden is None:
            notes += (
                f"No confidence: too few known entities to hide some of them ({known.n_known:,}).",
            )
        return DatasetResult(
            self.out,
            tuple(part.name for part in parts),
            counts,
            chosen.predictor.to_dict(),
            chosen.recall,
            chosen.coverage,
            None if chosen.hidden is None else chosen.hidden.scores.means(),
            () if choice is None else tuple(
                {**predictor.to_dict(), **means}
                for predictor, means in zip(choice.tried, choice.means, strict=True)
            ),
            notes,
            work={"engine": engine.name, "workers": engine.n_workers, "tasks_run": runner.n_run},
        )  # fmt: skip

    def _manifest(self, result: DatasetResult, inputs: Mapping[str, Any]) -> dict[str, Any]:
        options = self.ask.to_dict("reading", "method", "trust")
        return {
            **provenance(plan.own_version()),
            "options": {**options, "recall": self.recall},
            "inputs": inputs,
            **result.to_dict(),
            "pieces": plan.ledger_of_pieces(Path(self.work)),
        }


def _sizes(dataset: Dataset) -> dict[str, Any]:
    return {
        "n_rows": dataset.n_rows,
        "n_features": dataset.n_columns,
        "dtype": dataset.dtype,
        "rows_per_block": rows_in_block(dataset.n_columns * np.dtype(dataset.dtype).itemsize),
    }


def _is_parquet(path: str) -> bool:
    if "://" in path or Path(path).is_dir():
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Name a file of vectors."
        ) from error
