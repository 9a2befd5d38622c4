"""Stage: solved columns -> Parquet parts of entity, vector, confidence and lower bound, published.

Parts are pieces first. The last step copies them to the output folder, each checked, and the
manifest comes last. The folder is local, or anything that `fsspec` opens. A folder that has a
manifest is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.distributed import pieces, plan
from vecfill.distributed.dataset import filesystem, lists_of
from vecfill.distributed.ingest import names_piece
from vecfill.distributed.layout import Layout
from vecfill.distributed.methods import Chosen, SolvedRows
from vecfill.distributed.pieces import read_array, read_table
from vecfill.distributed.tasks import Runner, Task
from vecfill.errors import InputError
from vecfill.io.atomic import atomic_output
from vecfill.io.provenance import as_json
from vecfill.model.stretch import stretched
from vecfill.requests import Trust
from vecfill.trust.prove.learning import learn_confidence

MANIFEST = "_manifest.json"
"""Readers of Parquet folders pass over names with an underscore."""


@dataclass(frozen=True)
class Emission:
    """What is needed to write the parts."""

    chosen: Chosen
    trust: Trust
    is_void: bool = False
    """Whether hidden rows prove nothing, because the rows hold the answer for known ones."""

    @property
    def layout(self) -> Layout:
        """How the data is cut."""
        return self.chosen.system.layout

    def part(self, block: int) -> Path:
        """Return the part of a block of rows."""
        return self.layout.piece("parts", f"part-{block:06d}.parquet")

    def columns(self, solved: SolvedRows) -> dict[str, pa.Array]:
        """Return vectors of solved rows, with their confidence if hidden rows teach it."""
        chosen = self.chosen
        vectors = written = solved.vectors(chosen.predictor)
        if chosen.stretch != 1.0:
            centre = read_array(chosen.system.sample.piece("centre"))
            written = stretched(vectors, centre, chosen.stretch)
        columns = {"vector": lists_of(written)}
        if chosen.hidden is not None:
            signals, level = solved.signals(vectors), self.trust.level
            confidence = learn_confidence(chosen.hidden, signals, level=level)
            assert confidence is not None
            if self.is_void:
                confidence = confidence.unproved()
            columns["confidence"] = pa.array(confidence.values)
            columns["lower_bound"] = pa.array(confidence.lower_bound)
        return columns


def emit(emission: Emission, block: int, first: int) -> pa.Table:
    """Return the part of a block; `first` is how many unknown rows come before it."""
    layout, system, trust = emission.layout, emission.chosen.system, emission.trust
    span = layout.blocks[block]
    is_known = np.zeros(span.stop - span.start, np.bool_)
    known = system.known.rows()
    low, high = np.searchsorted(known, [span.start, span.stop])
    is_known[known[low:high] - span.start] = True
    unknown = np.flatnonzero(~is_known)
    rows = system.partition.view.rows(block)[unknown]
    part = slice(first, first + unknown.size)
    solved = SolvedRows(system, emission.chosen.trend, rows, part, np.arange(part.start, part.stop))
    names = read_table(names_piece(layout, block)).column("entity").take(pa.array(unknown))
    table = pa.table({"entity": names, **emission.columns(solved)})
    if "confidence" not in table.column_names:
        return table
    limits = {"confidence": trust.min_confidence, "lower_bound": trust.min_bound}
    for name, least in limits.items():
        if least is not None:
            table = table.filter(pc.greater_equal(table[name], least))
    if trust.min_confidence is not None:
        table = table.filter(pc.greater(table["lower_bound"], -1.0))
    return table


def emitted(runner: Runner, emission: Emission) -> list[Path]:
    """Run the stage; return the parts that hold rows."""
    layout = emission.layout
    known = runner.read(read_array, layout.piece("known", "rows"))
    edges = [block.start for block in layout.blocks] + [layout.n_rows]
    n_known = np.diff(np.searchsorted(known, edges))
    n_unknown = np.diff(edges) - n_known
    firsts = np.cumsum(n_unknown) - n_unknown
    blocks = [block for block in range(len(layout.blocks)) if n_unknown[block]]
    runner.run(
        Task("emit", f"part {block}", emit,
             {"emission": emission, "block": block, "first": int(firsts[block])},
             (emission.part(block),)) for block in blocks
    )  # fmt: skip
    return [emission.part(block) for block in blocks]


def refuse_output(out: str, *, overwrite: bool) -> None:
    """Refuse an output that is a file, or that holds something and may not be replaced."""
    if "://" in out:
        files, inner = filesystem(out)
        is_file, is_filled = files.isfile(inner), files.isdir(inner) and bool(files.ls(inner))
    else:
        is_file = Path(out).is_file()
        is_filled = Path(out).is_dir() and any(Path(out).iterdir())
    if is_file:
        raise InputError(f"{out} is a file. Name a folder to write parts to.")
    if is_filled and not overwrite:
        raise InputError(
            f"{out} exists already and is not empty. Allow overwriting it (overwrite=True), or "
            "choose another name."
        )


def publish(out: str, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    """Copy the parts to the output, and write the manifest with their names and hashes."""
    about = []
    for part in parts:
        pieces.check(part)
        about.append({"name": part.name, **(pieces.piece_about(part) or {})})
    manifest = {**manifest, "parts": about}
    if "://" in out:
        _publish_elsewhere(out, parts, manifest)
    else:
        _publish_here(Path(out), parts, manifest)


def _is_stale(name: str, parts: list[Path]) -> bool:
    is_part = name.startswith("part-") and name.endswith(".parquet")
    return is_part and name not in {part.name for part in parts}


def _publish_here(out: Path, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / MANIFEST).unlink(missing_ok=True)
    for part in parts:
        with atomic_output(out / part.name, overwrite=True) as file, part.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 22)
    for path in out.iterdir():
        if _is_stale(path.name, parts):
            path.unlink()
    plan.write_json(out / MANIFEST, manifest)


def _publish_elsewhere(out: str, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    files, inner = filesystem(out)
    inner = inner.rstrip("/")
    try:
        files.makedirs(inner, exist_ok=True)
        if files.exists(f"{inner}/{MANIFEST}"):
            files.rm_file(f"{inner}/{MANIFEST}")
        for part in parts:
            files.put_file(str(part), f"{inner}/{part.name}")
        for name in files.ls(inner, detail=False):
            if _is_stale(Path(name).name, parts):
                files.rm_file(name)
        files.pipe_file(f"{inner}/{MANIFEST}", as_json(manifest).encode("ascii") + b"\n")
    except OSError as error:
        raise InputError(
            f"{out} cannot be written: {error}. Run the same call again when it can: only this "
            "step is left."
        ) from error
