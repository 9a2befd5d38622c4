"""A kernel of trees: a row is the mean of the known rows with which it shares leaves.

Trees find what a distance does not see: columns that matter only together, or only in a part of the
domain. What extremely randomised trees predict is the mean of a leaf, so a prediction is a mix of
known vectors with shares that are exact, none negative, and sum to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vecfill import checks
from vecfill.method.scaling import in_range_of
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import TOL, Predictor, check_preparation, dense
from vecfill.model.predictors.forest import Forest
from vecfill.model.preparation import prepared_in_words
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, Wanted

MOST_TRIED = 30
"""Cuts that a node tries at most; half as many as there are columns, if those are fewer."""


@dataclass(frozen=True)
class LeafKernel(Predictor):
    """The mean of the known rows that share a leaf, over many extremely randomised trees.

    Examples
    --------
    >>> rows = np.repeat([[0.0], [1.0]], 4, axis=0)
    >>> known_rows = KnownRows(rows, np.arange(8) != 7)
    >>> LeafKernel(n_trees=5).predict(Space(rows), known_rows).vectors
    array([[1.]])
    """

    preparation: str = "as_given"
    """How domain rows are prepared before they are cut."""
    n_trees: int = 64
    """Number of trees; the cost grows with it."""
    min_leaf: int = 3
    """Least number of known rows in a leaf."""
    seed: int = 0
    """Random seed of the trees."""

    name: ClassVar[str] = "leaf_kernel"

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.whole_number(self.n_trees, "n_trees", low=1)
        checks.whole_number(self.min_leaf, "min_leaf", low=1)
        checks.whole_number(self.seed, "seed", low=0)

    def __str__(self) -> str:
        return f"{self.preparation}, {self.n_trees} trees, leaves of {self.min_leaf} or more"

    def in_words(self) -> str:
        """Return the setting as one would say it.

        Examples
        --------
        >>> LeafKernel("rank_normal").in_words()
        'randomised trees, columns by rank'
        """
        prepared = prepared_in_words(self.preparation)
        return ", ".join(filter(None, ["randomised trees", prepared]))

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return mixes of the known vectors for every row that is wanted."""
        # Folds grow trees once and are gone; a model is asked for new rows again and again.
        grow = self._grown_once if wanted.is_new else self._grown
        rows = dense(wanted.prepared(space, self.preparation, known_rows))
        shares = grow(space, known_rows).shares(rows)
        vectors = in_range_of(known_rows.embedding.dtype, shares @ known_rows.known)
        return Prediction(vectors, Composition(FixedMix(shares)))

    def _grown(self, space: Space, known_rows: KnownRows) -> Forest:
        rows = dense(space.prepared(self.preparation)[np.flatnonzero(known_rows.is_known)])
        return Forest.grown(
            rows,
            known_rows.known,
            n_trees=self.n_trees,
            n_tried=min(MOST_TRIED, (rows.shape[1] + 1) // 2),
            min_leaf=self.min_leaf,
            seed=self.seed,
            n_threads=space.n_threads,
        )

    def _grown_once(self, space: Space, known_rows: KnownRows) -> Forest:
        return known_rows.once(("forest", self), lambda: self._grown(space, known_rows))

    def kept(
        self, space: Space, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return the trees: grown again, by another version, they might be others."""
        return dict(vars(self._grown_once(space, known_rows)))

    def restore(self, space: Space, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:
        """Give back the trees to the known rows on which they were grown."""
        known_rows.keep(("forest", self), Forest(**stored))
