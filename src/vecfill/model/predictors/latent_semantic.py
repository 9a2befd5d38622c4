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
from vecfill._types import KnownMask
from vecfill.errors import InputError
from vecfill.method.engine import row_blocks
from vecfill.method.propagation import (
    Convergence,
    Propagation,
    cut_off_rows,
    fill_unknown,
    propagate_by_iteration,
    propagate_known,
)
from vecfill.method.scaling import in_range_of
from vecfill.method.solve.condensed import condensed, condensed_from
from vecfill.method.solve.system import UnknownSystem
from vecfill.method.trend import Trend, linear_trend, trend_in_rows
from vecfill.model.fitted_mix import FittedMix, carried_by_fitted
from vecfill.model.known import KnownRows
from vecfill.model.prediction import (
    Composition,
    CondensedMix,
    Prediction,
    PropagatedMix,
)
from vecfill.model.predictors.base import TOL, Hiding, Predictor, check_preparation
from vecfill.model.preparation import PREPARED_IN_WORDS
from vecfill.model.space import Space, WeightsKey
from vecfill.model.wanted import ALL, Unknown, Wanted
from vecfill.wording import count, percent

MOST_FLOOR = 1e6
"""Largest `weight_floor`: all weights of a row are the same by then, and sums stay finite."""


HARDER = 5
"""How many times longer sweeps take for a column that begins at one row than for smooth values."""

MOST_CONDENSED = 4000
"""Hidden rows up to which one solve for all folds may pay: each fold inverts a dense matrix."""

ROWS_PER_BLOCK = 4096

MOST_SHARES = 2_000_000
"""Pairs of unknown and known rows of which the shares are kept: 16 MB."""


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
        prepared = PREPARED_IN_WORDS.get(self.preparation, "")
        if self.residual_share == 0.0:
            return ", ".join(["linear trend alone", *filter(None, [prepared])])
        parts = [count(self.min_degree, "neighbour"), _smoothing(self.ridge)]
        if self.residual_share is not None:
            parts.append(f"linear trend plus {percent(self.residual_share)} of the remainder")
        return ", ".join([*parts, *filter(None, [prepared])])

    def in_short(self) -> str:
        """Return the method in half a line.

        Examples
        --------
        >>> LatentSemantic(residual_share=0.6).in_short(), LatentSemantic().in_short()
        ('by a linear trend and 8 neighbours', 'by 8 neighbours')
        """
        trend = [] if self.residual_share is None else ["a linear trend"]
        mixed = [] if self.residual_share == 0.0 else [count(self.min_degree, "neighbour")]
        return f"by {' and '.join([*trend, *mixed])}"

    @property
    def weights_key(self) -> WeightsKey:
        """What its weights depend on."""
        return WeightsKey(
            self.preparation,
            self.min_degree,
            float(self.ridge),
            self.weight_rule,
            float(self.weight_floor),
        )

    def fitted_to(self, space: Space) -> Self:
        """Return the predictor with a least degree that the number of rows admits."""
        if self.residual_share is not None:
            space.refuse_without_vectors("A trend")
        fitting = super().fitted_to(space)
        return replace(fitting, min_degree=space.degree(self.min_degree))

    def predict(
        self,
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of."""
        if wanted.is_new:
            return self._of_new(space, given, wanted)
        (prediction,) = self.predict_together([self], space, given, wanted, tol=tol)
        return prediction

    def _of_new(self, space: Space, given: KnownRows, wanted: Wanted) -> Prediction:
        """Return mixes of fitted rows' vectors, on top of the trend if there is one."""
        mix = FittedMix(space, self.weights_key, given, wanted)
        trend, dtype = None, given.embedding.dtype
        if self.residual_share is None:
            vectors = mix.of_fitted(self._filled(space, given))
        else:
            slopes, shift = self._line(space, given)
            line = mix.rows @ slopes + shift
            trend = Trend(line.__getitem__, np.empty((0, given.n_dims)), np.nan)
            residuals = self._mixed_residuals(space, given, mix) if self.residual_share else None
            vectors = self.put_on(line, residuals)
        return Prediction(in_range_of(dtype, vectors), Composition(mix, trend))

    def _filled(self, space: Space, given: KnownRows) -> np.ndarray:
        """(n_rows, n_dims) known rows, and the others as this predictor alone imputes them."""
        if given.is_imputed:
            return given.embedding

        def imputed() -> np.ndarray:
            filled = np.array(given.embedding)
            filled[given.unknown] = self.predict(space, given).vectors
            return filled

        return given.once(("filled", self), imputed)

    def _line(self, space: Space, given: KnownRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the trend as a map of prepared rows: slopes and shift."""

        def mapped() -> tuple[np.ndarray, ...]:
            rows, coordinates = (
                space.prepared(self.preparation),
                space.coordinates(self.preparation),
            )
            return trend_in_rows(self._trend(space, given), rows, coordinates)

        slopes, shift = given.once(("line", self.preparation), mapped)
        return slopes, shift

    def _residuals(self, space: Space, given: KnownRows) -> np.ndarray:
        """(n_known, n_dims) what the trend misses at each known row when fitted without it."""
        key = ("residuals", self.preparation)
        return given.once(key, lambda: self._trend(space, given).residuals)

    def _mixed_residuals(self, space: Space, given: KnownRows, mix: FittedMix) -> np.ndarray:
        """Return mixes of what the trend misses: at known rows, and propagated to the others."""
        is_known = given.is_known[mix.used]
        among_known = np.cumsum(given.is_known) - 1
        missed = np.empty((mix.used.size, given.n_dims))
        missed[is_known] = self._residuals(space, given)[among_known[mix.used[is_known]]]
        others = mix.used[~is_known]
        slopes, shift = self._line(space, given)
        trend = space.prepared(self.preparation)[others] @ slopes + shift
        missed[~is_known] = (self._filled(space, given)[others] - trend) / self.residual_share
        return mix.among_used @ missed

    def kept(
        self, space: Space, given: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what all rows carry, and the trend; beside others, what it imputes alone."""
        by_fitted = carried_by_fitted(space, self.weights_key, given, carried)
        kept: dict[str, Any] = {"carried": by_fitted}
        if not given.is_imputed:
            kept["filled"] = self._filled(space, given)
        if self.residual_share is not None:
            kept["slopes"], kept["shift"] = self._line(space, given)
            kept["residuals"] = self._residuals(space, given)
        return kept

    def restore(self, space: Space, given: KnownRows, kept: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Give back to the known rows what `kept` returned for the same ones."""
        given.keep(("carried", self.weights_key), kept["carried"])
        if not given.is_imputed:
            given.keep(("filled", self), kept["filled"])
        if self.residual_share is not None:
            given.keep(("line", self.preparation), (kept["slopes"], kept["shift"]))
            given.keep(("residuals", self.preparation), kept["residuals"])

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights of a space that it needs."""
        return (self.weights_key,)

    @classmethod
    def predict_together(
        cls,
        predictors: Sequence[Any],
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,
    ) -> list[Prediction]:
        """Return predictions that share graph, weights, trend and one propagation.

        The predictors may differ in their share of the residual only.
        """
        first = predictors[0]
        assert isinstance(wanted, Unknown)
        places = wanted.places
        if first._has_few(given):
            shares, went = first._shares(space, given.is_known)
            shares = shares if places is None else shares[places]
            few = CondensedMix(space, first.weights_key, given, places, shares)
            return cls._made_of(
                predictors, space, given, few, lambda each: (few.spread(each), went)
            )

        def spread(values: np.ndarray) -> tuple[np.ndarray, Convergence]:
            found = first._propagated(space, given, values, tol, places)
            return found.vectors, found.convergence()

        mix = PropagatedMix(space, first.weights_key, given, places)
        return cls._made_of(predictors, space, given, mix, spread)

    def _has_few(self, given: KnownRows) -> bool:
        """Tell whether to solve for the shares of the known rows, which are fewer than columns."""
        n_known, n_unknown = given.n_known, given.unknown.size
        is_few = 0 < n_known <= given.n_dims and n_known * n_unknown <= MOST_SHARES
        return is_few and self.solver == "direct" and n_unknown > 0

    def _shares(self, space: Space, is_known: KnownMask) -> tuple[np.ndarray, Convergence]:
        """Return the share of every known row (across) in every unknown one (down), kept."""

        def solved() -> tuple[np.ndarray, Convergence]:
            given = KnownRows(np.empty((is_known.size, 0)), is_known)
            found = self._propagated(space, given, np.eye(given.n_known), TOL)
            return found.vectors, found.convergence()

        # As finely as for the answer itself, so that it does not matter who asks first.
        return space.once(("shares", self.weights_key, is_known.tobytes()), solved)

    @classmethod
    def shares_folds(cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding]) -> bool:
        """Tell whether one solve for all folds costs less than one for each of them.

        The first has a column for each hidden row, the others have the embedding's columns twice.
        A factor takes as long for either; to sweeps, columns that begin at one row are harder.
        """
        n_hidden = sum(places.size for _, places in folds)
        n_columns = sum(2 * given.n_dims for given, _ in folds)
        if predictors[0].solver != "direct" or n_hidden > min(n_columns, MOST_CONDENSED):
            return False
        return HARDER * n_hidden <= n_columns or predictors[0]._is_thin(space, *folds[0])

    def _is_thin(self, space: Space, given: KnownRows, places: np.ndarray) -> bool:
        """Tell whether the equations of rows that no fold shows are best factored."""
        is_known = given.is_known.copy()
        is_known[given.wanted(places)] = True
        system = ("thin", self.preparation, self.min_degree, int(is_known.sum()))
        weights = space.weights(self.weights_key)
        return bool(is_known.all()) or space.once(
            system, lambda: UnknownSystem(weights, is_known).is_thin()
        )

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return predictions of the hidden rows of folds, from one solve for all if that pays.

        A solve for each fold has as many columns as the embedding, twice if there is a trend; one
        for all has a column for each hidden row.
        """
        first = predictors[0]
        if not cls.shares_folds(predictors, space, folds):
            return super().predict_folds(predictors, space, folds, tol=tol)
        weights, (given, places) = space.weights(first.weights_key), folds[0]
        is_known = given.is_known.copy()
        is_known[given.wanted(places)] = True
        hidden = np.sort(np.concatenate([given.wanted(places) for given, places in folds]))
        n_known = int(is_known.sum())
        if n_known <= 2 * hidden.size and n_known * (is_known.size - n_known) <= MOST_SHARES:
            shared = condensed_from(weights, is_known, first._shares(space, is_known)[0])
        else:
            shared = condensed(weights, is_known, hidden, tol=tol, n_jobs=space.n_jobs)
        found = []
        for given, places in folds:
            mix = CondensedMix(
                space, first.weights_key, given, places, shared.shares(given.wanted(places))
            )
            found.append(cls._made_of(predictors, space, given, mix, mix.spread_and_none))
        return found

    @classmethod
    def _made_of(
        cls,
        predictors: Sequence[Any],
        space: Space,
        given: KnownRows,
        mix: PropagatedMix,
        spread: Callable[[np.ndarray], tuple[np.ndarray, Convergence | None]],
    ) -> list[Prediction]:
        """Return predictions whose mixes of known values `spread` gives."""
        shares = [each.residual_share for each in predictors]
        needs_trend = any(each is not None for each in shares)
        trend = predictors[0]._trend(space, given) if needs_trend else None
        columns = [given.known] if None in shares else []
        if trend is not None and any(shares):
            columns.append(trend.residuals)
        mixed, went = spread(np.hstack(columns)) if columns else (None, None)
        predictions = []
        for each in predictors:
            used = None if each.residual_share is None else trend
            vectors = each._put_together(used, mixed, given, mix.places)
            composition = Composition(mix, used, None if each.residual_share == 0.0 else went)
            predictions.append(Prediction(vectors, composition))
        return predictions

    def composition(self, space: Space, given: KnownRows) -> Composition:
        """Return what the unknown rows are made of, without imputing them."""
        trend = None if self.residual_share is None else self._trend(space, given)
        return Composition(PropagatedMix(space, self.weights_key, given), trend)

    def _put_together(
        self,
        trend: Trend | None,
        spread: np.ndarray | None,
        given: KnownRows,
        places: np.ndarray | None,
    ) -> np.ndarray:
        """Return trend plus share of the propagated residual, or the propagated vectors."""
        if trend is None:
            assert spread is not None
            return in_range_of(given.embedding.dtype, spread[:, : given.n_dims])
        rows, dtype = given.wanted(places), given.embedding.dtype
        vectors = np.empty((rows.size, given.n_dims), dtype)
        # In parts, because there is a row in 64 bits for each unknown one.
        for part in row_blocks(rows.size, ROWS_PER_BLOCK):
            residuals = None if spread is None else spread[part, -given.n_dims :]
            vectors[part] = in_range_of(dtype, self.put_on(trend.at(rows[part]), residuals))
        return vectors

    def put_on(self, trend: np.ndarray, residuals: np.ndarray | None) -> np.ndarray:
        """Return the trend plus a share of its residuals, mixed for the same rows.

        Examples
        --------
        >>> LatentSemantic(residual_share=0.5).put_on(np.array([[1.0]]), np.array([[4.0]]))
        array([[3.]])
        """
        if not self.residual_share:
            return trend
        assert residuals is not None
        return trend + self.residual_share * residuals

    def _trend(self, space: Space, given: KnownRows) -> Trend:
        def fitted() -> Trend:
            coordinates = space.coordinates(self.preparation)
            return linear_trend(coordinates, given.embedding, given.is_known)

        return given.once(("trend", self.preparation), fitted)

    def _propagated(
        self,
        space: Space,
        given: KnownRows,
        values: np.ndarray,
        tol: float,
        places: np.ndarray | None = None,
    ) -> Propagation:
        """Return the known rows' `values`, propagated to the unknown rows, or to some of them."""
        weights, n_jobs = space.weights(self.weights_key), space.n_jobs
        if self.solver == "direct":
            options = {"places": places, "tol": tol, "n_jobs": n_jobs}
            return propagate_known(weights, values, given.is_known, **options)
        found = propagate_by_iteration(
            weights,
            given.in_place(values),
            given.is_known,
            tol=self.tol,
            max_iter=self.max_iter,
            self_weight=self.self_weight,
            rng=np.random.default_rng(self.seed),
            n_jobs=n_jobs,
        )
        return found if places is None else replace(found, vectors=found.vectors[places])

    def fill(self, space: Space, given: KnownRows, *, tol: float = TOL) -> Composition:
        """Write the unknown rows into the embedding given; no second array is made."""
        weights = space.weights(self.weights_key)
        self.refuse_cut_off(cut_off_rows(weights, given.is_known))
        plain = self.residual_share is None and self.solver == "direct"
        if not plain or self._has_few(given):
            return super().fill(space, given, tol=tol)
        went = fill_unknown(weights, given.embedding, given.is_known, tol=tol, n_jobs=space.n_jobs)
        return Composition(PropagatedMix(space, self.weights_key, given), None, went)

    @staticmethod
    def refuse_cut_off(rows: np.ndarray) -> None:
        """Refuse unknown rows that nothing determines, if there are any."""
        if rows.size:
            raise InputError(
                f"No known row is reached through positive weights from "
                f"{count(rows.size, 'unknown row')} (the first is row {rows[0]}), so nothing "
                "determines the vectors there. Use weight_floor > 0 (the default is 0.1)."
            )


PAPER = LatentSemantic()
"""The paper to the letter: the domain as given, no ridge, no trend."""


def _smoothing(ridge: float) -> str:
    if ridge == 0:
        return "no smoothing"
    return (
        "light smoothing" if ridge < 0.1 else "some smoothing" if ridge < 1 else "heavy smoothing"
    )
