"""Several predictors as one: their weighted sum, drawn a little towards known vectors near it.

Members see the same known rows, and the weights are not negative. Then *attention*: a sum of
predictions lies nearer to the mean than real vectors do, where many known vectors are about as
near. So a share of the way is a softmax mix of the known vectors in whose direction the first
estimate points. All of it is a linear mix of known vectors, so shares stay exact.

Where ranks count more than cosines, the result is whitened (`vecfill.model.whitening`). Its shares
are then those of known vectors that were whitened as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from vecfill import checks
from vecfill.errors import InputError
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import row_lengths, unit
from vecfill.method.engine import parallel_map, row_blocks
from vecfill.method.scaling import in_range_of
from vecfill.model.kernels import Kernel
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Mix, Prediction
from vecfill.model.predictors import Predictor
from vecfill.model.predictors.base import TOL, Hiding
from vecfill.model.space import Space, WeightsKey
from vecfill.model.wanted import ALL, Wanted
from vecfill.model.whitening import Whitening
from vecfill.wording import percent

ATTENTION = 0.35
"""Share of attention in every stack that is tried with it (docs/decisions/0015)."""

SHARPNESS = 20.0
"""A cosine of .05 more counts e times as much. Chosen together with the share, and not tuned."""

FEWEST_DIMS = 4
"""In fewer dimensions directions tell nothing, and there is no attention."""

BLOCK = 2_000_000
"""Pairs of rows whose nearness is computed at once."""


@dataclass(frozen=True)
class Stack(Predictor):
    """The mean of the known vectors plus a weighted sum of what predictors add to it.

    Examples
    --------
    >>> from vecfill.model.predictors import Mean, Nearest
    >>> space = Space(np.array([[0.0], [4.0], [1.0]]))
    >>> given = KnownRows(np.array([[0.0], [8.0], [np.nan]]), np.array([True, True, False]))
    >>> Stack((Mean(), Nearest(n_neighbors=1)), (0.5, 0.5)).predict(space, given).vectors
    array([[2.]])
    """

    members: tuple[Predictor, ...]
    weights: tuple[float, ...]
    """What each member counts; they need not sum to one."""
    attention: float = ATTENTION
    """Share of the vector that is mixed from known vectors near the first estimate."""
    sharpness: float = SHARPNESS
    """How much nearer known vectors count more (beta of the softmax over cosines)."""
    whitening: float = 0.0
    """Power of the variance by which directions in which known vectors vary little are
    strengthened."""

    name: ClassVar[str] = "stack"
    needs_vectors: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.members or len(self.members) != len(self.weights):
            raise InputError(
                f"A stack of {len(self.members)} members got {len(self.weights)} weights. Pass one "
                "weight for each of at least one member."
            )
        for weight in self.weights:
            checks.number(weight, "weights", low=0)
        checks.number(self.attention, "attention", low=0, high=1)
        checks.number(self.sharpness, "sharpness", low=0, open_low=True)
        checks.number(self.whitening, "whitening", low=0, high=0.5)

    def __str__(self) -> str:
        members = zip(self.weights, self.members, strict=True)
        parts = [f"{weight:.2f} x ({member})" for weight, member in members]
        tail = f", {percent(self.attention)} attention" if self.attention else ""
        tail += f", whitened by {self.whitening:g}" if self.whitening else ""
        return f"stack of {' + '.join(parts)}{tail}"

    def in_words(self) -> str:
        """Return the setting as one would say it: the members by weight, and their shares."""
        total = sum(self.weights) or 1.0
        ranked = sorted(zip(self.weights, self.members, strict=True), key=lambda pair: -pair[0])
        parts = [f"{member.in_words()} ({percent(weight / total)})" for weight, member in ranked]
        tail = ", rare directions strengthened" if self.whitening else ""
        return f"a blend of {'; '.join(parts)}{tail}"

    def in_short(self) -> str:
        """Return the method in half a line."""
        return f"by a blend of {len(self.members)} methods"

    def to_dict(self) -> dict[str, Any]:
        """Return the predictor as plain values, for JSON."""
        return {
            "predictor": self.name,
            "members": [member.to_dict() for member in self.members],
            "weights": list(self.weights),
            "attention": self.attention,
            "sharpness": self.sharpness,
            "whitening": self.whitening,
        }

    def cheapened(self) -> Predictor:
        """Return one member: a quick one before one that propagates; of several, what counts most.

        Examples
        --------
        >>> from vecfill.model.predictors import PAPER, KernelRidge
        >>> members = PAPER, KernelRidge(), KernelRidge("unit_rows")
        >>> print(Stack(members, (0.5, 0.2, 0.3)).cheapened())
        unit_rows, rbf kernel ridge
        """
        members = zip(self.members, self.weights, strict=True)
        return max(members, key=lambda pair: (pair[0].is_quick, pair[1]))[0]

    def fitted_to(self, space: Space) -> Self:
        """Return the stack with every member as this space admits it, or refuse."""
        return replace(self, members=tuple(member.fitted_to(space) for member in self.members))

    @one_blas_thread()
    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return the weighted sum for every row that is wanted, after attention."""

        def predicted(member: Predictor) -> Prediction:
            return member.predict(space, known_rows.for_members, wanted, tol=tol)

        # Members know nothing of each other, and each leaves threads idle for part of its time.
        predictions = parallel_map(predicted, self.members, n_jobs=space.n_threads)
        return self._put_together(predictions, known_rows)

    def settled(self, space: Space, known_rows: KnownRows) -> Stack:
        """Return the stack with everything chosen that its members would choose."""
        return replace(
            self, members=tuple(member.settled(space, known_rows) for member in self.members)
        )

    def kept(
        self, space: Space, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what the members keep, by number."""
        return {
            str(number): member.kept(space, known_rows.for_members, carried)
            for number, member in enumerate(self.members)
        }

    def restore(self, space: Space, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:
        """Give back to the known rows what the members kept."""
        for number, member in enumerate(self.members):
            member.restore(space, known_rows.for_members, stored[str(number)])

    @property
    def whitened(self) -> float:
        """By what power of their variance directions were strengthened."""
        return self.whitening

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations that the members need."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.preparations))

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights that the members need."""
        return tuple(dict.fromkeys(key for member in self.members for key in member.weights_keys))

    def kernels(self, space: Space) -> tuple[Kernel, ...]:
        """Return the kernels that the members need."""
        return tuple(kernel for member in self.members for kernel in member.kernels(space))

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows; members share what they can among folds."""

        def predicted(member: Predictor) -> list[Prediction]:
            return [
                prediction
                for (prediction,) in type(member).predict_folds([member], space, folds, tol=tol)
            ]

        by_stack = [
            parallel_map(predicted, stack.members, n_jobs=space.n_threads) for stack in predictors
        ]
        return [
            [
                stack._put_together([by_fold[number] for by_fold in members], fold[0])
                for stack, members in zip(predictors, by_stack, strict=True)
            ]
            for number, fold in enumerate(folds)
        ]

    @one_blas_thread()
    def _put_together(self, predictions: Sequence[Prediction], known_rows: KnownRows) -> Prediction:
        """Return the weighted sum of what the members found, after attention."""
        known = known_rows.known.astype(np.float64)
        centre = known.mean(axis=0)
        # Steps from one centre are added, so a member that says nothing adds nothing.
        _refuse_trends(predictions)
        estimates = np.repeat(centre[None], len(predictions[0].vectors), axis=0)
        for weight, prediction in zip(self.weights, predictions, strict=True):
            estimates += weight * (prediction.vectors - centre)
        attention = self.attention if known_rows.n_dims >= FEWEST_DIMS else 0.0
        compositions = [prediction.composition for prediction in predictions]
        mixes = [composition.mix for composition in compositions]
        near = Attention(estimates, known, attention, self.sharpness)
        attended = near.drawn(estimates, known)
        if self.whitening:
            directions = known_rows.once("whitening", lambda: Whitening.of(known))
            attended = centre + directions.applied(attended - centre, self.whitening)
        vectors = in_range_of(known_rows.embedding.dtype, attended)
        solved = [step.convergence for step in compositions if step.convergence is not None]
        worst = max(solved, key=lambda convergence: convergence.relative_change, default=None)
        return Prediction(vectors, Composition(StackMix(mixes, self.weights, near), None, worst))


def _refuse_trends(predictions: Sequence[Prediction]) -> None:
    """Refuse members whose vectors are more than a mix of known ones: shares would not be exact."""
    if any(prediction.composition.trend is not None for prediction in predictions):
        raise InputError(
            "A member of the stack has a linear trend (residual_share). Shares of known rows are "
            "then not exact. Use KernelRidge for the trend, and LatentSemantic without one."
        )


class Attention:
    """First estimates, and known vectors in whose direction they are drawn."""

    def __init__(
        self, estimates: np.ndarray, known: np.ndarray, share: float, sharpness: float
    ) -> None:
        self.centre = known.mean(axis=0)
        self.steps = estimates - self.centre
        self.known = known
        self.share = share
        self.sharpness = sharpness

    @cached_property
    def _around(self) -> np.ndarray:
        return self.known - self.centre

    @cached_property
    def _directions(self) -> np.ndarray:
        return unit(self._around)

    def coefficients(self, places: Any) -> np.ndarray:
        """Return what each known row (across) adds to some estimates (down) by attention."""
        steps = self.steps[places]
        softmax = (self.sharpness * unit(steps)) @ self._directions.T
        # The largest becomes 0, so that no exponential overflows; the quotient is the same.
        softmax -= softmax.max(axis=1, keepdims=True)
        np.exp(softmax, out=softmax)
        softmax /= softmax.sum(axis=1, keepdims=True)
        # As long as the estimate's own step: a softmax of few rows is long, one of many is short.
        lengths = row_lengths(softmax @ self._around)
        own_lengths = row_lengths(steps)
        factor = np.divide(
            own_lengths,
            lengths,
            out=np.zeros_like(own_lengths),
            where=lengths > 1e-12 * own_lengths,
        )
        softmax *= self.share * factor[:, None]
        return softmax

    def drawn(self, estimates: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return estimates of `values` for all rows, drawn towards those of near known rows."""
        if self.share == 0.0:
            return estimates
        mean = values.mean(axis=0, dtype=np.float64)
        vectors, steps = mean + (1.0 - self.share) * (estimates - mean), values - mean
        for block in row_blocks(len(vectors), max(1, BLOCK // len(self.known))):
            vectors[block] += self.coefficients(block) @ steps
        return vectors


class StackMix(Mix):
    """The shares of a stack: those of its members, and those of attention."""

    def __init__(self, mixes: Sequence[Mix], weights: Sequence[float], near: Attention) -> None:
        self.mixes = tuple(mixes)
        self.weights = tuple(weights)
        self.near = near

    @one_blas_thread()
    def shares(self, places: Any) -> np.ndarray:
        """Return the share of every known row (across) in some wanted rows (down)."""
        rows = np.asarray(places, np.int64)
        n_known = len(self.near.known)
        shares = np.zeros((rows.size, n_known))
        for weight, mix in zip(self.weights, self.mixes, strict=True):
            shares += weight * mix.shares(rows)
        # The same sum as for vectors, so what is explained is exactly what was imputed.
        if self.near.share:
            shares = (1.0 - self.near.share) * shares + self.near.coefficients(rows)
        # What is left to one belongs to the mean, of which all known rows are a part.
        return shares + (1.0 - shares.sum(axis=1, keepdims=True)) / n_known

    @one_blas_thread()
    def spread(self, values: np.ndarray, *, tol: float) -> np.ndarray:
        """Return the mix of the known rows' `values` for every wanted row."""
        return self._summed(values, [mix.spread(values, tol=tol) for mix in self.mixes])

    @one_blas_thread()
    def carried(self, values: Callable[[], np.ndarray], *, tol: float) -> np.ndarray:
        """Return the same of what known rows carry for signals."""
        return self._summed(values(), [mix.carried(values, tol=tol) for mix in self.mixes])

    def _summed(self, values: np.ndarray, spread: Sequence[np.ndarray]) -> np.ndarray:
        """Return the weighted sum of what the members give, drawn as the vectors are."""
        mean = values.mean(axis=0, dtype=np.float64)
        sums = np.repeat(mean[None], len(self.near.steps), axis=0)
        for weight, values_of_one in zip(self.weights, spread, strict=True):
            sums += weight * (values_of_one - mean)
        return self.near.drawn(sums, values)

    def misfit(self) -> np.ndarray:
        """Return how badly the domain row was explained, as a mean over the members."""
        return self._averaged([mix.misfit() for mix in self.mixes])

    def straight(self) -> np.ndarray:
        """Return how much rests on known rows directly, as a mean over the members."""
        return self._averaged([mix.straight() for mix in self.mixes])

    def tightness(self) -> np.ndarray:
        """Return the largest weight, as a mean over the members."""
        return self._averaged([mix.tightness() for mix in self.mixes])

    def _averaged(self, numbers: list[np.ndarray]) -> np.ndarray:
        total = sum(self.weights)
        weights = (
            np.divide(self.weights, total) if total > 0 else np.ones(len(numbers)) / len(numbers)
        )
        return weights @ np.array(numbers)
