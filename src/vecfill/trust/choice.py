"""The best setting for the user's own data, chosen on known rows that are hidden and imputed again.

First each preparation of the domain is tried with one graph and all trends; then, for the best
preparation, the other graphs and weights. Settings are compared by the sum of three standardised
measures, because each alone can be fooled. Neighbours, graphs and weights are shared by all folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.stats import norm

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import InputError
from vecfill.settings import GAMMAS, RIDGES, Setting, Stages
from vecfill.trust.hiding import Fold, hidden_folds
from vecfill.trust.scores import RowScores, joined, score_rows, unit

FEWEST_KNOWN = 10
"""Fewer known rows can neither rank settings nor show a signal."""

FEW_KNOWN = 1000

ENOUGH_HIDDEN = 800
"""Hidden rows after which another fold would change no choice."""

MOST_ENTRIES = 600_000
"""Embeddings with more entries are compared in fewer dimensions, the leading ones."""

LEAST_DIMS = 64

CHOICE_TOL = 1e-4
"""Residual to which hidden rows are solved: far finer than what tells two settings apart."""

MEASURES = ("centred_cosine", "mrr", "hits_at_10")

CHANCE = 1e-3
"""A signal counts when chance alone would show it this rarely."""

FIRST_RIDGE = 0.1

POOL = 5000
"""Known vectors among which the truth is ranked when settings are compared."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Choice:
    """The setting chosen, how it was judged, and whether there is any signal."""

    setting: Setting
    settings: tuple[Setting, ...]
    """All that were tried."""
    means: tuple[dict[str, float], ...]
    """Mean measures of each on the hidden rows."""
    honest: RowScores
    """Scores of the hidden rows, each under the setting chosen without it."""
    p_value: float
    """How likely chance alone would come so near to the hidden vectors."""

    @property
    def has_signal(self) -> bool:
        """Whether the choice beats the mean of the known rows by more than chance."""
        return self.p_value < CHANCE and float(self.honest.centred_cosine.mean()) > 0


def chance_of(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return how likely vectors dealt out at random would be as near to the truth.

    Rows are directions from the centre. The sum of cosines of the pairs is compared with that
    under all permutations of the truth, whose mean and variance have a closed form.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = unit(rng.normal(size=(50, 5)))
    >>> chance_of(truth, truth) < 1e-6, chance_of(unit(rng.normal(size=(50, 5))), truth) > 0.01
    (True, True)
    """
    n_rows = len(truth)
    if n_rows < 3:
        return 1.0
    cosines = predicted @ truth.T
    own = float(np.trace(cosines))
    grand = cosines.mean()
    centred = cosines - cosines.mean(axis=0) - cosines.mean(axis=1, keepdims=True) + grand
    spread = np.sqrt((centred**2).sum() / (n_rows - 1))
    return float(norm.sf((own - n_rows * grand) / spread)) if spread > 0 else 1.0


def fewer_dims(embedding: EmbeddingVectors, is_known: KnownMask) -> EmbeddingVectors:
    """Return the embedding, or if it is large its leading dimensions, in which to compare.

    Examples
    --------
    >>> fewer_dims(np.ones((3, 2)), np.array([True, True, False])).shape
    (3, 2)
    """
    n_rows, n_dims = embedding.shape
    n_kept = max(LEAST_DIMS, MOST_ENTRIES // n_rows)
    if n_kept >= n_dims:
        return embedding.astype(np.float64)
    known = embedding[is_known].astype(np.float64)
    centre = known.mean(axis=0)
    _, directions = np.linalg.eigh((known - centre).T @ (known - centre))
    return (embedding - centre) @ directions[:, ::-1][:, :n_kept]


def _pool(truth: np.ndarray, n_known: int) -> np.ndarray:
    """Return the hidden rows and so many other known ones that ranks mean something."""
    others = np.setdiff1d(np.arange(n_known), truth)
    n_others = min(others.size, max(0, POOL - truth.size))
    return np.union1d(truth, np.random.default_rng(0).permutation(others)[:n_others])


class _Trials:
    """Predictions of hidden rows under many settings, fold by fold, each thing computed once."""

    def __init__(
        self, stages: Stages, embedding: EmbeddingVectors, is_known: KnownMask, folds: list[Fold]
    ) -> None:
        self.stages = stages
        self.embedding = embedding
        self.known = embedding[is_known]
        self.folds = folds
        self.pools = [_pool(fold.truth, len(self.known)) for fold in folds]
        self.centres = [embedding[fold.is_seen].mean(axis=0) for fold in folds]
        self.trends = {}
        self.scores: dict[Setting, RowScores] = {}
        self.directions: dict[Setting, np.ndarray] = {}

    def run(self, settings: Sequence[Setting]) -> None:
        """Score a group of settings that share preparation, graph and weights."""
        predictions: dict[Setting, list[np.ndarray]] = {setting: [] for setting in settings}
        for number, fold in enumerate(self.folds):
            for setting, vectors in self._of_fold(number, fold, settings).items():
                predictions[setting].append(vectors)
        for setting, parts in predictions.items():
            self.scores[setting] = joined(
                [
                    score_rows(part, np.searchsorted(pool, fold.truth), self.known[pool], centre)
                    for part, fold, pool, centre in zip(
                        parts, self.folds, self.pools, self.centres, strict=True
                    )
                ]
            )
            self.directions[setting] = np.vstack(
                [unit(part - centre) for part, centre in zip(parts, self.centres, strict=True)]
            )

    def truth(self) -> np.ndarray:
        """Return the hidden rows' true directions, in the order of the predictions."""
        return np.vstack(
            [
                unit(self.known[fold.truth] - centre)
                for fold, centre in zip(self.folds, self.centres, strict=True)
            ]
        )

    def _of_fold(
        self, number: int, fold: Fold, settings: Sequence[Setting]
    ) -> dict[Setting, np.ndarray]:
        gammas = [setting.gamma for setting in settings]
        preparation = settings[0].preparation
        plain = self.embedding[fold.is_seen]
        n_dims = plain.shape[1]
        trend = None
        if any(gamma is not None for gamma in gammas):
            key = (number, preparation)
            if key not in self.trends:
                self.trends[key] = self.stages.trend(self.embedding, fold.is_seen, preparation)
            trend = self.trends[key]
        columns = plain if trend is None else np.hstack([plain, trend.residuals])
        spread, _ = self.stages.propagated(columns, fold.is_seen, settings[0], tol=CHOICE_TOL)
        found = {}
        for setting in settings:
            if setting.gamma is None:
                found[setting] = spread[fold.places, :n_dims]
            else:
                assert trend is not None
                found[setting] = (
                    trend.values[fold.hidden]
                    + setting.gamma * spread[fold.places, n_dims : 2 * n_dims]
                )
        return found


def _standing(scores: Sequence[RowScores], rows: np.ndarray) -> np.ndarray:
    """Return how well each setting does on some rows: the sum of standardised measures.

    A setting whose ranks are worse than the best one's by more than chance is out, however good
    its cosines: a vector that cannot be told from others is of no use.
    """
    total = np.zeros(len(scores))
    for measure in MEASURES:
        means = np.array([getattr(score, measure)[rows].mean() for score in scores])
        spread = means.std()
        if spread > 0:
            total += (means - means.mean()) / spread
    ranks = np.array([score.mrr[rows] for score in scores])
    short = ranks[ranks.mean(axis=1).argmax()] - ranks
    total[short.mean(axis=1) > short.std(axis=1) / np.sqrt(rows.size)] = -np.inf
    return total


def _honest(
    scores: Sequence[RowScores], directions: Sequence[np.ndarray], group: np.ndarray
) -> tuple[RowScores, np.ndarray]:
    """Return scores and directions of each row under the setting that the other groups choose."""
    parts, rows_of, found = [], [], np.empty_like(directions[0])
    for one in np.unique(group):
        rows = np.flatnonzero(group == one)
        best = int(np.argmax(_standing(scores, np.flatnonzero(group != one))))
        values = (getattr(scores[best], field.name)[rows] for field in fields(RowScores))
        parts.append(RowScores(*values))
        rows_of.append(rows)
        found[rows] = directions[best][rows]
    back = np.argsort(np.concatenate(rows_of), kind="stable")
    whole = joined(parts)
    return RowScores(*(getattr(whole, field.name)[back] for field in fields(RowScores))), found


def choose(
    stages: Stages,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Return the setting that best imputes known rows when they are hidden.

    Where few rows are known, ten folds are hidden and not five: a fifth of few is much, and what
    is best without it need not be best with it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(120, 3))
    >>> domain = np.tanh(latent @ rng.normal(size=(3, 8)))
    >>> choice = choose(Stages(domain), latent @ rng.normal(size=(3, 5)), np.ones(120, bool))
    >>> choice.has_signal, bool(choice.honest.mrr.mean() > 0.3)
    (True, True)
    """
    n_known = int(is_known.sum())
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"Only {n_known} entities are known, too few to choose a method by hiding some of "
            f"them: {FEWEST_KNOWN} are needed. Use method='paper' (--method paper), which needs "
            f"no choice; its vectors cannot be checked on so few."
        )
    n_folds = 10 if n_known < FEW_KNOWN else 5
    folds = list(hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN))
    trials = _Trials(stages, fewer_dims(embedding, is_known), is_known, folds)
    degrees = tuple(dict.fromkeys(stages.min_degrees))
    gammas: list[float | None] = [None] if stages.is_distances else [None, *GAMMAS, 0.0]
    later = [(d, r) for d in degrees for r in RIDGES if (d, r) != (degrees[0], FIRST_RIDGE)]
    n_steps = len(stages.preparations) + len(later)

    def try_all(preparation: str, min_degree: int, ridge: float, *, alone: bool) -> None:
        trials.run(
            [
                Setting(preparation, min_degree, ridge, gamma)
                for gamma in gammas
                if alone or gamma != 0.0
            ]
        )
        if progress is not None:
            progress(len({(s.preparation, s.min_degree, s.ridge) for s in trials.scores}), n_steps)

    def best() -> Setting:
        tried = list(trials.scores)
        every_row = np.arange(len(trials.scores[tried[0]].mrr))
        return tried[int(np.argmax(_standing([trials.scores[s] for s in tried], every_row)))]

    for preparation in stages.preparations:
        try_all(preparation, degrees[0], FIRST_RIDGE, alone=True)
    chosen = best().preparation
    for min_degree, ridge in later:
        try_all(chosen, min_degree, ridge, alone=False)

    tried = tuple(trials.scores)
    scores = [trials.scores[setting] for setting in tried]
    directions = [trials.directions[setting] for setting in tried]
    sizes = [fold.hidden.size for fold in folds]
    group = (
        np.repeat(np.arange(len(folds)), sizes) if len(folds) > 1 else np.arange(sizes[0]) % n_folds
    )
    honest, found = _honest(scores, directions, group)
    return Choice(
        best(),
        tried,
        tuple(score.means() for score in scores),
        honest,
        chance_of(found, trials.truth()),
    )
