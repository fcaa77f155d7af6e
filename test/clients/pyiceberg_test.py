"""PyIceberg, as it comes from its authors, reads and writes tables through the catalog."""

import concurrent.futures
import datetime
import decimal
import pathlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import (
    CommitFailedException, ForbiddenError, NamespaceAlreadyExistsError, NamespaceNotEmptyError,
    NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError, ValidationException)
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.transforms import (
    BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform,
    TruncateTransform, YearTransform)
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType,
    ListType, LongType, MapType, NestedField, StringType, StructType, TimestampType,
    TimestamptzType, TimeType, UUIDType)

from iceberg_server import iceberg  # noqa: F401

ROWS = pa.table({
    "id": pa.array([1, 2, 3], pa.int64()),
    "name": pa.array(["a", "b", None], pa.string()),
})


@pytest.fixture()
def catalog(iceberg):  # noqa: F811
    return iceberg.catalog()


@pytest.fixture()
def space(catalog):
    """A namespace of the test's own."""
    name = f"n{uuid.uuid4().hex[:12]}"
    catalog.create_namespace(name)
    return name


def ids(table, ref=None, **options):
    scan = table.scan(**options)
    scan = scan.use_ref(ref) if ref else scan
    return sorted(scan.to_arrow().column("id").to_pylist())


def filled(catalog, space, name="t", rows=ROWS):
    table = catalog.create_table(f"{space}.{name}", schema=rows.schema)
    table.append(rows)
    return table


def test_namespaces(catalog, space):
    assert (space,) in catalog.list_namespaces()
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(space)
    catalog.create_namespace((space, "in.ner"), {"owner": "me"})
    assert catalog.list_namespaces(space) == [(space, "in.ner")]
    properties = catalog.load_namespace_properties((space, "in.ner"))
    assert "/tables/" in properties.pop("location") and properties == {"owner": "me"}
    report = catalog.update_namespace_properties(
        (space, "in.ner"), removals={"owner", "none"}, updates={"x": "1"})
    assert (report.updated, report.removed, report.missing) == (["x"], ["owner"], ["none"])
    assert catalog.namespace_exists(space) and not catalog.namespace_exists("nowhere")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(space)
    catalog.drop_namespace((space, "in.ner"))
    catalog.drop_namespace(space)
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties(space)


def test_table_lives_and_dies(catalog, space):
    table = filled(catalog, space)
    assert catalog.list_tables(space) == [(space, "t")]
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{space}.t", schema=ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{space}.T", schema=ROWS.schema)
    catalog.rename_table(f"{space}.t", f"{space}.u")
    assert not catalog.table_exists(f"{space}.t")
    assert ids(catalog.load_table(f"{space}.u")) == [1, 2, 3]
    catalog.drop_table(f"{space}.u")
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{space}.u")
    again = catalog.register_table(f"{space}.again", table.metadata_location)
    assert ids(again) == [1, 2, 3]
    catalog.purge_table(f"{space}.again")
    assert catalog.list_tables(space) == []


def test_append_overwrite_delete_and_upsert(catalog, space):
    table = filled(catalog, space)
    table.append(pa.table({"id": [4], "name": ["d"]}))
    table.overwrite(pa.table({"id": [9], "name": ["z"]}), EqualTo("id", 1))
    assert ids(table) == [2, 3, 4, 9]
    table.delete(GreaterThanOrEqual("id", 4))
    assert ids(table) == [2, 3]
    result = table.upsert(pa.table({"id": [3, 5], "name": ["new", "e"]}), join_cols=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    rows = table.scan().to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": [2, 3, 5], "name": ["b", "new", "e"]}
    table.overwrite(ROWS)
    assert ids(catalog.load_table(f"{space}.t")) == [1, 2, 3]


def test_the_server_plans_scans(iceberg, space):
    planned = iceberg.catalog(**{"scan-planning-mode": "server"})
    assert planned.supports_server_side_planning()
    rows = pa.table({"id": pa.array(range(40), pa.int64()),
                     "day": [datetime.date(2026, 1, 1 + i // 20) for i in range(40)],
                     "price": [decimal.Decimal(i) / 4 for i in range(40)],
                     "kind": [f"k{i % 4}" for i in range(40)]})
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()),
                        ("price", pa.decimal128(9, 2)), ("kind", pa.string())])
    table = planned.create_table(f"{space}.t", schema=schema)
    with table.update_spec() as update:
        update.add_field("day", DayTransform(), "on_day")
    for start in range(0, 40, 10):
        table.append(rows.slice(start, 10).cast(schema))
    for text, expected, files in [
            ("id < 5", range(5), 1), ("id = 5 or id = 35", [5, 35], 2),
            ("day = '2026-01-02'", range(20, 40), 2), ("not day = '2026-01-02'", range(20), 2),
            ("price >= 9.50", [38, 39], 1), ("kind in ('k1', 'k9')", range(1, 40, 4), 4),
            ("kind like 'k3%'", range(3, 40, 4), 4), ("id is null", [], 0),
            ("id not in (1, 2) and id <= 3", [0, 3], 1)]:
        scan = table.scan(row_filter=text)
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected), text
        assert len(list(scan.plan_files())) == files, text
    first = table.history()[0].snapshot_id
    assert ids(table, snapshot_id=first) == list(range(10))
    table.delete("id = 7")
    assert 7 not in ids(planned.load_table(f"{space}.t"))


def test_transaction_is_one_commit(catalog, space):
    table = filled(catalog, space)
    before = len(table.snapshots())
    with table.transaction() as transaction:
        transaction.append(pa.table({"id": [7], "name": ["g"]}))
        transaction.set_properties({"owner": "me"})
        transaction.append(pa.table({"id": [8], "name": ["h"]}))
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3, 7, 8]
    assert table.properties["owner"] == "me"
    assert len(table.snapshots()) == before + 2
    assert len(table.metadata.snapshot_log) == before + 1, "the one between was never visible"


def test_table_made_and_filled_in_one_commit(catalog, space):
    with catalog.create_table_transaction(f"{space}.t", schema=ROWS.schema) as transaction:
        with transaction.update_snapshot().fast_append():
            pass
        transaction.set_properties({"k": "v"})
        assert not catalog.table_exists(f"{space}.t")
    table = catalog.load_table(f"{space}.t")
    assert table.properties["k"] == "v"
    table.append(ROWS)
    assert ids(table) == [1, 2, 3]


def test_schema_evolves(catalog, space):
    table = filled(catalog, space)
    with table.update_schema() as update:
        update.add_column("score", IntegerType(), "points")
        update.add_column("place", StructType(NestedField(1, "city", StringType())))
        update.rename_column("name", "label")
        update.move_first("score")
    with table.update_schema() as update:
        update.update_column("score", LongType())
        update.add_column(("place", "street"), StringType())
    table.append(pa.Table.from_pylist(
        [{"id": 10, "label": "x", "score": 5, "place": {"city": "c", "street": "s"}}],
        schema=table.schema().as_arrow()))
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows[0] == {"score": None, "id": 1, "label": "a", "place": None}
    assert rows[3] == {
        "score": 5, "id": 10, "label": "x", "place": {"city": "c", "street": "s"}}
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("label")
    assert set(catalog.load_table(f"{space}.t").schema().column_names) == {
        "score", "id", "place", "place.city", "place.street"}
    assert len(table.schemas()) == 4


def test_partitions_and_orders_evolve(catalog, space):
    table = filled(catalog, space)
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_bucket")
        update.add_identity("name")
    table.append(pa.table({"id": [4, 5], "name": ["d", "e"]}))
    with table.update_spec() as update:
        update.remove_field("name")
    table.append(pa.table({"id": [6], "name": ["f"]}))
    with table.update_sort_order() as update:
        update.asc("id", IdentityTransform(), NullOrder.NULLS_LAST)
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    assert ids(table, row_filter=EqualTo("name", "d")) == [4]
    assert len(table.specs()) == 3
    assert table.sort_order().fields[0].source_id == table.schema().find_field("id").field_id


def test_branches_tags_and_time_travel(catalog, space):
    table = filled(catalog, space)
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"id": [4], "name": ["d"]}))
    table.manage_snapshots().create_tag(first, "v1").create_branch(first, "try").commit()
    table.append(pa.table({"id": [100], "name": ["t"]}), branch="try")
    assert ids(table) == [1, 2, 3, 4]
    assert ids(table, snapshot_id=first) == [1, 2, 3]
    assert ids(table, "try") == [1, 2, 3, 100]
    assert ids(table, "v1") == [1, 2, 3]
    table.manage_snapshots().remove_branch("try").remove_tag("v1").commit()
    assert set(catalog.load_table(f"{space}.t").refs()) == {"main"}
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert ids(catalog.load_table(f"{space}.t")) == [1, 2, 3]


def test_snapshots_expire(catalog, space):
    table = filled(catalog, space)
    for i in range(3):
        table.append(pa.table({"id": [10 + i], "name": ["x"]}))
    old = [snapshot.snapshot_id for snapshot in table.snapshots()[:2]]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    table = catalog.load_table(f"{space}.t")
    assert len(table.snapshots()) == 2
    assert ids(table) == [1, 2, 3, 10, 11, 12]


def test_old_snapshots_expire_but_tagged_ones(catalog, space):
    table = filled(catalog, space)
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "kept").commit()
    for i in range(3):
        table.append(pa.table({"id": [10 + i], "name": ["x"]}))
    soon = datetime.datetime.now() + datetime.timedelta(hours=1)
    table.maintenance.expire_snapshots().older_than(soon).commit()
    table = catalog.load_table(f"{space}.t")
    last = table.current_snapshot().snapshot_id
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [first, last]
    assert ids(table, "kept") == [1, 2, 3]


def test_statistics_come_and_go(catalog, space):
    table = filled(catalog, space)
    snapshot = table.current_snapshot().snapshot_id
    path = f"{table.location()}/metadata/{uuid.uuid4()}.stats"
    blob = BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=snapshot,
                        sequence_number=1, fields=[1], properties={"ndv": "3"})
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(
            snapshot_id=snapshot, statistics_path=path, file_size_in_bytes=100,
            file_footer_size_in_bytes=50, blob_metadata=[blob]))
    found = catalog.load_table(f"{space}.t").metadata.statistics
    assert [(file.statistics_path, file.blob_metadata[0].properties) for file in found] == [
        (path, {"ndv": "3"})]
    with table.update_statistics() as update:
        update.remove_statistics(snapshot)
    assert catalog.load_table(f"{space}.t").metadata.statistics == []


def test_upsert_by_two_columns(catalog, space):
    rows = pa.table({"region": ["eu", "eu", "us"], "id": [1, 2, 1], "n": [1, 2, 3]})
    table = filled(catalog, space, rows=rows)
    result = table.upsert(pa.table({"region": ["us", "us"], "id": [1, 2], "n": [30, 40]}),
                          join_cols=["region", "id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    result = table.upsert(rows.slice(0, 1), join_cols=["region", "id"])
    assert (result.rows_updated, result.rows_inserted) == (0, 0), "equal rows stay"
    read = catalog.load_table(f"{space}.t").scan().to_arrow().sort_by("n").to_pydict()
    assert read == {"region": ["eu", "eu", "us", "us"], "id": [1, 2, 1, 2], "n": [1, 2, 30, 40]}


def test_files_that_are_there_join_a_table(catalog, space):
    table = filled(catalog, space)
    path = pathlib.Path(table.location().removeprefix("file://")) / "data" / "theirs.parquet"
    pq.write_table(pa.table({"id": pa.array([7], pa.int64()), "name": ["g"]}), path)
    table.add_files([f"file://{path}"])
    assert ids(catalog.load_table(f"{space}.t")) == [1, 2, 3, 7]
    with pytest.raises(ValueError):
        table.add_files([f"file://{path}"])


def test_a_branch_is_changed_alone(catalog, space):
    table = filled(catalog, space)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "try").commit()
    table.delete(EqualTo("id", 1), branch="try")
    table.overwrite(pa.table({"id": [9], "name": ["z"]}), EqualTo("id", 2), branch="try")
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3] and ids(table, "try") == [3, 9]


ALL_TYPES = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "real", FloatType()),
    NestedField(5, "double", DoubleType()),
    NestedField(6, "amount", DecimalType(20, 3)),
    NestedField(7, "day", DateType()),
    NestedField(8, "clock", TimeType()),
    NestedField(9, "local", TimestampType()),
    NestedField(10, "instant", TimestamptzType()),
    NestedField(11, "text", StringType()),
    NestedField(12, "uuid", UUIDType()),
    NestedField(13, "fixed", FixedType(4)),
    NestedField(14, "bytes", BinaryType()),
    NestedField(15, "list", ListType(16, StructType(NestedField(17, "x", LongType())))),
    NestedField(18, "map", MapType(19, StringType(), 20, ListType(21, IntegerType()))),
    identifier_field_ids=[1],
)


def test_every_type_round_trips(catalog, space):
    table = catalog.create_table(f"{space}.t", schema=ALL_TYPES)
    utc = datetime.timezone.utc
    row = {
        "id": 1, "flag": True, "small": -5, "real": 0.5, "double": 2.5,
        "amount": decimal.Decimal("12345678901234567.125"), "day": datetime.date(2026, 2, 28),
        "clock": datetime.time(1, 2, 3, 4), "local": datetime.datetime(2026, 1, 1, 1, 1, 1, 1),
        "instant": datetime.datetime(2026, 1, 1, tzinfo=utc), "text": "ä\n\"",
        "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678").bytes, "fixed": b"abcd",
        "bytes": b"\0\1", "list": [{"x": 1}, {"x": None}], "map": [("k", [1, 2]), ("l", [])],
    }
    table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
    table = catalog.load_table(f"{space}.t")
    assert table.schema().identifier_field_ids == [1]
    read = table.scan().to_arrow().to_pylist()[0]
    read["uuid"] = read["uuid"].bytes if isinstance(read["uuid"], uuid.UUID) else read["uuid"]
    assert read == row


TRANSFORMS = [
    ("text", IdentityTransform()), ("small", IdentityTransform()), ("text", BucketTransform(5)),
    ("id", BucketTransform(3)), ("text", TruncateTransform(2)), ("small", TruncateTransform(10)),
    ("local", YearTransform()), ("local", MonthTransform()), ("local", DayTransform()),
    ("local", HourTransform()), ("day", MonthTransform()),
]


@pytest.mark.parametrize("column,transform", TRANSFORMS, ids=str)
def test_every_transform(catalog, space, column, transform):
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "small", IntegerType()),
        NestedField(3, "text", StringType()), NestedField(4, "local", TimestampType()),
        NestedField(5, "day", DateType()))
    spec = PartitionSpec(PartitionField(
        source_id=schema.find_field(column).field_id, field_id=1000, transform=transform,
        name="p" if not isinstance(transform, IdentityTransform) else column))
    order = SortOrder(SortField(1, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST))
    table = catalog.create_table(
        f"{space}.t", schema=schema, partition_spec=spec, sort_order=order)
    rows = pa.Table.from_pylist([
        {"id": 1, "small": -15, "text": "alpha", "local": datetime.datetime(1969, 12, 31, 23),
         "day": datetime.date(1969, 1, 1)},
        {"id": 2, "small": 15, "text": "alps", "local": datetime.datetime(2026, 1, 1),
         "day": datetime.date(2026, 1, 31)},
        {"id": 3, "small": None, "text": None, "local": None, "day": None},
    ], schema=table.schema().as_arrow())
    table.append(rows)
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3]
    assert ids(table, row_filter=EqualTo("text", "alps")) == [2]
    assert ids(table, row_filter=EqualTo("id", 3)) == [3]
    if isinstance(transform, IdentityTransform):
        table.dynamic_partition_overwrite(rows.slice(1, 1))
        assert ids(table) == [1, 2, 3]


def test_writers_at_once_lose_nothing(iceberg, space):  # noqa: F811
    catalog = iceberg.catalog()
    filled(catalog, space)

    def write(writer):
        own = iceberg.catalog()
        done = 0
        while done < 5:
            table = own.load_table(f"{space}.t")
            try:
                table.append(pa.table({"id": [1000 * writer + done], "name": ["w"]}))
                done += 1
            except CommitFailedException:
                continue  # Somebody else was faster: again from the newest state.

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(write, [1, 2]))
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3, *range(1000, 1005), *range(2000, 2005)]
    assert len(table.snapshots()) == 11


def test_a_stale_table_cannot_overwrite(catalog, space):
    filled(catalog, space)
    stale = catalog.load_table(f"{space}.t")
    catalog.load_table(f"{space}.t").delete(EqualTo("id", 1))
    with pytest.raises((CommitFailedException, ValidationException)):
        stale.overwrite(ROWS)
    assert ids(catalog.load_table(f"{space}.t")) == [2, 3]


def test_views_are_listed_and_dropped(iceberg, space):  # noqa: F811
    catalog = iceberg.catalog()
    body = {
        "name": "v", "location": None, "properties": {},
        "schema": {"type": "struct", "schema-id": 0,
                   "fields": [{"id": 0, "name": "x", "required": False, "type": "int"}]},
        "view-version": {
            "version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {},
            "default-namespace": [],
            "representations": [{"type": "sql", "sql": "SELECT 1 AS x", "dialect": "spark"}]}}
    assert iceberg.rest("POST", f"/namespaces/{space}/views", json=body).status_code == 200
    assert catalog.list_views(space) == [(space, "v")]
    assert catalog.view_exists((space, "v"))
    catalog.drop_view((space, "v"))
    assert catalog.list_views(space) == []


def test_a_viewer_reads_and_is_refused_writes(iceberg, space):  # noqa: F811
    filled(iceberg.catalog(), space)
    user, token = iceberg.make_user(f"viewer-{space}")
    viewer = iceberg.catalog(token)
    with pytest.raises((NoSuchTableError, ForbiddenError)):
        viewer.load_table(f"{space}.t")
    project = iceberg.native("GET", "/tarn/v1/resources?path=default").json()["rid"]
    granted = iceberg.native(
        "POST", f"/api/v2/filesystem/resources/{project}/roles/add?preview=true",
        json={"roles": [{"roleId": "compass:view", "resourceRolePrincipal": {
            "type": "principalWithId", "principalId": user, "principalType": "USER"}}]})
    assert granted.status_code == 204, granted.text
    table = viewer.load_table(f"{space}.t")
    assert ids(table) == [1, 2, 3]
    with pytest.raises(ForbiddenError):
        table.append(ROWS)
    with pytest.raises(ForbiddenError):
        viewer.drop_table(f"{space}.t")
