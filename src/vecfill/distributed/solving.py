"""Stage: weights and known columns -> columns of the unknown rows, a slab at a time.

Columns do not depend on each other, so a task takes all weights and a slab of columns, and nothing
is sent between tasks. How to solve is decided once, on a few columns, for all of them: with rows
hidden, which is a little harder than without, if some are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill.distributed.alignment import Known, Sample
from vecfill.distributed.layout import WIDTH, Layout, columns_at_once, solving_bytes
from vecfill.distributed.partition import Partition
from vecfill.distributed.pieces import is_whole, read_array, read_values, write_array
from vecfill.distributed.tasks import Runner, Task
from vecfill.distributed.trend import Trend
from vecfill.distributed.weighing import all_weights, folder_of, key_name, n_weights
from vecfill.errors import InputError
from vecfill.method.engine import row_blocks
from vecfill.method.solve.parts import OrderedParts, ordered_parts, split_columns
from vecfill.method.solve.system import UnknownSystem
from vecfill.model.predictors.base import TOL
from vecfill.model.predictors.propagating import refuse_cut_off
from vecfill.model.space import WeightsKey
from vecfill.trust.prove.signals import N_PROBES

TASKS_PER_WORKER = 4
"""Tasks that slabs are dealt out to: what many slabs share is built once for each, and no worker
waits long for the last one. A guess."""

PILOT_COLUMNS = 4
"""Columns on which the way to solve is decided: as few as show how fast iterations converge."""

N_PROBE_SLABS = N_PROBES // WIDTH


MATRICES = ("on_known", "on_unknown")
"""The weights of a system: on known rows and on unknown ones."""

PARTS = ("data", "indices", "indptr")
"""The arrays of a sparse matrix, each a piece."""


@dataclass(frozen=True)
class System:
    """The equations of the rows that are not seen, for one setting of the weights."""

    partition: Partition
    sample: Sample
    key: WeightsKey

    def piece(self, *names: object) -> Path:
        """Return the path of a piece of this system."""
        preparation, folder = self.partition.view.preparation, folder_of(self.key)
        return self.sample.piece(preparation, "system", folder, *names)

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
        for name in MATRICES:
            data, indices, indptr = (read_array(self.piece(name, part)) for part in PARTS)
            shape = tuple(read_values(self.piece(name, "shape.json")))
            matrices.append(csr_array((data, indices, indptr), shape))
        return OrderedParts(matrices[0], matrices[1], read_array(self.piece("order")))

    def pieces(self) -> list[Path]:
        """Return all pieces of the equations, in the order in which `build` gives them."""
        parts = [self.piece(name, part) for name in MATRICES for part in (*PARTS, "shape.json")]
        return [*parts, *(self.piece(name) for name in ("order", "signals", "way.json"))]

    def signals(self) -> np.ndarray:
        """Return (n_unseen, 3): weight on known rows, largest weight, misfit."""
        return read_array(self.piece("signals"))


def build(system: System, trend: Trend | None, *, decides: bool) -> tuple[Any, ...]:
    """Return the equations and, if it `decides` that, how they are solved quickest."""
    parts, signals = _parts_and_signals(system)
    matrices = parts.on_known, parts.on_unknown
    n_links = sum(int(matrix.nnz) for matrix in matrices)
    about: dict[str, Any] = {"n_links": n_links, "n_unseen": int(parts.order.size)}
    if decides:
        columns = _known_columns(system, "values" if trend is None else "residuals", 0, trend)
        equations = UnknownSystem.of_parts(parts)
        about["way"] = equations.quickest_way(columns[:, :PILOT_COLUMNS], tol=TOL)
    values: list[Any] = []
    for matrix in matrices:
        values += [matrix.data, matrix.indices, matrix.indptr, list(map(int, matrix.shape))]
    return *values, parts.order, signals, about


def _parts_and_signals(system: System) -> tuple[OrderedParts, np.ndarray]:
    # A function of its own, so that weights in their first order are let go of before solving.
    rows, weights, misfit = all_weights(system.partition, system.key)
    is_seen = system.sample.is_seen_row()
    unseen = np.flatnonzero(~is_seen[rows])
    weights, misfit = csr_array(weights[unseen]), misfit[unseen]
    if system.key.weight_floor == 0.0:
        _refuse_cut_off(weights, rows[unseen], is_seen)
    on_known, on_unknown = split_columns(weights, is_seen)
    largest = np.maximum.reduceat(weights.data, weights.indptr[:-1])
    straight = np.asarray(on_known.sum(axis=1)).ravel()
    return ordered_parts(on_known, on_unknown), np.column_stack([straight, largest, misfit])


def _refuse_cut_off(weights: csr_array, rows: np.ndarray, is_seen: np.ndarray) -> None:
    counts = np.zeros(is_seen.size, np.int64)
    counts[rows] = np.diff(weights.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    square = csr_array((weights.data, weights.indices, indptr), (is_seen.size, is_seen.size))
    refuse_cut_off(square, is_seen)


def _known_columns(system: System, kind: str, slab: int, trend: Trend | None) -> np.ndarray:
    """Return a slab of columns of the seen rows: vectors, residuals, directions or random signs."""
    known, parts = system.known, []
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
        parts.append(part[is_seen[span]])
    columns = np.concatenate(parts)
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
        is_signal = slab.kind in ("directions", "probes")
        dtype = "float64" if is_signal else system.known.dtype
        solution = np.empty((equations.n_unknown, columns.shape[1]), dtype)
        for span in columns_at_once(columns.shape[1], equations.n_unknown):
            out = solution[:, span]
            equations.solve_known(columns[:, span], out, places, tol=slab.tol, way=way, n_jobs=1)
        if only is not None:
            solution = solution[only]
        if is_signal:
            solution = np.einsum("ij,ij->i", solution, solution, dtype=np.float64)
        write_array(piece, solution)


def slab_piece(system: System, kind: str, slab: int) -> Path:
    """Return the piece of a slab of solved columns."""
    return system.piece("solved", kind, slab)


def n_slabs(system: System, kind: str) -> int:
    """Return how many slabs there are of a kind."""
    return N_PROBE_SLABS if kind == "probes" else system.known.n_slabs


@dataclass(frozen=True)
class Solving:
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
        trend = None if "values" in self.kinds else self.trend
        return Task(
            f"equations {system.sample.variant}",
            f"{system.partition.view.preparation}, {key_name(system.key)}",
            build,
            {"system": system, "trend": trend, "decides": system == self.leader},
            tuple(system.pieces()),
        )

    def tasks(self, n_tasks: int) -> list[Task]:
        """Return the tasks that solve slabs of columns."""
        system = self.system
        slabs = [
            Slab(kind, number, tol) for kind, tol in self.kinds.items()
            for number in range(n_slabs(system, kind))
        ]  # fmt: skip
        dealt = [slabs[part] for part in row_blocks(len(slabs), max(1, len(slabs) // n_tasks))]
        arguments = {"system": system, "leader": self.leader}
        arguments = {**arguments, "trend": self.trend, "only": self.only}
        return [
            Task(
                f"propagate {system.sample.variant}",
                f"{system.partition.view.preparation}, from {hand[0].kind} {hand[0].number}",
                solve_slabs,
                {**arguments, "slabs": tuple(hand)},
                tuple(slab_piece(system, slab.kind, slab.number) for slab in hand),
            )
            for hand in dealt
        ]


def solved(runner: Runner, solvings: Sequence[Solving], memory: int) -> None:
    """Run the stage: the equations, then slabs of columns, as many at once as memory allows."""
    first = solvings[0].system
    n_links = n_weights(first.partition, first.key)
    n_bytes = _solving_bytes(first, first.layout.n_rows, n_links)
    tasks = (solving.building() for solving in solvings)
    runner.run(tasks, at_once=max(1, memory // n_bytes))
    ways = [solving.system.piece("way.json") for solving in solvings]
    abouts = [runner.read(read_values, way) for way in ways]
    n_bytes = max(_solving_bytes(first, about["n_unseen"], about["n_links"]) for about in abouts)
    if n_bytes > memory:
        raise InputError(
            f"Solving a slab of columns holds about {n_bytes / 1e9:.1f} GB, more than memory "
            f"allows ({memory / 1e9:.1f} GB for tasks). Use a larger machine, or a larger memory=."
        )
    at_once = memory // n_bytes
    n_tasks = TASKS_PER_WORKER * min(at_once, runner.engine.n_workers)
    tasks = (task for solving in solvings for task in solving.tasks(n_tasks))
    runner.run(tasks, at_once=at_once)


def _solving_bytes(system: System, n_unseen: int, n_links: int) -> int:
    itemsize = np.dtype(system.known.dtype).itemsize
    return solving_bytes(n_unseen, n_links, system.known.n_known, itemsize)
