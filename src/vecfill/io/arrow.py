"""Parquet, and Arrow, which is Feather of version 2: files of record batches, all columns kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from vecfill.io.columnar import ColumnarCodec, ColumnarRows
from vecfill.io.sources import Source

_FILE = b"ARROW1"
_BATCH_ROWS = 16384


class ArrowRows(ColumnarRows):
    """The rows of an Arrow file or stream."""

    kind = "arrow"

    def _read_schema(self) -> pa.Schema:
        with self._opened() as reader:
            return reader.schema

    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        with self._opened() as reader:
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                yield from reader

    def _opened(self) -> Any:
        file = self.source.file()
        start = file.read(len(_FILE))
        file.seek(0)
        return pa.ipc.open_file(file) if start == _FILE else pa.ipc.open_stream(file)


class Arrow(ColumnarCodec):
    """Arrow and Feather files."""

    def detects(self, source: Source) -> bool:
        """Tell by the suffix: a damaged safetensors file may begin like a stream."""
        return source.suffix != ".safetensors"

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> ArrowRows:
        """Return the reader of a file's rows."""
        return ArrowRows(source, dtype)

    def write_tables(self, out: Any, blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write record batches to `out`."""
        with pa.ipc.new_file(out, schema) as writer:
            for block in blocks:
                writer.write_batch(block)


class ParquetRows(ColumnarRows):
    """The rows of a Parquet file."""

    kind = "parquet"

    def _read_schema(self) -> pa.Schema:
        return pq.ParquetFile(self.source.file()).schema_arrow

    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        yield from pq.ParquetFile(self.source.file()).iter_batches(batch_size=_BATCH_ROWS)


class Parquet(ColumnarCodec):
    """Parquet files."""

    def reader(self, source: Source, dtype: np.dtype[Any] | None = None) -> ParquetRows:
        """Return the reader of a file's rows."""
        return ParquetRows(source, dtype)

    def write_tables(self, out: Any, blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write record batches to `out`."""
        with pq.ParquetWriter(out, schema) as writer:
            for block in blocks:
                writer.write_batch(block)
