"""Known rows hidden fold by fold: what a method may see, and what it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vecfill._types import KnownMask
from vecfill.errors import InputError

N_GROUPS = 5
"""Parts in which the rows of one large fold are judged. The usual number of folds; a guess."""


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


def dealt_out(n_rows: int, n_groups: int = N_GROUPS) -> np.ndarray:
    """Return a group for each row of one large fold, so that each row is judged by the others.

    Examples
    --------
    >>> dealt_out(7)
    array([0, 1, 2, 3, 4, 0, 1])
    """
    return np.arange(n_rows) % n_groups


def judged_together(folds: Sequence[Fold], n_groups: int = N_GROUPS) -> np.ndarray:
    """Return the group of each hidden row: its fold, or a part of the only one.

    Examples
    --------
    >>> judged_together(list(hidden_folds(np.ones(4, bool), n_folds=2, seed=0)))
    array([0, 0, 1, 1])
    """
    sizes = [fold.hidden.size for fold in folds]
    # As one group, the rows of a single fold would leave none to learn from.
    return (
        dealt_out(sizes[0], n_groups)
        if len(sizes) == 1
        else np.repeat(np.arange(len(sizes)), sizes)
    )


def hidden_folds(
    is_known: KnownMask,
    *,
    n_folds: int,
    seed: int,
    enough: int | None = None,
    twins: np.ndarray | None = None,
) -> Iterator[Fold]:
    """Yield folds that hide each known row once, each as near to the same size as can be.

    With `enough`, no more folds are yielded once so many rows have been hidden: large sets need
    no second look at every row. Rows of which the same known row is the first in `twins` are hidden
    with it, and all others where they would be anyway (see `vecfill.trust.choose.twins`).

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
    # Entities often come sorted. A fold of rows that stand together would be harder than the
    # unknown rows are.
    order = np.random.default_rng(seed).permutation(known.size)
    fold_number = np.empty(known.size, np.int64)
    # Every n-th row, so that sizes differ by one at most and `enough` means the same for each.
    fold_number[order] = np.arange(known.size) % n_folds
    if twins is not None:
        fold_number = fold_number[np.searchsorted(known, twins[known])]
    n_hidden = 0
    for number in range(n_folds):
        if enough is not None and n_hidden >= enough:
            return
        # Where only twins were dealt, nothing is left of a fold.
        if not (places := np.flatnonzero(fold_number == number)).size:
            continue
        fold = fold_of(is_known, places)
        n_hidden += fold.hidden.size
        yield fold


def with_twins(places: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return places among known rows, ascending, with all others that have one of their numbers.

    Examples
    --------
    >>> with_twins(np.array([3, 0]), np.array([5, 6, 7, 6]))
    array([0, 1, 3])
    """
    return np.flatnonzero(np.isin(numbers, numbers[places]))


def rarest_block(
    is_known: KnownMask,
    rarity: np.ndarray,
    *,
    share: float,
    among: KnownMask | None = None,
    twins: np.ndarray | None = None,
) -> Fold:
    """Return a fold that hides a share of the known rows, the rarest ones, as one block.

    `rarity` has a value for each row, larger for rarer ones; of equals the later row is hidden.
    With `among`, rows are hidden among these known ones alone, and rows that have the number of a
    hidden one in `twins`.

    Examples
    --------
    >>> rarity = np.array([5.0, 1.0, np.nan, 3.0])
    >>> rarest_block(np.array([True, True, False, True]), rarity, share=1 / 3).hidden
    array([0])
    """
    known = np.flatnonzero(is_known)
    places = np.arange(known.size) if among is None else np.flatnonzero(among[known])
    # Stable, because counts have many ties and the block must be the same on every machine.
    order = places[np.argsort(rarity[known[places]], kind="stable")]
    # An empty block would have no scores to decide by.
    n_hidden = max(1, round(share * places.size))
    numbers = known if twins is None else twins[known]
    return fold_of(is_known, with_twins(order[places.size - n_hidden :], numbers))


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
