"""Trino, as it comes from its authors, works through the catalog; others see what it did.

It needs a newer Java than Debian 12 has (tools/fetch_trino.py says where it looks). After each step
the rows of a table are read by Trino, by `tarn sql` and by PyIceberg, and must be the same.
"""

import base64
import json
import uuid

import pytest

from iceberg_server import Server  # First: it knows where the next two lie.
from changes import Changes
from engine_world import PIPELINE, EngineWorld, history_of, ordered
from server import CommandFailed, follow, tasks_of, wait_for
from trino_engine import Trino, TrinoError


class World(EngineWorld):
    """What Trino needs beyond reading."""

    def make_schema(self, name):
        self.sql(f'CREATE SCHEMA "{name}"')


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("trino")
    with Server(root / "home", {"TARN_CATALOG_NAME": "tarn"}) as server:
        trino = Trino(root / "node", server.url + "/iceberg", server.token())
        try:
            yield World(server, trino)
        finally:
            trino.close()


@pytest.fixture()
def space(world):
    name = f"n{uuid.uuid4().hex[:12]}"
    world.make_schema(name)
    return name


def filled(world, name, rows=10, options=""):
    """A table (id, name, kind) with rows 0, 1, …"""
    world.sql(f"CREATE TABLE {name} (id BIGINT, name VARCHAR, kind INTEGER) {options}")
    if rows:
        world.sql(f"INSERT INTO {name} SELECT i, 'n' || CAST(i AS VARCHAR), CAST(i % 3 AS INTEGER) "
                  f"FROM UNNEST(sequence(0, {rows - 1})) AS t(i)")
    return [(i, f"n{i}", i % 3) for i in range(rows)]


def test_schemas_and_tables(world, space):
    assert (space,) in world.values("SHOW SCHEMAS")
    with pytest.raises(TrinoError, match="(?i)already exists"):
        world.sql(f"CREATE SCHEMA {space}")
    where = f"file://{world.server.home}/warehouse/tables"
    world.sql(f"CREATE SCHEMA {space}_placed WITH (location = '{where}')")
    world.sql(f"CREATE TABLE {space}_placed.t AS SELECT 1 AS id")
    world.check(f"{space}_placed.t", [(1,)])
    world.make_schema(f"{space}.inner")
    world.sql(f'CREATE TABLE "{space}.inner".t AS SELECT 1 AS x')
    assert world.values(f'SELECT * FROM "{space}.inner".t') == [(1,)]
    assert world.catalog.list_tables((space, "inner")) == [(space, "inner", "t")]
    rows = filled(world, f"{space}.t")
    world.sql(f"CREATE TABLE {space}.made AS SELECT * FROM {space}.t WHERE id < 3")
    world.check(f"{space}.made", rows[:3])
    with pytest.raises(TrinoError, match="already exists"):
        world.sql(f"CREATE TABLE {space}.made (x INTEGER)")
    world.sql(f"ALTER TABLE {space}.made RENAME TO {space}.other")
    assert world.values(f"SHOW TABLES FROM {space}") == [("other",), ("t",)]
    world.sql(f"CREATE OR REPLACE TABLE {space}.other AS SELECT id + 100 AS id FROM {space}.t")
    world.check(f"{space}.other", [(100 + i,) for i in range(10)])
    world.sql(f"COMMENT ON TABLE {space}.other IS 'said'")
    assert world.catalog.load_table(f"{space}.other").properties["comment"] == "said"
    with pytest.raises(TrinoError):
        world.sql(f"CREATE TABLE {space}.broken AS SELECT 1 / (id - id) AS x FROM {space}.t")
    assert not world.catalog.table_exists(f"{space}.broken")
    with pytest.raises(TrinoError, match="(?i)non-empty"):
        world.sql(f"DROP SCHEMA {space}")
    world.sql(f"DROP TABLE {space}.other")
    assert not world.catalog.table_exists(f"{space}.other")
    world.sql(f'DROP TABLE "{space}.inner".t')
    world.sql(f'DROP SCHEMA "{space}.inner"')


def test_every_type(world, space):
    world.sql(f"""CREATE TABLE {space}.t (id BIGINT, flag BOOLEAN, small INTEGER, single REAL,
      double DOUBLE, amount DECIMAL(20, 3), day DATE, clock TIME(6), instant TIMESTAMP(6) WITH TIME
      ZONE, local TIMESTAMP(6), text VARCHAR, bytes VARBINARY, id16 UUID, list ARRAY(ROW(x BIGINT)),
      map MAP(VARCHAR, ARRAY(INTEGER)), place ROW(city VARCHAR, spot ROW(lat DOUBLE)))""")
    world.sql(f"""INSERT INTO {space}.t VALUES (1, true, -2147483648, REAL '0.5', -2.5e300,
      DECIMAL '12345678901234567.125', DATE '1583-01-01', TIME '01:02:03.000004',
      TIMESTAMP '1969-12-31 23:59:59.999999 UTC', TIMESTAMP '2026-02-28 01:02:03.000004', 'ä"''',
      X'00ff', UUID '12345678-1234-5678-1234-567812345678', ARRAY[ROW(1), NULL, ROW(NULL)],
      MAP(ARRAY['k'], ARRAY[ARRAY[1, NULL]]), ROW('c', ROW(1.5e0)))""")
    world.sql(f"INSERT INTO {space}.t (id) VALUES (2)")
    query = ("SELECT id, flag, small, single, double, CAST(amount AS VARCHAR) AS amount, "
             "CAST(day AS VARCHAR) AS day, CAST(clock AS VARCHAR) AS clock, CAST(local AS VARCHAR) "
             "AS local, text, CAST(id16 AS VARCHAR) AS id16, list[1].x AS x, map['k'] AS k, "
             f"place.spot.lat AS lat FROM {space}.t ORDER BY id")
    ours = world.server.sql(query)
    assert ours == world.sql(query)
    assert (ours[0]["amount"], ours[0]["clock"], ours[0]["k"]) == (
        "12345678901234567.125", "01:02:03.000004", [1, None])
    read = world.catalog.load_table(f"{space}.t").scan().to_arrow().sort_by("id").to_pylist()
    assert read[0]["bytes"] == b"\0\xff" == base64.b64decode(
        world.values(f"SELECT bytes FROM {space}.t WHERE id = 1")[0][0])
    assert world.server.sql(f"SELECT epoch_us(instant) AS us FROM {space}.t WHERE id = 1") == [
        {"us": -1}]
    world.server.json("sql", f"INSERT INTO {space}.t SELECT * REPLACE (id + 10 AS id) "
                             f"FROM {space}.t")
    again = {row["id"]: row for row in world.sql(f"SELECT * FROM {space}.t")}
    assert {**again[11], "id": 1} == again[1] and {**again[12], "id": 2} == again[2]


def test_partitions_by_every_transform(world, space):
    for number, transform in enumerate(("kind", "bucket(id, 4)", "bucket(name, 3)",
                                        "truncate(name, 2)", "truncate(id, 10)", "year(day)",
                                        "month(day)", "day(moment)", "hour(moment)")):
        name = f"{space}.t{number}"
        world.sql(f"CREATE TABLE {name} (id BIGINT, name VARCHAR, kind INTEGER, day DATE, "
                  f"moment TIMESTAMP(6)) WITH (partitioning = ARRAY['{transform}'])")
        world.sql(f"""INSERT INTO {name} VALUES
          (-5, 'alpha', 1, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:30:00'),
          (15, 'alps', 2, DATE '2026-01-31', TIMESTAMP '2026-01-31 00:00:00'),
          (16, NULL, NULL, NULL, NULL)""")
        world.server.json("sql", f"INSERT INTO {name} SELECT * FROM {name}")
        for condition in ("id = -5", "name = 'alps'", "kind = 2", "day = DATE '1969-12-31'",
                          "moment < TIMESTAMP '1970-01-01 00:00:00'", "name IS NULL"):
            query = f"SELECT id FROM {name} WHERE {condition}"
            ours = [tuple(row.values()) for row in world.server.sql(query)]
            assert ours == world.values(query) and len(ours) == 2, (transform, condition)
        namespace, table = name.split(".")
        counts = world.values(f'SELECT record_count FROM {namespace}."{table}$partitions"')
        assert all(count % 2 == 0 for count, in counts), transform
        world.sql(f"DELETE FROM {name} WHERE name = 'alpha'")
        assert world.values(f"SELECT DISTINCT id FROM {name} ORDER BY id") == [(15,), (16,)]


@pytest.mark.parametrize("partition", ["", "WITH (partitioning = ARRAY['bucket(id, 2)'])"],
                         ids=["plain", "partitioned"])
def test_delete_update_and_merge(world, space, partition):
    name = f"{space}.t"
    rows = filled(world, name, 20, partition)
    world.sql(f"DELETE FROM {name} WHERE id IN (3, 4, 15)")
    rows = [row for row in rows if row[0] not in (3, 4, 15)]
    world.check(name, rows)
    world.sql(f"UPDATE {name} SET name = 'changed', kind = kind + 10 WHERE id IN (5, 6)")
    rows = [(i, "changed", k + 10) if i in (5, 6) else (i, n, k) for i, n, k in rows]
    world.check(name, rows)
    world.sql(f"""MERGE INTO {name} t USING (VALUES (8, 'gone'), (10, 'ten'), (30, 'new'))
      AS s(id, name) ON t.id = s.id
      WHEN MATCHED AND s.name = 'gone' THEN DELETE
      WHEN MATCHED THEN UPDATE SET name = s.name
      WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)""")
    rows = [(10, "ten", k) if i == 10 else (i, n, k) for i, n, k in rows if i != 8]
    assert len(world.check(name)) == len(rows) + 1
    world.sql(f"DELETE FROM {name} WHERE kind IS NULL")
    world.server.json("sql", f"DELETE FROM {name} WHERE id IN (0, 13)")
    rows = [row for row in rows if row[0] not in (0, 13)]
    world.check(name, rows)
    world.sql(f"DELETE FROM {name} WHERE id = 1")
    rows = [row for row in rows if row[0] != 1]
    world.check(name, rows)
    world.server.json("table", "compact", name)
    world.check(name, rows)
    world.sql(f"ALTER TABLE {name} EXECUTE optimize")
    world.check(name, rows)
    world.sql(f"TRUNCATE TABLE {name}")
    world.check(name, [])


def test_schema_evolution(world, space):
    name = f"{space}.t"
    world.sql(f"CREATE TABLE {name} (id INTEGER, a VARCHAR, s ROW(x INTEGER, y VARCHAR))")
    world.sql(f"INSERT INTO {name} VALUES (1, 'one', ROW(1, 'why'))")
    for change in ("ADD COLUMN b BIGINT", "RENAME COLUMN a TO label",
                   "ALTER COLUMN id SET DATA TYPE BIGINT", "ADD COLUMN s.z DOUBLE",
                   "RENAME COLUMN s.x TO ex", "DROP COLUMN s.y",
                   "SET PROPERTIES partitioning = ARRAY['bucket(id, 4)']"):
        world.sql(f"ALTER TABLE {name} {change}")
    world.sql(f"INSERT INTO {name} VALUES (5000000000, 'two', ROW(3, 2.5e0), 7)")
    query = f"SELECT id, label, s.ex AS ex, s.z AS z, b FROM {name} ORDER BY id"
    ours = world.server.sql(query)
    assert ours == world.sql(query)
    assert [tuple(row.values()) for row in ours] == [
        (1, "one", 1, None, None), (5000000000, "two", 3, 2.5, 7)]


def test_time_travel_and_upkeep(world, space):
    name = f"{space}.t"
    rows = filled(world, name, 3)
    first = world.catalog.load_table(name).metadata.current_snapshot_id
    world.sql(f"INSERT INTO {name} VALUES (7, 'later', 0)")
    old = world.values(f"SELECT * FROM {name} FOR VERSION AS OF {first} ORDER BY id")
    assert old == rows
    for word, columns in (("snapshots", "snapshot_id, parent_id, operation"),
                          ("refs", "name, type, snapshot_id"),
                          ("files", "file_path, record_count")):
        theirs = ordered(world.sql(f'SELECT {columns} FROM {space}."t${word}"'))
        assert ordered(world.server.sql(f"SELECT {columns} FROM {name}${word}")) == theirs
    world.sql(f"ALTER TABLE {name} EXECUTE rollback_to_snapshot({first})")
    world.check(name, rows)
    world.sql(f"ANALYZE {name}")
    assert world.catalog.load_table(name).metadata.statistics
    world.sql(f"ALTER TABLE {name} EXECUTE optimize_manifests")
    world.sql("SET SESSION tarn.expire_snapshots_min_retention = '0s'")
    world.check(name, rows)


def test_views(world, space):
    filled(world, f"{space}.t")
    world.sql(f"CREATE VIEW {space}.v AS SELECT id, name FROM {space}.t WHERE id < 2")
    assert world.values(f"SELECT * FROM {space}.v ORDER BY id") == [(0, "n0"), (1, "n1")]
    assert world.catalog.list_views(space) == [(space, "v")]
    world.sql(f"CREATE OR REPLACE VIEW {space}.v AS SELECT max(id) AS top FROM {space}.t")
    assert world.values(f"SELECT * FROM {space}.v") == [(9,)]
    world.sql(f"ALTER VIEW {space}.v RENAME TO {space}.w")
    assert world.values(f"SELECT * FROM {space}.w") == [(9,)]
    with pytest.raises(CommandFailed) as refused:
        world.server.sql(f"SELECT * FROM {space}.w")
    assert "no text for the dialect duckdb" in refused.value.errors
    world.sql(f"DROP VIEW {space}.w")
    assert world.catalog.list_views(space) == []


def test_a_pipeline_is_read_while_it_grows(world, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(uri=folder.as_uri()))
    changes = Changes(seed=7, keys=40)
    running = follow(world.server, file)
    millis = "CAST(floor(to_unixtime({0}) * 1000) AS BIGINT)"

    def shown(name):
        return world.server.run("view", "show", name, "--dialect", "trino")

    try:
        for number in range(4):
            staged = tmp_path / "staged"
            staged.write_text("".join(json.dumps(row) + "\n" for row in changes.make(60)))
            staged.rename(folder / f"{number}.jsonl")
            wait_for(lambda: tasks_of(world.server).get("p.orders", {}).get("rows_out")
                     == changes.number, 60)
            if number % 2:
                world.server.run("task", "apply", "p.orders")
                wait_for(lambda: tasks_of(world.server)["p.orders"]["unapplied"] == 0, 60)
                world.check("orders.orders__applied")
            ours = ordered(world.server.sql("SELECT * FROM orders.orders"))
            assert ordered(world.sql("SELECT * FROM orders.orders")) == ours
            assert ordered(world.sql(shown("orders.orders"))) == ours
            assert {row["id"]: row["n"] for row in ours} == changes.live
            versions = history_of(
                world.server.sql, "orders.orders__history", "epoch_ms({})".format)
            for history in ("orders.orders__history",
                            f"({shown('orders.orders__history')}) AS h"):
                assert history_of(world.sql, history, millis.format) == versions
    finally:
        running.kill()
        running.communicate()
