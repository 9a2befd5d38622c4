"""An imputed row -> how far to trust it.

What can be seen of an imputed row without its truth (do its contributors agree, how many are
there, how well do its neighbours explain it ...) predicts how near the truth it lies. The relation
is learnt on known rows that were hidden, where the truth can be looked up. *Confidence* is the
centred cosine to expect; the *lower bound* is a split-conformal one: at level 0.9 the cosine with
the truth is at least that in nine of ten cases, as long as unknown entities are like known ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.linear_model import Ridge

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.method.propagation import split_weights
from vecfill.settings import Imputation, Setting, Stages
from vecfill.trust.hiding import hidden_folds
from vecfill.trust.scores import RowScores, joined, score_rows, unit

N_PROBES = 32
"""Random signs whose spread tells how many contributors a row has."""

ENOUGH_HIDDEN = 2000

FEWEST_HIDDEN = 20


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Hidden:
    """Hidden known rows imputed again under one setting: signals, scores, directions."""

    rows: np.ndarray
    """Row numbers, in the order of the other arrays."""
    fold: np.ndarray
    signals: np.ndarray
    scores: RowScores


def misfit(stages: Stages, setting: Setting) -> np.ndarray:
    """Return how badly each row's neighbours explain it, relative to how far they are.

    Examples
    --------
    >>> stages = Stages(np.array([[0.0], [1.0], [2.0]]))
    >>> misfit(stages, Setting(min_degree=2, ridge=0.0)).round(2)[1]
    np.float64(0.0)
    """
    weights = stages.weights(setting)
    n_rows = weights.shape[0]
    if stages.is_distances:
        return np.zeros(n_rows)
    rows = stages.prepared(setting.preparation)
    missed = rows - weights @ rows
    if issparse(missed):
        length = np.sqrt(np.asarray(missed.multiply(missed).sum(axis=1)).ravel())
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        product = np.asarray(rows.multiply(missed).sum(axis=1)).ravel()
    else:
        length = np.linalg.norm(missed, axis=1)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        product = np.einsum("ij,ij->i", rows, missed, dtype=np.float64)
    # The weighted mean squared distance of the neighbours from the row, by the law of cosines.
    spread = np.sqrt(np.maximum(weights @ squares - squares + 2.0 * product, 0.0))
    return np.divide(length, spread, out=np.zeros(n_rows), where=spread > 0)


def _tightness(stages: Stages, setting: Setting) -> np.ndarray:
    """Return how near each row is to its neighbours: the share of its heaviest weight."""
    weights: csr_array = stages.weights(setting)
    return np.asarray(weights.max(axis=1).todense()).ravel()


def signals(
    stages: Stages,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    setting: Setting,
    imputation: Imputation,
) -> np.ndarray:
    """Return what can be seen of each unknown row without its truth, (n_unknown, n_signals).

    Examples
    --------
    >>> stages = Stages(np.array([[0.0], [1.0], [2.0]]))
    >>> embedding, is_known = np.array([[0.0], [np.nan], [2.0]]), np.array([True, False, True])
    >>> found = stages.impute(embedding, is_known, Setting(min_degree=2))
    >>> signals(stages, embedding, is_known, Setting(min_degree=2), found).shape
    (1, 7)
    """
    known = embedding[is_known].astype(np.float64)
    centre = known.mean(axis=0)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), N_PROBES))
    spread, _ = stages.propagated(
        np.hstack([unit(known - centre), probes]), is_known, setting, tol=1e-6
    )
    # The propagated signs of one row have variance sum(share²), whatever the shares are.
    concentration = (spread[:, -N_PROBES:] ** 2).mean(axis=1)
    agreement = np.linalg.norm(spread[:, :-N_PROBES], axis=1)
    length = np.linalg.norm(imputation.vectors - centre, axis=1)
    on_known, _ = split_weights(stages.weights(setting), is_known)
    straight = np.asarray(on_known.sum(axis=1)).ravel()
    if imputation.trend is None:
        trend_length = np.zeros(len(length))
    else:
        trend_length = np.linalg.norm(imputation.trend.values[~is_known] - centre, axis=1)
    return np.column_stack(
        [
            agreement,
            np.log(np.maximum(concentration, 1e-12)),
            length,
            misfit(stages, setting)[~is_known],
            straight,
            trend_length,
            _tightness(stages, setting)[~is_known],
        ]
    )


def hide_and_impute(
    stages: Stages,
    embedding: EmbeddingVectors,
    is_known: KnownMask,
    setting: Setting,
    *,
    n_folds: int = 5,
    seed: int = 0,
) -> Hidden:
    """Return known rows hidden and imputed again, with what can be seen of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(40, 3))
    >>> found = hide_and_impute(Stages(domain), domain, np.ones(40, bool), Setting())
    >>> len(found.rows)
    40
    """
    known = embedding[is_known]
    rows, fold_of, seen, scores = [], [], [], []
    n_folds = min(n_folds, int(is_known.sum()))
    folds = hidden_folds(is_known, n_folds=n_folds, seed=seed, enough=ENOUGH_HIDDEN)
    for number, fold in enumerate(folds):
        found = stages.impute(embedding, fold.is_seen, setting)
        told = signals(stages, embedding, fold.is_seen, setting, found)
        centre = embedding[fold.is_seen].mean(axis=0, dtype=np.float64)
        rows.append(fold.hidden)
        fold_of.append(np.full(fold.hidden.size, number))
        seen.append(told[fold.places])
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
    >>> stages, is_known = Stages(domain), np.arange(60) < 50
    >>> hidden = hide_and_impute(stages, domain, is_known, Setting())
    >>> found = stages.impute(domain, is_known, Setting())
    >>> learn_confidence(hidden, signals(stages, domain, is_known, Setting(), found)).values.shape
    (10,)
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


def suspicious_rows(hidden: Hidden, *, most: int = 20) -> np.ndarray:
    """Return places in `hidden` of known rows that their imputation contradicts, worst first.

    Such a row is expected to be imputed well, and yet its own vector points elsewhere: often a
    homonym, such as the verb "reading" for a town.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(60, 3))
    >>> embedding = domain.copy()
    >>> embedding[7] = -5 * domain[7]
    >>> hidden = hide_and_impute(Stages(domain), embedding, np.ones(60, bool), Setting())
    >>> 7 in hidden.rows[suspicious_rows(hidden)]
    True
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    ranks = _ranks(hidden.signals, hidden.signals)
    centred = hidden.scores.centred_cosine
    expected = _cross_fitted(ranks, centred, hidden.fold)
    surprise = centred - expected
    # Far below what rows like it reach: two and a half robust deviations, and no likeness at all.
    middle = np.median(surprise)
    deviation = 1.4826 * np.median(np.abs(surprise - middle))
    is_odd = (surprise < middle - 2.0 * deviation) & (centred < 0.5 * np.median(centred))
    places = np.flatnonzero(is_odd)
    return places[np.argsort(surprise[places], kind="stable")][:most]
