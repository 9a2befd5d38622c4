"""Mixes by sparsemax over cosines: the rule of FOCUS for new tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vecfill import checks
from vecfill.machine.lengths import unit
from vecfill.model.prediction import Prediction
from vecfill.model.predictors.base import RowPredictor, Rows, dense, mixed

ROWS_PER_BLOCK = 512
"""Rows whose cosines with all known rows are sorted at once: 8 MB with 2,000 of them."""


@dataclass(frozen=True)
class Sparsemax(RowPredictor):
    """Mixes whose shares are the sparsemax of cosines in the domain.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> space = Space(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.1]]))
    >>> embedding, is_known = np.array([[1.0], [5.0], [np.nan]]), np.array([True, True, False])
    >>> Sparsemax().predict(space, KnownRows(embedding, is_known)).vectors.round(2)
    array([[1.07]])
    """

    scale: float = 1.0
    """Factor of the cosines: the larger, the fewer rows are mixed; 1 is FOCUS."""

    name: ClassVar[str] = "sparsemax"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number(self.scale, "scale", low=0, open_low=True)

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the mixes of known vectors."""
        atoms, targets = unit(dense(rows_of_known)), unit(dense(wanted_rows))
        return mixed(
            lambda block: sparsemax_rows(self.scale * (targets[block] @ atoms.T)),
            len(targets),
            known,
            ROWS_PER_BLOCK,
        )


def sparsemax_rows(scores: np.ndarray) -> np.ndarray:
    """Return the nearest point of the simplex to each row (Martins and Astudillo, 2016).

    Examples
    --------
    >>> sparsemax_rows(np.array([[0.5, 0.2, -3.0]])).round(2)
    array([[0.65, 0.35, 0.  ]])
    """
    # The projection lowers all scores by one threshold and cuts at 0. The scores that stay above
    # 0 are the largest ones, so they are found by going down the sorted scores.
    falling = -np.sort(-scores, axis=1)
    sums = np.cumsum(falling, axis=1)
    counts = np.arange(1, scores.shape[1] + 1)
    n_mixed = (1 + counts * falling > sums).sum(axis=1)
    threshold = (sums[np.arange(len(scores)), n_mixed - 1] - 1) / n_mixed
    return np.maximum(scores - threshold[:, None], 0.0)
