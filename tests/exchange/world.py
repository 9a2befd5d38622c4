"""A small made world: towns with three features, and vectors that depend on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

N_TOWNS, N_KNOWN, N_DIMS = 60, 45, 6
TOWNS = [f"town{i}" for i in range(N_TOWNS)]
KNOWN, UNKNOWN = TOWNS[:N_KNOWN], TOWNS[N_KNOWN:]

_rng = np.random.default_rng(0)
PLACES = _rng.normal(size=(N_TOWNS, 3))
VECTORS = (
    PLACES @ _rng.normal(size=(3, N_DIMS)) + 0.2 * _rng.normal(size=(N_TOWNS, N_DIMS))
).astype(np.float32)

TABLE = pd.DataFrame(PLACES, index=pd.Index(TOWNS, name="town"), columns=["x", "y", "z"])


def is_near_truth(word: str, vector: object, least: float = 0.8) -> bool:
    """Tell whether an imputed vector points where the hidden one does."""
    truth, found = VECTORS[TOWNS.index(word)], np.asarray(vector, np.float64)
    return float(truth @ found / np.linalg.norm(truth) / np.linalg.norm(found)) > least


def items(kind: pa.DataType | None = None) -> pa.Table:
    """Return one table: whole-number ids, text, features, and a vector where i % 4 is not 0."""
    cells = [VECTORS[row].tolist() if row % 4 else None for row in range(N_TOWNS)]
    kind = pa.list_(pa.float32(), N_DIMS) if kind is None else kind
    return pa.table(
        {
            "title": TOWNS,
            "id": pa.array(range(1000, 1000 + N_TOWNS), pa.int32()),
            "x": PLACES[:, 0],
            "embedding": pa.array(cells, kind),
            "y": PLACES[:, 1],
            "z": PLACES[:, 2],
        }
    )


MISSING_ROWS = [row for row in range(N_TOWNS) if row % 4 == 0]
PRESENT_ROWS = [row for row in range(N_TOWNS) if row % 4]
