"""Tables that another writer made, read, cared for and read again.

PyIceberg writes the tables (format versions 1 and 2) below the warehouse; equality deletes,
which it cannot write, are made by hand. They are registered through the catalog, so that `tarn sql`
and `tarn table` work on them.
"""

import gzip
import json
import pathlib
import urllib.request
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (DataFile, DataFileContent, FileFormat, ManifestContent,
                                ManifestEntry, ManifestEntryStatus, ManifestWriterV2,
                                write_manifest_list)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (DateType, DecimalType, DoubleType, ListType, LongType, MapType,
                             NestedField, StringType, StructType, TimestamptzType, UUIDType)

from server import CommandFailed, Server

NAMESPACE = "others"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("iceberg")
    with Server(root / "home") as server:
        writer = SqlCatalog("writer", uri=f"sqlite:///{root}/writer.db",
                            warehouse=f"file://{server.home}/warehouse/{NAMESPACE}")
        writer.create_namespace(NAMESPACE)
        reader = RestCatalog("tarn", uri=server.url + "/iceberg", token=server.token(),
                             warehouse="default")
        reader.create_namespace(NAMESPACE)
        yield server, writer, reader


def register(world, table, name=None, location=None):
    _, _, reader = world
    name = name or table.name()[-1]
    return reader.register_table((NAMESPACE, name), location or table.metadata_location)


def rows(server, sql):
    return [list(row.values()) for row in server.sql(sql)]


def test_version_one_tables_are_read(world):
    server, writer, _ = world
    table = writer.create_table(
        (NAMESPACE, "v1"),
        Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()),
               NestedField(3, "amount", DecimalType(9, 2))),
        partition_spec=PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id_same")),
        properties={"format-version": "1"})
    schema = table.schema().as_arrow()
    table.append(pa.Table.from_pylist(
        [{"id": 1, "day": None, "amount": None}, {"id": 2, "day": None, "amount": None}], schema))
    with table.update_schema() as update:
        update.rename_column("amount", "price")
        update.add_column("note", StringType())
    table.append(pa.Table.from_pylist(
        [{"id": 3, "day": None, "price": None, "note": "new"}], table.schema().as_arrow()))
    register(world, table)
    assert rows(server, "SELECT id, price, note FROM others.v1 ORDER BY id") == [
        [1, None, None], [2, None, None], [3, None, "new"]]
    assert rows(server, "SELECT count(*) FROM others.v1$data_files") == [[3]]
    with pytest.raises(CommandFailed) as refused:
        server.run("table", "compact", "others.v1")
    assert "version 1" in refused.value.errors


def test_types_and_nested_evolution(world):
    server, writer, _ = world
    table = writer.create_table((NAMESPACE, "types"), Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "made", TimestamptzType()),
        NestedField(3, "u", UUIDType()),
        NestedField(4, "x", DoubleType()),
        NestedField(5, "s", StructType(NestedField(6, "a", LongType()),
                                       NestedField(7, "b", StringType()))),
        NestedField(8, "l", ListType(9, StructType(NestedField(10, "c", LongType())))),
        NestedField(11, "m", MapType(12, StringType(), 13, LongType()))))
    arrow = table.schema().as_arrow()
    table.append(pa.Table.from_pylist([
        {"id": 1, "made": 1_700_000_000_000_001, "u": uuid.UUID(int=7).bytes, "x": 0.5,
         "s": {"a": 5, "b": "old"}, "l": [{"c": 1}, None], "m": {"k": 2}}], arrow))
    with table.update_schema() as update:
        update.rename_column("s.a", "first")
        update.rename_column("l.element.c", "d")
        update.delete_column("s.b")
    with table.update_schema() as update:
        update.add_column(("s", "b"), StringType())
    table.append(pa.Table.from_pylist([
        {"id": 2, "s": {"first": 6, "b": "new"}, "l": [{"d": 3}]}], table.schema().as_arrow()))
    register(world, table)
    found = server.sql("SELECT id, s.first AS a, s.b AS b, l[1].d AS d, u, m['k'] AS k, "
                       "epoch_us(made) AS made FROM others.types ORDER BY id")
    assert found[0] == {"id": 1, "a": 5, "b": None, "d": 1,
                        "u": "00000000-0000-0000-0000-000000000007", "k": 2,
                        "made": 1_700_000_000_000_001}
    assert (found[1]["a"], found[1]["b"], found[1]["d"]) == (6, "new", 3)


def test_files_without_ids_and_packed_metadata(world):
    server, writer, _ = world
    table = writer.create_table((NAMESPACE, "mapped"), Schema(
        NestedField(1, "id", LongType()), NestedField(2, "name", StringType())))
    path = pathlib.Path(table.location().removeprefix("file://")) / "data" / "bare.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int64())}), path)
    table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("name", "title")
    packed = table.metadata_location.replace(".metadata.json", ".gz.metadata.json")
    source = pathlib.Path(table.metadata_location.removeprefix("file://"))
    pathlib.Path(packed.removeprefix("file://")).write_bytes(gzip.compress(source.read_bytes()))
    register(world, table, location=packed)
    assert rows(server, "SELECT id, title FROM others.mapped ORDER BY id") == [[1, "a"], [2, "b"]]


class DeleteManifestWriter(ManifestWriterV2):
    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


def equality_delete(table, name, columns, field_ids, partition=None, spec_id=0):
    """A new metadata file of the table with one more snapshot, which adds equality deletes."""
    metadata = json.loads(pathlib.Path(
        table.metadata_location.removeprefix("file://")).read_text())
    location = metadata["location"].removeprefix("file://")
    path = f"{location}/data/{name}.parquet"
    fields = [pa.field(table.schema().find_field(i).name, column.type,
                       metadata={"PARQUET:field_id": str(i)})
              for i, column in zip(field_ids, columns)]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    head = next(s for s in metadata["snapshots"]
                if s["snapshot-id"] == metadata["current-snapshot-id"])
    snapshot_id, sequence = head["snapshot-id"] + 1, metadata["last-sequence-number"] + 1
    file = DataFile.from_args(
        _table_format_version=2, content=DataFileContent.EQUALITY_DELETES,
        file_path=f"file://{path}", file_format=FileFormat.PARQUET,
        partition=Record(*(partition or [])), record_count=len(columns[0]),
        file_size_in_bytes=pathlib.Path(path).stat().st_size, equality_ids=list(field_ids))
    file.spec_id = spec_id
    manifest = f"{location}/metadata/{name}-m0.avro"
    with DeleteManifestWriter(table.specs()[spec_id], table.schema(),
                              table.io.new_output(f"file://{manifest}"), snapshot_id,
                              "deflate") as out:
        out.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED,
                                              snapshot_id=snapshot_id, data_file=file))
    manifests = [*table.current_snapshot().manifests(table.io), out.to_manifest_file()]
    listed = f"{location}/metadata/{name}-list.avro"
    with write_manifest_list(2, table.io.new_output(f"file://{listed}"), snapshot_id,
                             head["snapshot-id"], sequence, "deflate") as out:
        out.add_manifests(manifests)
    time = metadata["last-updated-ms"] + 1
    metadata["snapshots"].append({
        "snapshot-id": snapshot_id, "parent-snapshot-id": head["snapshot-id"],
        "sequence-number": sequence, "timestamp-ms": time, "manifest-list": f"file://{listed}",
        "summary": {"operation": "delete"}, "schema-id": metadata["current-schema-id"]})
    metadata["snapshot-log"].append({"snapshot-id": snapshot_id, "timestamp-ms": time})
    metadata.update({"current-snapshot-id": snapshot_id, "last-sequence-number": sequence,
                     "last-updated-ms": time})
    metadata["refs"]["main"]["snapshot-id"] = snapshot_id
    target = f"{location}/metadata/00099-{uuid.uuid4()}.metadata.json"
    pathlib.Path(target).write_text(json.dumps(metadata))
    return f"file://{target}"


def make_orders(writer, name, partitioned):
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "region", StringType()),
                    NestedField(3, "at", TimestamptzType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
    table = writer.create_table((NAMESPACE, name), schema,
                                **({"partition_spec": spec} if partitioned else {}))
    arrow = table.schema().as_arrow()
    for first in (0, 4):
        table.append(pa.Table.from_pylist(
            [{"id": i, "region": "eu" if i % 2 else "us", "at": 1_700_000_000_000_000}
             for i in range(first, first + 4)], arrow))
    return table


def test_equality_deletes_are_read_and_compacted_away(world):
    server, writer, reader = world
    table = make_orders(writer, "deleted", partitioned=False)
    location = equality_delete(table, "eq", [pa.array([1, 6, 99], pa.int64())], [1])
    register(world, table, location=location)
    left = [[0], [2], [3], [4], [5], [7]]
    assert rows(server, "SELECT id FROM others.deleted ORDER BY id") == left
    with pytest.raises(CommandFailed) as finding:
        server.run("table", "doctor", "others.deleted")
    assert finding.value.code == 1 and "0 errors, 1 warnings" in finding.value.errors
    doctor = json.loads(server.run("table", "doctor", "others.deleted", "--json", check=False))
    assert any("equality deletes" in finding["finding"] for finding in doctor)
    report = server.json("table", "compact", "others.deleted")
    assert (report["filesAfter"], report["deletedRows"]) == (1, 2)
    assert rows(server, "SELECT id FROM others.deleted ORDER BY id") == left
    # PyIceberg refuses equality deletes: it can read the table now.
    read = reader.load_table((NAMESPACE, "deleted")).scan().to_arrow()
    assert sorted(read.column("id").to_pylist()) == [row[0] for row in left]


def test_equality_deletes_stay_in_their_partition(world):
    server, writer, _ = world
    table = make_orders(writer, "scoped", partitioned=True)
    location = equality_delete(table, "eq", [pa.array([1, 2, 3], pa.int64())], [1],
                               partition=["eu"])
    register(world, table, location=location)
    # 2 is in another partition than the delete.
    assert rows(server, "SELECT id FROM others.scoped ORDER BY id") == [
        [0], [2], [4], [5], [6], [7]]
    assert rows(server, "SELECT sum(equality_delete_record_count) FROM others.scoped$partitions"
                ) == [[3]]


def test_upkeep_of_a_table_of_ours_by_others(world):
    server, _, reader = world
    table = reader.create_table((NAMESPACE, "kept"), Schema(
        NestedField(1, "id", LongType()), NestedField(2, "p", StringType())),
        partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p")))
    for i in range(6):
        table.append(pa.table({"id": [i, i + 100], "p": ["a", "b"]}))
    table.delete("id = 3")
    assert server.json("table", "compact", "others.kept", "--dry-run")["groups"] == 2
    report = server.json("table", "compact", "others.kept")
    assert report["filesAfter"] == 2 and report["conflicts"] == 0
    expired = server.json("table", "expire", "others.kept", "--older-than", "0s", "--keep", "1")
    assert len(expired["snapshots"]) >= 7 and expired["dataFiles"] >= 11
    read = reader.load_table((NAMESPACE, "kept")).scan().to_arrow()
    assert sorted(read.column("id").to_pylist()) == [0, 1, 2, 4, 5, *range(100, 106)]
    stray = server.home / "warehouse" / "stray"
    location = pathlib.Path(table.location().removeprefix("file://"))
    assert not stray.exists() and location.is_dir()
    (location / "data" / "stray.parquet").write_bytes(b"x")
    orphans = server.json("table", "orphans", "others.kept", "--dry-run", "--older-than", "0s")
    assert orphans["found"] == 1 and orphans["files"][0]["path"].endswith("stray.parquet")
    assert server.json("table", "orphans", "others.kept")["removed"] == 0
    with pytest.raises(CommandFailed) as refused:
        server.run("table", "orphans", "others.kept", "--older-than", "1h")
    assert "72 hours" in refused.value.errors


def create(server, name, version):
    """A table by the bare route: PyIceberg makes none of version 3."""
    body = {"name": name, "properties": {"format-version": str(version)},
            "schema": {"type": "struct", "fields": [
                {"id": 1, "name": "id", "required": False, "type": "long"},
                {"id": 2, "name": "p", "required": False, "type": "string"}]},
            "partition-spec": {"spec-id": 0, "fields": [
                {"source-id": 2, "field-id": 1000, "name": "p", "transform": "identity"}]}}
    request = urllib.request.Request(
        f"{server.url}/iceberg/v1/default/namespaces/{NAMESPACE}/tables",
        json.dumps(body).encode(), {"Authorization": f"Bearer {server.token()}",
                                    "Content-Type": "application/json"})
    urllib.request.urlopen(request).close()


@pytest.mark.parametrize("version", [2, 3])
def test_changes_by_sql_are_seen_by_others(world, version):
    server, _, reader = world
    name = f"others.changed{version}"
    create(server, f"changed{version}", version)

    def change(statement):
        return server.json("sql", statement)["changedRows"]

    def seen():
        ours = sorted(map(tuple, rows(server, f"SELECT id, p FROM {name}")))
        read = reader.load_table((NAMESPACE, f"changed{version}")).scan().to_arrow()
        assert sorted(zip(*(read.column(c).to_pylist() for c in ("id", "p")))) == ours
        return ours

    assert change(f"INSERT INTO {name} SELECT range, 'a' FROM range(4)") == 4
    assert change(f"INSERT INTO {name} VALUES (0, 'b'), (1, 'b')") == 2
    assert change(f"DELETE FROM {name} WHERE id = 1") == 2
    assert change(f"UPDATE {name} SET id = id + 10, p = 'c' WHERE id > 2") == 1
    assert seen() == [(0, "a"), (0, "b"), (2, "a"), (13, "c")]
    lineage = f"SELECT id, _row_id, _last_updated_sequence_number FROM {name}$rows ORDER BY id, 2"
    before = rows(server, lineage)
    if version == 3:
        assert before == [[0, 0, 1], [0, 4, 2], [2, 2, 1], [13, 3, 4]]
    server.json("table", "compact", name)
    assert seen() == [(0, "a"), (0, "b"), (2, "a"), (13, "c")]
    assert rows(server, lineage) == before
    assert change(f"DELETE FROM {name} WHERE p = 'a'") == 2
    assert seen() == [(0, "b"), (13, "c")]


def test_metadata_tables_agree_with_pyiceberg(world):
    server, _, reader = world
    table = reader.load_table((NAMESPACE, "kept"))
    assert rows(server, "SELECT snapshot_id FROM others.kept$snapshots ORDER BY committed_at") == [
        [s.snapshot_id] for s in sorted(table.snapshots(), key=lambda s: s.timestamp_ms)]
    inspected = table.inspect.files()
    assert sorted(rows(server, "SELECT file_path, record_count FROM others.kept$files")) == sorted(
        [path, count] for path, count in zip(inspected.column("file_path").to_pylist(),
                                             inspected.column("record_count").to_pylist()))
    assert rows(server, "SELECT name, type FROM others.kept$refs") == [["main", "BRANCH"]]
