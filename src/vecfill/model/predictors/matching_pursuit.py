"""Orthogonal matching pursuit: what mergekit's tokensurgeon does for new tokens."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill import checks
from vecfill.model.prediction import Prediction
from vecfill.model.predictors.base import RowPredictor, Rows, dense, mixed

ROWS_PER_BLOCK = 256
"""Rows that are pursued at once: enough for products to be quick. A guess."""


@dataclass(frozen=True)
class MatchingPursuit(RowPredictor):
    """Sparse mixes of known rows, found greedily in the domain.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> space = Space(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> embedding, is_known = np.array([[1.0], [5.0], [np.nan]]), np.array([True, True, False])
    >>> MatchingPursuit().predict(space, KnownRows(embedding, is_known)).vectors
    array([[7.]])
    """

    n_atoms: int = 64
    """Most known rows in a mix; 64 is the default of mergekit's tokensurgeon."""

    name: ClassVar[str] = "matching_pursuit"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number(self.n_atoms, "n_atoms", low=1)

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the mixes of known vectors."""
        atoms, targets = dense(rows_of_known), dense(wanted_rows)
        # Lengths are taken out of the atoms, as the pursuit needs, and put back into the mixes.
        lengths = np.linalg.norm(atoms, axis=1)
        lengths[lengths == 0] = 1.0
        atoms = atoms / lengths[:, None]
        gram, rank = atoms @ atoms.T, min(atoms.shape)
        return mixed(
            lambda block: self._pursued(gram, atoms @ targets[block].T, rank) / lengths,
            len(targets),
            known,
            ROWS_PER_BLOCK,
        )

    def _pursued(self, gram: np.ndarray, products: np.ndarray, rank: int) -> np.ndarray:
        from sklearn.linear_model import orthogonal_mp_gram  # noqa: PLC0415 - slow to load

        n_atoms = min(self.n_atoms, rank)
        with warnings.catch_warnings():
            # It stops early when the atoms left depend on those taken: that is its answer.
            warnings.simplefilter("ignore", RuntimeWarning)
            mixes = orthogonal_mp_gram(gram, products, n_nonzero_coefs=n_atoms, copy_Gram=False)
        return mixes.reshape(len(gram), -1).T
