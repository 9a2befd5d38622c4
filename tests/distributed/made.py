"""Small datasets on disk, and what the path in memory makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vecfill.distributed.job import DatasetResult, impute_dataset
from vecfill.model.known import KnownRows
from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space

PLAIN = LatentSemantic(ridge=0.1)


@dataclass(frozen=True)
class Made:
    """Rows, vectors and names, and the folder where they are Parquet files."""

    folder: Path
    names: list[str]
    rows: np.ndarray
    vectors: np.ndarray
    is_known: np.ndarray

    @property
    def features(self) -> Path:
        return self.folder / "features"

    @property
    def known(self) -> Path:
        return self.folder / "vectors"

    def imputed(self, work: str, **options: Any) -> DatasetResult:
        """Run a job in a work folder; its output is beside it."""
        options = {"method": PLAIN, **options}
        return impute_dataset(
            self.features, self.known, self.folder / f"{work} out", work=self.folder / work,
            **options,
        )  # fmt: skip

    def write_known(self, row_group_size: int = 400) -> None:
        """Write the known vectors: in another order, and with an entity that nobody describes."""
        known = np.random.default_rng(1).permutation(np.flatnonzero(self.is_known))
        kind = pa.list_(pa.from_numpy_dtype(self.vectors.dtype))
        table = pa.table(
            {
                "word": [*(self.names[row] for row in known), "stranger"],
                "vector": [*self.vectors[known].tolist(), [0.0] * self.vectors.shape[1]],
            },
            schema=pa.schema([("word", pa.string()), ("vector", kind)]),
        )
        pq.write_table(table, self.known / "all.parquet", row_group_size=row_group_size)

    def table(self, work: str) -> pa.Table:
        return pq.read_table(self.folder / f"{work} out")

    def found(self, work: str) -> np.ndarray:
        """Return the vectors that a job has written; their order is checked."""
        table = self.table(work)
        unknown = np.flatnonzero(~self.is_known)
        assert table["entity"].to_pylist() == [self.names[row] for row in unknown]
        return np.array(table["vector"].to_pylist(), self.vectors.dtype)

    def in_memory(self, predictor: LatentSemantic = PLAIN) -> np.ndarray:
        space = Space(self.rows, min_degrees=(predictor.min_degree,), n_jobs=1)
        return predictor.predict(space, KnownRows(self.vectors, self.is_known)).vectors


def made(
    folder: Path,
    *,
    n_rows: int = 1500,
    share_known: float = 0.4,
    dtype: type = np.float64,
    row_group_size: int = 400,
    n_parts: int = 2,
    n_dims: int = 20,
) -> Made:
    """Write clusters on a curved sheet, and vectors that they explain."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(12, 4))
    latent = centres[rng.integers(0, 12, n_rows)] + rng.normal(size=(n_rows, 4))
    rows = np.tanh(latent @ rng.normal(size=(4, 9)) / 3) + 0.01 * rng.normal(size=(n_rows, 9))
    vectors = latent @ rng.normal(size=(4, n_dims)) / 3
    is_known = rng.random(n_rows) < share_known
    names = [f"item {number}" for number in range(n_rows)]
    rows, vectors = rows.astype(dtype), vectors.astype(dtype)
    (folder / "features").mkdir(parents=True)
    (folder / "vectors").mkdir()
    for number, part in enumerate(np.array_split(np.arange(n_rows), n_parts)):
        columns = {f"x{place}": rows[part, place] for place in range(9)}
        table = pa.table({"entity": [names[row] for row in part], **columns})
        path = folder / "features" / f"part-{number}.parquet"
        pq.write_table(table, path, row_group_size=row_group_size)
    items = Made(folder, names, rows, vectors, is_known)
    items.write_known(row_group_size)
    return items
