"""What can be seen of an imputed row without its truth; each signal is one entry of `SIGNALS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from vecfill._lengths import row_lengths
from vecfill.method.engine import row_blocks
from vecfill.model.directions import leading_axes, unit
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Prediction
from vecfill.model.wanted import ALL, Wanted

N_PROBES = 32
"""Random signs whose spread tells how many contributors a row has."""

N_DIRECTIONS = 64
"""Dimensions in which the contributors of a row are compared: the leading ones."""

ROWS_PER_BLOCK = 4096

SPREAD_TOL = 1e-6


@dataclass(frozen=True)
class Seen:
    """What the signals are computed from."""

    rows: np.ndarray
    """Numbers of the rows that were imputed, by which their trend is looked up."""
    vectors: np.ndarray
    """(n_imputed, n_dims) as predicted."""
    composition: Composition
    centre: np.ndarray
    """Mean of the known vectors."""
    directions: np.ndarray
    """(n_imputed, at most n_dims) the mix of the known rows' directions from the centre."""
    probes: np.ndarray
    """(n_imputed, n_probes) the mix of random signs."""


def agreement(seen: Seen) -> np.ndarray:
    """Return how far the contributors point in one direction, from 0 to 1."""
    return np.linalg.norm(seen.directions, axis=1)


def concentration(seen: Seen) -> np.ndarray:
    """Return the logarithm of the sum of squared shares: high if few rows contribute.

    The propagated signs of one row have variance sum(share²), whatever the shares are.
    """
    return np.log(np.maximum((seen.probes**2).mean(axis=1), 1e-12))


def length(seen: Seen) -> np.ndarray:
    """Return how far the vector lies from the mean of the known ones."""
    return _apart(seen, lambda part: seen.vectors[part])


def trend_length(seen: Seen) -> np.ndarray:
    """Return how far the trend alone lies from the mean of the known vectors."""
    trend = seen.composition.trend
    if trend is None:
        return np.zeros(len(seen.vectors))
    return _apart(seen, lambda part: trend.at(seen.rows[part]))


def _apart(seen: Seen, vectors: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return how far vectors lie from the centre, in parts: in 64 bits all would take much room."""
    apart = np.empty(len(seen.vectors))
    for part in row_blocks(apart.size, ROWS_PER_BLOCK):
        apart[part] = row_lengths(vectors(part) - seen.centre)
    return apart


SIGNALS: Mapping[str, Callable[[Seen], np.ndarray]] = MappingProxyType(
    {
        "agreement": agreement,
        "concentration": concentration,
        "length": length,
        "misfit": lambda seen: seen.composition.mix.misfit(),
        "straight": lambda seen: seen.composition.mix.straight(),
        "trend_length": trend_length,
        "tightness": lambda seen: seen.composition.mix.tightness(),
    }
)
"""Every signal by name; the order is that of the columns."""


def signals(
    given: KnownRows,
    prediction: Prediction,
    wanted: Wanted = ALL,
    *,
    carried: Callable[[], np.ndarray] | None = None,
    centre: np.ndarray | None = None,
) -> np.ndarray:
    """Return every signal of the rows that were asked for, (n_wanted, n_signals).

    `carried` and `centre` are what `mixed_values` gives, if a caller has it already.

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> from vecfill.model.space import Space
    >>> given = KnownRows(np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True]))
    >>> found = LatentSemantic(min_degree=2).predict(Space(np.arange(3.0)[:, None]), given)
    >>> signals(given, found).shape == (1, len(SIGNALS))
    True
    """
    if carried is None or centre is None:
        values, centre = mixed_values(given)
        carried = lambda: values  # noqa: E731
    spread = prediction.composition.mix.carried(carried, tol=SPREAD_TOL)
    seen = Seen(
        wanted.numbers(given),
        prediction.vectors,
        prediction.composition,
        centre,
        spread[:, :-N_PROBES],
        spread[:, -N_PROBES:],
    )
    return np.column_stack([signal(seen) for signal in SIGNALS.values()])


def mixed_values(given: KnownRows) -> tuple[np.ndarray, np.ndarray]:
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
    known = given.known.astype(np.float64)
    centre = known.mean(axis=0)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), N_PROBES))
    directions = unit(known - centre)
    if directions.shape[1] > N_DIRECTIONS:
        directions = directions @ leading_axes(directions, N_DIRECTIONS)
    return np.hstack([directions, probes]), centre
