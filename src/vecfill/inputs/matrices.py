"""Arrays with names, and square matrices of similarities or distances -> a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.checks import sound_csr
from vecfill.errors import InputError
from vecfill.inputs.entities import listed, unique_entities
from vecfill.inputs.later_rows import ArrayReader, DistancesReader
from vecfill.inputs.objects import array_of
from vecfill.inputs.prepared import Domain, Matrix
from vecfill.inputs.table.columns import Numbers
from vecfill.inputs.table.features import features_of_columns
from vecfill.inputs.table.frames import MAX_COLUMNS
from vecfill.inputs.table.scaling import standardized, standardizing_factors
from vecfill.wording import count

_SYMMETRY = 1e-6


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
        domain = features_of_columns(entities, columns, standardize=standardize, label="the array")
        assert isinstance(domain.vectors, np.ndarray)
        dense = domain.vectors.astype(matrix.dtype)
        reader = replace(domain.reader, dtype=str(matrix.dtype))
        return replace(domain, vectors=dense, reader=reader)
    varies = matrix.min(axis=0) < matrix.max(axis=0)
    if not varies.any():
        raise InputError("the array: every column is constant, so the rows cannot be told apart.")
    notes: tuple[str, ...] = ()
    if not varies.all():
        constant = [label for label, does in zip(labels, varies, strict=True) if not does]
        dropped = count(len(constant), "constant column was", "constant columns were")
        notes = (f"{dropped} dropped: {listed(constant)}.",)
        matrix = np.ascontiguousarray(matrix[:, varies])
    reader = ArrayReader(varies.size, np.flatnonzero(varies), str(matrix.dtype))
    kept = tuple(label for label, does in zip(labels, varies, strict=True) if does)
    return Domain(entities, matrix, kept, "features", notes, reader=reader)


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
    others = unique_entities(columns, where=f"{label}, column names")
    if set(others) != set(entities):
        strange = [name for name in others if name not in set(entities)]
        raise InputError(
            f"{label}: the columns are not named like the rows; {listed(strange)} is no row. "
            "Rows and columns of such a matrix are the same entities."
        )
    place = {name: number for number, name in enumerate(others)}
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


def with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Return the columns, each turned so that its largest entry is positive.

    Examples
    --------
    >>> with_fixed_signs(np.array([[1.0, -3.0], [2.0, 1.0]]))
    array([[ 1.,  3.],
           [ 2., -1.]])
    """
    if vectors.size == 0:
        return vectors
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs).astype(vectors.dtype)


def _numeric(vectors: Any, label: str) -> Matrix:
    if issparse(vectors):
        matrix = sound_csr(vectors, label)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise InputError(f"{label} is of type {matrix.dtype}. Pass real numbers in two axes.")
        return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    if isinstance(vectors, np.ma.MaskedArray) and vectors.dtype.kind in "fiub":
        vectors = np.ma.filled(vectors.astype(np.float64), np.nan)  # masked means missing
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


def _numeric_row(vector: Any, name: object) -> np.ndarray:
    if isinstance(vector, np.ma.MaskedArray) and vector.dtype.kind in "fiub":
        vector = np.ma.filled(vector.astype(np.float64), np.nan)  # masked means missing
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
        shown = listed(entities[row] for row in empty)
        notes = (f"{count(len(empty), 'entity has', 'entities have')} a row of zeros: {shown}.",)
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
