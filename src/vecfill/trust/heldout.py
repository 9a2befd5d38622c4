"""Known rows hidden and imputed again, against rivals.

Every method sees the same folds. `auto` is scored honestly: in each fold its setting is chosen on
the rows that are left, by hiding some of those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.settings import PAPER, Setting, Stages
from vecfill.trust.choice import CHANCE, chance_of, choose
from vecfill.trust.hiding import hidden_folds
from vecfill.trust.rivals import RIVALS
from vecfill.trust.scores import RowScores, joined, score_rows, unit

N_BOOTSTRAPS = 1000
MEASURES = ("centred_cosine", "mrr", "hits_at_10", "cosine", "norm_ratio")


@dataclass(frozen=True)
class HeldoutReport:
    """How near each method came to hidden known vectors."""

    n_known: int
    n_unknown: int
    folds: int
    scores: dict[str, RowScores] = field(repr=False)
    """Scores row by row, of every method on the same rows."""
    chosen: Setting
    """The setting that `auto` takes with all known rows in view."""
    p_value: float
    """How likely chance alone would come as near as `auto` did."""

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
                "The domain carries no signal about this embedding: hidden vectors came back no "
                "better than the mean of the known ones would."
            )
        means = self.methods
        rivals = {name: means[name] for name in means if name != "auto"}
        best = max(rivals, key=lambda name: rivals[name]["mrr"])
        low, high = self.difference("auto", best, "mrr")
        how = "beats" if low > 0 else ("is beaten by" if high < 0 else "is level with")
        return (
            f"Imputation works here: hidden vectors came back with a centred cosine of "
            f"{means['auto']['centred_cosine']:.2f} (the mean has 0); auto {how} the best other "
            f"method, {best}, by mean reciprocal rank ({means['auto']['mrr']:.3f} against "
            f"{rivals[best]['mrr']:.3f})."
        )

    def difference(
        self, method: str, other: str, measure: str, *, level: float = 0.95
    ) -> tuple[float, float]:
        """Return a bootstrap interval of how much one method is above another on a measure."""
        gap = getattr(self.scores[method], measure) - getattr(self.scores[other], measure)
        return _interval(gap, level)

    def interval(self, method: str, measure: str, *, level: float = 0.95) -> tuple[float, float]:
        """Return a bootstrap interval of a method's mean on a measure."""
        return _interval(getattr(self.scores[method], measure), level)

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
            f"{self.n_known} known, {self.n_unknown} unknown, {self.folds} folds",
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
    rng = np.random.default_rng(0)
    # Resampling rows is drawing how often each is taken.
    counts = rng.multinomial(values.size, np.full(values.size, 1 / values.size), N_BOOTSTRAPS)
    means = counts @ values / values.size
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def evaluate_rows(
    stages: Stages,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    n_folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> HeldoutReport:
    """Return how near `auto`, the paper's setting and every rival come to hidden known rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(60, 3))
    >>> domain, embedding = np.tanh(latent), latent @ rng.normal(size=(3, 5))
    >>> report = evaluate_rows(Stages(domain), embedding, np.ones(60, bool))
    >>> report.has_signal, report.methods["mean"]["centred_cosine"]
    (True, 0.0)
    """
    # 32-bit sums would give the mean a direction of its own: rounding.
    embedding = embedding.astype(np.float64)
    known = embedding[is_known]
    rows = stages.domain
    rivals = {"mean": RIVALS["mean"]} if stages.is_distances else RIVALS
    parts: dict[str, list[RowScores]] = {name: [] for name in ("auto", "paper", *rivals)}
    directions, truths = [], []
    folds = list(hidden_folds(is_known, n_folds=n_folds, seed=seed))
    n_steps = len(folds) + 1
    for number, fold in enumerate(folds):
        if progress is not None:
            progress(number, n_steps)
        centre = embedding[fold.is_seen].mean(axis=0)
        setting = choose(stages, embedding, fold.is_seen, seed=seed + 1).setting
        found = {
            "auto": stages.impute(embedding, fold.is_seen, setting).vectors[fold.places],
            "paper": stages.impute(embedding, fold.is_seen, PAPER).vectors[fold.places],
        }
        # Rivals are asked for the hidden rows alone: they do not use the other unknown ones.
        shown = np.flatnonzero(fold.is_seen)
        both = np.concatenate([shown, fold.hidden])
        for name, rival in rivals.items():
            found[name] = rival(rows[both], embedding[shown], np.arange(both.size) < shown.size)
        for name, vectors in found.items():
            parts[name].append(score_rows(vectors, fold.truth, known, centre))
        directions.append(unit(found["auto"] - centre))
        truths.append(unit(known[fold.truth] - centre))
    chosen = choose(stages, embedding, is_known, seed=seed).setting
    if progress is not None:
        progress(n_steps, n_steps)
    return HeldoutReport(
        int(is_known.sum()),
        int((~is_known).sum()),
        n_folds,
        {name: joined(part) for name, part in parts.items()},
        chosen,
        chance_of(np.vstack(directions), np.vstack(truths)),
    )
