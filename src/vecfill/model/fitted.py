"""`Model`: what was fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vecfill._types import KnownMask
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import row_lengths
from vecfill.model.known import KnownRows
from vecfill.model.offset import Offsets
from vecfill.model.prediction import Composition, Prediction
from vecfill.model.predictors import Predictor
from vecfill.model.predictors.base import TOL
from vecfill.model.space import Rows, Space
from vecfill.model.stretch import Stretch, stretched


@dataclass(frozen=True)
class Model:
    """A predictor fitted to known rows: vectors for all rows, and what the imputed ones are.

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> space = Space(np.array([[0.0], [1.0], [4.0]]))
    >>> embedding = np.array([[0.0], [np.nan], [4.0]])
    >>> model = fit(LatentSemantic(min_degree=2, weight_floor=0.0), space, embedding,
    ...             np.array([True, False, True]))
    >>> model.embedding.ravel()
    array([0., 1., 4.])
    >>> model.shares([0])
    array([[0.75, 0.25]])
    """

    space: Space = field(repr=False)
    predictor: Predictor
    rows: KnownRows = field(repr=False)
    """All rows: known ones as they were, the others imputed."""
    composition: Composition = field(repr=False)
    offsets: Offsets | None = field(default=None, repr=False)
    """What was taken out of known vectors for their rarity, and put back into the others."""
    stretch: Stretch = field(default_factory=Stretch)
    """By what the steps of imputed rows from the mean of the known ones were multiplied."""

    @property
    def embedding(self) -> np.ndarray:
        """(n_rows, n_dims) vectors of all rows, known and imputed."""
        return self.rows.embedding

    @property
    def is_known(self) -> KnownMask:
        """Which rows were known."""
        return self.rows.is_known

    @property
    def known(self) -> np.ndarray:
        """(n_known, n_dims) vectors of the known rows."""
        return self.rows.known

    @property
    def prediction(self) -> Prediction:
        """Vectors of the unknown rows, and what they are made of."""
        return Prediction(self.embedding[self.rows.unknown], self.composition)

    def as_predicted(self) -> KnownRows:
        """Return all rows as the predictor saw and gave them: without offset, not stretched."""
        return as_predicted(self.rows, self.offsets, self.stretch)

    def shares(self, places: np.ndarray | list[int]) -> np.ndarray:
        """Return shares of all known rows (across) in some unknown ones (down)."""
        return self.composition.mix.shares(np.asarray(places, np.int64))

    def trend_shares(self) -> np.ndarray:
        """Return the trend's share in each unknown vector's way from the mean of the known ones."""
        return self.ways()[1]

    def offset_shares(self) -> np.ndarray:
        """Return the share of the offset of rare entities in each unknown vector's way."""
        return self.ways()[0]

    def ways(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the shares of offset and trend in every unknown row; the mix has the rest."""
        rows = self.rows.unknown
        centre = self.known.mean(axis=0, dtype=np.float64)
        offset = None if self.offsets is None else self.offsets.unknown
        trend = None
        if self.composition.trend is not None:
            # The trend is stretched as the whole is, from the mean that the predictor saw.
            middle = centre if self.offsets is None else _centre_of(self.rows, self.offsets)
            factors = self.stretch.factors(self.offsets, rows.size)[:, None]
            trend = middle + factors * (self.composition.trend.at(rows) - middle)
        of_offset, of_trend = shares_of_way(self.embedding[rows], centre, offset, trend)
        if self.offsets is not None:
            # Rows that are not rare have the offset of what they are made of: it is the mix's.
            of_offset = np.where(self.offsets.is_rare, of_offset, 0.0)
        return of_offset, of_trend

    def vectors_of_new(self, new_rows: Rows) -> np.ndarray:
        """Return vectors for rows that were not there when it was fitted; nothing is refitted.

        Each is the convex mix of its nearest rows that explains it best in the domain; a row
        equal to a fitted one gets that one's vector.
        """
        (key,) = self.predictor.weights_keys
        mixes, nearest = self.space.mixes_of_new(new_rows, key)
        vectors = (mixes @ self.embedding).astype(self.embedding.dtype)
        # A row that equals a fitted one is that entity: it gets the vector, and no mix of it.
        vectors[nearest.is_equal] = self.embedding[nearest.equal_to]
        return vectors


def shares_of_way(
    vectors: np.ndarray, centre: np.ndarray, offset: np.ndarray | None, trend: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of offset and trend in each row's way from the mean of the known rows.

    Examples
    --------
    >>> shares_of_way(np.array([[4.0]]), np.zeros(1), np.array([[1.0]]), np.array([[2.0]]))
    (array([0.25]), array([0.5]))
    """
    start = centre if offset is None else offset
    first = np.broadcast_to(row_lengths(np.atleast_2d(start - centre)), len(vectors))
    if trend is None:
        reached, way = start, np.zeros(len(vectors))
    else:
        # With an offset, the trend is that of what the offset leaves over.
        reached = trend if offset is None else start + trend
        way = row_lengths(reached - start)
    if offset is None and trend is None:
        return np.zeros(len(vectors)), np.zeros(len(vectors))
    # Lengths of the legs, not of the way: legs that cancel out count for what they are.
    total = first + way + row_lengths(vectors - reached)
    whole = np.where(total > 0, total, 1.0)
    return first / whole, np.where(total > 0, way / whole, float(trend is not None))


@one_blas_thread()
def fit(
    predictor: Predictor,
    space: Space,
    embedding: np.ndarray,
    is_known: KnownMask,
    *,
    tol: float = TOL,
    offsets: Offsets | None = None,
    stretch: Stretch | None = None,
    in_place: bool = False,
) -> Model:
    """Return a predictor fitted to the known rows of `embedding`.

    `embedding` is not changed, unless its unknown rows may be filled `in_place`.

    With `offsets`, they are taken out of the known vectors first and put back into the imputed
    ones. With `stretch`, steps of imputed rows from the mean are lengthened. The known rows stay
    as they are.
    """
    stretch = stretch or Stretch()
    is_shared = in_place and offsets is None
    all_rows = KnownRows(embedding if is_shared else embedding.copy(), is_known)
    if offsets is not None:
        all_rows.embedding[is_known] -= offsets.known
    # In place: a second array of all vectors would be the largest thing in memory.
    composition = predictor.fill(space, all_rows, tol=tol)
    offsets = None if offsets is None else offsets.completed(composition.mix)
    factors = stretch.factors(offsets, all_rows.unknown.size)
    if (factors != 1.0).any():
        centre = all_rows.known.mean(axis=0, dtype=np.float64)
        imputed = all_rows.embedding[all_rows.unknown]
        all_rows.embedding[all_rows.unknown] = stretched(imputed, centre, factors[:, None])
    # Known rows are copied back and not computed back: they keep their bits.
    if offsets is not None:
        all_rows.embedding[is_known] = embedding[is_known]
        all_rows.embedding[all_rows.unknown] += offsets.unknown
    return Model(space, predictor, all_rows, composition, offsets, stretch)


def as_predicted(rows: KnownRows, offsets: Offsets | None, stretch: Stretch) -> KnownRows:
    """Return rows as a predictor saw and gave them: without offset, not stretched."""
    factors = stretch.factors(offsets, rows.unknown.size)
    is_stretched = bool((factors != 1.0).any())
    if offsets is None and not is_stretched:
        return rows
    plain = np.array(rows.embedding)
    if offsets is not None:
        plain[rows.is_known] -= offsets.known
        plain[rows.unknown] -= offsets.unknown
    if is_stretched:
        centre = plain[rows.is_known].mean(axis=0, dtype=np.float64)
        plain[rows.unknown] = centre + (plain[rows.unknown] - centre) / factors[:, None]
    return KnownRows(plain, rows.is_known, is_imputed=rows.is_imputed)


def _centre_of(rows: KnownRows, offsets: Offsets) -> np.ndarray:
    """Return the mean of what the offsets leave of the known vectors."""
    return (rows.known - offsets.known).mean(axis=0, dtype=np.float64)
