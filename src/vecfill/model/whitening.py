"""Directions in which known vectors vary little, strengthened.

A few directions hold most of what varies among vectors, and estimates lie along them even more.
What tells one entity from its neighbors lies in the others. So a step from the mean is divided, in
each direction, by a power of the variance of known vectors there. Ranks gain by it, and cosines
with the truth lose. Since it is one linear map for all, a row stays the same mix as before: of
known vectors to which the same was done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import row_lengths
from vecfill.method.scaling import well_scaled

FLOOR = 0.1
"""Share of the mean variance that is added to each: next to no variance is mostly noise."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """Directions in which known vectors differ, and how much they do.

    Examples
    --------
    >>> known = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> steps = np.array([[1.0, 1.0]])
    >>> Whitening.of(known).applied(steps, 0.0), Whitening.of(known).applied(steps, 0.5).round(1)
    (array([[1., 1.]]), array([[0.5, 1.3]]))
    """

    axes: np.ndarray
    """(n_dims, n_dims), a column each."""
    variances: np.ndarray
    """(n_dims,) along them, 1 on average, and the floor."""

    @classmethod
    @one_blas_thread()
    def of(cls, known: np.ndarray) -> Whitening:
        """Return the directions of known vectors."""
        # Their scale is of no importance, and squares of extreme numbers would overflow.
        steps = well_scaled(known.astype(np.float64))
        steps = steps - steps.mean(axis=0)
        variances, axes = np.linalg.eigh(steps.T @ steps)
        variances = np.maximum(variances, 0.0)
        mean = float(variances.mean())
        return cls(axes, (variances / mean if mean > 0 else np.ones(len(axes))) + FLOOR)

    def applied(self, steps: np.ndarray, power: float) -> np.ndarray:
        """Return steps divided by a power of the variance in each direction, as long as before."""
        if power == 0.0:
            return steps
        whitened = (steps @ self.axes * self.variances**-power) @ self.axes.T
        lengths, own_lengths = row_lengths(whitened), row_lengths(steps)
        factors = np.divide(own_lengths, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return whitened * factors[:, None]
