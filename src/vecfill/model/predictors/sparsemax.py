"""Mixes by sparsemax over cosines: the rule of FOCUS for new tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill import checks
from vecfill.method.engine import row_blocks
from vecfill.model.directions import unit
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, known_and_wanted
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted


@dataclass(frozen=True)
class Sparsemax(Predictor):
    """Mixes whose shares are the sparsemax of cosines in the domain.

    Examples
    --------
    >>> space = Space(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.1]]))
    >>> embedding, is_known = np.array([[1.0], [5.0], [np.nan]]), np.array([True, True, False])
    >>> Sparsemax().predict(space, KnownRows(embedding, is_known)).vectors.round(2)
    array([[1.07]])
    """

    preparation: str = "as_given"
    scale: float = 1.0
    """Factor of the cosines: the larger, the fewer rows are mixed; 1 is FOCUS."""

    name: ClassVar[str] = "sparsemax"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.number(self.scale, "scale", low=0, open_low=True)

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
        atoms, targets, known = unit(atoms), unit(targets), given.known
        vectors, shares = np.empty((len(targets), known.shape[1])), [csr_array((0, len(atoms)))]
        for block in row_blocks(len(targets), 512):
            found = sparsemax_rows(self.scale * (targets[block] @ atoms.T))
            vectors[block] = found @ known
            shares.append(csr_array(found))
        return Prediction(vectors, Composition(FixedMix(csr_array(vstack(shares)))))


def sparsemax_rows(scores: np.ndarray) -> np.ndarray:
    """Return the nearest point of the simplex to each row (Martins and Astudillo, 2016).

    Examples
    --------
    >>> sparsemax_rows(np.array([[0.5, 0.2, -3.0]])).round(2)
    array([[0.65, 0.35, 0.  ]])
    """
    falling = -np.sort(-scores, axis=1)
    sums = np.cumsum(falling, axis=1)
    counts = np.arange(1, scores.shape[1] + 1)
    n_kept = (1 + counts * falling > sums).sum(axis=1)
    threshold = (sums[np.arange(len(scores)), n_kept - 1] - 1) / n_kept
    return np.maximum(scores - threshold[:, None], 0.0)
