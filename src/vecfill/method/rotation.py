"""From one set of vectors to another: a rotation, and the affine map that departs from it.

Orthogonal Procrustes keeps all angles, but for a shift and one scale. Ridge regression follows the
known rows further and shrinks what it does not know to nothing, which bends angles. Between them
lies ridge regression that is shrunk towards the rotation: with no strength it is least squares,
with infinite strength the rotation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vecfill.machine.lengths import unit

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Strengths tried, in units of the mean variance of a direction of the rows. On GloVe and Google
News, both ways, the best ones were 0.01 to 10."""

MOST_JUDGED = 4000
"""Known rows on which strengths are compared: enough for the third digit of a mean cosine."""

MOST_LEVERAGE = 0.95
"""Leverage beyond which what a row would be without itself is mostly rounding. A guess."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """Rows -> vectors: ``mean + (rows - centre) @ slopes``."""

    centre: np.ndarray
    """(n_features,)."""
    slopes: np.ndarray
    """(n_features, n_dims)."""
    mean: np.ndarray
    """(n_dims,)."""
    _typed: dict[np.dtype, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows, in the type of the rows."""
        slopes, shift = self.in_type(rows.dtype)
        vectors = rows @ slopes
        vectors += shift
        return vectors

    def in_type(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and shift as rows of a type are multiplied with them."""
        # Kept, because for a single query this would cost more than the product.
        if dtype not in self._typed:
            # One product and one sum: rows are not centred first, there may be millions of them.
            shift = self.mean - self.centre @ self.slopes
            self._typed[dtype] = self.slopes.astype(dtype), shift.astype(dtype)
        return self._typed[dtype]


class Rotated:
    """Known rows and vectors, brought as near as a rotation can bring them, and further.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows, turned = rng.normal(size=(30, 2)), np.array([[0.0, 2.0], [-2.0, 0.0]])
    >>> pair = Rotated(rows, rows @ turned + [5.0, 7.0])
    >>> bool(np.allclose(pair.rotation.slopes, turned))
    True
    >>> bool(np.allclose(pair.affine(3.0).slopes, turned))
    True
    """

    def __init__(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        rows, vectors = rows.astype(np.float64), vectors.astype(np.float64)
        centre, mean = rows.mean(axis=0), vectors.mean(axis=0)
        self.steps, targets = rows - centre, vectors - mean
        across = self.steps.T @ targets
        left, values, right = np.linalg.svd(across, full_matrices=False)
        turned = left @ right
        size = float(((self.steps @ turned) ** 2).sum())
        scale = float(values.sum()) / size if size > 0 else 0.0
        self.rotation = AffineMap(centre, scale * turned, mean)
        """Orthogonal Procrustes, with shift and scale."""
        self.missed = targets - self.steps @ self.rotation.slopes
        """(n_known, n_dims) what the rotation leaves over of each known row."""
        gram = self.steps.T @ self.steps
        # Rounding can leave less than nothing of a direction that no row has.
        variances, self.axes = np.linalg.eigh(gram)
        self.variances = np.maximum(variances, 0.0)
        self.unit_of_strength = float(self.variances.mean()) or 1.0
        # From the small matrices: the rows are not gone through again.
        self._along = self.axes.T @ (across - gram @ self.rotation.slopes)

    def affine(self, strength: float) -> AffineMap:
        """Return ridge regression shrunk towards the rotation."""
        if np.isinf(strength):
            return self.rotation
        shrunk = self._along / self._widened(strength)[:, None]
        slopes = self.rotation.slopes + self.axes @ shrunk
        return AffineMap(self.rotation.centre, slopes, self.rotation.mean)

    def residuals(self, strength: float, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return known vectors minus what the map has for them when fitted without them."""
        # The rotation has few degrees of freedom beside its slopes, and is taken as it is.
        if np.isinf(strength):
            return self.missed[rows]
        along, widened = self.steps[rows] @ self.axes, self._widened(strength)
        residuals = self.missed[rows] - along @ (self._along / widened[:, None])
        leverage = (along**2 / widened).sum(axis=1) + 1.0 / len(self.steps)
        return residuals / (1.0 - np.minimum(leverage, MOST_LEVERAGE))[:, None]

    def best_strength(self) -> float:
        """Return the strength whose leave-one-out predictions point best, infinity included."""
        n_known = len(self.steps)
        rows = np.random.default_rng(0).permutation(n_known)[:MOST_JUDGED]
        targets = self.missed[rows] + self.steps[rows] @ self.rotation.slopes
        directions = unit(targets)

        def mean_cosine(strength: float) -> float:
            predicted = unit(targets - self.residuals(strength, rows))
            return float(np.einsum("ij,ij->i", directions, predicted).mean())

        # Of equals the strongest: the rotation assumes least.
        return max((np.inf, *reversed(STRENGTHS)), key=mean_cosine)

    def shares(self, rows: np.ndarray, strength: float) -> np.ndarray:
        """Return the share of each known row's `missed` in what is added to the rotation."""
        even = np.full((len(rows), len(self.steps)), 1.0 / len(self.steps))
        if np.isinf(strength):
            return even
        steps = rows.astype(np.float64) - self.rotation.centre
        return even + (steps @ self.axes / self._widened(strength)) @ (self.steps @ self.axes).T

    def _widened(self, strength: float) -> np.ndarray:
        # A strength of 0 would divide by the variance of directions that no row has.
        widened = self.variances + strength * self.unit_of_strength
        return np.maximum(widened, np.finfo(np.float64).eps * self.variances.sum() or 1.0)


def transposed(
    to_rows: AffineMap, rows: np.ndarray, vectors: np.ndarray, *, is_centred: bool
) -> AffineMap:
    """Return the transpose of a map from `vectors` to `rows`, with the length that fits best.

    If it `is_centred`, the mean of the rows is taken off first: what all rows share says nothing
    about which vectors are near, and favours the same ones everywhere.

    The product of a mapped row with a vector is that of the row with the mapped vector. So one who
    searches among vectors by a transposed row finds what one would find among mapped vectors.
    """
    centre = rows.mean(axis=0, dtype=np.float64) if is_centred else np.zeros(rows.shape[1])
    mean, turned = np.zeros(vectors.shape[1]), to_rows.slopes.T
    mapped = (rows - centre) @ turned
    size = float((mapped**2).sum())
    scale = float((mapped * vectors).sum()) / size if size > 0 else 0.0
    # A negative length would turn every vector round.
    return AffineMap(centre, (scale if scale > 0 else 1.0) * turned, mean)
