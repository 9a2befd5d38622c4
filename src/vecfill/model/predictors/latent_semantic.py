"""Latent semantic imputation, as in the paper or on top of a linear trend.

This is the one place that says how a trend and what it misses are put together::

    vector = trend + residual_share * (the known rows' residuals, propagated)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from vecfill import checks
from vecfill.method.engine import row_blocks
from vecfill.method.propagation import (
    Convergence,
    Propagation,
    fill_unknown,
    propagate_by_iteration,
    propagate_known,
)
from vecfill.method.scaling import in_range_of
from vecfill.method.trend import Trend, linear_trend, trend_in_rows
from vecfill.model.known import KnownRows
from vecfill.model.prediction import (
    Composition,
    CondensedMix,
    FittedMix,
    Prediction,
    PropagatedMix,
    carried_by_fitted,
)
from vecfill.model.predictors.base import TOL, Hiding, Predictor, check_preparation
from vecfill.model.predictors.propagating import (
    are_few,
    condensed_mixes,
    pays,
    refuse_cut_off,
    shares_of_known,
)
from vecfill.model.preparation import prepared_in_words
from vecfill.model.space import Space, WeightsKey
from vecfill.model.wanted import ALL, Unknown, Wanted
from vecfill.wording import count, percent

MOST_FLOOR = 1e6
"""Largest `weight_floor`: all weights of a row are the same by then, and sums stay finite."""

ROWS_PER_BLOCK = 4096
"""Rows to which a trend is added at once: 16 MB with 500 dimensions."""


@dataclass(frozen=True)
class LatentSemantic(Predictor):
    """Each unknown row as the same convex mix of its neighbours' vectors as in the domain.

    Examples
    --------
    >>> print(LatentSemantic(preparation="unit_rows", residual_share=0.6))
    unit_rows, min_degree 8, ridge 0, trend + 0.6 x propagated residual
    >>> space = Space(np.array([[0.0], [1.0], [4.0]]))
    >>> given = KnownRows(np.array([[0.0], [np.nan], [4.0]]), np.array([True, False, True]))
    >>> LatentSemantic(min_degree=2, weight_floor=0.0).predict(space, given).vectors
    array([[1.]])
    """

    preparation: str = "as_given"
    """How domain rows are prepared before they are compared."""
    min_degree: int = 8
    """Least number of neighbours that explain a row (the paper's delta)."""
    ridge: float = 0.0
    """Draws each mix towards the plain mean of its neighbours; 0 is the paper."""
    residual_share: float | None = None
    """``None``: no trend, the vectors themselves are propagated, as in the paper. A number: a
    linear trend plus this share of its propagated residual; 0 is plain ridge regression."""
    weight_rule: str = "simplex"
    """``"simplex"``, the paper's equation, or ``"nnls"``, the authors' code."""
    weight_floor: float = 0.1
    """Share of a row's smallest positive weight that is added to all of its weights."""
    solver: str = "direct"
    """``"direct"``: the fixed point itself; ``"power"``: the paper's iteration."""
    tol: float = 1e-2
    """Relative change at which ``"power"`` stops (the paper's eta)."""
    max_iter: int = 1000
    """Most iterations of ``"power"``."""
    self_weight: float = 0.0
    """Share of itself that a row keeps in a step of ``"power"``."""
    seed: int = 0
    """Random seed of the start of ``"power"``."""

    name: ClassVar[str] = "latent_semantic"
    needs_vectors: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_preparation(self.preparation)
        checks.one_of(self.weight_rule, "weight_rule", ("simplex", "nnls"))
        checks.one_of(self.solver, "solver", ("direct", "power"))
        checks.whole_number(self.min_degree, "min_degree", low=1)
        checks.whole_number(self.max_iter, "max_iter", low=1)
        checks.whole_number(self.seed, "seed", low=0)
        checks.number(self.ridge, "ridge", low=0)
        checks.number(self.weight_floor, "weight_floor", low=0, high=MOST_FLOOR)
        checks.number(self.tol, "tol", low=0, open_low=True)
        checks.number(self.self_weight, "self_weight", low=0, high=0.999)
        if self.residual_share is not None:
            checks.number(self.residual_share, "residual_share", low=0, high=1)

    def __str__(self) -> str:
        if self.residual_share == 0.0:
            return f"{self.preparation}, trend alone"
        share = self.residual_share
        trend = "" if share is None else f", trend + {share:g} x propagated residual"
        return f"{self.preparation}, min_degree {self.min_degree}, ridge {self.ridge:g}{trend}"

    def in_words(self) -> str:
        """Return the setting as one would say it.

        Examples
        --------
        >>> LatentSemantic(residual_share=0.6, ridge=0.01).in_words()
        '8 neighbours, light smoothing, linear trend plus 60 % of the remainder'
        """
        strength = "light" if self.ridge < 0.1 else "some" if self.ridge < 1 else "heavy"
        smoothing = f"{strength if self.ridge else 'no'} smoothing"
        parts = [count(self.min_degree, "neighbour"), smoothing]
        if self.residual_share == 0.0:
            parts = ["linear trend alone"]
        elif self.residual_share is not None:
            parts.append(f"linear trend plus {percent(self.residual_share)} of the remainder")
        return ", ".join(filter(None, [*parts, prepared_in_words(self.preparation)]))

    def in_short(self) -> str:
        """Return the method in half a line: a trend, neighbours, or both."""
        trend = [] if self.residual_share is None else ["a linear trend"]
        near = [] if self.residual_share == 0.0 else [count(self.min_degree, "neighbour")]
        return f"by {' and '.join([*trend, *near])}"

    @property
    def weights_key(self) -> WeightsKey:
        """What its weights depend on."""
        # As floats, so that 0 and 0.0 are one key, and have one name in a file.
        ridge, floor = float(self.ridge), float(self.weight_floor)
        return WeightsKey(self.preparation, self.min_degree, ridge, self.weight_rule, floor)

    def fitted_to(self, space: Space) -> Self:
        """Return the predictor with a least degree that the number of rows admits."""
        # A trend is a map of features, which distances do not have.
        if self.residual_share is not None:
            space.refuse_without_vectors("A trend")
        fitting = super().fitted_to(space)
        return replace(fitting, min_degree=space.degree(self.min_degree))

    def predict(
        self, space: Space, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of."""
        if wanted.is_new:
            return self._of_new(space, known_rows, wanted)
        (prediction,) = self.predict_together([self], space, known_rows, wanted, tol=tol)
        return prediction

    def _of_new(self, space: Space, known_rows: KnownRows, wanted: Wanted) -> Prediction:
        """Return mixes of fitted rows' vectors, on top of the trend if there is one."""
        mix = FittedMix(space, self.weights_key, known_rows, wanted)
        share, dtype = self.residual_share, known_rows.embedding.dtype
        if share is None:
            # Of imputed rows too: what is near a new row is often unknown itself.
            vectors = mix.of_fitted(self._filled(space, known_rows))
            return Prediction(in_range_of(dtype, vectors), Composition(mix))
        slopes, shift, _ = self._line(space, known_rows)
        line = mix.rows @ slopes + shift
        residuals = self._mixed_residuals(space, known_rows, mix) if share else None
        trend = Trend(line.__getitem__, np.empty((0, known_rows.n_dims)), np.nan)
        return Prediction(in_range_of(dtype, self.put_on(line, residuals)), Composition(mix, trend))

    def _filled(self, space: Space, known_rows: KnownRows) -> np.ndarray:
        """(n_rows, n_dims) known rows, and the others as this predictor alone imputes them."""
        # A model holds what its only predictor imputed; members of a stack each need their own.
        if known_rows.is_imputed:
            return known_rows.embedding

        def imputed() -> np.ndarray:
            vectors = np.array(known_rows.embedding)
            vectors[known_rows.unknown] = self.predict(space, known_rows).vectors
            return vectors

        return known_rows.once(("filled", self), imputed)

    def _line(
        self, space: Space, known_rows: KnownRows
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the trend as a map of prepared rows: slopes and shift; and what it misses.

        That is of each known row, (n_known, n_dims), when the trend is fitted without it.
        """

        def mapped() -> tuple[np.ndarray, ...]:
            rows, coordinates = (of(self.preparation) for of in (space.prepared, space.coordinates))
            trend = self._trend(space, known_rows)
            return *trend_in_rows(trend, rows, coordinates), trend.residuals

        slopes, shift, residuals = known_rows.once(("line", self.preparation), mapped)
        return slopes, shift, residuals

    def _mixed_residuals(self, space: Space, known_rows: KnownRows, mix: FittedMix) -> np.ndarray:
        """Return mixes of what the trend misses: at known rows, and propagated to the others."""
        slopes, shift, residuals = self._line(space, known_rows)
        is_known, among_known = known_rows.is_known[mix.used], np.cumsum(known_rows.is_known) - 1
        missed = np.empty((mix.used.size, known_rows.n_dims))
        missed[is_known] = residuals[among_known[mix.used[is_known]]]
        imputed = mix.used[~is_known]
        trend = space.prepared(self.preparation)[imputed] @ slopes + shift
        # What was propagated to them is not kept: it is what their vectors have beside the trend.
        missed[~is_known] = (self._filled(space, known_rows)[imputed] - trend) / self.residual_share
        return mix.among_used @ missed

    def kept(
        self, space: Space, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what all rows carry, and the trend; beside others, what it imputes alone."""
        by_fitted = carried_by_fitted(space, self.weights_key, known_rows, carried)
        parts: dict[str, Any] = {"carried": by_fitted}
        # Alone it imputes what the model holds anyway; beside others, what only it knows.
        if not known_rows.is_imputed:
            parts["filled"] = self._filled(space, known_rows)
        if self.residual_share is not None:
            names = ("slopes", "shift", "residuals")
            parts |= dict(zip(names, self._line(space, known_rows), strict=True))
        return parts

    def restore(self, space: Space, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:
        """Give back to the known rows what `kept` returned for the same ones."""
        known_rows.keep(("carried", self.weights_key), stored["carried"])
        if not known_rows.is_imputed:
            known_rows.keep(("filled", self), stored["filled"])
        if self.residual_share is not None:
            line = stored["slopes"], stored["shift"], stored["residuals"]
            known_rows.keep(("line", self.preparation), line)

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights of a space that it needs."""
        return (self.weights_key,)

    @property
    def min_degrees(self) -> tuple[int, ...]:
        """The least degree of the only graph that it needs."""
        return (self.min_degree,)

    @classmethod
    def predict_together(
        cls,
        predictors: Sequence[Any],
        space: Space,
        known_rows: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,
    ) -> list[Prediction]:
        """Return predictions that share graph, weights, trend and one propagation.

        The predictors may differ in their share of the residual only.
        """
        first, key = predictors[0], predictors[0].weights_key
        assert isinstance(wanted, Unknown)
        places = wanted.places
        if first.solver == "direct" and are_few(known_rows):
            shares, convergence = shares_of_known(space, key, known_rows.is_known)
            shares = shares if places is None else shares[places]
            mix = CondensedMix(space, key, known_rows, places, coefficients=shares)
            return cls._made_of(predictors, mix, lambda values: (mix.spread(values), convergence))

        def spread(values: np.ndarray) -> tuple[np.ndarray, Convergence]:
            solution = first._propagated(space, known_rows, values, tol, places)
            return solution.vectors, solution.convergence()

        return cls._made_of(predictors, PropagatedMix(space, key, known_rows, places), spread)

    @classmethod
    def shares_folds(cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding]) -> bool:
        """Tell whether one solve for all folds costs less than one for each of them."""
        first = predictors[0]
        return first.solver == "direct" and pays(space, first.weights_key, folds)

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return predictions of the hidden rows of folds, from one solve for all if that pays."""
        if not cls.shares_folds(predictors, space, folds):
            return super().predict_folds(predictors, space, folds, tol=tol)
        mixes = condensed_mixes(space, predictors[0].weights_key, folds, tol)
        return [cls._made_of(predictors, mix, mix.spread_and_none) for mix in mixes]

    @classmethod
    def _made_of(
        cls,
        predictors: Sequence[Any],
        mix: PropagatedMix,
        spread: Callable[[np.ndarray], tuple[np.ndarray, Convergence | None]],
    ) -> list[Prediction]:
        """Return predictions whose mixes of known values `spread` gives."""
        known_rows, shares = mix.known_rows, [predictor.residual_share for predictor in predictors]
        needs_trend = any(share is not None for share in shares)
        trend = predictors[0]._trend(mix.space, known_rows) if needs_trend else None
        # Vectors and residuals side by side: one solve for both.
        columns = [known_rows.known] if None in shares else []
        if trend is not None and any(shares):
            columns.append(trend.residuals)
        mixes, convergence = spread(np.hstack(columns)) if columns else (None, None)
        predictions = []
        for predictor, share in zip(predictors, shares, strict=True):
            own_trend = None if share is None else trend
            vectors = predictor._put_together(own_trend, mixes, known_rows, mix.places)
            composition = Composition(mix, own_trend, None if share == 0.0 else convergence)
            predictions.append(Prediction(vectors, composition))
        return predictions

    def composition(self, space: Space, known_rows: KnownRows) -> Composition:
        """Return what the unknown rows are made of, without imputing them."""
        trend = None if self.residual_share is None else self._trend(space, known_rows)
        return Composition(PropagatedMix(space, self.weights_key, known_rows), trend)

    def _put_together(
        self,
        trend: Trend | None,
        spread: np.ndarray | None,
        known_rows: KnownRows,
        places: np.ndarray | None,
    ) -> np.ndarray:
        """Return trend plus share of the propagated residual, or the propagated vectors."""
        if trend is None:
            assert spread is not None
            return in_range_of(known_rows.embedding.dtype, spread[:, : known_rows.n_dims])
        rows, dtype = known_rows.wanted(places), known_rows.embedding.dtype
        vectors = np.empty((rows.size, known_rows.n_dims), dtype)
        # In parts, because there is a row in 64 bits for each unknown one.
        for part in row_blocks(rows.size, ROWS_PER_BLOCK):
            residuals = None if spread is None else spread[part, -known_rows.n_dims :]
            vectors[part] = in_range_of(dtype, self.put_on(trend.at(rows[part]), residuals))
        return vectors

    def put_on(self, trend: np.ndarray, residuals: np.ndarray | None) -> np.ndarray:
        """Return the trend plus a share of its residuals, mixed for the same rows."""
        if not self.residual_share:
            return trend
        assert residuals is not None
        return trend + self.residual_share * residuals

    def _trend(self, space: Space, known_rows: KnownRows) -> Trend:
        def fitted() -> Trend:
            coordinates = space.coordinates(self.preparation)
            return linear_trend(coordinates, known_rows.embedding, known_rows.is_known)

        return known_rows.once(("trend", self.preparation), fitted)

    def _propagated(
        self,
        space: Space,
        known_rows: KnownRows,
        values: np.ndarray,
        tol: float,
        places: np.ndarray | None,
    ) -> Propagation:
        """Return the known rows' `values`, propagated to the unknown rows, or to some of them."""
        weights, n_jobs = space.weights(self.weights_key), space.n_jobs
        if self.solver == "direct":
            options = {"places": places, "tol": tol, "n_jobs": n_jobs}
            return propagate_known(weights, values, known_rows.is_known, **options)
        steps: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        steps |= {"self_weight": self.self_weight, "rng": np.random.default_rng(self.seed)}
        start, is_known = known_rows.in_place(values), known_rows.is_known
        solution = propagate_by_iteration(weights, start, is_known, **steps, n_jobs=n_jobs)
        return solution if places is None else replace(solution, vectors=solution.vectors[places])

    def fill(self, space: Space, known_rows: KnownRows, *, tol: float = TOL) -> Composition:
        """Write the unknown rows into the embedding given; no second array is made."""
        weights = space.weights(self.weights_key)
        # Before anything is solved: the system would be singular, and the error say nothing.
        refuse_cut_off(weights, known_rows.is_known)
        is_plain = self.residual_share is None and self.solver == "direct"
        if not is_plain or are_few(known_rows):
            return super().fill(space, known_rows, tol=tol)
        options = {"tol": tol, "n_jobs": space.n_jobs}
        convergence = fill_unknown(weights, known_rows.embedding, known_rows.is_known, **options)
        return Composition(PropagatedMix(space, self.weights_key, known_rows), None, convergence)


PAPER = LatentSemantic()
"""The method of the paper: the domain as given, no ridge, no trend. The paper does not mention the
`weight_floor` of its authors' code; `LatentSemantic(weight_floor=0)` is the paper to the letter,
where no row is cut off."""
