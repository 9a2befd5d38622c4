"""An imputed row -> the known rows it is made of.

An imputed row is exactly a convex mix of known rows: ``(I - W_qq)^-1 W_qp`` has rows that are not
negative and sum to one. One of them is one solve with the transposed system. Where the setting has
a trend, what is mixed are the known rows' residuals, and the trend's own part is told apart.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from vecfill._types import KnownMask
from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.method.propagation import split_weights
from vecfill.method.solve.krylov import GaussSeidel, solve_columns

MOST_ROWS_FACTORED = 3000
"""Larger systems are iterated: at 18,000 rows 0.01 s a row, where a factorisation takes 15 s first
and 0.035 s a row then."""
N_COLUMNS = 16


@dataclass(frozen=True)
class Explanation:
    """What an imputed vector is made of.

    Examples
    --------
    >>> told = Explanation("osmium", ("iron", "gold"), np.array([0.8, 0.2]), 0.0)
    >>> print(told)
    osmium is made of
       80.0 %  iron
       20.0 %  gold
    """

    word: str
    contributors: tuple[str, ...]
    """Known entities, the largest share first."""
    shares: np.ndarray
    """Their shares of the mix; all known entities' shares sum to one."""
    trend_share: float
    """Share of the trend in the vector's distance from the mean; 0 without a trend."""

    def __str__(self) -> str:
        lines = [f"{printable(self.word)} is made of"]
        if self.trend_share > 0:
            lines = [
                f"{printable(self.word)}: {self.trend_share:.0%} linear trend of the domain, and",
                "for the rest what the trend misses at",
            ]
        lines += [
            f"{share:7.1%}  {printable(name)}".replace("%", " %")
            for name, share in zip(self.contributors, self.shares, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON.

        Examples
        --------
        >>> Explanation("x", ("iron",), np.array([1.0]), 0.0).to_dict()["contributors"]
        [{'word': 'iron', 'share': 1.0}]
        """
        return {
            "word": self.word,
            "trend_share": self.trend_share,
            "contributors": [
                {"word": name, "share": float(share)}
                for name, share in zip(self.contributors, self.shares, strict=True)
            ],
        }


class Contributions:
    """Shares of known rows in unknown ones, row by row, on one factorisation.

    Examples
    --------
    >>> weights = csr_array(np.array([[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]]))
    >>> Contributions(weights, np.array([True, False, True])).of([0])
    array([[0.75, 0.25]])
    """

    def __init__(self, weights: csr_array, is_known: KnownMask) -> None:
        self.on_known, self.on_unknown = split_weights(weights, is_known)
        self._factor = None
        self._transposed: Any = None

    def of(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the shares of all known rows in some unknown ones, numbered among themselves."""
        chosen = np.asarray(rows, dtype=np.int64)
        n_unknown = self.on_unknown.shape[0]
        shares = np.empty((chosen.size, self.on_known.shape[1]))
        for start in range(0, chosen.size, N_COLUMNS):
            part = chosen[start : start + N_COLUMNS]
            wanted = np.zeros((n_unknown, part.size))
            wanted[part, np.arange(part.size)] = 1.0
            shares[start : start + N_COLUMNS] = (self.on_known.T @ self._solved(wanted)).T
        shares = np.maximum(shares, 0.0)
        return shares / shares.sum(axis=1, keepdims=True)

    def _solved(self, wanted: np.ndarray) -> np.ndarray:
        n_unknown = self.on_unknown.shape[0]
        if n_unknown > MOST_ROWS_FACTORED:
            if self._transposed is None:
                self._transposed = csr_array(self.on_unknown.T)
            found, matrix = wanted.copy(), self._transposed
            _, residual = solve_columns(
                matrix, wanted, found, GaussSeidel(matrix), tol=1e-10, max_iter=3000
            )
            if residual <= 1e-8:
                return found
        if self._factor is None:
            system = (eye_array(n_unknown, format="csc") - self.on_unknown).tocsc()
            self._factor = splu(system, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return self._factor.solve(wanted, trans="T")


def place_of(word: str, imputed: Sequence[str], known: Sequence[str]) -> int:
    """Return the place of an imputed word, or say what the word is instead.

    Examples
    --------
    >>> place_of("osmium", ["osmium"], ["iron"])
    0
    """
    if word in imputed:
        return list(imputed).index(word)
    if word in known:
        raise InputError(
            f"{printable(word)!r} is known: its vector is the embedding's own, and is made of "
            f"nothing else. Ask for an imputed entity, such as {printable(imputed[0])!r}."
            if imputed
            else f"{printable(word)!r} is known, and nothing was imputed."
        )
    near = difflib.get_close_matches(word, [*imputed, *known], n=5, cutoff=0.5)
    hint = f" Near it: {', '.join(printable(name) for name in near)}." if near else ""
    raise InputError(f"{printable(word)!r} is not an entity of the table.{hint}")
