"""Stores while others write: nothing is lost, nothing is half there, and messages are true."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import vecfill as vf
from tests.exchange.test_databases import (  # noqa: F401 - fixtures
    ONE,
    collection,
    duck,
    items,
    lance,
    postgres,
    server,
)
from vecfill.exchange.stores import Store, refuse_changed
from vecfill.testing import Interrupted, check_store

extra = pytest.mark.extra


@dataclass
class Memory(Store):
    """A store of one's own: rows in a dictionary, which a lock would guard."""

    rows: dict
    meanwhile: object
    name = "memory"
    flaw: str = field(default="")

    def read(self, columns):
        self.meanwhile()
        names = dict.fromkeys(name for row in self.rows.values() for name in row)
        return pa.Table.from_pylist(
            [{name: row.get(name) for name in names} for row in self.rows.values()]
        )

    def write(self, cells, columns):
        if self.flaw == "restores":
            saved = {key: dict(row) for key, row in self.rows.items()}
        self.meanwhile()
        keys = cells.keys.to_pylist()
        sure = cells.confidence_cells().to_pylist()
        missing = [key for key in keys if self._is_missing(key, columns)]
        if self.flaw != "overwrites":
            try:
                refuse_changed(len(missing), len(keys), self.name)
            except vf.InputError:
                if self.flaw == "restores":
                    self.rows.clear()
                    self.rows.update(saved)
                raise
        if self.flaw == "checks early":
            self.meanwhile()
        for key, vector, value in zip(keys, cells.vectors.tolist(), sure, strict=True):
            if key in self.rows:
                self.rows[key][columns.vector] = vector
                if self.flaw != "forgets confidence":
                    self.rows[key][columns.confidence] = value

    def _is_missing(self, key, columns):
        return key in self.rows and self.rows[key].get(columns.vector) is None


def memory(flaw=""):
    def place(table, meanwhile):
        rows = {row["id"]: row for row in table.to_pylist()}

        def other(change):
            key = change.cells["id"]
            if change.action == "delete":
                del rows[key]
            elif change.action != "fill" or rows[key]["embedding"] is None:
                rows[key] = rows.get(key, {}) | change.cells
                return 1
            return 0

        return Memory(rows, meanwhile, flaw), other

    return place


def test_a_store_of_ones_own_passes():
    check_store(memory())


@pytest.mark.parametrize(
    ("flaw", "why"),
    [
        ("restores", "rows are lost, or come back"),
        ("overwrites", "is lost"),
        ("checks early", "is lost"),
        ("forgets confidence", "without the other"),
    ],
)
def test_what_is_wrong_with_a_store_is_named(flaw, why):
    with pytest.raises(AssertionError, match=why):
        check_store(memory(flaw))


def sql_client(execute, table, is_blocked):
    """Return another client that commits at once; `execute` takes `?` for values."""

    def other(change):
        cells = dict(change.cells)
        key = cells.pop("id")
        if change.action == "insert":
            names, marks = ", ".join(cells), ", ".join("?" * len(cells))
            text = f"INSERT INTO {table} ({names}, id) VALUES ({marks}, ?)"
        elif change.action == "delete":
            text = f"DELETE FROM {table} WHERE id = ?"
        else:
            text = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in cells)} WHERE id = ?"
            text += " AND embedding IS NULL" if change.action == "fill" else ""
        try:
            return execute(text, [*cells.values(), key])
        except is_blocked as error:
            raise TimeoutError from error

    return other


@extra
def test_duckdb_passes():
    duckdb = pytest.importorskip("duckdb")
    from vecfill.exchange.duckdb import DuckDBTable

    def place(table, meanwhile):
        connection = duckdb.connect()
        connection.register("source", table)
        connection.execute("CREATE TABLE items AS SELECT * FROM source")
        connection.unregister("source")
        theirs = connection.cursor()

        def execute(text, values):
            return theirs.execute(text, values).fetchone()[0]

        other = sql_client(execute, "items", duckdb.TransactionException)
        return DuckDBTable(Interrupted(connection, meanwhile), "items"), other

    check_store(place)


@extra
def test_postgres_passes(server):  # noqa: F811
    import psycopg

    from vecfill.exchange.postgres import PostgresTable

    with psycopg.connect(server) as mine, psycopg.connect(server, autocommit=True) as theirs:
        # Who waits for our lock would wait for ever: both clients run in one thread.
        theirs.execute("SET lock_timeout = '5ms'")

        def place(table, meanwhile):
            theirs.execute("DROP TABLE IF EXISTS stored")
            theirs.execute(
                "CREATE TABLE stored (id integer PRIMARY KEY, x double precision, "
                "y double precision, z double precision, embedding real[])"
            )
            with theirs.cursor() as cursor:
                rows = [list(row.values()) for row in table.to_pylist()]
                cursor.executemany("INSERT INTO stored VALUES (%s, %s, %s, %s, %s)", rows)

            def execute(text, values):
                return theirs.execute(text.replace("?", "%s"), values).rowcount

            other = sql_client(execute, "stored", psycopg.errors.LockNotAvailable)
            return PostgresTable(Interrupted(mine, meanwhile), "stored"), other

        check_store(place)


@extra
def test_lancedb_passes(tmp_path):
    lancedb = pytest.importorskip("lancedb")
    from vecfill.exchange.lancedb import LanceDBTable

    def place(table, meanwhile):
        database = lancedb.connect(tmp_path)
        mine = database.create_table("items", table, mode="overwrite")
        theirs = lancedb.connect(tmp_path).open_table("items")

        def other(change):
            theirs.checkout_latest()
            key = change.cells["id"]
            if change.action == "delete":
                theirs.delete(f"id = {key}")
            elif change.action == "insert":
                theirs.add(pa.Table.from_pylist([change.cells], theirs.schema))
            else:
                cells = {name: value for name, value in change.cells.items() if name != "id"}
                where = f"id = {key}"
                where += " AND embedding IS NULL" if change.action == "fill" else ""
                return theirs.update(where=where, values=cells).rows_updated
            return None

        return LanceDBTable(Interrupted(mine, meanwhile)), other

    check_store(place)


@extra
def test_qdrant_passes():
    qdrant = pytest.importorskip("qdrant_client")
    from vecfill.exchange.qdrant import QdrantCollection

    models = qdrant.models

    def point(row):
        cells = dict(row)
        key, vector = cells.pop("id"), cells.pop("embedding")
        vectors = {} if vector is None else {"embedding": vector}
        return models.PointStruct(id=key, payload=cells, vector=vectors)

    def place(table, meanwhile):
        client = qdrant.QdrantClient(":memory:")
        n_dims = table.schema.field("embedding").type.list_size
        size = models.VectorParams(size=n_dims, distance=models.Distance.DOT)
        client.create_collection("items", vectors_config={"embedding": size})
        client.upsert("items", [point(row) for row in table.to_pylist()])

        def other(change):
            key = change.cells["id"]
            if change.action == "delete":
                client.delete("items", [key])
            elif change.action == "insert":
                client.upsert("items", [point(change.cells)])
            elif "embedding" in change.cells:
                found = client.retrieve("items", [key], with_vectors=True)
                if change.action == "fill" and (not found or found[0].vector):
                    return 0
                vectors = [
                    models.PointVectors(id=key, vector={"embedding": change.cells["embedding"]})
                ]
                client.update_vectors("items", vectors)
                return 1
            else:
                payload = {name: value for name, value in change.cells.items() if name != "id"}
                client.set_payload("items", payload, points=[key])
            return None

        return QdrantCollection(Interrupted(client, meanwhile), "items"), other

    check_store(place)


@extra
def test_lancedb_keeps_what_a_stale_handle_does_not_see(lance, tmp_path):  # noqa: F811
    import lancedb

    theirs = lancedb.connect(tmp_path).open_table("items")

    def tell(what, *_):
        if what == "Imputing" and theirs.count_rows() == 60:
            theirs.update(where="id = 1000", values={"embedding": [9.0] * 6})
            theirs.add(items().slice(1, 1).set_column(1, "id", pa.array([5], pa.int32())))

    with pytest.raises(vf.InputError, match="Nothing was written"):
        vf.fill_lancedb(lance, **ONE, progress=tell)
    rows = {row["id"]: row["embedding"] for row in lance.to_arrow().to_pylist()}
    assert rows[1000] == [9.0] * 6
    assert len(rows) == 61
    assert len(vf.fill_lancedb(lance, **ONE)) == 14


# Errors of drivers reach the user as ours


@extra
def test_duckdb_makes_no_file(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "nope.duckdb"
    with pytest.raises(vf.InputError, match="there is no such file"):
        vf.fill_duckdb(path, "items", **ONE)
    assert not path.exists()
    path.write_text("no database")
    with pytest.raises(vf.InputError, match="table 'items' cannot be opened"):
        vf.fill_duckdb(str(path), "items", **ONE)


@extra
def test_duckdb_says_what_is_wrong(duck):  # noqa: F811
    import duckdb

    with pytest.raises(vf.InputError, match="there is no table 'nope'"):
        vf.fill_duckdb(duck, "nope", **ONE)
    with pytest.raises(vf.InputError, match="type int is not a DuckDB connection"):
        vf.fill_duckdb(5, "items", **ONE)
    duck.execute("CREATE TABLE counted AS SELECT *, 1 AS sure FROM items")
    with pytest.raises(vf.InputError, match="'sure' holds values of type int32"):
        vf.fill_duckdb(duck, "counted", **ONE, confidence="sure")
    duck.execute("CREATE VIEW seen AS SELECT * FROM items")
    with pytest.raises(vf.InputError, match=r"table 'seen' was not changed.* 'embedding'"):
        vf.fill_duckdb(duck, "seen", **ONE)
    nested = "SELECT * REPLACE ([embedding::FLOAT[]] AS embedding) FROM items"
    duck.execute(f"CREATE TABLE nested AS {nested}")
    with pytest.raises(vf.InputError, match="table 'nested', column 'embedding' holds values of"):
        vf.fill_duckdb(duck, "nested", **ONE)
    duck.execute("CREATE TABLE short AS SELECT * FROM items")
    duck.execute("ALTER TABLE short ALTER embedding TYPE FLOAT[]")
    duck.execute("UPDATE short SET embedding = [1] WHERE id = 1003")
    short = r"table 'short', column 'embedding', row \d+ \(entity '1003'\) has 1 numbers"
    with pytest.raises(vf.InputError, match=short):
        vf.fill_duckdb(duck, "short", **ONE)
    closed = duckdb.connect()
    closed.close()
    with pytest.raises(vf.InputError, match="the connection is closed"):
        vf.fill_duckdb(closed, "items", **ONE)


@extra
def test_a_name_with_a_dot_is_a_table_or_a_schema(duck):  # noqa: F811
    from vecfill.exchange.duckdb import DuckDBTable

    duck.execute('CREATE TABLE "a.b" AS SELECT * FROM items')
    assert len(vf.fill(DuckDBTable(duck, "a.b"), **ONE)) == 15
    duck.execute("CREATE SCHEMA a")
    duck.execute("CREATE TABLE a.b AS SELECT * FROM items")
    with pytest.raises(vf.InputError, match=re.escape('Pass one of "a"."b" and "a.b"')):
        vf.fill_duckdb(duck, "a.b", **ONE)
    assert len(vf.fill_duckdb(duck, '"a"."b"', **ONE)) == 15


@extra
def test_a_view_that_the_user_registered_stays(duck):  # noqa: F811
    duck.register("vecfill_new_vectors", pa.table({"x": [1]}))
    assert len(vf.fill_duckdb(duck, "items", **ONE)) == 15
    assert duck.sql("SELECT x FROM vecfill_new_vectors").fetchall() == [(1,)]


@extra
def test_postgres_says_what_is_wrong(server, postgres):  # noqa: F811
    import psycopg

    with postgres.transaction():
        postgres.execute("CREATE TEMPORARY TABLE vecfill_new (x integer)")
        postgres.execute('DROP TABLE IF EXISTS "a.b"')
        postgres.execute('CREATE TABLE "a.b" AS SELECT * FROM items')
        postgres.execute("DROP TABLE IF EXISTS counted")
        postgres.execute("CREATE TABLE counted AS SELECT *, NULL::integer AS sure FROM items")
    assert len(vf.fill_postgres(postgres, "a.b", **ONE)) == 15
    with pytest.raises(vf.InputError, match="'sure' holds values of type int64"):
        vf.fill_postgres(postgres, "counted", **ONE, confidence="sure")
    with pytest.raises(vf.InputError, match="there is no table 'nope'"):
        vf.fill_postgres(postgres, "nope", **ONE)
    with pytest.raises(vf.InputError, match="type int is not a psycopg connection"):
        vf.fill_postgres(5, "items", **ONE)
    with postgres.transaction():
        postgres.execute("UPDATE items SET embedding = '{{1,2},{3,4}}' WHERE id = 1003")
    with pytest.raises(
        vf.InputError, match=r"table 'items', column 'embedding', row \d+ \(key 1003\) holds \[\[1"
    ):
        vf.fill_postgres(postgres, "items", **ONE)
    closed = psycopg.connect(server)
    closed.close()
    with pytest.raises(vf.InputError, match="the connection is closed"):
        vf.fill_postgres(closed, "items", **ONE)
    with pytest.raises(vf.InputError, match="table 'items' cannot be opened"):
        vf.fill_postgres("host=/nowhere/at/all", "items", **ONE)


@extra
def test_qdrant_keeps_a_vector_that_came_while_it_wrote(monkeypatch):
    from vecfill.exchange import qdrant as module

    client = collection()
    monkeypatch.setattr(module, "_BATCH", 10)
    update, calls = client.update_vectors, []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            foreign = module.library("qdrant_client.models", extra="qdrant").PointVectors(
                id=1000, vector={"embedding": [9.0] * 6}
            )
            update("items", [foreign])
            raise ValueError("the line went dead")
        return update(*args, **options)

    monkeypatch.setattr(client, "update_vectors", interrupted)
    with pytest.raises(vf.InputError, match="was not changed"):
        vf.fill_qdrant(client, "items", vector="embedding", confidence="sure")
    points, _ = client.scroll("items", limit=100, with_vectors=True)
    vectors = {point.id: (point.vector or {}).get("embedding") for point in points}
    assert vectors[1000] == [9.0] * 6
    assert sum(vector is None for vector in vectors.values()) == 14


@extra
def test_qdrant_refuses_a_collection_that_is_not_there():
    with pytest.raises(vf.InputError, match="collection 'nope' cannot be read"):
        vf.fill_qdrant(collection(), "nope", vector="embedding")


def test_only_a_store_is_filled():
    with pytest.raises(vf.InputError, match="type str is not a store"):
        vf.fill("items", **ONE)
    with pytest.raises(vf.OptionError, match="Did you mean key"):
        vf.fill(memory()(pa.table({"id": [1]}), lambda: None)[0], kye="id")


def test_a_store_that_cannot_be_read_is_named():
    class Broken(Memory):
        def errors(self):
            return (KeyError,)

        def read(self, columns):
            raise KeyError("gone")

    with pytest.raises(vf.InputError, match="memory cannot be read: 'gone'"):
        vf.fill(Broken({}, None), **ONE)


@extra
def test_an_older_qdrant_keeps_a_vector_that_came_before_we_write(monkeypatch):
    client = collection()
    models = pytest.importorskip("qdrant_client.models")
    update = client.update_vectors

    def without_condition(*args, update_filter, **options):
        return update(*args, **options)  # as a server before 1.16 does, which does not know it

    monkeypatch.setattr(client, "update_vectors", without_condition)

    def tell(what, *_):
        if what == "Imputing":
            update("items", [models.PointVectors(id=1000, vector={"embedding": [9.0] * 6})])

    with pytest.raises(vf.InputError, match="Nothing was written"):
        vf.fill_qdrant(client, "items", vector="embedding", progress=tell)
    points, _ = client.scroll("items", limit=100, with_vectors=True)
    vectors = {point.id: (point.vector or {}).get("embedding") for point in points}
    assert vectors[1000] == [9.0] * 6
    assert sum(vector is None for vector in vectors.values()) == 14
