"""Orthogonal matching pursuit: what mergekit's tokensurgeon does for new tokens."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill import checks
from vecfill.method.engine import row_blocks
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, known_and_wanted
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


@dataclass(frozen=True)
class MatchingPursuit(Predictor):
    """Sparse mixes of known rows, found greedily in the domain.

    Examples
    --------
    >>> space = Space(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> embedding, is_known = np.array([[1.0], [5.0], [np.nan]]), np.array([True, True, False])
    >>> MatchingPursuit().predict(space, KnownRows(embedding, is_known)).vectors
    array([[7.]])
    """

    preparation: str = "as_given"
    n_atoms: int = 64
    """Most known rows in a mix; 64 is the default of mergekit's tokensurgeon."""

    name: ClassVar[str] = "matching_pursuit"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.whole_number(self.n_atoms, "n_atoms", low=1)

    def predict(
        self,
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,  # noqa: ARG002
    ) -> Prediction:
        """Return the mixes of known vectors for every row that is wanted."""
        atoms, targets = known_and_wanted(space, self.preparation, given, wanted)
        if issparse(atoms):
            atoms, targets = atoms.toarray(), targets.toarray()
        known = given.known
        # Lengths are taken out of the atoms, as the pursuit needs, and put back into the mixes.
        lengths = np.linalg.norm(atoms, axis=1)
        lengths[lengths == 0] = 1.0
        atoms = atoms / lengths[:, None]
        gram = atoms @ atoms.T
        vectors = np.empty((len(targets), known.shape[1]))
        mixes = [csr_array((0, len(atoms)))]
        for block in row_blocks(len(targets), 256):
            found = self._pursued(gram, atoms @ targets[block].T, min(atoms.shape)) / lengths
            vectors[block] = found @ known
            mixes.append(csr_array(found))
        return Prediction(vectors, Composition(FixedMix(csr_array(vstack(mixes)))))

    def _pursued(self, gram: np.ndarray, products: np.ndarray, rank: int) -> np.ndarray:
        from sklearn.linear_model import orthogonal_mp_gram  # noqa: PLC0415 - slow to load

        n_atoms = min(self.n_atoms, rank)
        with warnings.catch_warnings():
            # It stops early when the atoms left depend on those taken: that is its answer.
            warnings.simplefilter("ignore", RuntimeWarning)
            mixes = orthogonal_mp_gram(gram, products, n_nonzero_coefs=n_atoms, copy_Gram=False)
        return mixes.reshape(len(gram), -1).T
