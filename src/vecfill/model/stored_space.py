"""A space whose rows and weights were computed before: what a model keeps of its spaces."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from vecfill.errors import InputError
from vecfill.model.fitted_preparation import FittedPreparation
from vecfill.model.predictors import Predictor
from vecfill.model.space import Rows, Space, WeightsKey


@dataclass(frozen=True)
class SpaceSize:
    """How large a space is, and how its neighbours are searched."""

    n_rows: int
    n_features: int
    has_vectors: bool
    min_degrees: tuple[int, ...]
    neighbors: str


class StoredSpace(Space):
    """A space that asks for each of its parts by name when it is first needed."""

    def __init__(
        self, size: SpaceSize, part: Callable[[str], Any], *, n_jobs: int | None = None
    ) -> None:
        self.size = size
        self.part = part
        self.has_vectors = size.has_vectors
        self.min_degrees = size.min_degrees
        self.neighbors = size.neighbors
        self.n_jobs = n_jobs
        self._kept: dict[Hashable, Any] = {}

    @cached_property
    def rows(self) -> Rows:
        """The domain as given; kept only if the predictor uses it so."""
        return self.part("rows as_given")

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.size.n_rows

    def prepared(self, preparation: str) -> Rows:
        """Return the rows under a preparation that the predictor uses."""
        return self.once(("rows", preparation), lambda: self.part(f"rows {preparation}"))

    def preparing(self, preparation: str) -> FittedPreparation:
        """Return what a preparation learnt from the rows."""
        return self.part(f"preparing {preparation}")

    def weights(self, key: WeightsKey) -> csr_array:
        """Return each row as a convex mix of its neighbours."""
        return self.once(key, lambda: self.part(f"weights {_text(key)}"))

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what was computed under a key before, or compute it."""
        if key not in self._kept and isinstance(key, tuple) and key[0] in _KERNEL:
            self._kept[key] = self.part(" ".join(key))
        return super().once(key, compute)


_KERNEL = ("kernel centre", "kernel unit")


def _text(key: WeightsKey) -> str:
    return "|".join(str(each) for each in vars(key).values())


def space_parts(space: Space, predictor: Predictor | None) -> dict[str, Any]:
    """Return the parts of a space that a predictor needs, by name; without one, its size.

    Examples
    --------
    >>> from vecfill.model.predictors import LatentSemantic
    >>> space = Space(np.array([[0.0], [1.0], [4.0]]))
    >>> list(space_parts(space, LatentSemantic(min_degree=2)))
    ['size', 'rows as_given', 'preparing as_given', 'weights as_given|2|0.0|simplex|0.1']
    """
    n_features = space.size.n_features if isinstance(space, StoredSpace) else space.rows.shape[1]
    size = SpaceSize(
        space.n_rows, n_features, space.has_vectors, space.min_degrees, space.neighbors
    )
    parts: dict[str, Any] = {"size": size}
    if predictor is None:
        return parts
    for preparation in predictor.preparations:
        parts[f"rows {preparation}"] = space.prepared(preparation)
        if space.has_vectors:
            parts[f"preparing {preparation}"] = space.preparing(preparation)
    for key in predictor.weights_keys:
        parts[f"weights {_text(key)}"] = space.weights(key)
    for kernel in predictor.kernels(space):
        if space.has_vectors and isinstance(space.prepared(kernel.preparation), np.ndarray):
            parts[f"kernel centre {kernel.preparation}"] = kernel.centre()
        parts[f"kernel unit {kernel.preparation}"] = kernel.unit()
    return parts


def extended(space: Space, new_rows: Any, predictor: Predictor) -> StoredSpace:
    """Return a space with more rows at its end, each a mix of the rows that were there.

    The rows that were there keep their neighbours.
    """
    if not space.has_vectors:
        raise InputError(
            "keep=True needs a source of features: of entities that are described by distances, "
            "the distances to later ones are not known."
        )
    parts = space_parts(space, predictor)
    n_new, n_rows = new_rows.shape[0], space.n_rows
    for preparation in predictor.preparations:
        prepared = space.prepared_new(preparation, new_rows)
        parts[f"rows {preparation}"] = _stacked(space.prepared(preparation), prepared)
    for key in predictor.weights_keys:
        prepared = space.prepared_new(key.preparation, new_rows)
        mixes, _ = space.mixes_of_new(prepared, key, weight_floor=key.weight_floor)
        more = csr_array((mixes.data, mixes.indices, mixes.indptr), (n_new, n_rows + n_new))
        old = space.weights(key)
        wide = csr_array((old.data, old.indices, old.indptr), (n_rows, n_rows + n_new))
        parts[f"weights {_text(key)}"] = csr_array(vstack([wide, more]))
    size: SpaceSize = parts["size"]
    parts["size"] = SpaceSize(
        n_rows + n_new, size.n_features, True, size.min_degrees, size.neighbors
    )
    return StoredSpace(parts["size"], parts.__getitem__, n_jobs=space.n_jobs)


def _stacked(one: Any, other: Any) -> Any:
    if isinstance(one, np.ndarray):
        return np.vstack([one, other]).astype(one.dtype)
    return csr_array(vstack([one, other]))
