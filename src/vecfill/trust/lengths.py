"""Lengths of imputed vectors: as far from the mean of the known ones as real vectors are.

What the known vectors have in common stays as it is. To scale it along with the rest would move
every new vector the same way: in a table that gives words their scores, all of them would become
likely together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.alignment import Alignment
from vecfill.method.scaling import scaled_together
from vecfill.model.offset import OffsetRule
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.stretch import FEWEST, MOST, Stretch
from vecfill.trust.choose.decision import BLOCK, Decision
from vecfill.trust.choose.folds import Fold, hidden_folds, rarest_block
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.prove.hidden import HIDDEN_TOL, as_seen

N_FOLDS = 5
ENOUGH = 1000
"""Hidden rows after which no further fold is predicted: one factor is known well by then."""


def true_lengths(space: Space, alignment: Alignment, decision: Decision, *, seed: int) -> Stretch:
    """Return the factors with which hidden rows lie as far from the mean as their true vectors.

    Rows with the offset of rare entities have a factor of their own, learnt on the rarest rows.
    """
    is_known, rarity = alignment.is_known, alignment.rarity
    n_known = int(is_known.sum())
    if n_known < FEWEST:
        raise InputError(
            "calibrate_norms= learns lengths from hidden known entities. It needs "
            f"{FEWEST} of them, and there are {n_known}. Leave it out."
        )
    twins = twins_of(alignment.embedding, is_known)
    folds = list(hidden_folds(is_known, n_folds=N_FOLDS, seed=seed, enough=ENOUGH, twins=twins))
    plain = _factor(space, alignment, decision.predictor, folds, None)
    if decision.rule is None:
        return Stretch(plain, plain)
    assert rarity is not None
    among = rarity.may_be_rare(is_known)
    block = rarest_block(is_known, rarity.values, share=BLOCK, among=among, twins=twins)
    return Stretch(plain, _factor(space, alignment, decision.predictor, [block], decision.rule))


def _factor(
    space: Space,
    alignment: Alignment,
    predictor: Predictor,
    folds: Sequence[Fold],
    rule: OffsetRule | None,
) -> float:
    """Return by how much true steps are longer than predicted ones, both as root mean squares."""
    rarity = None if alignment.rarity is None else alignment.rarity.values
    embedding = alignment.embedding
    views = [as_seen(embedding, fold, rule, rarity, as_rare=True) for fold in folds]
    requests = [(seen_rows, fold.places) for seen_rows, _, fold in views]
    by_fold = type(predictor).predict_folds([predictor], space, requests, tol=HIDDEN_TOL)
    predicted, true = [], []
    for (seen_rows, curve, fold), (prediction,) in zip(views, by_fold, strict=True):
        mean = seen_rows.known.mean(axis=0, dtype=np.float64)
        start = mean
        if curve is not None:
            offsets = curve.completed(prediction.composition.mix, fold.places)
            start = mean + offsets.unknown[fold.places]
        predicted.append(prediction.vectors.astype(np.float64) - mean)
        true.append(embedding[fold.hidden].astype(np.float64) - start)
    steps, truth = scaled_together(np.vstack(predicted), np.vstack(true))
    length = float((steps**2).sum())
    # What has no length cannot be made longer. Where little is known steps are short, and with
    # them their noise would become as long as the truth.
    return float(np.clip(np.sqrt((truth**2).sum() / length), 1 / MOST, MOST)) if length else 1.0
