"""Arrays with names, and square matrices of similarities or distances -> a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from vecfill.checks import sound_csr
from vecfill.errors import InputError
from vecfill.inputs.embeddings import array_of
from vecfill.inputs.entities import listed, unique_entities
from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.prepared import Domain, Matrix
from vecfill.inputs.table.column_type import Scales
from vecfill.inputs.table.columns import Numbers
from vecfill.inputs.table.features import features_of_columns
from vecfill.inputs.table.frames import MAX_COLUMNS
from vecfill.inputs.table.scaling import standardized, standardizing_factors
from vecfill.wording import count

_SYMMETRY = 1e-6
"""Share of the largest entry that rounding may change: ten times the precision of float32."""


def features_of_array(
    vectors: Any, names: Iterable[object], *, standardize: bool = False
) -> Domain:
    """Return the domain of an array, dense or sparse, with a name for each row.

    float32 stays float32; other numbers become float64. Missing values (NaN) and constant columns
    are treated as in a table; a sparse matrix may have neither NaN nor needs its columns dropped.

    Examples
    --------
    >>> features_of_array([[1, 5], [2, 5]], ["a", "b"]).vectors
    array([[1.],
           [2.]])
    """
    entities = unique_entities(names, where="names")
    matrix = _numeric(vectors, "the array")
    if matrix.shape[0] != len(entities):
        raise InputError(
            f"there are {len(entities)} names for {matrix.shape[0]} rows. Give one name a row."
        )
    if 0 in matrix.shape:
        raise InputError(
            f"the array has the shape {matrix.shape}. It needs at least one row and one column."
        )
    if isinstance(matrix, csr_array):
        return _sparse_features(matrix, entities, standardize)
    if matrix.shape[1] > MAX_COLUMNS:
        raise InputError(
            f"the array has {matrix.shape[1]:,} columns, more than {MAX_COLUMNS:,} dense ones. "
            "Pass a SciPy sparse matrix, or reduce the columns first."
        )
    _refuse_infinite(matrix, entities)
    labels = tuple(str(number) for number in range(matrix.shape[1]))
    if np.isnan(matrix).any() or standardize or matrix.shape[1] <= 64:
        columns = [
            Numbers(label, matrix[:, number].astype(np.float64))
            for number, label in enumerate(labels)
        ]
        scales = Scales(standardize)
        return features_of_columns(
            entities, columns, scales=scales, label="the array", dtype=matrix.dtype
        )
    varies = matrix.min(axis=0) < matrix.max(axis=0)
    if not varies.any():
        raise InputError("the array: every column is constant, so the rows cannot be told apart.")
    notes: tuple[str, ...] = ()
    if not varies.all():
        constant = list(compress(labels, ~varies))
        dropped = count(len(constant), "constant column was", "constant columns were")
        notes = (f"{dropped} dropped: {listed(constant)}.",)
        matrix = np.ascontiguousarray(matrix[:, varies])
    reader = ArrayReader(varies.size, np.flatnonzero(varies), str(matrix.dtype))
    return Domain(
        entities, matrix, tuple(compress(labels, varies)), "features", notes, reader=reader
    )


def features_of_mapping(vectors: Mapping[Any, Any], *, standardize: bool = False) -> Domain:
    """Return the domain of a mapping from entity to vector.

    Examples
    --------
    >>> features_of_mapping({"iron": [26, 55.8], "gold": [79, 197.0]}).entities
    ('iron', 'gold')
    """
    if not vectors:
        raise InputError("the mapping is empty. It needs a vector for each entity.")
    rows: list[np.ndarray] = []
    for name, vector in vectors.items():
        row = _numeric_row(vector, name)
        if rows and row.shape != rows[0].shape:
            raise InputError(
                f"the vector of {name!r} has {row.size} numbers, the first one has {rows[0].size}. "
                "All vectors need the same length."
            )
        rows.append(row)
    return features_of_array(np.stack(rows), list(vectors), standardize=standardize)


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """Rows of numbers, of which some columns were used as they are."""

    n_columns: int
    used: np.ndarray
    """Places of the columns that were used."""
    dtype: str
    factors: np.ndarray | None = None
    """By what a sparse matrix was multiplied, column by column."""
    is_sparse: bool = False

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the same columns of new entities."""
        names = [str(number) for number in range(self.n_columns)]
        why = (
            f"has named columns, but the model was fitted to vectors of {self.n_columns} numbers. "
            "Pass a mapping from entity to vector, or an array with names=."
        )
        matrix = facts.matrix_of(names, why)
        if matrix.shape[1] != self.n_columns:
            raise InputError(
                f"{facts.label} has vectors of {matrix.shape[1]} numbers, but the model was fitted "
                f"to vectors of {self.n_columns}. Pass vectors of the same source."
            )
        return LaterRows.usual(facts, self._checked(matrix, facts.entities))

    def has_range(self) -> bool:
        """Say that every column is one of numbers."""
        return True

    def _checked(self, matrix: Any, entities: Sequence[str]) -> Any:
        values = matrix.data if issparse(matrix) else np.asarray(matrix)
        if values.dtype.kind not in "fiub":
            raise InputError(f"the vectors are of type {values.dtype}. Pass real numbers.")
        dense = values
        if issparse(matrix) and not (self.is_sparse and np.isfinite(values).all()):
            dense = matrix.toarray()
        if not np.isfinite(values).all():
            row = int((~np.isfinite(dense)).any(axis=1).argmax())
            raise InputError(
                f"the vector of {entities[row]!r} has numbers that are missing or infinite. "
                "Correct them, or leave the entity out."
            )
        if not self.is_sparse:
            return np.ascontiguousarray(dense.astype(self.dtype)[:, self.used])
        rows = csr_array(matrix, dtype=self.dtype)
        if self.factors is not None:
            rows = csr_array(rows @ diags_array(self.factors)).astype(self.dtype)
        rows.sum_duplicates()
        return rows


def distances_of_matrix(
    matrix: Any,
    names: Iterable[object],
    *,
    columns: Sequence[str] | None = None,
    are_similarities: bool = False,
    label: str = "the matrix",
) -> Domain:
    """Return the domain of a square matrix of distances, or of similarities turned into them.

    A similarity s becomes the distance sqrt(s_ii + s_jj - 2 s_ij), which for correlations,
    cosines and other inner products is the Euclidean distance behind them.

    Examples
    --------
    >>> correlations = [[1.0, 0.5], [0.5, 1.0]]
    >>> distances_of_matrix(correlations, ["a", "b"], are_similarities=True).vectors
    array([[0., 1.],
           [1., 0.]])
    """
    entities = unique_entities(names, where=f"{label}, row names")
    square = _square(_numeric(matrix, label), entities, label)
    if columns is not None:
        square = square[:, _places_of_columns(columns, entities, label)]
    square = _symmetric(square, entities, label)
    reader = DistancesReader(entities, np.diag(square).copy() if are_similarities else None)
    if are_similarities:
        square = _distances_of_similarities(square, entities, label)
    else:
        _check_distances(square, entities, label)
    np.fill_diagonal(square, 0.0)
    if len(entities) > 1 and square.max() == 0:
        raise InputError(f"{label}: every distance is 0, so the entities cannot be told apart.")
    notes = ("Similarities were turned into distances.",) if are_similarities else ()
    return Domain(entities, square, entities, "distances", notes, reader=reader)


def _square(matrix: Matrix, entities: tuple[str, ...], label: str) -> np.ndarray:
    """Return a dense square matrix of finite numbers, or refuse it by place."""
    if isinstance(matrix, csr_array):
        raise InputError(
            f"{label} is sparse, and what it leaves out could be near or far. Pass it dense, or "
            "pass its entries as an edge list (kind='edges')."
        )
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns or n_rows != len(entities):
        raise InputError(
            f"{label} is {n_rows} x {n_columns} for {len(entities)} names, but distances or "
            "similarities need as many columns as rows. Without kind= its rows are features."
        )
    return matrix


def _places_of_columns(columns: Sequence[str], entities: tuple[str, ...], label: str) -> list[int]:
    """Return where the column of each entity stands."""
    names = unique_entities(columns, where=f"{label}, column names")
    if set(names) != set(entities):
        strange = [name for name in names if name not in set(entities)]
        raise InputError(
            f"{label}: the columns are not named like the rows; {listed(strange)} is no row. "
            "Rows and columns of such a matrix are the same entities."
        )
    place = {name: number for number, name in enumerate(names)}
    return [place[name] for name in entities]


def _symmetric(square: np.ndarray, entities: tuple[str, ...], label: str) -> np.ndarray:
    """Return a matrix without rounding differences across its diagonal, or refuse it."""
    bad = np.argwhere(~np.isfinite(square))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"{label}: the value of {entities[row]!r} and {entities[column]!r} is missing or "
            "infinite. Every pair needs a number."
        )
    square = square.astype(np.float64)
    gap = np.abs(square / 2 - square.T / 2)
    if gap.max() > _SYMMETRY * float(np.abs(square).max()):
        row, column = np.unravel_index(int(gap.argmax()), gap.shape)
        raise InputError(
            f"{label} is not symmetric: {entities[row]!r} to {entities[column]!r} is "
            f"{square[row, column]:.6g}, back it is {square[column, row]:.6g}. Average the two if "
            "either will do."
        )
    return square / 2 + square.T / 2


def _distances_of_similarities(
    square: np.ndarray, entities: tuple[str, ...], label: str
) -> np.ndarray:
    diagonal = np.diag(square) / 2
    halves = diagonal[:, None] + diagonal[None, :] - square
    if halves.min() < -_SYMMETRY * max(float(np.abs(square).max()), 1e-300):
        row, column = np.unravel_index(int(halves.argmin()), halves.shape)
        raise InputError(
            f"{label}: {entities[row]!r} and {entities[column]!r} are more similar "
            f"({square[row, column]:.6g}) than to themselves. Are these distances?"
        )
    return np.sqrt(np.maximum(2 * halves, 0))


def _check_distances(square: np.ndarray, entities: tuple[str, ...], label: str) -> None:
    if square.min() < 0:
        row, column = np.unravel_index(int(square.argmin()), square.shape)
        raise InputError(
            f"{label}: the distance of {entities[row]!r} and {entities[column]!r} is "
            f"{square[row, column]:.6g}, less than 0. Are these similarities?"
        )
    if np.diag(square).max() > _SYMMETRY * float(np.abs(square).max()):
        row = int(np.diag(square).argmax())
        raise InputError(
            f"{label}: the distance of {entities[row]!r} to itself is {square[row, row]:.6g}, not "
            "0. Are these similarities?"
        )


@dataclass(frozen=True, eq=False)
class DistancesReader(Reader):
    """Distances, or similarities, of new entities to all fitted ones."""

    entities: tuple[str, ...] = field(repr=False)
    similarities: np.ndarray | None = None
    """(n_rows,) similarity of each fitted entity with itself; ``None`` if there are distances."""

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the distances of new entities (down) to the fitted ones (across)."""
        n_absent = sum(name not in facts.columns for name in self.entities)
        why = (
            f"lacks {n_absent} of the {len(self.entities)} columns that are needed, such as "
            "{absent}: new entities need their distances to every fitted one."
        )
        matrix = facts.matrix_of(self.entities, why)
        rows = np.asarray(matrix, np.float64)
        if rows.shape[1] != len(self.entities) or not np.isfinite(rows).all():
            raise InputError(
                f"{facts.label} must have {len(self.entities)} finite numbers for each new "
                "entity: its distances to the fitted ones, in their order."
            )
        if self.similarities is not None:
            # Nobody says how similar a new entity is to itself: taken to be as the others are.
            typical = float(np.median(self.similarities))
            rows = np.sqrt(np.maximum(typical + self.similarities - 2.0 * rows, 0.0))
        if rows.min(initial=0.0) < 0:
            raise InputError(f"{facts.label} has distances below 0. Are these similarities?")
        return LaterRows.usual(facts, rows)


def _numeric(vectors: Any, label: str) -> Matrix:
    if issparse(vectors):
        matrix = sound_csr(vectors, label)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise InputError(f"{label} is of type {matrix.dtype}. Pass real numbers in two axes.")
        return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    vectors = _unmasked(vectors)
    try:
        array = np.asarray(vectors)
    except (ValueError, TypeError) as error:
        raise InputError(f"{label} is no table of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{label} holds values of type {array.dtype}. Pass real numbers; for text and "
            "categories pass a table with column names."
        )
    if array.ndim != 2:
        raise InputError(
            f"{label} has {array.ndim} axes, not 2. Pass one row for each entity, one column for "
            "each feature."
        )
    return array if array.dtype == np.float32 else array.astype(np.float64)


def _unmasked(values: Any) -> Any:
    """Return numbers with NaN where they are masked, which means that they are missing."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiub":
        return np.ma.filled(values.astype(np.float64), np.nan)
    return values


def _numeric_row(vector: Any, name: object) -> np.ndarray:
    vector = _unmasked(vector)
    try:
        row = array_of(vector, ndim=getattr(vector, "ndim", 1))
    except (ValueError, TypeError):
        row = np.asarray(None)
    if row.ndim == 0:
        row = row[None]
    if row.dtype.kind not in "fiub" or row.ndim != 1:
        raise InputError(f"the vector of {name!r} is not a row of numbers. Pass a list of numbers.")
    return row


def _refuse_infinite(matrix: np.ndarray, entities: Sequence[str]) -> None:
    bad = np.argwhere(np.isinf(matrix))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"the array, column {column}, entity {entities[row]!r}: the value is infinite. Correct "
            "it, or use NaN if it is not known."
        )


def _sparse_features(matrix: csr_array, entities: tuple[str, ...], standardize: bool) -> Domain:
    matrix = csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise InputError(
            f"the sparse matrix, column {matrix.indices[bad[0]]}, entity {entities[row]!r}: the "
            "value is missing or infinite. Leave it out if it is 0, or correct it."
        )
    if matrix.nnz == 0:
        raise InputError("the sparse matrix has no entry, so the rows cannot be told apart.")
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    notes: tuple[str, ...] = ()
    if len(empty):
        names = listed(entities[row] for row in empty)
        notes = (f"{count(len(empty), 'entity has', 'entities have')} a row of zeros: {names}.",)
    labels = tuple(str(number) for number in range(matrix.shape[1]))
    vectors = standardized(matrix) if standardize else matrix
    reader = ArrayReader(
        matrix.shape[1],
        np.arange(matrix.shape[1]),
        str(matrix.dtype),
        factors=standardizing_factors(matrix) if standardize else None,
        is_sparse=True,
    )
    return Domain(entities, vectors, labels, "features", notes, reader=reader)
