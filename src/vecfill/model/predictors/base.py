"""What a predictor is: a small frozen setting that gives unknown rows from known ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np

from vecfill import checks
from vecfill.errors import InputError
from vecfill.method.engine import parallel_map
from vecfill.method.scaling import scaled_together
from vecfill.model.kernels import Kernel
from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition, Prediction
from vecfill.model.preparation import PREPARATIONS
from vecfill.model.sources import Member
from vecfill.model.space import Space, WeightsKey
from vecfill.model.wanted import ALL, Unknown, Wanted

TOL = 1e-10
"""Relative residual to which predictions are solved unless a caller can do with less."""


Hiding = tuple[KnownRows, np.ndarray]
"""What one fold shows, and the hidden rows as places among those that it does not show."""


class Predictor(ABC):
    """One way to impute; subclasses are frozen dataclasses whose fields are the setting.

    A predictor never changes and keeps nothing: what can be shared is kept by the `Space`.
    """

    name: ClassVar[str]
    """How it is called in files and reports."""

    needs_vectors: ClassVar[bool] = True
    """Whether a matrix of distances is not enough."""

    @abstractmethod
    def predict(
        self,
        space: Space,
        given: KnownRows,
        wanted: Wanted = ALL,
        *,
        tol: float = TOL,
    ) -> Prediction:
        """Return vectors of the wanted rows, and what they are made of.

        By default these are all unknown rows; `Unknown` names some of them, and `New` holds rows
        that came after the fit.
        """

    def composition(self, space: Space, given: KnownRows) -> Composition:
        """Return what the unknown rows are made of."""
        return self.predict(space, given).composition

    def settled(self, space: Space, given: KnownRows) -> Predictor:  # noqa: ARG002
        """Return the predictor with everything chosen that it would choose by itself.

        A model that goes on keeps the widths and strengths with which it was fitted.
        """
        return self

    def kept(
        self,
        space: Space,  # noqa: ARG002
        given: KnownRows,  # noqa: ARG002
        carried: Callable[[], np.ndarray],  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return what is worth keeping so that rows can be added later without much work.

        `carried` gives what known rows carry for signals. It is made of arrays, and of mappings of
        arrays.
        """
        return {}

    def restore(self, space: Space, given: KnownRows, kept: Mapping[str, Any]) -> None:  # noqa: B027
        """Give back to the known rows what `kept` returned for the same ones."""

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations of domain rows that it needs."""
        return (getattr(self, "preparation", "as_given"),)

    @property
    def weights_keys(self) -> tuple[WeightsKey, ...]:
        """The weights of a space that it needs."""
        return ()

    def kernels(self, space: Space) -> tuple[Kernel, ...]:  # noqa: ARG002
        """Return the kernels on a space that it needs."""
        return ()

    def by_source(self, space: Any) -> list[tuple[Member, Predictor | None]]:
        """Return what each source of a space is imputed by; ``None`` if it is not used."""
        return [(Member("table", space, np.arange(space.n_rows), space.n_rows), self)]

    def with_chosen_variants(self, space: Any) -> tuple[Predictor, Any]:
        """Return the predictor and the space without the ways of reading that were not chosen."""
        return self, space

    def is_described(self, space: Any, given: KnownRows, wanted: Wanted = ALL) -> np.ndarray:  # noqa: ARG002
        """Tell which of the wanted rows are described by what the predictor uses."""
        return np.ones(wanted.numbers(given).size, np.bool_)

    def is_usual(self, space: Any, given: KnownRows, wanted: Wanted) -> np.ndarray:  # noqa: ARG002
        """Tell which of the wanted rows are described by the same sources as a fitted row."""
        return np.ones(wanted.numbers(given).size, np.bool_)

    def fill(self, space: Space, given: KnownRows, *, tol: float = TOL) -> Composition:
        """Write the unknown rows into the embedding given; return what they are made of."""
        found = self.predict(space, given, tol=tol)
        given.embedding[given.unknown] = found.vectors
        return found.composition

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
        """Return the predictions of several predictors that share most of their work."""
        return [each.predict(space, given, wanted, tol=tol) for each in predictors]

    @classmethod
    def shares_folds(
        cls,
        predictors: Sequence[Any],  # noqa: ARG003
        space: Space,  # noqa: ARG003
        folds: Sequence[Hiding],  # noqa: ARG003
    ) -> bool:
        """Tell whether all folds together cost about as much as one of them."""
        return False

    @classmethod
    def predict_folds(
        cls, predictors: Sequence[Any], space: Space, folds: Sequence[Hiding], *, tol: float = TOL
    ) -> list[list[Prediction]]:
        """Return the predictions of the hidden rows, by fold and then by predictor.

        The folds hide known rows in turn, so they differ only in which of them are seen.
        """

        def predicted(fold: Hiding) -> list[Prediction]:
            given, places = fold
            return cls.predict_together(predictors, space, given, Unknown(places), tol=tol)

        # The first fold leaves in the space what all share; then threads need not wait.
        return [
            *map(predicted, folds[:1]),
            *parallel_map(predicted, folds[1:], n_jobs=space.n_threads),
        ]

    def fitted_to(self, space: Space) -> Self:
        """Return the predictor as this space admits it, or refuse with the reason."""
        preparation = getattr(self, "preparation", "as_given")
        if preparation not in space.preparations:
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


def check_preparation(preparation: str) -> None:
    """Refuse a preparation that does not exist."""
    checks.one_of(preparation, "preparation", tuple(PREPARATIONS))


def known_and_wanted(
    space: Space, preparation: str, given: KnownRows, wanted: Wanted
) -> tuple[Any, Any]:
    """Return the prepared domain rows that are known, and those that are wanted."""
    known = space.prepared(preparation)[np.flatnonzero(given.is_known)]
    return scaled_together(known, wanted.prepared(space, preparation, given))
