"""Databases whose writer is killed, or whose disk is full: each row is old or new, and a second
run finishes the job."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import vecfill as vf
from tests.exchange.test_databases import (  # noqa: F401 - fixtures
    FILLED,
    server,
)
from tests.exchange.test_databases import ONE as COLUMNS
from tests.exchange.world import MISSING_ROWS, N_DIMS, PRESENT_ROWS, VECTORS, items
from vecfill.exchange.duckdb import DuckDBTable
from vecfill.exchange.lancedb import LanceDBTable
from vecfill.exchange.postgres import PostgresTable
from vecfill.exchange.qdrant import QdrantCollection

pytestmark = [
    pytest.mark.extra,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a forkserver"),
]

ONE = {**COLUMNS, "method": "paper"}
N_KILLS = 6
FOLDERS = ("vecfill/exchange", "qdrant_client/local")
"""Whose lines are counted: databases that are compiled run many of theirs between two of these."""


@pytest.fixture(scope="module")
def expected() -> vf.Result:
    return vf.impute(items(), **ONE)


def make_duckdb(where: str) -> None:
    import duckdb

    Path(where).unlink(missing_ok=True)
    with duckdb.connect(where) as connection:
        connection.register("given", items())
        connection.execute("CREATE TABLE items AS SELECT * FROM given")


def fill_duckdb(where: str) -> None:
    vf.fill_duckdb(where, "items", **ONE, confidence="sure")


def read_duckdb(where: str) -> pa.Table:
    import duckdb

    with duckdb.connect(where) as connection:
        return connection.sql("SELECT * FROM items").to_arrow_table()


def make_postgres(where: str) -> None:
    import psycopg

    from tests.exchange.test_databases import make_table

    with psycopg.connect(where) as connection:
        make_table(connection)


def fill_postgres(where: str) -> None:
    vf.fill_postgres(where, "items", **ONE, confidence="sure")


def read_postgres(where: str) -> pa.Table:
    import psycopg

    from tests.exchange.test_databases import rows_of

    with psycopg.connect(where) as connection:
        return rows_of(connection)


def make_lancedb(where: str) -> None:
    import lancedb

    lancedb.connect(where).create_table("items", items(), mode="overwrite")


def fill_lancedb(where: str) -> None:
    import lancedb

    vf.fill_lancedb(lancedb.connect(where).open_table("items"), **ONE, confidence="sure")


def read_lancedb(where: str) -> pa.Table:
    import lancedb

    return lancedb.connect(where).open_table("items").to_arrow()


def make_qdrant(where: str) -> None:
    from qdrant_client import QdrantClient, models

    with closing(QdrantClient(path=where)) as client:
        if client.collection_exists("items"):
            client.delete_collection("items")
        size = models.VectorParams(size=N_DIMS, distance=models.Distance.DOT)
        client.create_collection("items", vectors_config={"embedding": size})
        points = []
        for row in items().to_pylist():
            key, vector = row.pop("id"), row.pop("embedding")
            vectors = {} if vector is None else {"embedding": vector}
            points.append(models.PointStruct(id=key, payload=row, vector=vectors))
        client.upsert("items", points)


def fill_qdrant(where: str) -> None:
    from qdrant_client import QdrantClient

    with closing(QdrantClient(path=where)) as client:
        vf.fill_qdrant(client, "items", vector="embedding", confidence="sure", method="paper")


def read_qdrant(where: str) -> pa.Table:
    from qdrant_client import QdrantClient

    with closing(QdrantClient(path=where)) as client:
        points, _ = client.scroll("items", limit=1000, with_vectors=True)
    rows = [
        {"id": point.id, "embedding": (point.vector or {}).get("embedding"), **point.payload}
        for point in points
    ]
    return pa.Table.from_pylist(sorted(rows, key=len, reverse=True))


STORES = {
    "duckdb": (make_duckdb, fill_duckdb, read_duckdb),
    "postgres": (make_postgres, fill_postgres, read_postgres),
    "lancedb": (make_lancedb, fill_lancedb, read_lancedb),
    "qdrant": (make_qdrant, fill_qdrant, read_qdrant),
}
KEEPS_ALL_OR_NONE = {"duckdb", "postgres", "lancedb"}


def _act(act: Callable[[str], object], where: str, n_lines: int, answer: str) -> None:
    """Act, but die after so many lines of a write; answer how many there were."""
    n_done = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal n_done
        if not any(folder in frame.f_code.co_filename for folder in FOLDERS):
            return None
        if event == "line":
            n_done += 1
            if n_done == n_lines:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def watched(write: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(write)
        def written(*arguments: Any) -> None:
            sys.settrace(trace)
            try:
                write(*arguments)
            finally:
                sys.settrace(None)

        return written

    for kind in (DuckDBTable, PostgresTable, LanceDBTable, QdrantCollection):
        kind.write = watched(kind.write)
    act(where)
    Path(answer).write_text(str(n_done))


@pytest.fixture(scope="module")
def clean() -> multiprocessing.context.BaseContext:
    """Return processes that come from one which never opened a database: drivers have threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vecfill", __name__])
    return context


@pytest.fixture
def in_process(clean, tmp_path):
    """Return how to act in a process of its own, to be killed after some lines, if any."""

    def act(function: Callable[[str], object], where: str, n_lines: int = 0) -> int:
        answer = tmp_path / "answer"
        answer.write_text("0")
        process = clean.Process(target=_act, args=(function, where, n_lines, str(answer)))
        process.start()
        process.join(120)
        assert process.exitcode in (0, -signal.SIGKILL)
        return int(answer.read_text())

    return act


@pytest.fixture
def where(request, tmp_path) -> str:
    """Return where a store is, by its name."""
    name = request.node.callspec.params["name"]
    pytest.importorskip({"postgres": "psycopg", "qdrant": "qdrant_client"}.get(name, name))
    return request.getfixturevalue("server") if name == "postgres" else str(tmp_path / "store")


def n_new(table: pa.Table, expected: vf.Result) -> tuple[int, int]:
    """Return how many vectors and confidences are new; everything else is as it was."""
    table = table.sort_by("id")
    cells = table["embedding"].to_pylist()
    names = table.column_names
    sure = table["sure"].to_pylist() if "sure" in names else [None] * len(cells)
    assert table.select(["id", "title", "x"]).to_pydict() == items().select(
        ["id", "title", "x"]
    ).to_pydict()  # fmt: skip
    vectors = np.array([cells[row] for row in PRESENT_ROWS], np.float32)
    assert vectors.tobytes() == VECTORS[PRESENT_ROWS].tobytes()
    assert all(sure[row] is None for row in PRESENT_ROWS)
    new = [place for place, row in enumerate(MISSING_ROWS) if cells[row] is not None]
    for place in new:
        row = MISSING_ROWS[place]
        vector = np.array(cells[row], np.float32)
        assert vector.tobytes() == expected.embedding.vectors[place].tobytes()
        assert sure[row] == expected.confidence.values[place], "a vector without its confidence"
    return len(new), sum(value is not None for value in sure)


@pytest.mark.parametrize("name", list(STORES))
def test_a_store_whose_writer_is_killed_has_old_or_new_rows(
    name, where, in_process, expected
):  # fmt: skip
    make, fill, read = STORES[name]
    in_process(make, where)
    n_lines = in_process(fill, where)
    assert n_new(read(where), expected) == (len(FILLED), len(FILLED))
    counts = set()
    for moment in np.linspace(1, n_lines - 1, N_KILLS).astype(int):
        in_process(make, where)
        assert in_process(fill, where, int(moment)) == 0
        counts.add(n_new(read(where), expected)[0])
        in_process(fill, where)
        assert n_new(read(where), expected) == (len(FILLED), len(FILLED)), "a second run finishes"
    # Compiled databases commit after the last line that is seen here.
    assert 0 in counts
    if name in KEEPS_ALL_OR_NONE:
        assert counts <= {0, len(FILLED)}
    else:
        assert len(counts) > 2, "some kills left a part of the rows"
