"""Which rows of a result another library gets, and all of them as a pandas table."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.living.adding import Added
from vecfill.living.model import LivingModel
from vecfill.result import Result

if TYPE_CHECKING:
    import pandas as pd

LAYOUTS = ("list", "columns")


def to_pandas(result: Result, *, layout: str = "list") -> pd.DataFrame:
    """Return a row for each known and imputed entity: vector, confidence, lower bound.

    Parameters
    ----------
    result
        What `vecfill.impute` returned.
    layout
        ``"list"``: the vectors are arrays in the column ``vector``. ``"columns"``: there is one
        column for each dimension, ``0`` and so on, and no other; `vecfill.impute` takes such a
        table as an embedding.

    Examples
    --------
    >>> from vecfill import impute
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> result = impute(places, known)
    >>> to_pandas(result).columns.tolist()
    ['is_imputed', 'confidence', 'lower_bound', 'vector']
    >>> to_pandas(result, layout="columns").shape
    (60, 5)
    """
    checks.one_of(layout, "layout", LAYOUTS)
    table = result.to_pandas()
    if layout == "list":
        return table
    vectors = np.array(result.enriched.vectors)
    return type(table)(
        vectors, index=table.index, columns=[str(i) for i in range(vectors.shape[1])]
    )


Found = Result | Embedding | LivingModel | Added
"""What holds vectors: the result of `impute`, an embedding, a model, or what its `add` gave."""


def all_rows(holder: Found) -> Embedding:
    """Return known and imputed entities with their vectors.

    Examples
    --------
    >>> all_rows(Embedding(["a"], [[1.0]]))
    Embedding(1 word, 1 dim, float64: 'a')
    """
    if isinstance(holder, Embedding):
        return holder
    if isinstance(holder, Added):
        return holder.embedding
    if isinstance(holder, LivingModel):
        known, imputed = holder.known, holder.embedding
        return Embedding(
            (*known.words, *imputed.words), np.vstack([known.vectors, imputed.vectors])
        )
    if not isinstance(holder, Result):
        raise InputError(
            f"an object of type {type(holder).__name__} holds no imputed vectors. Pass what "
            "vecfill.impute or add of a model returned, a model, or an Embedding."
        )
    return holder.enriched


def new_rows(holder: Found, existing: Container[str], *, n_dims: int, where: str) -> Embedding:
    """Return the imputed entities whose names are not taken, for a place that has vectors already.

    Examples
    --------
    >>> new_rows(Embedding(["a", "b"], [[1.0], [2.0]]), {"a"}, n_dims=1, where="the model")
    Embedding(1 word, 1 dim, float64: 'b')
    """
    rows = holder.embedding if isinstance(holder, Result | LivingModel) else all_rows(holder)
    if rows.n_dims != n_dims:
        raise InputError(
            f"the imputed vectors have {rows.n_dims} dimensions, but those of {where} have "
            f"{n_dims}. Pass the object whose vectors were used in vecfill.impute."
        )
    fresh = [word for word in rows.words if word not in existing]
    vectors = rows[fresh] if fresh else np.empty((0, n_dims), rows.vectors.dtype)
    return Embedding(fresh, vectors)
