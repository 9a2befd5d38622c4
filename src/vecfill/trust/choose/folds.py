"""Known rows hidden fold by fold: what a method may see, and what it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vecfill._types import KnownMask
from vecfill.errors import InputError

N_GROUPS = 5
"""Parts in which the rows of one large fold are judged."""


@dataclass(frozen=True)
class Fold:
    """One fold: which rows may be seen, which are hidden, and where to find them."""

    is_seen: KnownMask
    """(n_rows,) known and not hidden."""
    hidden: np.ndarray
    """Row numbers of the hidden rows, ascending."""
    truth: np.ndarray
    """The hidden rows as places among the known rows."""
    places: np.ndarray
    """The hidden rows as places among all rows that are not seen."""


def dealt_out(n_rows: int) -> np.ndarray:
    """Return a group for each row of one large fold, so that each row is judged by the others.

    Examples
    --------
    >>> dealt_out(7)
    array([0, 1, 2, 3, 4, 0, 1])
    """
    return np.arange(n_rows) % N_GROUPS


def hidden_folds(
    is_known: KnownMask, *, n_folds: int, seed: int, enough: int | None = None
) -> Iterator[Fold]:
    """Yield folds that hide each known row once, each as near to the same size as can be.

    With `enough`, no more folds are yielded once so many rows have been hidden: large sets need
    no second look at every row.

    Examples
    --------
    >>> folds = list(hidden_folds(np.array([True, True, False, True]), n_folds=3, seed=0))
    >>> sorted(int(row) for fold in folds for row in fold.hidden)
    [0, 1, 3]
    """
    known = np.flatnonzero(is_known)
    if n_folds < 2 or n_folds > known.size:
        raise InputError(
            f"{n_folds} folds of {known.size} known rows cannot be hidden in turn. "
            f"Use from 2 to {known.size} folds."
        )
    order = np.random.default_rng(seed).permutation(known.size)
    n_hidden = 0
    for first in range(n_folds):
        if enough is not None and n_hidden >= enough:
            return
        fold = fold_of(is_known, np.sort(order[first::n_folds]))
        n_hidden += fold.hidden.size
        yield fold


def rarest_block(
    is_known: KnownMask, rarity: np.ndarray, *, share: float, among: KnownMask | None = None
) -> Fold:
    """Return a fold that hides a share of the known rows, the rarest ones, as one block.

    `rarity` has a value for each row, larger for rarer ones; of equals the later row is hidden.
    With `among`, rows are hidden among these known ones alone.

    Examples
    --------
    >>> rarity = np.array([5.0, 1.0, np.nan, 3.0])
    >>> rarest_block(np.array([True, True, False, True]), rarity, share=1 / 3).hidden
    array([0])
    """
    known = np.flatnonzero(is_known)
    places = np.arange(known.size) if among is None else np.flatnonzero(among[known])
    order = places[np.argsort(rarity[known[places]], kind="stable")]
    n_hidden = max(1, round(share * places.size))
    return fold_of(is_known, np.sort(order[places.size - n_hidden :]))


def fold_of(is_known: KnownMask, truth: np.ndarray) -> Fold:
    """Return the fold that hides the known rows at some places among them.

    Examples
    --------
    >>> fold = fold_of(np.array([True, False, True, True]), np.array([1]))
    >>> fold.hidden, fold.places
    (array([2]), array([1]))
    """
    hidden = np.flatnonzero(is_known)[truth]
    is_seen = is_known.copy()
    is_seen[hidden] = False
    return Fold(is_seen, hidden, truth, np.searchsorted(np.flatnonzero(~is_seen), hidden))
