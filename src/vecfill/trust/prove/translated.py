"""How far to trust vectors that were mapped from another embedding, cheaply enough for millions.

Signals of a mapped row cost no look at the pairs: how long its step from the mean came out (a map
that is fitted to what is known shrinks where it knows little), and how far the row itself lies from
those that were embedded by both models. What they let expect is learnt on hidden pairs, as for all
other vectors: see `vecfill.trust.prove.relation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import unit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import New
from vecfill.trust.choose.translating import N_FOLDS, CrossFitted, Pairs
from vecfill.trust.prove.bounds import margin_of
from vecfill.trust.prove.relation import Relation

N_AXES = 48
"""Directions along which distance from the pairs is counted one by one: at 384 dimensions an eighth
of the cost of the map itself."""

MOST_HIDDEN = 4000
"""Hidden pairs on which confidence is learnt: bounds of level 0.9 then hold for 89 to 91 %, by
chance."""

MOST_FITTED = 50_000
"""Pairs that hidden ones are mapped by: more would change no digit that matters."""

FEW_PAIRS, MORE_FOLDS = 4000, 10
"""Pairs up to which more are hidden in turn: with 1,500 pairs of 384 dimensions, a fifth less makes
mapped vectors so much worse that bounds of level 0.9 held for 97 %."""

FEWEST_PAIRS = 40
"""Pairs below which no map can be chosen and checked. A guess: eight are hidden at a time."""

UNIT_WITHIN = 1e-3
"""How far from 1 lengths of vectors may be that count as unit vectors, in half precision too."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Where the rows of the pairs lie, and where their vectors are centred."""

    centre: np.ndarray = field(repr=False)
    axes: np.ndarray = field(repr=False)
    """(n_features, n_axes), each as long as one standard deviation counts one."""
    tail: float
    """Variance of a row beside these axes."""
    mean: np.ndarray = field(repr=False)
    """(n_dims,) of the vectors."""

    @classmethod
    def of(cls, rows: np.ndarray, vectors: np.ndarray) -> Surroundings:
        """Return the surroundings of some rows and their vectors."""
        rows = rows.astype(np.float64)
        centre = rows.mean(axis=0)
        steps = rows - centre
        variances, axes = np.linalg.eigh(steps.T @ steps / len(steps))
        first = max(0, variances.size - N_AXES)
        tail = float(np.maximum(variances[:first], 0.0).sum())
        floor = max(float(variances[-1]) * 1e-9, np.finfo(np.float64).tiny)
        scaled = axes[:, first:] / np.sqrt(np.maximum(variances[first:], floor))
        mean = vectors.mean(axis=0, dtype=np.float64)
        return cls(centre, scaled, tail, mean)

    def signals(self, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return what can be seen of mapped rows: (n_rows, 3)."""
        dtype = rows.dtype
        along = (rows @ self.axes.astype(dtype)) - (self.centre @ self.axes).astype(dtype)
        within = np.einsum("ij,ij->i", along, along)
        size = np.einsum("ij,ij->i", rows, rows) - 2.0 * (rows @ self.centre.astype(dtype))
        size += float(self.centre @ self.centre)
        mean = self.mean.astype(vectors.dtype)
        step = np.einsum("ij,ij->i", vectors, vectors) - 2.0 * (vectors @ mean)
        step += float(self.mean @ self.mean)
        return np.column_stack([step, within, size]).astype(np.float64)


def centred_cosines(vectors: np.ndarray, truth: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the cosine of each vector's step from the mean with that of the truth."""
    steps, true_steps = (unit(side.astype(np.float64) - mean) for side in (vectors, truth))
    return np.einsum("ij,ij->i", steps, true_steps)


def are_unit(vectors: np.ndarray) -> bool:
    """Tell whether all vectors have length 1, as those of most encoders do."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return bool((np.abs(lengths - 1.0) < UNIT_WITHIN).all())


@dataclass(frozen=True, eq=False)
class Trust:
    """What hidden pairs show of mapped rows."""

    surroundings: Surroundings
    relation: Relation = field(repr=False)
    margin: float
    level: float
    actual: np.ndarray = field(repr=False)
    """(n_hidden,) centred cosines with the truth."""
    coverage: float
    """Share of hidden pairs whose cosine was at least their bound, measured fold against fold."""

    @classmethod
    def learnt(
        cls, mapped: np.ndarray, fitted: CrossFitted, level: float, *, is_unit: bool
    ) -> Trust:
        """Return what the pairs show that were mapped without having been seen."""
        rows, truth = fitted.pairs.ends(fitted.side)
        surroundings = Surroundings.of(rows, truth)
        hidden = np.random.default_rng(0).permutation(len(rows))[:MOST_HIDDEN]
        hidden.sort()
        # Those of every fold are there, so that what the others teach can be tried on them.
        rows, truth, mapped = rows[hidden], truth[hidden], mapped[hidden]
        signals, fold = surroundings.signals(rows, mapped), fitted.fold[hidden]
        vectors = unit(mapped) if is_unit else mapped
        actual = centred_cosines(vectors, truth, surroundings.mean)
        relation = Relation(signals, actual, fold)
        shortfall = (relation.expected - actual) / relation.spread
        is_covered = np.empty(actual.size, np.bool_)
        for number in np.unique(fold):
            is_out = fold == number
            is_covered[is_out] = shortfall[is_out] <= margin_of(shortfall[~is_out], level)
        margin = margin_of(shortfall, level)
        return cls(surroundings, relation, margin, level, actual, float(is_covered.mean()))

    def of(self, rows: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to expect of mapped rows, and a lower bound: centred cosines."""
        signals = self.surroundings.signals(rows, vectors)
        expected, spread = self.relation.both_at(signals)
        bound = expected - self.margin * spread
        return np.clip(expected, -1.0, 1.0), np.clip(bound, -1.0, 1.0)

    @property
    def expected(self) -> np.ndarray:
        """(n_hidden,) what to expect of each hidden pair, learnt without its fold."""
        return self.relation.expected


class Translator:
    """A map that was fitted to pairs, and how far to trust what it gives.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> old = rng.normal(size=(200, 4))
    >>> pairs = Pairs(old[:100], old[:100] @ rng.normal(size=(4, 6)))
    >>> from vecfill.model.predictors.affine import Affine
    >>> translator = Translator(Affine(), pairs, "documents")
    >>> vectors, confidence, bound = translator.translated(old[100:])
    >>> vectors.shape, bool(confidence.min() > 0.9), bool((bound <= confidence).all())
    ((100, 6), True, True)
    """

    @one_blas_thread()
    def __init__(
        self,
        predictor: Predictor,
        pairs: Pairs,
        side: str,
        *,
        level: float = 0.9,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        rows, targets = pairs.ends(side)
        self.predictor, self.side = predictor, side
        self.is_unit = are_unit(targets)
        self.space = Space(rows, n_jobs=n_jobs)
        self.known_rows = KnownRows(targets, np.ones(len(rows), np.bool_))
        chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:MOST_FITTED])
        n_folds = MORE_FOLDS if len(pairs) <= FEW_PAIRS else N_FOLDS
        fitted = CrossFitted(pairs.rows(chosen), side, seed=seed, n_folds=n_folds, n_jobs=n_jobs)
        mapped = fitted.mapped(predictor)
        self.trust = Trust.learnt(mapped, fitted, level, is_unit=self.is_unit)

    @property
    def n_features(self) -> int:
        """How many dimensions the rows have."""
        return self.space.size.n_features

    @property
    def dtype(self) -> np.dtype:
        """The type of the vectors."""
        return self.known_rows.embedding.dtype

    @one_blas_thread()
    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows, of length 1 if the known ones are."""
        vectors = self._raw(rows)
        return unit(vectors) if self.is_unit else vectors

    @one_blas_thread()
    def translated(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return vectors, what to expect of each, and a lower bound of that."""
        raw = self._raw(rows)
        expected, bound = self.trust.of(rows, raw)
        return (unit(raw) if self.is_unit else raw), expected, bound

    def _raw(self, rows: np.ndarray) -> np.ndarray:
        return self.predictor.predict(self.space, self.known_rows, New(rows)).vectors
