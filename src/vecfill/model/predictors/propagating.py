"""How what is known reaches the unknown rows: values by a solver, or shares of known rows.

One solve for the shares of known rows can be less work than propagating vectors. If there are fewer
known rows than dimensions, their shares are fewer columns than the vectors. And folds that hide
known rows in turn differ in so little that one solve, with a column for each hidden row, serves all
of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from vecfill._types import KnownMask
from vecfill.errors import InputError
from vecfill.method.propagation import Convergence, cut_off_rows, propagate_known
from vecfill.method.solve.condensed import condensed, condensed_from
from vecfill.method.solve.system import UnknownSystem
from vecfill.model.known import KnownRows
from vecfill.model.prediction import CondensedMix
from vecfill.model.predictors.base import TOL, Hiding
from vecfill.model.space import Space, WeightsKey
from vecfill.wording import count

HARDER = 5
"""How many times longer sweeps take for a column that begins at one row than for smooth values: a
rough figure, of which no measurement is kept."""

MOST_CONDENSED = 4000
"""Hidden rows up to which one solve for all folds may pay: each fold inverts a dense matrix, whose
time grows with the cube of its rows."""

MOST_SHARES = 2_000_000
"""Pairs of unknown and known rows of which the shares are kept: 16 MB."""


def refuse_cut_off(weights: csr_array, is_known: KnownMask) -> None:
    """Refuse weights by which some unknown row reaches no known one."""
    rows = cut_off_rows(weights, is_known)
    if rows.size:
        raise InputError(
            f"No known row is reached through positive weights from "
            f"{count(rows.size, 'unknown row')} (the first is row {rows[0]}), so nothing "
            "determines the vectors there. Use weight_floor > 0 (the default is 0.1)."
        )


def are_few(known_rows: KnownRows) -> bool:
    """Tell whether to solve for the shares of the known rows, which are fewer than columns."""
    n_known, n_unknown = known_rows.n_known, known_rows.unknown.size
    is_few = 0 < n_known <= known_rows.n_dims and n_known * n_unknown <= MOST_SHARES
    return is_few and n_unknown > 0


def shares_of_known(
    space: Space, key: WeightsKey, is_known: KnownMask
) -> tuple[np.ndarray, Convergence]:
    """Return the share of every known row (across) in every unknown one (down), kept."""

    def solved() -> tuple[np.ndarray, Convergence]:
        # As finely as for the answer itself, so that it does not matter who asks first.
        columns, options = np.eye(int(is_known.sum())), {"tol": TOL, "n_jobs": space.n_jobs}
        solution = propagate_known(space.weights(key), columns, is_known, **options)
        return solution.vectors, solution.convergence()

    return space.once(("shares", key, is_known.tobytes()), solved)


def pays(space: Space, key: WeightsKey, folds: Sequence[Hiding]) -> bool:
    """Tell whether one solve for all folds costs less than one for each of them.

    The first has a column for each hidden row, the others have the embedding's columns twice. A
    factor takes as long for either; to sweeps, columns that begin at one row are harder.
    """
    # Counted in columns, which is what a solver's time is proportional to.
    n_hidden = sum(places.size for _, places in folds)
    n_columns = sum(2 * known_rows.n_dims for known_rows, _ in folds)
    if n_hidden > min(n_columns, MOST_CONDENSED):
        return False
    return HARDER * n_hidden <= n_columns or _is_thin(space, key, folds)


def condensed_mixes(
    space: Space, key: WeightsKey, folds: Sequence[Hiding], tol: float
) -> list[CondensedMix]:
    """Return how each fold's hidden rows are mixed, from one solve for all of them."""
    weights, is_known = space.weights(key), _known_in_any(folds)
    # Sorted, so that the answer does not depend on the order of the folds.
    hidden = np.sort(np.concatenate([known_rows.wanted(places) for known_rows, places in folds]))
    n_known = int(is_known.sum())
    if n_known <= 2 * hidden.size and n_known * (is_known.size - n_known) <= MOST_SHARES:
        # The shares of all known rows are about as many, and the answer itself needs them too.
        shared = condensed_from(weights, is_known, shares_of_known(space, key, is_known)[0])
    else:
        shared = condensed(weights, is_known, hidden, tol=tol, n_jobs=space.n_jobs)
    return [
        CondensedMix(
            space, key, known_rows, places, coefficients=shared.shares(known_rows.wanted(places))
        )
        for known_rows, places in folds
    ]


def _known_in_any(folds: Sequence[Hiding]) -> KnownMask:
    """Return which rows are known before folds hide some of them."""
    known_rows, places = folds[0]
    is_known = known_rows.is_known.copy()
    is_known[known_rows.wanted(places)] = True
    return is_known


def _is_thin(space: Space, key: WeightsKey, folds: Sequence[Hiding]) -> bool:
    """Tell whether the equations of rows that no fold shows are best factored."""
    is_known = _known_in_any(folds)
    # Smoothing changes weights, and not which of them there are: one answer serves all.
    system = ("thin", key.preparation, key.min_degree, int(is_known.sum()))
    return bool(is_known.all()) or space.once(
        system, lambda: UnknownSystem(space.weights(key), is_known).is_thin()
    )
