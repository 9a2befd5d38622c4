"""Stage: solved columns -> Parquet parts of entity, vector, confidence and lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.distributed.ingest import names_piece
from vecfill.distributed.judging import put_together, seen_of
from vecfill.distributed.layout import Layout
from vecfill.distributed.pieces import read_array, read_table, write_table
from vecfill.distributed.solving import System
from vecfill.distributed.tasks import Runner, Task
from vecfill.distributed.trend import Trend
from vecfill.method.scaling import in_range_of
from vecfill.model.predictors import LatentSemantic
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import learn_confidence


@dataclass(frozen=True)
class Emission:
    """What is needed to write the parts."""

    system: System
    predictor: LatentSemantic
    trend: Trend | None
    hidden: Hidden | None
    """Hidden rows from which confidence is learnt; ``None``: none is told."""
    level: float
    min_confidence: float | None = None
    min_bound: float | None = None
    stretch: float = 1.0
    """By what steps from the mean of the known vectors are multiplied."""

    def stretched(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors as they are written."""
        if self.stretch == 1.0:
            return vectors
        centre = read_array(self.system.sample.piece("centre"))
        return in_range_of(vectors.dtype, centre + self.stretch * (vectors - centre))

    @property
    def layout(self) -> Layout:
        """How the data is cut."""
        return self.system.layout

    def part(self, block: int) -> Path:
        """Return the part of a block of rows."""
        return self.layout.piece("parts", f"part-{block:06d}.parquet")


def emit(emission: Emission, block: int, first: int) -> None:
    """Write the part of a block; `first` is how many unknown rows come before it."""
    layout, system = emission.layout, emission.system
    span = layout.blocks[block]
    is_known = np.zeros(span.stop - span.start, np.bool_)
    known = system.known.rows()
    low, high = np.searchsorted(known, [span.start, span.stop])
    is_known[known[low:high] - span.start] = True
    places = np.flatnonzero(~is_known)
    rows = system.partition.view.rows(block)[places]
    part = slice(first, first + places.size)
    vectors = put_together(emission.predictor, system, emission.trend, rows, part)
    names = read_table(names_piece(layout, block)).column("entity").take(pa.array(places))
    columns = {"entity": names, "vector": _lists(emission.stretched(vectors))}
    if emission.hidden is not None:
        at = np.arange(part.start, part.stop)
        signals = seen_of(system, emission.trend, vectors, rows, part, at)
        trust = learn_confidence(emission.hidden, signals, level=emission.level)
        assert trust is not None
        columns["confidence"] = pa.array(trust.values)
        columns["lower_bound"] = pa.array(trust.lower_bound)
    table = pa.table(columns)
    if emission.min_confidence is not None:
        table = table.filter(pc.greater_equal(table["confidence"], emission.min_confidence))
    if emission.min_bound is not None:
        table = table.filter(pc.greater_equal(table["lower_bound"], emission.min_bound))
    write_table(emission.part(block), table)


def _lists(vectors: np.ndarray) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


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
