"""Check that a confidence signal is one number for each row, whenever the row came."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, New
from vecfill.testing.made import N_FITTED, N_KNOWN, made
from vecfill.trust.prove.signals import Seen, seen_of

Signal = Callable[[Seen], np.ndarray]


def check_signal(signal: Signal) -> None:
    """Check that a signal tells one finite number of each row, whenever the row came.

    Examples
    --------
    >>> check_signal(lambda seen: np.abs(seen.vectors).max(axis=1))
    """
    rows, vectors = made()
    space, is_known = Space(rows[:N_FITTED]), np.arange(N_FITTED) < N_KNOWN
    known_rows = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    for wanted in (ALL, New(rows[N_FITTED:])):
        predicted = seen_of(known_rows, PAPER.predict(space, known_rows, wanted), wanted)
        column = signal(predicted)
        assert column.shape == (len(predicted.vectors),), "not one number for each row"
        assert np.isfinite(column).all(), "some number is not finite"
        np.testing.assert_array_equal(signal(predicted), column, "another number when asked again")
