"""Stay on the old embedding, translate, or re-embed: what a search finds under each.

Only documents embedded by both models can be judged, so they are the collection here. Each is
translated by a map that never saw it. Truth is what the user says answers a query, or else what the
new model finds when everything is re-embedded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

import numpy as np

from vecfill.model.predictors import Predictor
from vecfill.wording import count, html_table

SHARES = (0.1, 0.2, 0.5)
"""Shares of the documents that are re-embedded before the others are translated."""

LEVEL = 0.02
"""Gap of recall that counts as none if it is within noise. A guess: two points are what two draws
of the same sample differ by."""

ORDERS = ("gain", "mahalanobis", "random")
"""Which documents are re-embedded first: those expected to gain most, the oddest, or any."""

N_BOOTSTRAPS = 1000
"""As in `vecfill.trust.compare.evaluation`."""

STAY, DOCUMENTS, QUERIES, EVERYTHING = "stay", "documents", "queries", "everything"


def share_name(share: float) -> str:
    """Return the name of the option to re-embed a share first."""
    return f"reembed_{round(100 * share)}"


@dataclass(frozen=True, eq=False)
class MigrationEvaluation:
    """What a search finds if one stays, translates, or re-embeds.

    Examples
    --------
    >>> recall = np.array([[0.5, 0.5, 0.5, 0.4], [0.9, 0.9, 0.8, 1.0]])
    >>> scores = {name: {"recall": row, "ndcg": row}
    ...           for name, row in zip(("stay", "everything"), recall, strict=True)}
    >>> MigrationEvaluation(scores, k=10, n_documents=50, n_pairs=50, is_labelled=True).best
    'stay'
    """

    scores: dict[str, dict[str, np.ndarray]] = field(repr=False)
    """By option and measure, the score of each query."""
    k: int
    n_documents: int
    """Documents among which was searched."""
    n_pairs: int
    """Documents embedded by both models."""
    is_labelled: bool
    """Whether the user said which documents answer a query; else the new model does."""
    by_order: dict[str, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)
    """By share and order of re-embedding, the recall of each query."""
    maps: dict[str, Predictor] = field(default_factory=dict)
    """The map that was chosen for each side."""
    agreed: float = np.nan
    """Share of what both models find that a search in translated documents finds too."""
    budget: float = 0.5
    """The largest share that the user would re-embed."""
    n_to_translate: int | None = None
    """Documents that have no new vector yet."""

    @property
    def n_queries(self) -> int:
        """How many queries were asked."""
        return len(self.scores[STAY]["recall"])

    @property
    def options(self) -> tuple[str, ...]:
        """What may be done within the budget, the cheapest first."""
        free = [name for name in (STAY, QUERIES, DOCUMENTS) if name in self.scores]
        paid = [share for share in SHARES if share <= self.budget]
        names = [*free, *map(share_name, paid)]
        return tuple(name for name in names if name in self.scores)

    def mean(self, option: str, measure: str = "recall") -> float:
        """Return the mean score of an option."""
        return float(self.scores[option][measure].mean())

    def difference(
        self, option: str, other: str, measure: str = "recall"
    ) -> tuple[float, float, float]:
        """Return how much better an option is than another, with its 95 % interval."""
        gaps = self.scores[option][measure] - self.scores[other][measure]
        low, high = _interval(gaps)
        return float(gaps.mean()), low, high

    def interval(self, option: str, measure: str = "recall") -> tuple[float, float]:
        """Return the 95 % interval of an option's mean score, over queries."""
        return _interval(self.scores[option][measure])

    @property
    def best(self) -> str:
        """The cheapest option within the budget that is level with the best.

        Level means that no other is better beyond noise, nor by more than `LEVEL`: with few queries
        nothing is beyond noise, and staying would always be advised.
        """
        options = self.options
        top = max(options, key=self.mean)

        def is_level(name: str) -> bool:
            gap, low, _ = self.difference(top, name)
            return low <= 0.0 and gap <= LEVEL

        return next(name for name in options if is_level(name))

    @property
    def verdict(self) -> str:
        """What to do, in one sentence, and what it costs."""
        best, stay = self.best, self.mean(STAY)
        gain = self.difference(EVERYTHING, best)
        full = f"re-embedding everything would {_points(gain[0])}"
        if best == STAY:
            rivals = [name for name in (DOCUMENTS, QUERIES) if name in self.scores]
            rival = max(rivals, key=self.mean, default=None)
            change = 0.0 if rival is None else self.mean(rival) - stay
            words = f"Stay: translation would {_points(change)}, and {full}."
            if gain[1] <= 0.0:
                words = f"Stay: translation would {_points(change)}, and re-embedding brings no "
                words += "gain beyond noise."
        elif best in (DOCUMENTS, QUERIES):
            words = f"Translate the {best}: it would {_points(self.mean(best) - stay)} against "
            words += f"staying; {full}."
        else:
            share = int(best.removeprefix("reembed_"))
            words = f"Re-embed {share} % first{self._cost(share / 100)}, then translate: it would "
            more = " more" if gain[0] >= 0.005 else ""
            words += f"{_points(self.mean(best) - stay)} against staying; {full}{more}."
        if best != STAY and self.difference(best, STAY)[1] <= 0.0:
            words += (
                f" The gain is within the noise of {count(self.n_queries, 'query', 'queries')}."
            )
        return words + self._caveat()

    def _cost(self, share: float) -> str:
        if self.n_to_translate is None:
            return ""
        n_all = self.n_to_translate + self.n_pairs
        return f" ({count(max(0, round(share * n_all) - self.n_pairs), 'more document')})"

    def _caveat(self) -> str:
        if self.is_labelled:
            return ""
        return (
            f" Right is what the new model finds, so staying counts as wrong wherever the models "
            f"differ. Of what both find, translation keeps {100 * self.agreed:.0f} %. Say which "
            "documents answer your queries (relevant=) to learn which model serves them better."
        )

    def curve(self, order: str = "gain") -> list[tuple[float, float]]:
        """Return the recall by share re-embedded, from translating all to re-embedding all."""
        ends = [(0.0, self.mean(DOCUMENTS))]
        ends += [(share, float(self.by_order[order][share_name(share)].mean())) for share in SHARES]
        return [*ends, (1.0, self.mean(EVERYTHING))]

    def table(self) -> list[dict[str, object]]:
        """Return a row for each option: its scores, intervals, and what it changes."""
        rows: list[dict[str, object]] = []
        for name in (*_LABELS, *map(share_name, SHARES), EVERYTHING):
            if name not in self.scores:
                continue
            low, high = self.interval(name)
            change = self.difference(name, STAY)
            rows.append(
                {
                    "option": label_of(name),
                    "recall": self.mean(name),
                    "low": low,
                    "high": high,
                    "ndcg": self.mean(name, "ndcg"),
                    "against staying": change[0],
                    "is beyond noise": change[1] > 0 or change[2] < 0,
                }
            )
        return rows

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "best": self.best,
            "k": self.k,
            "n_queries": self.n_queries,
            "n_documents": self.n_documents,
            "is_labelled": self.is_labelled,
            "options": self.table(),
            "curves": {order: self.curve(order) for order in self.by_order},
            "maps": {side: predictor.to_dict() for side, predictor in self.maps.items()},
        }

    def __repr__(self) -> str:
        return f"MigrationEvaluation({self.verdict})"

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        lines.append(f"{'':34}R@{self.k:<5} 95 % interval   NDCG@{self.k}")
        lines += [
            f"{row['option']:34}{row['recall']:.3f}   {row['low']:.3f} to {row['high']:.3f}   "
            f"{row['ndcg']:.3f}"
            for row in self.table()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            [
                str(row["option"]),
                f"{row['recall']:.3f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                f"{row['ndcg']:.3f}",
            ]
            for row in self.table()
        ]
        head = ["", f"R@{self.k}", "95 % interval", f"NDCG@{self.k}"]
        return f"<p>{escape(self.verdict)}</p>" + html_table(head, rows)


_LABELS = {
    STAY: "stay on the old model",
    DOCUMENTS: "translate the documents",
    QUERIES: "translate the queries",
}


def label_of(name: str) -> str:
    """Return what tables call an option."""
    if name == EVERYTHING:
        return "re-embed everything"
    share = name.removeprefix("reembed_")
    return _LABELS.get(name, f"re-embed {share} %, translate the rest")


def _points(change: float) -> str:
    points = round(100 * abs(change))
    if points == 0:
        return "gain nothing"
    return f"{'gain' if change > 0 else 'lose'} {count(points, 'point')}"


def _interval(values: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = [values[rng.integers(0, values.size, values.size)].mean() for _ in range(N_BOOTSTRAPS)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
