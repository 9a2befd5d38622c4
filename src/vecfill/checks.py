"""What users have -> strict arrays. Input is checked here, once; below, an `assert` will do."""

from __future__ import annotations

import difflib
import numbers
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from vecfill._types import KnownMask
from vecfill.errors import DtypeError, InputError
from vecfill.wording import count

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def is_sparse(values: Any) -> bool:
    """Tell whether something is a SciPy sparse matrix or array, without loading SciPy.

    Examples
    --------
    >>> is_sparse(np.eye(2))
    False
    """
    # Nobody can pass a sparse matrix before its module is loaded, and many commands never do.
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(values)


def known_rows(Y: ArrayLike) -> KnownMask:
    """Tell which rows of `Y` are known; a row is known whole or not at all.

    Examples
    --------
    >>> known_rows([[1.0, 2.0], [np.nan, np.nan]])
    array([ True, False])
    """
    values = np.asarray(Y)
    is_missing = np.isnan(values if values.dtype.kind == "f" else values.astype(np.float64))
    is_unknown = is_missing.all(axis=1)
    partly = np.flatnonzero(is_missing.any(axis=1) & ~is_unknown)
    if partly.size:
        row = int(partly[0])
        column = int(np.flatnonzero(is_missing[row])[0])
        raise InputError(
            f"Row {row} of Y is partly missing: column {column} is NaN and others are not"
            f"{_and_others(partly.size)}. A row is known whole or not at all: "
            f"fill it, or make all of it NaN to have it imputed."
        )
    return np.asarray(~is_unknown)


def _and_others(n_rows: int) -> str:
    return "" if n_rows == 1 else f" (as in {count(n_rows - 1, 'other row')})"


def _numeric(values: Any, name: str) -> Any:
    """Return an array of floats of 32 or 64 bits, or refuse its type."""
    dtype = values.dtype
    if dtype.kind == "c":
        raise DtypeError(
            f"Complex data not supported: {name} has dtype {dtype}. "
            f"Pass real numbers, such as {name}.real and {name}.imag side by side."
        )
    if dtype.kind not in "fiub":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DtypeError(
                f"{name} has dtype {dtype}, which is not numeric ({error}). "
                f"Encode text and categories as numbers first."
            ) from error
    if dtype in (np.float32, np.float64):
        return values
    # float16 and small integers lose nothing in 32 bits; anything else gets 64.
    narrow = dtype.itemsize <= 2
    return values.astype(np.float32 if narrow else np.float64)


def _refuse_not_finite(rows: Any, name: str, *, allow_nan: bool = False) -> None:
    values = rows.data if is_sparse(rows) else rows
    is_bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not is_bad.any():
        return
    if is_sparse(rows):
        place = int(np.flatnonzero(is_bad)[0])
        row = int(np.searchsorted(rows.indptr, place, side="right")) - 1
        column, value = int(rows.indices[place]), values[place]
    else:
        row, column = (int(i) for i in np.argwhere(is_bad)[0])
        value = values[row, column]
    fault = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        f"{name} contains {fault} at row {row}, column {column} "
        f"({count(int(is_bad.sum()), 'such value')} in all; NaN and inf cannot be used in {name}). "
        f"Fill or drop the value before fitting."
    )


def sound_csr(X: Any, name: str) -> csr_array:
    """Return a sparse matrix as rows; refuse one that points outside of itself.

    SciPy believes the indices it is given, and compiled code would follow them out of the matrix.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> matrix = csr_array(np.eye(2))
    >>> matrix.indices[0] = 9
    >>> sound_csr(matrix, "X")
    Traceback (most recent call last):
    vecfill.errors.InputError: X is a damaged sparse matrix: indices must be < 2. ...
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            type(X)((X.data, X.coords), shape=X.shape)
        rows = csr_array(X)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(
            f"{name} is a damaged sparse matrix: {error}. Build it again from its rows, columns "
            f"and values, for example with scipy.sparse.coo_array."
        ) from error
    return rows


def refuse_masked(values: Any, name: str) -> None:
    """Refuse an array with masked values, which NumPy would hand on as if they were known.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_array([1.0, 2.0], mask=[False, True]), "X")
    Traceback (most recent call last):
    vecfill.errors.InputError: X is a masked array, and 1 of its values is masked. ...
    """
    n_masked = int(np.ma.count_masked(values)) if isinstance(values, np.ma.MaskedArray) else 0
    if n_masked:
        verb = "is" if n_masked == 1 else "are"
        raise InputError(
            f"{name} is a masked array, and {n_masked} of its values {verb} masked. A mask would "
            "be lost here: fill it first, for example with .filled(numpy.nan) where NaN means that "
            "nothing is known."
        )


def domain_rows(X: Any) -> np.ndarray | csr_array:
    """Return domain vectors as C-ordered floats, or CSR with sorted columns; refuse NaN.

    Examples
    --------
    >>> domain_rows([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if is_sparse(X):
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

        rows = csr_array(_numeric(sound_csr(X, "X"), "X"), copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        _refuse_not_finite(rows, "X")
        return rows
    refuse_masked(X, "X")
    dense = _numeric(np.asarray(X), "X")
    from sklearn.utils import check_array  # noqa: PLC0415 - slow to load

    try:
        check_array(dense, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        raise InputError(f"X cannot be used as rows of features. {error}") from error
    rows = np.ascontiguousarray(dense)
    _refuse_not_finite(rows, "X")
    return rows


def embedding_rows(Y: Any) -> np.ndarray:
    """Return embedding vectors as floats; NaN stays, infinity is refused.

    One value a row is taken for an embedding of one dimension, as scikit-learn would.

    Examples
    --------
    >>> embedding_rows([[1, 2]])
    array([[1., 2.]])
    """
    if is_sparse(Y):
        raise InputError("Y is sparse, and a zero is not a missing value. Pass Y.toarray().")
    refuse_masked(Y, "Y")
    vectors = _numeric(np.asarray(Y), "Y")
    if vectors.ndim == 1:
        vectors = vectors.reshape(-1, 1)
    if vectors.ndim != 2:
        raise InputError(
            f"Y has {vectors.ndim} dimensions, expected 2: a row an entity, a column a dimension "
            f"of the embedding."
        )
    if vectors.shape[1] == 0:
        raise InputError("Y has no columns. Pass an embedding with at least one dimension.")
    _refuse_not_finite(vectors, "Y", allow_nan=True)
    return vectors


def embedding_of_rows(Y: Any, *, n_rows: int) -> np.ndarray:
    """Return embedding vectors of the rows of `X`, which must be as many.

    Examples
    --------
    >>> embedding_of_rows([[1.0, 2.0]], n_rows=1)
    array([[1., 2.]])
    """
    if Y is None:
        raise InputError(
            "requires y to be passed, but the target y is None: "
            "pass the embedding as Y, unknown rows all NaN."
        )
    embedding = embedding_rows(Y)
    if len(embedding) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows "
            f"and Y has {len(embedding)}. They must describe the same entities in one order."
        )
    return embedding


def vector_like(vector: Any, rows: np.ndarray, name: str) -> np.ndarray:
    """Return a vector that can become one of `rows`, else refuse it by the name of its entity.

    Examples
    --------
    >>> vector_like([1, 2], np.ones((3, 2)), "Oslo")
    array([1., 2.])
    """
    try:
        checked = embedding_rows(np.asarray(vector)[None])[0]
    except ValueError as error:
        raise InputError(f"the vector of {name!r} is none: {error}") from error
    n_dims, dtype = rows.shape[1], rows.dtype
    if checked.shape != (n_dims,) or not np.isfinite(checked).all():
        raise InputError(
            f"the vector of {name!r} must have {n_dims} finite numbers; it has the shape "
            f"{checked.shape}."
        )
    largest, limit = float(np.abs(checked).max()), float(np.finfo(dtype).max)
    if largest > limit:
        raise InputError(
            f"the vector of {name!r} holds {largest:.3g}, and the vectors of this model are "
            f"{dtype}, which holds at most {limit:.3g}. Scale it, or impute again with float64 "
            "vectors."
        )
    return checked


def refuse_nothing_known(is_known: np.ndarray) -> None:
    """Refuse an embedding without any known row.

    Examples
    --------
    >>> refuse_nothing_known(np.array([True, False]))
    """
    if not is_known.any():
        raise InputError(
            f"No row of Y is known: all {is_known.size} rows are NaN. "
            f"At least one known vector is needed to impute the others."
        )


def square_distances(X: np.ndarray | csr_array) -> np.ndarray:
    """Return a precomputed matrix of distances: square, symmetric, not negative, zero diagonal.

    Examples
    --------
    >>> square_distances(np.array([[0.0, 1.0], [1.0, 0.0]])).shape
    (2, 2)
    """
    if is_sparse(X):
        raise InputError(
            "Sparse data is not supported for a precomputed matrix of distances. Pass X.toarray()."
        )
    n_rows, n_columns = X.shape
    if n_rows != n_columns:
        raise InputError(
            f"Precomputed metric requires a square matrix of distances, but X is "
            f"{n_rows} x {n_columns}. Pass the distance of every row from every row."
        )
    refuse_negative_distances(X)
    on_diagonal = np.flatnonzero(np.diagonal(X))
    if on_diagonal.size:
        row = int(on_diagonal[0])
        raise InputError(
            f"X[{row}, {row}] is {X[row, row]:g}, but a row's distance from itself is 0. "
            f"Turn similarities into distances first, for correlations by sqrt(2 - 2 r)."
        )
    for row in range(n_rows):
        differs = np.abs(X[row] - X[:, row]) > 1e-6 * np.abs(X[row])
        if differs.any():
            column = int(np.flatnonzero(differs)[0])
            raise InputError(
                f"X is not symmetric: X[{row}, {column}] is {X[row, column]:g} and "
                f"X[{column}, {row}] is {X[column, row]:g}. Pass (X + X.T) / 2 if either will do."
            )
    return X


def refuse_negative_distances(X: np.ndarray) -> None:
    """Refuse a matrix of distances with a value below zero.

    Examples
    --------
    >>> refuse_negative_distances(np.array([[0.0, 2.0]]))
    """
    if X.size and X.min() < 0:
        row, column = (int(i) for i in np.argwhere(X < 0)[0])
        raise InputError(
            f"X[{row}, {column}] is {X[row, column]:g}, but distances are not negative. "
            f"(Negative values in data passed to metric='precomputed'.) "
            f"Turn similarities into distances first, for correlations by sqrt(2 - 2 r)."
        )


def number(
    value: Any, name: str, *, low: float, high: float | None = None, open_low: bool = False
) -> float:
    """Return `value` if it is a finite real number in range, else refuse it by name.

    Examples
    --------
    >>> number(0.1, "ridge", low=0)
    0.1
    """
    limits = f"{'above' if open_low else 'at least'} {low:g}"
    limits += "" if high is None else f" and at most {high:g}"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    real = float(value) if is_number else np.nan
    if not np.isfinite(real):
        raise InputError(f"{name}={value!r} is not a finite number. Use one {limits}.")
    too_low = real <= low if open_low else real < low
    if too_low or (high is not None and real > high):
        raise InputError(f"{name}={value!r} is out of range. Use a number {limits}.")
    return real


def whole_number(value: Any, name: str, *, low: int) -> int:
    """Return `value` if it is a whole number of at least `low`, else refuse it by name.

    Examples
    --------
    >>> whole_number(8, "min_degree", low=1)
    8
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
        raise InputError(f"{name}={value!r} is not a whole number of at least {low}.")
    return int(value)


def true_or_false(value: Any, name: str) -> bool:
    """Return `value` if it is true or false, else refuse it by name.

    Examples
    --------
    >>> true_or_false(True, "force")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} is neither True nor False.")
    return bool(value)


def one_of(value: Any, name: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`, else refuse it with their list.

    Examples
    --------
    >>> one_of("power", "solver", ("direct", "power"))
    'power'
    """
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        near = difflib.get_close_matches(str(value), choices, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{name}={value!r} is not known.{hint} Use one of {listed}.")
    return value
