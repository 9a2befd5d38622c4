"""An imputed row -> how far to trust it.

What can be seen of an imputed row without its truth (do its contributors agree, how many are
there, how well do its neighbours explain it ...) predicts how near the truth it lies. The relation
is learnt on known rows that were hidden, where the truth can be looked up. *Confidence* is the
centred cosine to expect; the *lower bound* is a split-conformal one: at level 0.9 the cosine with
the truth is at least that in nine of ten cases, as long as unknown entities are like known ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

import numpy as np
from sklearn.linear_model import Ridge

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.trust.folds import hidden_folds
from vecfill.trust.scores import RowScores, joined, score_rows
from vecfill.trust.signals import signals

ENOUGH_HIDDEN = 2000

FEWEST_HIDDEN = 20


@dataclass(frozen=True, repr=False)
class Confidence:
    """How far to trust each imputed row, and how that was learnt."""

    values: np.ndarray
    """(n_imputed,) centred cosine to expect, from 0 to 1."""
    lower_bound: np.ndarray
    """(n_imputed,) cosine that is reached in a share `level` of cases."""
    level: float
    expected: np.ndarray
    """(n_hidden,) expectation for hidden known rows, learnt without their fold."""
    actual: np.ndarray
    """(n_hidden,) their true centred cosine."""
    coverage: float
    """Share of hidden rows whose cosine was at least their bound, measured fold against fold."""

    def rows(self, rows: np.ndarray) -> Confidence:
        """Return the confidence of some of the imputed rows."""
        return replace(self, values=self.values[rows], lower_bound=self.lower_bound[rows])

    def __repr__(self) -> str:
        if not self.values.size:
            return f"Confidence(nothing imputed; coverage {self.coverage:.1%})"
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75])
        return (
            f"Confidence({self.values.size:,} entities: median {middle:.2f}, half of them "
            f"{low:.2f} to {high:.2f}; {self.level:.0%} bounds held for {self.coverage:.1%} of "
            f"{self.actual.size:,} hidden rows)"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


@dataclass(frozen=True)
class Hidden:
    """Hidden known rows imputed again by one predictor: signals and scores."""

    rows: np.ndarray
    """Row numbers, in the order of the other arrays."""
    fold: np.ndarray
    signals: np.ndarray
    scores: RowScores


def hide_and_impute(
    space: Space,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    predictor: Predictor,
    *,
    n_folds: int = 5,
    seed: int = 0,
) -> Hidden:
    """Return known rows hidden and imputed again, with what can be seen of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(40, 3))
    >>> from vecfill.model.predictors import PAPER
    >>> found = hide_and_impute(Space(domain), domain, np.ones(40, bool), PAPER)
    >>> len(found.rows)
    40
    """
    known = embedding[is_known]
    rows, fold_of, seen, scores = [], [], [], []
    n_folds = min(n_folds, int(is_known.sum()))
    folds = hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN)
    for number, fold in enumerate(folds):
        given = KnownRows(embedding, fold.is_seen)
        found = predictor.predict(space, given)
        centre = given.known.mean(axis=0, dtype=np.float64)
        rows.append(fold.hidden)
        fold_of.append(np.full(fold.hidden.size, number))
        seen.append(signals(given, found)[fold.places])
        scores.append(score_rows(found.vectors[fold.places], fold.truth, known, centre))
    numbers = np.concatenate(fold_of)
    if numbers.max() == 0:
        # One large fold: its rows are dealt out, so that each is judged by the others.
        numbers = np.arange(numbers.size) % n_folds
    return Hidden(np.concatenate(rows), numbers, np.vstack(seen), joined(scores))


def _ranks(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return where values stand among reference values, column by column, from 0 to 1."""
    out = np.empty(values.shape)
    for column in range(values.shape[1]):
        ordered = np.sort(reference[:, column])
        low = np.searchsorted(ordered, values[:, column], side="left")
        high = np.searchsorted(ordered, values[:, column], side="right")
        out[:, column] = (low + high) / (2.0 * ordered.size)
    return out


def _cross_fitted(ranks: np.ndarray, target: np.ndarray, group: np.ndarray) -> np.ndarray:
    expected = np.empty(target.size)
    for one in np.unique(group):
        is_out = group == one
        model = Ridge(alpha=1.0).fit(ranks[~is_out], target[~is_out])
        expected[is_out] = model.predict(ranks[is_out])
    return expected


def _margin(shortfall: np.ndarray, level: float) -> float:
    """Return the conformal quantile of how far truths fall short of expectations."""
    place = int(np.ceil((shortfall.size + 1) * level))
    return float(np.sort(shortfall)[place - 1]) if place <= shortfall.size else np.inf


def learn_confidence(
    hidden: Hidden, unknown_signals: np.ndarray, *, level: float = 0.9
) -> Confidence | None:
    """Return the confidence of unknown rows, learnt on hidden ones; ``None`` if they are too few.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(60, 3))
    >>> from vecfill.model.predictors import PAPER
    >>> space, given = Space(domain), KnownRows(domain, np.arange(60) < 50)
    >>> hidden = hide_and_impute(space, domain, given.is_known, PAPER)
    >>> seen = signals(given, PAPER.predict(space, given))
    >>> learn_confidence(hidden, seen).values.round(1)[:3]
    array([1., 1., 1.])
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return None
    ranks = _ranks(hidden.signals, hidden.signals)
    new_ranks = _ranks(unknown_signals, hidden.signals)
    centred, cosine = hidden.scores.centred_cosine, hidden.scores.cosine
    expected = _cross_fitted(ranks, centred, hidden.fold)
    expected_cosine = _cross_fitted(ranks, cosine, hidden.fold)
    shortfall = expected_cosine - cosine
    values = Ridge(alpha=1.0).fit(ranks, centred).predict(new_ranks) if len(new_ranks) else []
    new_cosine = Ridge(alpha=1.0).fit(ranks, cosine).predict(new_ranks) if len(new_ranks) else []
    is_covered = np.empty(cosine.size, np.bool_)
    for one in np.unique(hidden.fold):
        is_out = hidden.fold == one
        margin = _margin(shortfall[~is_out], level)
        is_covered[is_out] = cosine[is_out] >= expected_cosine[is_out] - margin
    return Confidence(
        np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0),
        np.clip(np.asarray(new_cosine, np.float64) - _margin(shortfall, level), -1.0, 1.0),
        level,
        np.clip(expected, 0.0, 1.0),
        centred,
        float(is_covered.mean()),
    )


def suspicious_rows(hidden: Hidden, *, most: int = 50) -> np.ndarray:
    """Return places in `hidden` of known rows that their imputation contradicts, worst first.

    Such a row is expected to be imputed well, and yet its own vector points elsewhere: often a
    homonym, such as the verb "reading" for a town.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(60, 3))
    >>> embedding = domain.copy()
    >>> embedding[7] = -5 * domain[7]
    >>> from vecfill.model.predictors import PAPER
    >>> hidden = hide_and_impute(Space(domain), embedding, np.ones(60, bool), PAPER)
    >>> 7 in hidden.rows[suspicious_rows(hidden)]
    True
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    ranks = _ranks(hidden.signals, hidden.signals)
    centred = hidden.scores.centred_cosine
    expected = _cross_fitted(ranks, centred, hidden.fold)
    surprise = centred - expected
    # Far below what rows like it reach: two robust deviations, and little likeness at all.
    middle = np.median(surprise)
    deviation = 1.4826 * np.median(np.abs(surprise - middle))
    is_odd = (surprise < middle - 2.0 * deviation) & (centred < 0.5 * np.median(centred))
    places = np.flatnonzero(is_odd)
    return places[np.argsort(surprise[places], kind="stable")][:most]
