"""What can be seen of an imputed row without its truth; each signal is one entry of `SIGNALS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from vecfill.model.directions import unit
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Prediction

N_PROBES = 32
"""Random signs whose spread tells how many contributors a row has."""

SPREAD_TOL = 1e-6


@dataclass(frozen=True)
class Seen:
    """What the signals are computed from."""

    given: KnownRows
    vectors: np.ndarray
    """(n_unknown, n_dims) as predicted."""
    composition: Composition
    centre: np.ndarray
    """Mean of the known vectors."""
    directions: np.ndarray
    """(n_unknown, n_dims) the mix of the known rows' directions from the centre."""
    probes: np.ndarray
    """(n_unknown, n_probes) the mix of random signs."""


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
    return np.linalg.norm(seen.vectors - seen.centre, axis=1)


def trend_length(seen: Seen) -> np.ndarray:
    """Return how far the trend alone lies from the mean of the known vectors."""
    if seen.composition.trend is None:
        return np.zeros(len(seen.vectors))
    return np.linalg.norm(seen.composition.trend.values[seen.given.unknown] - seen.centre, axis=1)


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


def signals(given: KnownRows, prediction: Prediction) -> np.ndarray:
    """Return every signal of each unknown row, (n_unknown, n_signals).

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> from vecfill.model.space import Space
    >>> given = KnownRows(np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True]))
    >>> found = LatentSemantic(min_degree=2).predict(Space(np.arange(3.0)[:, None]), given)
    >>> signals(given, found).shape == (1, len(SIGNALS))
    True
    """
    known = given.known.astype(np.float64)
    centre = known.mean(axis=0)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), N_PROBES))
    values = np.hstack([unit(known - centre), probes])
    spread = prediction.composition.mix.spread(values, tol=SPREAD_TOL)
    seen = Seen(
        given,
        prediction.vectors,
        prediction.composition,
        centre,
        spread[:, :-N_PROBES],
        spread[:, -N_PROBES:],
    )
    return np.column_stack([signal(seen) for signal in SIGNALS.values()])
