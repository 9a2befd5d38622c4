"""The offset of rare entities: where vectors lie as a whole, as a function of rarity.

Vectors carry their frequency: the mean vector moves with the rank of a word or the popularity of an
item, and an unknown entity is rarer than the known ones. So the offset is taken out of the known
vectors before they are used, and the offset of the entity's own rarity is put back into what was
imputed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from vecfill._types import KnownMask
from vecfill.inputs.rarity import minus_log_count
from vecfill.model.known import KnownRows

REACH = 3.0
"""How far beyond the rarest known row a curve that was learnt on known rows may be followed."""

N_KNOTS = 33

RARITY_TOL = 1e-8
"""Residual to which rarities are mixed: an offset moves little between two of them."""

SHRINK = 10.0
"""Rows' worth of belief that the mean does not move with rarity."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean vector as a function of rarity: straight between its knots, constant beyond.

    Examples
    --------
    >>> curve = Curve(np.array([0.0, 2.0]), np.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> curve.at(np.array([-5.0, 1.0, 9.0]))
    array([[1., 0.],
           [2., 0.],
           [3., 0.]])
    """

    rarity: np.ndarray = field(repr=False)
    """(n_knots,), ascending."""
    means: np.ndarray = field(repr=False)
    """(n_knots, n_dims)."""
    spreads: np.ndarray | None = field(default=None, repr=False)
    """(n_knots,) how far vectors lie from their mean; ``None`` if nothing tells."""

    def at(self, rarity: Any) -> np.ndarray:
        """Return the mean vector at each rarity, (n, n_dims)."""
        # Constant beyond the ends: a parabola that goes on runs off to where no word is.
        rarities = np.clip(np.atleast_1d(rarity), self.rarity[0], self.rarity[-1])
        if len(self.rarity) == 1:
            return np.repeat(self.means, rarities.size, axis=0)
        right = np.clip(np.searchsorted(self.rarity, rarities), 1, len(self.rarity) - 1)
        low, high = self.rarity[right - 1], self.rarity[right]
        share = ((rarities - low) / (high - low))[:, None]
        return (1.0 - share) * self.means[right - 1] + share * self.means[right]

    def spread_at(self, rarity: Any) -> np.ndarray:
        """Return how far vectors lie from their mean at each rarity, (n,)."""
        assert self.spreads is not None
        return np.interp(np.atleast_1d(rarity), self.rarity, self.spreads)


def curve_of_known(rarity: np.ndarray, vectors: np.ndarray, *, degree: int) -> Curve:
    """Return the curve of known rows alone: a line, or a parabola, fitted with a little shrinkage.

    Examples
    --------
    >>> rarity = np.linspace(0, 4, 200)
    >>> line = curve_of_known(rarity, 2 * rarity[:, None], degree=1)
    >>> line.at([0.0, 4.0, 6.0]).ravel().round(0)
    array([ 0.,  8., 12.])
    """
    # In units of their spread, so that the shrinkage means the same for counts and for ranks.
    centre, scale = float(rarity.mean()), float(rarity.std()) or 1.0
    powers = np.arange(1, degree + 1)
    columns = ((rarity - centre) / scale)[:, None] ** powers
    middle = columns.mean(axis=0)
    gram = (columns - middle).T @ (columns - middle)
    # Few rows, or rarities that are all alike, would give slopes of pure noise.
    gram[np.diag_indices_from(gram)] += SHRINK
    mean = vectors.mean(axis=0, dtype=np.float64)
    slopes = np.linalg.solve(gram, (columns - middle).T @ (vectors - mean))
    knots = np.linspace(rarity.min(), rarity.max() + REACH, N_KNOTS)
    bent = ((knots - centre) / scale)[:, None] ** powers
    return Curve(knots, mean + (bent - middle) @ slopes)


@dataclass(frozen=True, eq=False)
class Offsets:
    """The offsets of all rows: what is taken out of known vectors and put back into the others."""

    known: np.ndarray = field(repr=False)
    """(n_known, n_dims)."""
    unknown: np.ndarray = field(repr=False)
    """(n_unknown, n_dims)."""
    assumed: np.ndarray = field(repr=False)
    """(n_unknown,) the rarity that each unknown row is taken to have."""
    is_rare: np.ndarray = field(repr=False)
    """(n_unknown,) whether that is because the row is rare itself."""
    curve: Curve = field(repr=False)
    of_known: np.ndarray = field(repr=False)
    """(n_known,) rarities of the known rows."""

    def completed(self, mix: Spread, places: np.ndarray | None = None) -> Offsets:
        """Return the offsets of rows that are not rare, too: as rare as what they are made of.

        `mix` says how known rows are mixed for the unknown ones, or for those at `places`. Taking
        an offset out of the known rows and putting back that of their mix changes nothing but
        rounding where the mean moves evenly with rarity.
        """
        places = np.arange(self.assumed.size) if places is None else places
        is_plain = ~self.is_rare[places]
        if not is_plain.any():
            return self
        of_mix = mix.spread(self.of_known[:, None].astype(np.float64), tol=RARITY_TOL)[:, 0]
        assumed, unknown = self.assumed.copy(), self.unknown.copy()
        assumed[places[is_plain]] = of_mix[is_plain]
        unknown[places[is_plain]] = self.curve.at(of_mix[is_plain])
        return replace(self, assumed=assumed, unknown=unknown)


class Spread(Protocol):
    """What mixes values of known rows, see `vecfill.model.prediction.Mix`."""

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every unknown row."""
        ...


@dataclass(frozen=True)
class OffsetRule:
    """How the offset of every row is found.

    Examples
    --------
    >>> given = KnownRows(np.array([[0.0], [2.0], [np.nan]]), np.array([True, True, False]))
    >>> curve = Curve(np.array([0.0, 10.0]), np.array([[0.0], [10.0]]))
    >>> rule = OffsetRule(beyond=1.0, curve=curve)
    >>> rule.offsets(np.array([1.0, 2.0, np.nan]), given).unknown
    array([[3.]])
    """

    beyond: float
    """An unknown row whose rarity is not known is taken to be rarer than the rarest known row by
    this much, in units of the logarithm."""
    uses_own: bool = False
    """Whether unknown rows have a rarity of their own, from counts."""
    degree: int = 1
    """Of the curve through known rows, where there is no other."""
    curve: Curve | None = field(default=None, repr=False, compare=False)
    """The curve of the whole vocabulary; ``None`` if known rows are all there is."""
    spares_several: bool = False
    """Whether names of several words are unknown for another reason than rarity."""

    def offsets(
        self, rarity: np.ndarray, known_rows: KnownRows, spared: np.ndarray | None = None
    ) -> Offsets:
        """Return the offsets of all rows.

        `rarity` has a value for each: NaN if it is not known, and then the row is taken to be
        rarer than the known ones. Rows that are `spared` are not rare; unless they have a value,
        they get theirs by `Offsets.completed`.
        """
        of_known, of_unknown = rarity[known_rows.is_known], rarity[known_rows.unknown]
        curve = self.curve or curve_of_known(of_known, known_rows.known, degree=self.degree)
        is_rare = (
            np.ones(of_unknown.size, np.bool_) if spared is None else ~spared[known_rows.unknown]
        )
        assumed = np.where(is_rare, self._assumed(of_known, of_unknown), of_unknown)
        assumed = np.where(np.isnan(assumed), of_known.mean(), assumed)
        return Offsets(curve.at(of_known), curve.at(assumed), assumed, is_rare, curve, of_known)

    def _assumed(self, of_known: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        """Return the rarities that rare rows are taken to have; `own` ones count with counts."""
        # Nothing tells how rare each is, so all are taken to be beyond the rarest known one.
        rarest = np.full(of_rows.size, of_known.max() + self.beyond)
        return np.where(np.isnan(of_rows), rarest, of_rows) if self.uses_own else rarest

    def offsets_of_new(
        self, rarity: np.ndarray, known_rows: KnownRows, counts: np.ndarray, of_mix: np.ndarray
    ) -> np.ndarray:
        """Return the offsets of rows that come later, (n_new, n_dims).

        `own` has the count of each, NaN where there is none; `mixed` the rarity of what it is made
        of if it is not rare itself, otherwise NaN.
        """
        of_known = rarity[known_rows.is_known]
        curve = self.curve or curve_of_known(of_known, known_rows.known, degree=self.degree)
        rare = self._assumed(of_known, minus_log_count(counts))
        return curve.at(np.where(np.isnan(of_mix), rare, of_mix))

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values, for JSON."""
        return {
            "beyond": self.beyond,
            "uses_own": self.uses_own,
            "learnt_on": "known rows" if self.curve is None else "the whole vocabulary",
        }


def without(vectors: np.ndarray, is_seen: KnownMask, offsets: Offsets) -> KnownRows:
    """Return seen rows that have lost their offset."""
    plain = vectors.copy()
    plain[is_seen] -= offsets.known
    return KnownRows(plain, is_seen)
