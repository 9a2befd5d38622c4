"""A stack of the predictors tried, its weights learnt on hidden rows.

The folds of a choice leave a prediction of every hidden row by every predictor, made without the
row. Non-negative least squares on them gives the weights at no further cost. What the stack is
worth is measured with weights that were learnt on the other folds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from vecfill.method.scaling import scaled_together
from vecfill.model.predictors import Predictor
from vecfill.model.stack import ATTENTION, SHARPNESS, Attention, Stack
from vecfill.trust.choose.folds import Fold

SHRINK = 1e-3
"""Added to the diagonal, relative: members are much alike."""


def stack_weights(parts: Sequence[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Return non-negative weights whose sum of `parts` comes nearest to the truth.

    Every row counts the same, however long its vector is.

    Examples
    --------
    >>> truth = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> stack_weights([truth / 2, -truth], truth).round(2)
    array([2., 0.])
    """
    truth, *parts = scaled_together(truth, *parts)
    lengths = np.linalg.norm(truth, axis=1, keepdims=True)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    columns = np.stack([(part * scale).ravel() for part in parts], axis=1)
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] += SHRINK * np.diag(gram) + 1e-300
    # The same problem with few rows: the factor of the Gram matrix stands for the columns.
    factor = np.linalg.cholesky(gram)
    wanted = np.linalg.solve(factor, columns.T @ (truth * scale).ravel())
    return nnls(factor.T, wanted)[0]


def stacked(
    members: Sequence[Predictor],
    parts: Sequence[np.ndarray],
    truth: np.ndarray,
    group: np.ndarray,
    folds: Sequence[tuple[Fold, np.ndarray]],
) -> list[tuple[Stack, list[np.ndarray]]]:
    """Return stacks of predictors, and their honest predictions of the hidden rows by fold.

    There are two, without attention and with it: which is better depends on the data.

    `parts` are the members' predictions of the hidden rows and `truth` the true vectors, all minus
    the mean of the fold's seen ones; `group` tells which rows are judged together, and `folds` has
    the seen vectors of each fold. There is none if fewer than two members are of use.
    """
    whole = stack_weights(parts, truth)
    kept = np.flatnonzero(whole > 0.01 * max(whole.max(), 1e-300)).tolist()
    if len(kept) < 2:
        return []
    members, parts = [members[place] for place in kept], [parts[place] for place in kept]
    steps = np.zeros_like(truth)
    for one in np.unique(group):
        others, rows = group != one, group == one
        learnt = stack_weights([part[others] for part in parts], truth[others])
        steps[rows] = sum(w * part[rows] for w, part in zip(learnt, parts, strict=True))
    learnt = tuple(float(each) for each in stack_weights(parts, truth))
    bounds = np.cumsum([0, *(fold.hidden.size for fold, _ in folds)])
    found = []
    for share in (0.0, ATTENTION):
        predictions = []
        for place, (_, seen) in enumerate(folds):
            estimates = seen.mean(axis=0) + steps[bounds[place] : bounds[place + 1]]
            predictions.append(Attention(estimates, seen, share, SHARPNESS).drawn(estimates, seen))
        found.append((Stack(tuple(members), learnt, share), predictions))
    return found
