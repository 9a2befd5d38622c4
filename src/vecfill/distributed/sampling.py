"""Stages: what a sample of rows in memory shows of a whole dataset.

Whether known vectors depend on their rows at all, whether a column holds the answer, and which rows
have a twin: `vecfill.trust` says so as it does in memory, of a sample that a task brings together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.distributed.alignment import Known
from vecfill.distributed.dataset import Dataset
from vecfill.distributed.ingest import names_piece
from vecfill.distributed.pieces import read_array, read_table, read_values, write_array
from vecfill.distributed.preparing import View
from vecfill.distributed.tasks import Runner, Task
from vecfill.inputs.prepared import Domain
from vecfill.model.space import Space
from vecfill.trust.choose.choice import ChanceOf
from vecfill.trust.choose.dependence import MOST_TESTED, dependence_p_value, permutation_p_value
from vecfill.trust.choose.twins import FEWEST_DIMS, MOST_DISTINCT, near_pairs
from vecfill.trust.prove.leaks import Leak, leaks_of

# A guess: 10,000 rows of 100 features are 8 MB, and looked at in a second.
ALL_ROWS = 10_000
"""Rows up to which all are looked at. Of more, a sample of known and unknown ones."""

N_SAMPLED = 1000
"""Known rows, and unknown ones, in a sample: as many as `vecfill.trust` looks at in memory."""

HasTwin = Callable[[np.ndarray], np.ndarray]
"""Tells which known rows have a twin, by their places among the known ones."""


def no_twins(places: np.ndarray) -> np.ndarray:
    """Tell that no row has a twin."""
    return np.zeros(places.size, np.bool_)


def have_twins(runner: Runner, known: Known, places: np.ndarray) -> np.ndarray:
    """Tell which of some known rows share their vector with another known one."""
    ascending = np.sort(places)
    vectors = known.some_vectors(ascending)
    n_distinct = len(np.unique(vectors, axis=0))
    # Where most vectors are shared they stand for classes, and equal ones are no accident.
    if known.n_dims < FEWEST_DIMS or n_distinct < MOST_DISTINCT * len(vectors):
        return no_twins(places)
    write_array(known.layout.piece("known", "candidates"), vectors)
    blocks = range(len(known.blocks))
    pieces = [known.layout.piece("known", "twins", block) for block in blocks]
    counts = runner.total(runner.run_each("twins", "block", n_same, pieces, known=known))
    # Each is the same as itself.
    return (counts > 1)[np.searchsorted(ascending, places)]


def n_same(known: Known, block: int) -> np.ndarray:
    """Return how many vectors of a block are the same as each of the candidates."""
    vectors = read_array(known.layout.piece("known", "candidates"))
    # Of those that are equal one is compared: pairs of many equal ones would fill the memory.
    distinct, place_of = np.unique(vectors, axis=0, return_inverse=True)
    pairs = near_pairs(distinct, known.vectors(block))
    return np.bincount(pairs[:, 0], minlength=len(distinct))[place_of.ravel()]


def sampled(known: Known, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a dataset with these numbers, and vectors, NaN where unknown."""
    view = View(known.layout, "features", is_raw=True)
    vectors = np.full((numbers.size, known.n_dims), np.nan)
    known_rows = known.rows()
    is_known = np.isin(numbers, known_rows)
    vectors[is_known] = known.some_vectors(np.searchsorted(known_rows, numbers[is_known]))
    return view.some_rows(numbers).astype(np.float64), vectors


def p_value_of_sample(known: Known, preparations: Sequence[str]) -> float:
    """Return how likely chance ties the vectors of a sample of known rows to these as they are."""
    places = np.sort(np.random.default_rng(0).permutation(known.n_known)[:MOST_TESTED])
    rows, vectors = sampled(known, np.asarray(known.rows())[places])
    return dependence_p_value(Space(rows, n_jobs=1), vectors, np.arange(len(rows)), preparations)


def known_by_chance(runner: Runner, known: Known, preparations: Sequence[str]) -> ChanceOf:
    """Return what gives the p-value of a choice, from directions of hidden rows."""
    piece = known.layout.piece("known", "by_chance.json")
    arguments = {"known": known, "preparations": tuple(preparations)}
    runner.run([Task("judge", "dependence", p_value_of_sample, arguments, (piece,))])
    of_pairs = float(runner.read(read_values, piece))

    def p_value(directions: np.ndarray, truth: np.ndarray) -> float:
        if known.n_known <= MOST_TESTED:
            return of_pairs
        # As in memory: many rows hold signals that a sample of their pairs does not show.
        return min(1.0, 2.0 * min(of_pairs, permutation_p_value(directions, truth)))

    return p_value


def leaks_of_sample(known: Known, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what gives known entities away in a sample, as plain values."""
    layout, rng = known.layout, np.random.default_rng(0)
    numbers = np.arange(layout.n_rows)
    if layout.n_rows > ALL_ROWS:
        is_known = known.is_known()
        parts = [np.flatnonzero(is_known), np.flatnonzero(~is_known)]
        numbers = np.sort(np.concatenate([rng.permutation(part)[:N_SAMPLED] for part in parts]))
    rows, vectors = sampled(known, numbers)
    names: list[str] = []
    for block, span in enumerate(layout.blocks):
        places = numbers[slice(*np.searchsorted(numbers, [span.start, span.stop]))] - span.start
        if places.size:
            of_block = read_table(names_piece(layout, block)).column("entity")
            names += of_block.take(pa.array(places)).to_pylist()
    domain = Domain(tuple(names), rows, columns)
    is_known = ~np.isnan(vectors[:, 0])
    leaks = leaks_of(Space(rows, n_jobs=1), domain, vectors, is_known)
    return [leak.to_dict() for leak in leaks]


def leaks_in(runner: Runner, known: Known, features: Dataset) -> tuple[Leak, ...]:
    """Return what gives known entities of a dataset away, sources that hold the answer first."""
    columns = features.numbers
    if features.is_list:
        columns = tuple(f"{columns[0]}[{place}]" for place in range(features.n_columns))
    piece = known.layout.piece("known", "leaks.json")
    arguments = {"known": known, "columns": columns}
    runner.run([Task("judge", "leaks", leaks_of_sample, arguments, (piece,))])
    leaks = []
    for values in runner.read(read_values, piece):
        del values["lowers_trust"]
        leaks.append(Leak(**{**values, "columns": tuple(values["columns"])}))
    return tuple(leaks)


def in_sample(note: str, n_rows: int) -> str:
    """Return a note on leaks, which says so if not all rows were looked at.

    Examples
    --------
    >>> in_sample("Column 'n' numbers the rows.", 5), in_sample("One has a twin.", 10**6)
    ("Column 'n' numbers the rows.", 'In a sample of the entities: One has a twin.')
    """
    return note if n_rows <= ALL_ROWS else f"In a sample of the entities: {note}"
