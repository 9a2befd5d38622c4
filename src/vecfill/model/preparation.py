"""Domain vectors -> the geometry in which rows are compared; each preparation by its name.

Every one is a pure function of the whole matrix, keeps float32, and is safe for rows of zeros.
Sparse matrices stay sparse, except where a component is removed, which fills every entry. What one
has learnt from the columns is a `FittedPreparation`, so that rows which come later are prepared
alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from vecfill.errors import InputError
from vecfill.inputs.prepared import Matrix
from vecfill.inputs.table.scaling import inverse, standardized
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import row_blocks
from vecfill.model.rank_normal import RankNormal, own_scores
from vecfill.model.smooth import Smooth

SMALL = 500
"""Rows or columns up to which a Gram matrix is decomposed whole, which is quick then. A guess."""

N_ROUNDS = 30
"""Power steps for the first direction of a larger matrix. A guess that is on the safe side: what is
left of the others falls with the power of twice as many."""

ROUNDING = 1e-12
"""Length, relative to the largest entry, below which a row from which a component was taken holds
nothing but rounding errors of 64 bits."""

MOST_DENSE = 1 << 31
"""Bytes that removing a component of a sparse matrix may fill: 2 GB, a guess at what can be had."""

MOST_STEPS = 4096
"""Distinct values of a column whose ranks are kept: 64 KB a column, and ranks within .03 %."""

ROWS_PER_BLOCK = 2048
"""Rows that are in the cache at once."""


def as_given(domain: Matrix) -> Matrix:
    """Return the vectors unchanged.

    Examples
    --------
    >>> as_given(np.array([[1.0, 2.0]]))
    array([[1., 2.]])
    """
    return domain


def unit_rows(domain: Matrix) -> Matrix:
    """Return rows of length 1, so that distance means angle; a row of zeros stays one.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if isinstance(domain, csr_array):
        largest = abs(domain).max(axis=1).toarray().ravel().astype(np.float64)
        # By the largest entry first: squares of extreme numbers overflow or vanish.
        scaled = diags_array(inverse(largest)) @ domain
        length = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        return csr_array(diags_array(inverse(length)) @ scaled).astype(domain.dtype)
    units = np.empty_like(domain)
    # In 64 bits and in parts: a float32 matrix is never held twice over.
    for part in row_blocks(len(domain), ROWS_PER_BLOCK):
        exact = domain[part].astype(np.float64)
        exact *= inverse(np.abs(exact).max(axis=1, initial=0.0))[:, None]
        exact *= inverse(np.linalg.norm(exact, axis=1))[:, None]
        units[part] = exact
    return units


def unit_rows_without_first_component(domain: Matrix) -> Matrix:
    """Return unit rows after the first principal component has been taken out of the columns.

    For returns of companies that component is the market, which all share. The result is
    dense; a sparse matrix that would not fit is refused.

    Examples
    --------
    >>> shared = np.array([[9.0, 1.0], [-9.0, 1.0], [8.0, -1.0], [-8.0, -1.0]])
    >>> unit_rows_without_first_component(shared)[:, 1].round(6)
    array([ 1.,  1., -1., -1.])
    """
    if isinstance(domain, csr_array):
        n_rows, n_features = domain.shape
        if n_rows * n_features * domain.dtype.itemsize > MOST_DENSE:
            raise InputError(
                f"removing a component fills all {n_rows:,} x {n_features:,} entries of this "
                "sparse domain. Choose 'unit_rows', or reduce the columns first."
            )
    return FittedPreparation.of("unit_rows_without_first_component", domain).applied(domain)


def rank_normal(domain: Matrix) -> Matrix:
    """Return columns whose values are normal scores of their ranks, so that only order counts.

    Skewed columns and outliers lose their hold on distances. `RankNormal.fitted` keeps what is
    needed to prepare other rows in the same way.

    Examples
    --------
    >>> rank_normal(np.array([[1.0], [2.0], [1000.0]])).round(2).ravel()
    array([-0.97,  0.  ,  0.97])
    """
    if isinstance(domain, csr_array):
        return RankNormal.fitted(domain).applied(domain)
    scores = np.empty(domain.shape, domain.dtype)
    for column in range(domain.shape[1]):
        scores[:, column] = own_scores(domain[:, column].astype(np.float64))
    return scores


def rank_normal_unit_rows(domain: Matrix) -> Matrix:
    """Return the same with rows of length 1.

    Examples
    --------
    >>> rank_normal_unit_rows(np.array([[1.0, 5.0], [2.0, 9.0], [8.0, 6.0]])).round(2)[0]
    array([-0.71, -0.71])
    """
    return unit_rows(rank_normal(domain))


def smooth(domain: Matrix) -> Matrix:
    """Return columns with smooth bins in the place of every column of many values.

    Sums over columns can then follow a curve, and distances say who is near along it.

    Examples
    --------
    >>> smooth(np.arange(1980.0, 2020.0)[:, None]).shape
    (40, 11)
    """
    return Smooth.fitted(domain).applied(domain)


PREPARATIONS: Mapping[str, Callable[[Matrix], Matrix]] = MappingProxyType(
    {
        "as_given": as_given,
        "standardized": standardized,
        "unit_rows": unit_rows,
        "unit_rows_without_first_component": unit_rows_without_first_component,
        "rank_normal": rank_normal,
        "rank_normal_unit_rows": rank_normal_unit_rows,
        "smooth": smooth,
    }
)
"""The preparations by name, in the order in which they are tried."""

_IN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "standardized": "columns standardized",
        "unit_rows": "rows of unit length",
        "unit_rows_without_first_component": "rows of unit length without their main direction",
        "rank_normal": "columns by rank",
        "rank_normal_unit_rows": "columns by rank, rows of unit length",
        "smooth": "numbers in smooth bins",
    }
)
"""What readers are told about a preparation; nothing about rows taken as they are."""


_LESS = re.compile(r"(\w+?)(?: without ((?:\d+ ?)+))?")
"""A preparation, and the columns of the domain that are left out first."""


def base_of(preparation: str) -> str:
    """Return a preparation without what it leaves out.

    Examples
    --------
    >>> base_of("rank_normal"), base_of("rank_normal without 0 1")
    ('rank_normal', 'rank_normal')
    """
    matched = _LESS.fullmatch(preparation)
    return preparation if matched is None else matched[1]


def without_columns(preparation: str, columns: Sequence[int]) -> str:
    """Return the name of a preparation of rows from which some columns are left out.

    Examples
    --------
    >>> without_columns("rank_normal", [0, 1])
    'rank_normal without 0 1'
    """
    return f"{base_of(preparation)} without {' '.join(map(str, columns))}"


def left_out_by(preparation: str) -> tuple[int, ...]:
    """Return the columns of the domain that a preparation leaves out.

    Examples
    --------
    >>> left_out_by("rank_normal without 0 1"), left_out_by("rank_normal")
    ((0, 1), ())
    """
    matched = _LESS.fullmatch(preparation)
    return () if matched is None or matched[2] is None else tuple(map(int, matched[2].split()))


def prepared_by(preparation: str, domain: Matrix) -> Matrix:
    """Return rows under a preparation, by its name; what it leaves out is 0 for all.

    Examples
    --------
    >>> prepared_by("as_given without 1", np.array([[1.0, 2.0]]))
    array([[1., 0.]])
    """
    return PREPARATIONS[base_of(preparation)](_blanked(preparation, domain))


def prepared_in_words(preparation: str) -> str:
    """Return what readers are told about a preparation; nothing about rows taken as they are."""
    parts = [_IN_WORDS.get(base_of(preparation), "")]
    parts += ["without columns that hurt"] if left_out_by(preparation) else []
    return ", ".join(filter(None, parts))


def _blanked(preparation: str, domain: Matrix) -> Matrix:
    columns = left_out_by(preparation)
    if not columns:
        return domain
    if max(columns) >= domain.shape[1]:
        raise InputError(
            f"preparation={preparation!r} leaves out column {max(columns)}, and the domain has "
            f"{domain.shape[1]}."
        )
    stays = np.ones(domain.shape[1], domain.dtype)
    stays[list(columns)] = 0
    return csr_array(domain @ diags_array(stays)) if issparse(domain) else domain * stays


def first_direction(centred: np.ndarray) -> np.ndarray:
    """Return the first principal direction, fully decomposed or, if large, by power steps."""
    n_rows, n_features = centred.shape
    if min(n_rows, n_features) == 0:
        return np.zeros(n_features)
    if n_features <= SMALL:
        return np.linalg.eigh(centred.T @ centred)[1][:, -1]
    if n_rows <= SMALL:
        direction = np.linalg.eigh(centred @ centred.T)[1][:, -1] @ centred
        length = np.linalg.norm(direction)
        return direction / length if length > 0 else direction
    # A block of directions converges by the gap to the ninth, not to the second.
    block = np.random.default_rng(0).standard_normal((n_features, 8))
    for _ in range(N_ROUNDS):
        block = np.linalg.qr(centred.T @ (centred @ block))[0]
    projected = centred @ block
    turns = np.linalg.eigh(projected.T @ projected)[1]
    return block @ turns[:, -1]


@dataclass(frozen=True, eq=False)
class FittedPreparation:
    """One preparation of a matrix, applicable to rows that were not in it.

    Examples
    --------
    >>> fitted = FittedPreparation.of("standardized", np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> fitted.applied(np.array([[2.0, 9.0]]))
    array([[0., 0.]])
    """

    name: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """What was learnt from the columns."""

    @classmethod
    def of(cls, name: str, rows: Matrix) -> FittedPreparation:
        """Return what a preparation learns from the rows that it was made of."""
        if left_out_by(name):
            return replace(cls.of(base_of(name), _blanked(name, rows)), name=name)
        if name == "standardized":
            return cls(name, _scales(rows))
        if name == "unit_rows_without_first_component":
            return cls(name, _first_component(rows))
        if name in ("rank_normal", "rank_normal_unit_rows"):
            fitted = RankNormal.fitted(rows).thinned(MOST_STEPS)
            ladders = {"ends": fitted.ends, "values": fitted.values, "scores": fitted.scores}
            return cls(name, ladders)
        return cls(name, vars(Smooth.fitted(rows))) if name == "smooth" else cls(name)

    def applied(self, rows: Matrix) -> Matrix:
        """Return other rows, prepared in the same way."""
        if left_out_by(self.name):
            base = replace(self, name=base_of(self.name))
            return base.applied(_blanked(self.name, rows))
        if self.name == "as_given":
            return rows
        if self.name == "unit_rows":
            return unit_rows(rows)
        if self.name == "standardized":
            return self._standardized(rows)
        if self.name == "unit_rows_without_first_component":
            return self._without_first_component(rows)
        if self.name == "smooth":
            return Smooth(**self.arrays).applied(rows)
        scores = RankNormal(**self.arrays).applied(rows)
        return unit_rows(scores) if self.name == "rank_normal_unit_rows" else scores

    def _standardized(self, rows: Matrix) -> Matrix:
        by_largest, by_spread = self.arrays["by_largest"], self.arrays["by_spread"]
        if isinstance(rows, csr_array):
            scaled = rows @ diags_array(by_largest)
            return csr_array(scaled @ diags_array(by_spread)).astype(rows.dtype)
        exact = rows.astype(np.float64) * by_largest
        exact -= self.arrays["mean"]
        exact *= by_spread
        return exact.astype(rows.dtype)

    @one_blas_thread()
    def _without_first_component(self, rows: Matrix) -> Matrix:
        dense = csr_array(rows).toarray() if issparse(rows) else rows
        exact = dense.astype(np.float64) / self.arrays["largest"] - self.arrays["mean"]
        direction = self.arrays["direction"]
        exact -= np.outer(exact @ direction, direction)
        # What only rounding has left of a row must not be blown up to length 1.
        exact[np.linalg.norm(exact, axis=1) < ROUNDING] = 0.0
        return unit_rows(exact).astype(rows.dtype)


def _scales(rows: Matrix) -> dict[str, np.ndarray]:
    """Return what `vecfill.inputs.table.scaling.standardized` multiplies and subtracts."""
    if isinstance(rows, csr_array):
        by_largest = inverse(np.maximum(abs(rows).max(axis=0).toarray().ravel(), 0).astype(float))
        scaled = rows @ diags_array(by_largest)
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        # A mean of squares less a squared mean has half the digits: below this it is rounding.
        spread[spread <= 1e-7] = 0
        return {"by_largest": by_largest, "by_spread": inverse(spread)}
    exact = rows.astype(np.float64)
    by_largest = inverse(np.abs(exact).max(axis=0, initial=0.0))
    exact *= by_largest
    varies = exact.min(axis=0, initial=np.inf) < exact.max(axis=0, initial=-np.inf)
    mean = exact.mean(axis=0)
    exact -= mean
    by_spread = inverse(np.where(varies, exact.std(axis=0), 0.0))
    return {"by_largest": by_largest, "mean": mean, "by_spread": by_spread}


@one_blas_thread()
def _first_component(rows: Matrix) -> dict[str, np.ndarray]:
    """Return what `unit_rows_without_first_component` takes out."""
    exact = (csr_array(rows).toarray() if issparse(rows) else rows).astype(np.float64)
    largest = float(np.abs(exact).max(initial=0.0)) or 1.0
    exact /= largest
    mean = exact.mean(axis=0) if len(exact) else np.zeros(exact.shape[1])
    exact -= mean
    return {"largest": np.array([largest]), "mean": mean, "direction": first_direction(exact)}
