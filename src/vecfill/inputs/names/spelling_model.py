"""A model from the spelling of a word to its vector, as models that earlier versions saved hold it.

A word is the bag of its character n-grams, each n-gram has a vector, and the vector of a word is
the sum of those of its n-grams, divided by the root of their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.inputs.names.ngrams import columns_of, ngrams_of
from vecfill.machine.compiled import compiled


@dataclass(frozen=True, eq=False)
class SpellingModel:
    """Vectors of n-grams: those of the n-gram with hash `keys[i]` are row `rows[i]`."""

    keys: np.ndarray
    """(n_grams,) hashes, ascending."""
    rows: np.ndarray
    """(n_grams,) where the vector of an n-gram is; frequent n-grams come first."""
    vectors: np.ndarray
    """(n_grams, n_dims) in half precision, in units of `scale`."""
    mean: np.ndarray
    scale: float

    def predict(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return a vector for each name, and how many of its n-grams are known.

        A name without any known n-gram gets the mean vector.
        """
        grams = ngrams_of(names)
        columns, starts = columns_of(grams, self.keys, self.rows)
        n_grams = np.diff(starts)
        sums = np.zeros((len(names), len(self.mean)), np.float32)
        _add_up(columns, starts, self.vectors.astype(np.float32), sums)
        sums *= (self.scale / np.sqrt(np.maximum(n_grams, 1)))[:, None].astype(np.float32)
        return sums + self.mean, n_grams


@compiled
def _add_up(columns: np.ndarray, starts: np.ndarray, vectors: np.ndarray, sums: np.ndarray) -> None:
    for name in range(len(starts) - 1):
        for place in range(starts[name], starts[name + 1]):
            row = columns[place]
            for dim in range(sums.shape[1]):
                sums[name, dim] += vectors[row, dim]
