"""Known rows hidden and imputed again, against rivals.

Every method sees the same folds. `auto` is scored honestly: in each fold its predictor is chosen
on the rows that are left, by hiding some of those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import InputError
from vecfill.inputs.rarity import Rarity
from vecfill.model.directions import unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, RIVALS, Predictor
from vecfill.model.space import Space
from vecfill.trust.choice import CHANCE, choose, permutation_p_value
from vecfill.trust.decision import decide, has_own, without
from vecfill.trust.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.scores import MEASURES, RowScores, joined, score_rows

N_BOOTSTRAPS = 1000

BLOCKS = (0.2, 0.4)
"""Shares of the known rows, the rarest, that ``hide="rarest"`` hides in turn."""

_HIDDEN = {"random": "hidden entity", "rarest": "rare hidden entity"}

_NAMES = {
    "paper": "the paper's method",
    "mean": "the mean of the known vectors",
    "knn": "k nearest neighbours",
    "knn_distance": "k nearest neighbours weighted by distance",
    "ridge": "ridge regression",
    "omp": "orthogonal matching pursuit",
    "sparsemax": "sparsemax (FOCUS)",
}
"""Methods by the names readers know."""


def _in_words(share: float) -> str:
    """Return a share as people say it.

    Examples
    --------
    >>> _in_words(0.26), _in_words(0.8), _in_words(0.004)
    ('one in four', 'four in five', 'less than one in a hundred')
    """
    if share < 0.01:
        return "less than one in a hundred"
    numbers = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    if share > 0.5:
        whole = min(range(2, 11), key=lambda n: abs(share - (n - 1) / n))
        return f"{numbers[whole - 1]} in {numbers[whole]}" if share < 0.97 else "nearly every"
    if share < 0.095:
        return f"one in {round(1 / share)}"
    return f"one in {numbers[round(1 / share)]}"


@dataclass(frozen=True)
class Evaluation:
    """How near each method came to hidden known vectors."""

    n_known: int
    n_unknown: int
    folds: int
    scores: dict[str, RowScores] = field(repr=False)
    """Scores row by row, of every method on the same rows."""
    chosen: Predictor
    """The predictor that `auto` takes with all known rows in view."""
    p_value: float
    """How likely chance alone would come as near as `auto` did."""
    hide: str = "random"
    """Which known rows were hidden: ``"random"`` ones, or the ``"rarest"`` as blocks."""

    @property
    def methods(self) -> dict[str, dict[str, float]]:
        """Mean measures by method."""
        return {name: score.means() for name, score in self.scores.items()}

    @property
    def has_signal(self) -> bool:
        """Whether `auto` beats the mean of the known rows by more than chance."""
        return self.p_value < CHANCE and self.methods["auto"]["centred_cosine"] > 0

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if not self.has_signal:
            return (
                "The table carries no signal about this embedding: hidden vectors came back no "
                "better than the mean of the known ones."
            )
        means = self.methods
        rivals = {name: means[name] for name in means if name != "auto"}
        best = max(rivals, key=lambda name: rivals[name]["mrr"])
        low, high = self.difference("auto", best, "mrr")
        found, what = means["auto"]["hits_at_10"], _HIDDEN[self.hide]
        times = found * self.n_known / 10
        first = (
            f"Imputation works here: {_in_words(found)} {what} is found among its ten nearest "
            f"vectors, about {times:.0f} times chance."
        )
        if low > 0:
            return f"{first} No other method does as well; {_NAMES[best]} comes nearest."
        if high < 0:
            return f"{first} Here {_NAMES[best]} does better: consider it."
        return f"{first} Here {_NAMES[best]} does as well."

    def difference(
        self, method: str, other: str, measure: str, *, level: float = 0.95
    ) -> tuple[float, float]:
        """Return a bootstrap interval of how much one method is above another on a measure."""
        gap = self.scores[method].of(measure) - self.scores[other].of(measure)
        return _interval(gap, level)

    def interval(self, method: str, measure: str, *, level: float = 0.95) -> tuple[float, float]:
        """Return a bootstrap interval of a method's mean on a measure."""
        return _interval(self.scores[method].of(measure), level)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "n_known": self.n_known,
            "n_unknown": self.n_unknown,
            "folds": self.folds,
            "methods": self.methods,
            "intervals": {
                name: {measure: list(self.interval(name, measure)) for measure in MEASURES[:3]}
                for name in self.scores
            },
            "hide": self.hide,
            "chosen": self.chosen.to_dict(),
            "p_value": self.p_value,
            "has_signal": self.has_signal,
            "verdict": self.verdict,
        }

    def _rows(self) -> list[tuple[str, list[float]]]:
        means = self.methods
        order = sorted(means, key=lambda name: -means[name]["mrr"])
        return [(name, [means[name][measure] for measure in MEASURES]) for name in order]

    def __str__(self) -> str:
        lines = [
            f"{self.n_known} known, {self.n_unknown} unknown, "
            + (f"{self.folds} folds" if self.hide == "random" else "the rarest known rows hidden"),
            f"{'method':14}{'centred cos':>12}{'MRR':>8}{'hits@10':>9}{'cosine':>8}{'norm':>7}",
        ]
        for name, (centred, mrr, hits, cosine, ratio) in self._rows():
            lines.append(f"{name:14}{centred:12.3f}{mrr:8.3f}{hits:9.3f}{cosine:8.3f}{ratio:7.2f}")
        return "\n".join([*lines, f"chosen: {self.chosen}", self.verdict])

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th>{name}</th>" for name in ("method", "centred cosine", "MRR", "hits@10", "cosine")
        )
        body = "".join(
            f"<tr><td>{escape(name)}</td>"
            + "".join(f"<td>{v:.3f}</td>" for v in values[:4])
            + "</tr>"
            for name, values in self._rows()
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self.verdict)}</p>"
        )


def _interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return a percentile bootstrap interval of the mean; the same for the same values."""
    means = _resamples(values.size) @ values / values.size
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=1)
def _resamples(n_rows: int) -> np.ndarray:
    """Return how often each row is taken in each resample; all measures share the draws."""
    rng = np.random.default_rng(0)
    return rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), N_BOOTSTRAPS).astype(np.float32)


def evaluate_rows(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    n_folds: int = 5,
    hide: str = "random",
    rarity: Rarity | None = None,
    goal: str = "balanced",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Return how near `auto`, the paper's method and every rival come to hidden known rows.

    ``hide="rarest"`` hides the rarest known rows as blocks of several sizes, which needs `rarity`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(60, 3))
    >>> domain, embedding = np.tanh(latent), latent @ rng.normal(size=(3, 5))
    >>> report = evaluate_rows(Space(domain), embedding, np.ones(60, bool))
    >>> report.has_signal, report.methods["mean"]["centred_cosine"]
    (True, 0.0)
    """
    # 32-bit sums would give the mean a direction of its own: rounding.
    embedding = embedding.astype(np.float64)
    known = embedding[is_known]
    folds = _folds(is_known, n_folds, hide, rarity, seed)
    parts: dict[str, list[RowScores]] = {}
    directions, truths = [], []
    tell = progress or (lambda _done, _total: None)
    for number, fold in enumerate(folds):
        tell(number, len(folds) + 1)
        centre = embedding[fold.is_seen].mean(axis=0)
        found = _predicted(space, embedding, fold, rarity, goal, seed)
        for name, vectors in found.items():
            parts.setdefault(name, []).append(score_rows(vectors, fold.truth, known, centre))
        directions.append(unit(found["auto"] - centre))
        truths.append(unit(known[fold.truth] - centre))
    chosen = choose(space, embedding, is_known, goal=goal, seed=seed).predictor
    tell(len(folds) + 1, len(folds) + 1)
    return Evaluation(
        int(is_known.sum()),
        int((~is_known).sum()),
        len(folds),
        {name: joined(part) for name, part in parts.items()},
        chosen,
        permutation_p_value(np.vstack(directions), np.vstack(truths)),
        hide,
    )


def _folds(
    is_known: KnownMask, n_folds: int, hide: str, rarity: Rarity | None, seed: int
) -> list[Fold]:
    if hide == "random":
        return list(hidden_folds(is_known, n_folds=n_folds, seed=seed))
    if rarity is None:
        raise InputError(
            "hide='rarest' needs to know how rare the entities are, and the order of the embedding "
            "tells nothing about it. Pass counts= (--counts)."
        )
    return [rarest_block(is_known, rarity.values, share=share) for share in BLOCKS]


def _predicted(
    space: Space,
    embedding: EmbeddingVectors,
    fold: Fold,
    rarity: Rarity | None,
    goal: str,
    seed: int,
) -> dict[str, np.ndarray]:
    """Return the hidden rows of a fold as every method imputes them."""
    given = KnownRows(embedding, fold.is_seen)
    methods: dict[str, Predictor] = {"paper": PAPER}
    methods |= {
        name: rival
        for name, rival in RIVALS.items()
        if space.has_vectors or not rival.needs_vectors
    }
    found = {"auto": _auto(space, given, fold, rarity, goal, seed)}
    return found | {
        name: method.predict(space, given, places=fold.places).vectors
        for name, method in methods.items()
    }


def _auto(
    space: Space, given: KnownRows, fold: Fold, rarity: Rarity | None, goal: str, seed: int
) -> np.ndarray:
    """Return the hidden rows as `auto` imputes them: decided on the rows that are left."""
    own = None
    if rarity is not None:
        # A hidden row keeps its own rarity only if unknown rows have theirs.
        values = rarity.values.copy()
        if not has_own(values, fold.is_seen | np.isin(np.arange(values.size), fold.hidden)):
            values[fold.hidden] = np.nan
        own = replace(rarity, values=values)
    options: dict[str, Any] = {"rarity": own, "goal": goal, "seed": seed + 1}
    decision = decide(space, given.embedding, fold.is_seen, **options)
    if decision.rule is None or own is None:
        return decision.predictor.predict(space, given, places=fold.places).vectors
    offsets = decision.rule.offsets(own.values, given)
    rest = KnownRows(without(given.embedding, fold.is_seen, offsets), fold.is_seen)
    found = decision.predictor.predict(space, rest, places=fold.places).vectors
    return found + offsets.unknown[fold.places]
