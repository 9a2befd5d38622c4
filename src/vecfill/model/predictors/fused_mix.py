"""What fused vectors are made of: the parts of their sources, and how known rows are mixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.model.prediction import Composition, Mix


@dataclass(frozen=True)
class Part:
    """What one source adds to the vectors of some unknown rows."""

    name: str
    places: np.ndarray
    """Places of the rows among the wanted ones."""
    vectors: np.ndarray
    """(n_places, n_dims) its weighted prediction, from the mean of the known rows it describes."""


@dataclass(frozen=True)
class FusedComposition(Composition):
    """What fused vectors are made of, source by source."""

    parts: tuple[Part, ...] = ()

    def source_shares(self, place: int) -> dict[str, float]:
        """Return how much of a row's way from the mean each source went; they sum to one."""
        steps = {
            part.name: part.vectors[np.flatnonzero(part.places == place)[0]]
            for part in self.parts
            if place in part.places
        }
        total = np.sum(list(steps.values()), axis=0) if steps else np.zeros(1)
        size = float(np.dot(total, total))
        if size == 0.0:
            return dict.fromkeys(steps, 0.0)
        # Each step along the whole: what is across it is taken back by other sources.
        return {name: float(np.dot(step, total)) / size for name, step in steps.items()}


@dataclass(frozen=True)
class MemberMix:
    """How the known rows of one source are mixed."""

    number: int
    described: np.ndarray
    """Which of the wanted rows it describes."""
    columns: np.ndarray
    """Places of its known rows among all known rows."""
    mix: Mix


@dataclass(frozen=True)
class FusedMix(Mix):
    """How the known rows of all sources are mixed: the members' mixes, weighted.

    All known rows have an equal share first, which makes their mean. What a source adds sums to
    nothing: its mix, less an equal share of the known rows that it describes.
    """

    members: tuple[MemberMix, ...]
    weights: np.ndarray
    """(n_wanted, n_sources)."""
    n_known: int

    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some unknown rows (down)."""
        places = np.asarray(places, np.int64)
        shares = np.zeros((places.size, self.n_known))
        # The mean of all known rows is where every sum starts.
        shares += 1.0 / self.n_known
        for member in self.members:
            place_of = np.full(len(self.weights), -1)
            place_of[member.described] = np.arange(member.described.size)
            rows = np.flatnonzero(place_of[places] >= 0)
            if not rows.size or not member.columns.size:
                continue
            weight = self.weights[places[rows], member.number][:, None]
            # Minus an equal share: what a source adds is a step, and steps sum to nothing.
            added = member.mix.shares(place_of[places[rows]]) - 1.0 / member.columns.size
            shares[np.ix_(rows, member.columns)] += weight * added
        return shares

    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""
        return self._summed(values, lambda mix, values: mix.spread(values(), tol=tol))

    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the same of what known rows carry for signals."""
        return self._summed(values(), lambda mix, values: mix.carried(values, tol=tol))

    def _summed(
        self,
        values: np.ndarray,
        spread: Callable[[Mix, Callable[[], np.ndarray]], np.ndarray],
    ) -> np.ndarray:
        """Return the mean of all known rows, and what the sources add to it."""
        sums = np.repeat(values.mean(axis=0)[None], len(self.weights), axis=0)
        for member in self.members:
            if not member.columns.size:
                continue
            of_member = values[member.columns]
            weight = self.weights[member.described, member.number][:, None]
            step = spread(member.mix, lambda values=of_member: values) - of_member.mean(axis=0)
            sums[member.described] += weight * step
        return sums

    def misfit(self) -> np.ndarray:
        """Return how badly neighbours explain each unknown row, averaged over its sources."""
        return self._averaged("misfit")

    def straight(self) -> np.ndarray:
        """Return how much weight rests on known rows directly, averaged over the sources."""
        return self._averaged("straight")

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each unknown row, averaged over the sources."""
        return self._averaged("tightness")

    def _averaged(self, signal: str) -> np.ndarray:
        total, weight = np.zeros((2, len(self.weights)))
        for member in self.members:
            weights = self.weights[member.described, member.number]
            total[member.described] += weights * getattr(member.mix, signal)()
            # A row that no source counts for has no signal, which is 0 and not a division by 0.
            weight[member.described] += weights
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
