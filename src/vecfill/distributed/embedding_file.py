"""Stage: an embedding file -> a Parquet piece with the rows of the entities, read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from vecfill.distributed.dataset import Dataset, open_dataset
from vecfill.distributed.ingest import names_piece
from vecfill.distributed.layout import Layout
from vecfill.distributed.pieces import read_table, write_table
from vecfill.distributed.tasks import Runner, Task
from vecfill.io.reading import read_embedding


def convert(
    layout: Layout,
    path: str,
    format: str | None,  # noqa: A002
    member: str | None,
    out: Path,
) -> None:
    """Write the rows of an embedding file whose words are names of entities."""
    blocks = range(len(layout.blocks))
    tables = (read_table(names_piece(layout, block)) for block in blocks)
    names = [name for table in tables for name in table.column("entity").to_pylist()]
    found = read_embedding(path, words=names, format=format, member=member)
    flat = pa.array(np.ascontiguousarray(found.vectors).reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, found.n_dims)
    write_table(out, pa.table({"entity": list(found.words), "vector": lists}))


def converted(
    runner: Runner,
    layout: Layout,
    path: str,
    format: str | None,  # noqa: A002
    member: str | None,
) -> Dataset:
    """Run the stage; return the dataset of the rows that were found."""
    out = layout.piece("vectors", "embedding.parquet")
    arguments = {"layout": layout, "path": path, "format": format, "member": member, "out": out}
    runner.run([Task("ingest", "embedding file", convert, arguments, (out,))])
    return open_dataset(str(out), key="entity")
