"""Several sources for new rows, of which each may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vecfill.model.predictors.fused import Fused, Pattern
from vecfill.model.serving.base import Ground, Served, Server
from vecfill.model.sources import Member


@dataclass(frozen=True, eq=False)
class NewSourceRows:
    """New rows of several sources."""

    n_new: int
    rows: dict[int, Any] = field(repr=False)
    """By number of the source, the rows of those new entities that it describes."""
    places: dict[int, np.ndarray] = field(repr=False)
    """Which new entities these are."""

    @property
    def shape(self) -> tuple[int]:
        """(n_new,)."""
        return (self.n_new,)

    def presence(self, n_sources: int) -> np.ndarray:
        """(n_new, n_sources) which source describes which new entity."""
        found = np.zeros((self.n_new, n_sources), np.bool_)
        for number, places in self.places.items():
            found[places, number] = True
        return found


def member_ground(ground: Ground, member: Member) -> Ground:
    """Return what one source sees of the whole."""
    own = member.given(ground.rows)
    among_known = np.cumsum(ground.rows.is_known) - 1
    places = among_known[member.rows[own.is_known]]
    return Ground(member.space, own, lambda: ground.extra()[places])


def _mean(ground: Ground) -> np.ndarray:
    """Return the mean of the known rows, and of what else is known about them."""
    parts = ground.rows.known, ground.extra()
    return np.concatenate([each.mean(axis=0, dtype=np.float64) for each in parts])


def weights_of_pattern(predictor: Fused, pattern: Pattern) -> tuple[np.ndarray, bool]:
    """Return the weights of the sources for a pattern, and whether it was there at the fit.

    For a pattern that was not, they are those of the fitted pattern that shares most sources with
    it, without the sources that are absent, and as large together as they were.
    """
    table = dict(predictor.weights)
    if pattern in table:
        return np.array(table[pattern]), True
    present = np.array(pattern)
    usable = [number for number, each in enumerate(predictor.members) if each is not None]
    best, most = np.zeros(len(pattern)), 0
    for other, weights in table.items():
        shared = np.where(present, weights, 0.0)
        n_shared = int((np.array(other) & present)[usable].sum())
        if n_shared > most and shared.sum() > 0:
            best, most = shared * (sum(weights) / shared.sum()), n_shared
    if most == 0 and present[usable].any():
        best[usable] = present[usable] / present[usable].sum()
    return best, False


class FusedServer(Server):
    """The servers of all sources that were kept."""

    def __init__(
        self,
        predictor: Fused,
        ground: Ground,
        members: Sequence[Member],
        servers: Mapping[int, Server],
    ) -> None:
        self.predictor = predictor
        self.ground = ground
        self.members = tuple(members)
        self.servers = dict(servers)

    def weights(self, new: NewSourceRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of the sources for each new row, and whether they were fitted."""
        presence = new.presence(len(self.members))
        found = [weights_of_pattern(self.predictor, tuple(row)) for row in presence.tolist()]
        return np.array([each for each, _ in found]), np.array([is_old for _, is_old in found])

    def serve(self, new_rows: Any) -> Served:
        """Return the mean of the known rows, and what the sources add to it."""
        assert isinstance(new_rows, NewSourceRows)
        weights, _ = self.weights(new_rows)
        n_dims = self.ground.rows.n_dims
        mean = _mean(self.ground)
        values = np.repeat(mean[None], new_rows.n_new, axis=0)
        trend, parts, found = values[:, :n_dims].copy(), {}, {}
        for number, server in self.servers.items():
            places = new_rows.places.get(number, np.empty(0, np.int64))
            if not places.size:
                continue
            its = found[number] = server.serve(new_rows.rows[number])
            # As at the fit, a source counts from the mean of the known rows that it describes.
            own = _mean(member_ground(self.ground, self.members[number]))
            moved = weights[places, number][:, None] * (its.values - own)
            values[places] += moved
            part = parts[self.members[number].name] = np.zeros((new_rows.n_new, n_dims))
            part[places] = moved[:, :n_dims]
            if its.trend is not None:
                trend[places] += weights[places, number][:, None] * (its.trend - own[:n_dims])
        has_trend = any(each.trend is not None for each in found.values())
        told = {
            name: self._averaged(name, found, new_rows, weights)
            for name in ("misfit", "straight", "tightness")
        }
        return Served(
            values,
            lambda places: self._shares(places, found, new_rows, weights),
            **told,
            trend=trend if has_trend else None,
            parts=parts,
        )

    def arrays(self) -> dict[str, Any]:
        """Return what the servers of the sources keep."""
        return {str(number): each.arrays() for number, each in self.servers.items()}

    def _averaged(
        self, name: str, found: Mapping[int, Served], new: NewSourceRows, weights: np.ndarray
    ) -> np.ndarray:
        total, sums = np.zeros(new.n_new), np.zeros(new.n_new)
        for number, its in found.items():
            places = new.places[number]
            total[places] += weights[places, number] * getattr(its, name)
            sums[places] += weights[places, number]
        return np.divide(total, sums, out=np.zeros_like(total), where=sums > 0)

    def _shares(
        self,
        places: np.ndarray,
        found: Mapping[int, Served],
        new: NewSourceRows,
        weights: np.ndarray,
    ) -> np.ndarray:
        places = np.asarray(places, np.int64)
        rows = self.ground.rows
        among_known = np.cumsum(rows.is_known) - 1
        total = np.zeros((places.size, rows.n_known))
        total += 1.0 / rows.n_known
        for number, its in found.items():
            where = {place: at for at, place in enumerate(new.places[number].tolist())}
            asked = [at for at, place in enumerate(places.tolist()) if place in where]
            if not asked:
                continue
            own = its.shares(np.array([where[int(places[at])] for at in asked]))
            member = self.members[number]
            known = member.rows[rows.is_known[member.rows]]
            weight = weights[places[asked], number][:, None]
            added = weight * (own - 1.0 / known.size)
            total[np.ix_(np.array(asked), among_known[known])] += added
        return total
