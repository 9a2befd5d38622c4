"""Known and imputed entities with their confidence -> tables: Arrow, pandas, a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import MissingExtraError
from vecfill.trust.prove.confidence import Confidence
from vecfill.wording import html_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def arrow_table(known: Embedding, imputed: Embedding, confidence: Confidence | None) -> pa.Table:
    """Return one row for each known and imputed entity: name, vector, confidence, bound.

    Examples
    --------
    >>> known, imputed = Embedding(["a"], [[1.0]]), Embedding(["b"], [[2.0]])
    >>> arrow_table(known, imputed, None)["entity"].to_pylist()
    ['a', 'b']
    """
    import pyarrow as pa  # noqa: PLC0415

    vectors = np.vstack([known.vectors, imputed.vectors])

    def column(name: str) -> Any:
        values = [None] * len(imputed) if confidence is None else getattr(confidence, name).tolist()
        return pa.array([None] * len(known) + values, pa.float64())

    columns = {
        "entity": pa.array(
            [printable(word) for word in (*known.words, *imputed.words)], pa.string()
        ),
        "is_imputed": pa.array([False] * len(known) + [True] * len(imputed)),
        "confidence": column("values"),
        "lower_bound": column("lower_bound"),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
    }
    return pa.table(columns)


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Return the same as a pandas data frame, entities as index."""
    try:
        import pandas  # noqa: PLC0415, F401
    except ImportError as error:
        raise MissingExtraError(
            "to_pandas needs pandas, which is not installed. Type: pip install pandas"
        ) from error
    return table.to_pandas().set_index("entity")


def html_rows(known: Embedding, imputed: Embedding, confidence: Confidence | None, n: int) -> str:
    """Return a table of the imputed entities of highest confidence and what is near them."""
    order = range(len(imputed))
    if confidence is not None:
        order = np.argsort(-confidence.values, kind="stable")
    rows = []
    for row in list(order)[:n]:
        word = imputed.words[row]
        near = known.most_similar(imputed[word], n=3)
        sure = [] if confidence is None else [f"{confidence.values[row]:.2f}"]
        bound = [] if confidence is None else [f"{confidence.lower_bound[row]:.2f}"]
        names = ", ".join(printable(name)[:30] for name, _ in near)
        rows.append([printable(word)[:40], *sure, *bound, names])
    trust = ["confidence", "at least"] if confidence is not None else []
    return html_table(["entity", *trust, "nearest known"], rows)
