"""Spark, as it comes from its authors, works through the catalog; others see what it did.

One session serves all tests; starting it takes most of a minute. After each step the rows of a
table are read by Spark, by `tarn sql` and by PyIceberg, and must be the same.
"""

import base64
import concurrent.futures
import datetime
import decimal
import json
import os
import pathlib
import time
import uuid

import pytest
from pyiceberg.exceptions import CommitFailedException

from iceberg_server import Server  # First: it knows where the next two lie.
from changes import Changes
from engine_world import PIPELINE, EngineWorld, history_of, ordered
from server import CommandFailed, follow, metrics_of, tasks_of, wait_for
from spark_engine import Spark, SparkError

FAR = "TIMESTAMP '2199-01-01 00:00:00'"


class World(EngineWorld):
    """What Spark has beyond reading."""

    def __init__(self, server, spark):
        super().__init__(server, spark)
        self.spark = spark

    def deletes(self, name):
        """(format, rows) of the delete files of a table."""
        return sorted((row["file_format"].lower(), row["record_count"]) for row in self.server.sql(
            f"SELECT file_format, record_count FROM {name}$delete_files"))

    def call(self, procedure, name, **arguments):
        """The row that a procedure answers with, for a table."""
        given = "".join(f", {key} => {value}" for key, value in arguments.items())
        return self.sql(f"CALL tarn.system.{procedure}(table => '{name}'{given})")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("spark")
    with Server(root / "home") as server:
        spark = Spark(root / "jvm", server.url + "/iceberg", server.token())
        try:
            yield World(server, spark)
        finally:
            spark.close()


@pytest.fixture()
def space(world):
    name = f"n{uuid.uuid4().hex[:12]}"
    world.sql(f"CREATE NAMESPACE {name}")
    return name


def properties(version=2, **more):
    pairs = {"format-version": version, **more}
    texts = [f"'{key}' = '{value}'" for key, value in pairs.items()]
    return f"TBLPROPERTIES ({', '.join(texts)})"


def filled(world, name, version=2, rows=10, partition="", **more):
    """A table (id, name, kind) with rows 0, 1, …"""
    world.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, kind INT) {partition} "
              f"{properties(version, **more)}")
    world.sql(f"INSERT INTO {name} SELECT id, concat('n', id), CAST(id % 3 AS INT) "
              f"FROM range({rows})")
    return [(i, f"n{i}", i % 3) for i in range(rows)]


# Namespaces and tables as such.


def planned(world):
    """How often the server has planned a scan."""
    return sum(float(line.rpartition(" ")[2]) for line in metrics_of(world.server).splitlines()
               if line.startswith("tarn_http_requests_total") and '/plan"' in line
               and 'status="200"' in line)


@pytest.mark.parametrize("version", [2, 3])
def test_the_server_plans_scans(world, space, version):
    world.spark.add_catalog("planned", world.iceberg.uri, world.iceberg.token, **{
        "spark.sql.catalog.planned.scan-planning-mode": "server"})
    name = f"{space}.t"
    filled(world, name, version=version, rows=60, partition="PARTITIONED BY (truncate(2, name))",
           **{"write.delete.mode": "merge-on-read"})
    world.sql(f"DELETE FROM {name} WHERE id % 10 = 5")
    world.sql(f"INSERT INTO {name} VALUES (100, NULL, NULL)")
    assert world.deletes(name)
    before = planned(world)
    for condition in ("true", "id < 7", "name = 'n15'", "name LIKE 'n2%'", "kind IN (0, 2)",
                      "NOT id < 30", "name IS NULL", "kind <> 1",
                      "id BETWEEN 20 AND 26 OR id = 100",
                      "id IS NOT NULL AND name NOT IN ('n1', 'n2')"):
        query = f"SELECT * FROM {{}}.{name} WHERE {condition}"
        assert ordered(world.sql(query.format("planned"))) == ordered(
            world.sql(query.format("tarn"))), condition
    assert planned(world) > before


def test_namespaces(world, space):
    world.sql(f"CREATE NAMESPACE {space}.`in.ner` COMMENT 'deep' WITH PROPERTIES ('a' = '1')")
    assert world.values(f"SHOW NAMESPACES IN {space}") == [(f"{space}.`in.ner`",)]
    assert (space,) in world.values("SHOW NAMESPACES")
    world.sql(f"ALTER NAMESPACE {space}.`in.ner` SET PROPERTIES ('b' = '2')")
    world.sql(f"ALTER NAMESPACE {space}.`in.ner` UNSET PROPERTIES ('a')")
    seen = world.catalog.load_namespace_properties((space, "in.ner"))
    assert seen["b"] == "2" and seen["comment"] == "deep" and "a" not in seen
    world.sql(f"COMMENT ON NAMESPACE {space}.`in.ner` IS 'deeper'")
    told = dict(world.values(f"DESCRIBE NAMESPACE EXTENDED {space}.`in.ner`"))
    assert told["Comment"] == "deeper"
    world.sql(f"CREATE NAMESPACE IF NOT EXISTS {space}")
    with pytest.raises(SparkError, match="(?i)already exists"):
        world.sql(f"CREATE NAMESPACE {space}")
    with pytest.raises(SparkError, match="(?i)not empty"):
        world.sql(f"DROP NAMESPACE {space}")
    world.sql(f"DROP NAMESPACE {space}.`in.ner`")
    world.sql(f"DROP NAMESPACE {space}")
    assert (space,) not in world.catalog.list_namespaces()


def test_tables_are_made_renamed_and_dropped(world, space):
    rows = filled(world, f"{space}.t")
    world.sql(f"CREATE TABLE {space}.made AS SELECT * FROM {space}.t WHERE id < 3")
    world.check(f"{space}.made", rows[:3])
    world.sql(f"CREATE TABLE IF NOT EXISTS {space}.made (x INT)")
    with pytest.raises(SparkError, match="already exists"):
        world.sql(f"CREATE TABLE {space}.made (x INT)")
    world.sql(f"ALTER TABLE {space}.made RENAME TO {space}.other")
    assert {row["tableName"] for row in world.sql(f"SHOW TABLES IN {space}")} == {"t", "other"}
    world.check(f"{space}.other", rows[:3])
    first = world.catalog.load_table(f"{space}.other").metadata.current_snapshot_id
    world.sql(f"CREATE OR REPLACE TABLE {space}.other USING iceberg PARTITIONED BY (kind) AS "
              f"SELECT id + 100 AS id, kind FROM {space}.t WHERE id > 7")
    world.check(f"{space}.other", [(108, 2), (109, 0)])
    assert world.values(
        f"SELECT count(*) FROM {space}.other VERSION AS OF {first}") == [(3,)]
    world.sql(f"REPLACE TABLE {space}.other AS SELECT 'x' AS only")
    world.check(f"{space}.other", [("x",)])
    world.sql(f"CREATE OR REPLACE TABLE {space}.fresh AS SELECT 1 AS id")
    world.check(f"{space}.fresh", [(1,)])
    with pytest.raises(SparkError):
        world.sql(f"CREATE TABLE {space}.broken AS SELECT raise_error('no') AS x")
    assert not world.catalog.table_exists(f"{space}.broken")
    world.sql(f"DROP TABLE {space}.other")
    assert not world.catalog.table_exists(f"{space}.other")
    location = pathlib.Path(
        world.catalog.load_table(f"{space}.fresh").location().removeprefix("file://"))
    assert list(location.rglob("*.parquet"))
    world.sql(f"DROP TABLE {space}.fresh PURGE")
    assert not list(location.rglob("*.parquet"))
    with pytest.raises(SparkError, match="(?i)not found|cannot be found"):
        world.sql(f"SELECT * FROM {space}.fresh")


def test_names_that_need_quotes(world, space):
    world.sql(f"CREATE TABLE {space}.`a b-ü` (`the id` BIGINT, `select` STRING, `Größe` INT)")
    world.sql(f"INSERT INTO {space}.`a b-ü` VALUES (1, 'x', 2)")
    assert world.server.sql(f'SELECT * FROM {space}."a b-ü"') == [
        {"the id": 1, "select": "x", "Größe": 2}]
    world.sql(f"UPDATE {space}.`a b-ü` SET `Größe` = 3 WHERE `the id` = 1")
    assert world.values(f"SELECT `Größe` FROM {space}.`a b-ü`") == [(3,)]


TYPES = """
  id BIGINT NOT NULL, flag BOOLEAN, small INT, real FLOAT, double DOUBLE, amount DECIMAL(20, 3),
  day DATE, instant TIMESTAMP, local TIMESTAMP_NTZ, text STRING, bytes BINARY,
  list ARRAY<STRUCT<x: BIGINT>>, map MAP<STRING, ARRAY<INT>>,
  place STRUCT<city: STRING, at: STRUCT<lat: DOUBLE>>"""


@pytest.mark.parametrize("version", [2, 3])
def test_every_type(world, space, version):
    world.sql(f"CREATE TABLE {space}.t ({TYPES}) {properties(version)}")
    world.sql(f"""INSERT INTO {space}.t VALUES
      (1, true, -2147483648, 0.5, -2.5e300, 12345678901234567.125, DATE '1583-01-01',
       TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP_NTZ '2026-02-28 01:02:03.000004',
       'ä\\n"\\'\\0', X'00ff', array(named_struct('x', 1L), NULL, named_struct('x', NULL)),
       map('k', array(1, NULL), 'l', array()), named_struct('city', 'c', 'at',
       named_struct('lat', 1.5D)))""")
    world.sql(f"INSERT INTO {space}.t (id) VALUES (2)")
    utc = datetime.timezone.utc
    expected = {
        "id": 1, "flag": True, "small": -2147483648, "real": 0.5, "double": -2.5e300,
        "amount": decimal.Decimal("12345678901234567.125"), "day": datetime.date(1583, 1, 1),
        "instant": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        "local": datetime.datetime(2026, 2, 28, 1, 2, 3, 4), "text": "ä\n\"'\0",
        "bytes": b"\0\xff", "list": [{"x": 1}, None, {"x": None}],
        "map": [("k", [1, None]), ("l", [])], "place": {"city": "c", "at": {"lat": 1.5}}}
    read = world.catalog.load_table(f"{space}.t").scan().to_arrow().sort_by("id").to_pylist()
    # PyIceberg 0.12 reads a NULL list of structs as an empty one.
    assert read == [expected, {**dict.fromkeys(expected), "id": 2, "list": []}]
    nulls = [f"{column} IS NULL" for column in expected if column != "id"]
    assert world.server.sql(f"SELECT id FROM {space}.t WHERE {' AND '.join(nulls)}") == [{"id": 2}]
    assert world.values("SELECT CAST(instant AS STRING), CAST(local AS STRING), bytes "
                        f"FROM {space}.t WHERE id = 1") == [(
        "1969-12-31 23:59:59.999999", "2026-02-28 01:02:03.000004",
        base64.b64encode(b"\0\xff").decode())]
    ours = world.server.sql(
        "SELECT flag, small, real, double, CAST(amount AS VARCHAR) AS amount, "
        "CAST(day AS VARCHAR) AS day, epoch_us(instant) AS instant, CAST(local AS VARCHAR) AS "
        "local, text, hex(bytes) AS bytes, list, map['k'] AS k, place "
        f"FROM {space}.t WHERE id = 1")[0]
    assert ours == {
        "flag": True, "small": -2147483648, "real": 0.5, "double": -2.5e300,
        "amount": "12345678901234567.125", "day": "1583-01-01", "instant": -1,
        "local": "2026-02-28 01:02:03.000004", "text": "ä\n\"'\0", "bytes": "00FF",
        "list": [{"x": 1}, None, {"x": None}], "k": [1, None],
        "place": {"city": "c", "at": {"lat": 1.5}}}
    # And back: what tarn writes, Spark reads.
    world.server.json("sql", f"INSERT INTO {space}.t SELECT * REPLACE (id + 10 AS id) "
                             f"FROM {space}.t")
    again = {row["id"]: row for row in world.sql(
        f"SELECT *, CAST(instant AS STRING) AS i, CAST(local AS STRING) AS l FROM {space}.t")}
    assert {**again[11], "id": 1} == again[1] and {**again[12], "id": 2} == again[2]


TRANSFORMS = ["kind", "name", "bucket(4, id)", "bucket(3, name)", "truncate(2, name)",
              "truncate(10, id)", "years(day)", "months(day)", "days(moment)", "hours(moment)",
              "bucket(2, day), months(moment)"]


def test_partitions_by_every_transform(world, space):
    for number, transform in enumerate(TRANSFORMS):
        name = f"{space}.t{number}"
        world.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, kind INT, day DATE, "
                  f"moment TIMESTAMP) PARTITIONED BY ({transform})")
        world.sql(f"""INSERT INTO {name} VALUES
          (-5, 'alpha', 1, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:30:00'),
          (15, 'alps', 2, DATE '2026-01-31', TIMESTAMP '2026-01-31 00:00:00'),
          (16, NULL, NULL, NULL, NULL)""")
        for condition in ("id = -5", "name = 'alps'", "kind = 2", "day = DATE '1969-12-31'",
                          "moment < TIMESTAMP '1970-01-01 00:00:00+00'", "name IS NULL"):
            seen = world.values(f"SELECT id FROM {name} WHERE {condition}")
            ours = world.server.sql(f"SELECT id FROM {name} WHERE {condition}")
            assert [tuple(row.values()) for row in ours] == seen, (transform, condition)
        # Rows of tarn's own go to the partitions where Spark looks for them.
        world.server.json("sql", f"INSERT INTO {name} SELECT * FROM {name}")
        theirs = world.values(
            f"SELECT record_count FROM {name}.partitions ORDER BY record_count")
        ours = world.server.sql(f"SELECT record_count FROM {name}$partitions ORDER BY 1")
        assert [tuple(row.values()) for row in ours] == theirs, transform
        assert all(count % 2 == 0 for count, in theirs), transform
        world.sql(f"DELETE FROM {name} WHERE name = 'alpha'")
        assert world.values(f"SELECT DISTINCT id FROM {name} ORDER BY id") == [(15,), (16,)]
        world.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE id = 15 LIMIT 1")
        assert len(world.server.sql(f"SELECT * FROM {name} WHERE id = 15")) == 1


# Changes of rows.


def test_insert_and_overwrite(world, space):
    name = f"{space}.t"
    rows = filled(world, name, partition="PARTITIONED BY (kind)")
    world.check(name, rows)
    world.sql(f"INSERT INTO {name} (name, id, kind) VALUES ('by name', 100, 1)")
    world.sql(f"INSERT INTO {name} BY NAME SELECT 1 AS kind, 101L AS id, 'too' AS name")
    rows += [(100, "by name", 1), (101, "too", 1)]
    world.check(name, rows)
    world.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        world.sql(f"INSERT OVERWRITE {name} VALUES (7, 'seven', 1), (8, 'eight', 5)")
    finally:
        world.sql("SET spark.sql.sources.partitionOverwriteMode = static")
    rows = [row for row in rows if row[2] != 1] + [(7, "seven", 1), (8, "eight", 5)]
    world.check(name, rows)
    world.sql(f"INSERT OVERWRITE {name} PARTITION (kind = 2) SELECT 50L, 'fifty'")
    rows = [row for row in rows if row[2] != 2] + [(50, "fifty", 2)]
    world.check(name, rows)
    world.sql(f"INSERT INTO {name} REPLACE WHERE kind = 0 VALUES (60, 'sixty', 0)")
    rows = [row for row in rows if row[2] != 0] + [(60, "sixty", 0)]
    world.check(name, rows)
    world.sql(f"DELETE FROM {name} WHERE kind = 5")
    rows = [row for row in rows if row[2] != 5]
    world.check(name, rows)
    world.sql(f"INSERT OVERWRITE {name} VALUES (1, 'one', 1)")
    world.check(name, [(1, "one", 1)])
    world.sql(f"TRUNCATE TABLE {name}")
    world.check(name, [])


def all_modes(mode):
    return {f"write.{what}.mode": mode for what in ("delete", "update", "merge")}


@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (bucket(2, id))"],
                         ids=["plain", "partitioned"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
def test_delete_update_and_merge(world, space, version, mode, partition):
    name = f"{space}.t"
    rows = filled(world, name, version, 20, partition, **all_modes(mode))
    world.sql(f"DELETE FROM {name} WHERE id IN (3, 4, 15)")
    rows = [row for row in rows if row[0] not in (3, 4, 15)]
    world.check(name, rows)
    world.sql(f"UPDATE {name} SET name = 'changed', kind = kind + 10 WHERE id IN (5, 6)")
    rows = [(i, "changed", k + 10) if i in (5, 6) else (i, n, k) for i, n, k in rows]
    world.check(name, rows)
    world.sql(f"DELETE FROM {name} WHERE id % 10 = 7")
    rows = [row for row in rows if row[0] % 10 != 7]
    world.check(name, rows)
    world.sql(f"CREATE TABLE {space}.s AS SELECT id, concat('m', id) AS name, "
              "CAST(id AS INT) AS kind FROM range(0, 40, 2)")
    world.sql(f"""MERGE INTO {name} t USING {space}.s s ON t.id = s.id
      WHEN MATCHED AND s.id = 8 THEN DELETE
      WHEN MATCHED AND s.id < 12 THEN UPDATE SET *
      WHEN NOT MATCHED AND s.id > 20 THEN INSERT *
      WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE
      WHEN NOT MATCHED BY SOURCE AND t.id = 11 THEN UPDATE SET name = 'alone'""")
    merged = {row[0]: row for row in rows}
    for i in range(0, 40, 2):
        if i in merged and i < 12:
            merged[i] = (i, f"m{i}", i)
        elif i not in merged and i > 20:
            merged[i] = (i, f"m{i}", i)
    merged.pop(8)
    merged.pop(9)
    merged[11] = (11, "alone", 2)
    rows = list(merged.values())
    world.check(name, rows)
    formats = {form for form, _ in world.deletes(name)}
    assert formats == ({"parquet" if version == 2 else "puffin"}
                       if mode == "merge-on-read" else set()), formats
    # A file that has lost rows to Spark loses more to tarn, and then to Spark again.
    world.server.json("sql", f"DELETE FROM {name} WHERE id IN (0, 13)")
    rows = [row for row in rows if row[0] not in (0, 13)]
    world.check(name, rows)
    world.server.json("sql", f"UPDATE {name} SET kind = -1 WHERE id = 14")
    rows = [(14, "n14", -1) if row[0] == 14 else row for row in rows]
    world.check(name, rows)
    world.sql(f"DELETE FROM {name} WHERE id IN (1, 14)")
    rows = [row for row in rows if row[0] not in (1, 14)]
    world.check(name, rows)
    world.server.json("table", "compact", name)
    world.check(name, rows)
    world.sql(f"DELETE FROM {name} WHERE id IN (2, 16)")
    world.check(name, [row for row in rows if row[0] not in (2, 16)])


def test_rows_keep_their_ids(world, space):
    """Row lineage of format version 3, written and read by both sides."""
    name = f"{space}.t"
    filled(world, name, 3, 6, **all_modes("merge-on-read"))
    lineage = "SELECT id, _row_id, _last_updated_sequence_number FROM {} ORDER BY id"

    def seen():
        theirs = world.values(lineage.format(name))
        ours = world.server.sql(lineage.format(f"{name}$rows"))
        assert [tuple(row.values()) for row in ours] == theirs
        return {row[0]: row[1:] for row in theirs}

    before = seen()
    assert sorted(row_id for row_id, _ in before.values()) == list(range(6))
    world.sql(f"UPDATE {name} SET kind = 7 WHERE id = 2")
    after = seen()
    assert after[2] == (before[2][0], 2) and after[3] == before[3]
    world.server.json("sql", f"UPDATE {name} SET kind = 8 WHERE id = 3")
    assert seen()[3] == (before[3][0], 3)
    world.sql(f"INSERT INTO {name} VALUES (50, 'new', 1)")
    world.server.json("sql", f"INSERT INTO {name} VALUES (51, 'new', 1)")
    ids = [row_id for row_id, _ in seen().values()]
    assert len(set(ids)) == len(ids)
    kept = seen()
    world.call("rewrite_data_files", name, options="map('rewrite-all', 'true')")
    assert seen() == kept
    world.server.json("table", "compact", name)
    assert seen() == kept
    assert world.catalog.load_table(name).metadata.next_row_id > max(ids)


def test_deletion_vectors_take_the_place_of_position_deletes(world, space):
    name = f"{space}.t"
    rows = filled(world, name, 2, 10, **all_modes("merge-on-read"))
    world.sql(f"DELETE FROM {name} WHERE id = 1")
    world.sql(f"DELETE FROM {name} WHERE id = 2")
    assert {form for form, _ in world.deletes(name)} == {"parquet"}
    world.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    world.check(name, [row for row in rows if row[0] not in (1, 2)])
    world.sql(f"DELETE FROM {name} WHERE id IN (3, 8)")
    world.check(name, [row for row in rows if row[0] not in (1, 2, 3, 8)])
    assert "puffin" in {form for form, _ in world.deletes(name)}
    world.server.json("sql", f"DELETE FROM {name} WHERE id = 4")
    world.check(name, [row for row in rows if row[0] not in (1, 2, 3, 4, 8)])
    world.call("rewrite_position_delete_files", name, options="map('rewrite-all', 'true')")
    world.check(name, [row for row in rows if row[0] not in (1, 2, 3, 4, 8)])


def test_a_table_goes_up_through_the_versions(world, space):
    name = f"{space}.t"
    rows = filled(world, name, 1, 5)
    assert world.catalog.load_table(name).metadata.format_version == 1
    world.check(name, rows)
    for version in (2, 3):
        world.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '{version}')")
        assert world.catalog.load_table(name).metadata.format_version == version
        world.check(name, rows)
        world.sql(f"INSERT INTO {name} VALUES ({10 * version}, 'new', 1)")
        rows.append((10 * version, "new", 1))
        world.sql(f"DELETE FROM {name} WHERE id = {version}")
        rows = [row for row in rows if row[0] != version]
        world.check(name, rows)
    with pytest.raises(SparkError, match="(?i)downgrade|format version"):
        world.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '2')")


# Schemas, partitions, orders.


def test_schema_evolution(world, space):
    name = f"{space}.t"
    world.sql(f"CREATE TABLE {name} (id INT NOT NULL, a STRING, s STRUCT<x: INT, y: STRING>, "
              "l ARRAY<STRUCT<p: INT>>, d DECIMAL(5, 2), f FLOAT)")
    world.sql(f"INSERT INTO {name} VALUES (1, 'one', named_struct('x', 1, 'y', 'why'), "
              "array(named_struct('p', 1)), 1.25, 0.5)")
    for change in ("ADD COLUMN b BIGINT COMMENT 'added' AFTER id", "ADD COLUMN s.z DOUBLE FIRST",
                   "ADD COLUMN l.element.q STRING", "RENAME COLUMN a TO label",
                   "RENAME COLUMN s.x TO ex", "ALTER COLUMN id TYPE BIGINT",
                   "ALTER COLUMN d TYPE DECIMAL(9, 2)", "ALTER COLUMN f TYPE DOUBLE",
                   "ALTER COLUMN id DROP NOT NULL", "ALTER COLUMN label COMMENT 'the label'",
                   "ALTER COLUMN f FIRST", "DROP COLUMN s.y"):
        world.sql(f"ALTER TABLE {name} {change}")
    world.sql(f"INSERT INTO {name} (f, id, b, label, s, l, d) VALUES (1.5D, 5000000000, 7, 'two', "
              "named_struct('z', 2.5D, 'ex', 3), array(named_struct('p', 2, 'q', 'r')), 99999.5)")
    first = {"f": 0.5, "id": 1, "b": None, "label": "one", "s": {"z": None, "ex": 1},
             "l": [{"p": 1, "q": None}]}
    second = {"f": 1.5, "id": 5000000000, "b": 7, "label": "two", "s": {"z": 2.5, "ex": 3},
              "l": [{"p": 2, "q": "r"}]}
    for rows in (world.sql(f"SELECT * FROM {name} ORDER BY id"),
                 world.server.sql(f"SELECT * FROM {name} ORDER BY id"),
                 world.catalog.load_table(name).scan().to_arrow().sort_by("id").to_pylist()):
        amounts = [decimal.Decimal(str(row.pop("d"))) for row in rows]
        assert rows == [first, second] and amounts == [decimal.Decimal("1.25"), 99999.5]
    # A name that comes back is another column.
    world.sql(f"ALTER TABLE {name} DROP COLUMN label")
    world.sql(f"ALTER TABLE {name} ADD COLUMN label STRING")
    assert world.values(f"SELECT label FROM {name}") == [(None,), (None,)]
    assert world.server.sql(f"SELECT DISTINCT label FROM {name}") == [{"label": None}]
    with pytest.raises(SparkError):
        world.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE INT")
    with pytest.raises(SparkError, match="(?i)already exists"):
        world.sql(f"ALTER TABLE {name} ADD COLUMN label STRING")
    world.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    assert len(world.catalog.load_table(name).schemas()) >= 10


def test_columns_with_defaults(world, space):
    """Spark's SQL declares none on Iceberg tables; the library beneath does."""
    name = f"{space}.t"
    rows = filled(world, name, 3, 3)
    jvm = world.spark.jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        world.spark.session, f"tarn.{name}")
    types = jvm.org.apache.iceberg.types.Types
    literal = jvm.org.apache.iceberg.expressions.Expressions.lit
    table.updateSchema().addColumn("n", types.LongType.get(), literal(7).to(
        types.LongType.get())).addColumn("t", types.StringType.get(), literal("x")).commit()
    world.sql(f"INSERT INTO {name} (id, name, kind, n) VALUES (9, 'nine', 0, NULL)")
    seen = world.values(f"SELECT id, n, t FROM {name} ORDER BY id")
    assert seen[:3] == [(row[0], 7, "x") for row in rows]
    assert [tuple(row.values()) for row in world.server.sql(
        f"SELECT id, n, t FROM {name} ORDER BY id")] == seen


def test_partitions_and_orders_evolve(world, space):
    name = f"{space}.t"
    rows = filled(world, name)
    for change in ("ADD PARTITION FIELD kind", "ADD PARTITION FIELD bucket(4, id) AS shard",
                   "REPLACE PARTITION FIELD kind WITH truncate(1, name) AS first",
                   "DROP PARTITION FIELD shard", "WRITE ORDERED BY kind DESC NULLS LAST, id",
                   "SET IDENTIFIER FIELDS id"):
        if "IDENTIFIER" in change:
            with pytest.raises(SparkError):  # NULLs may be in it.
                world.sql(f"ALTER TABLE {name} {change}")
            continue
        world.sql(f"ALTER TABLE {name} {change}")
        number = 100 + len(rows)
        world.sql(f"INSERT INTO {name} VALUES ({number}, 'n{number}', {number % 3})")
        rows.append((number, f"n{number}", number % 3))
        world.check(name, rows)
    table = world.catalog.load_table(name)
    assert len(table.specs()) == 5
    assert str(table.sort_order().fields[0].direction) == "DESC"
    for condition in ("kind = 1", "name = 'n4'", "id = 111"):
        query = f"SELECT id FROM {name} WHERE {condition} ORDER BY id"
        assert [tuple(row.values()) for row in world.server.sql(query)] == world.values(query)
    world.sql(f"DELETE FROM {name} WHERE kind = 1")
    rows = [row for row in rows if row[2] != 1]
    world.check(name, rows)
    world.sql(f"ALTER TABLE {name} WRITE UNORDERED")
    world.call("rewrite_data_files", name, options="map('rewrite-all', 'true')")
    world.check(name, rows)
    assert {row["spec_id"] for row in world.server.sql(f"SELECT spec_id FROM {name}$files")} == {
        table.spec().spec_id}


# Snapshots.


def test_branches_and_tags(world, space):
    name = f"{space}.t"
    rows = filled(world, name, rows=3)
    first = world.catalog.load_table(name).metadata.current_snapshot_id
    world.sql(f"ALTER TABLE {name} CREATE TAG v1 RETAIN 7 DAYS")
    world.sql(f"ALTER TABLE {name} CREATE BRANCH try AS OF VERSION {first} RETAIN 3 DAYS "
              "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 DAYS")
    world.sql(f"INSERT INTO {name}.branch_try VALUES (10, 'try', 1)")
    world.sql(f"DELETE FROM {name}.branch_try WHERE id = 0")
    world.sql(f"INSERT INTO {name} VALUES (20, 'main', 1)")
    world.check(name, [*rows, (20, "main", 1)])
    query = f"SELECT id FROM {name} {{}} ORDER BY id"
    for ref, expected in (("try", [1, 2, 10]), ("v1", [0, 1, 2])):
        assert world.values(query.format(f"VERSION AS OF '{ref}'")) == [(i,) for i in expected]
        assert world.server.sql(query.format(""), "--branch", ref) == [
            {"id": i} for i in expected]
    ours = world.server.sql(f"SELECT * FROM {name}$refs ORDER BY name")
    assert ours == world.sql(f"SELECT * FROM {name}.refs ORDER BY name")
    assert {(ref["name"], ref["type"], ref["max_reference_age_in_ms"]) for ref in ours} == {
        ("main", "BRANCH", None), ("try", "BRANCH", 3 * 86400000), ("v1", "TAG", 7 * 86400000)}
    with pytest.raises(SparkError):
        world.sql(f"INSERT INTO {name}.tag_v1 VALUES (1, 'no', 1)")
    world.sql(f"ALTER TABLE {name} CREATE OR REPLACE TAG v1 AS OF VERSION "
              f"{world.catalog.load_table(name).metadata.current_snapshot_id}")
    assert len(world.values(query.format("VERSION AS OF 'v1'"))) == 4
    world.sql(f"CALL tarn.system.rollback_to_snapshot('{name}', {first})")
    world.sql(f"CALL tarn.system.fast_forward('{name}', 'main', 'try')")
    world.check(name, [(1, "n1", 1), (2, "n2", 2), (10, "try", 1)])
    world.sql(f"ALTER TABLE {name} DROP TAG v1")
    world.sql(f"ALTER TABLE {name} DROP BRANCH IF EXISTS try")
    assert set(world.catalog.load_table(name).refs()) == {"main"}


def test_time_travel_and_history(world, space):
    name = f"{space}.t"
    filled(world, name, rows=2)
    first = world.catalog.load_table(name).metadata.current_snapshot_id
    time.sleep(1.1)
    between = datetime.datetime.now(datetime.timezone.utc)
    time.sleep(0.1)
    world.sql(f"INSERT INTO {name} VALUES (2, 'later', 0)")
    world.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    world.sql(f"INSERT INTO {name} VALUES (3, 'more', 0, 1)")
    stamp = between.isoformat(sep=" ", timespec="milliseconds")
    old = world.sql(f"SELECT * FROM {name} VERSION AS OF {first} ORDER BY id")
    assert [row["id"] for row in old] == [0, 1] and "more" not in old[0]
    assert world.sql(f"SELECT * FROM {name} TIMESTAMP AS OF '{stamp}' ORDER BY id") == old
    for moment in (str(first), between.isoformat(timespec="milliseconds")):
        assert world.server.sql(f"SELECT * FROM {name} ORDER BY id", "--at", moment) == old
    world.sql(f"CALL tarn.system.set_current_snapshot('{name}', {first})")
    assert len(world.check(name)) == 2
    assert world.server.sql(f"SELECT snapshot_id, is_current_ancestor FROM {name}$history "
                            "ORDER BY made_current_at") == world.sql(
        f"SELECT snapshot_id, is_current_ancestor FROM {name}.history ORDER BY made_current_at")
    ancestors = world.sql(f"CALL tarn.system.ancestors_of('{name}')")
    assert [row["snapshot_id"] for row in ancestors] == [first]


def test_write_audit_publish(world, space):
    name = f"{space}.t"
    rows = filled(world, name, rows=2, **{"write.wap.enabled": "true"})
    conf = world.spark.session.conf()
    conf.set("spark.wap.id", "audit-1")
    try:
        world.sql(f"INSERT INTO {name} VALUES (5, 'staged', 1)")
    finally:
        conf.unset("spark.wap.id")
    world.check(name, rows)
    staged = [s.snapshot_id for s in world.catalog.load_table(name).snapshots()
              if s.summary.additional_properties.get("wap.id") == "audit-1"]
    world.sql(f"INSERT INTO {name} VALUES (6, 'between', 0)")
    world.sql(f"CALL tarn.system.cherrypick_snapshot('{name}', {staged[0]})")
    world.check(name, [*rows, (5, "staged", 1), (6, "between", 0)])
    with pytest.raises(SparkError):
        world.sql(f"CALL tarn.system.publish_changes('{name}', 'audit-1')")
    world.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
    conf.set("spark.wap.branch", "audit")
    try:
        world.sql(f"INSERT INTO {name} VALUES (7, 'on the branch', 0)")
    finally:
        conf.unset("spark.wap.branch")
    assert len(world.check(name)) == 4
    world.sql(f"CALL tarn.system.fast_forward('{name}', 'main', 'audit')")
    assert len(world.check(name)) == 5


def test_changelog(world, space):
    name = f"{space}.t"
    filled(world, name, rows=3)
    first = world.catalog.load_table(name).metadata.current_snapshot_id
    world.sql(f"UPDATE {name} SET name = 'new' WHERE id = 1")
    world.sql(f"DELETE FROM {name} WHERE id = 2")
    world.server.json("sql", f"INSERT INTO {name} VALUES (9, 'nine', 0)")
    world.call("create_changelog_view", name, options=f"map('start-snapshot-id', '{first}')",
               identifier_columns="array('id')", changelog_view="'changed'")
    assert world.values("SELECT id, name, _change_type FROM changed "
                        "ORDER BY _change_ordinal, id, _change_type DESC") == [
        (1, "n1", "UPDATE_BEFORE"), (1, "new", "UPDATE_AFTER"), (2, "n2", "DELETE"),
        (9, "nine", "INSERT")]
    incremental = world.spark.session.read().format("iceberg").option(
        "start-snapshot-id", str(world.catalog.load_table(name).snapshots()[-2].snapshot_id)
    ).load(f"tarn.{name}").toJSON().collectAsList()
    assert [json.loads(row)["id"] for row in incremental] == [9]


# Upkeep by Spark's procedures.


def test_data_files_and_manifests_are_rewritten(world, space):
    name = f"{space}.t"
    rows = filled(world, name, 2, 8, "PARTITIONED BY (kind)", **all_modes("merge-on-read"),
                  **{"commit.manifest-merge.enabled": "false"})
    for i in range(100, 104):
        world.sql(f"INSERT INTO {name} VALUES ({i}, 'n{i}', {i % 3})")
        rows.append((i, f"n{i}", i % 3))
    world.sql(f"DELETE FROM {name} WHERE id IN (2, 101)")
    rows = [row for row in rows if row[0] not in (2, 101)]
    manifests = len(world.server.sql(f"SELECT * FROM {name}$manifests"))
    done = world.sql(f"CALL tarn.system.rewrite_manifests('{name}')")[0]
    assert done["rewritten_manifests_count"] >= 4
    assert len(world.server.sql(f"SELECT * FROM {name}$manifests")) < manifests
    world.check(name, rows)
    done = world.call("rewrite_data_files", name, strategy="'sort'", sort_order="'id DESC'",
                      options="map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')")[0]
    assert done["rewritten_data_files_count"] >= 7 and done["added_data_files_count"] == 3
    world.check(name, rows)
    assert world.deletes(name) == []
    world.call("rewrite_data_files", name, strategy="'sort'", sort_order="'zorder(id, kind)'",
               options="map('rewrite-all', 'true')")
    world.check(name, rows)


def test_snapshots_expire(world, space):
    name = f"{space}.t"
    rows = filled(world, name, rows=3)
    world.sql(f"ALTER TABLE {name} CREATE TAG kept")
    for i in range(10, 14):
        world.sql(f"INSERT OVERWRITE {name} VALUES ({i}, 'x', 1)")
    location = pathlib.Path(world.catalog.load_table(name).location().removeprefix("file://"))
    before = len(list(location.rglob("*.parquet")))
    done = world.call("expire_snapshots", name, older_than=FAR, retain_last=1)[0]
    assert done["deleted_data_files_count"] >= 3 and done["deleted_manifest_lists_count"] == 3
    assert len(list(location.rglob("*.parquet"))) == before - done["deleted_data_files_count"]
    assert len(world.catalog.load_table(name).snapshots()) == 2
    world.check(name, [(13, "x", 1)])
    assert len(world.values(f"SELECT * FROM {name} VERSION AS OF 'kept'")) == len(rows)
    assert len(world.server.sql(f"SELECT * FROM {name}", "--branch", "kept")) == len(rows)
    world.sql(f"ALTER TABLE {name} ADD PARTITION FIELD kind")
    world.sql(f"ALTER TABLE {name} ADD COLUMN unused INT")
    world.sql(f"ALTER TABLE {name} DROP COLUMN unused")
    world.call("expire_snapshots", name, older_than=FAR, retain_last=1,
               clean_expired_metadata="true")
    world.check(name, [(13, "x", 1)])


def test_orphans_are_removed_and_nothing_else(world, space):
    name = f"{space}.t"
    rows = filled(world, name, 3, 6, **all_modes("merge-on-read"))
    world.sql(f"DELETE FROM {name} WHERE id = 1")
    world.server.json("sql", f"DELETE FROM {name} WHERE id = 2")
    world.server.json("sql", f"INSERT INTO {name} VALUES (7, 'seven', 0)")
    world.call("compute_table_stats", name)
    location = pathlib.Path(world.catalog.load_table(name).location().removeprefix("file://"))
    (location / "data" / "stray.parquet").write_bytes(b"x")
    old = time.time() - 20 * 86400
    for path in location.rglob("*"):
        os.utime(path, (old, old))
    found = world.call("remove_orphan_files", name, dry_run="true")
    assert [row["orphan_file_location"].rsplit("/", 1)[1] for row in found] == ["stray.parquet"]
    world.call("remove_orphan_files", name)
    assert not (location / "data" / "stray.parquet").exists()
    world.check(name, [*(row for row in rows if row[0] not in (1, 2)), (7, "seven", 0)])
    assert world.server.json(
        "table", "orphans", name, "--dry-run", "--older-than", "0s")["found"] == 0


def test_statistics(world, space):
    name = f"{space}.t"
    filled(world, name, partition="PARTITIONED BY (kind)")
    made = world.call("compute_table_stats", name)[0]["statistics_file"]
    metadata = world.catalog.load_table(name).metadata
    assert [file.statistics_path for file in metadata.statistics] == [made]
    assert {blob.type for blob in metadata.statistics[0].blob_metadata} == {
        "apache-datasketches-theta-v1"}
    made = world.call("compute_partition_stats", name)[0]["partition_statistics_file"]
    metadata = world.catalog.load_table(name).metadata
    assert [file.statistics_path for file in metadata.partition_statistics] == [made]
    world.sql(f"INSERT INTO {name} VALUES (50, 'x', 1)")
    assert len(world.check(name)) == 11
    world.call("expire_snapshots", name, older_than=FAR, retain_last=1)
    assert world.catalog.load_table(name).metadata.statistics == []


METADATA_TABLES = {
    "snapshots": "snapshot_id, parent_id, operation, manifest_list",
    "history": "snapshot_id, parent_id, is_current_ancestor",
    "refs": "name, type, snapshot_id",
    "manifests": "content, path, length, partition_spec_id, added_snapshot_id",
    "files": "content, file_path, spec_id, record_count, file_size_in_bytes",
    "data_files": "content, file_path, spec_id, record_count, file_size_in_bytes, sort_order_id",
    "delete_files": "content, file_path, spec_id, record_count, referenced_data_file, "
                    "content_offset, content_size_in_bytes",
    "partitions": "spec_id, record_count, file_count, total_data_file_size_in_bytes, "
                  "position_delete_record_count, equality_delete_record_count",
}


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_tables_agree(world, space, version):
    name = f"{space}.t"
    filled(world, name, version, 10, "PARTITIONED BY (kind)", **all_modes("merge-on-read"))
    world.sql(f"DELETE FROM {name} WHERE id = 4")
    world.server.json("sql", f"DELETE FROM {name} WHERE id = 5")
    world.sql(f"INSERT INTO {name} VALUES (40, 'forty', 7)")
    for word, columns in METADATA_TABLES.items():
        theirs = ordered(world.sql(f"SELECT {columns} FROM {name}.{word}"))
        assert ordered(world.server.sql(f"SELECT {columns} FROM {name}${word}")) == theirs, word
    for word in ("entries", "all_data_files", "all_delete_files", "all_files", "all_manifests",
                 "all_entries", "metadata_log_entries", "position_deletes"):
        assert world.values(f"SELECT count(*) FROM {name}.{word}")[0][0] > 0, word
    log = world.values(f"SELECT file FROM {name}.metadata_log_entries")
    ours = [tuple(row.values()) for row in world.server.sql(
        f"SELECT file FROM {name}$metadata_log_entries")]
    assert log[:len(ours)] == ours and len(log) <= len(ours) + 1


# Views.


def test_views(world, space):
    filled(world, f"{space}.t")
    world.sql(f"CREATE VIEW {space}.v (number COMMENT 'the number', name) COMMENT 'a view' "
              f"TBLPROPERTIES ('k' = 'v') AS SELECT id, name FROM {space}.t WHERE id < 2")
    assert world.sql(f"SELECT * FROM {space}.v ORDER BY number") == [
        {"number": 0, "name": "n0"}, {"number": 1, "name": "n1"}]
    assert world.catalog.list_views(space) == [(space, "v")]
    assert {row["viewName"] for row in world.sql(f"SHOW VIEWS IN {space}")} >= {"v"}
    assert "CREATE VIEW" in world.values(f"SHOW CREATE TABLE {space}.v")[0][0]
    with pytest.raises(SparkError, match="(?i)already exists"):
        world.sql(f"CREATE VIEW {space}.v AS SELECT 1 AS x")
    world.sql(f"CREATE VIEW IF NOT EXISTS {space}.v AS SELECT 1 AS x")
    world.sql(f"USE {space}")
    try:
        world.sql(f"CREATE OR REPLACE VIEW {space}.v AS SELECT max(id) AS top FROM t")
    finally:
        world.sql("USE tarn")
    assert world.sql(f"SELECT * FROM {space}.v") == [{"top": 9}]
    loaded = world.iceberg.rest("GET", f"/namespaces/{space}/views/v").json()["metadata"]
    assert len(loaded["versions"]) == 2 and loaded["versions"][1]["default-namespace"] == [space]
    world.sql(f"CREATE VIEW {space}.over AS SELECT top + 1 AS next FROM {space}.v")
    assert world.values(f"SELECT * FROM {space}.over") == [(10,)]
    world.sql(f"ALTER VIEW {space}.v SET TBLPROPERTIES ('owner of' = 'x')")
    world.sql(f"ALTER VIEW {space}.v UNSET TBLPROPERTIES ('owner of')")
    assert dict(world.values(f"SHOW TBLPROPERTIES {space}.v")).get("owner of") is None
    world.sql(f"ALTER VIEW {space}.over RENAME TO {space}.above")
    assert world.values(f"SELECT * FROM {space}.above") == [(10,)]
    with pytest.raises(SparkError, match="(?i)exists"):
        world.sql(f"CREATE TABLE {space}.v (x INT)")
    with pytest.raises(SparkError, match="(?i)exists"):
        world.sql(f"CREATE VIEW {space}.t AS SELECT 1 AS x")
    # Its text is Spark's: tarn says so instead of guessing.
    with pytest.raises(CommandFailed) as refused:
        world.server.sql(f"SELECT * FROM {space}.v")
    assert "no text for the dialect duckdb" in refused.value.errors
    world.sql(f"DROP VIEW {space}.above")
    world.sql(f"DROP VIEW {space}.v")
    assert world.catalog.list_views(space) == []
    assert not world.iceberg.rest("HEAD", f"/namespaces/{space}/views/v").ok


# Several at once, and rights.


def test_writers_of_several_kinds_lose_nothing(world, space):
    name = f"{space}.t"
    filled(world, name, rows=0, **{"commit.retry.num-retries": "20"})

    def spark(start):
        for i in range(6):
            world.sql(f"INSERT INTO {name} VALUES ({start + i}, 'spark', 0)")

    def tarn(start):
        for i in range(6):
            world.server.json("sql", f"INSERT INTO {name} VALUES ({start + i}, 'tarn', 0)")

    def pyiceberg(start):
        import pyarrow as pa
        table = world.iceberg.catalog().load_table(name)
        for i in range(6):
            while True:
                try:
                    table.append(pa.table({"id": [start + i], "name": ["pyiceberg"],
                                           "kind": pa.array([0], pa.int32())}))
                    break
                except CommitFailedException:
                    table.refresh()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(writer, start) for writer, start in (
            (spark, 100), (tarn, 200), (pyiceberg, 300))]
        for job in jobs:
            job.result()
    rows = world.check(name)
    assert sorted(row["id"] for row in rows) == [
        start + i for start in (100, 200, 300) for i in range(6)]
    assert len(world.catalog.load_table(name).snapshots()) >= 18


def test_a_viewer_reads_and_is_refused_changes(world, space):
    rows = filled(world, f"{space}.t", rows=2)
    user, token = world.iceberg.make_user(f"viewer-{space}")
    project = world.iceberg.native("GET", "/tarn/v1/resources?path=default").json()["rid"]
    granted = world.iceberg.native(
        "POST", f"/api/v2/filesystem/resources/{project}/roles/add?preview=true",
        json={"roles": [{"roleId": "compass:view", "resourceRolePrincipal": {
            "type": "principalWithId", "principalId": user, "principalType": "USER"}}]})
    assert granted.status_code == 204, granted.text
    world.spark.add_catalog("viewer", world.iceberg.uri, token)
    assert world.values(f"SELECT * FROM viewer.{space}.t ORDER BY id") == rows
    for statement in (f"INSERT INTO viewer.{space}.t VALUES (9, 'no', 1)",
                      f"ALTER TABLE viewer.{space}.t ADD COLUMN x INT",
                      f"CREATE TABLE viewer.{space}.u (x INT)", f"DROP TABLE viewer.{space}.t",
                      f"CREATE VIEW viewer.{space}.v AS SELECT 1 AS x"):
        with pytest.raises(SparkError, match="(?i)forbidden|not authorized|needs the role|Editor"):
            world.sql(statement)
    world.check(f"{space}.t", rows)
    world.spark.add_catalog("stranger", world.iceberg.uri, "wrong")
    with pytest.raises(SparkError, match="(?i)not authorized|token"):
        world.sql(f"SELECT * FROM stranger.{space}.t")


# Tables and views that a pipeline makes.

def test_a_pipeline_is_read_while_it_grows(world, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(uri=folder.as_uri()))
    changes = Changes(seed=5, keys=40)
    running = follow(world.server, file)

    def same():
        ours = ordered(world.server.sql("SELECT * FROM orders.orders"))
        assert ordered(world.sql("SELECT * FROM orders.orders")) == ours
        assert {row["id"]: row["n"] for row in ours} == changes.live
        history = "orders.orders__history"
        assert history_of(world.sql, history, "unix_micros({})".format) == history_of(
            world.server.sql, history, "epoch_us({})".format)

    try:
        for number in range(6):
            made = changes.make(60)
            staged = tmp_path / "staged"
            staged.write_text("".join(json.dumps(row) + "\n" for row in made))
            staged.rename(folder / f"{number}.jsonl")
            wait_for(lambda: tasks_of(world.server).get("p.orders", {}).get("rows_out")
                     == changes.number, 60)
            assert tasks_of(world.server)["p.orders"]["unapplied"] > 0
            same()
            text = world.server.run("view", "show", "orders.orders", "--dialect", "spark")
            assert ordered(world.sql(text)) == ordered(world.sql("SELECT * FROM orders.orders"))
            if number % 2:
                world.server.run("task", "apply", "p.orders")
                wait_for(lambda: tasks_of(world.server)["p.orders"]["unapplied"] == 0, 60)
                same()
                rows = world.check("orders.orders__applied")
                assert {row["id"]: row["n"] for row in rows} == changes.live
        changes.check(world.server)
    finally:
        running.kill()
        running.communicate()
    world.server.run("pipeline", "delete", "p")
    for statement in ("INSERT INTO orders.orders__applied SELECT * FROM orders.orders__applied",
                      "DELETE FROM orders.orders__applied WHERE id = 1",
                      "DROP TABLE orders.orders__applied", "DROP VIEW orders.orders",
                      "CREATE OR REPLACE VIEW orders.orders AS SELECT 1 AS x"):
        with pytest.raises(SparkError, match="(?i)forbidden|written by|loss of view dialects"):
            world.sql(statement)
