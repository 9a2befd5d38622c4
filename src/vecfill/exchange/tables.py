"""Known and imputed vectors -> a pandas table, with a column of vectors or one per dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vecfill import checks
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
