"""Parquet: read and written through Arrow, all columns kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vecfill.io.columnar import ColumnarCodec, ColumnarRows
from vecfill.io.sources import Source

_BATCH_ROWS = 16384


class ParquetRows(ColumnarRows):
    """The rows of a Parquet file."""

    kind = "parquet"

    def _read_schema(self) -> pa.Schema:
        return pq.ParquetFile(self.source.file()).schema_arrow

    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        yield from pq.ParquetFile(self.source.file()).iter_batches(batch_size=_BATCH_ROWS)


class Parquet(ColumnarCodec):
    """Parquet files."""

    def detects(self, source: Source) -> bool:
        """Tell by the first bytes."""
        return source.head.startswith(b"PAR1")

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> ParquetRows:
        """Return the reader of a file's rows."""
        return ParquetRows(source, dtype)

    def write_tables(self, out: Any, blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write record batches to `out`."""
        with pq.ParquetWriter(out, schema) as writer:
            for block in blocks:
                writer.write_batch(block)
