"""Lengths of what is imputed, away from the mean of the known vectors.

A prediction lies nearer to the mean than real vectors do: what nothing tells is left out of it. All
predictions then share the direction of the mean, and in a whole file they all have the same
neighbors. So each step from the mean is stretched by one factor, with which hidden rows are as
spread as their true vectors. Directions from the mean stay, and with them the mix of known rows,
centred cosines and ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vecfill.machine.lengths import unit
from vecfill.method.scaling import in_range_of, scaled_together
from vecfill.model.offset import Offsets

MOST = 4.0
"""Largest factor. Beyond it, whole-file ranks of hidden words do not gain (cities, GloVe: best from
2 to 3), and what is noise in a prediction grows with it."""

LONGEST = 1.5
"""How long steps may become, true ones being 1. Steps that are all alike, beside an offset or from
a mean near zero, need to be longer than true ones to be told apart: on rare cities 1.3."""

FEWEST = 20
"""Hidden rows whose spread says something."""

N_HALVINGS = 30


@dataclass(frozen=True)
class Stretch:
    """By what imputed steps from the mean are multiplied.

    Examples
    --------
    >>> Stretch(2.0, 3.0).factors(None, 2)
    array([2., 2.])
    """

    plain: float = 1.0
    rare: float = 1.0
    """For rows that get the offset of their rarity."""

    def factors(self, offsets: Offsets | None, n_rows: int) -> np.ndarray:
        """Return the factor of each unknown row."""
        if offsets is None:
            return np.full(n_rows, self.plain)
        return np.where(offsets.is_rare, self.rare, self.plain)


def stretch_of(start: np.ndarray, steps: np.ndarray, truth: np.ndarray) -> float:
    """Return the factor with which ``start + factor * steps`` is as spread as the truth.

    It is 1 if the steps are long enough already, at most `MOST`, and never makes steps longer than
    `LONGEST` times those to the truth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mean, steps = np.ones(5), rng.normal(size=(200, 5))
    >>> round(stretch_of(mean, steps / 2, mean + steps), 2)
    2.0
    """
    if len(truth) < FEWEST:
        return 1.0
    goal = spread(truth)
    # Never shorter: a step that is long already is no sign of collapse.
    if spread(start + steps) <= goal:
        return 1.0
    lengths = [
        float((steps_of_one**2).sum()) for steps_of_one in scaled_together(truth - start, steps)
    ]
    # 1e-300: steps of no length cannot be made longer, and their ratio only has to be finite.
    ratio = np.sqrt(lengths[0] / max(lengths[1], 1e-300))
    low, high = 1.0, float(np.clip(LONGEST * ratio, 1.0, MOST))
    if spread(start + high * steps) >= goal:
        return high
    # The spread falls as the factor grows, so halving finds where it meets the goal.
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if spread(start + middle * steps) > goal else (low, middle)
    return (low + high) / 2


def stretched(vectors: np.ndarray, start: np.ndarray, factor: np.ndarray | float) -> np.ndarray:
    """Return vectors whose steps from the start are so many times as long, in their precision.

    Examples
    --------
    >>> stretched(np.array([[2.0, 3.0]]), np.ones(2), 2.0)
    array([[3., 5.]])
    """
    return in_range_of(vectors.dtype, start + factor * (vectors - start))


def spread(vectors: np.ndarray) -> float:
    """Return the mean cosine between different rows: 1 if all point the same way.

    Examples
    --------
    >>> spread(np.eye(3)), spread(np.ones((3, 2)))
    (0.0, 1.0)
    """
    n_rows = len(vectors)
    if n_rows < 2:
        return 0.0
    directions = unit(np.asarray(vectors, np.float64))
    total = directions.sum(axis=0)
    with_itself = float(np.einsum("ij,ij->", directions, directions))
    # The sum of all cosines is the square of the summed directions: no pair is gone through.
    return round((float(total @ total) - with_itself) / (n_rows * (n_rows - 1)), 12)
