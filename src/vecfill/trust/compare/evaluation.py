"""Known rows hidden and imputed again, against rivals.

Every method sees the same folds. `auto` is scored honestly: in each fold its predictor is chosen
on the rows that are left, by hiding some of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import InputError
from vecfill.inputs.interactions import Tastes
from vecfill.inputs.rarity import Rarity
from vecfill.model.known import KnownRows
from vecfill.model.offset import without
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.choice import CHANCE
from vecfill.trust.choose.columns import ColumnReport, columns_in_words
from vecfill.trust.choose.decision import Decision, decide
from vecfill.trust.choose.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.choose.rareness import has_own
from vecfill.trust.choose.recommending import Audience, Recommend
from vecfill.trust.choose.scores import MEASURES, RECOMMENDING, Judge, RowScores, joined
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.compare.rivals import POPULAR, POPULAR_LABEL, RIVALS, Competitors, Rival
from vecfill.trust.prove.hidden import HIDDEN_TOL
from vecfill.trust.prove.leaks import Leak
from vecfill.wording import html_details, html_table, percent, share_found

# Enough for 95 % intervals: 25 resamples lie beyond either end.
N_BOOTSTRAPS = 1000

# From decision 14: the shares that its figures are about.
BLOCKS = (0.2, 0.4)
"""Shares of the known rows, the rarest, that ``hide="rarest"`` hides in turn."""

_HIDDEN = {"random": "hidden", "rarest": "rare hidden"}


@dataclass(frozen=True)
class Evaluation:
    """How near each method came to hidden known vectors."""

    n_known: int
    n_unknown: int
    folds: int
    scores: dict[str, RowScores] = field(repr=False)
    """Scores row by row, of every method on the same rows."""
    decision: Decision
    """What `auto` decides with all known rows in view. Pass it to `impute` as `method` to save the
    time of deciding again."""
    p_value: float
    """How likely chance alone would tie the known vectors to the table: that of the decision."""
    hide: str = "random"
    """Which known rows were hidden: ``"random"`` ones, or the ``"rarest"`` as blocks."""
    labels: dict[str, str] = field(default_factory=dict, repr=False)
    """What tables and figures call the methods."""
    tuned: dict[str, tuple[Predictor, ...]] = field(default_factory=dict, repr=False)
    """What each rival was tuned to, fold by fold."""
    leaks: tuple[Leak, ...] = ()
    """Sources and columns that give known entities away, so that these scores flatter."""
    columns: tuple[ColumnReport, ...] = ()
    """What each column of the tables adds to the predictor that was chosen."""
    notes: tuple[str, ...] = ()
    """What made no difference, and why."""

    @property
    def methods(self) -> dict[str, dict[str, float]]:
        """Mean measures by method."""
        return {name: score.means() for name, score in self.scores.items()}

    @property
    def chosen(self) -> Predictor:
        """The predictor that `auto` takes with all known rows in view."""
        return self.decision.predictor

    @property
    def has_signal(self) -> bool:
        """Whether vectors depend on the table beyond chance, and `auto` beats the known mean."""
        return self.p_value < CHANCE and self.methods["auto"]["centred_cosine"] > 0

    @property
    def recommends(self) -> bool:
        """Whether hidden entities were recommended, so that methods are compared by that."""
        return POPULAR in self.scores

    @property
    def leading(self) -> str:
        """The measure by which methods are ordered: of recommendations, or of nearest vectors."""
        return "ndcg" if self.recommends else "mrr"

    @property
    def verdict(self) -> str:
        """What the comparison shows, in one or two sentences."""
        if not self.has_signal:
            if self.hide == "rarest" and self.interval("auto", "centred_cosine")[0] > 0:
                return (
                    "The table carries no signal about this embedding. Rare hidden vectors came "
                    "back nearer than the mean of the known ones, but only by what rare entities "
                    "have in common: the table does not tell them apart."
                )
            return (
                "The table carries no signal about this embedding: hidden vectors came back no "
                "better than the mean of the known ones."
            )
        means = self.methods
        rivals = {name: means[name] for name in means if name != "auto"}
        best = max(rivals, key=lambda name: rivals[name][self.leading])
        low, high = self.difference("auto", best, self.leading)
        hits = means["auto"]["hits_at_10"]
        times = hits * self.n_known / 10
        first = (
            f"{share_found(hits, _HIDDEN[self.hide])} found among the ten vectors nearest to the "
            f"imputed one, about {times:.0f} times chance."
        )
        if self.recommends:
            shares = [percent(means[name]["recall"]) for name in ("auto", POPULAR)]
            first = (
                f"Of the hidden items that a user took, {shares[0]} are among the twenty that "
                f"imputed vectors recommend; if all users get what is popular, {shares[1]} are."
            )
        rival = self.label(best)
        if low > 0:
            return f"{first} No other method does as well; {rival} comes nearest."
        if high < 0:
            return f"{first} Here {rival} does better: consider it."
        return f"{first} Here {rival} does as well."

    def label(self, method: str) -> str:
        """Return what tables and figures call a method: "kernel ridge regression"."""
        return self.labels.get(method, method)

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
                name: {
                    measure: list(self.interval(name, measure)) for measure in self._with_interval
                }
                for name in self.scores
            },
            "hide": self.hide,
            "tuned": {
                name: [str(predictor) for predictor in predictors]
                for name, predictors in self.tuned.items()
            },
            "chosen": self.decision.to_dict(),
            "p_value": self.p_value,
            "has_signal": self.has_signal,
            "verdict": self.verdict,
            "leaks": [leak.to_dict() for leak in self.leaks],
            "columns": [column.to_dict() for column in self.columns],
            "notes": list(self.notes),
        }

    @property
    def _with_interval(self) -> tuple[str, ...]:
        return (*MEASURES[:3], *(RECOMMENDING[:2] if self.recommends else ()))

    def _rows(self, heads: Mapping[str, str]) -> list[tuple[str, list[str]]]:
        """Return what each method is called and its means, the best first."""
        means = self.methods
        order = sorted(means, key=lambda name: -means[name][self.leading])
        digits = {measure: 2 if measure == "norm_ratio" else 3 for measure in heads}
        rows = {name: [f"{means[name][key]:.{n}f}" for key, n in digits.items()] for name in order}
        return [(self.label(name), cells) for name, cells in rows.items()]

    def __str__(self) -> str:
        heads = _RECOMMENDED if self.recommends else _SHOWN
        rows = self._rows(heads)
        wide = max(len(name) for name, _ in rows)
        widths = [max(len(head) + 2, 7) for head in heads.values()]
        lines = [
            f"{self.n_known:,} known, {self.n_unknown:,} unknown, "
            + (f"{self.folds} folds" if self.hide == "random" else "the rarest known rows hidden")
        ]
        for name, cells in [("method", list(heads.values())), *rows]:
            columns = "".join(f"{cell:>{n}}" for cell, n in zip(cells, widths, strict=True))
            lines.append(f"{name:{wide}}{columns}")
        lines.append(f"chosen: {self.chosen.in_words()}")
        lines += [f"columns: {columns_in_words(self.columns)}"] if self.columns else []
        lines.append(self.verdict)
        return "\n".join([*lines, *map(str, self.leaks), *self.notes])

    def _repr_html_(self) -> str:
        heads = _RECOMMENDED if self.recommends else dict(list(_SHOWN.items())[:4])
        head = ["method", *(_IN_FULL.get(title, title) for title in heads.values())]
        rows = [[name, *cells] for name, cells in self._rows(heads)]
        return (
            f"<p><strong>{escape(self.verdict)}</strong></p>"
            + "".join(f"<p>{escape(str(note))}</p>" for note in (*self.leaks, *self.notes))
            + html_table(head, rows, strong=self.label("auto"))
            + f"<p>chosen: {escape(self.chosen.in_words())}</p>"
            + html_details("exact setting", f"<code>{escape(str(self.chosen))}</code>")
        )


_SHOWN = {"centred_cosine": "centred cos", "mrr": "MRR", "hits_at_10": "hits@10",
          "cosine": "cosine", "norm_ratio": "norm"}  # fmt: skip
"""Measures of the printed table and their heads, in the order of its columns."""

_RECOMMENDED = {"ndcg": "NDCG@20", "recall": "recall@20", "coverage": "coverage",
                "centred_cosine": "centred cos", "norm_ratio": "norm"}  # fmt: skip
"""The same where hidden entities were recommended."""

_IN_FULL = {"centred cos": "centred cosine"}


def _interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return a percentile bootstrap interval of the mean; the same for the same values."""
    # Every method was asked for the same rows, so the same draws make differences paired.
    means = _resamples(values.size) @ values / values.size
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=1)
def _resamples(n_rows: int) -> np.ndarray:
    """Return how often each row is taken in each resample; all measures share the draws."""
    rng = np.random.default_rng(0)
    return rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), N_BOOTSTRAPS).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """How methods are compared: which known rows are hidden, against whom, how `auto` chooses."""

    n_folds: int = 5
    hide: str = "random"
    """``"random"`` rows, or the ``"rarest"`` as blocks of several sizes, which needs a rarity."""
    goal: str = "balanced"
    candidates: str = "all"
    seed: int = 0
    rivals: Mapping[str, Rival] = field(default_factory=lambda: RIVALS)


def evaluate_rows(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    how: Comparing = Comparing(),  # noqa: B008
    *,
    rarity: Rarity | None = None,
    words: np.ndarray | None = None,
    tastes: Tastes | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Return how near `auto`, the paper's method and every rival come to hidden known rows.

    Rivals are tuned in each fold, on the rows that are left. With `tastes`, hidden rows are
    recommended as well, and what is popular is one more rival.

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
    folds = _folds(is_known, how, rarity, twins_of(embedding, is_known))
    goal = how.goal
    if goal == "recommend" and tastes is not None:
        goal = Recommend.of(tastes)
    options: dict[str, Any] = {"goal": goal, "candidates": how.candidates, "seed": how.seed}
    options["words"] = words
    parts: dict[str, list[RowScores]] = {}
    tuned: dict[str, list[Predictor]] = {}
    labels: dict[str, str] = {}
    # Rows hidden at random are not rare, so nothing may be assumed about their rarity.
    is_usable = rarity is not None and (how.hide == "rarest" or has_own(rarity.values, is_known))
    usable_rarity = rarity if is_usable else None
    tell = progress or (lambda _done, _total: None)
    for number, fold in enumerate(folds):
        tell(number, len(folds) + 1)
        centre = embedding[fold.is_seen].mean(axis=0)
        # What is hidden is not there at all, so that no method can be tuned on it by mistake.
        blind = np.where(fold.is_seen[:, None], embedding, np.nan)
        known_rows = KnownRows(blind, fold.is_seen)
        decision, vectors = _auto(space, known_rows, fold, usable_rarity, **options)
        competitors = Competitors(
            space, known_rows, decision, how.rivals, goal=goal, seed=how.seed + 1
        )
        vectors_of = {"auto": vectors}
        vectors_of |= {name: predict(fold.places) for name, predict in competitors.predict.items()}
        labels |= competitors.labels
        for name, predictor in competitors.tuned.items():
            tuned.setdefault(name, []).append(predictor)
        audience = Audience.of(tastes, embedding, [fold]) if tastes else None
        judge = Judge(known, centre, audience=audience)
        for name, vectors in vectors_of.items():
            parts.setdefault(name, []).append(judge.scored(vectors, fold.truth))
        if tastes is not None and audience is not None:
            popular = competitors.popular(tastes, fold.places)
            everybody = judge.scored(np.repeat(centre[None], len(popular), axis=0), fold.truth)
            gains = audience.gains_of(popular)
            parts.setdefault(POPULAR, []).append(replace(everybody, gains=gains))
            labels[POPULAR] = POPULAR_LABEL
    # With all known rows in view: this is what `impute` would do, and can be passed to it.
    decision = decide(space, embedding, is_known, rarity=rarity, **options)
    tell(len(folds) + 1, len(folds) + 1)
    assert decision.choice is not None
    return Evaluation(
        int(is_known.sum()),
        int((~is_known).sum()),
        len(folds),
        {name: joined(part) for name, part in parts.items()},
        decision,
        # Of all known rows: those of one fold predict those of another, and a block of rare ones
        # shares a direction, so hidden rows cannot say what is chance.
        decision.choice.p_value,
        how.hide,
        labels,
        {name: tuple(predictors) for name, predictors in tuned.items() if name != "paper"},
    )


def _folds(
    is_known: KnownMask, how: Comparing, rarity: Rarity | None, twins: np.ndarray | None
) -> list[Fold]:
    if how.hide == "random":
        return list(hidden_folds(is_known, n_folds=how.n_folds, seed=how.seed, twins=twins))
    if rarity is None:
        raise InputError(
            "hide='rarest' needs to know how rare the entities are, and the order of the embedding "
            "does not tell. Pass counts=."
        )
    return [rarest_block(is_known, rarity.values, share=share, twins=twins) for share in BLOCKS]


def _auto(
    space: Space,
    known_rows: KnownRows,
    fold: Fold,
    rarity: Rarity | None,
    *,
    seed: int,
    **options: Any,
) -> tuple[Decision, np.ndarray]:
    """Return the hidden rows as `auto` imputes them, and what it decided on the rows left."""
    fold_rarity = None
    if rarity is not None:
        # A hidden row keeps its own rarity only if unknown rows have theirs.
        values = rarity.values.copy()
        if not has_own(values, fold.is_seen | np.isin(np.arange(values.size), fold.hidden)):
            values[fold.hidden] = np.nan
        fold_rarity = replace(rarity, values=values)
    decision = decide(
        space, known_rows.embedding, fold.is_seen, rarity=fold_rarity, seed=seed + 1, **options
    )
    offsets, seen_rows = None, known_rows
    if decision.rule is not None and fold_rarity is not None:
        offsets = decision.rule.offsets(fold_rarity.values, known_rows, fold_rarity.spared)
        seen_rows = without(known_rows.embedding, fold.is_seen, offsets)
    prediction = decision.predictor.predict(space, seen_rows, Unknown(fold.places), tol=HIDDEN_TOL)
    if offsets is not None:
        offsets = offsets.completed(prediction.composition.mix, fold.places)
    predicted, centre = prediction.vectors, seen_rows.known.mean(axis=0)
    # Everything that `impute` does after predicting is done here as well, or `auto` would be judged
    # by vectors that no user gets.
    factors = decision.stretch.factors(offsets, seen_rows.unknown.size)[fold.places][:, None]
    vectors = centre + factors * (predicted - centre)
    return decision, vectors if offsets is None else vectors + offsets.unknown[fold.places]
