"""Stacks of predictors: weights that hidden rows teach, and what is done to the sums after that.

The folds leave a prediction of every hidden row by every predictor, made without the row, so the
weights of a stack cost nothing more: non-negative least squares on these predictions. What a stack
is worth is measured with weights that were learnt on the other folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from vecfill.method.scaling import scaled_together
from vecfill.model.predictors import Predictor
from vecfill.model.stack import ATTENTION, SHARPNESS, Attention, Stack
from vecfill.model.whitening import Whitening

# A guess.
SHRINK = 1e-3
"""Added to the diagonal, relative: members are much alike."""

# A guess: each member costs a fit of its own, and so little changes nothing one can see.
LEAST_WEIGHT = 0.01
"""Share of the largest weight below which a member is left out."""


class Finish(NamedTuple):
    """What is done to a weighted sum: attention, and whitening after it."""

    attention: float = 0.0
    sharpness: float = SHARPNESS
    whitening: float = 0.0


PLAIN = Finish()

# From decision 46, as those of ranks are.
FINISHES = (PLAIN, Finish(ATTENTION))
"""What is tried: with attention and without, since which is better depends on the data."""

WHITENINGS = (0.1, 0.2, 0.35, 0.5)
"""Powers that are tried where ranks are what is wanted."""

ATTENTIONS = ((0.0, SHARPNESS), (ATTENTION, SHARPNESS), (0.5, SHARPNESS), (ATTENTION, 40.0))
"""Shares and sharpness of attention that are tried there, with the best whitening."""


@dataclass(frozen=True, eq=False)
class Hidden:
    """The hidden rows of all folds, and what each fold has seen."""

    truth: np.ndarray
    """(n_hidden, n_dims) true vectors from the mean of what their fold has seen."""
    group: np.ndarray
    """(n_hidden,) rows that are judged together."""
    sizes: tuple[int, ...]
    """Hidden rows of each fold."""
    seen: tuple[np.ndarray, ...] = field(repr=False)
    """Known vectors that each fold has seen."""
    metric: np.ndarray | None = field(default=None, repr=False)
    """(n_dims, n_scores) what errors count: by it, long vectors count more. By default directions
    count, and every row counts the same."""

    @cached_property
    def centres(self) -> list[np.ndarray]:
        """The mean of what each fold has seen."""
        return [known.mean(axis=0) for known in self.seen]

    @cached_property
    def whitenings(self) -> list[Whitening]:
        """The directions of what each fold has seen."""
        return [Whitening.of(known) for known in self.seen]

    def by_fold(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return rows for the hidden ones, fold by fold."""
        return np.split(rows, np.cumsum(self.sizes)[:-1])


class Blend:
    """A weighted sum of predictors, as hidden rows see it: each with the weights of the others."""

    def __init__(
        self,
        members: Sequence[Predictor],
        weights: Sequence[float],
        steps: np.ndarray,
        hidden: Hidden,
    ) -> None:
        self.members = tuple(members)
        self.weights = tuple(weights)
        self._steps = hidden.by_fold(steps)
        self._hidden = hidden
        self._drawn: dict[tuple[float, float], list[np.ndarray]] = {}

    def stack(self, finish: Finish) -> Stack:
        """Return the stack that does this to the sum."""
        return Stack(self.members, self.weights, *finish)

    def vectors(self, finish: Finish) -> list[np.ndarray]:
        """Return the vectors that it gives to the hidden rows of each fold."""
        hidden, attended = self._hidden, self._attended(finish.attention, finish.sharpness)
        if not finish.whitening:
            return attended
        folds = zip(attended, hidden.centres, hidden.whitenings, strict=True)
        return [
            centre + directions.applied(estimates - centre, finish.whitening)
            for estimates, centre, directions in folds
        ]

    def _attended(self, share: float, sharpness: float) -> list[np.ndarray]:
        """Return the vectors of hidden rows after attention; whitening does not change it."""
        key = share, sharpness
        if key not in self._drawn:
            folds = zip(self._hidden.centres, self._steps, self._hidden.seen, strict=True)
            self._drawn[key] = [
                Attention(centre + steps, known, share, sharpness).drawn(centre + steps, known)
                for centre, steps, known in folds
            ]
        return self._drawn[key]


def blended(parts: Mapping[Predictor, np.ndarray], hidden: Hidden) -> Blend | None:
    """Return a weighted sum of predictors, or None if fewer than two are of use.

    `parts` has the members' predictions of the hidden rows, minus the mean of what each fold sees.
    """
    whole = stack_weights(list(parts.values()), hidden.truth)
    least = LEAST_WEIGHT * max(whole.max(initial=0.0), 1e-300)
    useful = {
        member: part
        for (member, part), weight in zip(parts.items(), whole, strict=True)
        if weight > least
    }
    return _weighted(useful, hidden) if len(useful) > 1 else None


def averages(parts: Mapping[Predictor, np.ndarray], hidden: Hidden) -> list[Blend]:
    """Return the sum of all members that comes nearest by what errors count, and their plain mean.

    Errors of scores are not what a list of recommendations is judged by, and a plain mean of unlike
    predictors is hard to beat.
    """
    if len(parts) < 2:
        return []
    mean = np.mean(list(parts.values()), axis=0)
    return [
        _weighted(parts, hidden),
        Blend(list(parts), [1.0 / len(parts)] * len(parts), mean, hidden),
    ]


def _weighted(parts: Mapping[Predictor, np.ndarray], hidden: Hidden) -> Blend:
    columns, truth = list(parts.values()), hidden.truth
    steps = np.zeros_like(truth)
    for label in np.unique(hidden.group):
        is_other, rows = hidden.group != label, hidden.group == label
        # Without the group itself, or the stack would be scored on rows that set its weights.
        other_rows = [part[is_other] for part in columns]
        learnt = stack_weights(other_rows, truth[is_other], hidden.metric)
        steps[rows] = sum(w * part[rows] for w, part in zip(learnt, columns, strict=True))
    weights = [float(weight) for weight in stack_weights(columns, truth, hidden.metric)]
    return Blend(list(parts), weights, steps, hidden)


def alone(member: Predictor, part: np.ndarray, hidden: Hidden) -> Blend:
    """Return one predictor as a sum of its own, to which the same may be done."""
    return Blend([member], [1.0], part, hidden)


def stack_weights(
    parts: Sequence[np.ndarray], truth: np.ndarray, metric: np.ndarray | None = None
) -> np.ndarray:
    """Return non-negative weights whose sum of `parts` comes nearest to the truth.

    Every row counts the same, however long its vector is, unless a `metric` says what errors count.

    Examples
    --------
    >>> truth = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> stack_weights([truth / 2, -truth], truth).round(2)
    array([2., 0.])
    """
    if metric is not None:
        truth, parts = truth @ metric, [part @ metric for part in parts]
    truth, *parts = scaled_together(truth, *parts)
    lengths = np.linalg.norm(truth, axis=1, keepdims=True)
    if metric is not None:
        lengths = np.ones_like(lengths)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    columns = np.stack([(part * scale).ravel() for part in parts], axis=1)
    gram = columns.T @ columns
    # A member that always predicts the mean has a zero on the diagonal, and no factor would exist.
    gram[np.diag_indices_from(gram)] += SHRINK * np.diag(gram) + 1e-300
    # The same problem with few rows: the factor of the Gram matrix stands for the columns.
    factor = np.linalg.cholesky(gram)
    target = np.linalg.solve(factor, columns.T @ (truth * scale).ravel())
    return nnls(factor.T, target)[0]
