"""Which rows of a result are written to another library."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.living.adding import Added
from vecfill.living.model import LivingModel
from vecfill.result import Result

Found = Result | Embedding | LivingModel | Added
"""What holds vectors: the result of `impute`, an embedding, a model, or what its `add` gave."""


def all_rows(found: Found) -> Embedding:
    """Return known and imputed entities with their vectors.

    Examples
    --------
    >>> all_rows(Embedding(["a"], [[1.0]]))
    Embedding(1 word, 1 dim, float64: 'a')
    """
    if isinstance(found, Embedding):
        return found
    if isinstance(found, Added):
        return found.embedding
    if isinstance(found, LivingModel):
        known, imputed = found.known, found.embedding
        return Embedding(
            (*known.words, *imputed.words), np.vstack([known.vectors, imputed.vectors])
        )
    if not isinstance(found, Result):
        raise InputError(
            f"an object of type {type(found).__name__} holds no imputed vectors. Pass what "
            "vecfill.impute or add of a model returned, a model, or an Embedding."
        )
    return found.enriched


def new_rows(found: Found, taken: Container[str], *, n_dims: int, where: str) -> Embedding:
    """Return the imputed entities whose names are not taken, for a place that has vectors already.

    Examples
    --------
    >>> new_rows(Embedding(["a", "b"], [[1.0], [2.0]]), {"a"}, n_dims=1, where="the model")
    Embedding(1 word, 1 dim, float64: 'b')
    """
    rows = found.embedding if isinstance(found, Result | LivingModel) else all_rows(found)
    if rows.n_dims != n_dims:
        raise InputError(
            f"the imputed vectors have {rows.n_dims} dimensions, but those of {where} have "
            f"{n_dims}. Pass the object whose vectors were used in vecfill.impute."
        )
    fresh = [word for word in rows.words if word not in taken]
    vectors = rows[fresh] if fresh else np.empty((0, n_dims), rows.vectors.dtype)
    return Embedding(fresh, vectors)
