"""Stage: Parquet row groups -> blocks of rows, names and hashes of names, checked.

An embedding file becomes a Parquet piece with the rows of the entities first, and is read once.

A block starts at a round number of rows, wherever row groups end, so that neither parts nor row
groups decide any bit of the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vecfill.distributed.dataset import Dataset, lists_of, open_dataset
from vecfill.distributed.layout import Layout
from vecfill.distributed.pieces import read_table, write_array, write_table
from vecfill.distributed.tasks import Runner, Task
from vecfill.io.reading import read_embedding


def digests(names: pa.Array) -> np.ndarray:
    """Return 128 bits of a hash of each name, as two whole numbers.

    Examples
    --------
    >>> digests(pa.array(["oslo", "rome"])).shape
    (2, 2)
    """
    content = b"".join(
        hashlib.blake2b(name.encode("utf-8"), digest_size=16).digest() for name in names.to_pylist()
    )
    return np.frombuffer(content, np.uint64).reshape(-1, 2)


def _block_groups(dataset: Dataset, n_rows_of_block: int) -> list[range]:
    """Return blocks that are read together: those that begin in one row group."""
    n_blocks = -(-dataset.n_rows // n_rows_of_block)
    shared = []
    for first, last in dataset.row_groups():
        blocks = range(-(-first // n_rows_of_block), min(n_blocks, -(-last // n_rows_of_block)))
        if blocks:
            shared.append(blocks)
    return shared


def ingest_tasks(layout: Layout, dataset: Dataset, role: str) -> list[Task]:
    """Return the tasks that write the blocks of a dataset: features, or vectors."""
    tasks = []
    for blocks in _block_groups(dataset, layout.rows_per_block):
        outputs = [
            path
            for block in blocks
            for path in (
                *(layout.piece(role, kind, block) for kind in ("rows", "has", "hashes")),
                _names_piece(layout, role, block),
            )
        ]
        arguments = {"layout": layout, "dataset": dataset, "role": role, "blocks": blocks}
        name = f"{role} {blocks.start} to {blocks.stop - 1}"
        tasks.append(Task("ingest", name, ingest, arguments, tuple(outputs)))
    return tasks


def _names_piece(layout: Layout, role: str, block: int) -> Path:
    return layout.piece(role, "names", f"{block:06d}.parquet")


def names_piece(layout: Layout, block: int) -> Path:
    """Return the piece that holds the names of a block of entities."""
    return _names_piece(layout, "features", block)


def ingest(layout: Layout, dataset: Dataset, role: str, blocks: range) -> None:
    """Write some blocks: rows, names, hashes of names, and which rows have numbers at all."""
    size = layout.rows_per_block
    first, last = blocks.start * size, min(blocks.stop * size, dataset.n_rows)
    block, content = blocks.start, _Block(dataset, role)
    for start, batch in dataset.batches(first, last):
        place = start
        while place < start + batch.num_rows:
            end = min((block + 1) * size, start + batch.num_rows)
            content.add(batch.slice(place - start, end - place), place)
            place = end
            if place == min((block + 1) * size, last):
                content.write(layout, block)
                block, content = block + 1, _Block(dataset, role)


class _Block:
    """The rows of a block as far as they have been read."""

    def __init__(self, dataset: Dataset, role: str) -> None:
        self.dataset, self.role = dataset, role
        self.rows: list[np.ndarray] = []
        self.names: list[pa.Array] = []
        self.has: list[np.ndarray] = []

    def add(self, batch: pa.RecordBatch, first: int) -> None:
        self.names.append(self.dataset.names_of(batch, first))
        has = np.ones(batch.num_rows, np.bool_)
        if self.role == "vectors" and self.dataset.is_list:
            # An entity without a vector is one to impute.
            column = batch.column(batch.schema.get_field_index(self.dataset.numbers[0]))
            has = pc.is_valid(column).to_numpy(zero_copy_only=False)
            batch = batch.filter(pa.array(has))
        rows = np.zeros((has.size, self.dataset.n_columns), self.dataset.dtype)
        rows[has] = self.dataset.numbers_of(batch, first + np.flatnonzero(has))
        self.rows.append(rows)
        self.has.append(has)

    def write(self, layout: Layout, block: int) -> None:
        names = pa.chunked_array(self.names)
        write_array(layout.piece(self.role, "rows", block), np.concatenate(self.rows))
        write_array(layout.piece(self.role, "has", block), np.concatenate(self.has))
        hashes = np.concatenate([digests(part) for part in self.names])
        write_array(layout.piece(self.role, "hashes", block), hashes)
        write_table(_names_piece(layout, self.role, block), pa.table({"entity": names}))


def convert(layout: Layout, path: str, how_read: Mapping[str, Any]) -> pa.Table:
    """Return the rows of an embedding file whose words are names of entities."""
    blocks = range(len(layout.blocks))
    tables = (read_table(names_piece(layout, block)) for block in blocks)
    names = [name for table in tables for name in table.column("entity").to_pylist()]
    embedding = read_embedding(path, words=names, **how_read)
    return pa.table({"entity": list(embedding.words), "vector": lists_of(embedding.vectors)})


def converted(runner: Runner, layout: Layout, path: str, how_read: Mapping[str, Any]) -> Dataset:
    """Return the dataset of the rows of an embedding file whose words are names of entities."""
    out = layout.piece("vectors", "embedding.parquet")
    arguments = {"layout": layout, "path": path, "how_read": how_read}
    runner.run([Task("ingest", "embedding file", convert, arguments, (out,))])
    return open_dataset(str(out), key="entity")
