"""One table with features and a column of vectors: split into what `impute` needs, and filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.embedding import Embedding
from vecfill.errors import InputError, OptionError
from vecfill.inputs.files import read_domain
from vecfill.inputs.names.match_report import Match, MatchReport
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns import has_value
from vecfill.inputs.table.filling import read_vectors
from vecfill.inputs.table.frames import Frame, frame_by, keyed
from vecfill.requests import RARITY_OPTIONS, TABLE_OPTIONS, TEXT_OPTIONS, Reading

USED = (*TABLE_OPTIONS, *TEXT_OPTIONS, *RARITY_OPTIONS, "vector", "exclude", "min_count")
"""Options of `Reading` that make sense for one table."""


@dataclass(frozen=True, eq=False)
class OneTable:
    """A table as the user gave it, what describes its rows, and the vectors that it has."""

    source: Any = field(repr=False)
    """The table, or the path of its file."""
    vector: str
    domain: Domain = field(repr=False)
    embedding: Embedding = field(repr=False)
    """The rows that have a vector, the excluded ones included."""
    has_vector: np.ndarray = field(repr=False)
    """(n_rows,) which cells are not null."""
    matches: MatchReport = field(repr=False)


def read_one_table(source: Any, reading: Reading) -> OneTable:
    """Return the features and the vectors of one table; a cell without a vector is null.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"id": [7, 8, 9], "x": [1.0, 2.0, 4.0], "v": [[1.0], None, [3.0]]})
    >>> found = read_one_table(table, Reading(key="id", vector="v"))
    >>> found.domain.entities, found.domain.columns, found.embedding
    (('7', '8', '9'), ('x',), Embedding(2 words, 1 dim, float64: '7', '9'))
    """
    if reading.vector is None:
        raise OptionError(
            "no embedding was passed. Pass one, or name the column of the table that holds the "
            "vectors (vector=)."
        )
    unused = [option.name for option in fields(reading) if option.name not in USED]
    why = "features and vectors are in one table"
    reading.refuse_unused((), unused, why)
    frame = _frame(source, reading)
    entities, columns = keyed(frame, reading.key)
    cells = read_vectors(columns, reading.vector, entities)
    # The vectors are what is looked for, so they cannot describe the entities as well.
    features = replace(reading, vector=None, ignore=(*reading.ignore, reading.vector))
    features = replace(features, exclude=(), min_count=None)
    known = list(compress(entities, cells.is_known))
    return OneTable(
        source=source,
        vector=reading.vector,
        domain=read_domain(source, features),
        embedding=Embedding(known, cells.vectors[cells.is_known]),
        has_vector=cells.is_known,
        matches=_matches(entities, cells.is_known, reading.exclude),
    )


def _frame(source: Any, reading: Reading) -> Frame:
    frame = frame_by(source, reading)
    if frame is None:
        raise InputError(
            f"vector={reading.vector!r} names a column, but the table is an object of type "
            f"{type(source).__name__}. Pass a pandas, polars or Arrow table, or a file."
        )
    return frame


def _matches(
    entities: Sequence[str], has_vector: np.ndarray, exclude: Sequence[str]
) -> MatchReport:
    """Say that every row is its own word; no name is looked for elsewhere."""
    left_out = set(exclude)
    matches: list[Match] = []
    for entity, is_known in zip(entities, has_vector, strict=True):
        if not is_known:
            matches.append(Match(entity, None, "none"))
        elif entity in left_out:
            matches.append(Match(entity, None, "excluded"))
        else:
            matches.append(Match(entity, entity, "exact"))
    unused = tuple(name for name in exclude if name not in set(entities))
    return MatchReport(tuple(matches), "exact", int(has_vector.sum()), unused_names=unused)


def without_imputed(source: Any, confidence: str, reading: Reading) -> Reading:
    """Return how to read a table to which an earlier run added a column of confidences.

    The column does not describe entities, and rows that have a confidence were imputed: their
    vectors stay, but nothing is learnt from them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["a", "b"], "v": [[1.0], [2.0]], "sure": [None, 0.5]})
    >>> found = without_imputed(table, "sure", Reading(key="id", vector="v"))
    >>> found.ignore, found.exclude
    (('sure',), ('b',))
    """
    frame = _frame(source, reading)
    if not confidence.strip():
        raise InputError("confidence='' is no name for a column. Choose one.")
    if confidence not in frame.names:
        return reading
    entities, columns = keyed(frame, reading.key)
    if confidence not in columns.names or confidence == reading.vector:
        raise InputError(
            f"confidence={confidence!r} is the column of names or of vectors. Choose another name."
        )
    has_confidence = _has_value(columns, confidence)
    has_vector = _has_value(columns, str(reading.vector))
    for entity, is_sure, is_known in zip(entities, has_confidence, has_vector, strict=True):
        if is_sure and not is_known:
            raise InputError(
                f"{columns.label}: the column {confidence!r} has a value for {entity!r}, which has "
                "no vector, so it does not hold confidences of imputed ones. Choose another name."
            )
    imputed = compress(entities, has_confidence)
    ignore, exclude = (*reading.ignore, confidence), (*reading.exclude, *imputed)
    return replace(reading, ignore=ignore, exclude=exclude)


def _has_value(frame: Frame, column: str) -> list[bool]:
    """Tell which cells of a column are not null; in text files an empty cell is."""
    if column not in frame.names:
        return [True] * frame.n_rows  # whoever reads the column refuses it by name
    cells = frame.columns[column]
    if not isinstance(cells, list) and not pa.types.is_string(cells.type):
        return cells.is_valid().to_pylist()
    return has_value(cells)
