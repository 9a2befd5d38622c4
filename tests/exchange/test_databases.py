"""Databases: only what is missing is written, all of it or nothing, and a second run is idle."""

from __future__ import annotations

import glob
import os
import pwd
import subprocess
import tempfile
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import vecfill as vf
from tests.exchange.world import MISSING_ROWS, N_DIMS, N_TOWNS, PRESENT_ROWS, VECTORS, items
from vecfill.exchange import stores

pytestmark = pytest.mark.extra
ONE = {"vector": "embedding", "key": "id"}
FILLED = tuple(1000 + row for row in MISSING_ROWS)
OTHERS = ["title", "id", "x", "y", "z"]


@pytest.fixture(scope="module")
def expected():
    return vf.impute(items(), **ONE)


def check_filled(table, expected):
    """Known vectors keep their bits, missing ones are those of `impute`, the rest is untouched."""
    table = table.sort_by("id")
    vectors = np.array(table["embedding"].to_pylist(), np.float32)
    assert vectors[PRESENT_ROWS].tobytes() == VECTORS[PRESENT_ROWS].tobytes()
    assert vectors[MISSING_ROWS].tobytes() == expected.embedding.vectors.tobytes()
    assert table.select(OTHERS).to_pydict() == items().select(OTHERS).to_pydict()


def check_confidence(table, expected):
    sure = table.sort_by("id")["sure"].to_pylist()
    assert [sure[row] for row in MISSING_ROWS] == expected.confidence.values.tolist()
    assert all(sure[row] is None for row in PRESENT_ROWS)


def failing(*_):
    raise ConnectionError("the line went dead")


# DuckDB


@pytest.fixture
def duck():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("given", items())
        connection.execute("CREATE TABLE items AS SELECT * FROM given")
        connection.unregister("given")
        yield connection


def all_of(connection, name="items"):
    return connection.sql(f"SELECT * FROM {name}").to_arrow_table()


@pytest.mark.parametrize("kind", ["FLOAT[6]", "FLOAT[]"])
def test_duckdb_is_filled_and_a_second_run_is_idle(duck, expected, kind):
    from vecfill.exchange.duckdb import fill_duckdb

    duck.execute(f"ALTER TABLE items ALTER embedding TYPE {kind}")
    done = fill_duckdb(duck, "main.items", **ONE, confidence="sure")
    assert done.keys == FILLED
    check_filled(all_of(duck), expected)
    check_confidence(all_of(duck), expected)
    before = all_of(duck)
    again = fill_duckdb(duck, "items", **ONE, confidence="sure")
    assert again.result is None
    assert len(again) == 0
    assert all_of(duck).equals(before)


def test_duckdb_takes_a_path(tmp_path, expected):
    duckdb = pytest.importorskip("duckdb")
    from vecfill.exchange.duckdb import fill_duckdb

    with duckdb.connect(tmp_path / "shop.db") as connection:
        connection.register("given", items())
        connection.execute("CREATE TABLE items AS SELECT * FROM given")
    assert fill_duckdb(tmp_path / "shop.db", "items", **ONE).keys == FILLED
    with duckdb.connect(tmp_path / "shop.db") as connection:
        check_filled(all_of(connection), expected)


def test_duckdb_is_as_it_was_after_a_failure_half_way(duck, monkeypatch):
    from vecfill.exchange import duckdb as module

    before = all_of(duck)
    monkeypatch.setattr(stores, "refuse_changed", failing)
    with pytest.raises(ConnectionError, match="the line went dead"):
        module.fill_duckdb(duck, "items", **ONE, confidence="sure")
    assert all_of(duck).equals(before)
    monkeypatch.undo()
    assert module.fill_duckdb(duck, "items", **ONE).keys == FILLED


def changed_meanwhile(change):
    """Return a progress function that changes the store once, while vectors are being imputed."""
    done = []

    def tell(what, *_):
        if what == "Imputing" and not done:
            done.append(what)
            change()

    return tell


def test_duckdb_refuses_a_vector_that_came_meanwhile_and_an_open_transaction(duck):
    from vecfill.exchange.duckdb import fill_duckdb

    other = "UPDATE items SET embedding = [9, 9, 9, 9, 9, 9] WHERE id = 1000"
    tell = changed_meanwhile(lambda: duck.execute(other))
    with pytest.raises(vf.InputError, match=r"items' changed meanwhile. .* read: 15; .* these: 14"):
        fill_duckdb(duck, "items", **ONE, progress=tell)
    table = all_of(duck).sort_by("id")
    assert table["embedding"].null_count == len(MISSING_ROWS) - 1
    assert table["embedding"][0].as_py() == [9.0] * N_DIMS
    duck.execute("BEGIN TRANSACTION")
    with pytest.raises(vf.InputError, match="has a transaction open"):
        fill_duckdb(duck, "items", **ONE)


def test_names_that_need_quotes_are_quoted(expected):
    duckdb = pytest.importorskip("duckdb")
    from vecfill.exchange.duckdb import fill_duckdb

    with duckdb.connect() as connection:
        connection.register("given", items().rename_columns([*OTHERS[:2], "x", 'a."b"', "y", "z"]))
        connection.execute('CREATE TABLE "order" AS SELECT * FROM given')
        assert fill_duckdb(connection, "order", key="id", vector='a."b"').keys == FILLED


# LanceDB


@pytest.fixture
def lance(tmp_path):
    lancedb = pytest.importorskip("lancedb")
    return lancedb.connect(tmp_path).create_table("items", items())


def test_lancedb_is_filled_and_a_second_run_is_idle(lance, expected):
    from vecfill.exchange.lancedb import fill_lancedb

    assert fill_lancedb(lance, **ONE, confidence="sure").keys == FILLED
    check_filled(lance.to_arrow(), expected)
    check_confidence(lance.to_arrow(), expected)
    version = lance.version
    assert fill_lancedb(lance, **ONE, confidence="sure").result is None
    assert lance.version == version


def test_new_vectors_are_found_by_lancedb_itself(lance, expected):
    from vecfill.exchange.lancedb import fill_lancedb

    fill_lancedb(lance, **ONE)
    query = np.array(expected.embedding["1000"])
    found = lance.search(query, vector_column_name="embedding").limit(1).to_list()
    assert found[0]["id"] == 1000


def test_lancedb_is_as_it_was_after_a_failure_half_way(lance, monkeypatch):
    from vecfill.exchange.lancedb import LanceDBTable, fill_lancedb

    before = lance.to_arrow()
    # The column of confidences is a commit of its own, and goes again.
    monkeypatch.setattr(LanceDBTable, "_merge", failing)
    with pytest.raises(vf.InputError, match=r"table 'items' was not changed.*line went dead"):
        fill_lancedb(lance, **ONE, confidence="sure")
    assert lance.to_arrow().sort_by("id").equals(before.sort_by("id"))
    monkeypatch.undo()
    assert fill_lancedb(lance, **ONE).keys == FILLED


def test_what_is_no_lancedb_table_is_refused():
    pytest.importorskip("lancedb")
    from vecfill.exchange.lancedb import fill_lancedb

    with pytest.raises(vf.InputError, match="type str is not a LanceDB table"):
        fill_lancedb("items", **ONE)


# Qdrant


def collection(ids=None, distance="Dot"):
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(":memory:")
    models = qdrant.models
    size = models.VectorParams(size=N_DIMS, distance=models.Distance[distance.upper()])
    client.create_collection("items", vectors_config={"embedding": size})
    points = [
        models.PointStruct(
            id=row["id"] if ids is None else ids[place],
            payload={name: row[name] for name in ("title", "x", "y", "z")},
            vector={} if row["embedding"] is None else {"embedding": row["embedding"]},
        )
        for place, row in enumerate(items().to_pylist())
    ]
    client.upsert("items", points)
    return client


def points_of(client):
    found, _ = client.scroll("items", limit=1000, with_vectors=True, with_payload=True)
    rows = [
        {"id": each.id, "embedding": (each.vector or {}).get("embedding"), **each.payload}
        for each in found
    ]
    return pa.Table.from_pylist(rows)


def test_qdrant_is_filled_and_a_second_run_is_idle(expected):
    from vecfill.exchange.qdrant import fill_qdrant

    client = collection()
    done = fill_qdrant(client, "items", vector="embedding", confidence="sure")
    assert done.keys == FILLED
    vectors = np.array(points_of(client).sort_by("id")["embedding"].to_pylist(), np.float32)
    assert vectors[PRESENT_ROWS].tobytes() == VECTORS[PRESENT_ROWS].tobytes()
    assert vectors[MISSING_ROWS].tobytes() == expected.embedding.vectors.tobytes()
    found = client.query_points("items", query=vectors[0].tolist(), using="embedding", limit=60)
    scores = vectors @ vectors[0]
    assert [each.id for each in found.points] == (1000 + np.argsort(-scores)).tolist()
    noted, _ = client.scroll("items", limit=1000)
    assert sum("sure" in each.payload for each in noted) == len(MISSING_ROWS)
    before = points_of(client)
    assert fill_qdrant(client, "items", vector="embedding", confidence="sure").result is None
    assert points_of(client).equals(before)


def test_qdrant_takes_uuids_for_ids():
    from vecfill.exchange.qdrant import fill_qdrant

    ids = [str(uuid.UUID(int=row)) for row in range(N_TOWNS)]
    done = fill_qdrant(collection(ids), "items", vector="embedding")
    assert set(done.keys) == {ids[row] for row in MISSING_ROWS}


@pytest.mark.parametrize("where", ["update_vectors", "batch_update_points"])
def test_qdrant_is_as_it_was_after_a_failure_half_way(monkeypatch, where):
    from vecfill.exchange import qdrant as module

    client = collection()
    before = points_of(client)
    real, calls = getattr(client, where), []

    def some(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            failing()
        return real(*args, **options)

    monkeypatch.setattr(module, "_BATCH", 10)
    monkeypatch.setattr(client, where, some)
    with pytest.raises(vf.InputError, match=r"collection 'items' was not changed.*line went dead"):
        module.fill_qdrant(client, "items", vector="embedding", confidence="sure")
    assert len(calls) == 2
    assert points_of(client).equals(before)


def test_qdrant_refuses_what_it_cannot_fill():
    from vecfill.exchange.qdrant import fill_qdrant

    client = collection()
    with pytest.raises(vf.InputError, match=r"no vector 'v' .* it has the vectors 'embedding'"):
        fill_qdrant(client, "items", vector="v")
    with pytest.raises(vf.InputError, match="the key of a point is its id"):
        fill_qdrant(client, "items", vector="embedding", key="title")
    with pytest.raises(vf.InputError, match="type str is not a QdrantClient"):
        fill_qdrant("here", "items", vector="embedding")


# PostgreSQL


def server_user():
    """Return whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="module")
def server():
    """Start a server in a folder of its own, which nobody else can reach; stop it afterwards."""
    pytest.importorskip("psycopg")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))  # noqa: PTH207
    if not found:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    tools, user = Path(found[-1]).parent, server_user()
    with tempfile.TemporaryDirectory(prefix="vfpg") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

        def run(*words):
            subprocess.run(
                [str(tools / words[0]), *words[1:]],
                check=True, user=user, cwd=folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

        data = str(folder / "data")
        run("initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8")
        # A socket in the folder instead of a port: no other program can hold it.
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"host={folder} user=tester dbname=postgres"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def make_table(connection, kind="real[]"):
    with connection.transaction():
        connection.execute("DROP TABLE IF EXISTS items")
        connection.execute(
            "CREATE TABLE items (title text, id integer PRIMARY KEY, x double precision, "
            f"embedding {kind}, y double precision, z double precision)"
        )
        columns = ("title", "id", "x", "embedding", "y", "z")
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO items VALUES (%s, %s, %s, %s, %s, %s)",
                [[row[name] for name in columns] for row in items().to_pylist()],
            )


@pytest.fixture
def postgres(server):
    import psycopg

    with psycopg.connect(server) as connection:
        make_table(connection)
        yield connection


def rows_of(connection, name="items"):
    """Read in a transaction that ends, so that the next call finds none open."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {name} ORDER BY 2")
        names = [column.name for column in cursor.description]
        return pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        )


@pytest.mark.parametrize("kind", ["real[]", "double precision[]"])
def test_postgres_is_filled_and_a_second_run_is_idle(postgres, expected, kind):
    from vecfill.exchange.postgres import fill_postgres

    make_table(postgres, kind)
    done = fill_postgres(postgres, "public.items", **ONE, confidence="sure")
    assert done.keys == FILLED
    table = rows_of(postgres)
    if kind == "real[]":
        check_filled(table, expected)
        check_confidence(table, expected)
    else:
        assert table["embedding"].null_count == 0
    assert fill_postgres(postgres, "items", **ONE, confidence="sure").result is None
    assert rows_of(postgres).equals(table)


def test_postgres_takes_a_connection_string_and_commits(server, postgres, expected):
    from vecfill.exchange.postgres import fill_postgres

    postgres.commit()
    assert fill_postgres(server, "items", **ONE).keys == FILLED
    check_filled(rows_of(postgres), expected)


def test_postgres_is_as_it_was_after_a_failure_half_way(postgres, monkeypatch):
    from vecfill.exchange import postgres as module

    before = rows_of(postgres)
    monkeypatch.setattr(stores, "refuse_changed", failing)
    with pytest.raises(ConnectionError, match="the line went dead"):
        module.fill_postgres(postgres, "items", **ONE, confidence="sure")
    assert rows_of(postgres).equals(before)
    monkeypatch.undo()
    assert module.fill_postgres(postgres, "items", **ONE).keys == FILLED


def test_postgres_refuses_a_vector_that_came_meanwhile_and_an_open_transaction(server, postgres):
    import psycopg

    from vecfill.exchange.postgres import fill_postgres

    def change():
        with psycopg.connect(server) as other:
            other.execute("UPDATE items SET embedding = '{9,9,9,9,9,9}' WHERE id = 1000")

    with pytest.raises(vf.InputError, match="items' changed meanwhile"):
        fill_postgres(postgres, "items", **ONE, progress=changed_meanwhile(change))
    table = rows_of(postgres)
    assert table["embedding"].null_count == len(MISSING_ROWS) - 1
    assert table["embedding"][0].as_py() == [9.0] * N_DIMS
    postgres.execute("SELECT 1")
    with pytest.raises(vf.InputError, match="has a transaction open"):
        fill_postgres(postgres, "items", **ONE)


def test_postgres_takes_uuids_for_keys(postgres):
    from vecfill.exchange.postgres import fill_postgres

    with postgres.transaction():
        postgres.execute("ALTER TABLE items ADD COLUMN code uuid")
        postgres.execute("UPDATE items SET code = lpad(id::text, 32, '0')::uuid")
    done = fill_postgres(postgres, "items", key="code", vector="embedding", ignore=["id"])
    assert set(done.keys) == {str(uuid.UUID(f"{key:032d}")) for key in FILLED}


def test_key_and_vector_must_be_named():
    pytest.importorskip("duckdb")
    import duckdb

    from vecfill.exchange.duckdb import fill_duckdb

    with duckdb.connect() as connection, pytest.raises(vf.InputError, match="key= and vector="):
        fill_duckdb(connection, "items", vector="v")
