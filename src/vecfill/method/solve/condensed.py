"""One solve for all folds: known rows as mixes of known rows, the unknown ones eliminated.

Folds that hide known rows in turn have one thing in common: the rows that are unknown in all of
them. Eliminating these leaves weights among known rows alone::

    M = W_kk + W_ku (I - W_uu)^-1 W_uk

in which each fold is a small dense system: the mixes of its hidden rows are
``(I - M_hh)^-1 M_hs``, the same as if all rows that it does not see had been solved for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array

from vecfill._types import KnownMask
from vecfill.machine.blas import one_blas_thread
from vecfill.method.engine import Workers
from vecfill.method.solve.system import RESIDUAL_TOL, UnknownSystem

# A guess; decision 26 has what columns that begin at one row took.
CHEAPER = 1.5
"""How many times longer a column of the transposed equations takes."""


@dataclass(frozen=True, eq=False)
class Condensed:
    """Known rows as convex mixes of all known rows, after the unknown ones were eliminated."""

    rows: np.ndarray
    """Numbers of the known rows whose mixes are here, ascending."""
    known: np.ndarray
    """Numbers of all known rows, ascending."""
    mixes: np.ndarray
    """(n_rows, n_known); each row sums to one, and a row may be a part of its own mix."""

    @one_blas_thread()
    def shares(self, hidden: np.ndarray) -> np.ndarray:
        """Return the share of every other known row (across) in rows hidden together (down).

        Examples
        --------
        A row between two known ones and an unknown one that is halfway to the left:

        >>> weights = csr_array(np.array([[0, 1, 0, 0], [0.5, 0, 0, 0.5], [0, 1, 0, 0],
        ...                               [0.5, 0, 0.5, 0]]))
        >>> is_known = np.array([True, True, True, False])
        >>> condensed(weights, is_known, np.array([1])).shares(np.array([1]))
        array([[0.75, 0.25]])
        """
        mine = self.mixes[np.searchsorted(self.rows, hidden)]
        is_hidden = np.zeros(self.known.size, np.bool_)
        is_hidden[np.searchsorted(self.known, hidden)] = True
        among_hidden = np.eye(hidden.size) - mine[:, is_hidden]
        # Rounding alone makes a share negative.
        shares = np.maximum(np.linalg.solve(among_hidden, mine[:, ~is_hidden]), 0.0)
        return shares / shares.sum(axis=1, keepdims=True)


def condensed(
    weights: csr_array,
    is_known: KnownMask,
    rows: np.ndarray,
    *,
    tol: float = RESIDUAL_TOL,
    n_jobs: Workers = None,
) -> Condensed:
    """Return some known rows, ascending, as mixes of known rows alone.

    One column is solved for each of the rows, or for each known row if those are not many more,
    whatever number of folds will hide them.
    """
    known, unknown = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    mine = csr_array(weights[rows])
    mixes = mine[:, known].toarray()
    if unknown.size:
        system = UnknownSystem(weights, is_known)
        entering = csr_array(mine[:, unknown])
        if known.size <= rows.size * CHEAPER:
            mixes += system.seen_through_unknown(entering, tol=tol, n_jobs=n_jobs)
        else:
            mixes += system.through_unknown(csc_array(entering.T), tol=tol, n_jobs=n_jobs).T
    return Condensed(rows, known, mixes / mixes.sum(axis=1, keepdims=True))


@one_blas_thread()
def condensed_from(weights: csr_array, is_known: KnownMask, shares: np.ndarray) -> Condensed:
    """Return all known rows as mixes of known rows, from the `shares` of those in unknown rows.

    Examples
    --------
    >>> weights = csr_array(np.array([[0, 0.5, 0.5], [1, 0, 0], [0.25, 0.75, 0]]))
    >>> is_known = np.array([True, True, False])
    >>> condensed_from(weights, is_known, np.array([[0.25, 0.75]])).mixes
    array([[0.125, 0.875],
           [1.   , 0.   ]])
    """
    known = np.flatnonzero(is_known)
    mine = csr_array(weights[known])
    mixes = mine[:, known].toarray() + mine[:, np.flatnonzero(~is_known)] @ shares
    return Condensed(known, known, mixes / mixes.sum(axis=1, keepdims=True))
