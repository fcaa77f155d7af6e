"""readTable through the vendor's Python library: Parquet and CSV, Arrow and CSV out."""

import datetime
import decimal
import io

import foundry_sdk
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foundry_sdk.v2.core import errors as core_errors
from foundry_sdk.v2.datasets import errors

from foundry_server import foundry  # noqa: F401: a fixture

UTC = datetime.timezone.utc
FIELDS = [
    ("flag", "BOOLEAN", pa.bool_(), True),
    ("byte", "BYTE", pa.int8(), -128),
    ("short", "SHORT", pa.int16(), 32767),
    ("int", "INTEGER", pa.int32(), -(2**31)),
    ("long", "LONG", pa.int64(), 2**63 - 1),
    ("float", "FLOAT", pa.float32(), 0.5),
    ("double", "DOUBLE", pa.float64(), 0.1),
    ("text", "STRING", pa.utf8(), "é 😀"),
    ("bytes", "BINARY", pa.binary(), b"\x00\xff"),
    ("day", "DATE", pa.date32(), datetime.date(2026, 1, 31)),
    ("time", "TIMESTAMP", pa.timestamp("us", "UTC"),
     datetime.datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)),
]
DECIMAL = {"type": "DECIMAL", "name": "amount", "nullable": True, "precision": 38, "scale": 18}


def parquet(table):
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def schema_of(*fields):
    return {"fieldSchemaList": [
        field if isinstance(field, dict) else {"type": field[1], "name": field[0],
                                               "nullable": True}
        for field in fields]}


@pytest.fixture
def rid(foundry):
    return foundry.make_dataset().rid


@pytest.fixture
def datasets(foundry):
    return foundry.client.datasets.Dataset


def read(datasets, rid, **options):
    """The answer as an Arrow table."""
    answer = datasets.read_table(rid, format="ARROW", **options)
    return pa.ipc.open_stream(pa.py_buffer(bytes(answer))).read_all()


def test_every_type_comes_back_as_it_is(datasets, rid):
    columns = {name: pa.array([value, None], kind) for name, _, kind, value in FIELDS}
    columns["amount"] = pa.array([decimal.Decimal("1.5"), None], pa.decimal128(38, 18))
    columns["list"] = pa.array([[1, None], None], pa.list_(pa.int64()))
    columns["struct"] = pa.array([{"a": "x"}, None], pa.struct([("a", pa.utf8())]))
    columns["map"] = pa.array([[("k", 1)], None], pa.map_(pa.utf8(), pa.int64()))
    table = pa.table(columns)
    datasets.File.upload(rid, "a.parquet", parquet(table))
    datasets.put_schema(rid, schema=schema_of(
        *FIELDS, DECIMAL,
        {"type": "ARRAY", "name": "list", "nullable": True,
         "arraySubtype": {"type": "LONG", "nullable": True}},
        {"type": "STRUCT", "name": "struct", "nullable": True,
         "subSchemas": [{"type": "STRING", "name": "a", "nullable": True}]},
        {"type": "MAP", "name": "map", "nullable": True,
         "mapKeyType": {"type": "STRING", "nullable": False},
         "mapValueType": {"type": "LONG", "nullable": True}}))
    found = read(datasets, rid)
    assert found.column_names == table.column_names
    assert found.to_pylist() == table.to_pylist()
    for name, _, kind, _ in FIELDS:
        assert found.schema.field(name).type == kind, name
    assert found.schema.field("amount").type == pa.decimal128(38, 18)
    assert pa.types.is_list(found.schema.field("list").type)
    assert pa.types.is_map(found.schema.field("map").type)
    chosen = read(datasets, rid, columns=["text", "flag"], row_limit=1)
    assert chosen.to_pydict() == {"text": ["é 😀"], "flag": [True]}


def test_csv_out(datasets, rid):
    datasets.File.upload(rid, "a.parquet", parquet(pa.table(
        {"id": [1, 2, 3], "text": ['say "hi"', "a,b", None]})))
    datasets.put_schema(rid, schema=schema_of(("id", "LONG"), ("text", "STRING")))
    text = bytes(datasets.read_table(rid, format="CSV")).decode()
    assert text.splitlines() == ["id,text", '1,"say ""hi"""', '2,"a,b"', "3,"]
    assert bytes(datasets.read_table(rid, format="CSV", columns=["id"], row_limit=2)
                 ).decode().splitlines() == ["id", "1", "2"]


def test_files_that_differ_are_read_by_name(datasets, rid):
    transaction = datasets.Transaction.create(rid, transaction_type="APPEND").rid
    for path, table in {
        "1": pa.table({"id": pa.array([1], pa.int32()), "a": ["x"]}),
        "2": pa.table({"a": ["y"], "b": [2.5], "id": pa.array([2], pa.int64())}),
    }.items():
        datasets.File.upload(rid, path, parquet(table), transaction_rid=transaction)
    datasets.Transaction.commit(rid, transaction)
    datasets.put_schema(rid, schema=schema_of(("id", "LONG"), ("a", "STRING"), ("b", "DOUBLE")))
    assert read(datasets, rid).to_pylist() == [
        {"id": 1, "a": "x", "b": None}, {"id": 2, "a": "y", "b": 2.5}]


def test_branches_and_ranges(datasets, rid):
    ends = []
    for i in range(3):
        ends.append(datasets.File.upload(
            rid, f"{i}.parquet", parquet(pa.table({"id": [i]})),
            transaction_type="APPEND").transaction_rid)
    datasets.put_schema(rid, schema=schema_of(("id", "LONG")), end_transaction_rid=ends[0])
    assert read(datasets, rid)["id"].to_pylist() == [0, 1, 2]
    assert read(datasets, rid, end_transaction_rid=ends[1])["id"].to_pylist() == [0, 1]
    part = read(datasets, rid, branch_name="master", start_transaction_rid=ends[1],
                end_transaction_rid=ends[2])
    assert part["id"].to_pylist() == [1, 2]
    datasets.Branch.create(rid, name="b", transaction_rid=ends[0])
    assert read(datasets, rid, branch_name="b")["id"].to_pylist() == [0]
    with pytest.raises(core_errors.InvalidParameterCombination):
        read(datasets, rid, start_transaction_rid=ends[0])
    with pytest.raises(foundry_sdk.NotFoundError) as missing:
        read(datasets, rid, branch_name="none")
    assert missing.value.name == "BranchNotFound"


def test_what_cannot_be_read_says_so(datasets, rid):
    with pytest.raises(errors.SchemaNotFound):
        read(datasets, rid)
    datasets.File.upload(rid, "a", b"no parquet")
    with pytest.raises(errors.SchemaNotFound):
        read(datasets, rid)
    datasets.put_schema(rid, schema=schema_of(("id", "LONG")))
    with pytest.raises(errors.ReadTableError) as broken:
        read(datasets, rid)
    assert "a" in broken.value.parameters["message"]
    datasets.File.upload(rid, "a", parquet(pa.table({"id": ["text"]})))
    with pytest.raises(errors.ReadTableError) as unfit:
        read(datasets, rid)
    assert unfit.value.parameters["datasetRid"] == rid
    datasets.File.upload(rid, "a", parquet(pa.table({"id": [1]})))
    for columns in (["none"], ["ID"]):
        with pytest.raises(foundry_sdk.BadRequestError) as unknown:
            read(datasets, rid, columns=columns)
        assert unknown.value.parameters["column"] == columns[0]


def test_an_empty_view_has_columns(datasets, rid):
    transaction = datasets.Transaction.create(rid, transaction_type="SNAPSHOT").rid
    datasets.Transaction.commit(rid, transaction)
    datasets.put_schema(rid, schema=schema_of(("id", "LONG"), ("é", "STRING")))
    empty = read(datasets, rid)
    assert (empty.num_rows, empty.column_names) == (0, ["id", "é"])
    assert bytes(datasets.read_table(rid, format="CSV")).decode().strip() == "id,é"


def test_csv_files(datasets, rid):
    transaction = datasets.Transaction.create(rid, transaction_type="APPEND").rid
    for path, body in {
        "a.csv": 'id,name,when\n1,"a, b",2026-01-31T12:00:00Z\n2,,\n',
        "b.csv": 'id,name,when\n3,"say ""hi""",2026-01-31T12:00:00Z\n',
        "empty.csv": "",
    }.items():
        datasets.File.upload(rid, path, body.encode(), transaction_rid=transaction)
    datasets.Transaction.commit(rid, transaction)
    datasets.put_schema(rid, dataframe_reader="CSV", schema=schema_of(
        ("id", "LONG"), ("name", "STRING"), ("when", "TIMESTAMP")))
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert read(datasets, rid).to_pylist() == [
        {"id": 1, "name": "a, b", "when": noon},
        {"id": 2, "name": None, "when": None},
        {"id": 3, "name": 'say "hi"', "when": noon},
    ]
    datasets.put_schema(rid, dataframe_reader="CSV", schema=schema_of(
        ("id", "LONG"), ("name", "LONG"), ("when", "STRING")))
    with pytest.raises(errors.ReadTableError):
        read(datasets, rid)


def test_many_rows_are_streamed(datasets, rid):
    rows = 1_000_000
    datasets.File.upload(rid, "a.parquet", parquet(pa.table({"id": pa.array(range(rows))})))
    datasets.put_schema(rid, schema=schema_of(("id", "LONG")))
    found = read(datasets, rid)
    assert found.num_rows == rows
    assert found["id"].to_pylist()[::100_000] == list(range(rows))[::100_000]


def test_strangers_see_nothing(foundry, rid):
    _, stranger, _ = foundry.make_user()
    with pytest.raises(foundry_sdk.NotFoundError) as hidden:
        stranger.datasets.Dataset.read_table(rid, format="ARROW")
    assert hidden.value.name == "DatasetNotFound"
