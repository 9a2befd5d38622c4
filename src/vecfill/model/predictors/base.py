"""What a predictor is: a small frozen setting that gives unknown rows from known ones.

A predictor of one's own is a frozen dataclass with `name` and `predict`, or with `of_rows` alone if
it needs no more than prepared rows (`RowPredictor`). The other methods have an answer here that is
right for both; they are for predictors that can share work, or that choose something by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from vecfill import checks
from vecfill.errors import InputError
from vecfill.method.engine import parallel_map, row_blocks
from vecfill.method.scaling import scaled_together
from vecfill.model.kernels import Kernel
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, FixedMix, Prediction
from vecfill.model.preparation import PREPARATIONS, base_of
from vecfill.model.space import Member, Space, WeightsKey
from vecfill.model.wanted import ALL, Unknown, Wanted

TOL = 1e-10
"""Relative residual to which predictions are solved unless a caller can do with less: float32 keeps
7 digits, so even sums of many of them are exact."""

Hiding = tuple[KnownRows, np.ndarray]
"""What one fold shows, and the hidden rows as places among those that it does not show."""

Rows = Any
"""Prepared rows, dense or sparse."""


class Predictor(ABC):
    """One way to impute; subclasses are frozen dataclasses whose fields are the setting.

    A predictor never changes and keeps nothing: what can be shared is kept by the `Space` (which
    does not know what is known) and by the `KnownRows`.
    """

    name: ClassVar[str]
    """How it is called in files and reports."""

    needs_vectors: ClassVar[bool] = True
    """Whether a matrix of distances is not enough."""

    is_for_sources: ClassVar[bool] = False
    """Whether it adds up what several sources predict."""

    is_quick: ClassVar[bool] = False
    """Whether it solves one column in a moment."""

    @abstractmethod
    def predict(
        self, space: Any, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of.

        By default these are all unknown rows; `Unknown` names some of them, and `New` holds rows
        that came after the fit.
        """

    def composition(self, space: Any, known_rows: KnownRows) -> Composition:
        """Return what the unknown rows are made of."""
        return self.predict(space, known_rows).composition

    def settled(self, space: Any, known_rows: KnownRows) -> Predictor:
        """Return the predictor with everything chosen that it would choose by itself.

        A model that goes on keeps the widths and strengths with which it was fitted.
        """
        return self

    def kept(
        self, space: Any, known_rows: KnownRows, carried: Callable[[], np.ndarray]
    ) -> dict[str, Any]:
        """Return what is worth keeping so that rows can be added later without much work.

        `carried` gives what known rows carry for signals. It is made of arrays, and of mappings of
        arrays.
        """
        return {}

    def restore(self, space: Any, known_rows: KnownRows, stored: Mapping[str, Any]) -> None:  # noqa: B027
        """Give back to the known rows what `kept` returned for the same ones."""

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations of domain rows that it needs."""
        return (getattr(self, "preparation", "as_given"),)

    @property
    def whitened(self) -> float:
        """By what power of the variance of known vectors rare directions are strengthened.

        If not by 0, its vectors are mixes not of known vectors, but of known ones so changed.
        """
        return 0.0

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights of a space that it needs."""
        return ()

    @property
    def min_degrees(self) -> tuple[int, ...] | None:
        """Least degrees of the only graphs that it needs; ``None``: those that all share."""
        return None

    def kernels(self, space: Space) -> tuple[Kernel, ...]:
        """Return the kernels on a space that it needs."""
        return ()

    def by_source(self, space: Any) -> list[tuple[Member, Predictor | None]]:
        """Return what each source of a space is imputed by; ``None`` if it is not used."""
        return [(member, self) for member in space.members]

    def variant_of(self, number: int) -> int:
        """Return which of the ways to read a source is used."""
        return 0

    def without_sources(self, names: Collection[str]) -> Predictor | None:
        """Return the predictor without sources of these names; ``None`` if nothing is left."""
        return self

    def cheapened(self) -> Predictor:
        """Return a predictor of less work where one number for each row is all that is asked."""
        return self

    def with_chosen_variants(self, space: Any) -> tuple[Predictor, Any]:
        """Return the predictor and the space without the ways of reading that were not chosen."""
        return self, space

    def is_described(self, space: Any, known_rows: KnownRows, wanted: Wanted = ALL) -> np.ndarray:
        """Tell which of the wanted rows are described by what the predictor uses."""
        return np.ones(wanted.numbers(known_rows).size, np.bool_)

    def is_usual(self, space: Any, known_rows: KnownRows, wanted: Wanted) -> np.ndarray:
        """Tell which of the wanted rows are described by the same sources as a fitted row."""
        return np.ones(wanted.numbers(known_rows).size, np.bool_)

    def fill(self, space: Any, known_rows: KnownRows, *, tol: float = TOL) -> Composition:
        """Write the unknown rows into the embedding given; return what they are made of."""
        prediction = self.predict(space, known_rows, tol=tol)
        known_rows.embedding[known_rows.unknown] = prediction.vectors
        return prediction.composition

    @classmethod
    def predict_together(
        cls,
        predictors: Sequence[Any],
        space: Any,
        known_rows: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,
    ) -> list[Prediction]:
        """Return the predictions of several predictors that share most of their work."""
        return [predictor.predict(space, known_rows, wanted, tol=tol) for predictor in predictors]

    @classmethod
    def shares_folds(cls, predictors: Sequence[Any], space: Any, folds: Sequence[Hiding]) -> bool:
        """Tell whether all folds together cost about as much as one of them."""
        return False

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Any, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows, by fold and then by predictor.

        The folds hide known rows in turn, so they differ only in which of them are seen.
        """

        def predicted(fold: Hiding) -> list[Prediction]:
            known_rows, places = fold
            return cls.predict_together(predictors, space, known_rows, Unknown(places), tol=tol)

        # The first fold leaves in the space what all share; then threads need not wait.
        return [
            *map(predicted, folds[:1]),
            *parallel_map(predicted, folds[1:], n_jobs=space.n_threads),
        ]

    def fitted_to(self, space: Any) -> Self:
        """Return the predictor as this space admits it, or refuse with the reason."""
        # Distances cannot be prepared: nothing is known of the columns.
        for preparation in self.preparations:
            if base_of(preparation) not in space.preparations:
                raise InputError(
                    f"preparation={preparation!r} needs domain vectors, and this domain has only "
                    f"distances. Use one of {', '.join(space.preparations)}."
                )
        if self.needs_vectors:
            space.refuse_without_vectors(self.name)
        return self

    def in_words(self) -> str:
        """Return the setting as one would say it; `str` has the exact values."""
        return str(self)

    def in_short(self) -> str:
        """Return the method in half a line, for a page that tells the rest elsewhere."""
        return f"by {self.in_words()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the predictor as plain values, for JSON."""
        return {"predictor": self.name, **asdict(self)}  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class RowPredictor(Predictor):
    """A predictor that needs prepared rows and nothing else, so it is told `of_rows`."""

    preparation: str = "as_given"
    """How domain rows are prepared before they are compared."""

    def __post_init__(self) -> None:
        check_preparation(self.preparation)

    def predict(
        self, space: Any, known_rows: KnownRows, wanted: Wanted = ALL, *, tol: float = TOL
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of."""
        rows_of_known = space.prepared(self.preparation)[np.flatnonzero(known_rows.is_known)]
        wanted_rows = wanted.prepared(space, self.preparation, known_rows)
        # Squares of extreme numbers would overflow; together, so that rows stay comparable.
        rows_of_known, wanted_rows = scaled_together(rows_of_known, wanted_rows)
        return self.of_rows(rows_of_known, wanted_rows, known_rows.known)

    @abstractmethod
    def of_rows(self, rows_of_known: Rows, wanted_rows: Rows, known: np.ndarray) -> Prediction:
        """Return vectors of the wanted rows from the `known` vectors of the known rows."""


def check_preparation(preparation: str) -> None:
    """Refuse a preparation that does not exist."""
    checks.one_of(base_of(preparation), "preparation", tuple(PREPARATIONS))


def mixed(
    coefficients: Callable[[slice], np.ndarray], n_wanted: int, known: np.ndarray, n_together: int
) -> Prediction:
    """Return the mixes of known vectors by coefficients, most of which are 0, block by block."""
    vectors, mixes = np.empty((n_wanted, known.shape[1])), [csr_array((0, len(known)))]
    for block in row_blocks(n_wanted, n_together):
        of_block = coefficients(block)
        vectors[block] = of_block @ known
        # Kept sparse, since explanations ask for shares later: dense, all pairs would be kept.
        mixes.append(csr_array(of_block))
    return Prediction(vectors, Composition(FixedMix(csr_array(vstack(mixes)))))


def dense(rows: Rows) -> np.ndarray:
    """Return rows as a dense array."""
    return rows.toarray() if issparse(rows) else rows
