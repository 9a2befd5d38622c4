"""Kernels: how alike two rows of a space are.

A kernel is 1 for equal rows and falls with their distance (`"rbf"`, `"laplacian"`), counts shared
features (`"tanimoto"`), or is a product (`"linear"`). Distances are in units of the typical
distance of the space, so a width means the same in any units.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy.sparse import issparse

from vecfill.errors import InputError
from vecfill.model.space import Space
from vecfill.model.wanted import New

KERNELS = ("rbf", "laplacian", "linear", "tanimoto")

BY_DISTANCE = ("rbf", "laplacian")
"""Kernels that need no more than distances, and have a width."""

N_SAMPLED = 1000
"""Rows whose distances tell the unit: half a million pairs, of which a median is steady."""

FAR = 1e100
"""Distance at which all kernels are 0, and whose square is still a number."""

FAR_SINGLE = 1e15
"""The same in 32 bits."""

RECENT_BYTES = 384 << 20
"""Memory for factors of kernels: three of 4,000 known rows each, which is as large as they get."""


@dataclass(frozen=True)
class Kernel:
    """A kernel on the rows of a space.

    Examples
    --------
    >>> space = Space(np.array([[0.0], [1.0], [3.0]]))
    >>> Kernel(space, "as_given", "rbf").between([0, 1], [0]).round(2)
    array([[1.  ],
           [0.88]])
    """

    space: Space
    preparation: str
    kernel: str
    width: float = 1.0
    """In units of the median distance between rows."""
    is_single: bool = False
    """Whether it is computed in 32 bits: in half the time, for what only has to be compared."""

    def between(self, down: Any, across: Any) -> np.ndarray:
        """Return the kernel of some rows (down) with others (across), by their numbers.

        On the left there may be `New` rows, prepared; of a space of distances, they hold those to
        all its rows.
        """
        if self.space.has_vectors:
            return self._of_rows(*self._pair(down, across))
        if isinstance(down, New):
            return self._of_distances(down.rows[:, np.asarray(across, np.int64)])
        return self._of_distances(self.space.rows[np.ix_(down, across)])

    def _of_rows(self, rows_down: Any, rows_across: Any) -> np.ndarray:
        products = rows_down @ rows_across.T
        products = products.toarray() if issparse(products) else products
        of_one, of_other = _squares(rows_down), _squares(rows_across)
        # Squared lengths serve both kinds: shared over all features, or squared distances.
        if self.kernel == "tanimoto":
            return _tanimoto(products, of_one, of_other)
        if self.kernel == "linear":
            return products
        squares = self._apart(products, of_one, of_other, rows_down is rows_across)
        return self.of_squares(squares, out=squares)

    def _apart(
        self, products: np.ndarray, of_one: np.ndarray, of_other: np.ndarray, is_one: bool
    ) -> np.ndarray:
        squares = _apart(products, of_one, of_other)
        if self.is_single and is_one:
            # What rounding leaves between a row and itself would count as much as a ridge.
            np.fill_diagonal(squares, 0.0)
        return squares

    def _of_distances(self, distances: np.ndarray) -> np.ndarray:
        squares = self._squares_of(distances)
        return self.of_squares(squares, out=squares)

    def _squares_of(self, distances: np.ndarray) -> np.ndarray:
        return np.minimum(distances.astype(np.float64) / self.unit(), FAR) ** 2

    def squared_distances(self, down: Any, across: Any) -> np.ndarray:
        """Return squared distances of some rows (down) from others, in the unit of the space."""
        if not self.space.has_vectors:
            return self._squares_of(self.space.rows[np.ix_(down, across)])
        rows_down, rows_across = self._pair(down, across)
        products = rows_down @ rows_across.T
        products = products.toarray() if issparse(products) else products
        of_one, of_other = _squares(rows_down), _squares(rows_across)
        return self._apart(products, of_one, of_other, rows_down is rows_across)

    def of_squares(self, squares: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel of rows at these squared distances, for a kernel that has a width.

        It is written into `out`, which may be the squares themselves, if that is given.
        """
        if self.kernel == "rbf":
            scaled = np.multiply(squares, -0.5 / self.width**2, out=out)
        else:
            scaled = np.sqrt(squares, out=out)
            scaled *= -1.0 / self.width
        return np.exp(scaled, out=scaled)

    def lately(self, name: Hashable, rows: np.ndarray, compute: Callable[[], Value]) -> Value:
        """Return what was computed of some rows' kernel lately, or compute it."""
        return self.recent.once(self.key(name, rows), compute)

    @property
    def recent(self) -> Recent:
        """What was computed lately for kernels of the space, some known rows or a strength."""
        return self.space.once("recent", lambda: Recent(RECENT_BYTES))

    def key(self, name: Hashable, rows: np.ndarray) -> Hashable:
        """Return the name of something that depends on the kernel of some rows."""
        return name, self.preparation, self.kernel, self.width, self.is_single, rows.tobytes()

    def own(self, rows: Any) -> np.ndarray:
        """Return the kernel of each row with itself."""
        if self.kernel != "linear":
            return np.ones(rows.size)
        return _squares(self._rows(rows))

    def _pair(self, down: Any, across: Any) -> tuple[Any, Any]:
        """Return two parts of the rows; one array for both, whose product takes half the time."""
        rows_down = self._rows(down)
        return rows_down, rows_down if down is across else self._rows(across)

    def _rows(self, numbers: Any) -> Any:
        """Return prepared rows in the unit of the space; dense ones are centred."""
        if isinstance(numbers, New):
            return self._scaled(numbers.rows)
        return self._scaled(self.space.prepared(self.preparation)[np.asarray(numbers, np.int64)])

    def _scaled(self, rows: Any) -> Any:
        dtype, far = (np.float32, FAR_SINGLE) if self.is_single else (np.float64, FAR)
        # Features that are 0 or 1 have a unit already, and no centre.
        if self.kernel == "tanimoto":
            return rows.astype(dtype)
        rows = rows.astype(np.float64)
        # Sparse rows are not centred: that would fill them.
        if issparse(rows):
            rows = rows * (1.0 / self.unit())
            rows.data = np.clip(rows.data, -far, far) if self.is_single else rows.data
            return rows.astype(dtype, copy=False)
        # Centred, because differences of large numbers would lose their digits.
        steps = (rows - self.centre()) / self.unit()
        return np.clip(steps, -far, far, out=steps).astype(dtype, copy=False)

    def centre(self) -> np.ndarray:
        """Return the mean of all prepared rows."""
        key = ("kernel centre", self.preparation)
        rows = self.space.prepared(self.preparation)
        return self.space.once(key, lambda: rows.mean(axis=0, dtype=np.float64))

    def parts(self) -> dict[str, Any]:
        """Return what a model stores of the kernel, by name: mean and unit of the fitted rows."""
        has_centre = isinstance(self.space.prepared(self.preparation), np.ndarray)
        parts: dict[str, Any] = {}
        if self.space.has_vectors and has_centre:
            parts[f"kernel centre {self.preparation}"] = self.centre()
        return parts | {f"kernel unit {self.preparation}": self.unit()}

    def unit(self) -> float:
        """Return the typical distance of two rows."""
        key = ("kernel unit", self.preparation)
        return self.space.once(key, lambda: _median_distance(self.space, self.preparation))


def check_kernel(space: Space, kernel: str) -> None:
    """Refuse a kernel that the rows of a space do not admit, with the reason.

    Examples
    --------
    >>> check_kernel(Space(np.array([[0.5], [1.0]])), "tanimoto")
    Traceback (most recent call last):
    vecfill.errors.InputError: kernel='tanimoto' is for features that are 0 or 1, ...
    """
    if kernel not in BY_DISTANCE:
        space.refuse_without_vectors(f"kernel={kernel!r}")
    if kernel == "tanimoto" and not is_binary(space):
        raise InputError(
            "kernel='tanimoto' is for features that are 0 or 1, such as fingerprints, and these "
            "have other values. Use kernel='rbf'."
        )


def is_binary(space: Space) -> bool:
    """Tell whether all features of a space are 0 or 1.

    Examples
    --------
    >>> is_binary(Space(np.eye(3))), is_binary(Space(np.eye(3) / 2))
    (True, False)
    """

    def looked_up() -> bool:
        values = space.rows.data if issparse(space.rows) else space.rows
        return bool(((values == 0) | (values == 1)).all())

    return space.has_vectors and space.once("is binary", looked_up)


def _apart(products: np.ndarray, of_left: np.ndarray, of_right: np.ndarray) -> np.ndarray:
    """Turn products of rows into squared distances, by the squared lengths of both."""
    # In place: these arrays are large, and each pass over them takes as long as the product.
    products *= -2.0
    products += of_left[:, None]
    products += of_right
    return np.maximum(products, 0.0, out=products)


def _tanimoto(products: np.ndarray, of_left: np.ndarray, of_right: np.ndarray) -> np.ndarray:
    """Return shared features over all features of each pair; two rows without any are equal."""
    either = of_left[:, None] + of_right - products
    return np.divide(products, either, out=np.ones_like(products), where=either > 0)


def _squares(rows: Any) -> np.ndarray:
    if issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    # In 64 bits and then rounded: near rows are told apart by the digits that a product leaves.
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64).astype(rows.dtype, copy=False)


def _median_distance(space: Space, preparation: str) -> float:
    """Return the median distance of distinct rows in an even sample of the space."""
    n_sampled = min(space.n_rows, N_SAMPLED)
    # Evenly, not at random: rows are often in order of frequency, and all of it should count.
    sample = np.linspace(0, space.n_rows - 1, n_sampled).astype(np.int64)
    if not space.has_vectors:
        distances = space.rows[np.ix_(sample, sample)].astype(np.float64)
        return float(np.median(distances[distances > 0])) if distances.any() else 1.0
    rows = space.prepared(preparation)[sample].astype(np.float64)
    # By the largest entry first: squares of extreme features are no numbers.
    size = float(abs(rows).max() if rows.size else 0.0) or 1.0
    rows = rows / size
    # Sparse rows are not centred: that would fill them.
    rows = rows if issparse(rows) else rows - rows.mean(axis=0)
    products = rows @ rows.T
    products = products.toarray() if issparse(products) else products
    squares = _squares(rows)
    squares = squares[:, None] + squares - 2.0 * products
    apart = np.concatenate([line[place + 1 :] for place, line in enumerate(squares)])
    # Duplicates are no measure of how far rows lie apart.
    apart = apart[apart > 1e-20]
    # Rows that are all equal have no unit, and any will do.
    return size * float(np.sqrt(np.median(apart))) if apart.size else size


class Sized(Protocol):
    """What knows how much memory it takes, as arrays do."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


Value = TypeVar("Value", bound=Sized)


class Recent:
    """The things asked for last that fit into so many bytes together; the last one stays anyway.

    Examples
    --------
    >>> recent = Recent(most_bytes=20)
    >>> recent.once("a", lambda: np.zeros(2)), recent.once("a", lambda: np.ones(2))
    (array([0., 0.]), array([0., 0.]))
    >>> recent.once("b", lambda: np.ones(2)), recent.once("a", lambda: np.ones(2))
    (array([1., 1.]), array([1., 1.]))
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: dict[Hashable, Any] = {}
        self._lock = Lock()

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what is under a key if it is still there, or compute it."""
        value = self.get(key)
        # Others need not wait meanwhile, and two that want the same get the same bits.
        return self.put(key, compute()) if value is None else value

    def get(self, key: Hashable) -> Any:
        """Return what is under a key, or None if it was forgotten."""
        with self._lock:
            value = self._kept.pop(key, None)
            if value is not None:
                self._kept[key] = value
            return value

    def put(self, key: Hashable, value: Value) -> Value:
        """Keep something under a key, and return it."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > 1 and self._n_bytes() > self.most_bytes:
                del self._kept[next(iter(self._kept))]
        return value

    def _n_bytes(self) -> int:
        return sum(value.nbytes for value in self._kept.values())

    def __reduce__(self) -> tuple[type[Recent], tuple[int]]:
        # Large, and quick to make again.
        return Recent, (self.most_bytes,)
