"""Methods of others, which a user could pick instead, and which `evaluate` compares with.

`Nearest` and `LinearRidge` are those of scikit-learn. `MatchingPursuit` is what mergekit's
tokensurgeon does for new tokens, and `Sparsemax` what FOCUS does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from vecfill import checks
from vecfill.machine.lengths import unit
from vecfill.method.scaling import divided, safe_exponents
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.predictors.base import RowPredictor, Rows, dense, mixed
from vecfill.model.preparation import prepared_in_words


@dataclass(frozen=True)
class Nearest(RowPredictor):
    """The mean of the nearest known rows' vectors, plain or weighted by inverse distance.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> space = Space(np.array([[0.0], [2.0], [9.0], [1.0]]))
    >>> embedding = np.array([[1.0], [3.0], [50.0], [np.nan]])
    >>> is_known = np.array([True, True, True, False])
    >>> Nearest(n_neighbors=2).predict(space, KnownRows(embedding, is_known)).vectors
    array([[2.]])
    """

    n_neighbors: int = 10
    by_distance: bool = False

    name: ClassVar[str] = "nearest"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole_number(self.n_neighbors, "n_neighbors", low=1)

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the mean of the nearest known vectors."""
        from sklearn.neighbors import KNeighborsRegressor  # noqa: PLC0415 - slow to load

        weights = "distance" if self.by_distance else "uniform"
        model = KNeighborsRegressor(min(self.n_neighbors, len(known)), weights=weights)
        model.fit(rows_of_known, known)
        if wanted_rows.shape[0] == 0:
            # scikit-learn refuses to look for the neighbours of no rows.
            return Prediction(known[:0], Composition(FixedMix(csr_array((0, len(known))))))
        mixes = self._coefficients(model, wanted_rows)
        return Prediction(mixes @ known, Composition(FixedMix(mixes)))

    def _coefficients(self, model: Any, wanted_rows: Rows) -> csr_array:
        distances, rows = model.kneighbors(wanted_rows)
        weights = np.ones(distances.shape)
        if self.by_distance:
            # A row at distance zero takes all the weight, as scikit-learn has it.
            is_equal = distances == 0
            inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=~is_equal)
            weights = np.where(is_equal.any(axis=1, keepdims=True), is_equal, inverse)
        weights = weights / weights.sum(axis=1, keepdims=True)
        starts = np.arange(len(rows) + 1) * rows.shape[1]
        shape = (len(rows), model.n_samples_fit_)
        return csr_array((weights.ravel(), rows.ravel(), starts), shape)


ALPHAS = np.logspace(-5, 4, 19)
"""Strengths tried, as multiples of the mean square of an entry times the number of known rows. A
guess, wide enough that the ends are not chosen."""


@dataclass(frozen=True)
class LinearRidge(RowPredictor):
    """Ridge regression, its strength chosen by leave-one-out error on the known rows.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.space import Space
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> is_known = np.array([True, True, True, False])
    >>> LinearRidge().predict(Space(rows), KnownRows(rows, is_known)).vectors.round(1)
    array([[3.]])
    """

    name: ClassVar[str] = "ridge"

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the regression's values."""
        from sklearn.linear_model import RidgeCV  # noqa: PLC0415 - slow to load

        # Squared errors of vectors of extreme size would overflow or vanish.
        exponent = safe_exponents(known, each_column=False)
        n_known, rows_of_known, wanted_rows = len(known), dense(rows_of_known), dense(wanted_rows)
        # Of known rows alone: what a row is given must not depend on who else is asked for.
        scale = float(np.mean(rows_of_known**2)) * max(1, n_known) or 1.0
        model = RidgeCV(alphas=scale * ALPHAS).fit(rows_of_known, divided(known, exponent))
        if not len(wanted_rows):
            return Prediction(known[:0], Composition(FixedMix(np.empty((0, n_known)))))
        vectors = divided(model.predict(wanted_rows), -exponent).reshape(-1, known.shape[1])
        mix = _RidgeMix(rows_of_known, wanted_rows, float(model.alpha_))
        return Prediction(vectors, Composition(mix))


class _RidgeMix(FixedMix):
    """What each known vector counts in each value, computed when asked for."""

    def __init__(self, rows_of_known: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> None:
        self._made_from = (rows_of_known, wanted_rows, alpha)

    @cached_property
    def coefficients(self) -> np.ndarray:
        return _coefficients(*self._made_from)


def _coefficients(rows_of_known: np.ndarray, wanted_rows: np.ndarray, alpha: float) -> np.ndarray:
    """Return what each known vector counts in each value; rows sum to one."""
    centre = rows_of_known.mean(axis=0)
    rows_of_known, wanted_rows = rows_of_known - centre, wanted_rows - centre
    if len(rows_of_known) <= rows_of_known.shape[1]:
        gram = rows_of_known @ rows_of_known.T
        gram[np.diag_indices_from(gram)] += alpha
        return np.linalg.solve(gram, rows_of_known @ wanted_rows.T).T + 1.0 / len(rows_of_known)
    gram = rows_of_known.T @ rows_of_known
    gram[np.diag_indices_from(gram)] += alpha
    return wanted_rows @ np.linalg.solve(gram, rows_of_known.T) + 1.0 / len(rows_of_known)


ROWS_PURSUED = 256
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
            ROWS_PURSUED,
        )

    def _pursued(self, gram: np.ndarray, products: np.ndarray, rank: int) -> np.ndarray:
        from sklearn.linear_model import orthogonal_mp_gram  # noqa: PLC0415 - slow to load

        n_atoms = min(self.n_atoms, rank)
        with warnings.catch_warnings():
            # It stops early when the atoms left depend on those taken: that is its answer.
            warnings.simplefilter("ignore", RuntimeWarning)
            mixes = orthogonal_mp_gram(gram, products, n_nonzero_coefs=n_atoms, copy_Gram=False)
        return mixes.reshape(len(gram), -1).T


ROWS_SORTED = 512
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

    def __str__(self) -> str:
        return f"{self.preparation}, sparsemax of {self.scale:g} x cosine"

    def in_words(self) -> str:
        """Return the setting as one would say it."""
        prepared = prepared_in_words(self.preparation)
        return ", ".join(filter(None, ["a few known rows by cosine", prepared]))

    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return the mixes of known vectors."""
        atoms, targets = unit(dense(rows_of_known)), unit(dense(wanted_rows))
        return mixed(
            lambda block: sparsemax_rows(self.scale * (targets[block] @ atoms.T)),
            len(targets),
            known,
            ROWS_SORTED,
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
