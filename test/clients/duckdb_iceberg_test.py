"""DuckDB's own Iceberg extension attaches the catalog, reads and writes."""

import pathlib
import uuid

import duckdb
import pyarrow as pa
import pytest

from iceberg_server import iceberg  # noqa: F401


def attach(iceberg, **options):  # noqa: F811
    connection = duckdb.connect()
    for extension in ("avro", "httpfs", "iceberg"):
        module = __import__(f"duckdb_extension_{extension}")
        file = next(pathlib.Path(module.__file__).parent.rglob(f"{extension}.duckdb_extension"))
        connection.execute(f"INSTALL '{file}'")
        connection.execute(f"LOAD {extension}")
    connection.execute(
        f"CREATE SECRET (TYPE iceberg, TOKEN '{iceberg.token}', ENDPOINT '{iceberg.uri}')")
    connection.execute(
        f"ATTACH 'default' AS lake (TYPE iceberg, ENDPOINT '{iceberg.uri}', "
        "ACCESS_DELEGATION_MODE 'none', SUPPORT_NESTED_NAMESPACES true)")
    return connection


@pytest.fixture()
def space(iceberg):  # noqa: F811
    name = f"d{uuid.uuid4().hex[:12]}"
    iceberg.catalog().create_namespace(name)
    return name


def test_reads_what_another_client_wrote(iceberg, space):  # noqa: F811
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
    table = iceberg.catalog().create_table(f"{space}.t", schema=rows.schema)
    table.append(rows)
    connection = attach(iceberg)
    assert connection.execute(f"SELECT * FROM lake.{space}.t ORDER BY id").fetchall() == [
        (1, "a"), (2, "b"), (3, None)]
    table.append(pa.table({"id": [4], "name": ["d"]}))
    connection = attach(iceberg)
    assert connection.execute(f"SELECT count(*) FROM lake.{space}.t").fetchone() == (4,)


def test_writes_what_another_client_reads(iceberg, space):  # noqa: F811
    connection = attach(iceberg)
    connection.execute(f"CREATE TABLE lake.{space}.t (id BIGINT, name VARCHAR)")
    connection.execute(f"INSERT INTO lake.{space}.t VALUES (1, 'a'), (2, 'b')")
    connection.execute(f"INSERT INTO lake.{space}.t VALUES (3, NULL)")
    table = iceberg.catalog().load_table(f"{space}.t")
    assert table.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 2, 3], "name": ["a", "b", None]}
    connection.execute(f"DELETE FROM lake.{space}.t WHERE id = 1")
    connection.execute(f"UPDATE lake.{space}.t SET name = 'z' WHERE id = 3")
    assert connection.execute(f"SELECT * FROM lake.{space}.t ORDER BY id").fetchall() == [
        (2, "b"), (3, "z")]
    table = iceberg.catalog().load_table(f"{space}.t")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [2, 3]


def test_makes_a_table_from_a_query(iceberg, space):  # noqa: F811
    connection = attach(iceberg)
    connection.execute(
        f"CREATE TABLE lake.{space}.t AS SELECT i AS id, 'x' || i AS name FROM range(1000) r(i)")
    assert connection.execute(f"SELECT sum(id) FROM lake.{space}.t").fetchone() == (499500,)
    assert iceberg.catalog().load_table(f"{space}.t").scan().to_arrow().num_rows == 1000


def test_several_statements_are_one_commit(iceberg, space):  # noqa: F811
    connection = attach(iceberg)
    for name in ("a", "b"):
        connection.execute(f"CREATE TABLE lake.{space}.{name} (id BIGINT)")
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO lake.{space}.a VALUES (1)")
    connection.execute(f"INSERT INTO lake.{space}.b VALUES (2)")
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO lake.{space}.a VALUES (3)")
    connection.execute(f"INSERT INTO lake.{space}.b VALUES (4)")
    connection.execute("COMMIT")
    catalog = iceberg.catalog()
    assert catalog.load_table(f"{space}.a").scan().to_arrow().column("id").to_pylist() == [3]
    assert catalog.load_table(f"{space}.b").scan().to_arrow().column("id").to_pylist() == [4]


@pytest.mark.parametrize("version", [2, 3])
def test_changes_rows_and_takes_turns_with_others(iceberg, space, version):  # noqa: F811
    """Position deletes in version 2, deletion vectors in version 3, over those of tarn's SQL."""
    connection = attach(iceberg)
    name = f"{space}.t"
    connection.execute(f"CREATE TABLE lake.{name} (id BIGINT, name VARCHAR) "
                       f"WITH ('format-version' = '{version}')")
    connection.execute(f"INSERT INTO lake.{name} SELECT i, 'n' || i FROM range(20) r(i)")
    rows = {i: f"n{i}" for i in range(20)}

    def check():
        expected = sorted(rows.items())
        assert connection.execute(f"SELECT * FROM lake.{name} ORDER BY id").fetchall() == expected
        assert [tuple(row.values()) for row in iceberg.server.sql(
            f"SELECT * FROM {name} ORDER BY id")] == expected
        read = iceberg.catalog().load_table(name).scan().to_arrow().sort_by("id").to_pydict()
        assert list(zip(read["id"], read["name"])) == expected

    connection.execute(f"DELETE FROM lake.{name} WHERE id % 5 = 0")
    for i in (0, 5, 10, 15):
        del rows[i]
    check()
    iceberg.server.json("sql", f"DELETE FROM {name} WHERE id IN (1, 2)")
    del rows[1], rows[2]
    check()
    connection.execute(f"UPDATE lake.{name} SET name = 'changed' WHERE id IN (3, 4)")
    rows.update({3: "changed", 4: "changed"})
    check()
    iceberg.server.json("sql", f"UPDATE {name} SET name = 'ours' WHERE id = 4")
    rows[4] = "ours"
    check()
    connection.execute(
        f"MERGE INTO lake.{name} t USING (VALUES (6, 'merged'), (50, 'new')) s(id, name) "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT")
    rows.update({6: "merged", 50: "new"})
    check()
    formats = {row["file_format"].lower() for row in iceberg.server.sql(
        f"SELECT file_format FROM {name}$delete_files")}
    assert formats == {"parquet" if version == 2 else "puffin"}
    if version == 3:
        ids = [row["_row_id"] for row in iceberg.server.sql(f"SELECT _row_id FROM {name}$rows")]
        assert len(set(ids)) == len(ids) == len(rows)
    iceberg.server.json("table", "compact", name)
    connection = attach(iceberg)
    check()


@pytest.mark.parametrize("transform", [
    "name", "bucket(4, id)", "truncate(2, name)", "year(day)", "month(day)", "day(moment)",
    "hour(moment)"])
def test_writes_partitions(iceberg, space, transform):  # noqa: F811
    connection = attach(iceberg)
    connection.execute(
        f"CREATE TABLE lake.{space}.t (id BIGINT, name VARCHAR, day DATE, moment TIMESTAMP) "
        f"PARTITIONED BY ({transform})")
    connection.execute(
        f"INSERT INTO lake.{space}.t VALUES (-5, 'alpha', DATE '1969-12-31', "
        "TIMESTAMP '1969-12-31 23:30:00'), (15, 'alps', DATE '2026-01-31', "
        "TIMESTAMP '2026-01-31 00:00:00'), (16, NULL, NULL, NULL)")
    iceberg.server.json("sql", f"INSERT INTO {space}.t SELECT * FROM {space}.t")
    counts = [row["record_count"] for row in iceberg.server.sql(
        f"SELECT record_count FROM {space}.t$partitions")]
    assert sum(counts) == 6 and all(count % 2 == 0 for count in counts)
    for condition, found in (("id = -5", -5), ("name = 'alps'", 15), ("name IS NULL", 16),
                             ("day = DATE '1969-12-31'", -5),
                             ("moment > TIMESTAMP '2026-01-01'", 15)):
        query = f"SELECT id FROM {{}}{space}.t WHERE {condition}"
        assert connection.execute(query.format("lake.")).fetchall() == [(found,)] * 2
        assert iceberg.server.sql(query.format("")) == [{"id": found}] * 2


def test_columns_change(iceberg, space):  # noqa: F811
    connection = attach(iceberg)
    connection.execute(f"CREATE TABLE lake.{space}.t (id INTEGER, name VARCHAR)")
    connection.execute(f"INSERT INTO lake.{space}.t VALUES (1, 'one')")
    for change in ("ADD COLUMN extra INTEGER", "RENAME COLUMN name TO label",
                   "ALTER COLUMN id TYPE BIGINT", "DROP COLUMN extra", "RENAME TO u"):
        connection.execute(f"ALTER TABLE lake.{space}.t {change}")
    connection.execute(f"INSERT INTO lake.{space}.u VALUES (5000000000, 'two')")
    expected = [{"id": 1, "label": "one"}, {"id": 5000000000, "label": "two"}]
    assert iceberg.server.sql(f"SELECT * FROM {space}.u ORDER BY id") == expected
    assert iceberg.catalog().list_tables(space) == [(space, "u")]


def test_tables_are_altered_renamed_and_dropped(iceberg, space):  # noqa: F811
    connection = attach(iceberg)
    connection.execute(f"CREATE TABLE lake.{space}.t (id BIGINT)")
    connection.execute(f"INSERT INTO lake.{space}.t VALUES (1)")
    connection.execute(f"ALTER TABLE lake.{space}.t ADD COLUMN name VARCHAR")
    connection.execute(f"INSERT INTO lake.{space}.t VALUES (2, 'b')")
    assert connection.execute(f"SELECT * FROM lake.{space}.t ORDER BY id").fetchall() == [
        (1, None), (2, "b")]
    connection.execute(f"DROP TABLE lake.{space}.t")
    assert iceberg.catalog().list_tables(space) == []
    connection.execute(f"DROP SCHEMA lake.{space}")
    assert (space,) not in iceberg.catalog().list_namespaces()
