"""What can be seen of an imputed row without its truth; each signal is one entry of `SIGNALS`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from vecfill.errors import InputError
from vecfill.machine.lengths import leading_axes, row_lengths, unit
from vecfill.method.engine import row_blocks
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Prediction
from vecfill.model.wanted import ALL, Wanted

N_PROBES = 32
"""Random signs whose spread tells how many contributors a row has."""

# From decision 27.
N_DIRECTIONS = 64
"""Dimensions in which the contributors of a row are compared: the leading ones."""

ROWS_PER_BLOCK = 4096

# Ranks of signals are used, so digits beyond the sixth would change nothing. A guess.
SPREAD_TOL = 1e-6


class Mixed(Protocol):
    """What a mix tells about each row."""

    def misfit(self) -> np.ndarray:
        """Return how badly its neighbors explain each row in the domain."""
        ...

    def straight(self) -> np.ndarray:
        """Return how much of each row's weight rests on known rows directly."""
        ...

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each row."""
        ...


@dataclass(frozen=True)
class Seen:
    """What the signals are computed from: for rows of the fit, later ones, and datasets."""

    vectors: np.ndarray
    """(n_imputed, n_dims) as predicted."""
    centre: np.ndarray
    """Mean of the known vectors."""
    mix: Mixed
    trend: Callable[[slice], np.ndarray] | None
    """Gives the trend's vectors for some of the rows, if there is one."""
    directions: np.ndarray
    """(n_imputed,) squared length of the mix of the known rows' directions from the centre."""
    probes: np.ndarray
    """(n_imputed,) squared length of the mix of `N_PROBES` random signs."""


def agreement(rows: Seen) -> np.ndarray:
    """Return how far the contributors point in one direction, from 0 to 1."""
    return np.sqrt(rows.directions)


def concentration(rows: Seen) -> np.ndarray:
    """Return the logarithm of the sum of squared shares: high if few rows contribute.

    The propagated signs of one row have variance sum(share²), whatever the shares are.
    """
    # Never zero, but rounding of a solution could make it so.
    return np.log(np.maximum(rows.probes / N_PROBES, 1e-12))


def length(rows: Seen) -> np.ndarray:
    """Return how far the vector lies from the mean of the known ones."""
    return _apart(rows, lambda part: rows.vectors[part])


def trend_length(rows: Seen) -> np.ndarray:
    """Return how far the trend alone lies from the mean of the known vectors."""
    return np.zeros(len(rows.vectors)) if rows.trend is None else _apart(rows, rows.trend)


def _apart(rows: Seen, vectors: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return how far vectors lie from the centre, in parts: in 64 bits all would take much room."""
    apart = np.empty(len(rows.vectors))
    for part in row_blocks(apart.size, ROWS_PER_BLOCK):
        apart[part] = row_lengths(vectors(part) - rows.centre)
    return apart


SIGNALS: Mapping[str, Callable[[Seen], np.ndarray]] = MappingProxyType(
    {
        "agreement": agreement,
        "concentration": concentration,
        "length": length,
        "misfit": lambda rows: rows.mix.misfit(),
        "straight": lambda rows: rows.mix.straight(),
        "trend_length": trend_length,
        "tightness": lambda rows: rows.mix.tightness(),
    }
)
"""Every signal by name; the order is that of the columns."""


def signals(
    known_rows: KnownRows,
    prediction: Prediction,
    wanted: Wanted = ALL,
    *,
    names: Collection[str] | None = None,
    carried: np.ndarray | None = None,
    centre: np.ndarray | None = None,
) -> np.ndarray:
    """Return the signals of the rows that were asked for, (n_wanted, n_signals).

    `names` are those of the signals, by default all. `carried` is the mix of what `mixed_values`
    gives, and `centre` the mean that it gives, if a caller has both already.

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> from vecfill.model.space import Space
    >>> given = KnownRows(np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True]))
    >>> prediction = LatentSemantic(min_degree=2).predict(Space(np.arange(3.0)[:, None]), given)
    >>> signals(given, prediction).shape == (1, len(SIGNALS))
    True
    """
    rows = seen_of(known_rows, prediction, wanted, carried=carried, centre=centre)
    return signals_of(rows, names)


def seen_of(
    known_rows: KnownRows,
    prediction: Prediction,
    wanted: Wanted = ALL,
    *,
    carried: np.ndarray | None = None,
    centre: np.ndarray | None = None,
) -> Seen:
    """Return what the signals of a prediction are computed from."""
    mix, trend = prediction.composition.mix, prediction.composition.trend
    if carried is None or centre is None:
        values, centre = mixed_values(known_rows)
        carried = mix.carried(lambda: values, tol=SPREAD_TOL)
    squares, numbers = carried**2, wanted.numbers(known_rows)
    return Seen(
        prediction.vectors,
        centre,
        mix,
        None if trend is None else lambda part: trend.at(numbers[part]),
        squares[:, :-N_PROBES].sum(axis=1),
        squares[:, -N_PROBES:].sum(axis=1),
    )


def signals_of(rows: Seen, names: Collection[str] | None = None) -> np.ndarray:
    """Return the signals of these names of the rows that are seen, (n_rows, n_signals)."""
    names = SIGNALS if names is None else names
    # A model may come from a vecfill with a signal of a plugin. Leaving it out would shift columns.
    missing = [name for name in names if name not in SIGNALS]
    if missing:
        raise InputError(
            f"confidence was learnt from the signal {missing[0]!r}, which is not there. Use the "
            "vecfill that has it, or impute again."
        )
    return np.column_stack([SIGNALS[name](rows) for name in names])


def mixed_values(known_rows: KnownRows) -> tuple[np.ndarray, np.ndarray]:
    """Return what known rows carry to be mixed as vectors are, and the mean of the known vectors.

    These are their directions from the mean, of many dimensions the leading ones, and random
    signs, `N_PROBES` of them.

    Examples
    --------
    >>> given = KnownRows(np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True]))
    >>> values, centre = mixed_values(given)
    >>> values[:, 0], centre
    (array([-1.,  1.]), array([1.]))
    """
    known = known_rows.known.astype(np.float64)
    centre = known.mean(axis=0)
    # The same signs at the fit and later, since `add` must see what the fit saw.
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), N_PROBES))
    directions = unit(known - centre)
    # Each dimension is one more column to solve for; the leading ones hold most of a direction.
    if directions.shape[1] > N_DIRECTIONS:
        directions = directions @ leading_axes(directions, N_DIRECTIONS)
    return np.hstack([directions, probes]), centre
