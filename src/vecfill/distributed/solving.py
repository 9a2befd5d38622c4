"""Stage: weights and known columns -> columns of the unknown rows, a slab at a time.

Columns do not depend on each other, so a task takes all weights and a slab of columns, and nothing
is sent between tasks. How to solve is decided once, on a few columns, for all of them: with rows
hidden, which is a little harder than without, if some are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from vecfill.distributed.alignment import Known
from vecfill.distributed.layout import WIDTH, Layout, columns_at_once, solving_bytes
from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import (
    is_whole,
    read_array,
    read_values,
    write_array,
    write_values,
)
from vecfill.distributed.tasks import Runner, Task
from vecfill.distributed.trend import Sample, Trend
from vecfill.distributed.weighing import all_weights, key_name, n_weights
from vecfill.errors import InputError
from vecfill.method.engine import row_blocks
from vecfill.method.propagation import cut_off_rows
from vecfill.method.solve.parts import OrderedParts, ordered_parts
from vecfill.method.solve.system import UnknownSystem
from vecfill.model.predictors.base import TOL
from vecfill.model.space import WeightsKey
from vecfill.trust.prove.signals import N_PROBES
from vecfill.wording import count

ROUGH_TOL = 1e-6
"""Relative residual for what is only measured: hidden rows and signals."""

TASKS_PER_WORKER = 4
"""Tasks that slabs are dealt out to: what many slabs share is built once for each."""

PILOT_COLUMNS = 4
"""Columns on which the way to solve is decided."""

N_PROBE_SLABS = N_PROBES // WIDTH


@dataclass(frozen=True)
class System:
    """The equations of the rows that are not seen, for one setting of the weights."""

    partition: Partition
    sample: Sample
    key: WeightsKey

    def piece(self, *names: object) -> Path:
        """Return the path of a piece of this system."""
        folder = key_name(self.key).replace(".", "_").replace(", ", "-").replace(" ", "_")
        return self.sample.piece(self.partition.view.preparation, "system", folder, *names)

    @property
    def layout(self) -> Layout:
        """How the data is cut."""
        return self.partition.view.layout

    @property
    def known(self) -> Known:
        """The known rows."""
        return self.sample.known

    def parts(self) -> OrderedParts:
        """Return the weights, rows in the order in which they are solved."""
        matrices = []
        for name in ("on_known", "on_unknown"):
            indptr, indices, data = (
                read_array(self.piece(name, part)) for part in ("indptr", "indices", "data")
            )
            shape = tuple(read_values(self.piece(name, "shape.json")))
            matrices.append(csr_array((data, indices, indptr), shape))
        return OrderedParts(matrices[0], matrices[1], read_array(self.piece("order")))

    def signals(self) -> np.ndarray:
        """Return (n_unseen, 3): weight on known rows, largest weight, misfit."""
        return read_array(self.piece("signals"))


_MATRICES = tuple(
    (matrix, part)
    for matrix in ("on_known", "on_unknown")
    for part in ("indptr", "indices", "data", "shape.json")
)


def build(system: System, trend: Trend | None, *, decides: bool) -> None:
    """Write the equations and, if it `decides` that, how they are solved quickest."""
    parts, n_links = _ordered(system)
    for name, matrix in (("on_known", parts.on_known), ("on_unknown", parts.on_unknown)):
        for part in ("indptr", "indices", "data"):
            write_array(system.piece(name, part), getattr(matrix, part))
        write_values(system.piece(name, "shape.json"), [int(each) for each in matrix.shape])
    write_array(system.piece("order"), parts.order)
    about: dict[str, object] = {"n_links": n_links, "n_unseen": int(parts.order.size)}
    if decides:
        columns = _known_columns(system, "values" if trend is None else "residuals", 0, trend)
        equations = UnknownSystem.of_parts(parts)
        about["way"] = equations.quickest_way(columns[:, :PILOT_COLUMNS], tol=TOL)
    write_values(system.piece("way.json"), about)


def _ordered(system: System) -> tuple[OrderedParts, int]:
    """Return the weights of the rows that are not seen, and how many; write what they tell."""
    rows, weights, misfit = all_weights(system.partition, system.key)
    is_seen = np.zeros(system.layout.n_rows, np.bool_)
    is_seen[system.known.rows()] = system.sample.is_seen()
    kept = np.flatnonzero(~is_seen[rows])
    weights, misfit = csr_array(weights[kept]), misfit[kept]
    if system.key.weight_floor == 0.0:
        _refuse_cut_off(weights, rows[kept], is_seen)
    on_known, on_unknown = _split(weights, is_seen)
    largest = np.maximum.reduceat(weights.data, weights.indptr[:-1])
    straight = np.asarray(on_known.sum(axis=1)).ravel()
    write_array(system.piece("signals"), np.column_stack([straight, largest, misfit]))
    return ordered_parts(on_known, on_unknown), int(weights.nnz)


def _split(weights: csr_array, is_seen: np.ndarray) -> tuple[csr_array, csr_array]:
    """Return the columns on seen and on other rows, numbered among themselves."""
    number = np.empty(is_seen.size, np.int32)
    number[is_seen] = np.arange(is_seen.sum())
    number[~is_seen] = np.arange((~is_seen).sum())
    on_seen = is_seen[weights.indices]
    matrices = []
    for chosen, n_columns in ((on_seen, is_seen.sum()), (~on_seen, (~is_seen).sum())):
        ends = np.concatenate([[0], np.cumsum(chosen)])
        indptr = ends[weights.indptr].astype(weights.indptr.dtype)
        indices = number[weights.indices[chosen]]
        shape = (weights.shape[0], int(n_columns))
        matrices.append(csr_array((weights.data[chosen], indices, indptr), shape))
    return matrices[0], matrices[1]


def _refuse_cut_off(weights: csr_array, rows: np.ndarray, is_seen: np.ndarray) -> None:
    counts = np.zeros(is_seen.size, np.int64)
    counts[rows] = np.diff(weights.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    square = csr_array((weights.data, weights.indices, indptr), (is_seen.size, is_seen.size))
    found = cut_off_rows(square, is_seen)
    if found.size:
        raise InputError(
            f"No known row is reached through positive weights from "
            f"{count(found.size, 'unknown row')} (the first is row {found[0]}), so nothing "
            "determines the vectors there. Use weight_floor > 0."
        )


def _known_columns(system: System, kind: str, slab: int, trend: Trend | None) -> np.ndarray:
    """Return a slab of columns of the seen rows: vectors, residuals, directions or random signs."""
    known, found = system.known, []
    is_seen = system.sample.is_seen()
    centre = lengths = np.empty(0)
    if kind == "directions":
        centre, lengths = (read_array(system.sample.piece(name)) for name in ("centre", "lengths"))
        padded = np.zeros(known.n_slabs * WIDTH)
        padded[: known.n_dims] = centre
        centre = padded[slab * WIDTH : (slab + 1) * WIDTH]
    for block, span in enumerate(known.blocks):
        if kind == "probes":
            rng = np.random.default_rng([0, block])
            signs = rng.choice(np.array([-1, 1], np.int8), size=(span.stop - span.start, N_PROBES))
            part = signs[:, slab * WIDTH : (slab + 1) * WIDTH].astype(np.float64)
        else:
            piece = known.layout.piece("known", "slabs", block)
            if kind == "residuals":
                assert trend is not None
                piece = trend.residuals_piece(block)
            part = read_array(piece)[slab]
            if kind == "directions":
                part = (part - centre) / np.maximum(lengths[span], np.finfo(float).tiny)[:, None]
        found.append(part[is_seen[span]])
    columns = np.concatenate(found)
    n_used = WIDTH if kind == "probes" else min(WIDTH, known.n_dims - slab * WIDTH)
    return columns[:, :n_used]


@dataclass(frozen=True)
class Slab:
    """Some columns to solve: vectors, residuals, directions or random signs, to a tolerance."""

    kind: str
    number: int
    tol: float


def solve_slabs(
    system: System,
    leader: System,
    slabs: tuple[Slab, ...],
    trend: Trend | None,
    only: np.ndarray | None,
) -> None:
    """Write slabs of columns of the rows that are not seen, or of `only` some of them.

    The equations are solved in the way that was decided for the `leader`. What solving needs
    besides the columns is built once for all slabs of a task. Of directions and random signs only
    the sums of squares are wanted.
    """
    way = read_values(leader.piece("way.json"))["way"]
    equations = UnknownSystem.of_parts(system.parts())
    places = np.arange(equations.n_unknown)
    for slab in slabs:
        piece = slab_piece(system, slab.kind, slab.number)
        if is_whole(piece):
            continue
        columns = _known_columns(system, slab.kind, slab.number, trend)
        found = np.empty((equations.n_unknown, columns.shape[1]), _dtype(system, slab.kind))
        for some in columns_at_once(columns.shape[1], equations.n_unknown):
            out = found[:, some]
            equations.solve_known(columns[:, some], out, places, tol=slab.tol, way=way, n_jobs=1)
        if only is not None:
            found = found[only]
        if slab.kind in ("directions", "probes"):
            found = np.einsum("ij,ij->i", found, found, dtype=np.float64)
        write_array(piece, found)


def _dtype(system: System, kind: str) -> str:
    return system.known.dtype if kind in ("values", "residuals") else "float64"


def slab_piece(system: System, kind: str, slab: int) -> Path:
    """Return the piece of a slab of solved columns."""
    return system.piece("solved", kind, slab)


def n_slabs(system: System, kind: str) -> int:
    """Return how many slabs there are of a kind."""
    return N_PROBE_SLABS if kind == "probes" else system.known.n_slabs


@dataclass(frozen=True)
class Wanted:
    """Columns to solve: some kinds, each to its tolerance, of all rows or of `only` some."""

    system: System
    leader: System
    """The one that decides how all are solved."""
    trend: Trend | None
    kinds: dict[str, float]
    only: np.ndarray | None

    def building(self) -> Task:
        """Return the task that writes the equations."""
        system = self.system
        names = [system.piece(*names) for names in _MATRICES]
        others = [system.piece(name) for name in ("order", "signals", "way.json")]
        trend = None if "values" in self.kinds else self.trend
        decides = system == self.leader
        return Task(
            f"equations {system.sample.variant}",
            f"{system.partition.view.preparation}, {key_name(system.key)}",
            build,
            {"system": system, "trend": trend, "decides": decides},
            (*names, *others),
        )

    def solving(self, n_tasks: int) -> list[Task]:
        """Return the tasks that solve slabs of columns."""
        system = self.system
        slabs = [
            Slab(kind, number, tol) for kind, tol in self.kinds.items()
            for number in range(n_slabs(system, kind))
        ]  # fmt: skip
        dealt = [slabs[part] for part in row_blocks(len(slabs), max(1, len(slabs) // n_tasks))]
        common = {"system": system, "leader": self.leader}
        common = {**common, "trend": self.trend, "only": self.only}
        return [
            Task(
                f"propagate {system.sample.variant}",
                f"{system.partition.view.preparation}, from {some[0].kind} {some[0].number}",
                solve_slabs,
                {**common, "slabs": tuple(some)},
                tuple(slab_piece(system, slab.kind, slab.number) for slab in some),
            )
            for some in dealt
        ]


def built(runner: Runner, wanted: Sequence[Wanted], memory: int) -> None:
    """Run the first part of the stage: the equations."""
    system = wanted[0].system
    n_links = n_weights(system.partition, system.key)
    itemsize = np.dtype(system.known.dtype).itemsize
    n_bytes = solving_bytes(system.layout.n_rows, n_links, system.known.n_known, itemsize)
    runner.run((each.building() for each in wanted), at_once=max(1, memory // n_bytes))


def solved(runner: Runner, wanted: Sequence[Wanted], memory: int) -> None:
    """Run the second part of the stage: slabs of columns."""
    n_bytes = max(_solving_bytes(runner, each.system) for each in wanted)
    if n_bytes > memory:
        raise InputError(
            f"Solving a slab of columns holds about {n_bytes / 1e9:.1f} GB, more than memory "
            f"allows ({memory / 1e9:.1f} GB for tasks). Use a larger machine, or a larger memory=."
        )
    at_once = memory // n_bytes
    n_tasks = TASKS_PER_WORKER * min(at_once, runner.engine.n_workers)
    runner.run((task for each in wanted for task in each.solving(n_tasks)), at_once=at_once)


def _solving_bytes(runner: Runner, system: System) -> int:
    about = runner.read(read_values, system.piece("way.json"))
    itemsize = np.dtype(system.known.dtype).itemsize
    return solving_bytes(about["n_unseen"], about["n_links"], system.known.n_known, itemsize)
