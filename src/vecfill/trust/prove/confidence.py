"""How far to trust each imputed row: what to expect, and bounds.

*Confidence* is the centred cosine to expect, net of the constant: 0 is no better than the best
vector that is the same for all, which is the mean of the known ones, or the offset of rare entities
where that is given. The *lower bound* is a split-conformal one of the same quantity: at level 0.9
the cosine is at least that in nine of ten cases, as long as unknown entities are like the known
ones that were hidden. How both are learnt is in `vecfill.trust.prove.learning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from vecfill._types import KnownMask
from vecfill.errors import InputError
from vecfill.requests import Trust
from vecfill.trust.choose.choice import FEWEST_KNOWN
from vecfill.wording import count, html_bars, html_table, percent


@dataclass(frozen=True, repr=False, eq=False)
class Confidence:
    """How far to trust each imputed row, and how that was learnt."""

    values: np.ndarray
    """(n_imputed,) centred cosine to expect, net of the constant, from 0 to 1."""
    lower_bound: np.ndarray
    """(n_imputed,) what that cosine reaches in a share `level` of cases."""
    plain_lower_bound: np.ndarray
    """(n_imputed,) the same for the plain cosine."""
    level: float
    expected: np.ndarray
    """(n_hidden,) expectation for hidden known rows, learnt without their fold."""
    actual: np.ndarray
    """(n_hidden,) their true centred cosine, net of the constant."""
    is_covered: np.ndarray
    """(n_hidden,) whether it was at least the bound, measured fold against fold."""
    proof: str = "random"
    """Which known rows were hidden: ``"random"`` ones, or the ``"rarest"`` as one block."""
    plain_floor: float = -1.0
    """What the plain cosine of a share `level` of all hidden rows reached."""

    @property
    def coverage(self) -> float:
        """Share of hidden rows whose centred cosine was at least their bound."""
        return float(self.is_covered.mean())

    @property
    def has_bound(self) -> np.ndarray:
        """(n_imputed,) whether anything is proved; if not, the value is what is possible at most.

        No cosine is below -1, so a bound there says nothing.
        """
        return self.lower_bound > -1.0

    def rows(self, rows: np.ndarray) -> Confidence:
        """Return the confidence of some of the imputed rows."""
        return replace(
            self,
            values=self.values[rows],
            lower_bound=self.lower_bound[rows],
            plain_lower_bound=self.plain_lower_bound[rows],
        )

    def lowered_to(self, limit: Confidence | None) -> Confidence:
        """Return the same with bounds that are nowhere above those of another proof."""
        if limit is None:
            return self
        return replace(
            self,
            lower_bound=np.minimum(self.lower_bound, limit.lower_bound),
            plain_lower_bound=np.minimum(self.plain_lower_bound, limit.plain_lower_bound),
        )

    def unproved(self) -> Confidence:
        """Return what is left where hidden rows prove nothing: no confidence, and no bounds."""
        nothing = np.full_like(self.values, -1.0)
        return replace(
            self,
            values=np.zeros_like(self.values),
            lower_bound=nothing,
            plain_lower_bound=nothing.copy(),
        )

    def cautious(self, rows: np.ndarray) -> Confidence:
        """Return what no signal raises, for rows about which nothing is proved.

        Their confidence is at most the mean of all hidden rows, and each bound at most what a share
        `level` of those reached.
        """
        if not rows.any():
            return self
        # Signals of such rows may be as good as any: they say nothing about what is unusual.
        mean = min(max(float(self.actual.mean()), 0.0), 1.0)
        limits = {
            "values": mean,
            "lower_bound": reached(self.actual, self.level),
            "plain_lower_bound": self.plain_floor,
        }
        return replace(
            self,
            **{
                name: np.where(rows, np.minimum(getattr(self, name), limit), getattr(self, name))
                for name, limit in limits.items()
            },
        )

    def without_bound(self, rows: np.ndarray, most: float) -> Confidence:
        """Return the same without bounds for rows of which hidden ones teach nothing.

        Their expectation is at most what the outermost hidden rows reached.
        """
        if not rows.any():
            return self
        return replace(
            self,
            values=np.where(rows, np.minimum(self.values, most), self.values),
            lower_bound=np.where(rows, -1.0, self.lower_bound),
            plain_lower_bound=np.where(rows, -1.0, self.plain_lower_bound),
        )

    def curve(self, n_points: int = 20) -> list[dict[str, float]]:
        """Return what is kept and how good it is, threshold by threshold, on hidden rows.

        Each point has the share of rows whose expectation is at least the threshold, and their mean
        true centred cosine: choose a threshold and pass it as
        `min_confidence`.
        """
        order = np.argsort(-self.expected, kind="stable")
        points = []
        for share in np.linspace(1.0 / n_points, 1.0, n_points):
            trusted = order[: max(1, round(share * order.size))]
            points.append(
                {
                    "threshold": float(self.expected[trusted].min()),
                    "share": float(trusted.size / order.size),
                    "centred_cosine": float(self.actual[trusted].mean()),
                }
            )
        return points

    def groups(self, n_groups: int = 10) -> list[dict[str, float]]:
        """Return hidden rows in groups of equal size by their expectation, the lowest first.

        Of each group: the mean expectation, the mean of what came out, between `low` and `high` at
        95 %, and the share of bounds that held. Bounds that hold on average may fail where
        confidence is low; this is where to look.
        """
        order = np.argsort(self.expected, kind="stable")
        groups = []
        for rows in np.array_split(order, min(n_groups, order.size)):
            actual = self.actual[rows]
            error = 1.96 * float(actual.std()) / np.sqrt(rows.size)
            groups.append(
                {
                    "n": int(rows.size),
                    "expected": float(self.expected[rows].mean()),
                    "actual": float(actual.mean()),
                    "low": float(actual.mean()) - error,
                    "high": float(actual.mean()) + error,
                    "coverage": float(self.is_covered[rows].mean()),
                }
            )
        return groups

    def __repr__(self) -> str:
        hidden_rows = "the rarest known rows" if self.proof == "rarest" else "known rows"
        proof = (
            f"{percent(self.level)} bounds held for {percent(self.coverage, 1)} of "
            f"{self.actual.size:,} hidden rows, {hidden_rows}"
        )
        if not self.values.size:
            return f"Confidence(nothing imputed; {proof})"
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75])
        n_unproved = int((~self.has_bound).sum())
        unproved = f"; at most that for {n_unproved:,} without a bound" if n_unproved else ""
        return (
            f"Confidence({count(self.values.size, 'entity')}: median {middle:.2f}, half of them "
            f"{low:.2f} to {high:.2f}{unproved}; {proof})"
        )

    def _repr_html_(self) -> str:
        counts, _ = np.histogram(self.values, bins=20, range=(0.0, 1.0))
        head = ["confidence at least", "share kept", "mean centred cosine"]
        rows = [
            [f"{point['threshold']:.2f}", percent(point["share"]), f"{point['centred_cosine']:.2f}"]
            for point in self.curve(5)
        ]
        return (
            f"<p>{escape(repr(self)[len('Confidence(') : -1])}</p>"
            + html_bars(counts.tolist(), 0, 1, "confidence of the imputed entities")
            + html_table(head, rows)
        )


def put_together(parts: Sequence[tuple[np.ndarray, Confidence | None]]) -> Confidence | None:
    """Return one confidence of the rows of several parts, each with a mask of its rows.

    What hidden rows show is that of all parts together; the first part says which proof it is.
    """
    learnt = [(rows, part) for rows, part in parts if part is not None]
    # Half a confidence would be taken for a whole one.
    if len(learnt) < len(parts):
        return None

    first = learnt[0][1]

    def placed(name: str) -> np.ndarray:
        values = np.empty(learnt[0][0].size)
        for rows, part in learnt:
            values[rows] = getattr(part, name)
        return values

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for _, part in learnt])

    return Confidence(
        placed("values"),
        placed("lower_bound"),
        placed("plain_lower_bound"),
        first.level,
        joined("expected"),
        joined("actual"),
        joined("is_covered"),
        first.proof,
        min(part.plain_floor for _, part in learnt),
    )


def within_limits(confidence: Confidence | None, trust: Trust, is_known: KnownMask) -> np.ndarray:
    """Tell which imputed entities have the confidence and the bound that were asked for."""
    n_unknown = int((~is_known).sum())
    limits = {"min_confidence": trust.min_confidence, "min_bound": trust.min_bound}
    limited_by = [name for name, limit in limits.items() if limit is not None]
    if not limited_by or n_unknown == 0:
        return np.ones(n_unknown, np.bool_)
    if confidence is None:
        raise InputError(
            f"{limited_by[0]} needs a confidence, and too few entities are known to learn one "
            f"({int(is_known.sum())}; {2 * FEWEST_KNOWN} are needed)."
        )
    is_kept = confidence.lower_bound >= (-1.0 if trust.min_bound is None else trust.min_bound)
    if trust.min_confidence is not None:
        # Without a bound it is what is possible at most, which is no reason for trust.
        is_kept &= confidence.has_bound & (confidence.values >= trust.min_confidence)
    return is_kept


def reached(values: np.ndarray, level: float) -> float:
    """Return what at least a share `level` of values like these reach."""
    # One more than there are, as in a split-conformal bound: the new row is one of them.
    place = max(0, int(np.floor((1.0 - level) * (values.size + 1))) - 1)
    return float(np.sort(values)[place])
