"""Known rows hidden and imputed again: what could be seen of them, and what was true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vecfill._types import EmbeddingVectors
from vecfill.model.known import KnownRows
from vecfill.model.offset import OffsetRule
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.trust.decision import hidden_offsets, without
from vecfill.trust.folds import Fold
from vecfill.trust.scores import RowScores, joined, score_rows
from vecfill.trust.signals import signals

N_GROUPS = 5


@dataclass(frozen=True, eq=False)
class Hidden:
    """Hidden known rows imputed again by one predictor: signals and scores."""

    rows: np.ndarray
    """Row numbers, in the order of the other arrays."""
    fold: np.ndarray
    """Which rows are judged together: those of one fold, or a part of a single one."""
    signals: np.ndarray
    scores: RowScores


def hide_and_impute(
    space: Space,
    embedding: EmbeddingVectors,
    known: np.ndarray,
    predictor: Predictor,
    folds: Iterable[Fold],
    *,
    rule: OffsetRule | None = None,
    rarity: np.ndarray | None = None,
) -> Hidden:
    """Return the rows of some folds, hidden and imputed again, with what can be seen of them.

    `known` are the vectors of all known rows, among which the truth is ranked.

    Examples
    --------
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.trust.folds import hidden_folds
    >>> domain = np.random.default_rng(0).normal(size=(40, 3))
    >>> folds = hidden_folds(np.ones(40, bool), n_folds=5, seed=0)
    >>> len(hide_and_impute(Space(domain), domain, domain, PAPER, folds).rows)
    40
    """
    rows, numbers, seen, scores = [], [], [], []
    for number, fold in enumerate(folds):
        given = KnownRows(embedding, fold.is_seen)
        centre = given.known.mean(axis=0, dtype=np.float64)
        vectors, told = _imputed(space, given, fold, predictor, rule, rarity)
        rows.append(fold.hidden)
        numbers.append(np.full(fold.hidden.size, number))
        seen.append(told[fold.places])
        scores.append(score_rows(vectors[fold.places], fold.truth, known, centre))
    group = np.concatenate(numbers)
    if group.max() == 0:
        # One large fold: its rows are dealt out, so that each is judged by the others.
        group = np.arange(group.size) % N_GROUPS
    return Hidden(np.concatenate(rows), group, np.vstack(seen), joined(scores))


def _imputed(
    space: Space,
    given: KnownRows,
    fold: Fold,
    predictor: Predictor,
    rule: OffsetRule | None,
    rarity: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of all rows that are not seen, and what can be seen of them."""
    if rule is None:
        found = predictor.predict(space, given)
        return found.vectors, signals(given, found)
    assert rarity is not None
    offsets = hidden_offsets(rule, rarity, given, fold)
    rest = KnownRows(without(given.embedding, fold.is_seen, offsets), fold.is_seen)
    found = predictor.predict(space, rest)
    return found.vectors + offsets.unknown, signals(rest, found)
